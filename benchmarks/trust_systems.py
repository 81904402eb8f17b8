"""What the uncertainties of the papers are worth as confidences: results/trust/systems.md.

    SURESHOT_DATA=... python -m benchmarks.trust_systems [--plan results/frame-subset.toml]
        [--cache DIR] [--seeds 3] [--part 1/2] [--to results/trust]

Systems are trained as for the tables of results/, a calibration card is made of each on the
validation videos, and everything is asked of all captions of the test videos: does the signal tell
first results that are right (the annotated video) from wrong ones? Raw scores, no hub correction.
Finished runs are kept in DIR/trust-runs; with --part only every N-th is made and no page written.
"""

import argparse
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders import Encoder
from sureshot.models.similarity import ModelSimilarity
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.reproduction.plan import (
    HOME,
    Bench,
    Features,
    Place,
    Plan,
    Variant,
    read_plan,
    settings_of,
)
from sureshot.research.reproduction.runs import PlannedRun, cells, recipe_of
from sureshot.research.scores import similarity, text_measures
from sureshot.research.training.recipe import resolve_paths
from sureshot.research.training.run import train_on
from sureshot.trust.fit import fit_card
from sureshot.trust.report import BEST, OURS, TrustReport, measure

_NAMED: dict[str, str | dict[str, Any]] = {
    "CLIP4Clip": "clip4clip",
    "X-Pool": "xpool",
    "DUQ": "duq",
    "DUQ as printed": {"like": "duq", "mode": "paper"},
    "UATVR": "uatvr",
    "UATVR as printed": {"like": "uatvr", "mode": "paper"},
    "DVTR + CLIP4Clip": {"name": "dvtr", "base": "clip4clip"},
    "DVTR + CLIP4Clip as printed": {"name": "dvtr", "base": "clip4clip", "mode": "paper"},
    "PCME": "pcme",
}
SYSTEMS = [Variant(name, settings_of(system)) for name, system in _NAMED.items()]
_PLAIN = (BEST, "margin", "softmax probability", "entropy", "energy")
_EVIDENCE = ("DUQ 1-u, ReLU evidence", "DUQ 1-u, softplus evidence", "DUQ 1-u, exp evidence")
Row = dict[str, Any]


