"""Levers of the bundled model's training, each alone, by short runs on a part of the data.

    python -m benchmarks.bundled.ablations [--to .cache/bundled] [--only "six text layers" ...]

Prints a row per lever: recalls of all captions of the validation galleries, the mean of its runs
with the deviation of their sum. Kept and resumed as the training itself.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bundled.__main__ import Results, folder_of, sets_of, tune
from benchmarks.bundled.fit import Settings
from benchmarks.bundled.items import validation
from benchmarks.bundled.measure import shown

PART, RUNS, EPOCHS = 0.25, 3, 4
LEVERS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "six text layers": {"layers": 6},
    "blocks from 11": {"block": 11},
    "both": {"layers": 6, "block": 11},
    "batches of 512": {"batch": 512},
    "two frames": {"frames": 2},
    "half of the batches of one family": {"alike": 0.5},
    "captions agree": {"agree": 0.2},
    "three captions": {"captions": 3},
    "half of the captions cut": {"phrases": 0.5},
}


def main() -> None:
    """Run what is not there yet; print each row as it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path(".cache/bundled"))
    parser.add_argument("--only", nargs="*", choices=LEVERS, default=list(LEVERS))
    options = parser.parse_args()
    sets = sets_of(PART)
    print(f"{sum(map(len, sets.values()))} items, {RUNS} runs of {EPOCHS} epochs", flush=True)
    for name in options.only:
        settings = replace(Settings(runs=RUNS, epochs=EPOCHS), **LEVERS[name])
        results = Results(folder_of(options.to, settings, sets, ()) / "results.json")
        tune(settings, sets, (), {}, options.to, results)
        runs = [results.found[f"run {run + 1}"] for run in range(RUNS)]
        means = [np.mean([run[kind] for run in runs], axis=0) for kind in validation()]
        sums = [sum(sum(found) for found in run.values()) for run in runs]
        minutes = np.mean([results.found["seconds"][f"run {run + 1}"] for run in range(RUNS)]) / 60
        print(
            f"| {name} | {' | '.join(shown(mean.tolist()) for mean in means)} | "
            f"{np.mean(sums):.1f} ± {np.std(sums):.1f} | {minutes:.1f} min |",
            flush=True,
        )


if __name__ == "__main__":
    main()
