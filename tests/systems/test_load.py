"""Systems from plain settings."""

import pytest

from sureshot.errors import SureshotError
from sureshot.systems.clip2video import Clip2Video
from sureshot.systems.ce import Ce
from sureshot.systems.clip4clip import Clip4Clip
from sureshot.systems.duq import Duq
from sureshot.systems.hit import Hit
from sureshot.systems.load import NAMES, load_system
from sureshot.systems.pcme import Pcme
from sureshot.systems.tmass import TMass
from sureshot.systems.tokens import Sizes
from sureshot.systems.uatvr import Uatvr
from sureshot.systems.xpool import XPool
from tests.systems.every import FORMS


def test_every_name_gives_its_system_with_its_defaults() -> None:
    made = {name: type(load_system({"name": name}, Sizes(16, 3))) for name in NAMES}
    assert made == {
        "clip4clip": Clip4Clip,
        "xpool": XPool,
        "duq": Duq,
        "uatvr": Uatvr,
        "clip2video": Clip2Video,
        "pcme": Pcme,
        "tmass": TMass,
        "hit": Hit, "ce": Ce}


def test_every_system_is_under_test() -> None:
    assert {form["name"] for form in FORMS.values()} == set(NAMES)


def test_settings_arrive() -> None:
    settings = {"name": "duq", "mode": "paper", "samples": 3, "alpha": 1}
    made = load_system(settings, Sizes(16, 3))
    assert isinstance(made, Duq)
    assert (made.printed_mode, made.config.samples, made.weights["distance"]) == (True, 3, 1.0)
    assert settings == {"name": "duq", "mode": "paper", "samples": 3, "alpha": 1}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"name": "dqu"}, "system.name is 'dqu'; known: clip4clip, xpool, duq, uatvr"),
        ({}, "system.name is None; known"),
        ({"name": "xpool", "heads": 2}, "Unknown setting system.heads; known: dropout, scale"),
        ({"name": "duq", "mode": "literal"}, "system.mode is 'literal'; known: well_posed, paper"),
        ({"name": "duq", "samples": 1.5}, "system.samples is 1.5; expected a whole number"),
        ({"name": "duq", "samples": 0}, "system.samples is 0; it must be between 1 and 100"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict, reason: str) -> None:
    with pytest.raises(SureshotError) as caught:
        load_system(settings, Sizes(16, 3))
    assert reason in str(caught.value)
