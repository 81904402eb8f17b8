"""A table of ours beside the printed one: text, numbers and a picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sureshot.errors import SureshotError
from sureshot.files import write_json, write_text
from sureshot.metrics.published import Row, rows_of_table
from sureshot.research.figures.canvas import (
    BLUE,
    NORMAL,
    entitle,
    label_axes,
    new_figure,
    save_figure,
    words,
)
from sureshot.research.reproduction.bench import HOME
from sureshot.research.reproduction.needs import published_as
from sureshot.research.reproduction.run_list import write_runs
from sureshot.research.reproduction.runs import Run
from sureshot.research.reproduction.tables import Table, Variant, measure_of
from sureshot.text import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDE, _NAMED = 8.0, 5.0  # inches of a picture, and of them those right of the names of rows
_SHOWN = ("R@1", "R@5", "R@10", "R@Sum", "MnR", "v2t R@1")
_POSTS = {
    False: "No post-processing.",
    True: "No post-processing but where a row says so; DSL looks at all test queries.",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a page says of how it was made.

    Attributes:
        command: command that was typed.
        train: title of what was trained on.
        val: title of what was chosen on.
        tests: title of each test set, that of the training's data set first.
        encoder: name of the encoder.
        training: settings in words.
        encoder_is: ``frozen``, or that it is trained too.
        data: data set of each test set, as the plan names it; ``home`` or nothing where it stands
            in for the paper's.
        dials: what a made world is like; empty for other data.
    """

    command: str
    train: str
    val: str
    tests: Sequence[str]
    encoder: str
    training: str
    encoder_is: str = "frozen"
    data: Sequence[str] = ()
    dials: Mapping[str, float] = field(default_factory=dict)


def write_page(
    folder: Path, table: Table, runs: Sequence[Run], facts: Facts, more: Sequence[str] = ()
) -> list[Path]:
    """Write NAME.md, NAME.csv, NAME.json and, where matplotlib is there, NAME.png and NAME.svg.

    Args:
        folder: where they go.
        table: its title and rows.
        runs: all that ran.
        facts: how they were made.
        more: further lines of the page.

    Returns:
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text, numbers, about, *pictures = (
        folder / f"{table.name}{suffix}" for suffix in (".md", ".csv", ".json", ".png", ".svg")
    )
    ending = [*more, ""] if more else []
    write_text(text, "\n".join([page_text(table, runs, facts), *ending]))
    write_runs(numbers, runs)
    write_json(about, asdict(facts))
    return [text, numbers, about, *_draw(pictures, table, runs, facts)]


def page_text(table: Table, runs: Sequence[Run], facts: Facts) -> str:
    """The page as Markdown."""
    seeds = sorted({run.seed for run in runs})
    lines = [
        f"# {table.title}",
        "",
        f"`{facts.command}`; seeds {', '.join(map(str, seeds))}; trained on {facts.train}, the "
        f"epoch chosen on {facts.val}, tested once; encoder `{facts.encoder}`, "
        f"{facts.encoder_is}; {facts.training}. {_POSTS[any(v.post for v in table.variants)]} Mean "
        "and standard deviation over the seeds.",
    ]
    for place, title in enumerate(facts.tests):
        prefix = "" if place == 0 else f"{title}: "
        data = facts.data[place] if place < len(facts.data) else ""
        lines += ["", f"## {title}", "", *_rows(table, runs, prefix, data)]
        others = _others(table, data) if place == 0 or data else ""
        if others:
            lines += ["", f"Printed too, of systems that are not here: {others}."]
    lines += [
        "",
    ]
    if table.protocol:
        lines += [
            f"The paper's column is another protocol ({table.protocol}): its differences between "
            "rows can be compared with ours, its levels cannot.",
            "",
        ]
    return "\n".join(lines)


def spread(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard deviation; one value alone has none.

    Examples:
        >>> spread([1.0, 2.0], "+"), spread([1.0])
        ('+1.5 ± 0.7', '1.0')
    """
    mean = f"{np.mean(values):{sign}.1f}"
    return f"{mean} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else mean


def gap(more: Sequence[Run], less: Sequence[Run], name: str) -> str:
    """What a score of one row has more than that of another, seed by seed; empty without any."""
    other = {run.seed: run.scores[name] for run in less}
    gaps = [run.scores[name] - other[run.seed] for run in more if run.seed in other]
    return spread(gaps, "+") if gaps else ""


