"""Pages, files and the words on them."""

import numpy as np
import pytest
from PIL import Image

from sureshot.errors import SureshotError
from sureshot.research.canvas import (
    SERIES,
    ink_on,
    label_axes,
    new_figure,
    number,
    save_figure,
    words,
)


def drawn():
    figure = new_figure(2.0, width=3.0)
    axes = figure.add_subplot()
    axes.plot([0, 1], [1, 0])
    label_axes(axes, "x, m", "y, s")
    return figure


def test_a_figure_is_written_at_its_size_and_the_same_again(tmp_path):
    for name in ("a.png", "b.png", "deep/a.svg", "b.svg"):
        save_figure(drawn(), tmp_path / name)
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (450, 300)
        assert np.asarray(picture.convert("L")).std() > 5
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "deep/a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    names = {path.name for path in tmp_path.rglob("*")}
    assert names == {"a.png", "b.png", "deep", "a.svg", "b.svg"}


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.pdf", r"let its name end in \.png"), ("file/a.png", r"The figure .* cannot be written")],
)
def test_another_kind_of_file_or_a_place_that_cannot_be_written_is_named(tmp_path, name, message):
    (tmp_path / "file").touch()
    with pytest.raises(SureshotError, match=message):
        save_figure(drawn(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_word_is_lost_in_lines_that_suffice():
    text = "a man in a red shirt is talking about the new car " * 2
    lines = words(text, 2.0, lines=9)
    assert " ".join(lines).split() == text.split()
    assert len(lines) > 1 and max(map(len, lines)) <= 2.0 / (8 * 0.0078)
    short = words(text, 2.0, lines=1)
    assert len(short) == 1 and short[0].endswith("…")
    assert words("a\x1b[31mb\nc", 5.0) == ["a[31mb c"] and words("", 1.0) == [""]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0.000"), (0.5, "0.500"), (-0.5, "−0.500"), (99.96, "100.0"), (0.000123, "0.00012"),
     (1e-12, "1e−12"), (12345.6, "12346")],
)  # fmt: skip
def test_a_number_is_short(value, expected):
    assert number(value) == expected


def test_letters_can_be_read_on_every_colour():
    def light(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for colour in SERIES:
        letters = 0.0 if ink_on(colour) == "black" else 1.0
        low, high = sorted([light(colour), letters])
        assert (high + 0.05) / (low + 0.05) >= 3.0, colour
