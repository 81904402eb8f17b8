"""The first page of a folder of results: all systems, and what became of the papers' claims."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sureshot.errors import SureshotError
from sureshot.files import read_json, write_text
from sureshot.research.reproduction.claims import CLAIMS, UNTESTED, Claim, Finding, judge
from sureshot.research.reproduction.systems import SIZES
from sureshot.research.reproduction.tables import TABLES

_ABOUT = ("row", "seed", "epoch", "validation", "parameters", "seconds", "milliseconds")
_NOTES = "reading.md"


@dataclass(frozen=True, slots=True)
class Record:
    """A run, as a table's .csv has it."""

    row: str
    seed: int
    parameters: int
    seconds: float
    milliseconds: float
    scores: Mapping[str, float]


def write_summary(folder: Path) -> Path:
    """Write README.md of a folder from the .csv and .json of the tables in it.

    ``reading.md``, if there is one, is put at its end: what a person reads in the numbers.

    Raises:
        SureshotError: there is no table of all systems.
    """
    tables = {name: _records(folder / f"{name}.csv") for name in TABLES}
    if not tables["systems"]:
        raise SureshotError(
            f"{folder} has no systems.csv; run `sureshot reproduce systems --to {folder}` first."
        )
    facts = read_json(folder / "systems.json")
    findings = [_finding(claim, tables[claim.table], folder) for claim in CLAIMS]
    lines = [*_opening(facts), *_systems(tables["systems"], facts), *_claims(findings)]
    lines += [*_untested(), *_pages(folder, tables)]
    reading = folder / _NOTES
    if reading.exists():
        lines += ["", reading.read_text("utf-8").strip()]
    path = folder / "README.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _records(path: Path) -> list[Record]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Record(
                line["row"],
                int(line["seed"]),
                int(line["parameters"]),
                float(line["seconds"]),
                float(line.get("milliseconds") or 0),
                {name: float(v) for name, v in line.items() if name not in _ABOUT and v},
            )
            for line in csv.DictReader(file)
        ]


def _finding(claim: Claim, records: Sequence[Record], folder: Path) -> Finding:
    scores = {(record.row, record.seed): record.scores for record in records}
    prefix = ""
    if claim.elsewhere and records:
        tests = read_json(folder / f"{claim.table}.json")["tests"]
        prefix = f"{tests[1]}: "
    return judge(claim, scores, prefix)


def _opening(facts: Mapping[str, str]) -> Iterator[str]:
    yield "# Results"
    yield ""
    yield (
        "Written by `sureshot reproduce summary`; the numbers are those of the .csv beside each "
        "page. **Not the published protocol**: other videos, few frames of each, a frozen encoder, "
        "small models. Compare differences between rows, never levels with a paper's."
    )
    yield ""
    yield "## All systems"
    yield ""
    yield (
        f"`{facts['command']}`: trained on {facts['train']}, the epoch chosen on {facts['val']}, "
        f"tested once on {facts['tests'][0]}; encoder `{facts['encoder']}`, frozen; "
        f"{facts['training']}. No post-processing. Mean ± deviation over the seeds; in brackets "
        "the 95 % interval of R@1 over test videos (bootstrap, mean of the seeds' ends)."
    )
    yield ""


