"""The header tells whose an index is, and says plainly when it cannot be used."""

import dataclasses
import json

import pytest

from sureshot.errors import StoreError, SureshotError
from sureshot.settings import build, to_values
from sureshot.store.rows import SCHEMA_VERSION, Header, IndexSettings, ours


def test_settings_survive_json() -> None:
    settings = IndexSettings("m", 7, 2.5, False, "keyframes", 24.0)
    assert build(IndexSettings, json.loads(json.dumps(to_values(settings)))) == settings


def test_what_is_missing_takes_the_default() -> None:
    assert build(IndexSettings, {"frames": 3}) == IndexSettings(frames=3)


def test_a_whole_number_stands_for_a_float() -> None:
    assert build(IndexSettings, {"window": 20}) == IndexSettings(window=20.0)


def test_settings_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        IndexSettings().frames = 3  # type: ignore[misc]


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SureshotError, match="Unknown setting colour; known: model, frames, window"):
        build(IndexSettings, {"colour": True})


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
        build(IndexSettings, {name: value})


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
        build(IndexSettings, {"decode": value})


HEADER = Header(IndexSettings(model="tiny", frames=5, window=7.5), "abc", 24)
VALUES = json.loads(HEADER.to_metadata()[b"sureshot"])


def read(text: bytes) -> Header:
    return Header.from_metadata({b"sureshot": text}, "/place")


def test_a_header_survives() -> None:
    assert Header.from_metadata(HEADER.to_metadata(), "/place") == HEADER


@pytest.mark.parametrize("metadata", [None, {}, {b"other": b"{}"}])
def test_what_somebody_else_wrote_is_not_taken_for_ours(metadata: dict | None) -> None:
    assert not ours(metadata)
    with pytest.raises(StoreError, match=r"/place is not an index of Sureshot.*`db=`"):
        Header.from_metadata(metadata, "/place")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"{",
        b"[]",
        b"7",
        b"null",
        b"{}",
        b'{"schema": "1"}',
        b'{"schema": true}',
        b'{"schema": null}',
    ],
)
def test_a_broken_header_names_the_place_and_the_fix(text: bytes) -> None:
    assert ours({b"sureshot": text})
    with pytest.raises(StoreError, match=r"/place is damaged.*sureshot reset"):
        read(text)


def test_an_index_of_format_1_keeps_its_windows() -> None:
    old = {name: value for name, value in VALUES["settings"].items() if name != "look"}
    header = read(json.dumps({**VALUES, "schema": 1, "settings": old}).encode())
    assert header == dataclasses.replace(
        HEADER, settings=dataclasses.replace(HEADER.settings, look=0.0), schema=1
    )


@pytest.mark.parametrize("missing", ["settings", "fingerprint", "dim"])
def test_a_header_without_a_part_is_damaged(missing: str) -> None:
    values = {name: value for name, value in VALUES.items() if name != missing}
    with pytest.raises(StoreError, match="is damaged"):
        read(json.dumps(values).encode())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("settings", []),
        ("settings", {"unheard-of": 1}),
        ("settings", {"frames": "many"}),
        ("settings", {"frames": 0}),
        ("fingerprint", 7),
        ("dim", "24"),
    ],
)
def test_a_header_with_a_wrong_part_is_damaged(name: str, wrong: object) -> None:
    with pytest.raises(StoreError, match="is damaged"):
        read(json.dumps(VALUES | {name: wrong}).encode())


def test_a_newer_format_is_refused_before_anything_else_is_looked_at() -> None:
    newer = {"schema": SCHEMA_VERSION + 1, "settings": "in a way we do not know"}
    with pytest.raises(StoreError, match=r"/place.*newer Sureshot.*pip install --upgrade sureshot"):
        read(json.dumps(newer).encode())
