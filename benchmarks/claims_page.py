"""Write what our runs say of the papers' claims: README.md, verdicts.md and claims.png of a folder.

    python -m benchmarks.claims_page [results]

The claims are in ``metrics/claims.csv``: each names two rows of a table, in the well-posed mode and
as printed, with the day and the reason why these two. They are judged by the ranks of every query
(`sureshot.research.reproduction.runs`), on R@1 and on the sum of the recalls of both directions;
all claims about a paper are decided together (`benchmarks.verdicts`), for each data set,
mode and measure. The runs of a plan that sets ``mode = "paper"`` are in a folder that ends in
``-paper``.
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.verdicts import (
    LEAST_SEEDS,
    Claim,
    ClaimMetric,
    Comparison,
    Decision,
    Gap,
    Measure,
    Mode,
    Verdict,
    decide,
    first_measure,
    knows_fits,
    load_claims,
    mean_of_recalls,
    paired_gap,
    ranks_of_row,
    recall_at_one,
    sum_of_recalls,
)
from sureshot.errors import SureshotError
from sureshot.files import write_text
from sureshot.metrics.confidence import auroc
from sureshot.research.canvas import (
    BLUE,
    INK,
    MUTED,
    NORMAL,
    ORANGE,
    PALE,
    SMALL,
    label_axes,
    new_figure,
    save_figure,
    words,
)
from sureshot.research.reproduction.page import Facts
from sureshot.research.reproduction.plan import Table, load_tables
from sureshot.research.reproduction.runs import AMBIGUITY, PERCENT, TableRanks, read_ranks
from sureshot.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEASURES: Mapping[ClaimMetric, Measure] = {
    "R@1": recall_at_one,
    "fits": recall_at_one,  # of ranks of what fits
    "rsum": sum_of_recalls,
    "geometric mean": mean_of_recalls,
}
_SEED = 0  # of the videos that are resampled
_OF_PAPER = "-paper"  # end of the name of a folder whose plan sets the papers' mode


@dataclass(frozen=True, slots=True)
class Finding:
    """What our runs say of a claim.

    Attributes:
        claim: the claim that was judged.
        decision: the verdict, and the smallest effect that would have been seen.
        gap: what the better row has more; None where a row or its ranks are missing.
        printed: the paper's gap in the same measure.
    """

    claim: Claim
    decision: Decision
    gap: Gap | None = None
    printed: float | None = None


def judge_claims(
    claims: Sequence[Claim],
    tables: Mapping[str, Mapping[str, TableRanks]],
    *,
    mode: Mode = "well_posed",
    rsum: bool = False,
) -> list[Finding]:
    """The verdicts on claims, from the runs on one data set.

    Args:
        claims: the claims, in any order.
        tables: ranks of each table by its name, then by test set as `read_ranks` gives them.
        mode: whose rows are compared.
        rsum: whether the sum of recalls of both directions is judged, in place of the first
            measure of each claim. On synthetic data what fits counts as right in it.
    """
    measures: list[ClaimMetric] = ["rsum" if rsum else first_measure(claim) for claim in claims]
    gaps = [
        _gap(claim, tables.get(claim.table, {}), mode, measure)
        for claim, measure in zip(claims, measures, strict=True)
    ]
    printed = [claim.printed_gap(measure) for claim, measure in zip(claims, measures, strict=True)]
    found: dict[int, Finding] = {}
    for family in dict.fromkeys(claim.decided_with for claim in claims):
        places = [n for n, claim in enumerate(claims) if claim.decided_with == family]
        decisions = decide(
            [
                Comparison(gap=gaps[n], printed=printed[n], testable=not claims[n].untested)
                for n in places
            ]
        )
        for n, decision in zip(places, decisions, strict=True):
            found[n] = Finding(claim=claims[n], decision=decision, gap=gaps[n], printed=printed[n])
    return [found[n] for n in range(len(claims))]


def _gap(
    claim: Claim, tests: Mapping[str, TableRanks], mode: Mode, measure: ClaimMetric
) -> Gap | None:
    names, place = list(tests), int(claim.elsewhere)
    if len(names) <= place or not all(claim.rows(mode)):
        return None
    ranks = tests[names[place]]
    fits = measure == "fits" or (measure == "rsum" and knows_fits(ranks))
    return gap_of(ranks, *claim.rows(mode), _MEASURES[measure], fits=fits)


def gap_of(
    ranks: TableRanks, more: str, less: str, measure: Measure, *, fits: bool = False
) -> Gap | None:
    """What one row has more than another; None without two common seeds or the truth of fits."""
    if fits and not knows_fits(ranks):
        return None
    one, other = (ranks_of_row(ranks, row, fits=fits) for row in (more, less))
    if one is None or other is None or len(set(one.seeds) & set(other.seeds)) < 2:
        return None
    if measure is sum_of_recalls and np.isnan([*one.videos.flat, *other.videos.flat]).any():
        return None  # runs that did not keep the ranks of what fits
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
    for row in dict.fromkeys(row for row, _ in ranks):
        runs = [run for (name, _), run in ranks.items() if name == row]
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
        dose = _facts(about).options.get(table.option) if about.exists() else None
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
_FROZEN = "frozen"  # an encoder that was not trained with the systems
_DECIDED: Sequence[Verdict] = ("supported", "contradicted", "ruled out", "too noisy to tell")


@dataclass(frozen=True, slots=True)
class Tested:
    """The tables of one data set in one mode.

    Attributes:
        title: title of the test set.
        mode: whose rows were compared.
        pages: the tables that were judged.
        findings: what they say of the claims, on the first measure of each.
        sums: the same on the sum of the recalls of both directions.
        scores: the uncertainties of the table of controls; empty without that table.
        notes: what is odd about some of the runs.
        encoder: ``frozen``, or that it was trained too.
    """

    title: str
    mode: Mode
    pages: Sequence[Path]
    findings: Sequence[Finding]
    sums: Sequence[Finding]
    scores: Sequence[UncertaintyScore] = ()
    notes: Sequence[str] = ()
    encoder: str = _FROZEN

    @property
    def name(self) -> str:
        """Data set, encoder and mode in words."""
        encoder = "" if self.encoder == _FROZEN else f", encoder {self.encoder}"
        return f"{self.title}{encoder}, {_MODES[self.mode]}"

    @property
    def decided(self) -> list[Finding]:
        """The claims that have a verdict."""
        return [one for one in self.findings if one.decision.verdict in _DECIDED]


_MODES: Mapping[Mode, str] = {"well_posed": "well-posed", "paper": "as printed"}


def read_tested(folder: Path) -> list[Tested]:
    """The verdicts of a folder's tables that have ranks, but for those with a dose.

    First in the well-posed mode, then as printed: of the folder of the same name that ends in
    ``-paper``, and of rows here that say in their names that they are as printed.
    """
    if folder.name.endswith(_OF_PAPER) and folder.with_name(_plain(folder)).is_dir():
        return []
    printed = folder.with_name(_plain(folder) + _OF_PAPER)
    here, of_paper = ({} if folder == printed else _ranks(folder)), _ranks(printed)
    stated = {claim.table for claim in load_claims() if claim.paper_more}
    both = {stem: ranks for stem, ranks in here.items() if stem in stated} | of_paper
    return [
        one
        for one in (_tested("well_posed", folder, here), _tested("paper", printed, both, of_paper))
        if one is not None
    ]


def _plain(folder: Path) -> str:
    return folder.name.removesuffix(_OF_PAPER)


Ranks = dict[str, Mapping[str, TableRanks]]  # by table and test set


def _ranks(folder: Path) -> Ranks:
    """The ranks of the tables of a folder; none where there is none."""
    stems = (
        stem
        for name, table in load_tables().items()
        if not table.option
        for stem in (name, *(f"{name}-{data}" for data in table.data))
    )
    return {stem: ranks for stem in stems if (ranks := read_ranks(folder / f"{stem}.npz"))}


def _tested(mode: Mode, folder: Path, tables: Ranks, own: Ranks | None = None) -> Tested | None:
    """The verdicts on the claims whose rows are there; None where there is none at all.

    Args:
        own: the tables of the folder, where others were added to them.
    """
    claims = [claim for claim in load_claims() if not claim.untested]
    findings = judge_claims(claims, tables, mode=mode)
    own = tables if own is None else own
    if not own and not any(found.gap for found in findings):
        return None
    place = folder if own else folder.with_name(_plain(folder))
    facts = [_facts(place / f"{stem}.json") for stem in own or tables]
    controls = list(own.get(CONTROLS, {}).values())
    summed = [claim for claim in claims if claim.metric != "fits"]
    return Tested(
        title=facts[0].tests[0],
        mode=mode,
        pages=[folder / f"{stem}.md" for stem in own],
        findings=findings,
        sums=judge_claims(summed, tables, mode=mode, rsum=True),
        scores=uncertainty_scores(controls[0]) if controls else [],
        notes=list(dict.fromkeys(one.note for one in facts if one.note)),
        encoder=facts[0].encoder_is,
    )


def _facts(path: Path) -> Facts:
    return Facts(**json.loads(path.read_text("utf-8")))


# --- the pages ------------------------------------------------------------------------------------

# The rows that differ in a mechanism alone, in the table of controls.
_MECHANISMS = (
    ("DUQ's uncertainty", "DUQ", "DUQ, means only"),
    ("UATVR's uncertainty", "UATVR", "UATVR, means only"),
    ("DVTR's eta", "DVTR", "DVTR, etas shuffled"),
)
_ORACLES = "positive controls"
_KNOWN = "known"  # in the name of a row that is an oracle
VERDICTS, PICTURE = "verdicts.md", "claims.png"


def write_pages(folder: Path) -> list[Path]:
    """Write README.md, verdicts.md and, where matplotlib is there, claims.png of some results.

    Raises:
        SystemExit: there is no table with ranks.
    """
    places = [one for one in (folder, *sorted(folder.glob("*"))) if one.is_dir()]
    tested = [found for place in places for found in read_tested(place)]
    if not tested:
        raise SystemExit(
            f"{folder} has no table; run `sureshot reproduce controls --to {folder}` first."
        )
    written = [folder / "README.md", folder / VERDICTS]
    with contextlib.suppress(SureshotError):  # no matplotlib
        save_figure(draw_gaps(tested), folder / PICTURE)
        written.append(folder / PICTURE)
    doses = list[str]()
    for table in load_tables().values():
        if table.option:
            doses += dose_lines(table, responses(table, places))
            abouts = [one / f"{table.name}.json" for one in places]
            notes = [_facts(about).note for about in abouts if about.exists()]
            doses += [line for note in dict.fromkeys(notes) if note for line in (note, "")]
    pages = [page for one in tested for page in one.pages]
    tables = [page.relative_to(folder).as_posix() for page in pages]
    text = "\n".join([*verdict_lines(tested, doses), "", "## Tables", "", *_by_folder(tables)])
    write_text(folder / VERDICTS, text + "\n")
    more = [page for pattern in ("*.md", "*/README.md") for page in sorted(folder.glob(pattern))]
    links = [page.relative_to(folder).as_posix() for page in more if page not in written]
    lines = ["# Does uncertainty help text-video retrieval?", "", *answer_lines(tested), ""]
    lines[3:3] = ["", *effect_lines(tested)]
    if folder / PICTURE in written:
        lines += [
            f"![Gaps in R@1, measured and printed]({PICTURE})",
            "",
            _HOW_TO_READ,
            "",
        ]
    also = f" More: {', '.join(f'[{_link_name(one)}]({one})' for one in links)}." if links else ""
    lines += [
        f"Every claim, the sums of recalls, doses and all tables: [{VERDICTS}]({VERDICTS}).{also} "
        "Written by `python -m benchmarks.claims_page`; how a verdict is found: "
        "[docs/reproducing.md](../docs/reproducing.md).",
    ]  # fmt: skip
    write_text(folder / "README.md", "\n".join(lines) + "\n")
    return written


def _link_name(page: str) -> str:
    """The folder of a README, and any other page by its own name."""
    return page.removesuffix("/README.md").removesuffix(".md")


def _by_folder(names: Sequence[str]) -> Iterator[str]:
    """Links to pages, a line for each folder."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, page = name.rpartition("/")
        folders.setdefault(folder, []).append(f"[{page.removesuffix('.md')}]({name})")
    for folder, links in folders.items():
        yield f"* {folder or 'here'}: {', '.join(links)}"