def main() -> None:
    """Train what is not there, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, default=Path("results/frame-subset.toml"))
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part")
    parser.add_argument("--to", type=Path, default=Path("results/trust"))
    options = parser.parse_args()
    plan = read_plan(options.plan)
    if plan.home is None:
        parser.error(f"{options.plan} has no [home]")
    bench = Bench(plan, options.plan.parent, cache=options.cache)
    encoder, home = bench.encoder(plan.encoder), bench.features(plan.home, plan.encoder)
    place = Place(HOME, plan.home)
    whole = replace(resolve_paths(plan.home.test, options.plan.parent), protocol="full").load()
    test = extract(whole, encoder, frames=plan.encoder.frames, cache=options.cache)
    planned = cells(SYSTEMS, place, options.seeds)
    first, step = (int(n) for n in (options.part or "1/1").split("/"))
    kept = options.cache / "trust-runs"
    kept.mkdir(parents=True, exist_ok=True)
    rows = []
    for cell in planned[first - 1 :: step]:
        path = kept / f"{cell.variant.name.replace(' ', '-')}-{cell.seed}.json"
        if not path.exists():
            values = trained(cell, plan, encoder, home, test)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(values, indent=1) + "\n", "utf-8")
            partial.replace(path)
            print(cell.variant.name, cell.seed, flush=True)
        rows.append(json.loads(path.read_text("utf-8")))
    if options.part is None:
        write(rows, options.seeds, options.to)


def trained(
    cell: PlannedRun, plan: Plan, encoder: Encoder, home: Features, test: SplitFeatures
) -> Row:
    """Train a system, calibrate it on validation videos, and measure it on test captions."""
    with tempfile.TemporaryDirectory() as folder:
        fitted = train_on(
            recipe_of(cell, plan), encoder, [home.train], home.val, Path(folder) / "run"
        )
        model = Checkpoint.from_pretrained(fitted.folder).model
    known, owner = similarity(ModelSimilarity(model), home.val), home.val.split.owner()
    relevant = owner[:, None] == np.arange(known.shape[1])
    card = fit_card(known, relevant, owner)
    report = measure(
        similarity(ModelSimilarity(model), test),
        test.split.owner(),
        card=card,
        papers=text_measures(model, test),
        scale=float(model.system.scale.detach()),
    )
    return {"system": cell.variant.name, "seed": cell.seed, **numbers(report)}


def numbers(report: TrustReport) -> Row:
    """What the page shows of a report."""
    ours = report.probabilities[0]
    sets = {f"coverage {row.coverage:.0%}": row.covered.value for row in report.sets}
    absent = {row.signal: row.auroc.value for row in report.absent}
    return {
        "right": float(report.right.mean()),
        "auroc": {row.signal: row.auroc.value for row in report.orders},
        "brier": ours.brier.value / ours.brier_of_base_rate,
        "ece": ours.ece - ours.ece_floor,
        **sets,
        "absent": absent[BEST],
        "hubness": report.hubness,
    }


def write(rows: list[Row], seeds: int, folder: Path) -> None:
    """The page, and the numbers beside it."""
    names = [variant.name for variant in SYSTEMS]
    own = {name: [row for row in rows if row["system"] == name] for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "systems.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    lines = [
        "# The papers' uncertainties as confidences",
        "",
        f"`python -m benchmarks.trust_systems --cache DIR --seeds {seeds}`: trained and calibrated "
        "as the docstring says, on the data of [results](../README.md); 9520 captions of 476 test "
        "videos, right is the annotated video, raw scores. AUROC of a right first result; 0.5 is "
        f"chance, below it the signal is upside down. Mean ± deviation of {seeds} seeds.",
        "",
        "## Signals of any system",
        "",
        "| | R@1 | " + " | ".join((*_PLAIN, *_EVIDENCE)) + " | ours, p_top1 |",
        "|---|" + "---|" * (len(_PLAIN) + len(_EVIDENCE) + 2),
    ]
    for name, runs in own.items():
        cells = [_shown([100 * run["right"] for run in runs], 1)]
        cells += [_shown([run["auroc"][key] for run in runs]) for key in (*_PLAIN, *_EVIDENCE)]
        cells.append(_shown([run["auroc"][OURS] for run in runs]))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## What each paper defines",
        "",
        "The uncertainty turned round, so that a larger value is surer.",
        "",
        "| | signal | AUROC | less that of the highest similarity |",
        "|---|---|---|---|",
    ]
    for name, runs in own.items():
        for key in runs[0]["auroc"]:
            if key.startswith("minus "):
                values = [run["auroc"][key] for run in runs]
                gaps = [run["auroc"][key] - run["auroc"][BEST] for run in runs]
                signal = key.removeprefix("minus ")
                lines.append(f"| {name} | {signal} | {_shown(values)} | {_shown(gaps, 3, '+')} |")
    lines += [
        "",
        "## Our calibration of each",
        "",
        "| | Brier over that of the base rate | ECE less its floor | coverage at 80 / 90 / 95 % | "
        "AUROC, own video taken away | hubness |",
        "|---|---|---|---|---|---|",
    ]
    for name, runs in own.items():
        held = " / ".join(
            f"{100 * np.mean([run[f'coverage {share}'] for run in runs]):.1f}"
            for share in ("80%", "90%", "95%")
        )
        columns = [_shown([run[key] for run in runs]) for key in ("brier", "ece")]
        more = [_shown([run[key] for run in runs]) for key in ("absent", "hubness")]
        lines.append(f"| {name} | " + " | ".join([*columns, held, *more]) + " |")
    (folder / "systems.md").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))


def _shown(values: list[float], digits: int = 3, sign: str = "") -> str:
    mean = f"{np.mean(values):{sign}.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


if __name__ == "__main__":
    main()
