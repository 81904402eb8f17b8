"""Parameters that the paper prints, and multiply-adds that can be worked out by hand."""

import json

import pytest

from sureshot import research
from sureshot.research.reproduction.page import measure_cost
from sureshot.research.reproduction.plan import find_table

ROWS = {variant.name: variant for variant in find_table("uatvr-2").variants}


def test_the_table_has_the_parameters_that_the_paper_prints_and_needs_no_plan(tmp_path):
    made = research.reproduce("uatvr-2", to=tmp_path)
    assert [path.name for path in made.files] == ["uatvr-2.md", "uatvr-2.json"]
    costs = json.loads(made.files[1].read_text())
    assert {name: round(cost["parameters"] / 1e6, 1) for name, cost in costs.items()} == {
        "CLIP4Clip": 162.3,
        "TI (token-wise)": 162.8,
        "w/ DSA": 162.8,
        "w/ DUA": 164.9,
    }
    text = made.files[0].read_text()
    for name, variant in ROWS.items():
        millions = f"{costs[name]['parameters'] / 1e6:.2f}"
        assert f"| {name} | {millions} M | {variant.paper} M |" in text
        assert millions.startswith(variant.paper[:3])


def test_the_mean_interaction_would_have_fewer_than_printed():
    found = measure_cost({**ROWS["TI (token-wise)"].system, "interaction": "mean"}).parameters / 1e6
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
