"""UATVR's tables have the rows of the paper, and a control with all of its weights."""

import pytest
import torch

from sureshot.metrics.published import published
from sureshot.models.systems.load import load_system
from sureshot.models.tokens import Sizes
from sureshot.research.reproduction.uatvr import CONTROL, FULL, TABLES

OF = {table.name: table for table in TABLES}


def weights(settings):
    return sum(part.numel() for part in load_system(settings, Sizes(16, 3)).parameters())


@pytest.mark.parametrize("name", ["uatvr-1", "uatvr-3", "uatvr-4"])
def test_no_printed_row_is_left_out(name):
    rows = published("msrvtt", method="UATVR", direction="t2v")
    printed = {row.variant for row in rows if row.table == OF[name].table}
    assert {v.printed for v in OF[name].variants if v.method == "UATVR"} >= printed > set()


def test_a_part_is_added_from_row_to_row():
    names = ["TI", "+ DSA", "+ DUA (MIL-NCE)", "+ KL (UATVR)"]
    rows = [next(v for v in OF["uatvr-1"].variants if v.name == name) for name in names]
    made = [load_system(row.system, Sizes(16, 3)) for row in rows]
    parts = [(m.config.adaptation, m.config.branch, "divergence" in _losses(m)) for m in made]
    assert parts == [(False,) * 3, (True, False, False), (True, True, False), (True,) * 3]


def _losses(made):
    return {"divergence"} if made.config.branch and made.config.divergence else set()


def test_the_control_has_the_weights_and_no_uncertainty():
    assert weights(CONTROL.system) == weights(FULL)
    made = load_system(CONTROL.system, Sizes(16, 3))
    assert made.config.matching == "means"
    assert made.gaussian({name: torch.zeros(1, 16) for name in ("mean", "log_var")}) is None
