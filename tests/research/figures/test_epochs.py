"""Several checkpoints, in the order they are named."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.plots import Epochs, Point, epochs
from tests.research.figures.pictures import shown


def test_points_are_mean_measures_and_recalls(subject):
    first, second = subject("uatvr"), subject("uatvr", 1)
    second = replace(second, scorer=replace(second.scorer, name="later"))
    found = epochs([first, second])
    assert [point.name for point in found.points] == [first.scorer.name, "later"]
    for point in found.points:
        assert point.r1 == 100 * np.mean(text_ranks(first.scores, first.owner) <= 1)
        assert set(point.means) == {"text deviation", "video deviation"}
        for name, mean in point.means.items():
            assert mean == pytest.approx(first.measures[name].mean())
    assert found.to_dict()["checkpoints"][1]["name"] == "later"


def test_one_checkpoint_or_different_systems_are_refused(subject):
    with pytest.raises(SureshotError, match="name two checkpoints or more"):
        epochs([subject("duq")])
    with pytest.raises(SureshotError, match=r"text deviation.*; name checkpoints of one system"):
        epochs([subject("duq"), subject("uatvr")])
    with pytest.raises(SureshotError, match="measures no uncertainty"):
        epochs([subject("xpool"), subject("xpool")])


def test_checkpoints_are_drawn_in_order_with_their_numbers():
    points = [
        Point(name, r1, {"text a": x}) for name, r1, x in (("p", 10.0, 0.3), ("q", 20.0, 0.1))
    ]
    figure = Epochs("title", points).draw()
    (axes,) = figure.axes
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0.3, 10], [0.1, 20]]
    assert axes.get_xlabel() == "mean text a" and "R@1, %" in axes.get_ylabel()
    assert {"1", "2"} <= set(shown(figure).splitlines())