_FARTHEST = 6.0  # points in the picture; most gaps are far smaller
_HOW_TO_READ = (
    "A dot is the measured gap, its line the 95 % interval over seeds and videos, the pale band "
    "what would not have been seen with 80 % power; a hollow diamond is the gap that the paper "
    f"prints. What is beyond {_FARTHEST:.0f} points stands at the edge."
)


def verdict_lines(tested: Sequence[Tested], doses: Sequence[str]) -> Iterator[str]:
    """All verdicts, what has no runs yet, and what cannot be tested."""
    yield "# Verdicts on every claim"
    yield ""
    yield (
        "The two rows that test a claim are in [metrics/claims.csv]"
        "(../src/sureshot/metrics/claims.csv), with the day on which they were chosen and why. "
        "Gaps are in points with 95 % intervals; *visible* is the smallest true gap that would "
        "have been distinguished from 0 with 80 % power, at the level that its family leaves. "
        "*Ruled out*: no gap is seen, and one as large as printed would have been; without a "
        "printed gap a claim cannot be ruled out. The sum is that of R@1, 5 and 10 in both "
        "directions; in synthetic data every video that fits a caption is right there, and every "
        "caption that fits a video. A family is a paper, on one data set, in one mode, on one "
        "measure; over all families together more than 5 of 100 may be wrong."
    )
    for one in tested:
        yield ""
        yield f"## {one.name}"
        yield ""
        yield from _verdicts(one)
        for note in one.notes:
            yield ""
            yield note
        if confidence := _confidence([one]):
            yield ""
            yield f"AUROC for wrong first hits: {confidence}."
    yield from ("", *doses) if doses else ()
    yield ""
    yield "## No runs yet"
    yield ""
    yield (
        "`PLAN` and `FOLDER` stand for `results/synthetic-frozen` or `results/frame-subset-long`, "
        "and for either with `-paper` at its end where a claim is to be judged as printed. The "
        "commands run on any plan, those in `plans/` included."
    )
    yield ""
    yield from _not_run(tested)
    yield ""
    yield "## Not testable on these data"
    yield ""
    for claim in load_claims():
        if claim.untested:
            yield f"* {claim.paper}: {claim.says}: {claim.untested}."


