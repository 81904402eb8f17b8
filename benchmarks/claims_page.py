"""What the papers claim, and what our runs say of it.

The claims are in ``metrics/claims.csv``: each names two rows of a table. They are judged by the
ranks of every query (`sureshot.research.reproduction.runs`), all claims about a paper together
(`sureshot.metrics.intervals`).
"""

import csv
import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from sureshot.errors import SureshotError
from sureshot.files import write_text
from sureshot.metrics.confidence import auroc, brier, ece
from sureshot.metrics.intervals import (
    LEAST_SEEDS,
    Comparison,
    Decision,
    Gap,
    Measure,
    SeedRanks,
    Verdict,
    decide,
    mean_of_recalls,
    paired_gap,
    recall_at_one,
    sum_of_recalls,
)
from sureshot.research.figures.canvas import (
    BLUE,
    INK,
    MUTED,
    NORMAL,
    ORANGE,
    PALE,
    SERIES,
    SMALL,
    add_legend,
    label_axes,
    new_figure,
    new_panels,
    save_figure,
    words,
)
from sureshot.research.reproduction.page import Facts
from sureshot.research.reproduction.plan import Table, load_tables
from sureshot.research.reproduction.runs import (
    AMBIGUITY,
    PERCENT,
    Run,
    RunRanks,
    TableRanks,
    read_ranks,
)
from sureshot.settings import build, read_json
from sureshot.trust.card import Logistic

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# fits: share of captions whose first hit fits, by what is true of a synthetic dataset
ClaimMetric = Literal["R@1", "rsum", "geometric mean", "fits"]
_MEASURES: Mapping[ClaimMetric, Measure] = {
    "R@1": recall_at_one,
    "fits": recall_at_one,  # of ranks that are 1 where the first hit fits
    "rsum": sum_of_recalls,
    "geometric mean": mean_of_recalls,
}
_GAP = re.compile(r"\+(\d+(?:\.\d+)?)")
_SEED = 0  # of the videos that are drawn


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
        found = _GAP.match(self.printed)
        return None if found is None else float(found[1])


@functools.cache
def load_claims() -> tuple[Claim, ...]:
    """All claims, in the order of the file."""
    text = files("sureshot.metrics").joinpath("claims.csv").read_text("utf-8")
    claims = []
    for line in csv.DictReader(text.splitlines()):
        values: dict[str, Any] = {name: value for name, value in line.items() if value}
        values["elsewhere"] = line["elsewhere"] == "yes"
        claims.append(build(Claim, values))
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
        tables: ranks of each table by its name, then by test set as of
            `sureshot.research.reproduction.runs.read_ranks`.

    Returns:
        One finding a claim, in their order.
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
    names = list(tests)
    place = 1 if claim.elsewhere else 0
    if len(names) <= place:
        return None
    ranks = tests[names[place]]
    fits = claim.metric == "fits"
    if fits and not ranks.knows_fits:
        return None
    more, less = ranks.of_row(claim.more, fits=fits), ranks.of_row(claim.less, fits=fits)
    if more is None or less is None or len(_common(more, less)) < 2:
        return None
    draw = np.random.default_rng(_SEED)
    return paired_gap(more, less, _MEASURES[claim.metric], draw)


def _common(one: SeedRanks, other: SeedRanks) -> set[int]:
    return set(one.seeds) & set(other.seeds)


ENTROPY = "softmax entropy"
_ANY = ("best score", ENTROPY, PERCENT, AMBIGUITY, "Bayes")  # of no paper


@dataclass(frozen=True, slots=True)
class Doubt:
    """How much an uncertainty is worth, over the seeds of a row.

    Attributes:
        row: row of the table.
        name: name of the uncertainty.
        auroc: chance that a wrong first hit is doubted more than a right one, of each seed; 0.5
            knows nothing, below that it is upside down.
        own: the same of first hits that are not the caption's own video, whether they fit or not.
        ambiguity: rank correlation with the number of videos that fit a caption, of each seed;
            empty outside of synthetic datasets.
        saved: share of the Brier score of the base rate that it saves as a probability, in percent,
            of each seed; 0 knows nothing, below that it misleads.
        off: calibration error of the probability in points, of each seed.
    """

    row: str
    name: str
    auroc: Sequence[float]
    own: Sequence[float]
    ambiguity: Sequence[float]
    saved: Sequence[float]
    off: Sequence[float]

    @property
    def is_own(self) -> bool:
        """Whether it is the system's own, and not one that any scores have."""
        return self.name not in _ANY