def _systems(records: Sequence[Record], facts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    names = list(dict.fromkeys(record.row for record in records))
    away = facts["tests"][1:]
    head = ["", "R@1", "R@5", "R@10", "MnR", "v2t R@1", *(f"R@1 on {title}" for title in away)]
    head += ["parameters", "seconds of training", "ms for all test pairs"]
    head += ["R@1 less a CLIP4Clip of its size"]
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for name in names:
        own = [record for record in records if record.row == name]
        cells = [name, f"{_spread(own, 'R@1')} {_bracket(own)}".strip()]
        cells += [_spread(own, score) for score in ("R@5", "R@10", "MnR", "v2t R@1")]
        cells += [_spread(own, f"{title}: R@1") for title in away]
        cells += [
            f"{own[0].parameters / 1e6:.2f} M",
            f"{np.median([record.seconds for record in own]):.0f}",
            _milliseconds(own),
            _against_size(own, records),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield (
        "The last column compares with the smallest CLIP4Clip (mean pooling, a wider stem) that "
        "has at least as many weights, seed by seed; the largest is taken for larger systems. "
        "Seconds are those of one machine and may have been taken while it did other things."
    )


def _milliseconds(own: Sequence[Record]) -> str:
    """Median of the runs that were timed; older ones were not."""
    timed = [record.milliseconds for record in own if record.milliseconds]
    return f"{np.median(timed):.1f}" if timed else ""


def _against_size(own: Sequence[Record], records: Sequence[Record]) -> str:
    """R@1 less that of the CLIP4Clip of the same size."""
    names = ["CLIP4Clip", *(f"CLIP4Clip, stem of width {width}" for width in SIZES)]
    controls = {n: [record for record in records if record.row == n] for n in names}
    there = [name for name in names if controls[name]]
    if not there or own[0].row in names:
        return ""
    enough = [n for n in there if controls[n][0].parameters >= own[0].parameters]
    chosen = controls[enough[0] if enough else there[-1]]
    theirs = {record.seed: record.scores["R@1"] for record in chosen}
    gaps = [r.scores["R@1"] - theirs[r.seed] for r in own if r.seed in theirs]
    return _mean(gaps, "+") if gaps else ""


def _claims(findings: Sequence[Finding]) -> Iterator[str]:
    kinds = ("held", "reversed", "not run")
    count = {kind: sum(f.verdict == kind for f in findings) for kind in kinds}
    yield ""
    yield "## Claims of the papers"
    yield ""
    left = f"; {count['not run']} were not run" if count["not run"] else ""
    yield (
        f"Of {len(findings)} claims {count['held']} held here and {count['reversed']} turned "
        f"around{left}. *Held*: the gap of the two rows, seed by seed, "
        "is at least 0.5 points of R@1 (2 of the sum of six recalls) and more than two "
        "standard errors; *reversed*: as far below 0; "
        "*not seen*: between. Some of so many comparisons pass by chance."
    )
    yield ""
    yield "| whose | claim | here | gap | printed | command |"
    yield "|---|---|---|---|---|---|"
    for found in findings:
        claim = found.claim
        gap = "" if found.gap is None else f"{found.gap:+.1f}"
        if found.deviation is not None:
            gap += f" ± {found.deviation:.1f}"
        unit = " (rsum)" if claim.metric == "rsum" else ""
        yield (
            f"| {claim.paper} | {claim.says} | {found.verdict} | {gap}{unit} | {claim.printed} "
            f"| `sureshot reproduce {claim.table}` |"
        )


def _untested() -> Iterator[str]:
    yield ""
    yield "Not testable here:"
    yield ""
    for claim in UNTESTED:
        yield f"* {claim.paper}, {claim.says}: {claim.why}."


def _pages(folder: Path, tables: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    yield ""
    yield "## Pages"
    yield ""
    for name, records in tables.items():
        if records:
            yield f"* [{name}]({name}.md): {TABLES[name].title}"
    for path in sorted(folder.glob("*/*.md")):
        place = path.relative_to(folder).as_posix()
        yield f"* [{place}]({place})"


def _spread(records: Sequence[Record], name: str) -> str:
    values = [record.scores[name] for record in records if name in record.scores]
    return _mean(values) if values else ""


def _bracket(records: Sequence[Record]) -> str:
    """Mean ends of the interval of R@1, where the runs have it."""
    ends = [
        [record.scores[name] for record in records if name in record.scores]
        for name in ("R@1 low", "R@1 high")
    ]
    return f"({np.mean(ends[0]):.1f} to {np.mean(ends[1]):.1f})" if all(ends) else ""


def _mean(values: Sequence[float], sign: str = "") -> str:
    mean = f"{np.mean(values):{sign}.1f}"
    return f"{mean} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else mean
