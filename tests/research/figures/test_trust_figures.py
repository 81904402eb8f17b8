"""Figures of trust: what they show, and that they show it."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.metrics.confidence import aurc
from sureshot.research.canvas import BLUE
from sureshot.research.figures import plots
from sureshot.research.trust_report import OURS, TrustReport, measure
from tests.research.figures.pictures import pixels, share, shown
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def report():
    some = world(videos=200, captions=2)
    papers = {"vacuity": some.scores.mean(1)}
    return measure(some.scores, some.video, title="a title", papers=papers, scale=30.0, resamples=5)


def lines(axes):
    return {line.get_label(): line.get_xydata() for line in axes.get_lines()}


def test_what_was_measured_is_written_twice_and_again_the_same(report, tmp_path):
    files, again = (
        plots.write_trust(report, tmp_path / "a"),
        plots.write_trust(report, tmp_path / "b"),
    )
    assert {path.name for path in files} == {
        f"trust-{name}.{kind}"
        for name in ("reliability", "risk", "sets")
        for kind in ("png", "svg")
    }
    assert [a.read_bytes() for a in files] == [b.read_bytes() for b in again]
    empty = TrustReport("t", 3, 1, 1, np.ones(3, bool), 0.0, 5, 0, nothing="There is nothing.")
    assert plots.write_trust(empty, tmp_path / "none") == [] and not (tmp_path / "none").exists()
    orders = plots.write_trust(replace(report, reliability={}, sizes={}), tmp_path / "some")
    assert [path.name for path in orders] == ["trust-risk.png", "trust-risk.svg"]


def test_reliability_shows_shares_against_probabilities_and_counts(report):
    figure = plots.draw_reliability(report)
    top, low = figure.get_axes()
    for name, bins in report.reliability.items():
        expected = np.stack([bins.probability, bins.right], 1)[bins.count >= 10]
        np.testing.assert_allclose(lines(top)[name], expected)
    bins = report.reliability[OURS]
    assert [bar.get_height() for bar in low.patches] == bins.count.tolist()
    words = shown(figure).splitlines()
    assert set(map(str, bins.count.tolist())) <= set(words) and "a title" in words
    assert share(pixels(figure), BLUE) > 0.003


def test_risk_is_counted_among_the_surest_and_signals_stand_in_order(report):
    axes = plots.draw_risk(report).get_axes()[0]
    drawn = {label.split(", 0.")[0]: xy for label, xy in lines(axes).items()}
    wrong = ~report.right
    for name, confidence in report.confidences.items():
        x, y = drawn[name].T
        assert x[-1] == 1 and y[-1] == pytest.approx(wrong.mean()) and x[0] == 10 / 400
        at = len(x) // 2
        cut = np.sort(confidence)[::-1][round(x[at] * 400) - 1]
        if (confidence == cut).sum() == 1:
            assert y[at] == pytest.approx(wrong[confidence >= cut].mean())
    texts = [text.get_text().rpartition(", ")[0] for text in axes.get_legend().get_texts()]
    assert texts == sorted(report.confidences, key=lambda n: aurc(report.confidences[n], wrong))
    signals = [line for line in axes.get_lines() if ", 0." in line.get_label()]
    widths = {line.get_label().rpartition(", ")[0]: line.get_linewidth() for line in signals}
    assert widths.pop(OURS) > 2 * max(widths.values())
    # Not by colour alone: line and marker tell them apart in print.
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in signals}
    assert len(looks) == len(report.confidences)


def test_half_of_the_sets_are_no_larger_than_their_marker(report):
    figure = plots.draw_sets(report)
    axes = figure.get_axes()[0]
    markers = [line.get_xydata().tolist() for line in axes.get_lines()]
    for coverage, sizes in report.sizes.items():
        label = next(x for x in lines(axes) if x.startswith(f"{100 * coverage:.0f} %"))
        x, y = lines(axes)[label].T
        assert y[-1] == sizes.max() and x[-1] == 1
        assert np.mean(sizes <= y[200]) >= x[200]
        assert f"median {np.median(sizes):.0f}" in label and [[0.5, np.median(sizes)]] in markers
    assert "dotted: all 200 videos" in shown(figure) and axes.get_ylim()[1] > 200
