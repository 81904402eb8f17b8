"""Fill in the model card of the bundled model: docs/bundled-model.md, its picture, its numbers.

    python -m benchmarks.bundled.card [--training results.json] [--pictures]

Recalls are measured through the command line (`benchmarks.quality`), and kept with what
`benchmarks.bundled` found in results/bundled.json. Tables stand in the page between
``<!-- made: NAME -->`` and ``<!-- end -->``; the text around them is written by hand. The picture
shows first results that are wrong, of searches of the sample clips of ``make demo``. With
``--pictures`` nothing else is made.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from examples import demo

import sureshot
from benchmarks import quality
from benchmarks.bundled.measure import shown
from sureshot.files import write_text
from sureshot.models.load import load
from sureshot.research.canvas import SMALL, new_panels, save_figure, words

_ROOT = Path(__file__).parents[2]
PAGE, NUMBERS = _ROOT / "docs/bundled-model.md", _ROOT / "results/bundled.json"
PICTURE = _ROOT / "docs/bundled-failures.png"
_TITLES = {
    "clips": "clips from elsewhere",
    "msrvtt": "MSR-VTT 1k-A frame subset",
    "unshared": "the part of it that shares no upload with training",
    "keywords": "searches of one to three words on it",
    "rooms": "rooms that it was not trained on",
}
# Searches, and how the name of the clips that show it begins; empty where none does.
_SEARCHES = {
    "a dog in a meadow": "",
    "a cat": "",
    "a cartoon rabbit": "bigbuckbunny",
    "a big grey animal standing on grass": "bigbuckbunny",
    "a man with glasses on the phone": "carphone",
    "two people shaking hands": "",
    "a lion in the savanna": "",
    "an empty street at night": "",
    "three bicycles": "bikes",
    "someone opens a door": "",
    "a city seen from above": "",
    "a red car": "",
}
_SHOWN = 4


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--training", type=Path, help="results.json of benchmarks.bundled")
    parser.add_argument("--pictures", action="store_true")
    options = parser.parse_args()
    failures(PICTURE)
    if options.pictures:
        return
    found: dict[str, Any] = {"searches": {}}
    if options.training is not None:
        found["training"] = json.loads(options.training.read_text("utf-8"))
    bank = load("bundled").bank
    if bank is not None:
        found["bank"] = {"weight": bank.weight, "k": bank.k, "captions": len(bank.texts.sentence)}
    for name in _TITLES:
        for title, asked in quality.ASKED[name]().items():
            ranked, _ = quality.answered(asked, "bundled")
            ranks = quality.ranks_of(asked, ranked)
            row = {"of": name, "videos": len(asked.videos), "queries": len(asked.queries)}
            recalls = [100 * float(np.mean(ranks <= k)) for k in (1, 5, 10)]
            found["searches"][title] = row | {"recalls": recalls}
    write_text(NUMBERS, json.dumps(found, indent=1) + "\n")
    write_text(PAGE, filled(PAGE.read_text("utf-8"), found))


def filled(page: str, found: Mapping[str, Any]) -> str:
    """The page with tables of what was found."""
    made = {"recalls": _searches(found["searches"])}
    if "bank" in found:
        made["bank"] = (
            "{weight:g} of their mean score with the {k} nearest of {captions} training captions "
            "is taken off.\n"
        ).format(**found["bank"])
    if "training" in found:
        made["training"] = _training(found["training"])
    for name, text in made.items():
        between = re.compile(f"(<!-- made: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = between.subn(lambda m, text=text: m[1] + text + m[2], page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{PAGE} has {count} places for {name}.")
    return page


def _searches(found: Mapping[str, Mapping[str, Any]]) -> str:
    lines = ["| data, command | videos | R@1 / 5 / 10 |", "|---|---|---|"]
    for title, row in found.items():
        kind = _TITLES[row["of"]] + (f" ({title})" if row["of"] == "rooms" else "")
        command = f"`python -m benchmarks.quality {row['of']}`"
        lines.append(f"| {kind}: {command} | {row['videos']} | {shown(row['recalls'])} |")
    return "\n".join(lines) + "\n"


def _training(found: Mapping[str, Any]) -> str:
    """What was trained on, how long, and how far single runs are from each other."""
    ends, whole = found["ends"], found["whole"]
    items, spoiled = whole["items"], 100 * whole["settings"]["spoiled"]
    photographs = sum(n for name, n in items.items() if name not in ("msrvtt", "flickr8k"))
    lines = [
        f"Videos and photos: {items['msrvtt']:,} MSR-VTT *train*, {items['flickr8k']:,} Flickr8k",
        f"*train*, {photographs:,} captioned photographs. Two steps:",
        "",
        f"1. The upper {ends['settings']['layers']} of 6 layers and "
        f"{21 - ends['settings']['block']} of 21 blocks: {_runs(ends)}",
        f"2. The same layers and all blocks, from cropped and recoloured frames, {spoiled:.0f} % "
        f"of them blurred, dark, compressed or small as in bad phone videos: {_runs(whole)}",
        "",
        "Recalls without the hub correction; *bad* are the same videos blurred, dark and grainy,",
        "crushed by JPEG or cut upright, a quarter of them each.",
        "",
        "| data | R@1 / 5 / 10 of a run of step 1: mean (range) | mean of its runs | ships |",
        "|---|---|---|---|",
    ]
    alone = [ends[f"run {run + 1} at the share"] for run in range(ends["settings"]["runs"])]
    for kind, mean in whole["mean"].items():
        columns = np.array([run[kind] for run in alone if kind in run]).T
        spread = " / ".join(f"{c.mean():.1f} ({c.min():.1f} to {c.max():.1f})" for c in columns)
        lines.append(f"| {kind} | {spread} | {shown(whole['first'][kind])} | {shown(mean)} |")
    return "\n".join(lines) + "\n"


def _runs(found: Mapping[str, Any]) -> str:
    """How often, how long and how far a step of the training went."""
    runs, epochs = found["settings"]["runs"], found["settings"]["epochs"]
    hours = np.mean([n / 3600 for name, n in found["seconds"].items() if name.startswith("run ")])
    several = f"the mean of {runs} runs" if runs > 1 else "one run"
    return (
        f"{several} of {epochs} epochs and {hours:.1f} hours, {100 * found['share']:.0f} % of the "
        "way from its first weights."
    )


def failures(path: Path) -> None:
    """Draw first results that are wrong, the surest first."""
    wrong = []
    with tempfile.TemporaryDirectory() as place:
        sureshot.index(demo.fetch(), db=f"{place}/index")
        with sureshot.open_index(f"{place}/index") as index:
            for query, right in _SEARCHES.items():
                best = index.search(query, limit=1)[0]
                is_right = bool(right) and best.path.name.startswith(right)
                if not is_right and best.probability is not None:
                    wrong.append((best.probability, query, best))
    wrong.sort(key=lambda one: -one[0])
    wrong = wrong[:_SHOWN]
    figure, panels = new_panels(len(wrong), 0.9, abreast=_SHOWN)
    for axes, (probability, query, hit) in zip(panels, wrong, strict=True):
        axes.imshow(hit.frame(side=180))
        axes.set_axis_off()
        title = [*words(query, 1.6, SMALL), f"{100 * probability:.0f}%: {hit.path.name}"]
        axes.set_title("\n".join(title), fontsize=SMALL)
    save_figure(figure, path)


if __name__ == "__main__":
    main()
