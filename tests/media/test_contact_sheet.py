"""The contact sheet: what it shows, what it refuses, and that no half-written file is left."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from sureshot.errors import SureshotError
from sureshot.media.contact_sheet import (
    SheetFrame,
    SheetRow,
    contact_sheet,
    drawable,
    fitted,
    load_font,
    save_sheet,
)

BEST = "#b84a00"
WIDTH = 6 * 240 + 5 * 16 + 2 * 40


def frame(score=0.5, time=0.0, width=64, height=64, level=120):
    return SheetFrame(np.full((height, width, 3), level, np.uint8), float(time), float(score))


def row(*frames, title="1 · clip.mp4 · 0:00-0:10", subtitle="42 % sure"):
    return SheetRow(title, subtitle, tuple(frames))


def where(image, colour):
    return (np.asarray(image) == ImageColor.getrgb(colour)).all(-1)


def frames_in(image):
    """How many letterboxed frames a sheet has, each with a block of this grey."""
    grey = where(image, "#787878")
    corners = grey & ~np.roll(grey, 1, 0) & ~np.roll(grey, 1, 1)
    return int(corners.sum())


def test_only_the_best_frame_of_each_hit_has_a_border():
    same = frame(0.9)
    image = contact_sheet("q", [row(frame(0.1), same, frame(0.2), frame(0.9))])
    sides = np.flatnonzero(where(image, BEST).sum(0) > 150)
    left = 40 + 240 + 16
    assert sides.min() == left - 5 and sides.max() == left + 240 + 4
    many = contact_sheet("q", [row(same), row(same)])
    assert where(many, BEST).sum() > 1.9 * where(contact_sheet("q", [row(same)]), BEST).sum()


@pytest.mark.parametrize(
    ("width", "height", "shown"),
    [
        (160, 90, (240, 135)),  # whole, with bars above and below
        (90, 160, (84, 150)),  # left and right
        (1000, 100, (240, 24)),
        (10, 1000, (2, 150)),
        (1000, 1, (240, 1)),
        (1, 1, (150, 150)),
    ],
)
def test_frames_keep_their_shape(width, height, shown):
    picture = where(contact_sheet("q", [row(frame(0.5, 0, width, height, level=200))]), "#c8c8c8")
    rows, columns = np.flatnonzero(picture.any(1)), np.flatnonzero(picture.any(0))
    size = columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1
    assert size == pytest.approx(shown, abs=2)


@pytest.mark.parametrize("count", [1, 6, 7, 12])
def test_every_frame_of_a_hit_is_shown(count):
    image = contact_sheet("q", [row(*(frame(n / count, n) for n in range(count)))] * 2)
    assert frames_in(image) == 2 * count and image.width == WIDTH


def test_many_hits_stay_in_bounds_and_the_rest_is_counted():
    most, more = (contact_sheet("q", [row(*[frame()] * 12)] * n).height for n in (60, 500))
    assert most + 60 < more < 32_000  # viewers stop at 32,767


def test_nothing_found_and_a_hit_without_frames_are_words():
    for rows in ([], [row()]):
        image = contact_sheet("", rows)
        assert image.mode == "RGB" and (np.asarray(image)[100:] < 100).any()


def test_times_have_tenths_only_where_seconds_repeat():
    def sheet(*times):
        return np.asarray(contact_sheet("q", [row(*(frame(time=t) for t in times))]))

    assert (sheet(0.0, 59.99) == sheet(0.2, 59.0)).all()
    assert (sheet(0.0, 0.5) != sheet(0.0, 0.6)).any()


@pytest.mark.parametrize(
    "text",
    ["", "a" * 5000, "wort " * 900, "犬がフリスビーを捕る", "كلب", "🐶", "a\nb\0\x1b[1m", "\ud800"],
)
def test_odd_text_does_not_crash_or_widen(text):
    image = contact_sheet(text, [row(frame(), title=text, subtitle=text)])
    assert image.width == WIDTH


def test_letters_that_pillows_own_face_lacks_come_from_another_if_there_is_one():
    assert (np.asarray(contact_sheet("дом", [])) != np.asarray(contact_sheet("犬", []))).any()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\n\tc", "a b c"),
        ("12:05–12:35", "12:05-12:35"),
        ("x\x00\x1b\u202ey", "xy"),
        ("\ud800", "?"),
        ("क्\u200dष", "क्\u200dष"),
    ],
)
def test_what_cannot_be_drawn_is_left_out(text, expected):
    assert drawable(text) == expected


def test_a_text_without_end_is_cut():
    assert len(drawable("x" * 3_000_000)) == 2001


def test_a_text_is_shortened_in_the_middle_and_no_more_than_needed():
    font = load_font("", 20)
    name = "a-very-long-name-of-a-holiday-video-from-last-summer.mp4"
    assert fitted(name, font, 10_000.0) == name
    start, end = fitted(name, font, 250.0).split("…")
    assert name.startswith(start) and name.endswith(end) and end.endswith(".mp4")
    assert 225 < font.getlength(f"{start}…{end}") <= 250
    assert all(len(fitted("word", font, width)) <= 1 for width in (-5.0, 0.0, 1.0))


def test_a_sheet_is_saved_as_png_and_replaces_an_older_one(tmp_path):
    path = tmp_path / "sheet.PNG"
    path.write_bytes(b"old")
    image = contact_sheet("q", [row(frame())])
    assert save_sheet(image, path) == path
    with Image.open(path) as saved:
        assert saved.format == "PNG" and saved.size == image.size
    with pytest.raises(SureshotError, match=r"ending in \.png, not .*sheet\.jpg"):
        save_sheet(image, tmp_path / "sheet.jpg")
    with pytest.raises(SureshotError, match=r"no/sheet\.png could not be written \("):
        save_sheet(image, path / "no" / "sheet.png")
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.PNG"]
    assert save_sheet(image, tmp_path / "new" / "folder" / "sheet.png").exists()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_older_file_and_nothing_else(tmp_path, monkeypatch, error):
    path = tmp_path / "sheet.png"
    path.write_bytes(b"old")

    def fail(_image, file, **_options):
        file.write(b"half")
        raise error

    monkeypatch.setattr(Image.Image, "save", fail)
    with pytest.raises((SureshotError, KeyboardInterrupt)) as caught:
        save_sheet(Image.new("RGB", (4, 4)), path)
    if isinstance(error, OSError):
        assert "No space left on device" in str(caught.value) and str(path) in str(caught.value)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_names_that_are_not_utf8_are_taken(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.png")
    try:
        save_sheet(Image.new("RGB", (4, 4)), path)
    except SureshotError:
        pytest.skip("this file system takes UTF-8 only")
    with pytest.raises(SureshotError) as caught:
        save_sheet(Image.new("RGB", (4, 4)), Path(os.fsdecode(b"\xe9.gif")))
    str(caught.value).encode()


def test_no_word_of_a_sentence_is_cut():
    font = load_font("", 20)
    text = "Checking the first 11 gives a 90% chance of finding it, if it's there."
    for width in range(150, 500, 37):
        start, end = fitted(text, font, float(width)).split("…")
        assert {*start.split(), *end.split()} <= set(text.split())


def test_a_line_below_the_heading_makes_room_for_itself():
    plain, noted = (
        contact_sheet("red", [row(frame())]),
        contact_sheet("red", [row(frame())], "Not sure"),
    )
    assert noted.height > plain.height
