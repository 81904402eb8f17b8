"""The first page of a folder of results: what became of the papers' claims.

It reads the tables in the folder and those in folders below it, one data set each. A verdict needs
the ranks of every query and at least ten seeds; tables without are named as such.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sureshot.errors import SureshotError
from sureshot.files import write_text
from sureshot.metrics.verdicts import LEAST_SEEDS
from sureshot.research.reproduction.answer_lines import answer_lines
from sureshot.research.reproduction.claims import load_claims
from sureshot.research.reproduction.doubt_lines import ABOUT, doubt_lines
from sureshot.research.reproduction.forest import draw_forest
from sureshot.research.reproduction.sections import DOUBTS, section
from sureshot.research.reproduction.tables import load_tables
from sureshot.research.reproduction.tested import CONTROLS, Tested, pages_of, read_tested

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
        *_listed(folder, pages, tested),
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
    """What chance finds and what the best scorer there can be; only a made world knows it."""
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


def _listed(folder: Path, pages: Sequence[Path], tested: Sequence[Tested]) -> Iterator[str]:
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
