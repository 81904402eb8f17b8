"""Recall in bins of a measure, and whether the measure tells who fails."""

import itertools

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.research.figures.plots import Uncertainty, measured, separation, uncertainty
from tests.research.figures.pictures import pixels, share, shown


def of(values, right, video=None):
    video = np.arange(len(values)) if video is None else np.array(video)
    return measured("text to video", np.array(values, float), np.array(right, bool), video, 0)


def test_bins_hold_the_queries_in_order_of_the_measure():
    rng = np.random.default_rng(0)
    values, right = rng.permutation(100).astype(float), rng.random(100) < 0.4
    found = of(values, right)
    order = np.argsort(values)
    assert [one.queries for one in found.bins] == [20] * 5
    for place, one in enumerate(found.bins):
        part = order[20 * place : 20 * place + 20]
        assert one.r1 == pytest.approx(100 * right[part].mean())
        assert (one.low, one.high) == (values[part].min(), values[part].max())
        assert one.mean == pytest.approx(values[part].mean())
        assert one.interval[0] <= one.r1 <= one.interval[1]
        assert one.interval[1] - one.interval[0] > 10
    assert found.r1 == pytest.approx(100 * right.mean())


def test_equal_values_are_never_parted():
    found = of([1.0] * 30 + [2.0, 3.0], [True] * 16 + [False] * 16)
    assert sum(one.queries for one in found.bins) == 32
    assert found.bins[0].queries >= 30
    alike = of([4.0] * 8, [True, False] * 4)
    assert [one.queries for one in alike.bins] == [8] and alike.separation == 0.5


def test_intervals_come_from_videos_and_one_video_has_none():
    values, right = np.arange(40.0), [True] * 20 + [False] * 20
    alone = of(values, np.resize([True, False], 40), np.repeat(np.arange(5), 8))
    assert [one.interval for one in alone.bins] == [None] * 5
    assert of(values, right).bins[0].interval == (100.0, 100.0)


def test_separation_counts_pairs():
    rng = np.random.default_rng(1)
    failed, found = rng.integers(0, 9, 30).astype(float), rng.integers(0, 6, 20).astype(float)
    pairs = list(itertools.product(failed, found))
    by_hand = sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)
    assert separation(failed, found) == pytest.approx(by_hand)
    assert separation(failed, found[:0]) is separation(failed[:0], found) is None
    assert separation(failed + 100, found) == 1.0 and separation(failed - 100, found) == 0.0


@pytest.mark.parametrize("system", ["duq", "uatvr", "dvtr"])
def test_texts_are_judged_by_texts_found_and_videos_by_videos(subject, system):
    asked = subject(system)
    found = uncertainty(asked)
    assert set(found.measures) == set(asked.measures) and found.measures
    ranks = {
        "text": text_ranks(asked.scores, asked.owner),
        "video": video_ranks(asked.scores, asked.owner),
    }
    for name, one in found.measures.items():
        side = name.split()[0]
        right = ranks[side] <= 1
        assert one.r1 == pytest.approx(100 * right.mean())
        assert one.direction == ("text to video" if side == "text" else "video to text")
        values = asked.measures[name]
        assert one.separation == separation(values[~right], values[right])
        assert sum(part.queries for part in one.bins) == len(values)


def test_a_system_without_measures_is_refused(subject):
    with pytest.raises(SureshotError, match="has no uncertainty to draw: xpool as it was trained"):
        uncertainty(subject("xpool"))


def test_every_panel_shows_all_of_its_bars():
    low = of(np.arange(50.0), [True] * 5 + [False] * 45)
    high = of(np.arange(50.0), [True] * 40 + [False] * 10)
    figure = Uncertainty("title", {"text a": low, "video b": high, "text c": low}).draw()
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_xlabel() for axes in panels] == ["text a", "video b", "text c"]
    for axes in panels:
        bottom, top = axes.get_ylim()
        assert bottom == 0 and top >= 100
    assert "separation 1.000" in shown(figure)
    assert share(pixels(figure), "#0072b2") > 0.001
