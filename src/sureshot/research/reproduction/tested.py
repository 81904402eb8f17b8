"""The tables of one data set in a folder of results, and what they say of the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sureshot.formats import read_json
from sureshot.metrics.verdicts import Verdict
from sureshot.research.reproduction.claims import Finding, judge_claims, load_claims
from sureshot.research.reproduction.doubts import Doubt, doubts_of
from sureshot.research.reproduction.page import Facts
from sureshot.research.reproduction.ranks import TableRanks, read_table_ranks
from sureshot.research.reproduction.tables import load_tables

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
    """The tables of a folder that have ranks, but for those with a dial; None where none has."""
    tables = {}
    title = ""
    dosed = {table.name for table in load_tables().values() if table.dial}
    for page in pages_of(place):
        if page.stem in dosed:  # of many worlds together, see `dose`
            continue
        ranks = read_table_ranks(page.with_suffix(".npz"))
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