def _verdicts(one: Tested) -> Iterator[str]:
    sums = {id(found.claim): found for found in one.sums}
    yield "| claim | printed | gap | verdict | visible | sum | verdict | visible | seeds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for found in one.findings:
        claim = found.claim
        if found.gap is None:
            continue
        unit = "" if claim.metric in ("R@1", "rsum") else f" ({claim.metric})"
        cells = [
            _claim_name(claim),
            claim.printed,
            _size(found.gap) + unit,
            *_decided(found),
            *_of_sum(sums.get(id(claim))),
        ]
        yield f"| {' | '.join([*cells, str(found.gap.seeds)])} |"


def _of_sum(found: Finding | None) -> list[str]:
    if found is None or found.gap is None:
        return [""] * 3
    return [_size(found.gap), *_decided(found)]


def _decided(found: Finding) -> list[str]:
    decision = found.decision
    verdict = "no verdict" if decision.verdict == "not run" else str(decision.verdict)
    verdict += ", smaller than printed" if decision.smaller else ""
    return [verdict, "" if decision.visible is None else f"{decision.visible:.1f}"]


def _not_run(tested: Sequence[Tested]) -> Iterator[str]:
    """Claims without any gap, by table, with the command that runs it."""
    there = {
        (found.claim.says, one.mode)
        for one in tested
        for found in one.findings
        if found.gap is not None
    }
    missing: dict[str, list[str]] = {}
    for claim in load_claims():
        modes: list[Mode] = [m for m in _MODES if claim.table and all(claim.rows(m))]
        open_ones = [_MODES[mode] for mode in modes if (claim.says, mode) not in there]
        if open_ones and claim.paper != "ours":
            both = "" if len(open_ones) == len(_MODES) else f" ({open_ones[0]})"
            missing.setdefault(claim.table, []).append(f"{claim.paper}: {claim.says}{both}")
    for table, claims in missing.items():
        command = f"sureshot reproduce {table} --plan PLAN.toml --to FOLDER --seeds 10 --claims"
        yield f"* `{command}`: {'; '.join(claims)}."