def doubts_of(ranks: TableRanks) -> list[Doubt]:
    """What each uncertainty of each row is worth, in the order of the rows."""
    found = []
    for row in dict.fromkeys(ranks.rows):
        runs = list(ranks.part(row).values())
        for name in dict.fromkeys(name for run in runs for name in run.doubts):
            # A calibration that found itself too bad gives no percentage.
            having = [run for run in runs if name in run.doubts]
            known = [_correlation(run, name) for run in having]
            pairs = [(run, _chances(run, name)) for run in having]
            found.append(
                Doubt(
                    row=row,
                    name=name,
                    auroc=[_detected(run.doubts[name], run.right) for run in having],
                    own=[_detected(run.doubts[name], run.texts <= 1) for run in having],
                    ambiguity=[value for value in known if not np.isnan(value)],
                    saved=[_saved(chance, run.right) for run, chance in pairs],
                    off=[100 * ece(chance, run.right) for run, chance in pairs],
                )
            )
    return found


def _correlation(run: RunRanks, name: str) -> float:
    from scipy.stats import spearmanr

    doubt, truth = run.doubts[name], run.doubts.get(AMBIGUITY)
    if truth is None or np.ptp(doubt) == 0 or np.ptp(truth) == 0:
        return float("nan")
    return float(spearmanr(doubt, truth).statistic)


def _chances(run: RunRanks, name: str) -> Float[np.ndarray, " captions"]:
    """Probability that the first hit of each caption is right, by a doubt."""
    doubt = run.doubts[name].astype(np.float64)
    if name == PERCENT:
        return np.clip(1 - doubt, 0, 1)
    chance = np.empty(len(doubt))
    half = run.owner % 2 == 0  # videos lie in no order that means anything
    for known in (half, ~half):
        if run.right[known].all() or not run.right[known].any():
            chance[~known] = run.right[known].mean()  # there is nothing to fit a curve to
            continue
        curve = Logistic.fit(doubt[known, None], run.right[known])
        chance[~known] = curve.probability(doubt[~known, None])
    return chance


def _saved(chance: Float[np.ndarray, " captions"], right: Bool[np.ndarray, " captions"]) -> float:
    rate = right.mean()
    return 100 * (1 - brier(chance, right) / (rate * (1 - rate))) if 0 < rate < 1 else float("nan")


def _detected(doubt: Float[np.ndarray, " captions"], right: Bool[np.ndarray, " captions"]) -> float:
    """AUROC of a doubt for what is not right; no number where all is right, or nothing."""
    return auroc(-doubt, right) if 0 < right.sum() < len(right) else float("nan")


ABOUT = (
    "A doubt is good if it is larger where the first hit does not fit the caption: AUROC is "
    "the chance of that (0.5 knows nothing, below it is upside down). *Not its own* counts "
    "every first hit but the caption's own video as wrong, as benchmarks do: there the known "
    "ambiguity of a caption is the control that must know. *Ambiguity* is the rank correlation "
    "with the number of videos that truly fit. *Saved* is what a doubt is worth as a "
    "probability: how much of the squared error it saves that always saying the base rate "
    "makes, by a logistic curve fitted on the other half of the videos; *off* is its "
    "calibration error in points. Sureshot's percentage is judged as it is, learned on the "
    "validation set. Mean ± deviation over the seeds."
)


def doubt_lines(doubts: Sequence[Doubt]) -> Iterator[str]:
    """A table in Markdown, a line a row and doubt; `ABOUT` says what its columns are."""
    yield "| row | doubt | AUROC, first hit does not fit | not its own | ambiguity | saved | off |"
    yield "|---|---|---|---|---|---|---|"
    for doubt in doubts:
        cells = [
            doubt.row,
            doubt.name,
            _spread(doubt.auroc),
            _spread(doubt.own),
            _spread(doubt.ambiguity) if doubt.ambiguity else "",
            f"{_spread(doubt.saved, 1)} %",
            _spread(doubt.off, 1),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _spread(values: Sequence[float], digits: int = 2) -> str:
    mean = f"{np.nanmean(values):.{digits}f}"
    return f"{mean} ± {np.nanstd(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


_TABLES = ("controls", "systems")  # the first that there is


def draw_curves(folder: Path, path: Path, rows: Collection[str]) -> bool:
    """Draw the score on the validation set after each epoch, a line a row, the mean of its seeds.

    Args:
        folder: folder of results.
        path: file of the picture.
        rows: rows that are drawn.

    Returns:
        False where no run of these rows has a curve, and nothing is drawn.

    Raises:
        SureshotError: matplotlib is not installed, or the file cannot be written.
    """
    for name in _TABLES:
        runs = [run for run in _read_runs(folder / f"{name}.csv") if len(run.curve) > 1]
        runs = [run for run in runs if run.variant in rows]
        if runs:
            break
    else:
        return False
    figure = new_figure(3.6, width=7.5)
    axes = figure.subplots()
    for place, row in enumerate(dict.fromkeys(run.variant for run in runs)):
        curves = [run.curve for run in runs if run.variant == row]
        length = min(map(len, curves))
        mean = np.mean([curve[:length] for curve in curves], axis=0)
        style = "-" if place < len(SERIES) else "--"
        colour = SERIES[place % len(SERIES)]
        axes.plot(np.arange(1, length + 1), mean, style, color=colour, lw=1.2, label=row)
    label_axes(axes, "epoch", "sum of six recalls, validation")
    add_legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)
    return True


