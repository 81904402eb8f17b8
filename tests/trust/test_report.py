"""The report as tables and as plain values."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from sureshot.trust.report import TrustReport, measure
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def report():
    some = world(videos=200, captions=2)
    papers = {"distance vacuity": some.scores[:, 0]}
    return measure(
        some.scores, some.video, title="a title", papers=papers, scale=99.123, resamples=20
    )


def test_the_text_fits_a_terminal_and_ends_with_a_line(report):
    text = report.text()
    assert max(map(len, text.splitlines())) <= 100
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert not re.search(r"[ \t]$", text, re.MULTILINE)


def test_every_block_has_its_line_and_its_numbers(report):
    blocks = report.text().split("\n\n")
    starts = [
        *("Trust: ", "Which signal", "Do the probabilities", "And for each"),
        *("What is said of each place", "How often do the"),
        *("Does it show", "Hubness: "),
    ]
    for block, start in zip(blocks, starts, strict=True):
        assert block.startswith(start)
    ours = report.orders[0]
    row = blocks[1].splitlines()[3]
    auroc = ours.auroc
    assert row.split("  ")[0] == "P(first is right)"
    assert f"{auroc.value:.3f} [{auroc.low:.3f}, {auroc.high:.3f}]" in row
    assert row.split()[-6:] == [
        f"{x:.3f}"
        for x in (ours.aurc, ours.excess_aurc, ours.augrc, ours.risk_50, ours.risk_80, ours.nauc)
    ]
    assert "minus distance vacuity" in blocks[1] and "model's scale 99.12" in blocks[2]
    held = report.sets[1]
    shown = f"{100 * held.covered.value:.1f} % [{100 * held.covered.low:.1f}, "
    assert blocks[5].splitlines()[5].startswith("90.0 %") and shown in blocks[5]
    assert f"{report.right.mean() * 100:.1f} % of 400 queries about 200 videos" in blocks[0]


def test_columns_line_up(report):
    """Every number of a table ends where its heading ends."""
    lines = report.text().split("\n\n")[3].splitlines()[1:]
    ends = [match.end() for match in re.finditer(r"(?:\S+ )*\S+(?=  |$)", lines[0])]
    assert len(ends) == 5
    for line in lines[1:]:
        assert all(line[end - 1] != " " and line[end : end + 2].strip() == "" for end in ends)


def test_plain_values_hold_all_numbers(report):
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["title"] == "a title" and told["right"] == report.right.mean()
    assert [row["signal"] for row in told["orders"]] == [row.signal for row in report.orders]
    assert told["sets"][0]["covered"]["value"] == report.sets[0].covered.value
    assert told["absent"][0]["signal"] == "highest similarity"
    assert told["auroc_gain"]["low"] == report.gain.low
    first = told["reliability"][0]
    assert first["signal"] == "P(first is right)" and sum(first["count"]) == 400
    assert set(first) == {"signal", "low", "high", "probability", "right", "count"}
    assert told["places"][0] == {"place": 1, **{k: told["places"][0][k] for k in ("said", "right")}}


def test_a_report_of_nothing_is_two_lines():
    report = TrustReport("t", 3, 1, 1, np.ones(3, bool), 0.0, 10, 0, nothing="There is one video.")
    assert report.text() == (
        "Trust: the first result is the annotated video for 100.0 % of 3 queries about 1 video.\n"
        "! There is one video.\n"
    )


def test_without_sets_it_says_so(report):
    assert "too few queries to promise any coverage" in replace(report, sets=()).text()
