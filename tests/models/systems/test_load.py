"""Systems from plain settings."""

import pytest

from sureshot.errors import SureshotError
from sureshot.models.systems.base import Sizes, known_systems, load_system
from sureshot.models.systems.duq import Duq
from tests.models.systems.every import FORMS


def test_every_file_with_a_system_is_found() -> None:
    names = "ce clip2video clip4clip duq duq_released dvtr hit pcme tmass uatvr xpool"
    assert list(known_systems()) == names.split()
    for name, kind in known_systems().items():
        made = load_system({"name": name}, Sizes(16, 3))
        assert type(made) is kind and kind.__module__ == f"sureshot.models.systems.{name}"


def test_every_system_is_under_test() -> None:
    assert {form["name"] for form in FORMS.values()} == set(known_systems())
    assert set(known_systems()) <= set(FORMS)  # with its defaults too


def test_settings_arrive() -> None:
    settings = {"name": "duq", "mode": "paper", "samples": 3, "alpha": 1}
    made = load_system(settings, Sizes(16, 3))
    assert isinstance(made, Duq)
    assert (made.printed_mode, made.config.samples, made.weights["distance"]) == (True, 3, 1.0)
    assert settings == {"name": "duq", "mode": "paper", "samples": 3, "alpha": 1}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"name": "dqu"}, "system.name is 'dqu'; known: ce, clip2video, clip4clip, duq"),
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