def _read_runs(path: Path) -> list[Run]:
    """Row, seed and curve of the runs of a CSV file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Run(
                variant=line["row"],
                seed=int(line["seed"]),
                scores={},
                epoch=int(line["epoch"]),
                validation=float(line["validation"]),
                parameters=int(line["parameters"]),
                seconds=float(line["seconds"]),
                curve=tuple(map(float, (line.get("curve") or "").split())),
            )
            for line in csv.DictReader(file)
        ]


_DOSE_MEASURES = {"R@1": False, "first hits that fit": True}  # whether a hit counts that truly fits
_DOSE_SEED = 0  # of the videos that are drawn
_APART = 0.012  # of the axis, between lines at the same dose


@dataclass(frozen=True, slots=True)
class DoseResponse:
    """The gap of one mechanism in one world.

    Attributes:
        mechanism: what is in one row and not in the other.
        measure: ``R@1`` of the own video, or the share of ``first hits that fit``, in percent.
        dose: value of the option.
        gap: what the mechanism gives, in points.
        folder: where the table of this world lies.
    """

    mechanism: str
    measure: str
    dose: float
    gap: Gap
    folder: Path


def responses(table: Table, folders: Sequence[Path]) -> list[DoseResponse]:
    """The gaps of each mechanism of a table, by mechanism, measure and dose.

    Args:
        table: a table with an option.
        folders: folders of results; those without this table are passed over.
    """
    found = []
    for folder in folders:
        tests = read_ranks(folder / f"{table.name}.npz")
        about = folder / f"{table.name}.json"
        if not tests or not about.exists():
            continue
        dose = Facts(**read_json(about)).options.get(table.option)
        ranks = next(iter(tests.values()))
        if dose is None:
            continue
        for mechanism, more, less in table.compared:
            for measure, fits in _DOSE_MEASURES.items():
                gap = _dose_gap(ranks, more, less, fits=fits)
                if gap is not None:
                    found.append(
                        DoseResponse(
                            mechanism=mechanism,
                            measure=measure,
                            dose=float(dose),
                            gap=gap,
                            folder=folder,
                        )
                    )
    order = [mechanism for mechanism, _, _ in table.compared]
    measures = list(_DOSE_MEASURES)
    return sorted(
        found, key=lambda x: (order.index(x.mechanism), measures.index(x.measure), x.dose)
    )


def dosed_tables() -> list[Table]:
    """The tables that have an option."""
    return [table for table in load_tables().values() if table.option]


def draw_doses(table: Table, found: Sequence[DoseResponse], path: Path) -> bool:
    """Draw the gaps against the option, a line a mechanism, a panel a measure.

    Returns:
        False where there are fewer than two doses, and nothing is drawn.

    Raises:
        SureshotError: matplotlib is not installed, or the file cannot be written.
    """
    doses = sorted({one.dose for one in found})
    if len(doses) < 2:
        return False
    figure, panels = new_panels(len(_DOSE_MEASURES), 3.4, width=8.5)
    wide = doses[-1] - doses[0]
    names = [name for name, _, _ in table.compared]
    for axes, measure in zip(panels, _DOSE_MEASURES, strict=True):
        for place, name in enumerate(names):
            own = [one for one in found if (one.mechanism, one.measure) == (name, measure)]
            at = np.array([one.dose for one in own]) + _APART * wide * (place - len(names) / 2)
            gaps = np.array([[one.gap.value, one.gap.low, one.gap.high] for one in own])
            if not len(gaps):
                continue
            colour = SERIES[place % len(SERIES)]
            around = np.abs(gaps[:, 1:].T - gaps[:, 0])
            style: dict[str, Any] = {"color": colour, "lw": 1.4, "ms": 4, "capsize": 2}
            axes.errorbar(at, gaps[:, 0], around, fmt="o-", label=name, elinewidth=0.9, **style)
        axes.axhline(0, color="0.3", lw=0.8)
        axes.set_xticks(doses)
        label_axes(axes, table.option, f"{measure}: points more than its control")
        axes.tick_params(labelleft=True)
    add_legend(panels[0], loc="upper left")
    save_figure(figure, path)
    return True


def dose_lines(found: Sequence[DoseResponse]) -> list[str]:
    """A table of the gaps in Markdown, a row a mechanism and measure, a column a dose."""
    doses = sorted({one.dose for one in found})
    lines = [
        f"| | | {' | '.join(f'{dose:g}' for dose in doses)} |",
        f"|---|---|{'---|' * len(doses)}",
    ]
    for mechanism, measure in dict.fromkeys((one.mechanism, one.measure) for one in found):
        own = {x.dose: x.gap for x in found if (x.mechanism, x.measure) == (mechanism, measure)}
        cells = [_shown(own[dose]) if dose in own else "" for dose in doses]
        lines.append(f"| {mechanism} | {measure} | {' | '.join(cells)} |")
    return lines


def _shown(gap: Gap) -> str:
    return f"{gap.value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"


def _dose_gap(ranks: TableRanks, more: str, less: str, *, fits: bool) -> Gap | None:
    one, other = ranks.of_row(more, fits=fits), ranks.of_row(less, fits=fits)
    if one is None or other is None or len(set(one.seeds) & set(other.seeds)) < 2:
        return None
    return paired_gap(one, other, recall_at_one, np.random.default_rng(_DOSE_SEED))


CONTROLS = "controls"  # the table that has each mechanism beside its control
_DECIDED: Sequence[Verdict] = ("supported", "contradicted", "ruled out", "too noisy to tell")


@dataclass(frozen=True, slots=True)
class Tested:
    """The tables of one data set.

    Attributes:
        folder: where they are.
        title: title of the test set.
        tables: ranks by name of the table, then by test set.
        findings: what they say of the claims.
        doubts: what each uncertainty in the table of controls is worth; empty without that table.
    """

    folder: Path
    title: str
    tables: Mapping[str, Mapping[str, TableRanks]]
    findings: Sequence[Finding]
    doubts: Sequence[Doubt] = ()

    @property
    def decided(self) -> list[Finding]:
        """The claims that have a verdict."""
        return [one for one in self.findings if one.decision.verdict in _DECIDED]


def pages_of(place: Path) -> list[Path]:
    """The pages of tables in a folder."""
    names = [
        page
        for name, table in load_tables().items()
        for page in (name, *(f"{name}-{data}" for data in table.data))
    ]
    return [place / f"{name}.md" for name in names if (place / f"{name}.md").exists()]


def read_tested(place: Path) -> Tested | None:
    """The tables of a folder that have ranks, but for those with an option; None where none has."""
    tables = {}
    title = ""
    dosed = {table.name for table in load_tables().values() if table.option}
    for page in pages_of(place):
        if page.stem in dosed:  # of many worlds together, see `dose`
            continue
        ranks = read_ranks(page.with_suffix(".npz"))
        if ranks:
            tables[page.stem] = ranks
            title = title or Facts(**read_json(page.with_suffix(".json"))).tests[0]
    if not tables:
        return None
    claims = [claim for claim in load_claims() if not claim.untested]
    controls = list(tables.get(CONTROLS, {}).values())
    return Tested(
        folder=place,
        title=title,
        tables=tables,
        findings=judge_claims(claims, tables),
        doubts=doubts_of(controls[0]) if controls else (),
    )


DOUBTS = "doubts.md"  # beside the tables: all uncertainties as confidences


def section(
    family: str, folder: Path, tested: Sequence[Tested], places: Sequence[Path]
) -> Iterator[str]:
    """Verdicts on each data set, dose and response, doubts and learning curves, in Markdown.

    Args:
        family: the paper, or what else the claims are decided with.
        folder: folder of the page; pictures are drawn into it and below it.
        tested: what was tested on each data set.
        places: folders of results, in which tables with an option are looked for.
    """
    measured = [one for one in tested if _measured(family, one)]
    if not measured:
        return
    yield f"## {family[0].upper()}{family[1:]}"
    yield ""
    for one in measured:
        yield f"On {one.title}:"
        yield ""
        yield "| claim | verdict | gap | printed | smallest visible | seeds | command |"
        yield "|---|---|---|---|---|---|---|"
        yield from map(_row, _measured(family, one))
        yield ""
    for table in dosed_tables():
        if _belongs(table, family, measured):
            yield from _doses(table, folder, places)
    for one in measured:
        yield from _doubts(family, one, folder)
        yield from _curves(family, one, folder)


def _measured(family: str, one: Tested) -> list[Finding]:
    return [f for f in one.findings if f.claim.decided_with == family and f.gap is not None]


def _row(found: Finding) -> str:
    claim, gap, decision = found.claim, found.gap, found.decision
    if gap is None:
        return ""
    unit = "" if claim.metric == "R@1" else f" ({claim.metric})"
    verdict = "no verdict" if decision.verdict == "not run" else str(decision.verdict)
    verdict += ", smaller than printed" if decision.smaller else ""
    visible = "" if decision.visible is None else f"{decision.visible:.1f}"
    cells = [
        claim.says if claim.paper != "ours" else f"{claim.says} (ours)",
        verdict,
        f"{gap.value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]{unit}",
        claim.printed,
        visible,
        str(gap.seeds),
        f"`sureshot reproduce {claim.table}`",
    ]
    return f"| {' | '.join(cells)} |"


def _belongs(table: Table, family: str, measured: Sequence[Tested]) -> bool:
    """Whether a table with an option compares what a claim of the family compares."""
    pairs = {(more, less) for _, more, less in table.compared}
    claims = [found.claim for one in measured for found in _measured(family, one)]
    return any((claim.more, claim.less) in pairs for claim in claims)


def _doses(table: Table, folder: Path, places: Sequence[Path]) -> Iterator[str]:
    """What mechanisms do where their cause is stronger, with a picture where it can be drawn."""
    found = responses(table, places)
    if len({one.dose for one in found}) < 2:
        return
    seeds = {one.gap.seeds for one in found}
    many = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else str(min(seeds))
    yield (
        f"**{table.title}.** `sureshot reproduce {table.name}` on synthetic datasets that "
        f"differ in `{table.option}` alone, {many} seeds: points that a mechanism has more than "
        "its control, with 95 % intervals. A real effect grows with its cause."
    )
    yield ""
    picture = folder / f"{table.name}.png"
    try:
        draw_doses(table, found, picture)
        yield f"![Gap of each mechanism against the option {table.option}]({picture.name})"
        yield ""
    except SureshotError:  # no matplotlib: the numbers are below
        pass
    yield from dose_lines(found)
    yield ""


def _doubts(family: str, one: Tested, folder: Path) -> Iterator[str]:
    """The uncertainties of the family's own system as confidences, beside what any system has."""
    rows = [found.claim.more for found in _measured(family, one)]
    own = [doubt for doubt in one.doubts if doubt.row in rows]
    if not any(doubt.is_own for doubt in own):
        return
    page = (one.folder / DOUBTS).relative_to(folder).as_posix()
    yield (
        f"**As confidences** on {one.title}: AUROC is the chance that the wrong one of two first "
        "hits is doubted more, 0.5 is a guess ([all columns and rows]"
        f"({page}))."
    )
    yield ""
    yield from doubt_lines([x for x in own if x.is_own or x.name in (ENTROPY, PERCENT)])


