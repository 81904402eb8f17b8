"""The runs of a table as a CSV file, a line each."""

import csv
from collections.abc import Sequence
from pathlib import Path

from sureshot.files import replace_file
from sureshot.research.reproduction.runs import Run

# Columns of a file of runs, before those of the scores.
_ABOUT = ("row", "seed", "epoch", "validation", "parameters", "seconds", "milliseconds", "curve")


def write_runs(path: Path, runs: Sequence[Run]) -> None:
    """Write runs as a CSV file, one line each; scores that a run does not have are left empty.

    Raises:
        OSError: it cannot be written.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.scores))
    with replace_file(path) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_ABOUT, *names])
        for run in runs:
            about = [run.variant, run.seed, run.epoch, f"{run.validation:.2f}", run.parameters]
            scores = [run.scores.get(name, "") for name in names]
            curve = " ".join(f"{score:.1f}" for score in run.curve)
            writer.writerow([*about, run.seconds, run.milliseconds, curve, *scores])


def read_runs(path: Path) -> list[Run]:
    """The runs of a CSV file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Run(
                variant=line["row"],
                seed=int(line["seed"]),
                scores={name: float(v) for name, v in line.items() if name not in _ABOUT and v},
                epoch=int(line["epoch"]),
                validation=float(line["validation"]),
                parameters=int(line["parameters"]),
                seconds=float(line["seconds"]),
                milliseconds=float(line.get("milliseconds") or 0),  # older runs were not timed
                curve=tuple(map(float, (line.get("curve") or "").split())),
            )
            for line in csv.DictReader(file)
        ]
