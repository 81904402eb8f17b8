"""The papers' uncertainties as confidences, in Markdown."""

from collections.abc import Iterator, Sequence

import numpy as np

from sureshot.research.reproduction.doubts import Doubt

ABOUT = (
    "A doubt is good if it is larger where the first hit does not fit the caption: AUROC is "
    "the chance of that (0.5 knows nothing, below it is upside down). *Not its own* counts "
    "every first hit but the caption's own video as wrong, as benchmarks do: there the known "
    "ambiguity of a caption is the control that must know. *Ambiguity* is the rank correlation "
    "with the number of videos that truly fit. *Saved* is what a doubt is worth as a "
    "probability: how much of the squared error it saves that always saying the base rate "
    "makes, by a logistic curve fitted on the other half of the videos; *off* is its "
    "calibration error in points. Sureshot's percentage is judged as it is, learned on the "
    "validation set. Mean ± deviation over the seeds."
)


def doubt_lines(doubts: Sequence[Doubt]) -> Iterator[str]:
    """A table in Markdown, a line a row and doubt; `ABOUT` says what its columns are."""
    yield "| row | doubt | AUROC, first hit does not fit | not its own | ambiguity | saved | off |"
    yield "|---|---|---|---|---|---|---|"
    for doubt in doubts:
        cells = [
            doubt.row,
            doubt.name,
            _spread(doubt.auroc),
            _spread(doubt.own),
            _spread(doubt.ambiguity) if doubt.ambiguity else "",
            f"{_spread(doubt.saved, 1)} %",
            _spread(doubt.off, 1),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _spread(values: Sequence[float], digits: int = 2) -> str:
    mean = f"{np.nanmean(values):.{digits}f}"
    return f"{mean} ± {np.nanstd(values, ddof=1):.{digits}f}" if len(values) > 1 else mean