def _curves(family: str, one: Tested, folder: Path) -> Iterator[str]:
    claims = [found.claim for found in _measured(family, one)]
    rows = {row for claim in claims for row in (claim.more, claim.less)}
    picture = one.folder / f"curves-{family.replace(' ', '-').lower()}.png"
    try:
        if not draw_curves(one.folder, picture, rows):
            return
    except SureshotError:  # no matplotlib
        return
    yield f"![Learning curves on {one.title}]({picture.relative_to(folder).as_posix()})"
    yield ""
    yield (
        "Learning curves: the score on the validation set after each epoch, mean over the seeds. "
        "The epoch is chosen there, never on the test set."
    )
    yield ""


_CONTROLS = "positive controls"
# The rows that differ in a mechanism alone, in the table of controls.
_ALONE = (
    ("DUQ's uncertainty", "DUQ", "DUQ, means only"),
    ("UATVR's uncertainty", "UATVR", "UATVR, means only"),
    ("DVTR's eta", "DVTR", "DVTR, etas shuffled"),
    ("DVTR on the hardest negative", "hardest negative, DVTR", "hardest negative"),
)
_TOLD = "known"  # in the name of a row that is an oracle


def answer_lines(tested: Sequence[Tested]) -> Iterator[str]:
    """Three sentences, from what has a verdict."""
    decided = [found for one in tested for found in one.decided]
    if not decided:
        yield (
            f"No claim has a verdict yet: none of the tables here has {LEAST_SEEDS} seeds and the "
            "ranks of every query."
        )
        return
    yield f"**Does uncertainty help to find videos?** {_finding(tested)}"
    yield ""
    yield f"**Could we have seen it?** {_seen(decided)}"
    confidence = _confidence(tested)
    if confidence:
        yield ""
        yield f"**Does it know when it is wrong?** {confidence}"


