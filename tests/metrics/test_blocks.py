"""Blocks cover all rows, once and in order."""

import numpy as np
import pytest

from sureshot.metrics import ranks
from sureshot.metrics.ranks import row_blocks


@pytest.mark.parametrize("rows, width", [(0, 3), (1, 1), (7, 0), (23, 4), (10, 1000)])
def test_every_row_is_in_one_block_and_blocks_are_small(rows, width, monkeypatch):
    monkeypatch.setattr(ranks, "CELLS", 12)
    parts = list(row_blocks(rows, width))
    covered = [np.arange(rows)[part] for part in parts]
    assert [row for part in covered for row in part] == list(range(rows))
    assert all(len(part) == 1 or len(part) * width <= 12 for part in covered)
    assert len(parts) == (len(parts) if not width else -(-rows // max(1, 12 // width)))
