"""The card of a trained model: what its own files say, and nothing else.

Settings are those of ``config.json``, results those that `sureshot evaluate --record` kept in
``evaluations.json``, calibration that of ``trust.json``.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from sureshot.errors import ModelError, SureshotError
from sureshot.files import CARD as TRUST
from sureshot.files import write_json, write_text
from sureshot.metrics.report import RecallReport
from sureshot.models.huggingface import (
    CONFIG,
    ENCODER,
    MEASURED,
    README,
    WEIGHTS,
    without_folders,
)
from sureshot.settings import read_json
from sureshot.trust.card import load_card

_WAYS = {"t2v": "text to video", "v2t": "video to text"}


def record(folder: Path, report: RecallReport) -> None:
    """Keep the raw recalls of an evaluation in the folder of the model, and renew its card.

    Those of the same test with as many frames are replaced.
    """
    lines = []
    for line in report.raw:
        noted: dict[str, Any] = {"direction": line.direction, "queries": line.recall.n}
        for k in report.ks:
            ends = line.intervals.get(f"r{k}")
            interval = [] if ends is None else [ends.low, ends.high]
            noted[f"R@{k}"] = [getattr(line.recall, f"r{k}"), *interval]
        lines.append(noted | {"MdR": line.recall.median})
    new = {
        "test": report.title,
        "frames": report.setting.frames,
        "videos": report.setting.videos,
        "out_of_domain": report.out_of_domain,
        "resamples": report.resamples,
        "seed": report.seed,
        "recalls": lines,
    }
    same = (new["test"], new["frames"])
    others = [one for one in _recorded(folder) if (one["test"], one["frames"]) != same]
    write_json(folder / MEASURED, [*others, new])
    write_text(folder / README, model_card(folder))


def _recorded(folder: Path) -> list[dict[str, Any]]:
    try:
        found = read_json(folder / MEASURED)
        for one in found:
            _ = [_WAYS[line["direction"]] for line in one["recalls"]]
            _ = one["test"], one["frames"], one["out_of_domain"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(
            f"{folder / MEASURED} cannot be read; delete it and record the evaluations again."
        ) from None
    return list(found)


def model_card(folder: Path, name: str = "FOLDER") -> str:
    """The card in Markdown, metadata for the hub at its top; commands call the model ``name``."""
    return "\n".join(_lines(folder, read_json(folder / CONFIG), name)) + "\n"


def _lines(folder: Path, config: Mapping[str, Any], name: str) -> Iterator[str]:
    system, noted = config["system"]["name"], config["encoder"]
    recipe = config.get("recipe", {})
    began = recipe.get("encoder", {}).get("name", ENCODER)
    encoder = without_folders(began if noted["name"] == ENCODER else noted["name"])
    own = f", which was trained with it and is in the folder `{ENCODER}`"
    yield f"---\nlibrary_name: sureshot\ntags: [video-text-retrieval, {system}]\n---"
    yield f"\n# {system} on {encoder}\n"
    yield (
        f"A text-to-video retrieval model of {_count(folder / WEIGHTS):,} parameters on the "
        f"encoder `{encoder}`{own if noted['name'] == ENCODER else ''} (fingerprint "
        f"{noted['fingerprint'][:16]}), trained with at most {noted['frames']} frames per video.\n"
    )
    yield f'```console\n$ sureshot index --model {name} ~/Videos && sureshot search "a goal"'
    yield f"$ sureshot evaluate {name} --data …\n```"
    yield "\n## Data\n"
    yield config.get("note") or "What it was trained on is not recorded."
    if scores := config.get("scores"):
        yield "\nOn the validation set, by which its weights were chosen:\n"
        yield "| measured | |\n|---|---|"
        yield from (f"| {name} | {value:.4g} |" for name, value in scores.items())
    yield from _results(_recorded(folder), name)
    yield from _calibration(folder, name)
    yield f"\n## Recipe\n\nThe whole recipe is in `{CONFIG}`, under `recipe`."


def _results(recorded: list[dict[str, Any]], name: str) -> Iterator[str]:
    yield "\n## Results\n"
    if not recorded:
        yield f"None recorded; `sureshot evaluate {name} --data … --record` does."
        return
    yield "Raw scores, with 95 % intervals over videos."
    for one in recorded:
        frames = f", {one['frames']} frames per video" if one["frames"] else ""
        note = f"; {one['out_of_domain']}" if one["out_of_domain"] else ""
        yield f"\n**{one['test']}**{frames}{note}"
        heads = [key for key in one["recalls"][0] if key.startswith("R@")]
        yield f"\n| | queries | {' | '.join(heads)} | median rank |"
        yield "|---|---|" + "---|" * (len(heads) + 1)
        for line in one["recalls"]:
            cells = [_cell(*line[head]) for head in heads]
            row = [_WAYS[line["direction"]], str(line["queries"]), *cells, f"{line['MdR']:g}"]
            yield f"| {' | '.join(row)} |"


def _cell(value: float, low: float | None = None, high: float | None = None) -> str:
    return f"{value:.1f}" + ("" if low is None else f" [{low:.1f}, {high:.1f}]")


def _calibration(folder: Path, name: str) -> Iterator[str]:
    yield "\n## Calibration\n"
    if not (folder / TRUST).is_file():
        yield (
            f"None: searches show no percentages until `sureshot calibrate {name} --reference …` "
            f"has made a card."
        )
        return
    try:
        card = load_card(folder / TRUST)
    except SureshotError as error:
        yield f"`{TRUST}` cannot be used: {error}"
        return
    known = card.valid_for
    yield (
        f"`{TRUST}`, of {known.date}: learned from {known.queries} queries about {known.videos} "
        f"videos of {known.dataset}, in galleries of {known.smallest} to {known.largest} videos."
    )
    if (judged := card.quality) is not None:
        yield (
            f"On queries it was not fitted to, half of them without an answer, the first hit was "
            f"right for {judged.share:.0%}. A right one had the higher percentage than a wrong one "
            f"{judged.auroc:.0%} of the time [{judged.auroc_low:.0%}, {judged.auroc_high:.0%}]. "
            f"Percentages were off by {100 * judged.ece:.1f} points on average (perfect ones: "
            f"{100 * judged.ece_floor:.1f})."
        )


def _count(weights: Path) -> int:
    """Number of parameters in a file, from its header."""
    try:
        with safe_open(weights, framework="numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{weights} cannot be read: {error}.") from None
    return sum(math.prod(shape) for shape in shapes)
