"""Soft positives: how uncertain each pair is of not matching, and what that spares it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Integer

from sureshot.errors import SureshotError
from sureshot.research.figures.canvas import (
    BLUE,
    INK,
    ORANGE,
    SMALL,
    Style,
    add_legend,
    entitle,
    label_axes,
    new_figure,
)
from sureshot.research.figures.subject import Subject
from sureshot.research.figures.uncertainty import separation
from sureshot.settings import to_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
