"""A table of ours beside the printed one: text, numbers and a picture."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from sureshot.files import replace_file, write_json, write_text
from sureshot.metrics.published import Row, published
from sureshot.research.figures.canvas import save
from sureshot.research.reproduction.runs import Run
from sureshot.research.reproduction.table import Table, Variant

_SHOWN = ("R@1", "R@5", "R@10", "R@Sum", "MnR", "v2t R@1")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a page says of how it was made.

    Attributes:
        command: that was typed.
        train: title of what was trained on.
        val: title of what was chosen on.
        tests: title of each test set, that of the training's data set first.
        encoder: name of the encoder.
        training: settings in words.
    """

    command: str
    train: str
    val: str
    tests: Sequence[str]
    encoder: str
    training: str


def write_page(folder: Path, table: Table, runs: Sequence[Run], facts: Facts) -> list[Path]:
    """Write NAME.md, NAME.csv, NAME.json and, where matplotlib is there, NAME.png and NAME.svg.

    Returns:
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [folder / f"{table.name}{suffix}" for suffix in (".md", ".csv", ".png", ".svg")]
    write_text(names[0], page(table, runs, facts))
    _write_csv(names[1], runs)
    about = folder / f"{table.name}.json"
    write_json(about, asdict(facts))
    drawn = _draw(names[2:], table, runs, facts)
    return [*names[:2], about, *drawn]


def page(table: Table, runs: Sequence[Run], facts: Facts) -> str:
    """The page as Markdown."""
    seeds = sorted({run.seed for run in runs})
    lines = [
        f"# {table.title}",
        "",
        f"`{facts.command}`; seeds {', '.join(map(str, seeds))}; trained on {facts.train}, the "
        f"epoch chosen on {facts.val}, tested once; encoder `{facts.encoder}`, frozen; "
        f"{facts.training}. No post-processing. Mean and standard deviation over the seeds.",
    ]
    for place, title in enumerate(facts.tests):
        prefix = "" if place == 0 else f"{title}: "
        lines += ["", f"## {title}", "", *_rows(table, runs, prefix)]
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


def _values(runs: Sequence[Run], variant: Variant, name: str) -> list[float]:
    """A score of a row, of each seed."""
    return [run.scores[name] for run in runs if run.variant == variant.name]


def _spread(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard deviation; one value alone has none."""
    mean = f"{np.mean(values):{sign}.1f}"
    return f"{mean} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else mean


def _rows(table: Table, runs: Sequence[Run], prefix: str) -> list[str]:
    control = next((v for v in table.variants if v.control), table.variants[0])
    against = f"R@1 less {'control' if control.control else 'first row'}"
    head = ["", *_SHOWN, against, "parameters", "seconds"]
    if table.protocol:
        head.append(f"paper{' R@1' if table.table else ''} (other protocol)")
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for variant in table.variants:
        own = [run for run in runs if run.variant == variant.name]
        if not own:
            continue
        shown = [_spread(_values(runs, variant, prefix + name)) for name in _SHOWN]
        cells = [variant.name, *shown]
        cells += [
            _gap(runs, variant, control, prefix + "R@1"),
            f"{own[0].parameters / 1e6:.2f} M",
            f"{np.mean([run.seconds for run in own]):.0f}",
            *([_printed(table, variant, prefix)] if table.protocol else []),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _gap(runs: Sequence[Run], variant: Variant, control: Variant, name: str) -> str:
    """Difference to the control, seed by seed."""
    if variant is control:
        return ""
    ours = {run.seed: run.scores[name] for run in runs if run.variant == variant.name}
    theirs = {run.seed: run.scores[name] for run in runs if run.variant == control.name}
    gaps = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    return _spread(gaps, "+") if gaps else ""


def _printed(table: Table, variant: Variant, prefix: str) -> str:
    """R@1 text to video of the printed row; nothing where the paper has none, or other data."""
    if variant.paper and not prefix:
        return variant.paper
    if prefix or variant.printed is None:
        return ""
    rows: list[Row] = published("msrvtt", method=variant.method, direction="t2v")
    found = [r for r in rows if r.table == table.table and r.variant == variant.printed]
    return f"{found[0].r1}" if found else ""


def _write_csv(path: Path, runs: Sequence[Run]) -> None:
    names = list(dict.fromkeys(name for run in runs for name in run.scores))
    with replace_file(path) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["row", "seed", "epoch", "validation", "parameters", "seconds", "milliseconds", *names]
        )
        for run in runs:
            values = [run.scores.get(name, "") for name in names]
            about = [
                run.epoch,
                f"{run.validation:.2f}",
                run.parameters,
                run.seconds,
                run.milliseconds,
            ]
            writer.writerow([run.variant, run.seed, *about, *values])


def _draw(paths: Sequence[Path], table: Table, runs: Sequence[Run], facts: Facts) -> list[Path]:
    """R@1 of each row: a dot a seed, a bar for the mean; shapes and greys, so that it prints."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return []
    done = [v for v in table.variants if any(run.variant == v.name for run in runs)]
    figure = Figure(figsize=(8, 0.9 + 0.32 * len(done)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(facts.tests), sharey=True, squeeze=False)[0]
    for place, (axis, title) in enumerate(zip(axes, facts.tests, strict=True)):
        name = "R@1" if place == 0 else f"{title}: R@1"
        for height, variant in enumerate(reversed(done)):
            values = _values(runs, variant, name)
            style = {"marker": "s", "mfc": "white"} if variant.control else {"marker": "o"}
            axis.plot(values, [height] * len(values), "o", color="0.65", ms=4, zorder=2)
            axis.plot([np.mean(values)], [height], color="#1f4e79", ms=7, zorder=3, **style)
        axis.set_title(f"tested on {title}", fontsize=9)
        axis.set_xlabel("R@1, text to video, %", fontsize=9)
        axis.grid(axis="x", color="0.9")
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(done)), [v.name for v in reversed(done)], fontsize=8)
    figure.suptitle(f"{table.title}; small dots: seeds, large: mean", fontsize=10)
    for path in paths:
        save(figure, path)
    return list(paths)