def _finding(tested: Sequence[Tested]) -> str:
    asked = {one.title: found for one in tested if (found := _alone(one))}
    if not asked:
        return f"Nobody knows yet. Not run often enough to say: {_listed([n for n, *_ in _ALONE])}."
    parts = []
    for title, mechanisms in asked.items():
        on = f"on {title}: " if len(asked) > 1 else ""
        sizes = [f"{name} {_sizes(found)}" for name, found in mechanisms.items()]
        waiting = [name for name, *_ in _ALONE if name not in mechanisms]
        open_ones = f" (not run often enough to say: {_listed(waiting)})" if waiting else ""
        parts.append(f"{on}{_listed(sizes)}{open_ones}")
    helps = dict.fromkeys(
        name
        for mechanisms in asked.values()
        for name, found in mechanisms.items()
        if any(one.decision.verdict == "supported" for one in found)
    )
    seen = f"{_listed(list(helps))} helped" if helps else "no gain could be seen"
    return (
        f"Against the same system without the mechanism, {seen}. Of 100 searches, so many more "
        f"(fewer, where negative) put the right video first [95 % interval]: {'; '.join(parts)}."
    )


def _alone(one: Tested) -> dict[str, list[Finding]]:
    """What is decided of each mechanism against its own control."""
    return {
        name: found
        for name, more, less in _ALONE
        if (found := [f for f in one.decided if (f.claim.more, f.claim.less) == (more, less)])
    }


