"""Uncertainty against recall over the checkpoints of a run."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.canvas import (
    BLUE,
    CENTRED,
    entitle,
    label_axes,
    new_panels,
    words,
)
from sureshot.research.figures.quantities import quantity
from sureshot.research.figures.subject import Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Point:
    """A checkpoint.

    Attributes:
        name: its folder.
        r1: R@1 text to video, percent.
        means: mean of each measure over all queries or videos.
    """

    name: str
    r1: float
    means: dict[str, float]


@dataclass(frozen=True)
class Epochs:
    """Checkpoints in the order given.

    Attributes:
        title: names of the first model and of the split.
        points: one a checkpoint.
    """

    title: str
    points: Sequence[Point]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {"checkpoints": [asdict(point) for point in self.points]}

    def draw(self) -> "Figure":
        """A panel a measure; numbers are the order of the checkpoints."""
        names = list(self.points[0].means)
        figure, panels = new_panels(len(names), 2.5)
        for axes, name in zip(panels, names, strict=True):
            x = [point.means[name] for point in self.points]
            y = [point.r1 for point in self.points]
            axes.plot(x, y, "o-", color=BLUE, ms=9, linewidth=1.0)
            for order, place in enumerate(zip(x, y, strict=True), 1):
                axes.annotate(str(order), place, color="white", **CENTRED)
            label_axes(
                axes, "\n".join(words(f"mean {quantity(name)}", 3.0)), "R@1, %, text to video"
            )
            axes.margins(0.15)
        entitle(figure, self.title, "numbers: the checkpoints in the order they were named")
        return figure


def epochs(subjects: Sequence[Subject]) -> Epochs:
    """Mean measures and recall of several checkpoints of one system.

    Raises:
        SureshotError: there is only one, or they do not have the same measures.
    """
    if len(subjects) < 2:
        raise SureshotError(
            "epochs draws how uncertainty and recall change together; name two checkpoints or more."
        )
    points = [_point(subject) for subject in subjects]
    for point in points:
        if not point.means or point.means.keys() != points[0].means.keys():
            raise SureshotError(
                f"{point.name} measures {', '.join(point.means) or 'no uncertainty'}, "
                f"{points[0].name} {', '.join(points[0].means) or 'none'}; name checkpoints of one "
                f"system that has some, such as DUQ, UATVR or DVTR."
            )
    return Epochs(subjects[0].title, points)


def _point(subject: Subject) -> Point:
    ranks = text_ranks(subject.scores, subject.owner)
    means = {name: float(values.mean()) for name, values in subject.measures.items()}
    return Point(subject.scorer.name, 100 * float((ranks <= 1).mean()), means)