def draw_gaps(tested: Sequence[Tested]) -> "Figure":
    """The gaps in R@1: a row for each claim, a panel for each data set and mode.

    Gaps of more than `_FARTHEST` points are drawn at the edge, with their size.

    Raises:
        SureshotError: matplotlib is not installed.
    """
    found = [
        {(f.claim.says, f.claim.table): f for f in one.findings if f.gap and _drawn(f.claim)}
        for one in tested
    ]
    rows = list(dict.fromkeys(key for some in found for key in some))[::-1]
    figure = new_figure(1.0 + 0.2 * len(rows), width=_NAMES + _PANEL * len(tested))
    panels = figure.subplots(1, len(tested), sharex=True, sharey=True, squeeze=False)[0]
    for axes, one, findings in zip(panels, tested, found, strict=True):
        for finding in findings.values():
            _draw_gap(axes, rows.index((finding.claim.says, finding.claim.table)), finding)
        label_axes(axes, "", "")
        axes.axvline(0, color=INK, lw=0.7)
        axes.set_title("\n".join(words(one.name, _PANEL, SMALL, 5)), fontsize=SMALL, loc="left")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    names = {key: f.claim for some in found for key, f in some.items()}
    labels = [_claim_name(names[key]) for key in rows]
    panels[0].set_yticks(range(len(rows)), [words(n, _NAMES, SMALL)[0] for n in labels])
    panels[0].set_ylim(-0.7, max(1, len(rows)) - 0.3)
    panels[0].set_xlim(-_FARTHEST - 2, _FARTHEST + 2)
    figure.supxlabel("gap in R@1, points", fontsize=NORMAL)
    return figure


