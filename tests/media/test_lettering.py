"""Lettering: text that fits and never fails."""

import pytest

from sureshot.media import contact_sheet
from sureshot.media.contact_sheet import drawable, face_for, fitted, load_font, wrapped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\n\tc", "a b c"),
        ("12:05–12:35", "12:05-12:35"),
        ("x\x00\x1b\u202ey", "xy"),
        ("\ud800", "?"),
        ("क्\u200dष", "क्\u200dष"),
        ("", ""),
    ],
)
def test_clean(text, expected):
    assert drawable(text) == expected


def test_clean_bounds_the_length():
    assert len(drawable("x" * 3_000_000)) == 2001


def test_fitted_shortens_in_the_middle_and_no_more_than_needed():
    font = load_font("", 20)
    name = "a-very-long-name-of-a-holiday-video-from-last-summer.mp4"
    assert fitted(name, font, 10_000.0) == name
    short = fitted(name, font, 250.0)
    start, end = short.split("…")
    assert name.startswith(start) and name.endswith(end) and end.endswith(".mp4")
    assert 225 < font.getlength(short) <= 250


@pytest.mark.parametrize("width", [-5.0, 0.0, 1.0])
def test_fitted_takes_a_width_without_room(width):
    assert len(fitted("word", load_font("", 20), width)) <= 1


def test_wrapped_fills_at_most_two_lines():
    font = load_font("", 20)
    assert wrapped("a dog", font, 500.0) == ["a dog"]
    assert wrapped("a dog catches a frisbee", font, 140.0) == ["a dog catches", "a frisbee"]
    long = wrapped("a dog catches a frisbee on the beach in the evening", font, 120.0)
    assert len(long) == 2 and "…" in long[1]
    assert len(wrapped("x" * 100, font, 120.0)) == 1
    assert wrapped("", font, 120.0) == []


def test_face_is_pillows_own_where_it_has_the_letters():
    assert face_for("a dog, 12:05-12:35 · “best”…") == ""


def test_face_with_the_letters_is_preferred(monkeypatch):
    faces = {"": {"é"}, "more": {"é", "д"}, "all": {"é", "д", "犬"}, "absent": None}
    monkeypatch.setattr(contact_sheet, "_FACES", tuple(faces))

    def lacking(face, letters):
        return float("inf") if faces[face] is None else len(letters - faces[face])

    monkeypatch.setattr(contact_sheet, "_lacking", lacking)
    assert [face_for(text) for text in ("café", "дом", "犬 дом", "木")] == ["", "more", "all", ""]


def test_pillows_own_face_lacks_what_it_draws_as_a_box():
    assert contact_sheet._lacking("", {"犬", "д", "·"}) == 2
    assert contact_sheet._lacking("no such typeface.ttf", {"a"}) == float("inf")
