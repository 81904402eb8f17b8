"""Write results/README.md: the claims of the papers, and what our runs say of them, on one screen.

    python -m benchmarks.claims_page [results]

The claims are in ``metrics/claims.csv``: each names two rows of a table. They are judged by the
ranks of every query (`sureshot.research.reproduction.runs`), all claims about a paper together
(`sureshot.metrics.intervals`).
"""

import csv
import functools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sureshot.files import write_text
from sureshot.metrics.confidence import auroc
from sureshot.metrics.intervals import (
    LEAST_SEEDS,
    Comparison,
    Decision,
    Gap,
    Measure,
    Verdict,
    decide,
    mean_of_recalls,
    paired_gap,
    recall_at_one,
    sum_of_recalls,
)
from sureshot.research.reproduction.page import Facts
from sureshot.research.reproduction.plan import Table, load_tables
from sureshot.research.reproduction.runs import AMBIGUITY, PERCENT, TableRanks, read_ranks

# fits: share of captions whose first hit fits, by the ground truth of synthetic data
ClaimMetric = Literal["R@1", "rsum", "geometric mean", "fits"]
_MEASURES: Mapping[ClaimMetric, Measure] = {
    "R@1": recall_at_one,
    "fits": recall_at_one,  # of ranks that are 1 where the first hit fits
    "rsum": sum_of_recalls,
    "geometric mean": mean_of_recalls,
}
_PRINTED_GAP = re.compile(r"\+(\d+(?:\.\d+)?)")
_SEED = 0  # of the videos that are resampled


@dataclass(frozen=True, slots=True)
class Claim:
    """A row is better than another.

    Attributes:
        paper: whose claim; "ours" for one of a control that the paper does not have.
        says: the claim in a sentence.
        table: where both rows are; empty where the claim cannot be tested.
        more: the row that is better, if the claim holds.
        less: the other row.
        printed: the paper's gap in points, in words; empty for ours.
        metric: what the gap is of.
        elsewhere: whether the gap is on the other data set.
        untested: why nothing here can tell; empty where two rows do.
        family: claims that are decided together; empty is those of the paper.
    """

    paper: str
    says: str
    table: str = ""
    more: str = ""
    less: str = ""
    printed: str = ""
    metric: ClaimMetric = "R@1"
    elsewhere: bool = False
    untested: str = ""
    family: str = ""

    @property
    def decided_with(self) -> str:
        """The claims that it is decided with."""
        return self.family or self.paper

    @property
    def printed_gap(self) -> float | None:
        """The paper's gap in points; None where it prints none.

        Examples:
            >>> Claim("DVTR", "more is better", printed="+2.2, MSVD, geometric mean").printed_gap
            2.2
        """
        found = _PRINTED_GAP.match(self.printed)
        return None if found is None else float(found[1])


@functools.cache
def load_claims() -> tuple[Claim, ...]:
    """All claims, in the order of the file."""
    text = files("sureshot.metrics").joinpath("claims.csv").read_text("utf-8")
    claims = []
    for line in csv.DictReader(text.splitlines()):
        values: dict[str, Any] = {name: value for name, value in line.items() if value}
        values["elsewhere"] = line["elsewhere"] == "yes"
        claims.append(Claim(**values))
    return tuple(claims)


@dataclass(frozen=True, slots=True)
class Finding:
    """What our runs say of a claim.

    Attributes:
        claim: the claim that was judged.
        decision: the verdict, and the smallest effect that would have been seen.
        gap: what the better row has more; None where a row or its ranks are missing.
    """

    claim: Claim
    decision: Decision
    gap: Gap | None = None


def judge_claims(
    claims: Sequence[Claim], tables: Mapping[str, Mapping[str, TableRanks]]
) -> list[Finding]:
    """The verdicts on claims, from the runs on one data set.

    Args:
        claims: the claims, in any order.
        tables: ranks of each table by its name, then by test set as `read_ranks` gives them.
    """
    gaps = [_gap(claim, tables.get(claim.table, {})) for claim in claims]
    found: dict[int, Finding] = {}
    for family in dict.fromkeys(claim.decided_with for claim in claims):
        places = [n for n, claim in enumerate(claims) if claim.decided_with == family]
        decisions = decide(
            [
                Comparison(
                    gap=gaps[n],
                    printed=claims[n].printed_gap,
                    testable=not claims[n].untested,
                )
                for n in places
            ]
        )
        for n, decision in zip(places, decisions, strict=True):
            found[n] = Finding(claim=claims[n], decision=decision, gap=gaps[n])
    return [found[n] for n in range(len(claims))]


