"""All figures by name: what each shows, where the papers have it, what it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float

from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.models.load import load
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.evaluation import (
    BANKED,
    check_experts,
    encode,
    read_source,
    source_of,
    training_captions,
)
from sureshot.research.figures.canvas import SUFFIXES, save_figure
from sureshot.research.figures.plots import calibration, embeddings, epochs, matrices, uncertainty
from sureshot.research.figures.strips import (
    After,
    captions,
    failures,
    rank_changes,
    results,
    tokens,
)
from sureshot.research.figures.subject import Subject
from sureshot.research.scores import caption_scores

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
class FigureOptions:
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
    make: Callable[[Sequence[Subject], int, FigureOptions], Drawing]
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


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure that was drawn.

    Attributes:
        figure: its name.
        title: model and split, in words.
        beside: second model in words; None without one.
        drawing: the numbers that are drawn.
        files: the pictures that were written.
    """

    figure: str
    title: str
    drawing: Drawing
    files: tuple[Path, ...]
    beside: str | None = None

    def text(self) -> str:
        """The pictures that were written, one a line."""
        return "".join(f"{path}\n" for path in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "figure": self.figure,
            "model": self.title,
            "beside": self.beside,
            "files": [str(path.absolute()) for path in self.files],
            "numbers": self.drawing.to_dict(),
        }


def plot(
    figure: str,
    models: str | Path | Sequence[str | Path],
    data: str,
    root: str | Path,
    *,
    split: str = "test",
    protocol: str | None = None,
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
    experts: str | Path | None = None,
    frames: int | None = None,
    to: str | Path = "figures",
    count: int | None = None,
    seed: int = 0,
    beside: str | Path | None = None,
    after: str | None = None,
    bank: int = 2000,
    device: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Plot:
    """Draw a figure of the papers for a trained model.

    Args:
        figure: one of `sureshot.research.figures.catalogue.FIGURES`.
        models: folder of a checkpoint, or an encoder's name; ``epochs`` draws several.
        data: name of the data set; this and what else describes the split is as in
            `sureshot.research.evaluation.evaluate`.
        root: folder or file of its annotations.
        split: ``test``, ``val`` or ``train``.
        protocol: reading of the data set.
        videos: folder of the videos.
        ids: file that names videos of the split.
        label: what results on such a part are called.
        experts: folder of features extracted beforehand.
        frames: frames sampled from each video.
        to: a ``.png`` or ``.svg`` file, or a folder that gets both.
        count: queries or pairs to show; None is what suits the figure.
        seed: what is shown is drawn by it.
        beside: a second model, for ``matrices`` and ``tokens``: the same pairs or texts by both.
        after: second score of ``rerank``; None is the model's own.
        bank: training captions that ``qb_norm`` and ``nnn`` look at, at most.
        device: torch device; None takes a GPU where there is one.
        cache: folder of encoded features; None is one in the user's cache folder.
        progress: hears how far the work is.

    Raises:
        ArgumentError: arguments that do not go together.
        SureshotError: there is no such figure, the model does not have what it shows, matplotlib is
            missing, or a file cannot be read or written.
    """
    names = [models] if isinstance(models, str | Path) else models
    entry = entry_of(figure, len(names), beside=beside is not None)
    second = _second(figure, after)
    notes = Notes(progress or Silent())
    scorers = [load(name, device) for name in (*names, *([] if beside is None else [beside]))]
    source = source_of(data, root, split, protocol, videos, ids, label, experts)
    for scorer in scorers:
        check_experts(scorer, source.experts)
    read = read_source(source, notes)
    captions = training_captions(scorers[0], read.split, bank) if second in BANKED else None
    subjects = [
        Subject(scorer, encode(read, scorer, notes, frames=frames, cache=cache), seed)
        for scorer in scorers
    ]
    known = None
    if captions is not None:
        known = caption_scores(scorers[0], captions, subjects[0].features, cache)
    compared = None if beside is None else subjects.pop()
    drawing = entry.make(subjects, count or entry.count, FigureOptions(second, known, compared))
    return Plot(
        figure=figure,
        title=subjects[0].title,
        drawing=drawing,
        files=tuple(write_figure(figure, drawing, Path(to))),
        beside=None if compared is None else compared.title,
    )


def write_figure(name: str, drawing: Drawing, to: Path) -> list[Path]:
    """Draw a figure into the file named, or as both kinds into a folder.

    Raises:
        SureshotError: matplotlib is missing, or a file cannot be written.
    """
    drawn = drawing.draw()
    named = to.suffix.lower() in SUFFIXES
    files = [to] if named else [to / f"{name}{suffix}" for suffix in SUFFIXES]
    for path in files:
        save_figure(drawn, path)
    return files


def _second(figure: str, after: str | None) -> After | None:
    """The second score of a re-ranking, if it is one."""
    if after is None:
        return None
    if figure != "rerank":
        raise ArgumentError(f"{option('after')} belongs to rerank; {figure} shows one score.")
    for name in get_args(After):
        if name == after:
            return name
    raise ArgumentError(
        f"{option('after', after)} is unknown; known: {', '.join(get_args(After))}."
    )
