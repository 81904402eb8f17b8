"""Gaps of a mechanism in worlds that differ in one option."""

from dataclasses import asdict

import pytest
from benchmarks.claims_page import dose_lines, dosed_tables, draw_doses, responses

from sureshot.files import write_json
from sureshot.research.reproduction.page import Facts
from sureshot.research.reproduction.plan import find_table
from sureshot.research.reproduction.runs import write_ranks
from tests.research.reproduction.ranked import ranked

TABLE = find_table("dose-common")


def world(folder, dose, known):
    """A world whose known eta gives some points more; nothing else helps."""
    share = dict.fromkeys([row.name for row in TABLE.variants], 0.4) | {"DVTR, known eta": known}
    ranks = ranked(share, seeds=3)[""]
    folder.mkdir()
    cells = zip(ranks.rows, ranks.seeds, ranks.runs, strict=True)
    write_ranks(folder / "dose-common.npz", {(r, s): {"": run} for r, s, run in cells})
    facts = Facts("command", "A", "B", ["Synthetic test"], "small", "", options={"common": dose})
    write_json(folder / "dose-common.json", asdict(facts))
    return folder


@pytest.fixture
def worlds(tmp_path):
    doses = ((0.9, 0.8), (0.0, 0.4), (0.5, 0.6))
    return [world(tmp_path / f"w{dose}", dose, known) for dose, known in doses]


def test_a_response_grows_with_its_dose(worlds, tmp_path):
    found = responses(TABLE, [*worlds, tmp_path])  # the last has no table
    known = [one for one in found if (one.mechanism, one.measure) == ("known eta", "R@1")]
    assert [one.dose for one in known] == [0.0, 0.5, 0.9]
    assert abs(known[0].gap.value) < 12 < known[1].gap.value < known[2].gap.value
    assert known[2].gap.low > 0 and known[2].gap.seeds == 3
    shuffled = [one.gap.value for one in found if one.mechanism == "DVTR's eta"]
    assert max(map(abs, shuffled)) < 12


def test_lines_and_picture_have_every_dose(worlds, tmp_path):
    found = responses(TABLE, worlds)
    lines = dose_lines(found)
    assert lines[0] == "| | | 0 | 0.5 | 0.9 |"
    assert len(lines) == 2 + 2 * len(TABLE.compared)
    assert draw_doses(TABLE, found, tmp_path / "dose.png")
    assert (tmp_path / "dose.png").stat().st_size > 5000
    few = [one for one in found if one.dose == 0.5]
    assert not draw_doses(TABLE, few, tmp_path / "few.png")
    assert not (tmp_path / "few.png").exists()


def test_what_is_compared_is_rows_of_the_table():
    assert [table.name for table in dosed_tables()] == ["dose-common", "dose-ambiguity"]
    for table in dosed_tables():
        rows = {row.name for row in table.variants}
        for _, more, less in table.compared:
            assert {more, less} <= rows
