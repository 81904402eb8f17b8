"""A table of ours next to the printed one: Markdown, numbers and a picture."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from sureshot.errors import SureshotError
from sureshot.files import write_json, write_text
from sureshot.metrics.published import Row, rows_of_table
from sureshot.models.systems.base import Sizes, TextTokens, VideoTokens, load_system
from sureshot.research import canvas
from sureshot.research.reproduction.plan import (
    HOME,
    Table,
    Variant,
    load_datasets,
    measure_of,
)
from sureshot.research.reproduction.runs import Run, TableRanks, write_runs
from sureshot.text import counted, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDE, _NAMED = 8.0, 5.0  # inches of a picture, and of them those right of the names of rows
_SHOWN = ("R@1", "R@5", "R@10", "R@Sum", "MnR", "v2t R@1")
_SHOWN_OF_LONG = ("R@1", "R@5", "R@50", "MnR", "v2t R@1")  # R@Sum has R@10


@dataclass(frozen=True, slots=True)
class Facts:
    """How a page was made, kept as NAME.json.

    ``data`` are the data sets of the tests, as the plan names them; ``home`` or nothing where one
    stands in for the paper's.
    """

    command: str
    train: str
    val: str
    tests: Sequence[str]  # that of the training's data first
    encoder: str
    training: str
    encoder_is: str = "frozen"
    published: bool = False  # data and encoders are the paper's, so its numbers compare with ours
    data: Sequence[str] = ()
    options: Mapping[str, float] = field(default_factory=dict)  # of a synthetic dataset
    note: str = ""  # what is odd about some of the runs
    chosen: bool = True  # an epoch was chosen on ``val``; else the last one counts


def write_page(
    folder: Path, table: Table, runs: Sequence[Run], facts: Facts, more: Sequence[str] = ()
) -> list[Path]:
    """Write NAME.md, NAME.csv, NAME.json and, where matplotlib is there, NAME.png and NAME.svg.

    ``more`` are further lines of the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text, numbers, about, *pictures = (
        folder / f"{table.name}{suffix}" for suffix in (".md", ".csv", ".json", ".png", ".svg")
    )
    write_text(text, "\n".join([page_text(table, runs, facts), *more, *([""] if more else [])]))
    write_runs(numbers, runs)
    write_json(about, asdict(facts))
    try:
        figure = draw_rows(table, runs, facts.tests)
    except SureshotError:  # no matplotlib: the page is of use without a picture
        return [text, numbers, about]
    for path in pictures:
        canvas.save_figure(figure, path)
    return [text, numbers, about, *pictures]


def page_text(table: Table, runs: Sequence[Run], facts: Facts) -> str:
    """The page as Markdown."""
    post = "No post-processing."
    if any(variant.post for variant in table.variants):
        post = "No post-processing but where a row says so; DSL looks at all test queries."
    if len(_by_row(table, runs)) < len(table.variants) and facts.command.endswith(" --claims"):
        post += " Only the rows that a claim compares."
    seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
    epoch = f"the epoch chosen on {facts.val}" if facts.chosen else "the last epoch"
    lines = [
        f"# {table.title}",
        "",
        f"`{facts.command}`; seeds {seeds}; trained on {facts.train}, {epoch}, tested once; "
        f"encoder `{facts.encoder}`, {facts.encoder_is}; "
        f"{facts.training}. {post} Mean and standard deviation over the seeds.",
        *(["", facts.note] if facts.note else []),
    ]
    ours = {variant.method for variant in table.variants}
    for place, (title, data) in enumerate(zip_longest(facts.tests, facts.data, fillvalue="")):
        # Another data set stands in for the first of the paper's, and then none for the second.
        first = next(iter(table.data), "") if place == 0 else ""
        name = first if data in ("", HOME) else data
        of_data = load_datasets()[name].printed if name else None
        paper = [row for row in rows_of_table(table.table) if row.direction == "t2v"]
        printed = [row for row in paper if (row.dataset, row.split) == of_data]
        prefix = f"{title}: " if place else ""
        rows = _rows(table, runs, prefix, data, printed, published=facts.published)
        lines += ["", f"## {title}", "", *rows]
        others = [row for row in printed if row.method not in ours and row.r1]
        if others and facts.published:
            names = dict.fromkeys(row.name for row in others)
            named = [f"{name} {_values(r for r in others if r.name == name)}" for name in names]
            lines += ["", f"Printed too, of systems that are not here: {', '.join(named)}."]
    how = f": {table.protocol}. Here {epoch} counts."
    if not facts.published:
        how = (
            f" are of another protocol ({table.protocol}), so its column has their differences "
            "alone, from its first row that is here."
        )
    return "\n".join([*lines, *(["", f"The paper's numbers{how}"] if table.protocol else []), ""])


