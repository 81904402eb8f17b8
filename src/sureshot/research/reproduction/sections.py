"""A section of the first page: all about the claims that are decided together."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sureshot.errors import SureshotError
from sureshot.research.reproduction.claims import Finding
from sureshot.research.reproduction.curves import draw_curves
from sureshot.research.reproduction.dose import dose_lines, dosed_tables, draw_doses, responses
from sureshot.research.reproduction.doubt_lines import doubt_lines
from sureshot.research.reproduction.doubts import ENTROPY
from sureshot.research.reproduction.ranks import PERCENT
from sureshot.research.reproduction.tables import Table
from sureshot.research.reproduction.tested import Tested

DOUBTS = "doubts.md"  # beside the tables: all uncertainties as confidences


def section(
    family: str, folder: Path, tested: Sequence[Tested], places: Sequence[Path]
) -> Iterator[str]:
    """Verdicts on each data set, dose and response, doubts and learning curves, in Markdown.

    Args:
        family: the paper, or what else the claims are decided with.
        folder: folder of the page; pictures are drawn into it and below it.
        tested: what was tested on each data set.
        places: folders of results, in which tables with a dial are looked for.
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
    """Whether a table with a dial compares what a claim of the family compares."""
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
        f"**{table.title}.** `sureshot reproduce {table.name}` on made worlds that differ in "
        f"`{table.dial}` alone, {many} seeds: points that a mechanism has more than its control, "
        "with 95 % intervals. A real effect grows with its cause."
    )
    yield ""
    picture = folder / f"{table.name}.png"
    try:
        draw_doses(table, found, picture)
        yield f"![Gap of each mechanism against the dial {table.dial}]({picture.name})"
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
