"""From a model and a split to the files of a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from sureshot.errors import ArgumentError, option
from sureshot.models.loading import load
from sureshot.research.figures.canvas import SUFFIXES, save_figure
from sureshot.research.figures.catalogue import Drawing, Wish, entry_of
from sureshot.research.figures.rank_changes import After
from sureshot.research.figures.subject import Subject
from sureshot.research.listener import Listener, Notes, Silence
from sureshot.research.scores import caption_scores
from sureshot.research.source import (
    BANKED,
    check_experts,
    encode,
    read_source,
    source_of,
    training_captions,
)


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
    listener: Listener | None = None,
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
        listener: hears how far the work is.

    Raises:
        ArgumentError: arguments that do not go together.
        SureshotError: there is no such figure, the model does not have what it shows, matplotlib is
            missing, or a file cannot be read or written.
    """
    names = [models] if isinstance(models, str | Path) else models
    entry = entry_of(figure, len(names), beside=beside is not None)
    second = _second(figure, after)
    notes = Notes(listener or Silence())
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
    drawing = entry.make(subjects, count or entry.count, Wish(second, known, compared))
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
