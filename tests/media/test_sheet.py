"""The contact sheet: what it shows, what it refuses, and that nothing half-written stays behind."""

import os
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from sureshot.errors import SureshotError
from sureshot.media import contact_sheet as sheets
from sureshot.media.contact_sheet import SheetFrame, SheetRow, contact_sheet, save_sheet


def frame(score=0.5, time=0.0, width=64, height=64, level=120):
    return SheetFrame(np.full((height, width, 3), level, np.uint8), float(time), float(score))


def row(*frames, title="1 · clip.mp4 · 0:00-0:10", subtitle="42 % sure"):
    return SheetRow(title, subtitle, tuple(frames))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def where(image, colour):
    return (np.asarray(image) == ImageColor.getrgb(colour)).all(-1)


def bars(image):
    """Filled and whole length of every bar, line by line."""
    filled = where(image, sheets._BLUE) | where(image, sheets._BEST)
    drawn = filled | where(image, sheets._TRACK)
    # A bar is 8 pixels high, the ring around a frame 4: what stays of 6 rows is a bar or a badge.
    thick = np.lib.stride_tricks.sliding_window_view(drawn, 6, axis=0).all(-1)
    inside, lengths, last = slice(48 + 28, image.width - 48 - 28), [], -9
    for y in np.flatnonzero(thick[:, inside].sum(1) > 100):
        if y > last + 8:
            last, middle = y, ~where(image, sheets._CARD)[y + 3, inside]
            for solid, places in groupby(range(middle.size), key=middle.__getitem__):
                xs = list(places)
                if solid:
                    lengths.append((int(filled[y + 3, inside][xs].sum()), len(xs)))
    return lengths


def test_bars_share_one_scale_from_lowest_to_highest():
    image = contact_sheet("q", [row(frame(-1.0), frame(0.0, 1)), row(frame(1.0, 2), frame(0.5, 3))])
    drawn = bars(image)
    assert len(drawn) == 4
    shares = [filled / whole for filled, whole in drawn]
    assert shares == pytest.approx([0.05, 0.5, 1.0, 0.75], abs=0.02)  # the lowest is a dot


def test_scores_all_alike_fill_their_bars():
    assert bars(contact_sheet("q", [row(frame(0.3), frame(0.3, 1))])) == [(160, 160)] * 2


def test_scores_of_any_finite_size_have_bars():
    image = contact_sheet("q", [row(frame(-1.7e308), frame(1.7e308, 1), frame(0.0, 2))])
    assert [filled for filled, _ in bars(image)] == [8, 160, 80]


def test_the_best_frame_of_each_hit_has_a_ring_and_a_badge():
    plain = frame(0.1)
    ring = where(contact_sheet("q", [row(plain, frame(0.9, 1), plain)]), sheets._BEST)
    columns = np.flatnonzero(ring.sum(0) > 140)  # the sides of the ring
    assert columns.min() == 48 + 28 + 176 - 6 and columns.max() == 48 + 28 + 176 + 160 + 5
    badge = ring[:, 48 + 28 + 176 + 12 : 48 + 28 + 176 + 40]
    assert badge[sheets._THUMB :].sum() > 400


def test_the_same_frame_twice_has_one_badge():
    same = frame(0.9)
    once, twice = (
        where(contact_sheet("q", [row(same, frame(0.1, 1), *more)]), sheets._BEST).sum()
        for more in ([], [same])
    )
    assert once == pytest.approx(twice, rel=0.02)


@pytest.mark.parametrize(
    ("width", "height", "shown"),
    [
        (160, 90, (284, 160)),  # 16:9 fills its cell
        (90, 160, (90, 160)),  # portrait is whole, with bars left and right
        (100, 100, (160, 160)),
        (1000, 100, (284, 28)),
        (10, 1000, (2, 160)),
        (1, 1, (160, 160)),
    ],
)
def test_frames_keep_their_shape(width, height, shown):
    image = contact_sheet("q", [row(frame(0.5, 0, width, height, level=200))])
    picture = where(image, "#c8c8c8")
    rows, columns = np.flatnonzero(picture.any(1)), np.flatnonzero(picture.any(0))
    size = columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1
    assert size == pytest.approx(shown, abs=2)


def test_many_frames_wrap_at_a_readable_width():
    image = contact_sheet("q", [row(*(frame(n / 20, n, 160, 90) for n in range(12)))])
    assert image.width == 5 * 284 + 4 * 16 + 2 * 28 + 2 * 48
    assert len(bars(image)) == 12


