"""The first page of a folder of results: all systems, and what became of the papers' claims."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sureshot.errors import SureshotError
from sureshot.files import read_json, write_text
from sureshot.research.reproduction.claims import Claim, Finding, judge_claim, load_claims
from sureshot.research.reproduction.page import Facts, gap, of_row, spread
from sureshot.research.reproduction.runs import Run, read_runs
from sureshot.research.reproduction.tables import Table, find_table, load_tables

_NOTES = "reading.md"


def write_summary(folder: Path) -> Path:
    """Write README.md of a folder from the .csv and .json of the tables in it.

    ``reading.md``, if there is one, is put at its end: what a person reads in the numbers.

    Raises:
        SureshotError: there is no table of all systems.
    """
    tables = {name: _runs(folder, table) for name, table in load_tables().items()}
    if not tables["systems"]:
        raise SureshotError(
            f"{folder} has no systems.csv; run `sureshot reproduce systems --to {folder}` first."
        )
    facts = Facts(**read_json(folder / "systems.json"))
    tested = [claim for claim in load_claims() if not claim.untested]
    findings = [_finding(claim, tables[claim.table], folder) for claim in tested]
    lines = [*_opening(facts), *_systems(tables["systems"], facts), *_claims(findings)]
    lines += [*_untested(), *_pages(folder)]
    reading = folder / _NOTES
    if reading.exists():
        lines += ["", reading.read_text("utf-8").strip()]
    path = folder / "README.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _runs(folder: Path, table: Table) -> list[Run]:
    """The runs of a table; those of its first data set where it is on several."""
    if table.kind != "recalls":
        return []
    names = [table.name, *(f"{table.name}-{data}" for data in table.data)]
    return next((runs for name in names if (runs := read_runs(folder / f"{name}.csv"))), [])


def _finding(claim: Claim, runs: Sequence[Run], folder: Path) -> Finding:
    scores = {(run.variant, run.seed): run.scores for run in runs}
    prefix = ""
    if claim.elsewhere and runs:
        tests = Facts(**read_json(folder / f"{claim.table}.json")).tests
        prefix = f"{tests[1]}: "
    return judge_claim(claim, scores, prefix)


def _opening(facts: Facts) -> Iterator[str]:
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
        f"`{facts.command}`: trained on {facts.train}, the epoch chosen on {facts.val}, "
        f"tested once on {facts.tests[0]}; encoder `{facts.encoder}`, "
        f"{facts.encoder_is}; "
        f"{facts.training}. No post-processing. Mean ± deviation over the seeds; in brackets "
        "the 95 % interval of R@1 over test videos (bootstrap, mean of the seeds' ends)."
    )
    yield ""


def _systems(runs: Sequence[Run], facts: Facts) -> Iterator[str]:
    names = list(dict.fromkeys(run.variant for run in runs))
    away = facts.tests[1:]
    head = ["", "R@1", "R@5", "R@10", "MnR", "v2t R@1", *(f"R@1 on {title}" for title in away)]
    head += ["parameters", "seconds of training", "ms for all test pairs"]
    head += ["R@1 less a CLIP4Clip of its size"]
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for name in names:
        row = of_row(runs, name)
        cells = [name, f"{_spread(row, 'R@1')} {_bracket(row)}".strip()]
        cells += [_spread(row, score) for score in ("R@5", "R@10", "MnR", "v2t R@1")]
        cells += [_spread(row, f"{title}: R@1") for title in away]
        cells += [
            f"{row[0].parameters / 1e6:.2f} M",
            f"{np.median([run.seconds for run in row]):.0f}",
            _milliseconds(row),
            _against_size(row, runs),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield (
        "The last column compares with the smallest CLIP4Clip (mean pooling, a wider stem) that "
        "has at least as many weights, seed by seed; the largest is taken for larger systems. "
        "Seconds are those of one machine and may have been taken while it did other things."
    )


def _milliseconds(row: Sequence[Run]) -> str:
    """Median of the runs that were timed; older ones were not."""
    timed = [run.milliseconds for run in row if run.milliseconds]
    return f"{np.median(timed):.1f}" if timed else ""


def _against_size(row: Sequence[Run], runs: Sequence[Run]) -> str:
    """R@1 less that of the CLIP4Clip of the same size."""
    wider = [row.name for row in find_table("systems").variants if row.width is not None]
    rows = [of_row(runs, name) for name in ("CLIP4Clip", *wider)]
    controls = [control for control in rows if control]
    if not controls or row[0].variant in ("CLIP4Clip", *wider):
        return ""
    enough = [c for c in controls if c[0].parameters >= row[0].parameters]
    return gap(row, enough[0] if enough else controls[-1], "R@1")


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
    for finding in findings:
        claim = finding.claim
        size = "" if finding.gap is None else f"{finding.gap:+.1f}"
        if finding.deviation is not None:
            size += f" ± {finding.deviation:.1f}"
        unit = " (rsum)" if claim.metric == "rsum" else ""
        yield (
            f"| {claim.paper} | {claim.says} | {finding.verdict} | {size}{unit} | {claim.printed} "
            f"| `sureshot reproduce {claim.table}` |"
        )


def _untested() -> Iterator[str]:
    yield ""
    yield "Not testable here:"
    yield ""
    for claim in load_claims():
        if claim.untested:
            yield f"* {claim.paper}, {claim.says}: {claim.untested}."


def _pages(folder: Path) -> Iterator[str]:
    yield ""
    yield "## Pages"
    yield ""
    for name, table in load_tables().items():
        for page in (name, *(f"{name}-{data}" for data in table.data)):
            if (folder / f"{page}.md").exists():
                yield f"* [{page}]({page}.md): {table.title}"
    for path in sorted(folder.glob("*/*.md")):
        place = path.relative_to(folder).as_posix()
        yield f"* [{place}]({place})"


def _spread(row: Sequence[Run], name: str) -> str:
    values = [run.scores[name] for run in row if name in run.scores]
    return spread(values) if values else ""


def _bracket(row: Sequence[Run]) -> str:
    """Mean ends of the interval of R@1, where the runs have it."""
    ends = [
        [run.scores[name] for run in row if name in run.scores] for name in ("R@1 low", "R@1 high")
    ]
    return f"({np.mean(ends[0]):.1f} to {np.mean(ends[1]):.1f})" if all(ends) else ""
