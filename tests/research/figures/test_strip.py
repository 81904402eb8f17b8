"""Rows of pictures: the frames asked for, frames around what is right, words in their places."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sureshot.datasets import load_split
from sureshot.datasets.split import Item
from sureshot.research.figures.canvas import BLUE
from sureshot.research.figures.strips import (
    Cell,
    Strip,
    best,
    draw_strips,
    hit_cells,
    rank_of,
    ranked,
    told,
)
from sureshot.settings import to_values
from tests.research.figures.pictures import pixels, share, shown


@pytest.fixture(scope="module")
def walls_of(place):
    """Videos of one colour and then another: red green, green blue, blue white, …"""
    return load_split("pairs", "train", place / "pairs.csv").items


def first(figure):
    """Colour in the middle of the first picture of a page of four a row, without headings."""
    box = figure.axes[0].images[0].get_extent()
    high = figure.get_figheight()
    picture = pixels(figure)
    x, y = (box[0] + box[1]) / 2 * 100, (box[2] + box[3]) / 2 * 100
    assert 0 < y < high * 100
    return picture[round(y), round(x)]


@pytest.mark.parametrize(("frame", "colour"), [(0, (255, 0, 0)), (2, (0, 255, 0))])
def test_the_frame_asked_for_is_drawn(walls_of, frame, colour):
    cell = Cell(walls_of[0], frame=frame, frames=3)
    assert np.abs(first(draw_strips("", [Strip("", [cell])], 4)) - colour).max() < 40


def test_a_picture_stands_upright_and_loses_its_edges_alone(tmp_path):
    photo = np.zeros((90, 300, 3), np.uint8)
    photo[:45], photo[45:] = (255, 0, 0), (0, 0, 255)
    photo[:, :60] = 255  # cut off, since the place is not as wide
    Image.fromarray(photo).save(tmp_path / "a.png")
    figure = draw_strips("", [Strip("", [Cell(Item("a", tmp_path / "a.png"))])], 2)
    (image,) = figure.axes[0].images
    left, right, bottom, top = (round(100 * edge) for edge in image.get_extent())
    seen = pixels(figure)[top + 3 : bottom - 3, left + 3 : right - 3]
    high = len(seen)
    assert seen[: high // 3, :, 0].min() > 240 > 15 > seen[: high // 3, :, 2].max()
    assert seen[-high // 3 :, :, 2].min() > 240 > 15 > seen[-high // 3 :, :, 0].max()


def test_only_what_is_right_has_a_thick_blue_frame_and_a_tick(walls_of):
    def drawn(right):
        cells = [
            Cell(item, ["below"], right=right and n == 1) for n, item in enumerate(walls_of[:3])
        ]
        return draw_strips("title", [Strip("a wall", cells)], 4)

    plain, marked = drawn(False), drawn(True)
    assert share(pixels(marked), BLUE) > share(pixels(plain), BLUE) + 0.003
    assert "✓" in shown(marked) and "✓" not in shown(plain)
    assert shown(plain).count("below") == 3


def test_a_bar_is_filled_as_far_as_it_should_be(walls_of):
    def dark(shade):
        figure = draw_strips("", [Strip("", [Cell(walls_of[0], shade=shade)])], 2)
        return share(pixels(figure), "#1a1a1a", 4)

    empty, half, full, more = (dark(shade) for shade in (0.0, 0.5, 1.0, 7.0))
    assert empty < 0.001 and more == full > 0.005
    assert half == pytest.approx(full / 2, rel=0.1)


def test_a_video_that_is_gone_leaves_a_place(walls_of, tmp_path):
    gone = Item("x", tmp_path / "gone.mp4")
    broken = Item("y", tmp_path / "broken.mp4")
    broken.path.write_text("no video")
    figure = draw_strips("", [Strip("", [Cell(gone), Cell(broken), Cell(walls_of[0])])], 3)
    assert shown(figure).count("cannot be read") == 2
    assert len(figure.axes[0].images) == 1


def test_nothing_is_drawn_over_another_row_or_beyond_the_page(walls_of):
    text = "a very long sentence that goes on and on about a wall and its colours " * 3
    cells = [Cell(item, ["one", "two", text]) for item in walls_of[:4]]
    notes = [(f"{n}. {text}", n == 1) for n in range(4)]
    strips = [Strip(text, cells, "label"), Strip("", cells[:1], "", notes), Strip("last", cells)]
    figure = draw_strips(text, strips, 4)
    figure.canvas.draw()
    (axes,) = figure.axes
    boxes = [one.get_window_extent() for one in axes.texts]
    height, width = figure.bbox.height, figure.bbox.width
    outside = [
        (one.get_text(), box)
        for one, box in zip(axes.texts, boxes, strict=True)
        if min(box.x0, box.y0) < 0 or box.y1 > height or box.x1 > width
    ]
    assert outside == []
    pictures = [one.get_window_extent() for one in axes.images]
    assert len(pictures) == 9
    overlapping = [
        (a, b)
        for a in range(9)
        for b in range(a)
        if pictures[a].overlaps(pictures[b]) or pictures[b].overlaps(pictures[a])
    ]
    assert overlapping == []
    covered = [one.get_text() for one, box in zip(axes.texts, boxes, strict=True)
               if one.get_text().strip() and any(box.overlaps(p) for p in pictures)]  # fmt: skip
    assert covered == []
    for a, one in enumerate(boxes):
        for other in boxes[:a]:
            over = min(one.y1, other.y1) - max(one.y0, other.y0)
            aside = min(one.x1, other.x1) - max(one.x0, other.x0)
            assert over < 3 or aside < 1


def test_letters_that_mathematics_would_eat_are_kept(walls_of):
    text = "it costs $5 or $6_a^b"
    strip = Strip(text, [Cell(walls_of[0], ["$1$"])], "$x", [("$y and $z", True)])
    figure = draw_strips(text, [strip], 4)
    pixels(figure)
    assert shown(figure).count(text) == 2


def test_ranks_share_ties_and_the_best_come_first():
    scores = np.array([0.1, 0.9, 0.5, 0.5, 0.9])
    assert [rank_of(scores, at) for at in range(5)] == [5, 1.5, 3.5, 3.5, 1.5]
    assert best(scores, 3) == [1, 4, 2] and len(best(scores, 9)) == 5


def test_a_hit_in_words_in_a_picture_and_as_plain_values():
    scores, etas = np.array([0.5, 0.25, 0.25]), np.array([0.0, 0.5, 1.0])
    (hit,) = ranked(["a", "video7", "b"], [1], [0, 1], scores, {"eta": etas})
    assert told(hit) == ["2.5. video7", "score 0.250", "eta 0.500"]
    assert to_values(hit) == {
        "name": "video7",
        "rank": 2.5,
        "right": True,
        "values": {"score": 0.25, "eta": 0.5},
    }
    item = Item("video7", Path("x"))
    assert hit_cells([hit], {"video7": item}, told) == [Cell(item, told(hit), right=True)]
    assert told(replace(hit, rank=1.0))[0] == "1. video7"
    assert Cell(Item("x", Path("x"))).frames == 1
