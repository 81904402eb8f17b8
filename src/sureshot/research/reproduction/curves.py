"""Learning curves: whether training was long enough, for some rows of a table."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from sureshot.research.figures.canvas import SERIES, add_legend, label_axes, new_figure, save_figure
from sureshot.research.reproduction.run_list import read_runs

_TABLES = ("controls", "systems")  # the first that there is


def draw_curves(folder: Path, path: Path, rows: Collection[str]) -> bool:
    """Draw the score on the validation set after each epoch, a line a row, the mean of its seeds.

    Args:
        folder: folder of results.
        path: file of the picture.
        rows: rows that are drawn.

    Returns:
        False where no run of these rows has a curve, and nothing is drawn.

    Raises:
        SureshotError: matplotlib is not installed, or the file cannot be written.
    """
    for name in _TABLES:
        runs = [run for run in read_runs(folder / f"{name}.csv") if len(run.curve) > 1]
        runs = [run for run in runs if run.variant in rows]
        if runs:
            break
    else:
        return False
    figure = new_figure(3.6, width=7.5)
    axes = figure.subplots()
    for place, row in enumerate(dict.fromkeys(run.variant for run in runs)):
        curves = [run.curve for run in runs if run.variant == row]
        length = min(map(len, curves))
        mean = np.mean([curve[:length] for curve in curves], axis=0)
        style = "-" if place < len(SERIES) else "--"
        colour = SERIES[place % len(SERIES)]
        axes.plot(np.arange(1, length + 1), mean, style, color=colour, lw=1.2, label=row)
    label_axes(axes, "epoch", "sum of six recalls, validation")
    add_legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)
    return True