def _gap(claim: Claim, tests: Mapping[str, TableRanks]) -> Gap | None:
    names, place = list(tests), int(claim.elsewhere)
    if len(names) <= place:
        return None
    fits = claim.metric == "fits"
    return gap_of(tests[names[place]], claim.more, claim.less, _MEASURES[claim.metric], fits=fits)


def gap_of(
    ranks: TableRanks, more: str, less: str, measure: Measure, *, fits: bool = False
) -> Gap | None:
    """What one row has more than another; None without two common seeds or the truth of fits."""
    if fits and not ranks.knows_fits:
        return None
    one, other = ranks.of_row(more, fits=fits), ranks.of_row(less, fits=fits)
    if one is None or other is None or len(set(one.seeds) & set(other.seeds)) < 2:
        return None
    return paired_gap(one, other, measure, np.random.default_rng(_SEED))


# --- uncertainties as confidences -----------------------------------------------------------------

ENTROPY = "softmax entropy"
_ANY = ("best score", ENTROPY, PERCENT, AMBIGUITY, "Bayes")  # of no paper


@dataclass(frozen=True, slots=True)
class UncertaintyScore:
    """How well an uncertainty of a row tells wrong first hits from right ones.

    Attributes:
        auroc: chance that a wrong first hit has the larger uncertainty, of each seed; 0.5 is a
            guess, and a seed in which all is right or nothing has no number.
    """

    row: str
    name: str
    auroc: Sequence[float]

    @property
    def of_paper(self) -> bool:
        """Whether it is the system's own, and not one that any scores have."""
        return self.name not in _ANY

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.nanmean(self.auroc))


def uncertainty_scores(ranks: TableRanks) -> list[UncertaintyScore]:
    """The score of each uncertainty of each row, in the order of the rows."""
    found = []
    for row in dict.fromkeys(ranks.rows):
        runs = list(ranks.part(row).values())
        for name in dict.fromkeys(name for run in runs for name in run.doubts):
            # A calibration that found itself too bad gives no percentage.
            pairs = [(run.doubts[name], run.right) for run in runs if name in run.doubts]
            values = [
                auroc(-doubt, right) if 0 < right.sum() < len(right) else float("nan")
                for doubt, right in pairs
            ]
            found.append(UncertaintyScore(row, name, values))
    return found


# --- dose and response ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DoseResponse:
    """The R@1 that a mechanism adds on a synthetic dataset, at one value of its option."""

    mechanism: str
    dose: float
    gap: Gap


def responses(table: Table, folders: Sequence[Path]) -> list[DoseResponse]:
    """The gaps of each mechanism of a table with an option, by mechanism and dose."""
    found = []
    for folder in folders:
        tests, about = read_ranks(folder / f"{table.name}.npz"), folder / f"{table.name}.json"
        dose = (
            Facts(**json.loads(about.read_text("utf-8"))).options.get(table.option)
            if about.exists()
            else None
        )
        if not tests or dose is None:
            continue
        ranks = next(iter(tests.values()))
        for mechanism, more, less in table.compared:
            gap = gap_of(ranks, more, less, recall_at_one)
            if gap is not None:
                found.append(DoseResponse(mechanism, float(dose), gap))
    order = [mechanism for mechanism, _, _ in table.compared]
    return sorted(found, key=lambda one: (order.index(one.mechanism), one.dose))


def dose_lines(table: Table, found: Sequence[DoseResponse]) -> Iterator[str]:
    """A table of the gaps in Markdown, a row per mechanism; nothing for fewer than two doses."""
    doses = sorted({one.dose for one in found})
    if len(doses) < 2:
        return
    yield f"| R@1 gained with `{table.option}` = | {' | '.join(f'{dose:g}' for dose in doses)} |"
    yield f"|---|{'---|' * len(doses)}"
    for mechanism in dict.fromkeys(one.mechanism for one in found):
        gaps = {one.dose: one.gap for one in found if one.mechanism == mechanism}
        cells = [_size(gaps[dose]) if dose in gaps else "" for dose in doses]
        yield f"| {mechanism} | {' | '.join(cells)} |"
    yield ""


