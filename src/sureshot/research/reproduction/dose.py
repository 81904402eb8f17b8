"""Dose and response: the gap of a mechanism to its control, at several values of one dial.

A real effect grows with its cause. Made worlds that differ in one dial are asked with the same
table, a folder each; what they have in common is read here from the folders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sureshot.formats import read_json
from sureshot.metrics.paired import Gap, paired_gap, recall_at_one
from sureshot.research.figures.canvas import SERIES, add_legend, label_axes, new_panels, save_figure
from sureshot.research.reproduction.page import Facts
from sureshot.research.reproduction.ranks import TableRanks, read_table_ranks
from sureshot.research.reproduction.tables import Table, load_tables

_MEASURES = {"R@1": False, "first hits that fit": True}  # whether a hit counts that truly fits
_SEED = 0  # of the videos that are drawn
_APART = 0.012  # of the axis, between lines at the same dose


@dataclass(frozen=True, slots=True)
class DoseResponse:
    """The gap of one mechanism in one world.

    Attributes:
        mechanism: what is in one row and not in the other.
        measure: ``R@1`` of the own video, or the share of ``first hits that fit``, in percent.
        dose: value of the dial.
        gap: what the mechanism gives, in points.
        folder: where the table of this world lies.
    """

    mechanism: str
    measure: str
    dose: float
    gap: Gap
    folder: Path


def responses(table: Table, folders: Sequence[Path]) -> list[DoseResponse]:
    """The gaps of each mechanism of a table, by mechanism, measure and dose.

    Args:
        table: a table with a dial.
        folders: folders of results; those without this table are passed over.
    """
    found = []
    for folder in folders:
        tests = read_table_ranks(folder / f"{table.name}.npz")
        about = folder / f"{table.name}.json"
        if not tests or not about.exists():
            continue
        dose = Facts(**read_json(about)).dials.get(table.dial)
        ranks = next(iter(tests.values()))
        if dose is None:
            continue
        for mechanism, more, less in table.compared:
            for measure, fits in _MEASURES.items():
                gap = _gap(ranks, more, less, fits=fits)
                if gap is not None:
                    found.append(
                        DoseResponse(
                            mechanism=mechanism,
                            measure=measure,
                            dose=float(dose),
                            gap=gap,
                            folder=folder,
                        )
                    )
    order = [mechanism for mechanism, _, _ in table.compared]
    measures = list(_MEASURES)
    return sorted(
        found, key=lambda x: (order.index(x.mechanism), measures.index(x.measure), x.dose)
    )


def dosed_tables() -> list[Table]:
    """The tables that have a dial."""
    return [table for table in load_tables().values() if table.dial]


def draw_doses(table: Table, found: Sequence[DoseResponse], path: Path) -> bool:
    """Draw the gaps against the dial, a line a mechanism, a panel a measure.

    Returns:
        False where there are fewer than two doses, and nothing is drawn.

    Raises:
        SureshotError: matplotlib is not installed, or the file cannot be written.
    """
    doses = sorted({one.dose for one in found})
    if len(doses) < 2:
        return False
    figure, panels = new_panels(len(_MEASURES), 3.4, width=8.5)
    wide = doses[-1] - doses[0]
    names = [name for name, _, _ in table.compared]
    for axes, measure in zip(panels, _MEASURES, strict=True):
        for place, name in enumerate(names):
            own = [one for one in found if (one.mechanism, one.measure) == (name, measure)]
            at = np.array([one.dose for one in own]) + _APART * wide * (place - len(names) / 2)
            gaps = np.array([[one.gap.value, one.gap.low, one.gap.high] for one in own])
            if not len(gaps):
                continue
            colour = SERIES[place % len(SERIES)]
            around = np.abs(gaps[:, 1:].T - gaps[:, 0])
            style: dict[str, Any] = {"color": colour, "lw": 1.4, "ms": 4, "capsize": 2}
            axes.errorbar(at, gaps[:, 0], around, fmt="o-", label=name, elinewidth=0.9, **style)
        axes.axhline(0, color="0.3", lw=0.8)
        axes.set_xticks(doses)
        label_axes(axes, table.dial, f"{measure}: points more than its control")
        axes.tick_params(labelleft=True)
    add_legend(panels[0], loc="upper left")
    save_figure(figure, path)
    return True


def dose_lines(found: Sequence[DoseResponse]) -> list[str]:
    """A table of the gaps in Markdown, a row a mechanism and measure, a column a dose."""
    doses = sorted({one.dose for one in found})
    lines = [
        f"| | | {' | '.join(f'{dose:g}' for dose in doses)} |",
        f"|---|---|{'---|' * len(doses)}",
    ]
    for mechanism, measure in dict.fromkeys((one.mechanism, one.measure) for one in found):
        own = {x.dose: x.gap for x in found if (x.mechanism, x.measure) == (mechanism, measure)}
        cells = [_shown(own[dose]) if dose in own else "" for dose in doses]
        lines.append(f"| {mechanism} | {measure} | {' | '.join(cells)} |")
    return lines


def _shown(gap: Gap) -> str:
    return f"{gap.value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"


def _gap(ranks: TableRanks, more: str, less: str, *, fits: bool) -> Gap | None:
    one, other = ranks.of_row(more, fits=fits), ranks.of_row(less, fits=fits)
    if one is None or other is None or len(set(one.seeds) & set(other.seeds)) < 2:
        return None
    return paired_gap(one, other, recall_at_one, np.random.default_rng(_SEED))