def _sizes(found: Sequence[Finding]) -> str:
    """Gaps in the own video found first, then in first hits that fit."""
    ordered = sorted(found, key=lambda one: one.claim.metric == "fits")
    return ", and any video that fits ".join(_size(one) for one in ordered)


def _seen(decided: Sequence[Finding]) -> str:
    oracles = [found for found in decided if found.claim.decided_with == _CONTROLS]
    works = [found for found in oracles if found.decision.verdict == "supported"]
    sizes = [
        found.decision.visible
        for found in decided
        if found.claim.metric == "R@1" and found.decision.visible is not None
    ]
    range_ = f"a gain of {min(sizes):.1f} to {max(sizes):.1f} of 100 searches would have been seen"
    if not works:
        return f"Not shown: no oracle moved anything; by the numbers alone, {range_}."
    parts = [f"{found.claim.says} ({_size(found)})" for found in works]
    return (
        "Yes. Eta is a guess which of the wrong videos of a batch fit after all; a system that "
        f"is told the truth instead does better: {_listed(parts)}. By the numbers alone, {range_}."
    )


def _confidence(tested: Sequence[Tested]) -> str:
    parts = {one.title: part for one in tested if (part := _confidence_on(one))}
    if not parts:
        return ""
    said = [f"on {title} {part}" if len(parts) > 1 else part for title, part in parts.items()]
    return (
        "Asked which of two first hits is the wrong one, where 0.5 is a guess and 1 always right, "
        f"{'; '.join(said)}."
    )


def _confidence_on(one: Tested) -> str:
    found = [doubt for doubt in one.doubts if _TOLD not in doubt.row]
    own = [doubt for doubt in found if doubt.is_own]
    plain = [doubt for doubt in found if doubt.name == ENTROPY]
    ours = [doubt for doubt in found if doubt.name == PERCENT]
    if not own or not plain:
        return ""
    best = max(own, key=_mean)
    said = f"; Sureshot's percentage {_range(ours)}" if ours else ""
    return (
        f"the papers' uncertainties reach {_range(own)} (the best: {best.name} of {best.row}) and "
        f"the entropy of a softmax of the scores, which any system has, {_range(plain)}{said} "
        f"({_seeds(found)} seeds)"
    )


def _range(doubts: Sequence[Doubt]) -> str:
    means = [_mean(one) for one in doubts]
    low, high = f"{min(means):.2f}", f"{max(means):.2f}"
    return low if low == high else f"{low} to {high}"


def _seeds(doubts: Sequence[Doubt]) -> str:
    counts = [len(one.auroc) for one in doubts]
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _mean(doubt: Doubt) -> float:
    return float(np.nanmean(doubt.auroc))


def _size(found: Finding) -> str:
    gap = found.gap
    if gap is None:
        return ""
    value = round(gap.value, 1) + 0.0  # no -0.0
    return f"{value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), parts[-1]])


COLOURS: Mapping[Verdict, str] = {
    "supported": "#009e73",
    "contradicted": ORANGE,
    "ruled out": BLUE,
    "too noisy to tell": MUTED,
}
_WIDE, _NAMED, _ROW = 9.0, 4.4, 0.3  # inches


