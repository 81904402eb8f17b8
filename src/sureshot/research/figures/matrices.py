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
    add_legend,
    entitle,
    label_axes,
    new_panels,
)
from sureshot.research.figures.subject import SMALL_IS_NEAR, Subject, nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 105  # of a panel's side
_ABREAST = 3  # panels side by side


@dataclass(frozen=True, eq=False)
class Matrices:
    """Square matrices of pairs; text i describes video i.

    Attributes:
        title: model and split.
        captions: text of each row.
        videos: name of each column.
        matrices: one matrix a name, the score first.
        texts: measures of the rows, by name.
    """

    title: str
    captions: tuple[str, ...]
    videos: tuple[str, ...]
    matrices: Mapping[str, Float[np.ndarray, "pairs pairs"]]
    texts: Mapping[str, Float[np.ndarray, " pairs"]]

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
        return {
            "captions": list(self.captions),
            "videos": list(self.videos),
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
        """Light is near in every panel; a ring marks the best of a row, a square of a column."""
        count = len(self.matrices) + bool(self.texts)
        abreast = 2 if count == 4 else min(count, _ABREAST)
        width = max(WIDTH * abreast / _ABREAST, 5.0)
        figure, panels = new_panels(
            count, width / abreast + 0.15, abreast=abreast, width=width, alike=False
        )
        for axes, name in zip(panels, self.matrices, strict=False):
            self._panel(axes, name)
        if self.texts:
            self._measures(panels[-1])
        note = (
            "light is near; ring: best video of the text; square: best text of the video; "
            "the pairs are on the diagonal"
        )
        entitle(figure, self.title, note)
        return figure

    def _panel(self, axes: "Axes", name: str) -> None:
        matrix, near = self.matrices[name], nearest(self.matrices[name], name)
        colours = "cividis_r" if name in SMALL_IS_NEAR else "cividis"
        image = axes.imshow(matrix, cmap=colours, interpolation="nearest")
        figure = axes.figure
        bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.04)
        bar.ax.tick_params(labelsize=SMALL - 1)
        bar.outline.set_visible(False)
        count = len(matrix)
        marks = [(row, column, "o", 0.45) for row, column in enumerate(near.argmax(1))]
        marks += [(row, column, "s", 0.75) for column, row in enumerate(near.argmax(0))]
        for row, column, marker, size in marks:
            light = near[row, column] > (near.min() + near.max()) / 2
            rim: Style = {"facecolors": "none", "edgecolors": "black" if light else "white"}
            area = (size * _POINTS / count) ** 2
            axes.scatter(column, row, s=area, marker=marker, linewidths=1.0, **rim)
        texts, videos = self.found(name)
        axes.set_title(f"{name}\nfound: {texts} texts, {videos} videos", fontsize=NORMAL)
        for axis in (axes.xaxis, axes.yaxis):
            _ticks(axis, count)
        axes.set_xlabel("video", fontsize=SMALL)
        axes.set_ylabel("text", fontsize=SMALL)

    def _measures(self, axes: "Axes") -> None:
        """What the system says of each text, beside the matrices."""
        count = len(self.captions)
        for (name, values), marker in zip(self.texts.items(), "os^Dv<>", strict=False):
            style: Style = {"ms": 4, "mfc": "white", "color": INK, "linestyle": "none"}
            axes.plot(values, range(count), marker, label=name, **style)
        label_axes(axes, "value (no unit)", "text")
        _ticks(axes.yaxis, count)
        axes.set_box_aspect(1)
        axes.set_ylim(count - 0.5, -0.5)
        axes.set_title("of each text", fontsize=NORMAL)
        add_legend(axes, fontsize=SMALL - 1, loc="upper center", bbox_to_anchor=(0.5, -0.28))


def matrices(subject: Subject, count: int) -> Matrices:
    """The matrices of pairs drawn by the seed, each of another video.

    Beliefs and vacuities are those among all videos of the split; only pairs are shown.
    """
    queries = subject.pairs(count)
    columns = subject.owner[queries]
    found = subject.matrices(queries)
    return Matrices(
        title=subject.title,
        captions=tuple(subject.text(query) for query in queries),
        videos=tuple(subject.items[column].id for column in columns),
        matrices={name: matrix[:, columns] for name, matrix in found.items()},
        texts={
            name: values[queries]
            for name, values in subject.measures.items()
            if name.startswith("text")
        },
    )


def _ticks(axis: Any, count: int) -> None:
    """Every pair's number, or every fifth of many."""
    places = range(0, count, 1 if count <= 12 else 5)
    axis.set_ticks(places, [str(place + 1) for place in places], fontsize=SMALL - 1)