# --- the tables of a data set ---------------------------------------------------------------------

CONTROLS = "controls"  # the table that compares each mechanism with its control
_DECIDED: Sequence[Verdict] = ("supported", "contradicted", "ruled out", "too noisy to tell")


@dataclass(frozen=True, slots=True)
class Tested:
    """The tables of one data set.

    Attributes:
        title: title of the test set.
        pages: the tables that were judged.
        findings: what they say of the claims.
        scores: the uncertainties of the table of controls; empty without that table.
    """

    title: str
    pages: Sequence[Path]
    findings: Sequence[Finding]
    scores: Sequence[UncertaintyScore] = ()

    @property
    def decided(self) -> list[Finding]:
        """The claims that have a verdict."""
        return [one for one in self.findings if one.decision.verdict in _DECIDED]


def read_tested(folder: Path) -> Tested | None:
    """The tables of a folder that have ranks, but for those with a dose; None where none has."""
    tables, pages, title = {}, [], ""
    for name, table in load_tables().items():
        for stem in (name, *(f"{name}-{data}" for data in table.data)):
            ranks = {} if table.option else read_ranks(folder / f"{stem}.npz")
            if ranks:
                tables[stem] = ranks
                pages.append(folder / f"{stem}.md")
                title = (
                    title
                    or Facts(**json.loads((folder / f"{stem}.json").read_text("utf-8"))).tests[0]
                )
    if not tables:
        return None
    claims = [claim for claim in load_claims() if not claim.untested]
    controls = list(tables.get(CONTROLS, {}).values())
    scores = uncertainty_scores(controls[0]) if controls else []
    return Tested(title, pages, judge_claims(claims, tables), scores)


# --- the page -------------------------------------------------------------------------------------

# The rows that differ in a mechanism alone, in the table of controls.
_MECHANISMS = (
    ("DUQ's uncertainty", "DUQ", "DUQ, means only"),
    ("UATVR's uncertainty", "UATVR", "UATVR, means only"),
    ("DVTR's eta", "DVTR", "DVTR, etas shuffled"),
    ("DVTR on the hardest negative", "hardest negative, DVTR", "hardest negative"),
)
_ORACLES = "positive controls"
_KNOWN = "known"  # in the name of a row that is an oracle


def write_page(folder: Path) -> Path:
    """Write README.md of a folder of results.

    Raises:
        SystemExit: there is no table with ranks.
    """
    places = [one for one in (folder, *sorted(folder.iterdir())) if one.is_dir()]
    tested = [found for place in places if (found := read_tested(place)) is not None]
    if not tested:
        raise SystemExit(
            f"{folder} has no table; run `sureshot reproduce controls --to {folder}` first."
        )
    lines = ["# Does uncertainty help text-video retrieval?", "", *answer_lines(tested), ""]
    for one in tested:
        lines += [f"On {one.title}, in points of R@1 with 95 % intervals:", "", *_verdicts(one), ""]
    for table in load_tables().values():
        lines += dose_lines(table, responses(table, places)) if table.option else ()
    more = [page for one in tested for page in one.pages]
    more += [*sorted(folder.glob("*.md")), *sorted(folder.glob("*/README.md"))]
    names = [page.relative_to(folder).as_posix() for page in more if page.name != "README.md" or
             page.parent != folder]  # fmt: skip
    lines.append("More: " + ", ".join(f"[{name}]({name})" for name in names) + ".")
    lines += ["", "Written by `python -m benchmarks.claims_page`; how a verdict is found: "
              "[docs/reproducing.md](../docs/reproducing.md)."]  # fmt: skip
    write_text(folder / "README.md", "\n".join(lines) + "\n")
    return folder / "README.md"