_NAMES, _PANEL = 3.2, 1.7  # inches for the names, and for each data set and mode


def _drawn(claim: Claim) -> bool:
    return first_measure(claim) == "R@1" and (claim.paper != "ours" or bool(claim.printed))


def _claim_name(claim: Claim) -> str:
    return claim.says if claim.paper == "ours" else f"{claim.paper}: {claim.says}"


def _draw_gap(axes: "Axes", place: int, finding: Finding) -> None:
    """The interval of a gap, the band of what would not have been seen, and the printed gap."""
    gap, visible = finding.gap, finding.decision.visible
    assert gap is not None
    style = BLUE if visible is not None else MUTED
    if visible is not None:
        axes.plot([-visible, visible], [place] * 2, color=PALE, lw=7, alpha=0.6, zorder=1)
    if finding.printed is not None:
        printed = min(finding.printed, _FARTHEST)
        axes.plot([printed], [place], "D", color=ORANGE, mfc="white", ms=4, zorder=2)
    if abs(gap.value) > _FARTHEST:
        side = float(np.sign(gap.value))
        axes.plot([side * _FARTHEST], [place], ">" if side > 0 else "<", color=style, ms=5)
        where: Any = {"ha": "left" if side > 0 else "right", "va": "center"}
        axes.text(side * (_FARTHEST + 0.4), place, f"{gap.value:+.0f}", fontsize=SMALL, **where)
        return
    axes.plot([gap.low, gap.high], [place] * 2, color=style, lw=1.4, zorder=3)
    axes.plot([gap.value], [place], "o", color=style, ms=4, zorder=4)


def answer_lines(tested: Sequence[Tested]) -> Iterator[str]:
    """Up to three paragraphs, from the claims that have a verdict."""
    if not any(one.decided for one in tested):
        yield (
            f"No claim has a verdict yet: none of the tables here has {LEAST_SEEDS} seeds and the "
            "ranks of every query."
        )
        return
    yield f"**Does uncertainty help to find videos?** {_effect(tested)}"
    yield ""
    yield f"**Could we have detected an effect?** {_power(tested)}"
    if confidence := _confidence(tested):
        yield ""
        yield (
            "**Does it know when it is wrong?** AUROC for wrong first hits, where 0.5 is a guess: "
            f"{confidence}."
        )


def _effect(tested: Sequence[Tested]) -> str:
    asked, helps, sums = dict[str, None](), list[str](), list[Verdict]()
    for one in tested:
        for name, finding, summed in _mechanisms(one):
            if finding.decision.verdict in _DECIDED:
                asked[name] = None
            if finding.decision.verdict == "supported":
                helps.append(f"{name} ({one.name})")
            if summed and summed.decision.verdict in _DECIDED:
                sums.append(summed.decision.verdict)
    waiting = [name for name, *_ in _MECHANISMS if name not in asked]
    parts = [f"Not run often enough to say: {_listed(waiting)}."] if waiting else []
    if asked:
        seen = f"{_listed(helps)} beat its control" if helps else "no mechanism beat its control"
        parts.insert(
            0, f"In R@1 {seen}, which is the same system and weights without the mechanism."
        )
    if sums:
        gains, losses = sums.count("supported"), sums.count("contradicted")
        parts.append(
            f"Of {counted(len(sums), 'gap')} in the sum of the recalls of both directions, "
            f"{counted(gains, 'is a gain', 'are gains')} and "
            f"{counted(losses, 'is a loss', 'are losses')}."
        )
    if all(one.encoder == _FROZEN for one in tested):
        parts.append(
            "Nothing is known yet of an encoder tuned end to end, as the papers tune theirs."
        )
    return " ".join(parts)


