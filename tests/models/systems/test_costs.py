"""Parameters that the paper prints, and multiply-adds that can be worked out by hand."""

import pytest

from tests.models.systems.costs import COST_ROWS, measure_cost


@pytest.mark.parametrize(("name", "settings", "millions"), COST_ROWS)
def test_parameters_are_those_that_table_2_prints(name, settings, millions):
    assert round(measure_cost(settings).parameters / 1e6, 1) == millions


def test_the_mean_interaction_would_have_fewer_than_printed():
    found = measure_cost({**COST_ROWS[1][1], "interaction": "mean"}).parameters / 1e6
    assert found == pytest.approx(162.31, abs=0.005)


def test_multiply_adds_are_those_of_the_networks():
    """A mean of frames and a cosine: the rest is CLIP's, some 4.4 billion a frame of 50 tokens."""
    cost = measure_cost({"name": "clip4clip"}, "ViT-B/32", words=32, frames=2)
    assert cost.pair == 512
    blocks, width, tokens = 12, 768, 50
    block = 12 * tokens * width**2 + 2 * tokens**2 * width
    frame = blocks * block + 49 * 3 * 32**2 * width + width * 512
    assert cost.video == pytest.approx(2 * frame, rel=1e-3)
    assert measure_cost({"name": "clip4clip"}, "ViT-B/32", frames=1).video * 2 == cost.video
