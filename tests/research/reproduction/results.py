"""A folder of results with a table of controls."""

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.claims_page import Tested, read_tested

from sureshot.research.reproduction.page import Facts, write_page
from sureshot.research.reproduction.plan import find_table
from sureshot.research.reproduction.runs import Run, write_ranks
from tests.research.reproduction.ranked import ranked

NAMES = ("R@1", "R@5", "R@10", "MnR", "R@Sum", "v2t R@1", "v2t R@5", "v2t R@10")


def controls(
    folder: Path, seeds: int = 10, few: Sequence[str] = (), title: str = "Synthetic test"
) -> None:
    """Write the table: a known eta helps, a learned one does not, DUQ is worse than its control.

    Rows named in ``few`` have three seeds alone.
    """
    table = find_table("controls")
    share = dict.fromkeys([row.name for row in table.variants], 0.4)
    share |= {"DVTR, known eta": 0.6, "DUQ": 0.2}
    ranks = ranked(share, seeds=seeds)[""]
    runs = [
        Run(row, seed, dict.fromkeys(NAMES, 20.0), 2, 55.5, 1000, 10.0, curve=[1.0, 2.0])
        for row, seed in zip(ranks.rows, ranks.seeds, strict=True)
    ]
    facts = Facts("sureshot reproduce controls", "A", "B", [title], "small", "3 epochs")
    write_page(folder, table, runs, facts)
    cells = zip(ranks.rows, ranks.seeds, ranks.runs, strict=True)
    kept = {(row, n): {"": run} for row, n, run in cells if n < 3 or row not in few}
    write_ranks(folder / "controls.npz", kept)


@functools.cache
def decided_controls() -> Tested:
    """What `controls` says of the claims, worked out once; its folder is gone."""
    with tempfile.TemporaryDirectory() as folder:
        controls(Path(folder))
        found = read_tested(Path(folder))
    assert found is not None
    return found
