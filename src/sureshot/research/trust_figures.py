"""Figures of a trust report: reliability, risk by coverage, and sizes of the suggested sets."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64

from sureshot.metrics.confidence import aurc, risk_curve
from sureshot.research import canvas
from sureshot.research.trust_report import OURS, TrustReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_CURVE_POINTS = 400  # of a curve at most
_FEWEST = 10  # queries that a point is about, for its share to say much
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 3)))
_MARKS = ("o", "s", "^", "D")
_SIZES = ((canvas.BLUE, "-", "o"), (canvas.ORANGE, "--", "s"), (canvas.INK, "-.", "^"))


def write(report: TrustReport, folder: Path) -> list[Path]:
    """Write every figure that a report has numbers for, as PNG and SVG, and name the files."""
    paths = []
    for name, numbers, draw in (
        ("reliability", report.reliability, draw_reliability),
        ("risk", report.confidences, risk),
        ("sets", report.sizes, sets),
    ):
        if numbers:
            figure = draw(report)
            for suffix in canvas.SUFFIXES:
                paths.append(folder / f"trust-{name}{suffix}")
                canvas.save_figure(figure, paths[-1])
    return paths


def draw_reliability(report: TrustReport) -> "Figure":
    """Share of right answers against the probability given; below it how many queries each has."""
    figure = canvas.new_figure(5.4, width=4.6)
    top, low = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
    top.plot([0, 1], [0, 1], color=canvas.MUTED, linestyle="--", linewidth=0.9)
    shown = sorted(report.reliability.items(), key=lambda item: item[0] != OURS)
    for place, (name, bins) in enumerate(shown):
        style: canvas.Style = {"color": canvas.SERIES[place], "marker": _MARKS[place % len(_MARKS)]}
        if place:
            style |= {"mfc": "white", "linewidth": 0.9, "linestyle": _DASHES[place]}
        many = bins.count >= _FEWEST
        x, y = bins.probability, bins.right
        top.plot(x[many], y[many], label=name, ms=4.5, zorder=5 - place, **style)
        top.plot(x[~many], y[~many], **(style | {"ms": 2.5, "linestyle": "none"}))
    canvas.label_axes(top, "", "share that is right")
    top.set_ylim(-0.03, 1.03)
    canvas.add_legend(top, loc="upper left")
    name, bins = shown[0]
    bars = low.bar(
        (bins.low + bins.high) / 2, bins.count, (bins.high - bins.low) * 0.9, color=canvas.BLUE
    )
    low.bar_label(bars, fmt="%d", padding=1, fontsize=5.5)
    canvas.label_axes(low, "probability given", "queries")
    low.margins(y=0.22)
    low.set_xlim(-0.02, 1.02)
    note = (
        f"dashed: a true probability; small: bins of fewer than {_FEWEST} queries; bars: queries "
        f"of each bin of {name}"
    )
    return canvas.entitle(figure, _title(report), note)


def risk(report: TrustReport) -> "Figure":
    """Share of wrong answers among the surest queries, for every signal, best first."""
    figure = canvas.new_figure(4.0)
    axes = figure.add_subplot()
    wrong = ~report.right
    ordered = sorted(report.confidences.items(), key=lambda item: aurc(item[1], wrong))
    others = 0
    for name, confidence in ordered:
        label = f"{name}, {canvas.number(aurc(confidence, wrong))}"
        x, y = _curve(*risk_curve(confidence, wrong))
        if name == OURS:
            axes.plot(x, y, color=canvas.BLUE, linewidth=2.6, label=label, zorder=5)
            continue
        colours = canvas.SERIES[1:]
        style: canvas.Style = {
            "color": colours[others % len(colours)],
            # Whose colour comes again has another dash.
            "linestyle": _DASHES[(others + others // len(colours)) % len(_DASHES)],
            "marker": _MARKS[others % len(_MARKS)],
            "markevery": (0.03 * others % 0.25, 0.25),
            "ms": 3,
        }
        axes.plot(x, y, linewidth=1.0, label=label, **style)
        others += 1
    risk_of_all = float(wrong.mean())
    axes.axhline(risk_of_all, color=canvas.MUTED, linestyle=":", linewidth=0.9)
    answered = np.linspace(0.0, 1.0, 101)[1:]
    best = np.maximum(0, 1 - (1 - risk_of_all) / answered)
    axes.fill_between(answered, best, color="0.92", linewidth=0)
    canvas.label_axes(
        axes, "share of the queries that is answered, the surest first", "share that is wrong"
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    place: canvas.Style = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "alignment": "left"}
    canvas.add_legend(axes, title="signal, AURC", **place)
    note = "dotted: chance; grey: no order comes lower; lower is better"
    return canvas.entitle(figure, _title(report), note)


def sets(report: TrustReport) -> "Figure":
    """How large the sets are: for every share of the queries, the size that they do not exceed."""
    figure = canvas.new_figure(3.2, width=4.6)
    axes = figure.add_subplot()
    for (coverage, sizes), (colour, dash, mark) in zip(report.sizes.items(), _SIZES, strict=False):
        ordered = np.sort(sizes).astype(np.float64)
        x, y = _thinned(np.arange(1, len(ordered) + 1) / len(ordered), ordered)
        median = float(np.median(sizes))
        mean = canvas.number(float(sizes.mean()))
        label = f"{100 * coverage:.0f} %: median {median:.0f}, mean {mean}"
        axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.4, label=label)
        axes.plot([0.5], [median], mark, color=colour, ms=5)
    axes.axhline(report.videos, color=canvas.MUTED, linestyle=":", linewidth=0.9)
    _sized(axes, report.videos)
    canvas.label_axes(axes, "share of the queries", "videos in the set, at most")
    axes.set_xlim(0, 1)
    canvas.add_legend(axes, loc="lower right", title="promised coverage")
    note = f"dotted: all {report.videos} videos; markers: half of the queries"
    return canvas.entitle(figure, _title(report), note)


def _sized(axes: "Axes", videos: int) -> None:
    """A logarithmic scale that begins at 0, with plain numbers."""
    axes.set_yscale("symlog", linthresh=1, linscale=0.4)
    steps = [0, *(step * 10**power for power in range(6) for step in (1, 2, 5))]
    ticks = [tick for tick in steps if tick <= videos]
    axes.set_yticks(ticks, list(map(str, ticks)))
    axes.set_yticks([], minor=True)
    axes.set_ylim(0, videos * 1.1)


def _curve(
    coverage: Float64[np.ndarray, " queries"], risk: Float64[np.ndarray, " queries"]
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Without the first few queries, whose share of wrong ones jumps."""
    first = min(max(_FEWEST, len(coverage) // 100), len(coverage)) - 1
    return _thinned(coverage[first:], risk[first:])


def _thinned(
    x: Float64[np.ndarray, " queries"], y: Float64[np.ndarray, " queries"]
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """As many points as can be seen, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(_CURVE_POINTS, len(x))).astype(int))
    return x[chosen], y[chosen]


def _title(report: TrustReport) -> str:
    return report.title or f"{report.queries} queries, {report.videos} videos"