def test_too_many_frames_are_thinned_out_and_the_best_stays():
    frames = [frame(0.1 + (n == 77), n) for n in range(500)]
    image = contact_sheet("q", [row(*frames)])
    assert len(bars(image)) == 32
    kept = sheets._thinned(tuple(frames), 32)
    assert kept[0] is frames[0] and kept[-1] is frames[-1] and frames[77] in kept
    assert [f.time for f in kept] == sorted({f.time for f in kept})
    assert sheets._thinned(tuple(frames), 1) == (frames[77],)


def test_many_hits_stay_in_bounds():
    most = contact_sheet("q", [row(frame())] * 80).height
    more = contact_sheet("q", [row(frame())] * 500).height
    assert most + 80 < more < 32_000  # one card tells of the rest; viewers stop at 32,767


def test_nothing_found_says_so():
    image = contact_sheet("a unicorn", [])
    assert image.mode == "RGB" and image.width < 1100
    card = np.asarray(image)[130:]
    assert (card < 100).any()  # words


def test_a_hit_without_frames_has_a_card():
    image = contact_sheet("q", [row(), row(frame())])
    assert len(bars(image)) == 1


def test_times_have_tenths_only_where_seconds_repeat():
    assert sheets._times([frame(time=t) for t in (0, 59.99, 3725.5)]) == [
        "0:00",
        "0:59",
        "1:02:05",
    ]
    times = [frame(time=t) for t in (0.0, 0.5, 1.9999999, 61.25)]
    assert sheets._times(times) == ["0:00.0", "0:00.5", "0:02.0", "1:01.2"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a" * 5000,
        "wort " * 900,
        "犬がフリスビーを捕る",
        "كلب",
        "कुत्ता",
        "🐶 dog",
        "a\nb\tc\0\x1b[1m",
        "\ud800",
    ],
)
def test_odd_text_does_not_crash_or_widen(text):
    image = contact_sheet(text, [row(frame(), title=text, subtitle=text)])
    assert image.width == 820 + 2 * 28 + 2 * 48


def test_input_is_not_changed():
    pixels = np.random.default_rng(0).integers(0, 256, (90, 160, 3), np.uint8)
    before = pixels.copy()
    pixels.flags.writeable = False
    contact_sheet("q", [row(SheetFrame(pixels, 1.0, 0.2), SheetFrame(pixels[:, ::-1], 2.0, 0.3))])
    assert (pixels == before).all()


@pytest.mark.parametrize(
    ("time", "score"), [(float("nan"), 0.1), (0.0, float("nan")), (0.0, float("inf"))]
)
def test_frames_that_cannot_be_drawn_are_refused(time, score):
    with pytest.raises(SureshotError, match="finite"):
        frame(score, time)


def test_frames_without_pixels_are_refused():
    with pytest.raises(SureshotError, match="pixels"):
        SheetFrame(np.zeros((0, 4, 3), np.uint8), 0.0, 0.0)


def test_save_writes_a_png_and_replaces_an_older_one(tmp_path):
    path = tmp_path / "sheet.PNG"
    path.write_bytes(b"old")
    image = contact_sheet("q", [row(frame())])
    assert save_sheet(image, path) == path
    with Image.open(path) as saved:
        assert saved.format == "PNG" and saved.size == image.size
    assert names(tmp_path) == ["sheet.PNG"]


def test_save_refuses_another_format(tmp_path):
    with pytest.raises(SureshotError, match=r"sheet\.jpg .*\.png"):
        save_sheet(Image.new("RGB", (4, 4)), tmp_path / "sheet.jpg")


def test_save_names_file_and_reason_where_it_cannot_write(tmp_path):
    with pytest.raises(SureshotError, match=r"no/sheet\.png could not be written \(No such file"):
        save_sheet(Image.new("RGB", (4, 4)), tmp_path / "no" / "sheet.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(SureshotError, match="choose another"):
        save_sheet(Image.new("RGB", (4, 4)), tmp_path / "folder.png")
    assert names(tmp_path) == ["folder.png"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_save_leaves_the_older_file_and_nothing_else_after_a_failure(tmp_path, monkeypatch, error):
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
    assert path.read_bytes() == b"old" and names(tmp_path) == ["sheet.png"]


def test_save_takes_names_that_are_not_utf8(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.png")
    try:
        save_sheet(Image.new("RGB", (4, 4)), path)
    except SureshotError:
        pytest.skip("this file system takes UTF-8 only")
    assert path.exists()
    with pytest.raises(SureshotError) as caught:
        save_sheet(Image.new("RGB", (4, 4)), Path(os.fsdecode(b"\xe9.gif")))
    str(caught.value).encode()