def _verdicts(one: Tested) -> Iterator[str]:
    yield "| claim | gap | printed | verdict | smallest visible | seeds |"
    yield "|---|---|---|---|---|---|"
    for found in one.findings:
        claim, decision = found.claim, found.decision
        if found.gap is None:
            continue
        unit = "" if claim.metric == "R@1" else f" ({claim.metric})"
        verdict = "no verdict" if decision.verdict == "not run" else str(decision.verdict)
        verdict += ", smaller than printed" if decision.smaller else ""
        visible = "" if decision.visible is None else f"{decision.visible:.1f}"
        cells = [claim.says, _size(found.gap) + unit, claim.printed, verdict, visible]
        yield f"| {' | '.join([*cells, str(found.gap.seeds)])} |"


def answer_lines(tested: Sequence[Tested]) -> Iterator[str]:
    """Up to three paragraphs, from the claims that have a verdict."""
    decided = [found for one in tested for found in one.decided]
    if not decided:
        yield (
            f"No claim has a verdict yet: none of the tables here has {LEAST_SEEDS} seeds and the "
            "ranks of every query."
        )
        return
    yield f"**Does uncertainty help to find videos?** {_effect(tested)}"
    yield ""
    yield f"**Could we have detected an effect?** {_power(decided)}"
    confidence = {one.title: part for one in tested if (part := _confidence(one))}
    if confidence:
        said = "; ".join(f"on {title} {part}" for title, part in confidence.items())
        yield ""
        yield (
            "**Does it know when it is wrong?** AUROC for wrong first hits, where 0.5 is a guess: "
            f"{said}."
        )


def _effect(tested: Sequence[Tested]) -> str:
    parts, helps, asked = [], dict[str, None](), dict[str, None]()
    for one in tested:
        sizes = []
        for name, more, less in _MECHANISMS:
            found = [f for f in one.decided if (f.claim.more, f.claim.less) == (more, less)]
            shown = next((f.gap for f in found if f.claim.metric == "R@1"), None)
            if shown is not None:
                asked[name] = None
                sizes.append(f"{name} {_size(shown)}")
            if any(f.decision.verdict == "supported" for f in found):
                helps[name] = None
        if sizes:
            parts.append(f"on {one.title}: {_listed(sizes)}")
    if not parts:
        return "Not run often enough to say."
    waiting = [name for name, *_ in _MECHANISMS if name not in asked]
    open_ones = f" Not run often enough to say: {_listed(waiting)}." if waiting else ""
    seen = f"{_listed(list(helps))} helped" if helps else "we saw no gain"
    return (
        f"Compared with the same system without the mechanism, {seen}. Points of R@1 gained [95 % "
        f"interval], {'; '.join(parts)}.{open_ones}"
    )


def _power(decided: Sequence[Finding]) -> str:
    oracles = [found for found in decided if found.claim.decided_with == _ORACLES]
    works = [f for f in oracles if f.decision.verdict == "supported" and f.gap is not None]
    sizes = [
        found.decision.visible
        for found in decided
        if found.claim.metric == "R@1" and found.decision.visible is not None
    ]
    visible = f"a gain of {min(sizes):.1f} to {max(sizes):.1f} points would have been visible"
    if not works:
        return f"Not shown: no oracle helped; by the numbers alone, {visible}."
    parts = [f"{found.claim.says} ({_size(found.gap)})" for found in works if found.gap]
    return (
        "Yes. Eta estimates which negatives in a batch are really positives; with the ground truth "
        f"in its place, results improve: {_listed(parts)}. By the numbers alone, {visible}."
    )


def _confidence(one: Tested) -> str:
    found = [score for score in one.scores if _KNOWN not in score.row]
    papers = [score for score in found if score.of_paper]
    plain = [score for score in found if score.name == ENTROPY]
    ours = [score for score in found if score.name == PERCENT]
    if not papers or not plain:
        return ""
    best = max(papers, key=lambda score: score.mean)
    said = f", Sureshot's percentage {_range(ours)}" if ours else ""
    return (
        f"the papers' uncertainties reach {_range(papers)} (the best: {best.name} of {best.row}), "
        f"the entropy of a softmax of any system's scores {_range(plain)}{said}"
    )


def _range(scores: Sequence[UncertaintyScore]) -> str:
    low, high = (f"{end(score.mean for score in scores):.2f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _size(gap: Gap) -> str:
    value = round(gap.value, 1) + 0.0  # no -0.0
    return f"{value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


if __name__ == "__main__":
    print(write_page(Path(sys.argv[1] if len(sys.argv) > 1 else "results")))
