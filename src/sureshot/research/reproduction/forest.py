"""The picture of all claims: what was measured, how sure it is, and what the papers print."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sureshot.metrics.verdicts import Verdict
from sureshot.research.figures.canvas import (
    BLUE,
    INK,
    MUTED,
    NORMAL,
    ORANGE,
    PALE,
    SMALL,
    label_axes,
    new_figure,
    save_figure,
    words,
)
from sureshot.research.reproduction.claims import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Mapping[Verdict, str] = {
    "supported": "#009e73",
    "contradicted": ORANGE,
    "ruled out": BLUE,
    "too noisy to tell": MUTED,
}
_WIDE, _NAMED, _ROW = 9.0, 4.4, 0.3  # inches


def draw_forest(found: Mapping[str, Sequence[Finding]], path: Path) -> bool:
    """Draw the gaps of all claims that were measured, those of each data set below each other.

    A dot is the gap and its line the 95 % interval; a hollow diamond is the gap that the paper
    prints; a grey band is what would not have been seen with 80 % power.

    Args:
        found: findings by the title of the test set.
        path: file of the picture.

    Returns:
        False where nothing was measured, and nothing drawn.

    Raises:
        SureshotError: matplotlib is not installed, or the file cannot be written.
    """
    shown = {
        title: [one for one in findings if one.gap is not None] for title, findings in found.items()
    }
    shown = {title: findings for title, findings in shown.items() if findings}
    if not shown:
        return False
    heights = [len(findings) + 1.5 for findings in shown.values()]
    figure = new_figure(_ROW * sum(heights) + 1.1, width=_WIDE)
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, findings) in zip(panels, shown.items(), strict=True):
        _panel(axes, title, findings)
    _explain(panels[heights.index(max(heights))])  # a small one has no room for it
    save_figure(figure, path)
    return True


def _panel(axes: "Axes", title: str, findings: Sequence[Finding]) -> None:
    names = []
    for height, one in zip(range(len(findings) - 1, -1, -1), findings, strict=True):
        claim, gap, visible = one.claim, one.gap, one.decision.visible
        if gap is None:
            continue
        colour = COLOURS.get(one.decision.verdict, PALE)
        if visible is not None:
            axes.barh(height, 2 * visible, left=-visible, height=0.8, color="0.93", zorder=1)
        axes.plot([gap.low, gap.high], [height, height], color=colour, lw=1.8, zorder=3)
        axes.plot([gap.value], [height], "o", color=colour, ms=5, zorder=4)
        if claim.printed_gap is not None:
            axes.plot([claim.printed_gap], [height], "D", mfc="white", mec=INK, ms=5, zorder=5)
        unit = "" if claim.metric == "R@1" else f" ({claim.metric})"
        label = f"{claim.decided_with}: {claim.says}{unit}"
        names.append("\n".join(words(label, _NAMED)))
    axes.axvline(0, color=INK, lw=0.8, zorder=2)
    axes.set_yticks(range(len(findings) - 1, -1, -1), names, fontsize=SMALL)
    axes.set_ylim(-0.7, len(findings) - 0.3)
    axes.set_title(title, fontsize=NORMAL, loc="left")
    label_axes(axes, "gap in points", "")
    axes.grid(visible=False, axis="y")
    axes.use_sticky_edges = False  # a band of what is not visible must not end the picture
    axes.autoscale_view(scaley=False)


def _explain(axes: "Axes") -> None:
    """What the colours mean."""
    for verdict, colour in COLOURS.items():
        axes.plot([], [], "o-", color=colour, label=verdict)
    axes.plot([], [], "D", mfc="white", mec=INK, label="printed")
    axes.legend(fontsize=SMALL, loc="lower right", frameon=True)
