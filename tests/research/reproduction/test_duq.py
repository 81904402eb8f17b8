"""DUQ's tables have every row that the paper prints."""

import pytest

from sureshot.metrics.published import published
from sureshot.research.reproduction.duq import TABLES

OF = {table.name: table for table in TABLES}


@pytest.mark.parametrize("name", ["duq-3", "duq-s3", "duq-s4"])
def test_no_printed_row_is_left_out(name):
    rows = published("msrvtt", method="DUQ", direction="t2v")
    printed = {row.variant for row in rows if row.table == OF[name].table}
    assert {v.printed for v in OF[name].variants} >= printed > set()


def test_frames_of_the_paper_are_there_beside_fewer():
    frames = {v.name: v.frames for v in OF["duq-s5"].variants}
    assert frames == {"F=1": 1, "F=2": 2, "F=4": 4, "F=8": 8, "F=12": None}
