"""Does uncertainty tell which queries fail: recall in bins of every measure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.bootstrap import interval, mean_of
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.research.figures.canvas import (
    BLUE,
    MUTED,
    SMALL,
    entitle,
    label_axes,
    new_panels,
    number,
    words,
)
from sureshot.research.figures.quantities import quantity
from sureshot.research.figures.subject import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS = 5


@dataclass(frozen=True)
class Bin:
    """Queries of about one uncertainty.

    Attributes:
        low: smallest value of the measure.
        mean: mean value.
        high: largest value.
        queries: how many.
        r1: R@1, percent.
        interval: 95 % interval of R@1 from resampled videos; None with one video.
    """

    low: float
    mean: float
    high: float
    queries: int
    r1: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Measured:
    """One measure.

    Attributes:
        direction: ``text to video`` or ``video to text``.
        r1: R@1 of all queries, percent.
        separation: chance that a query that fails at 1 has the larger value than one that does not;
            0.5 says that the measure knows nothing; None where all queries fail or none does.
        bins: groups of about as many queries each, the smallest values first.
    """

    direction: str
    r1: float
    separation: float | None
    bins: Sequence[Bin]


@dataclass(frozen=True)
class Uncertainty:
    """All measures of a system.

    Attributes:
        title: model and split.
        measures: uncertainties by name.
    """

    title: str
    measures: Mapping[str, Measured]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {"measures": {name: asdict(one) for name, one in self.measures.items()}}

    def draw(self) -> "Figure":
        """A panel a measure: R@1 of each bin with its interval, all queries as a dashed line."""
        figure, panels = new_panels(len(self.measures), 2.3)
        for axes, (name, one) in zip(panels, self.measures.items(), strict=True):
            _panel(axes, name, one)
        panels[0].set_ylim(bottom=0)  # of all panels, after the highest is known
        note = (
            "bars: 95 % intervals; grey: values of a bin; dashed: all queries; separation: chance "
            "that a failed query has the larger value (0.5: the measure knows nothing)"
        )
        entitle(figure, self.title, note)
        return figure


def uncertainty(subject: Subject) -> Uncertainty:
    """Recall against every measure that the system has.

    Raises:
        SureshotError: it has none.
    """
    if not subject.measures:
        raise SureshotError(
            f"{subject.scorer.name} has no uncertainty to draw: {subject.scorer.system} as it was "
            f"trained measures none. DUQ, UATVR and DVTR do."
        )
    ranks = text_ranks(subject.scores, subject.owner)
    columns = np.unique(subject.owner)
    back = video_ranks(subject.scores, subject.owner)
    found: dict[str, Measured] = {}
    for name, values in subject.measures.items():
        if name.startswith("text"):
            found[name] = measured("text to video", values, ranks <= 1, subject.owner, subject.seed)
        else:
            found[name] = measured(
                "video to text", values[columns], back <= 1, columns, subject.seed
            )
    return Uncertainty(subject.title, found)


def measured(
    direction: str,
    values: Float[np.ndarray, " queries"],
    right: Bool[np.ndarray, " queries"],
    video: Integer[np.ndarray, " queries"],
    seed: int,
) -> Measured:
    """Queries in bins of a measure; equal values are never parted."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="left")
    bins = [
        _bin(values[place == number], right[place == number], video[place == number], seed)
        for number in np.unique(place)
    ]
    return Measured(
        direction=direction,
        r1=100 * float(right.mean()),
        separation=separation(values[~right], values[right]),
        bins=bins,
    )


def separation(
    failed: Float[np.ndarray, " failed"], found: Float[np.ndarray, " found"]
) -> float | None:
    """Chance that one of the failed has the larger value than one of the found, ties half.

    Examples:
        >>> separation(np.array([3.0, 1.0]), np.array([2.0, 1.0]))
        0.625
    """
    if not len(failed) or not len(found):
        return None
    ordered = np.sort(found)
    below = np.searchsorted(ordered, failed, side="left")
    level = np.searchsorted(ordered, failed, side="right") - below
    return float((below + level / 2).mean() / len(found))


def _bin(
    values: Float[np.ndarray, " queries"],
    right: Bool[np.ndarray, " queries"],
    video: Integer[np.ndarray, " queries"],
    seed: int,
) -> Bin:
    percents = 100.0 * right
    ends = None
    if len(np.unique(video)) > 1:
        found = interval(mean_of(percents), video, np.random.default_rng(seed))
        ends = (found.low, found.high)
    low, mean, high = (float(x) for x in (values.min(), values.mean(), values.max()))
    return Bin(
        low=low, mean=mean, high=high, queries=len(values), r1=float(percents.mean()), interval=ends
    )


def _panel(axes: "Axes", name: str, one: Measured) -> None:
    x = [part.mean for part in one.bins]
    y = [part.r1 for part in one.bins]
    ends = [part.interval or (part.r1, part.r1) for part in one.bins]
    bars = [[max(0.0, r1 - low) for r1, (low, _) in zip(y, ends, strict=True)],
            [max(0.0, high - r1) for r1, (_, high) in zip(y, ends, strict=True)]]  # fmt: skip
    wide = [
        [part.mean - part.low for part in one.bins],
        [part.high - part.mean for part in one.bins],
    ]
    axes.axhline(one.r1, color=MUTED, linestyle="--", linewidth=0.9)
    axes.errorbar(x, y, xerr=wide, fmt="none", ecolor="0.75", linewidth=3, zorder=1)
    axes.errorbar(x, y, yerr=bars, fmt="o-", color=BLUE, ms=5, capsize=3, linewidth=1.2)
    label_axes(axes, "\n".join(words(quantity(name), 3.0)), f"R@1, %\n{one.direction}")
    axes.locator_params(axis="x", nbins=5)
    known = "" if one.separation is None else f"separation {number(one.separation)}"
    axes.set_title(known, fontsize=SMALL, loc="right")
