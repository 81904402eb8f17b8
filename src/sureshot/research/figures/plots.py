"""Items as Gaussians, seen from two directions: means, ellipses and samples."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.confidence import aurc, risk_curve
from sureshot.metrics.intervals import interval, mean_of
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.models.layers.gaussian import Gaussian, draw_noise, sample
from sureshot.research.figures.canvas import (
    BLUE,
    CENTRED,
    INK,
    MUTED,
    NORMAL,
    ORANGE,
    SERIES,
    SMALL,
    SUFFIXES,
    WIDTH,
    Style,
    add_legend,
    entitle,
    ink_on,
    label_axes,
    new_figure,
    new_panels,
    number,
    quantity,
    save_figure,
    words,
)
from sureshot.research.figures.subject import SMALL_IS_NEAR, Subject, nearest, tell_apart
from sureshot.settings import to_values
from sureshot.trust.report import OURS, TrustReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SAMPLES = 7  # as the papers draw


@dataclass(frozen=True)
class Blob:
    """A Gaussian in the plane.

    Attributes:
        pair: number of its pair, from 1.
        kind: kind of the item.
        name: the caption, or the video's name.
        mean: x and y.
        deviations: longer and shorter half axis of the ellipse of one deviation.
        angle: degrees between the longer axis and the x axis.
        samples: x and y of each embedding drawn.
    """

    pair: int
    kind: Literal["text", "video"]
    name: str
    mean: tuple[float, float]
    deviations: tuple[float, float]
    angle: float
    samples: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Embeddings:
    """Gaussians of pairs on the two principal axes of their means.

    Attributes:
        title: model and split.
        explained: share of the variance of the means along each axis, in [0, 1].
        blobs: text and video of each pair in turn.
    """

    title: str
    explained: tuple[float, float]
    blobs: Sequence[Blob]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {"explained": list(self.explained), "items": [asdict(blob) for blob in self.blobs]}

    def draw(self) -> "Figure":
        """Circles are texts, squares videos; a line joins a pair, an ellipse is one deviation."""
        from matplotlib.patches import Ellipse

        pairs = len(self.blobs) // 2
        figure = new_figure(4.4 + 0.17 * pairs, width=5.6)
        axes = figure.add_subplot()
        for text, video in zip(self.blobs[::2], self.blobs[1::2], strict=True):
            colour = SERIES[(text.pair - 1) % len(SERIES)]
            ends = [text.mean[0], video.mean[0]], [text.mean[1], video.mean[1]]
            axes.plot(*ends, "-", color=colour, linewidth=0.9, zorder=2)
            for blob, marker in ((text, "o"), (video, "s")):
                wide, high = (2 * deviation for deviation in blob.deviations)
                style = "-" if blob.kind == "text" else "--"
                about: Style = {"facecolor": colour, "alpha": 0.13, "zorder": 1}
                rim: Style = {"facecolor": "none", "edgecolor": colour, "linestyle": style}
                for look in (about, rim):
                    axes.add_patch(Ellipse(blob.mean, wide, high, angle=blob.angle, **look))
                drawn = zip(*blob.samples, strict=True)
                axes.plot(*drawn, marker, color=colour, ms=2.2, alpha=0.55, linestyle="none")
                axes.plot(*blob.mean, marker, color=colour, ms=10, mec="white", zorder=3)
                axes.annotate(str(blob.pair), blob.mean, zorder=4, color=ink_on(colour), **CENTRED)
        shares = [f"principal axis {n} ({share:.0%} of the variance of the means)"
                  for n, share in enumerate(self.explained, 1)]  # fmt: skip
        label_axes(axes, *shares)
        axes.set_aspect("equal", "datalim")
        axes.autoscale_view()
        axes.set_title("\n".join(words(self.title, 5.0)), fontsize=NORMAL, parse_math=False)
        legend = ["● text, ■ video; ellipse: one standard deviation; small: samples"]
        legend += [f"{b.pair}  {words(b.name, 4.9, SMALL, 1)[0]}" for b in self.blobs[::2]]
        axes.annotate(
            "\n".join(legend),
            (0, -0.13),
            xycoords="axes fraction",
            va="top",
            fontsize=SMALL,
            color=MUTED,
            parse_math=False,
        )
        return figure


def embeddings(subject: Subject, count: int) -> Embeddings:
    """The Gaussians of pairs drawn by the seed, each of another video.

    Raises:
        SureshotError: the system trains none.
    """
    queries = subject.pairs(count)
    texts, videos = subject.gaussians(queries)
    names = [
        [subject.text(query) for query in queries],
        [subject.items[video].id for video in subject.owner[queries]],
    ]
    axes, explained = principal_axes(torch.cat([texts.mean, videos.mean]).double().numpy())
    centre = torch.cat([texts.mean, videos.mean]).double().numpy().mean(0)
    draw = torch.Generator().manual_seed(subject.seed)
    blobs: list[Blob] = []
    for row in range(len(queries)):
        for kind, side, name in (("text", texts, names[0]), ("video", videos, names[1])):
            one = Gaussian(side.mean[row].double(), side.log_var[row].double())
            noise = draw_noise((_SAMPLES, len(one.mean)), draw, torch.float64)
            blobs.append(_blob(row + 1, kind, name[row], one, noise.numpy(), axes, centre))
    return Embeddings(subject.title, explained, blobs)


def principal_axes(
    points: Float64[np.ndarray, "points dim"],
) -> tuple[Float64[np.ndarray, "2 dim"], tuple[float, float]]:
    """The two directions in which points vary most, and their shares of the variance.

    The largest entry of each direction is positive, so that a figure does not flip.
    """
    centred = points - points.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    power = sizes**2
    if len(axes) < 2:  # one dimension, or one point
        axes = np.pad(axes, ((0, 2 - len(axes)), (0, 0)))
        power = np.pad(power, (0, 2 - len(power)))
    axes = axes[:2]
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])
    total = power.sum() or 1.0
    return axes * np.where(signs == 0, 1, signs)[:, None], (
        float(power[0] / total),
        float(power[1] / total),
    )


def ellipse(
    axes: Float64[np.ndarray, "2 dim"], variance: Float64[np.ndarray, " dim"]
) -> tuple[tuple[float, float], float]:
    """Half axes of one deviation, the longer first, and its angle, of a Gaussian seen in a plane.

    Examples:
        >>> ellipse(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), np.array([9.0, 4.0, 1.0]))
        ((3.0, 2.0), 90.0)
    """
    covariance = (axes * variance) @ axes.T
    sizes, directions = np.linalg.eigh(covariance)
    x, y = directions[:, 1]
    half = np.sqrt(sizes.clip(min=0))
    return (float(half[1]), float(half[0])), float(np.degrees(np.arctan2(y, x)) % 180)


def _blob(
    pair: int,
    kind: Any,
    name: str,
    one: Gaussian,
    noise: Float[np.ndarray, "k dim"],
    axes: Float64[np.ndarray, "2 dim"],
    centre: Float64[np.ndarray, " dim"],
) -> Blob:
    drawn = sample(one, torch.from_numpy(noise)).numpy()
    mean = axes @ (one.mean.numpy() - centre)
    deviations, angle = ellipse(axes, one.log_var.exp().numpy())
    samples = (drawn - centre) @ axes.T
    return Blob(
        pair=pair,
        kind=kind,
        name=name,
        mean=(float(mean[0]), float(mean[1])),
        deviations=deviations,
        angle=angle,
        samples=tuple((float(x), float(y)) for x, y in samples),
    )


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


_SURE = 0.9  # the paper counts the negatives above it
_MARGIN = 0.5  # of the paper's triplet loss
_SOFTEST = 3  # named among the numbers


@dataclass(frozen=True)
class Soft:
    """A video that does not belong to a text but is the least certain of it.

    Attributes:
        query: the text.
        video: its name.
        eta: weight of the pair as a negative.
        score: similarity of the pair.
    """

    query: str
    video: str
    eta: float
    score: float


@dataclass(frozen=True, eq=False)
class SoftPositives:
    """All pairs of some texts.

    Attributes:
        title: model and split.
        queries: the texts.
        matched_eta: eta of each text with its own video, in (0, 1).
        matched_score: score of the same pairs.
        other_eta: eta of each text with each other video.
        other_score: score of the same pairs.
        hinge: what the plain triplet loss takes from each other pair, at least 0.
        softest: other pairs with the smallest eta.
    """

    title: str
    queries: tuple[str, ...]
    matched_eta: Float[np.ndarray, " queries"]
    matched_score: Float[np.ndarray, " queries"]
    other_eta: Float[np.ndarray, "queries others"]
    other_score: Float[np.ndarray, "queries others"]
    hinge: Float[np.ndarray, "queries others"]
    softest: Sequence[Soft]

    @property
    def certain(self) -> float:
        """Share of the other pairs whose eta is above 0.9."""
        return float((self.other_eta > _SURE).mean())

    @property
    def separated(self) -> float | None:
        """Chance that an unmatched pair has a larger eta than a matched one."""
        return separation(self.other_eta.ravel(), self.matched_eta)

    @property
    def spared(self) -> float:
        """Share of the triplet loss that the weights take away."""
        total = float(self.hinge.sum())
        return 1 - float((self.other_eta * self.hinge).sum()) / total if total else 0.0

    def profile(self) -> tuple[list[float], list[float], list[float]]:
        """Middles of tenths of eta that hold pairs, and mean losses there, plain and weighed."""
        eta, hinge = self.other_eta.ravel(), self.hinge.ravel()
        tenth = np.minimum((10 * eta).astype(int), 9)
        found = [(number, tenth == number) for number in np.unique(tenth)]
        return (
            [float(number + 0.5) / 10 for number, _ in found],
            [float(hinge[held].mean()) for _, held in found],
            [float((eta * hinge)[held].mean()) for _, held in found],
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {
            "queries": list(self.queries),
            "matched": {
                "eta": self.matched_eta.tolist(),
                "score": self.matched_score.tolist(),
            },
            "others": {"eta": self.other_eta.tolist(), "score": self.other_score.tolist()},
            "above_0_9": self.certain,
            "separation": self.separated,
            "loss_spared": self.spared,
            "softest": to_values(self.softest),
        }

    def draw(self) -> "Figure":
        """Score against eta, the loss before and after weighting, and how eta is spread."""
        figure = new_figure(3.5)
        left, middle, right = figure.subplots(1, 3)
        eta = self.other_eta.ravel()
        dots: Style = {"linestyle": "none", "rasterized": True}
        left.plot(
            eta, self.other_score.ravel(), ".", color="0.55", ms=2.5, label="other pair", **dots
        )
        style: Style = {"color": BLUE, "mec": "white", "ms": 6, "linestyle": "none"}
        left.plot(self.matched_eta, self.matched_score, "D", label="own pair", **style)
        label_axes(left, "uncertainty η of the pair", "score")
        add_legend(left, loc="lower left")

        middle.plot(eta, self.hinge.ravel(), ".", color="0.8", ms=2, label="each, plain", **dots)
        at, plain_loss, weighed_loss = self.profile()
        middle.plot(at, plain_loss, "o--", color=INK, mfc="white", ms=4, label="mean, plain")
        middle.plot(at, weighed_loss, "x-", color=ORANGE, ms=5, mew=1.5, label="mean, times η")
        label_axes(
            middle, "uncertainty η of the pair", f"triplet loss of the pair (margin {_MARGIN})"
        )
        add_legend(middle)
        middle.set_title(f"{self.spared:.0%} of the loss is spared", fontsize=SMALL)

        shares = np.linspace(0, 1, eta.size)
        right.plot(np.sort(eta), shares, "-", color=INK, label="other pairs")
        own = np.linspace(0, 1, len(self.matched_eta))
        right.plot(np.sort(self.matched_eta), own, "D--", color=BLUE, ms=3, label="own pairs")
        right.axvline(_SURE, color="0.6", linewidth=0.8, linestyle=":")
        label_axes(right, "uncertainty η of the pair", "share of pairs below η")
        right.set_title(f"{self.certain:.0%} of other pairs above {_SURE}", fontsize=SMALL)
        add_legend(right)
        for axes in (left, middle, right):
            axes.set_xlim(-0.02, 1.02)
        entitle(figure, self.title)
        return figure


def calibration(subject: Subject, count: int) -> SoftPositives:
    """All pairs of texts drawn by the seed.

    Raises:
        SureshotError: the system does not estimate eta, or there is one video only.
    """
    queries = subject.pairs(count)
    matrices = subject.matrices(queries)
    if "eta" not in matrices:
        raise SureshotError(
            f"{subject.scorer.system} does not estimate how uncertain a pair is; DVTR does."
        )
    owner = subject.owner[queries]
    if len(subject.items) < 2:
        raise SureshotError("calibration compares a text with other videos; there is only one.")
    texts = tuple(subject.text(query) for query in queries)
    names = [item.id for item in subject.items]
    return weighed(subject.title, texts, names, matrices["eta"], matrices["score"], owner)


def weighed(
    title: str,
    texts: tuple[str, ...],
    names: Sequence[str],
    eta: Float[np.ndarray, "queries videos"],
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
) -> SoftPositives:
    """Matched and other pairs apart, and what the weights spare each of the others."""
    rows = np.arange(len(owner))
    others = np.ones(eta.shape, bool)
    others[rows, owner] = False
    shape = (len(owner), eta.shape[1] - 1)
    matched = scores[rows, owner]
    hinge = np.maximum(0.0, scores - matched[:, None] + _MARGIN)
    flat = np.argsort(np.where(others, eta, np.inf), axis=None, kind="stable")[:_SOFTEST]
    softest = [
        Soft(
            query=texts[row],
            video=names[column],
            eta=float(eta[row, column]),
            score=float(scores[row, column]),
        )
        for row, column in zip(*np.unravel_index(flat, eta.shape), strict=True)
    ]
    return SoftPositives(
        title=title,
        queries=texts,
        matched_eta=eta[rows, owner],
        matched_score=matched,
        other_eta=eta[others].reshape(shape),
        other_score=scores[others].reshape(shape),
        hinge=hinge[others].reshape(shape),
        softest=softest,
    )


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


_RELIANCE_POINTS = 400  # of a curve at most
_FEWEST = 10  # queries that a point is about, for its share to say much
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 3)))
_MARKS = ("o", "s", "^", "D")
_SIZES = ((BLUE, "-", "o"), (ORANGE, "--", "s"), (INK, "-.", "^"))


def write(report: TrustReport, folder: Path) -> list[Path]:
    """Write every figure there are numbers for, as PNG and SVG.

    Args:
        report: what was measured.
        folder: made if it is not there.

    Returns:
        The files written; none where nothing was measured.

    Raises:
        SureshotError: matplotlib is not installed, or a file cannot be written.
    """
    figures = {}
    if report.reliability:
        figures["trust-reliability"] = draw_reliability(report)
    if report.confidences:
        figures["trust-risk"] = risk(report)
    if report.sizes:
        figures["trust-sets"] = sets(report)
    paths = []
    for name, figure in figures.items():
        for suffix in SUFFIXES:
            paths.append(folder / f"{name}{suffix}")
            save_figure(figure, paths[-1])
    return paths


def draw_reliability(report: TrustReport) -> "Figure":
    """Share of right answers against the probability given; below it how many queries each has."""
    figure = new_figure(5.4, width=4.6)
    top, low = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
    top.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=0.9)
    shown = sorted(report.reliability.items(), key=lambda item: item[0] != OURS)
    for place, (name, bins) in enumerate(shown):
        style: Style = {"color": SERIES[place], "marker": _MARKS[place % len(_MARKS)]}
        if place:
            style |= {"mfc": "white", "linewidth": 0.9, "linestyle": _DASHES[place]}
        many = bins.count >= _FEWEST
        x, y = bins.probability, bins.right
        top.plot(x[many], y[many], label=name, ms=4.5, zorder=5 - place, **style)
        top.plot(x[~many], y[~many], **(style | {"ms": 2.5, "linestyle": "none"}))
    label_axes(top, "", "share that is right")
    top.set_ylim(-0.03, 1.03)
    add_legend(top, loc="upper left")
    name, bins = shown[0]
    low.bar((bins.low + bins.high) / 2, bins.count, (bins.high - bins.low) * 0.9, color=BLUE)
    for x, count in zip((bins.low + bins.high) / 2, bins.count, strict=True):
        low.annotate(
            f"{count}", (x, count), (0, 1), textcoords="offset points", ha="center", fontsize=5.5
        )
    label_axes(low, "probability given", "queries")
    low.margins(y=0.22)
    low.set_xlim(-0.02, 1.02)
    note = (
        f"dashed: a true probability; small: bins of fewer than {_FEWEST} queries; bars: queries "
        f"of each bin of {name}"
    )
    entitle(figure, _title(report), note)
    return figure


def risk(report: TrustReport) -> "Figure":
    """Share of wrong answers among the surest queries, for every signal, best first."""
    figure = new_figure(4.0)
    axes = figure.add_subplot()
    wrong = ~report.right
    ordered = sorted(report.confidences.items(), key=lambda item: aurc(item[1], wrong))
    others = 0
    for name, confidence in ordered:
        label = f"{name}, {number(aurc(confidence, wrong))}"
        x, y = _curve(*risk_curve(confidence, wrong))
        if name == OURS:
            axes.plot(x, y, color=BLUE, linewidth=2.6, label=label, zorder=5)
            continue
        colours = SERIES[1:]
        style: Style = {
            "color": colours[others % len(colours)],
            "linestyle": _DASHES[others % len(_DASHES)],
            "marker": _MARKS[others % len(_MARKS)],
            "markevery": (20 + 7 * others, 80),
            "ms": 3,
        }
        axes.plot(x, y, linewidth=1.0, label=label, **style)
        others += 1
    risk_of_all = float(wrong.mean())
    axes.axhline(risk_of_all, color=MUTED, linestyle=":", linewidth=0.9)
    answered = np.linspace(0.0, 1.0, 101)[1:]
    best = np.maximum(0, 1 - (1 - risk_of_all) / answered)
    axes.fill_between(answered, best, color="0.92", linewidth=0)
    label_axes(
        axes, "share of the queries that is answered, the surest first", "share that is wrong"
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    place: Style = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "alignment": "left"}
    add_legend(axes, title="signal, AURC", **place)
    note = "dotted: chance; grey: no order comes lower; lower is better"
    entitle(figure, _title(report), note)
    return figure


def sets(report: TrustReport) -> "Figure":
    """How large the sets are: for every share of the queries, the size that they do not exceed."""
    figure = new_figure(3.2, width=4.6)
    axes = figure.add_subplot()
    for (coverage, sizes), (colour, dash, mark) in zip(report.sizes.items(), _SIZES, strict=False):
        ordered = np.sort(sizes).astype(np.float64)
        x, y = _thinned(np.arange(1, len(ordered) + 1) / len(ordered), ordered)
        median = float(np.median(sizes))
        label = f"{100 * coverage:.0f} %: median {median:.0f}, mean {number(float(sizes.mean()))}"
        axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.4, label=label)
        axes.plot([0.5], [median], mark, color=colour, ms=5)
    axes.axhline(report.videos, color=MUTED, linestyle=":", linewidth=0.9)
    _sized(axes, report.videos)
    label_axes(axes, "share of the queries", "videos in the set, at most")
    axes.set_xlim(0, 1)
    add_legend(axes, loc="lower right", title="promised coverage")
    note = f"dotted: all {report.videos} videos; markers: half of the queries"
    entitle(figure, _title(report), note)
    return figure


def _sized(axes: "Axes", videos: int) -> None:
    """A logarithmic scale that begins at 0, with plain numbers."""
    axes.set_yscale("symlog", linthresh=1, linscale=0.4)
    ticks = [0, *(step * 10**power for power in range(6) for step in (1, 2, 5))]
    shown = [tick for tick in ticks if tick <= videos]
    axes.set_yticks(shown, [str(tick) for tick in shown])
    axes.set_yticks([], minor=True)
    axes.set_ylim(0, videos * 1.1)


def _curve(
    coverage: Float64[np.ndarray, " queries"], risk: Float64[np.ndarray, " queries"]
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Without the first few queries, whose share of wrong ones jumps."""
    first = min(max(_FEWEST, len(coverage) // 100), len(coverage)) - 1
    return _thinned(coverage[first:], risk[first:])


def _thinned(
    x: Float64[np.ndarray, " queries"], y: Float64[np.ndarray, " queries"]
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """As many points as can be seen, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(_RELIANCE_POINTS, len(x))).astype(int))
    return x[chosen], y[chosen]


def _title(report: TrustReport) -> str:
    return report.title or f"{report.queries} queries, {report.videos} videos"
