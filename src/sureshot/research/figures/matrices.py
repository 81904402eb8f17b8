"""Matrices of some pairs: similarity, belief, distance or uncertainty, and who finds whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from sureshot.research.figures.canvas import (
    INK,
    NORMAL,
    SMALL,
    WIDTH,
    Style,
    entitle,
    label_axes,
    new_panels,
    words,
)
from sureshot.research.figures.quantities import quantity
from sureshot.research.figures.subject import SMALL_IS_NEAR, Subject, nearest, tell_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 105  # of a panel's side
_ABREAST = 3  # panels side by side
_ACROSS, _DOWN = 8, 12  # ticks of an axis, at most
_NOTE = (
    "light is near; ring: best video of the text; square: best text of the video; the pairs are on "
    "the diagonal"
)


@dataclass(frozen=True, eq=False)
class Matrices:
    """Square matrices of pairs; text i describes video i.

    Attributes:
        title: model and split.
        captions: text of each row.
        videos: name of each column.
        matrices: one matrix a name, the score first.
        texts: measures of the rows, by name.
        model: the model alone, in words.
        beside: the same pairs as another model has them.
    """

    title: str
    captions: tuple[str, ...]
    videos: tuple[str, ...]
    matrices: Mapping[str, Float[np.ndarray, "pairs pairs"]]
    texts: Mapping[str, Float[np.ndarray, " pairs"]]
    model: str = ""
    beside: "Matrices | None" = None

    def found(self, name: str) -> tuple[int, int]:
        """How many texts find their video by this matrix among these pairs, and videos their text.

        A tie is not found.
        """
        near = nearest(self.matrices[name], name)
        own = np.diag(near)
        best = [(near >= own[:, None]).sum(1) == 1, (near >= own).sum(0) == 1]
        return int(best[0].sum()), int(best[1].sum())

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        pairs = {"captions": list(self.captions), "videos": list(self.videos)}
        if self.beside is None:
            return pairs | self._values()
        second = {"model": self.beside.model} | self.beside._values()
        return pairs | self._values() | {"beside": second}

    def _values(self) -> dict[str, Any]:
        return {
            "matrices": {
                name: {
                    "values": matrix.tolist(),
                    "texts_found": self.found(name)[0],
                    "videos_found": self.found(name)[1],
                }
                for name, matrix in self.matrices.items()
            },
            "texts": {name: values.tolist() for name, values in self.texts.items()},
        }

    def draw(self) -> "Figure":
        """Light is near in every panel; a ring marks the best of a row, a square of a column.

        Two models stand side by side, a row for each matrix that both have, in the same colours.
        """
        if self.beside is not None:
            return self._draw_both(self.beside)
        count = len(self.matrices) + len(self.texts)
        abreast = 2 if count == 4 else min(count, _ABREAST)
        width = max(WIDTH * abreast / _ABREAST, 5.0)
        figure, panels = new_panels(
            count, width / abreast + 0.3, abreast=abreast, width=width, alike=False
        )
        for axes, (name, matrix) in zip(panels, self.matrices.items(), strict=False):
            self._panel(axes, name, quantity(name), (float(matrix.min()), float(matrix.max())))
        for axes, (name, values) in zip(
            panels[len(self.matrices) :], self.texts.items(), strict=True
        ):
            _draw_measure(axes, name, values)
        entitle(figure, self.title, _NOTE)
        return figure

    def _draw_both(self, other: "Matrices") -> "Figure":
        shared = [name for name in self.matrices if name in other.matrices]
        figure, panels = new_panels(2 * len(shared), 3.5, alike=False)
        for place, name in enumerate(shared):
            both = np.stack([self.matrices[name], other.matrices[name]])
            for axes, one in zip(panels[2 * place :], (self, other), strict=False):
                heading = f"{one.model}: {quantity(name)}"
                one._panel(axes, name, heading, (float(both.min()), float(both.max())), 3.0)
        title = f"{self.title}, beside {other.model}"
        entitle(figure, title, f"{_NOTE}; both models in the same colours")
        return figure

    def _panel(
        self, axes: "Axes", name: str, heading: str, ends: tuple[float, float], width: float = 2.0
    ) -> None:
        """A matrix, its colours from the lowest to the highest of two values.

        Args:
            axes: where.
            name: key of the matrix.
            heading: stands above it, in as many lines as it needs.
            ends: the two values.
            width: inches that the heading may take.
        """
        matrix, near = self.matrices[name], nearest(self.matrices[name], name)
        colours = "cividis_r" if name in SMALL_IS_NEAR else "cividis"
        low, high = ends
        image = axes.imshow(matrix, cmap=colours, interpolation="nearest", vmin=low, vmax=high)
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.04)
        bar.ax.tick_params(labelsize=SMALL - 1)
        bar.ax.locator_params(nbins=6)
        bar.outline.set_visible(False)
        count = len(matrix)
        marks = [(row, column, "o", 0.45) for row, column in enumerate(near.argmax(1))]
        marks += [(row, column, "s", 0.75) for column, row in enumerate(near.argmax(0))]
        middle = float(nearest(np.array([[(low + high) / 2]]), name)[0, 0])
        for row, column, marker, size in marks:
            light = near[row, column] > middle
            rim: Style = {"facecolors": "none", "edgecolors": "black" if light else "white"}
            area = (size * _POINTS / count) ** 2
            thin = min(1.0, 16 / count)  # else the rings of many pairs are filled
            axes.scatter(column, row, s=area, marker=marker, linewidths=thin, **rim)
        texts, videos = self.found(name)
        lines = [*words(heading, width), f"found: {texts} texts, {videos} videos"]
        axes.set_title("\n".join(lines), fontsize=NORMAL, parse_math=False)
        _number_pairs(axes.xaxis, count, _ACROSS)
        _number_pairs(axes.yaxis, count, _DOWN)
        axes.set_xlabel("video", fontsize=SMALL)
        axes.set_ylabel("text", fontsize=SMALL)


def _draw_measure(axes: "Axes", name: str, values: Float[np.ndarray, " pairs"]) -> None:
    """What the system says of each text, in the rows of the matrices."""
    style: Style = {"ms": 4, "mfc": "white", "color": INK, "linestyle": "none"}
    axes.plot(values, range(len(values)), "o", **style)
    label_axes(axes, "\n".join(words(quantity(name), 2.0)), "text")
    axes.locator_params(axis="x", nbins=3)
    _number_pairs(axes.yaxis, len(values), _DOWN)
    axes.set_box_aspect(1)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.margins(x=0.08)
    axes.set_title("of each text", fontsize=NORMAL)


def matrices(subject: Subject, count: int, beside: Subject | None = None) -> Matrices:
    """The matrices of pairs drawn by the seed, each of another video.

    Beliefs and vacuities are those among all videos of the split; only pairs are shown.

    Args:
        subject: the model and the split.
        count: pairs to show.
        beside: another model with the same split, of which the same pairs are shown.
    """
    queries = subject.pairs(count)
    if beside is None:
        return _of_queries(subject, queries, subject.model)
    names = tell_apart(subject, beside)
    second = _of_queries(beside, queries, names[1])
    return _of_queries(subject, queries, names[0], second)


def _of_queries(
    subject: Subject, queries: list[int], model: str, beside: Matrices | None = None
) -> Matrices:
    columns = subject.owner[queries]
    return Matrices(
        title=subject.title if beside is None else f"{model}, {subject.features.split.title()}",
        captions=tuple(subject.text(query) for query in queries),
        videos=tuple(subject.items[column].id for column in columns),
        matrices={n: matrix[:, columns] for n, matrix in subject.matrices(queries).items()},
        texts={
            name: values[queries]
            for name, values in subject.measures.items()
            if name.startswith("text")
        },
        model=model,
        beside=beside,
    )


def _number_pairs(axis: Any, count: int, most: int) -> None:
    """Numbers of the pairs from 1, so many of them that they can be read."""
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    step = next(step for step in steps if count <= most * step)
    places = range(0, count, step)
    axis.set_ticks(places, [str(place + 1) for place in places], fontsize=SMALL - 1)