def spread(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard deviation; one value alone has none.

    Examples:
        >>> spread([1.0, 2.0], "+"), spread([1.0]), spread([-0.01], "+")
        ('+1.5 ± 0.7', '1.0', '+0.0')
    """
    mean = f"{np.mean(values):{sign}z.1f}"  # no -0.0
    return f"{mean} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else mean


def _by_row(table: Table, runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each row that ran."""
    found = {v.name: [run for run in runs if run.variant == v.name] for v in table.variants}
    return {name: row for name, row in found.items() if row}


def _rows(
    table: Table,
    runs: Sequence[Run],
    prefix: str,
    data: str,
    printed: Sequence[Row],
    *,
    published: bool,
) -> list[str]:
    rows = _by_row(table, runs)
    there = [one for one in table.variants if one.name in rows]
    control = next((one for one in there if one.control), there[0])
    shown = _SHOWN_OF_LONG if data == "activitynet" else _SHOWN
    measured = [] if table.metric == "R@1" else [table.metric]
    minus = f"R@1 minus {'control' if control.control else 'first row'}"
    head = ["", *shown, *measured, minus, "parameters", "seconds"]
    if table.protocol:
        what = table.metric if any(row.paper for row in table.variants) else "R@1"
        head.append(f"paper: {what}" if published else f"paper: {what} minus first")
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    most = max(map(len, rows.values()), default=0)
    levels = {one.name: _level(one, printed, prefix) for one in there}
    first = next((level for level in levels.values() if level is not None), None)
    r1 = f"{prefix}R@1"
    other = {run.seed: run.scores[r1] for run in rows[control.name]}
    for variant in there:
        row = rows[variant.name]
        few = f" ({counted(len(row), 'seed')})" if len(row) < most else ""
        gaps = [run.scores[r1] - other[run.seed] for run in row if run.seed in other]
        level = levels[variant.name]
        paper = ""
        if level is not None and first is not None:
            paper = str(level) if published else f"{level - first:+.1f}"
        cells = [
            variant.name + few,
            *(spread([run.scores[prefix + name] for run in row]) for name in shown),
            *(spread([measure_of(r.scores, table.metric, prefix) for r in row]) for _ in measured),
            spread(gaps, "+") if gaps and variant is not control else "",
            f"{row[0].parameters / 1e6:.2f} M",
            f"{np.mean([run.seconds for run in row]):.0f}",
            *([paper] if table.protocol else []),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _level(variant: Variant, printed: Sequence[Row], prefix: str) -> float | None:
    """What the paper prints for a row: the mean where it prints several."""
    if variant.paper:
        return float(variant.paper) if not prefix else None
    kinds = ("", "none") if variant.encoder == "experts" else ("", variant.encoder)
    found = [
        row.r1
        for row in printed
        if row.method == variant.method and row.variant in variant.printed
        if bool(row.post) == bool(variant.post) and row.r1 is not None
        if not variant.encoder or row.encoder in kinds
    ]
    return round(float(np.mean(found)), 2) if found else None


def _values(rows: Iterable[Row]) -> str:
    """Printed R@1, with the encoders where they differ."""
    found = list(dict.fromkeys((row.r1, row.encoder) for row in rows if row.r1 is not None))
    if len({encoder for _, encoder in found}) < 2:
        return ", ".join(str(value) for value, _ in found)
    return ", ".join(f"{value} ({encoder or 'not stated'})" for value, encoder in found)


def draw_rows(table: Table, runs: Sequence[Run], tests: Sequence[str]) -> "Figure":
    """R@1 of each row that ran, a panel per test set."""
    rows = _by_row(table, runs)
    done = [variant for variant in reversed(table.variants) if variant.name in rows]
    titles = [canvas.words(f"tested on {test}", _NAMED / len(tests)) for test in tests]
    figure = canvas.new_figure(1.2 + 0.32 * len(done) + 0.13 * max(map(len, titles)), width=_WIDE)
    panels = figure.subplots(1, len(tests), sharey=True, squeeze=False)[0]
    for place, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        name = "R@1" if place == 0 else f"{tests[place]}: R@1"
        for height, variant in enumerate(done):
            values = [run.scores[name] for run in rows[variant.name]]
            style = {"marker": "s", "mfc": "white"} if variant.control else {"marker": "o"}
            axes.plot(values, [height] * len(values), "o", color="0.6", ms=4, zorder=2)
            axes.plot([np.mean(values)], [height], color=canvas.BLUE, ms=7, zorder=3, **style)
        axes.set_title("\n".join(title), fontsize=canvas.NORMAL)
        canvas.label_axes(axes, "R@1, text to video, %", "")
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.08)
    names = ["\n".join(canvas.words(variant.name, _WIDE - _NAMED - 0.3)) for variant in done]
    panels[0].set_yticks(range(len(done)), names, fontsize=canvas.NORMAL)
    panels[0].set_ylim(-0.7, len(done) - 0.3)
    control = "; hollow squares: controls" if any(variant.control for variant in done) else ""
    return canvas.entitle(
        figure, table.title, f"small dots: seeds; large marks: their mean{control}"
    )


def unshared_lines(ranks: TableRanks, ids: Sequence[str]) -> list[str]:
    """Recalls of the captions of some of the test videos, in Markdown; all videos are searched."""
    chosen, first = set(ids), next(iter(ranks.values()))
    kept = np.array([query.rsplit("#", 1)[0] in chosen for query in first.queries])
    if not kept.any():
        example = first.queries[0].rsplit("#", 1)[0]
        raise SureshotError(
            f"None of the {len(chosen)} ids of `unshared` of the plan is that of a test video, as "
            f"{plain(example)} is; correct the file. Finished runs are kept."
        )
    lines = [
        f"## Of these, the {len(set(first.owner[kept].tolist()))} videos that share no upload with "
        "a training video",
        "",
        f"Captions of these alone; all {len(first.videos)} videos are searched.",
        "",
        "| | R@1 | R@5 | R@10 |",
        "|---|---|---|---|",
    ]
    for row in dict.fromkeys(row for row, _ in ranks):
        runs = [run for (name, _), run in ranks.items() if name == row]
        cells = [
            spread([float(100 * np.mean(run.texts[kept] <= k)) for run in runs]) for k in (1, 5, 10)
        ]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


# --- costs ----------------------------------------------------------------------------------------


def measure_cost(settings: Mapping[str, Any]) -> dict[str, int]:
    """What a system costs on CLIP ViT-B/16, as in table 2 of UATVR.

    Its ``parameters``, and the multiply-adds of the codes of a ``text`` of 32 words and of a
    ``video`` of 12 frames, and of the score of a ``pair``, by torch's counter.
    """
    from transformers import CLIPConfig, CLIPModel

    with torch.device("meta"), torch.no_grad():
        network: Any = CLIPModel(CLIPConfig(vision_config={"patch_size": 16})).eval()
        channels, dim = network.config.vision_config.hidden_size, network.config.projection_dim
        system = load_system(settings, Sizes(dim=dim, channels=channels)).eval()
        ids = torch.zeros(1, 32, dtype=torch.long)
        pixels = torch.zeros(12, 3, 224, 224)
        texts, text = _counted(lambda: system.texts(_texts(network, ids)))
        videos, video = _counted(lambda: system.videos(_videos(network, pixels)))
        _, pair = _counted(lambda: system.similarity(texts, videos))
    own = [weight for weight in system.parameters() if weight.requires_grad]
    parameters = sum(weight.numel() for weight in (*network.parameters(), *own))
    parameters -= system.shares_scale  # one logit scale for both
    return {"parameters": parameters, "text": text, "video": video, "pair": pair}


def write_costs(folder: Path, table: Table) -> list[Path]:
    """Write NAME.md and NAME.json of a table of costs on CLIP ViT-B/16, and name them."""
    folder.mkdir(parents=True, exist_ok=True)
    costs = {variant.name: measure_cost(variant.system) for variant in table.variants}
    numbers, page = folder / f"{table.name}.json", folder / f"{table.name}.md"
    write_json(numbers, costs)
    lines = [
        f"# {table.title}",
        "",
        f"`sureshot reproduce {table.name}`; {table.protocol}; no data, no weights. Multiply-adds "
        "(a billion is 1 G) by torch's counter: of the code of a text, of a video, and of the "
        "score of a pair whose codes are there. Hours of training are not measured here.",
        "",
        "| | parameters | paper | text | video | pair |",
        "|---|---|---|---|---|---|",
    ]
    for variant in table.variants:
        cost = costs[variant.name]
        lines.append(
            f"| {variant.name} | {cost['parameters'] / 1e6:.2f} M | {variant.paper} M "
            f"| {cost['text'] / 1e9:.2f} G | {cost['video'] / 1e9:.2f} G "
            f"| {cost['pair'] / 1e3:.1f} k |"
        )
    write_text(page, "\n".join([*lines, ""]))
    return [page, numbers]


def _texts(network: Any, ids: Tensor) -> TextTokens:
    seen = network.text_model(input_ids=ids)
    words = network.text_projection(seen.last_hidden_state)
    sentence = network.text_projection(seen.pooler_output)
    return TextTokens(sentence, words, torch.ones_like(ids, dtype=torch.bool))


def _videos(network: Any, pixels: Tensor) -> VideoTokens:
    seen = network.vision_model(pixel_values=pixels)
    frames = network.visual_projection(seen.pooler_output)[None]
    patches = frames.new_zeros(1, len(pixels), 0, frames.shape[2])
    mask = torch.ones(1, len(pixels), dtype=torch.bool)
    return VideoTokens(frames, patches, seen.pooler_output[None], mask)


def _counted(compute: Callable[[], Any]) -> tuple[Any, int]:
    """A result and its multiply-adds: half the counter's operations."""
    with FlopCounterMode(display=False) as counter:
        result = compute()
    return result, counter.get_total_flops() // 2