def of_row(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs of a row."""
    return [run for run in runs if run.variant == name]


def _rows(table: Table, runs: Sequence[Run], prefix: str, data: str) -> list[str]:
    control = next((v for v in table.variants if v.control), table.variants[0])
    against = f"R@1 less {'control' if control.control else 'first row'}"
    shown = [name.replace("10", "50") if data == "activitynet" else name for name in _SHOWN]
    measured = [] if table.metric == "R@1" else [table.metric]
    head = ["", *shown, *measured, against, "parameters", "seconds"]
    if table.protocol:
        head.append(f"paper{' R@1' if table.table else ''} (other protocol)")
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    compared = of_row(runs, control.name)
    most = max((len(of_row(runs, variant.name)) for variant in table.variants), default=0)
    for variant in table.variants:
        row = of_row(runs, variant.name)
        if not row:
            continue
        few = len(row) < most
        cells = [
            variant.name + (f" ({counted(len(row), 'seed')})" if few else ""),
            *(spread([run.scores[prefix + name] for run in row]) for name in shown),
            *(spread([measure_of(r.scores, table.metric, prefix) for r in row]) for _ in measured),
            "" if variant is control else gap(row, compared, f"{prefix}R@1"),
            f"{row[0].parameters / 1e6:.2f} M",
            f"{np.mean([run.seconds for run in row]):.0f}",
            *([_printed(table, variant, prefix, data)] if table.protocol else []),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _printed(table: Table, variant: Variant, prefix: str, data: str) -> str:
    """R@1 text to video of the printed rows; nothing where the paper has none, or other data."""
    if variant.paper and not prefix:
        return variant.paper
    if variant.printed is None:
        return ""
    return _values(
        row
        for row in _on(table, prefix, data)
        if (row.method, row.variant) == (variant.method, variant.printed)
        if bool(row.post) == bool(variant.post)
    )


def _others(table: Table, data: str) -> str:
    """The printed rows of methods that no row of ours has, with their R@1."""
    ours = {variant.method for variant in table.variants}
    rows = [row for row in _on(table, "", data) if row.method not in ours and row.r1 is not None]
    names = list(dict.fromkeys(row.name for row in rows))
    return ", ".join(f"{name} {_values(r for r in rows if r.name == name)}" for name in names)


def _on(table: Table, prefix: str, data: str) -> list[Row]:
    """The printed rows of a table that belong beside results on a data set, text to video."""
    rows = [row for row in rows_of_table(table.table) if row.direction == "t2v"]
    if data in ("", HOME):
        # Another data set stands in for the first of the paper's.
        data = "" if prefix else next(iter(table.data), "")
    return [row for row in rows if data and (row.dataset, row.split) == published_as(data)]


def _values(rows: Iterable[Row]) -> str:
    """Printed R@1, with the encoders where they differ."""
    found = list(dict.fromkeys((row.r1, row.encoder) for row in rows if row.r1 is not None))
    if len({encoder for _, encoder in found}) < 2:
        return ", ".join(str(value) for value, _ in found)
    return ", ".join(f"{value} ({encoder or 'not stated'})" for value, encoder in found)


def _draw(paths: Sequence[Path], table: Table, runs: Sequence[Run], facts: Facts) -> Sequence[Path]:
    """Write the picture of a page; none without matplotlib, as the page is of use without it."""
    try:
        figure = draw_rows(table, runs, facts.tests)
    except SureshotError:
        return []
    for path in paths:
        save_figure(figure, path)
    return paths


def draw_rows(table: Table, runs: Sequence[Run], tests: Sequence[str]) -> "Figure":
    """R@1 of each row: a small dot a seed, a large mark for the mean, hollow squares for controls.

    Args:
        table: its title and its rows, of which those that ran are drawn.
        runs: all that ran.
        tests: title of each test set, a panel each; that of the training's data set first.

    Raises:
        SureshotError: matplotlib is not installed.
    """
    done = [variant for variant in table.variants if of_row(runs, variant.name)]
    titles = [words(f"tested on {test}", _NAMED / len(tests)) for test in tests]
    figure = new_figure(1.2 + 0.32 * len(done) + 0.13 * max(map(len, titles)), width=_WIDE)
    panels = figure.subplots(1, len(tests), sharey=True, squeeze=False)[0]
    for place, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        name = "R@1" if place == 0 else f"{tests[place]}: R@1"
        for height, variant in enumerate(reversed(done)):
            values = [run.scores[name] for run in of_row(runs, variant.name)]
            style = {"marker": "s", "mfc": "white"} if variant.control else {"marker": "o"}
            axes.plot(values, [height] * len(values), "o", color="0.6", ms=4, zorder=2)
            axes.plot([np.mean(values)], [height], color=BLUE, ms=7, zorder=3, **style)
        axes.set_title("\n".join(title), fontsize=NORMAL)
        label_axes(axes, "R@1, text to video, %", "")
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.08)
    rows = ["\n".join(words(variant.name, _WIDE - _NAMED - 0.3)) for variant in reversed(done)]
    panels[0].set_yticks(range(len(done)), rows, fontsize=NORMAL)
    panels[0].set_ylim(-0.7, len(done) - 0.3)
    control = "; hollow squares: controls" if any(variant.control for variant in done) else ""
    entitle(figure, table.title, f"small dots: seeds; large marks: their mean{control}")
    return figure
