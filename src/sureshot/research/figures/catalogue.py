"""All figures by name: what each shows, where the papers have it, what it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.research.figures.embeddings import embeddings
from sureshot.research.figures.epochs import epochs
from sureshot.research.figures.failures import failures
from sureshot.research.figures.matrices import matrices
from sureshot.research.figures.rank_changes import After, rank_changes
from sureshot.research.figures.results import captions, results
from sureshot.research.figures.soft_positives import calibration
from sureshot.research.figures.subject import Subject
from sureshot.research.figures.tokens import tokens
from sureshot.research.figures.uncertainty import uncertainty

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@runtime_checkable
class Drawing(Protocol):
    """The numbers of a figure, which can be drawn."""

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""

    def draw(self) -> "Figure":
        """The figure; matplotlib is loaded here."""


@dataclass(frozen=True)
class Wish:
    """What is asked of a figure.

    Attributes:
        after: second score of ``rerank``.
        bank: scores of training captions, where ``after`` looks at them.
        beside: a second model, with the same split.
    """

    after: After | None = None
    bank: Float[np.ndarray, "captions videos"] | None = None
    beside: Subject | None = None


@dataclass(frozen=True)
class Entry:
    """A figure.

    Attributes:
        about: what it shows, in a line.
        papers: where it is found.
        needs: systems that have what it shows.
        count: queries it shows unless asked otherwise; 0 where it shows all.
        make: its numbers.
        compares: whether a second model can stand beside the first, as in the paper.
    """

    about: str
    papers: str
    needs: str
    count: int
    make: Callable[[Sequence[Subject], int, Wish], Drawing]
    compares: bool = False


FIGURES: Mapping[str, Entry] = {
    "matrices": Entry(
        about="score and all that is said of a pair, for N pairs",
        papers="DUQ supplement fig. 2, DVTR fig. 3",
        needs="any",
        count=12,
        make=lambda subjects, count, wish: matrices(subjects[0], count, wish.beside),
        compares=True,
    ),
    "embeddings": Entry(
        about="means, deviations and samples of the Gaussians of N pairs",
        papers="DUQ fig. 4",
        needs="duq, uatvr, dvtr and others with Gaussians",
        count=6,
        make=lambda subjects, count, wish: embeddings(subjects[0], count),
    ),
    "rerank": Entry(
        about="frames found before and after re-ranking, where it moved most",
        papers="DUQ fig. 3",
        needs="duq; or any, corrected by nnn, qb_norm, inverted_softmax or dsl",
        count=4,
        make=lambda subjects, count, wish: rank_changes(subjects[0], count, wish.after, wish.bank),
    ),
    "results": Entry(
        about="the best three videos of N texts, with all that is said of each pair",
        papers="DUQ supplement fig. 2, DVTR fig. 5",
        needs="any",
        count=4,
        make=lambda subjects, count, wish: results(subjects[0], count),
    ),
    "captions": Entry(
        about="the best three texts of N videos",
        papers="DVTR fig. 6",
        needs="any",
        count=4,
        make=lambda subjects, count, wish: captions(subjects[0], count),
    ),
    "failures": Entry(
        about="queries that fail, and what was found before the right video",
        papers="DUQ supplement fig. 3",
        needs="any",
        count=4,
        make=lambda subjects, count, wish: failures(subjects[0], count),
    ),
    "uncertainty": Entry(
        about="R@1 in bins of every measure of uncertainty",
        papers="after UATVR fig. 3",
        needs="duq, uatvr, dvtr and others with measures",
        count=0,
        make=lambda subjects, count, wish: uncertainty(subjects[0]),
    ),
    "epochs": Entry(
        about="mean uncertainty against R@1 over several checkpoints",
        papers="UATVR fig. 3",
        needs="duq, uatvr, dvtr and others with measures",
        count=0,
        make=lambda subjects, count, wish: epochs(subjects),
    ),
    "tokens": Entry(
        about="which frames and learned tokens a text finds, and by which words",
        papers="UATVR fig. 4 and 5",
        needs="uatvr",
        count=3,
        make=lambda subjects, count, wish: tokens(subjects[0], count, wish.beside),
        compares=True,
    ),
    "calibration": Entry(
        about="uncertainty of pairs against their score, and the loss it spares",
        papers="DVTR fig. 4",
        needs="dvtr",
        count=12,
        make=lambda subjects, count, wish: calibration(subjects[0], count),
    ),
}


def entry_of(name: str, checkpoints: int = 1, *, beside: bool = False) -> Entry:
    """The entry of a figure.

    Args:
        name: a figure of `FIGURES`.
        checkpoints: number of checkpoints that it is to draw.
        beside: whether a second model is to stand beside the first.

    Raises:
        ArgumentError: a second model is named for a figure whose paper shows one.
        SureshotError: no such figure, or it draws one checkpoint and is given several.
    """
    if name not in FIGURES:
        raise SureshotError(f"Unknown figure {name!r}; known: {', '.join(FIGURES)}.")
    if checkpoints > 1 and name != "epochs":
        raise SureshotError(
            f"{name} draws one checkpoint, not {checkpoints}; epochs draws several."
        )
    if beside and not FIGURES[name].compares:
        able = " and ".join(name for name, entry in FIGURES.items() if entry.compares)
        raise ArgumentError(
            f"{option('beside')} belongs to {able}, whose papers compare two models; {name} does "
            f"not take it."
        )
    return FIGURES[name]


def listing() -> str:
    """All figures, two lines each."""
    wide = max(map(len, FIGURES))
    lines = []
    for name, entry in FIGURES.items():
        lines.append(f"{name:{wide}}  {entry.about} ({entry.papers})")
        second = "; a second model can stand beside" if entry.compares else ""
        lines.append(f"{'':{wide}}  systems: {entry.needs}{second}")
    return "\n".join(lines)
