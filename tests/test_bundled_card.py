"""The model card of the bundled model takes its numbers from what was measured."""

import pytest
from benchmarks.bundled import card

FOUND = {
    "searches": {
        "test": {"of": "msrvtt", "videos": 476, "queries": 476, "recalls": [20.04, 47.0, 59.0]},
        "sun": {"of": "rooms", "videos": 90, "queries": 90, "recalls": [58.0, 86.0, 93.0]},
    },
    "bank": {"weight": 0.75, "k": 16, "captions": 4095},
    "training": {
        "ends": {
            "settings": {"runs": 2, "epochs": 10, "layers": 6, "block": 11},
            "seconds": {"states": 1800.0, "run 1": 3600.0, "run 2": 3600.0},
            "share": 0.9,
            "run 1 at the share": {"clips": [70.0, 98.0, 100.0]},
            "run 2 at the share": {"clips": [74.0, 98.0, 100.0]},
        },
        "whole": {
            "settings": {"runs": 1, "epochs": 4, "spoiled": 0.3},
            "items": {"msrvtt": 4107, "flickr8k": 6000, "cc": 9000, "sun": 400},
            "seconds": {"run 1": 7200.0},
            "share": 0.6,
            "first": {"clips": [79.0, 99.0, 100.0], "bad": [9.0, 19.0, 29.0]},
            "mean": {"clips": [80.0, 99.0, 100.0], "bad": [10.0, 20.0, 30.0]},
        },
    },
}


def test_the_page_has_what_was_found_and_keeps_its_text():
    page = card.PAGE.read_text("utf-8")
    filled = card.filled(page, FOUND)
    for part in (
        "| MSR-VTT 1k-A frame subset: `python -m benchmarks.quality msrvtt` | 476 | 20.0 / 47.0",
        "(sun): `python -m benchmarks.quality rooms` | 90 | 58.0 / 86.0 / 93.0 |",
        "0.75 of their mean score with the 16 nearest of 4095 training captions",
        "9,400 captioned photographs",
        "10 of 21 blocks: the mean of 2 runs of 10 epochs and 1.0 hours, 90 % of the way",
        "small as in bad phone videos: one run of 4 epochs and 2.0 hours, 60 % of the way",
        "| clips | 72.0 (70.0 to 74.0) / 98.0 (98.0 to 98.0)",
        " | 79.0 / 99.0 / 100.0 | 80.0 / 99.0 / 100.0 |",
        "| bad |  | 9.0 / 19.0 / 29.0 | 10.0 / 20.0 / 30.0 |",
    ):
        assert part in filled, part
        assert part not in page
    assert "**Rights**" in filled
    old = page.split("<!-- made: recalls -->")[1].split("<!-- end -->")[0].strip().splitlines()
    assert len(old) > 5 and not set(old[2:]) & set(filled.splitlines())
    assert card.filled(filled, FOUND) == filled


def test_a_page_without_a_place_is_refused():
    with pytest.raises(ValueError, match="0 places for bank"):
        card.filled(card.PAGE.read_text("utf-8").replace("made: bank", "bank"), FOUND)
