"""The result of an indexing run, in words and in JSON."""

from pathlib import Path

import pytest

from sureshot.library.results import Indexed

BROKEN = [(Path("/v/a.mp4"), "is \x1b[2Jbroken")]


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({}, "0 videos found: nothing new."),
        ({"found": 1, "indexed": 1}, "1 video found: 1 indexed."),
        (
            {"found": 9, "unchanged": 2, "moved": 3, "copied": 4, "failed": BROKEN},
            "9 videos found: nothing new, 2 unchanged, 3 moved, 4 with the content of another, "
            "1 failed.",
        ),
        ({"found": 5, "known_failures": 5}, "5 videos found: nothing new, 5 failed before."),
    ],
)
def test_the_summary_names_every_number_that_is_not_zero(values, sentence):
    assert Indexed(**values).summary == sentence


def test_it_prints_where_the_index_is_and_what_failed_and_why():
    result = Indexed(
        "/db", found=2, indexed=1, failed=BROKEN, notes=[(Path("/v/b.mp4"), "cut off")]
    )
    assert repr(result).splitlines() == [
        "/db: 2 videos found: 1 indexed, 1 failed.",
        "  failed: /v/a.mp4: is \ufffd[2Jbroken",
        "  damaged: /v/b.mp4: cut off",
    ]


def test_json_has_no_field_of_the_progress():
    values = Indexed(
        "/db", bytes_done=7, seconds_begun=3.0, current=Path("/v/a.mp4"), failed=BROKEN
    ).to_dict()
    assert list(values)[:2] == ["schema", "index"]
    assert values["failed"] == [{"path": "/v/a.mp4", "reason": "is \x1b[2Jbroken"}]
    assert not {"current", "bytes_found", "bytes_done", "bytes_begun", "seconds_begun"} & set(
        values
    )
