"""Curves of a run, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from sureshot.errors import SureshotError
from sureshot.files import replace_file

MISSING = "No plot was drawn: matplotlib is not installed. Get it by: pip install 'sureshot[plots]'"


def draw(
    path: Path,
    losses: Sequence[float],
    scores: Sequence[tuple[int, float]] = (),
    *,
    title: str = "",
) -> str | None:
    """Draw the loss of each step, its running mean, and the score after each epoch.

    Args:
        path: where the picture goes; its suffix (``.png``, ``.svg``) says what it is.
        losses: loss of each step, from the first.
        scores: number of the steps done and the score on the validation set, after each epoch.
        title: words above the plot.

    Returns:
        None, or why there is no picture, in a line for the user. A run does not fail for it.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return MISSING
    # A figure of its own, not pyplot, which keeps all figures and may look for a screen.
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(xlabel="step", ylabel="loss", title=title)
    steps = range(1, len(losses) + 1)
    axes.plot(steps, losses, color="tab:blue", alpha=0.3, linewidth=0.8, label="loss")
    axes.plot(steps, running_mean(losses), color="tab:blue", label="its running mean")
    handles, labels = axes.get_legend_handles_labels()
    if scores:
        right = axes.twinx()
        right.set_ylabel("validation score")
        right.plot(*zip(*scores, strict=True), "o-", color="tab:orange", label="validation score")
        more = right.get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    axes.legend(handles, labels, frameon=False)
    try:
        # Without a date, so that the same run draws the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        with replace_file(path) as fresh:
            figure.savefig(fresh, metadata=metadata)
    except (OSError, ValueError) as error:
        raise SureshotError(f"The plot {path} cannot be written: {error}.") from None
    return None


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