def draw_forest(found: Mapping[str, Sequence[Finding]], path: Path) -> bool:
    """Draw the gaps of all claims that were measured, those of each data set below each other.

    A dot is the gap and its line the 95 % interval; a hollow diamond is the gap that the paper
    prints; a grey band is what would not have been seen with 80 % power.

    Args:
        found: findings by the title of the test set.
        path: file of the picture.

    Returns:
        False where nothing was measured, and nothing drawn.

    Raises:
        SureshotError: matplotlib is not installed, or the file cannot be written.
    """
    shown = {
        title: [one for one in findings if one.gap is not None] for title, findings in found.items()
    }
    shown = {title: findings for title, findings in shown.items() if findings}
    if not shown:
        return False
    heights = [len(findings) + 1.5 for findings in shown.values()]
    figure = new_figure(_ROW * sum(heights) + 1.1, width=_WIDE)
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, findings) in zip(panels, shown.items(), strict=True):
        _panel(axes, title, findings)
    _explain(panels[heights.index(max(heights))])  # a small one has no room for it
    save_figure(figure, path)
    return True


def _panel(axes: "Axes", title: str, findings: Sequence[Finding]) -> None:
    names = []
    for height, one in zip(range(len(findings) - 1, -1, -1), findings, strict=True):
        claim, gap, visible = one.claim, one.gap, one.decision.visible
        if gap is None:
            continue
        colour = COLOURS.get(one.decision.verdict, PALE)
        if visible is not None:
            axes.barh(height, 2 * visible, left=-visible, height=0.8, color="0.93", zorder=1)
        axes.plot([gap.low, gap.high], [height, height], color=colour, lw=1.8, zorder=3)
        axes.plot([gap.value], [height], "o", color=colour, ms=5, zorder=4)
        if claim.printed_gap is not None:
            axes.plot([claim.printed_gap], [height], "D", mfc="white", mec=INK, ms=5, zorder=5)
        unit = "" if claim.metric == "R@1" else f" ({claim.metric})"
        label = f"{claim.decided_with}: {claim.says}{unit}"
        names.append("\n".join(words(label, _NAMED)))
    axes.axvline(0, color=INK, lw=0.8, zorder=2)
    axes.set_yticks(range(len(findings) - 1, -1, -1), names, fontsize=SMALL)
    axes.set_ylim(-0.7, len(findings) - 0.3)
    axes.set_title(title, fontsize=NORMAL, loc="left")
    label_axes(axes, "gap in points", "")
    axes.grid(visible=False, axis="y")
    axes.use_sticky_edges = False  # a band of what is not visible must not end the picture
    axes.autoscale_view(scaley=False)


def _explain(axes: "Axes") -> None:
    """What the colours mean."""
    for verdict, colour in COLOURS.items():
        axes.plot([], [], "o-", color=colour, label=verdict)
    axes.plot([], [], "D", mfc="white", mec=INK, label="printed")
    axes.legend(fontsize=SMALL, loc="lower right", frameon=True)


_LIMITS, _NOTES = "limits.md", "reading.md"  # written by a person
_FOREST = "claims.png"


def write_summary(folder: Path) -> Path:
    """Write README.md of a folder from the tables in it and in the folders below it.

    ``limits.md``, if there is one, comes right after the answer: what speaks against it.
    ``reading.md`` is put at the end: what a person reads in the numbers. The pictures need
    matplotlib; without it the page has none.

    Raises:
        SureshotError: there is no table at all.
    """
    places = [one for one in (folder, *sorted(folder.iterdir())) if one.is_dir()]
    pages = [page for place in places for page in pages_of(place)]
    if not pages:
        raise SureshotError(
            f"{folder} has no table; run `sureshot reproduce controls --to {folder}` first."
        )
    tested = [found for place in places if (found := read_tested(place)) is not None]
    lines = ["# Does uncertainty help text-video retrieval?", "", *answer_lines(tested), ""]
    limits = folder / _LIMITS
    if limits.exists():
        lines += [limits.read_text("utf-8").strip(), ""]
    lines += _forest(folder, tested)
    for one in tested:
        lines += _best(one)
        _write_doubts(one)
    for family in dict.fromkeys(claim.decided_with for claim in load_claims()):
        lines += section(family, folder, tested, places)
    lines += [
        *_how(),
        *_untested(),
        *_left(tested),
        *_summary_listed(folder, pages, tested),
    ]
    reading = folder / _NOTES
    if reading.exists():
        lines += ["", reading.read_text("utf-8").strip()]
    path = folder / "README.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _forest(folder: Path, tested: Sequence[Tested]) -> Iterator[str]:
    try:
        if not draw_forest({one.title: one.findings for one in tested}, folder / _FOREST):
            return
    except SureshotError:  # no matplotlib: the page is of use without pictures
        return
    yield f"![Gap, interval, printed gap and smallest visible effect]({_FOREST})"
    yield ""
    yield (
        "A dot is the measured gap, its line the 95 % interval over seeds and videos; a "
        "hollow diamond the gap that the paper prints; the grey band what would not have "
        "been seen with 80 % power. Pale: fewer than ten seeds, no verdict."
    )
    yield ""


