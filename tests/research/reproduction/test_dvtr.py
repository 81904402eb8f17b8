"""DVTR's tables: the paper's rows, on bases with the same settings, and controls of eta."""

import pytest

from sureshot.metrics.published import published
from sureshot.research.reproduction.dvtr import HIT, TABLES, on

OF = {table.name: table for table in TABLES}


@pytest.mark.parametrize(("name", "id"), [("dvtr-9", "DVTR-T9"), ("dvtr-10", "DVTR-T10")])
def test_no_printed_row_is_left_out(name, id):
    rows = published("msrvtt", direction="t2v")
    printed = {(row.method, row.variant) for row in rows if row.table == id}
    assert {(v.method, v.printed) for v in OF[name].variants} >= printed > set()


def test_what_a_row_is_compared_with_has_the_same_base():
    for table in TABLES:
        bases = [v.system["base"] for v in table.variants if v.system["name"] == "dvtr"]
        alone = [dict(v.system) for v in table.variants if v.system["name"] != "dvtr"]
        for base in bases:
            assert base in alone, (table.name, base)


def test_the_controls_differ_from_the_full_row_in_eta_alone():
    full = on(HIT)
    rows = {v.name: dict(v.system) for v in OF["dvtr-10"].variants}
    shuffled = rows["control: contrastive, etas dealt to other negatives"]
    assert shuffled == full | {"uncertainty": "shuffled"}
    assert rows["contrastive without eta"] == full | {"uncertainty": "none"}
    assert rows["DVTR, contrastive"] == full


def test_values_of_the_paper_stand_beside_each_setting():
    papers = {v.name: v.paper for v in OF["dvtr-11"].variants if v.paper}
    assert papers["K=7, as printed"] == "67.90 (geometric mean of recalls)"
    assert len(papers) == 6
    assert {v.paper for v in OF["dvtr-13"].variants} > {"323.0 (rsum)", "288.5 (rsum)"}
