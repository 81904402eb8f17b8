"""Rows of pictures: a query, and frames of the videos that were found for it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8

from sureshot.datasets.split import Item
from sureshot.errors import VideoError
from sureshot.media.sampling_rule import Sampling
from sureshot.research.features import sampled_frames
from sureshot.research.figures.canvas import (
    BLUE,
    INK,
    MUTED,
    NORMAL,
    PALE,
    SMALL,
    WIDTH,
    Style,
    new_figure,
    number,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIDE = 120  # pixels of the shorter side of a frame
_LINE = 0.135  # inches a line
_LEFT, _GAP, _TOP = 0.08, 0.1, 0.42  # inches: margins, between pictures, for the title
_SHAPE = 0.72  # height of a picture by its width
_BOLD = 1.15  # how much wider bold letters are


@dataclass(frozen=True)
class RankedVideo:
    """A video or a text that was found.

    Attributes:
        name: name of the video, or the text itself.
        rank: among all candidates, 1 the best; ties share their mean.
        right: whether it is what was sought.
        values: what is said of the pair, by name, the score first.
    """

    name: str
    rank: float
    right: bool
    values: Mapping[str, float]


@dataclass(frozen=True)
class Cell:
    """A picture and what stands below it.

    Attributes:
        item: the video.
        lines: words below the picture.
        right: drawn with a thick frame and a tick.
        frame: which of ``frames``, from 0.
        frames: number of frames sampled from the video; 1 is the middle.
        sampling: which frames those are.
        shade: how much of the bar below it is filled, in [0, 1]; None is no bar.
    """

    item: Item | None
    lines: Sequence[str] = ()
    right: bool = False
    frame: int = 0
    frames: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    shade: float | None = None


@dataclass(frozen=True)
class Strip:
    """A row of pictures.

    Attributes:
        heading: words above the strip, in bold.
        cells: the pictures.
        label: small, above the pictures.
        notes: lines beside the pictures, the first words of each in bold if it is right.
    """

    heading: str
    cells: Sequence[Cell]
    label: str = ""
    notes: Sequence[tuple[str, bool]] = field(default=())


def draw_strips(title: str, strips: Sequence[Strip], columns: int) -> "Figure":
    """All rows below each other; ``columns`` pictures would fill the width."""
    cell = (WIDTH - 2 * _LEFT - (columns - 1) * _GAP) / columns
    headings = [words(strip.heading, WIDTH - 0.2, _BOLD * (NORMAL + 1), 2) for strip in strips]
    heights = [
        _height(strip, heading, cell) for strip, heading in zip(strips, headings, strict=True)
    ]
    titles = words(title, WIDTH - 0.2, NORMAL, 4)
    height = _TOP + (len(titles) - 1) * _LINE + sum(heights)
    figure = new_figure(height, constrained=False)
    sheet = figure.add_axes((0, 0, 1, 1))
    sheet.set(xlim=(0, WIDTH), ylim=(height, 0))
    sheet.set_axis_off()
    style: Style = {"fontsize": NORMAL, "color": MUTED, "va": "top", "parse_math": False}
    sheet.text(_LEFT, 0.1, "\n".join(titles), **style)
    seen: dict[tuple[Item, int, Sampling], UInt8[np.ndarray, "frames rows columns 3"] | None] = {}
    top = _TOP + (len(titles) - 1) * _LINE
    for strip, heading, tall in zip(strips, headings, heights, strict=True):
        at = top
        if strip.heading:
            bold: Style = {"fontsize": NORMAL + 1, "color": INK, "va": "top", "parse_math": False}
            sheet.text(_LEFT, at, "\n".join(heading), fontweight="bold", **bold)
            at += len(heading) * _LINE * 1.15 + 0.04
        if strip.label:
            label = _label(strip)
            _line(sheet, _LEFT, at, "\n".join(label), colour=INK)
            at += len(label) * _LINE + 0.02
        for place, one in enumerate(strip.cells):
            left = _LEFT + place * (cell + _GAP)
            _draw_cell(sheet, one, left, at, cell, seen)
        beside = _LEFT + len(strip.cells) * (cell + _GAP) + 0.08
        for note, right in strip.notes:
            lines = words(note, WIDTH - beside - 0.1, _BOLD * SMALL)
            _line(sheet, beside, at, "\n".join(lines), colour=BLUE if right else INK, bold=right)
            at += len(lines) * _LINE + 0.05
        top += tall
    return figure


def _frames(
    item: Item, frames: int, sampling: Sampling
) -> UInt8[np.ndarray, "frames rows columns 3"] | None:
    try:
        return sampled_frames(item, frames, _SIDE, sampling)
    except (VideoError, OSError):
        return None


def _label(strip: Strip) -> list[str]:
    return words(strip.label, WIDTH - 2 * _LEFT, SMALL)


def _height(strip: Strip, heading: Sequence[str], cell: float) -> float:
    tall = len(heading) * _LINE * 1.15 + 0.04 if strip.heading else 0.0
    tall += len(_label(strip)) * _LINE + 0.02 if strip.label else 0.0
    lines = max((len(one.lines) for one in strip.cells), default=0)
    bars = 0.1 if any(one.shade is not None for one in strip.cells) else 0.0
    pictures = cell * _SHAPE + bars + lines * _LINE + 0.06
    beside = WIDTH - _LEFT - len(strip.cells) * (cell + _GAP) - 0.18
    notes = sum(len(words(note, beside, _BOLD * SMALL)) * _LINE + 0.05 for note, _ in strip.notes)
    return tall + max(pictures if strip.cells else 0.0, notes) + 0.12


def _draw_cell(
    sheet: "Axes",
    one: Cell,
    left: float,
    top: float,
    cell: float,
    seen: dict[tuple[Item, int, Sampling], UInt8[np.ndarray, "frames rows columns 3"] | None],
) -> None:
    from matplotlib.patches import Rectangle

    high = cell * _SHAPE
    picture = None
    if one.item is not None:
        key = (one.item, one.frames, one.sampling)
        if key not in seen:
            seen[key] = _frames(*key)
        shown = seen[key]
        picture = None if shown is None else shown[min(one.frame, len(shown) - 1)]
    if picture is None:
        sheet.add_patch(Rectangle((left, top), cell, high, color="0.92", linewidth=0))
        if one.item is not None:
            _line(sheet, left + 0.05, top + 0.05, "cannot be read", colour=MUTED)
    else:
        box = (left, left + cell, top + high, top)
        sheet.imshow(_cut(picture), extent=box, aspect="auto", interpolation="bilinear", zorder=1)
    rim: Style = {"edgecolor": PALE, "linewidth": 0.6}
    if one.right:
        rim = {"edgecolor": BLUE, "linewidth": 2.6}
    sheet.add_patch(Rectangle((left, top), cell, high, facecolor="none", zorder=2, **rim))
    if one.right:
        badge: Style = {"boxstyle": "round,pad=0.2", "facecolor": BLUE, "edgecolor": "white"}
        style: Style = {"color": "white", "fontsize": SMALL, "ha": "right", "va": "top"}
        sheet.text(left + cell - 0.07, top + 0.07, "✓ right", bbox=badge, zorder=3, **style)
    at = top + high + 0.04
    if one.shade is not None:
        sheet.add_patch(Rectangle((left, at), cell, 0.07, facecolor="0.9", linewidth=0))
        filled = cell * min(max(one.shade, 0.0), 1.0)
        sheet.add_patch(Rectangle((left, at), filled, 0.07, facecolor=INK, linewidth=0))
        at += 0.1
    for line in one.lines:
        _line(sheet, left, at, words(line, cell, SMALL, 1)[0], colour=BLUE if one.right else INK)
        at += _LINE


def _line(
    sheet: "Axes", left: float, top: float, text: str, *, colour: str, bold: bool = False
) -> None:
    weight = "bold" if bold else "normal"
    sheet.text(
        left, top, text, fontsize=SMALL, color=colour, fontweight=weight, va="top", parse_math=False
    )


def _cut(
    picture: UInt8[np.ndarray, "rows columns 3"],
) -> UInt8[np.ndarray, "some_rows some_columns 3"]:
    """The middle of a picture, in the shape of a cell."""
    rows, columns = picture.shape[:2]
    wide = min(columns, round(rows / _SHAPE))
    high = min(rows, round(wide * _SHAPE))
    top, left = (rows - high) // 2, (columns - wide) // 2
    return picture[top : top + high, left : left + wide]


def ranked(
    names: Sequence[str],
    chosen: Sequence[int],
    sought: Collection[int],
    scores: Float[np.ndarray, " candidates"],
    others: Mapping[str, Float[np.ndarray, " candidates"]] | None = None,
) -> tuple[RankedVideo, ...]:
    """Some candidates of a query, with their ranks among all.

    Args:
        names: names of all candidates.
        chosen: candidates to tell of.
        sought: candidates that are right.
        scores: scores of all candidates.
        others: what else is said of them, by name.
    """
    values = {"score": scores, **(others or {})}
    return tuple(
        RankedVideo(
            name=names[one],
            rank=rank_of(scores, one),
            right=one in sought,
            values={name: float(row[one]) for name, row in values.items()},
        )
        for one in chosen
    )


def hit_cells(
    hits: Sequence[RankedVideo],
    items: Mapping[str, Item],
    lines: Callable[[RankedVideo], Sequence[str]],
) -> list[Cell]:
    """A picture of each video that was found.

    Args:
        hits: the videos.
        items: all videos by name.
        lines: what is written below a picture.
    """
    return [Cell(item=items[hit.name], lines=lines(hit), right=hit.right) for hit in hits]


def rank_of(scores: Float[np.ndarray, " candidates"], candidate: int) -> float:
    """Rank of a candidate, 1 the best; ties share their mean.

    Examples:
        >>> rank_of(np.array([0.5, 0.9, 0.5]), 0)
        2.5
    """
    own = scores[candidate]
    return float(1 + (scores > own).sum() + ((scores == own).sum() - 1) / 2)


def best(scores: Float[np.ndarray, " candidates"], count: int) -> list[int]:
    """The best candidates, the best first; of equal ones the earlier.

    Examples:
        >>> best(np.array([0.5, 0.9, 0.5]), 2)
        [1, 0]
    """
    return [int(at) for at in np.argsort(-scores, kind="stable")[:count]]


def told(hit: RankedVideo) -> list[str]:
    """What stands below a picture: rank and name, then each value."""
    rank = f"{hit.rank:g}"
    return [f"{rank}. {hit.name}", *(f"{n} {number(v)}" for n, v in hit.values.items())]