def _how() -> Iterator[str]:
    yield "## How a verdict is found"
    yield ""
    yield (
        "Two rows that differ in the mechanism alone are trained with the same seeds and asked for "
        "the same videos. *Supported* and *contradicted*: the gap is not 0. *Ruled out*: it is not "
        "0 for sure, but surely smaller than printed. *Too noisy to tell*: neither. All claims "
        "about a paper are decided together, so that in at most 5 of 100 such families any verdict "
        f"would be wrong (`python -m benchmarks.verdicts`). Fewer than {LEAST_SEEDS} seeds get no "
        "verdict. The videos that are drawn anew are those of the test set, with all their "
        "captions. `sureshot reproduce summary` writes this page from the files beside it."
    )
    yield ""


def _best(one: Tested) -> Iterator[str]:
    """What chance and the best possible scorer find; known for synthetic data alone."""
    for ranks in list(one.tables.get(CONTROLS, {}).values())[:1]:
        run = ranks.runs[0]
        if "Bayes" in run.doubts:
            best, chance = 100 * np.mean(1 - run.doubts["Bayes"]), 100 / len(run.videos)
            yield (
                f"On {one.title} the Bayes scorer has an R@1 of {best:.1f}, the highest there can "
                f"be, and chance {chance:.2f}. *(fits)* is the share of captions whose first hit "
                "fits, by what is true of all videos."
            )
            yield ""


def _write_doubts(one: Tested) -> None:
    """Write the page of all uncertainties as confidences beside the tables, if there are any."""
    if one.doubts:
        title = f"# Uncertainties as confidences: {one.title}"
        write_text(one.folder / DOUBTS, "\n".join([title, "", ABOUT, "", *doubt_lines(one.doubts)]))


def _untested() -> Iterator[str]:
    yield "## Not testable on these data"
    yield ""
    for claim in load_claims():
        if claim.untested:
            yield f"* {claim.paper}, {claim.says}: {claim.untested}."
    yield ""


def _left(tested: Sequence[Tested]) -> Iterator[str]:
    """The claims that no data set here has a verdict on."""
    decided = {id(found.claim) for one in tested for found in one.decided}
    left = [claim for claim in load_claims() if not claim.untested and id(claim) not in decided]
    if not left:
        return
    yield "## Without a verdict so far"
    yield ""
    yield (
        f"Fewer than {LEAST_SEEDS} seeds, or no ranks of every query. Each is one command, which "
        "goes on where it was stopped; docs/reproducing.md says what it costs."
    )
    yield ""
    for table in dict.fromkeys(claim.table for claim in left):
        says = "; ".join(f"{c.decided_with}: {c.says}" for c in left if c.table == table)
        yield f"* `sureshot reproduce {table} --seeds {LEAST_SEEDS}`: {says}"
    yield ""


def _summary_listed(folder: Path, pages: Sequence[Path], tested: Sequence[Tested]) -> Iterator[str]:
    titles = {name: table.title for name, table in load_tables().items()}
    ranked = {one.folder / f"{name}.md" for one in tested for name in one.tables}
    yield "## Pages"
    yield ""
    for page in pages:
        if page in ranked:
            place = page.relative_to(folder).as_posix()
            yield f"* [{place}]({place}): {titles.get(page.stem, page.stem)}"
    for one in tested:
        if one.doubts:
            place = (one.folder / DOUBTS).relative_to(folder).as_posix()
            yield f"* [{place}]({place}): all uncertainties as confidences"
    for path in sorted(folder.glob("*/README.md")):
        place = path.relative_to(folder).as_posix()
        yield f"* [{place}]({place})"
    older = [page for page in pages if page not in ranked]
    if older:
        yield ""
        yield (
            "Older tables, of three seeds and without ranks, some of systems that have changed "
            "since. They show how a page looks and are evidence of nothing:"
        )
        yield ""
        for page in older:
            place = page.relative_to(folder).as_posix()
            yield f"* [{place}]({place}): {titles.get(page.stem, page.stem)}"
