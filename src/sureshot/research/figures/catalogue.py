"""All figures by name: what each shows, where the papers have it, what it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.models.load import load
from sureshot.paths import as_list, expand
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.canvas import SUFFIXES, save_figure
from sureshot.research.evaluation import (
    BANKED,
    encode,
    read_source,
    source_of,
    training_captions,
)
from sureshot.research.figures import plots, strips
from sureshot.research.figures.strips import AFTER
from sureshot.research.figures.subject import Numbers, Subject
from sureshot.research.scores import caption_scores
from sureshot.text import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FigureSpec:
    """A figure."""

    about: str
    papers: str  # where it is found
    numbers: Callable[..., Numbers]  # from models and the number of queries
    draw: Callable[[Sequence[Subject], Numbers], "Figure"]
    needs: str = "any"  # systems that have what it shows
    count: int = 4  # queries it shows by default; 0 where it shows all
    compares: bool = False  # whether it takes a second model, as in the paper


FIGURES: Mapping[str, FigureSpec] = {
    "matrices": FigureSpec(
        about="score and all other values of a pair, for N pairs",
        papers="DUQ supplement fig. 2, DVTR fig. 3",
        count=12,
        numbers=plots.matrices,
        draw=plots.draw_matrices,
        compares=True,
    ),
    "embeddings": FigureSpec(
        about="means, deviations and samples of the Gaussians of N pairs",
        papers="DUQ fig. 4",
        needs="duq, uatvr, dvtr and others with Gaussians",
        count=6,
        numbers=plots.embeddings,
        draw=plots.draw_embeddings,
    ),
    "rerank": FigureSpec(
        about="frames found before and after re-ranking, where it moved most",
        papers="DUQ fig. 3",
        needs="duq; or any, corrected by nnn, qb_norm, inverted_softmax or dsl",
        numbers=strips.rank_changes,
        draw=strips.draw_rank_changes,
    ),
    "results": FigureSpec(
        about="the best three videos of N texts, with all values of each pair",
        papers="DUQ supplement fig. 2, DVTR fig. 5",
        numbers=strips.results,
        draw=strips.draw_results,
    ),
    "captions": FigureSpec(
        about="the best three texts of N videos",
        papers="DVTR fig. 6",
        numbers=strips.captions,
        draw=strips.draw_captions,
    ),
    "failures": FigureSpec(
        about="queries that fail, and what was found before the right video",
        papers="DUQ supplement fig. 3",
        numbers=strips.failures,
        draw=strips.draw_failures,
    ),
    "uncertainty": FigureSpec(
        about="R@1 in bins of every measure of uncertainty",
        papers="after UATVR fig. 3",
        needs="duq, uatvr, dvtr and others with measures",
        count=0,
        numbers=plots.uncertainty,
        draw=plots.draw_uncertainty,
    ),
    "epochs": FigureSpec(
        about="mean uncertainty against R@1 over several checkpoints",
        papers="UATVR fig. 3",
        needs="duq, uatvr, dvtr and others with measures",
        count=0,
        numbers=plots.epochs,
        draw=plots.draw_epochs,
    ),
    "tokens": FigureSpec(
        about="which frames and learned tokens a text finds, and by which words",
        papers="UATVR fig. 4 and 5",
        needs="uatvr",
        count=3,
        numbers=strips.tokens,
        draw=strips.draw_tokens,
        compares=True,
    ),
    "calibration": FigureSpec(
        about="uncertainty of pairs against their score, and the loss it spares",
        papers="DVTR fig. 4",
        needs="dvtr",
        count=12,
        numbers=plots.calibration,
        draw=plots.draw_calibration,
    ),
}


def listing() -> str:
    """All figures, two lines each."""
    wide = max(map(len, FIGURES))
    lines = []
    for name, figure in FIGURES.items():
        lines.append(f"{name:{wide}}  {figure.about} ({figure.papers})")
        second = "; can compare two models" if figure.compares else ""
        lines.append(f"{'':{wide}}  systems: {figure.needs}{second}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure that was drawn.

    Attributes:
        figure: name of the figure.
        model: model and split, in words.
        numbers: the numbers that are drawn, as JSON holds them.
        files: the pictures that were written.
        compare_with: second model in words; None without one.
    """

    figure: str
    model: str
    numbers: Numbers
    files: tuple[Path, ...]
    compare_with: str | None = None

    def text(self) -> str:
        """The files, one per line."""
        return "".join(f"{path}\n" for path in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "figure": self.figure,
            "model": self.model,
            "compare_with": self.compare_with,
            "files": [str(path.absolute()) for path in self.files],
            "numbers": self.numbers,
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
    to: str | Path | Sequence[str | Path] = "figures",
    count: int | None = None,
    seed: int = 0,
    compare_with: str | Path | None = None,
    after: str | None = None,
    bank: int | None = None,
    device: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Plot:
    """Draw a figure of the papers for a trained model.

    Arguments that are not listed are those of `sureshot.research.evaluation.evaluate`.

    Args:
        models: folder of a checkpoint, or an encoder's name; ``epochs`` draws several.
        to: a ``.png`` or ``.svg`` file, several of them, or a folder that gets both.
        count: queries or pairs to show; None is what suits the figure.
        seed: of the queries that are shown.
        compare_with: a second model, for ``matrices`` and ``tokens``.
        after: second score of ``rerank``; None is the model's own.
        bank: training captions that ``qb_norm`` and ``nnn`` look at, at most; None is 2000.
    """
    names = as_list(models)
    if figure not in FIGURES:
        raise SureshotError(f"Unknown figure {figure!r}; known: {', '.join(FIGURES)}.")
    if len(names) != 1 and figure != "epochs":
        raise SureshotError(
            f"{figure} draws one checkpoint, not {len(names)}; epochs draws several."
        )
    spec = FIGURES[figure]
    if compare_with and not spec.compares:
        able = " and ".join(name for name, one in FIGURES.items() if one.compares)
        raise ArgumentError(
            f"{option('compare_with')} belongs to {able}, whose papers compare two models; "
            f"{figure} does not take it."
        )
    if after is not None and figure != "rerank":
        raise ArgumentError(f"{option('after')} belongs to rerank; {figure} shows one score.")
    if after is not None and after not in AFTER:
        raise ArgumentError(f"{option('after', after)} is unknown; known: {', '.join(AFTER)}.")
    if bank is not None and after not in BANKED:
        banked = " or ".join(name for name in AFTER if name in BANKED)
        raise ArgumentError(f"{option('bank')} belongs to {option('after')} {banked}.")
    if count is not None and not spec.count:
        raise ArgumentError(f"{figure} shows all queries, not {count} of them.")
    notes = Notes(progress or Silent())
    scorers = [load(name, device) for name in (*names, *([compare_with] if compare_with else []))]
    where = {"root": root, "split": split, "protocol": protocol, "videos": videos, "ids": ids}
    source = source_of(data, **where, label=label, experts=experts)
    for scorer in scorers:
        scorer.check_experts(source.experts)
    read = read_source(source, notes)
    captions = training_captions(scorers[0], read, bank or 2000) if after in BANKED else None
    subjects = [
        Subject(scorer, encode(read, scorer, notes, frames=frames, cache=cache), seed)
        for scorer in scorers
    ]
    more: dict[str, Any] = {} if after is None else {"after": after}
    if captions is not None:
        more["bank"] = caption_scores(scorers[0], captions, subjects[0].features, cache)
    numbers = spec.numbers(subjects, count or spec.count, **more)
    return Plot(
        figure=figure,
        model=subjects[0].title,
        numbers=numbers,
        files=tuple(_write(figure, spec.draw(subjects, numbers), to)),
        compare_with=subjects[1].title if compare_with else None,
    )


_OTHER_KINDS = frozenset({".pdf", ".jpg", ".jpeg", ".eps", ".ps", ".tif", ".tiff", ".webp"})


def _write(name: str, figure: "Figure", to: str | Path | Sequence[str | Path]) -> list[Path]:
    """Write a figure into the files named, or as both kinds into a folder."""
    named = list(map(expand, as_list(to)))
    for path in named:
        if path.suffix.lower() in _OTHER_KINDS:
            raise ArgumentError(f"{plain(path)}: figures are written as {' or '.join(SUFFIXES)}.")
    if len(named) == 1 and named[0].suffix.lower() not in SUFFIXES:
        named = [named[0] / f"{name}{suffix}" for suffix in SUFFIXES]
    for path in named:
        save_figure(figure, path)
    return named
