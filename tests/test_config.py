"""Settings are right when they are made, or an error names the one that is not."""

import dataclasses
import json

import pytest

from sureshot.config import IndexSettings
from sureshot.errors import SureshotError


def test_settings_survive_json() -> None:
    settings = IndexSettings("m", 7, 2.5, False, "keyframes", 24.0)
    assert IndexSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_what_is_missing_takes_the_default() -> None:
    assert IndexSettings.from_dict({"frames": 3}) == IndexSettings(frames=3)


def test_a_whole_number_stands_for_a_float() -> None:
    assert IndexSettings.from_dict({"window": 20}) == IndexSettings(window=20.0)


def test_settings_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        IndexSettings().frames = 3  # type: ignore[misc]


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SureshotError, match="Unknown setting colour; known: model, frames, window"):
        IndexSettings.from_dict({"colour": True})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", 7),
        ("frames", 12.0),
        ("frames", "12"),
        ("frames", True),
        ("window", "long"),
        ("window", False),
        ("window", None),
        ("scenes", 1),
        ("scenes", "yes"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_name(name: str, value: object) -> None:
    with pytest.raises(SureshotError, match=f"Setting {name} is .*; expected"):
        IndexSettings.from_dict({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("frames", 0),
        ("frames", 65),
        ("frames", -1),
        ("window", 0.5),
        ("window", 30.5),
        ("window", float("nan")),
        ("window", float("inf")),
        ("frame_rate", 0.0),
        ("frame_rate", -1.0),
        ("frame_rate", 1001.0),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_name(name: str, value: float) -> None:
    with pytest.raises(SureshotError, match=f"Setting {name} is .* must be between"):
        IndexSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("frames", "window"), [(1, 1.0), (64, 30.0)])
def test_the_ends_of_the_ranges_are_allowed(frames: int, window: float) -> None:
    assert IndexSettings(frames=frames, window=window).frames == frames


@pytest.mark.parametrize("value", ["some", "", "ALL", 3, None])
def test_an_unknown_way_to_decode_is_refused_with_the_known_ones(value: object) -> None:
    with pytest.raises(SureshotError, match=r"decode is .*; known: auto, all, keyframes"):
        IndexSettings.from_dict({"decode": value})
