"""The header tells whose an index is, and says plainly when it cannot be used."""

import json

import pytest

from sureshot.config import IndexSettings
from sureshot.errors import StoreError
from sureshot.header import SCHEMA_VERSION, Header, ours

HEADER = Header(IndexSettings(model="tiny", frames=5, window=7.5), "abc", 24, 3)
VALUES = json.loads(HEADER.to_metadata()[b"sureshot"])


def read(text: bytes) -> Header:
    return Header.from_metadata({b"sureshot": text}, "/place")


def test_a_header_survives() -> None:
    assert Header.from_metadata(HEADER.to_metadata(), "/place") == HEADER


@pytest.mark.parametrize("metadata", [None, {}, {b"other": b"{}"}])
def test_what_somebody_else_wrote_is_not_taken_for_ours(metadata: dict | None) -> None:
    assert not ours(metadata)
    with pytest.raises(StoreError, match=r"/place is not an index of Sureshot.*--db"):
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


@pytest.mark.parametrize("missing", ["settings", "fingerprint", "dim", "channels"])
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
        ("channels", None),
    ],
)
def test_a_header_with_a_wrong_part_is_damaged(name: str, wrong: object) -> None:
    with pytest.raises(StoreError, match="is damaged"):
        read(json.dumps(VALUES | {name: wrong}).encode())


def test_a_newer_format_is_refused_before_anything_else_is_looked_at() -> None:
    newer = {"schema": SCHEMA_VERSION + 1, "settings": "in a way we do not know"}
    with pytest.raises(StoreError, match=r"/place.*newer Sureshot.*pip install --upgrade sureshot"):
        read(json.dumps(newer).encode())