def _mechanisms(one: Tested) -> Iterator[tuple[str, Finding, Finding | None]]:
    """Each mechanism with the findings of its claim on R@1 and on the sum of recalls."""
    for name, *rows in _MECHANISMS:
        sums = [f for f in one.sums if [f.claim.more, f.claim.less] == rows]
        for found in one.findings:
            if [found.claim.more, found.claim.less] == rows and found.claim.metric == "R@1":
                yield name, found, next(iter(sums), None)


def effect_lines(tested: Sequence[Tested]) -> Iterator[str]:
    """What each mechanism gains over its control and how the printed claims fare, by data set."""
    claims = [claim for claim in load_claims() if claim.paper != "ours"]
    printed = {name: f.printed for one in tested for name, f, _ in _mechanisms(one)}
    names = [name for name, *_ in _MECHANISMS]
    yield f"| R@1 gained [95 % interval] | {' | '.join(names)} | printed claims |"
    yield f"|---|{'---|' * len(names)}---|"
    gaps = [f"{gap:+.1f}" if (gap := printed.get(name)) else "" for name in names]
    yield f"| printed | {' | '.join(gaps)} | {len(claims)} |"
    for one in tested:
        cells, seeds = dict.fromkeys(names, ""), LEAST_SEEDS
        for name, found, _ in _mechanisms(one):
            if found.gap is not None:
                cells[name] = f"{_size(found.gap)} {_decided(found)[0]}"
                seeds = min(seeds, found.gap.seeds)
        few = f" ({counted(seeds, 'seed')})" if seeds < LEAST_SEEDS else ""
        verdicts = [f.decision.verdict for f in one.findings if f.claim.paper != "ours"]
        counts = " / ".join(str(verdicts.count(verdict)) for verdict in (*_DECIDED, "not run"))
        yield f"| {one.name}{few} | {' | '.join(cells.values())} | {counts} |"
    yield ""
    yield (
        "The last column counts the papers' printed claims, not the three gaps before it: "
        f"{' / '.join(_DECIDED)} / no verdict (not run, or fewer than {LEAST_SEEDS} seeds). Of the "
        f"{len(claims)}, {sum(bool(claim.untested) for claim in claims)} cannot be tested on these "
        "data. "
        "R@1 is the share of queries whose right video comes first. *As printed* are the papers' "
        "equations as they stand, *well-posed* with their faults fixed. *Ruled out*: no gain is "
        "seen, and one as large as printed would have been. *No verdict*: fewer than "
        f"{LEAST_SEEDS} seeds."
    )


def _power(tested: Sequence[Tested]) -> str:
    works: dict[str, Gap] = {}  # what an oracle gains, where that is first shown
    sizes = list[float]()
    for one in tested:
        for found in one.decided:
            oracle = found.claim.decided_with == _ORACLES
            if oracle and found.gap and found.decision.verdict == "supported":
                works.setdefault(found.claim.says, found.gap)
            if found.claim.metric == "R@1" and found.decision.visible is not None:
                sizes.append(found.decision.visible)
    visible = f"a gain of {min(sizes):.1f} to {max(sizes):.1f} points would have been visible"
    spreads = (
        "Neither DUQ nor UATVR ranks by its spread, so nothing here can show what one is worth: "
        "`python -m benchmarks.spread` can ([LOG.md](../LOG.md))."
    )
    if not works:
        return f"Not shown: no oracle helped; by the numbers alone, {visible}. {spreads}"
    parts = [f"{says} ({_size(gap)})" for says, gap in works.items()]
    return (
        "For eta, yes. Eta estimates which negatives in a batch are really positives; with the "
        f"ground truth in its place, results improve: {'; '.join(parts)}. By the numbers alone, "
        f"{visible}. {spreads}"
    )


def _confidence(tested: Sequence[Tested]) -> str:
    """How well uncertainties tell wrong first hits from right ones, over some data sets."""
    found = [(score, one) for one in tested for score in one.scores if _KNOWN not in score.row]
    papers = [(score, one) for score, one in found if score.of_paper]
    plain = [score for score, _ in found if score.name == ENTROPY]
    ours = [score for score, _ in found if score.name == PERCENT]
    if not papers or not plain:
        return ""
    best, _ = max(papers, key=lambda pair: pair[0].mean)
    named = f" (the best: {best.name} of {best.row})" if len(tested) == 1 else ""
    said = f", Sureshot's percentage {_range(ours)}" if ours else ""
    return (
        f"the papers' uncertainties reach {_range([score for score, _ in papers])}{named}, "
        f"the entropy of a softmax of any system's scores "
        f"{_range(plain)}{said}"
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
    print(*write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "results")), sep="\n")
