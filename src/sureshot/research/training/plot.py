"""Curves of a run, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from sureshot.research.figures.canvas import (
    BLUE,
    ORANGE,
    add_legend,
    entitle,
    label_axes,
    new_figure,
    save_figure,
)


def draw(
    path: Path,
    losses: Sequence[float],
    scores: Sequence[tuple[int, float]] = (),
    *,
    title: str = "",
) -> None:
    """Draw the loss of each step, its running mean, and the score after each epoch.

    Args:
        path: where the picture goes; its suffix (``.png``, ``.svg``) says what it is.
        losses: loss of each step, from the first.
        scores: number of the steps done and the score on the validation set, after each epoch.
        title: words above the plot.

    Raises:
        SureshotError: matplotlib is not installed, or the picture cannot be written.
    """
    figure = new_figure(4.0)
    axes = figure.add_subplot()
    steps = range(1, len(losses) + 1)
    lines = axes.plot(steps, losses, color=BLUE, alpha=0.3, linewidth=0.8, label="loss")
    lines += axes.plot(steps, running_mean(losses), color=BLUE, label="its running mean")
    label_axes(axes, "step", "loss")
    if scores:
        right = axes.twinx()
        label = "validation score"
        lines += right.plot(*zip(*scores, strict=True), "o-", color=ORANGE, label=label)
        label_axes(right, "", label)
        right.grid(False)
    add_legend(axes, handles=lines)
    entitle(figure, title)
    save_figure(figure, path)


def running_mean(values: Sequence[float], weight: float = 0.95) -> list[float]:
    """Mean of all values up to each, older ones weighing ``weight`` times less a step.

    Examples:
        >>> running_mean([4.0, 4.0, 1.0], 0.5)
        [4.0, 4.0, 2.2857142857142856]
    """
    total = mass = 0.0
    means = []
    for value in values:
        total, mass = weight * total + value, weight * mass + 1
        means.append(total / mass)
    return means
