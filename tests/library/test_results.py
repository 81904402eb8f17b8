"""What a search returns: values that cannot change, and print safely everywhere."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.library.confidence import status_of
from sureshot.library.index_result import Indexed
from sureshot.library.results import (
    Answer,
    Confidence,
    Copy,
    Description,
    Descriptions,
    FrameScore,
    Hit,
    Piece,
    Status,
    json_text,
)
from sureshot.text import plain, printable

STEERING = "a\x1b[2J\x9b2J\n\r\u202eb"  # clears a terminal, turns the writing direction


def hit(rank=1, path="/v/a.mp4", score=0.5, copies=()):
    frames = (FrameScore(1.5, 0.4), FrameScore(2.5, 0.6), FrameScore(3.5, 0.5))
    return Hit(
        rank, Path(path), 1.0, 4.2, score, frames, tuple(Copy(Path(c), 8.2, 11.0) for c in copies)
    )


def answer(*hits, query="red", warnings=()):
    return Answer(query, hits, "not calibrated", "tiny", 7, 0.0123456, warnings)


def descriptions(*texts, video="/v/a.mp4", at=None, warnings=()):
    ranked = tuple(Description(i, text, 1 / i) for i, text in enumerate(texts, 1))
    return Descriptions(Path(video), at, ranked, "not calibrated", "tiny", warnings)


def test_a_path_that_is_not_utf8_becomes_valid_json():
    path = os.fsdecode(b"/v/caf\xe9.mp4")
    told = answer(hit(path=path, copies=[path])).to_dict()["hits"][0]
    assert told["path"] == "/v/caf\ufffd.mp4"
    (copy,) = told["copies"]
    assert (copy["path"], copy["start"], copy["text"]) == ("/v/caf\ufffd.mp4", 8.2, "0:08-0:11")
    json.dumps(told, ensure_ascii=False).encode()


def test_the_first_pieces_of_a_scene_are_named():
    pieces = [Piece(start, start + 4.2) for start in (8.2, 61.0, 90.0, 120.0, 3600.0)]
    many = dataclasses.replace(hit(), pieces=tuple(pieces))
    assert many.scene == "same scene: 0:08-0:13, 1:01-1:06, 1:30-1:35 and 2 more"
    said = many.to_dict()
    assert said["text"]["scene"] == many.scene
    assert said["pieces"][0] == {"start": 8.2, "end": 12.4, "text": "0:08-0:13"}
    assert many.scene in answer(many)._repr_html_() and not hit().scene


@pytest.mark.parametrize("show", [str, repr, lambda value: value._repr_html_()])
@pytest.mark.parametrize(
    "value",
    [
        answer(hit(path=f"/v/{STEERING}"), query=STEERING, warnings=(STEERING,)),
        descriptions(STEERING, video=f"/{STEERING}", warnings=(STEERING,)),
    ],
    ids=["answer", "descriptions"],
)
def test_every_form_says_not_calibrated_and_steers_no_terminal(show, value):
    shown = show(value)
    assert "not calibrated" in shown
    assert "%" not in shown
    assert not set(shown) & set("\x1b\x9b\r\u202e")
    assert all(line.isprintable() for line in shown.splitlines())


def test_the_text_form_is_a_table():
    found = answer(hit(1, score=0.51234), hit(2, "/v/b.mp4", -0.1), warnings=("Mind the gap.",))
    assert str(found).splitlines() == [
        "'red': 2 hits in 7 windows (not calibrated)",
        "note: Mind the gap.",
        "   1     0:02        0:01-0:05   0.512  /v/a.mp4",
        "   2     0:02        0:01-0:05  -0.100  /v/b.mp4",
    ]
    assert str(descriptions("a red one")).splitlines() == [
        "/v/a.mp4: 1 sentence (not calibrated)",
        "   1   1.000  a red one",
    ]


def test_html_escapes_names_queries_texts_and_notes():
    evil = "<script>'\"&"
    for value in (
        answer(hit(path=f"/v/{evil}.mp4"), query=evil, warnings=(evil,)),
        descriptions(evil, video=f"/v/{evil}.mp4", warnings=(evil,)),
    ):
        shown = value._repr_html_()
        assert "<script" not in shown
        assert "'\"" not in shown
        assert shown.count("&lt;script&gt;&#x27;&quot;&amp;") >= 3
    assert "+2 copies<" in answer(hit(copies=["/b", "/c"]))._repr_html_()
    assert "cop" not in answer(hit())._repr_html_()


@given(st.text(st.characters(), max_size=20))
def test_plain_text_is_as_long_and_harmless(text):
    shown = plain(text)
    assert len(shown) == len(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)
    shown.encode()


@given(st.binary(max_size=20).filter(lambda name: b"\0" not in name))
def test_every_file_name_can_be_printed(name):
    printable(os.fsdecode(name)).encode()


# --- how sure an answer is ------------------------------------------------------------------------


def sure(status: Status, right: float = 0.57, present: float = 0.8, **values) -> Answer:
    known = {"coverage": 0.9, "plausible": 19, "prior": 0.5}
    confidence = Confidence(right=right, valid_for="mine", **known | values)
    hits = dataclasses.replace(hit(), probability=right), hit(2, "/v/b.mp4")
    made = dataclasses.replace(answer(*hits), status=status, confidence=confidence)
    return dataclasses.replace(made, present=present, searched=70)


@pytest.mark.parametrize("right, said", [(0.7951, "80% sure"), (0.7949, "Not sure")])
def test_what_is_printed_as_80_percent_is_sure(right, said):
    found = sure("confident", right, right)
    status = status_of(found.hits, found.confidence)
    assert dataclasses.replace(found, status=status).verdict[0] == said


def backwards(found):
    """The same answer, its hits in another order."""
    return dataclasses.replace(found, hits=found.hits[::-1])


@pytest.mark.parametrize(
    "found, sentence",
    [
        (
            sure("confident", 0.91, 0.95),
            "91% sure that the first result is right; 4% that only a later one is, 5% that it's "
            "not in your videos.",
        ),
        (sure("confident", 0.998, 0.999), "Over 99% sure that the first result is right."),
        # 99.4 and 0.4 and 0.2: what rounding leaves is no share of its own.
        (sure("confident", 0.994, 0.996), "Over 99% sure that the first result is right."),
        (
            sure("several plausible", 0.33, 0.44, expected=3.0),
            "Not sure: 33% that the first result is right, 11% that only a later one is, 56% that "
            "it's not in your videos. If it's there, it's among the first 19 in 90% of searches.",
        ),
        (
            sure("several plausible"),
            "Not sure: 57% that the first result is right, 23% that only a later one is, 20% that "
            "it's not in your videos. If it's there, it's among the first 19 in 90% of searches.",
        ),
        (
            sure("several plausible", plausible=None),
            "Not sure: 57% that the first result is right, 23% that only a later one is, 20% that "
            "it's not in your videos. Too many fit about as well for a short list.",
        ),
        # Near ties of a keyword are many right videos, not a doubt.
        (
            sure("several plausible", expected=3.2),
            "Many of your videos seem to show this: 57% that the first result is right, 23% that "
            "only a later one is, 20% that it's not in your videos.",
        ),
        (
            sure("confident", 0.91, 0.95, expected=6.0),
            "91% sure that the first result is right; 4% that only a later one is, 5% that it's "
            "not in your videos. Many of your videos seem to show this.",
        ),
        (
            sure("several plausible", 0.4, 0.59, expected=2.7),
            "Many of your videos may show this: 40% that the first result is right, 19% that only "
            "a later one is, 41% that it's not in your videos.",
        ),
        (
            sure("probably not here", 0.08, 0.2, expected=3.0),
            "Probably not in your videos: 80%, 8% that the first result is right, 12% that only a "
            "later one is.",
        ),
        # The newest are first.
        (
            backwards(sure("several plausible")),
            "Not sure: 57% that result 1 is right, 23% that only another one is, 20% that it's not "
            "in your videos. If it's there, it's among results 1 to 19 in 90% of searches.",
        ),
        # 54 of 57 is more than 90 of 100: nobody needs a list of 19 then.
        (
            sure("several plausible", 0.54, 0.57),
            "Not sure: 54% that the first result is right, 3% that only a later one is, 43% that "
            "it's not in your videos.",
        ),
        # One video out of one says nothing.
        (
            sure("several plausible", 0.5, 0.5, plausible=1),
            "Not sure: 50% that the first result is right, 50% that it's not in your videos.",
        ),
        # Whoever knows that it is there is not told that it may not be.
        (
            sure("several plausible", 0.6, 1.0, prior=1),
            "Not sure: 60% that the first result is right, 40% that only a later one is. It's "
            "among the first 19 in 90% of searches.",
        ),
        (
            sure("probably not here", 0.08, 0.2),
            "Probably not in your videos: 80%, 8% that the first result is right, 12% that only a "
            "later one is.",
        ),
        (sure("probably not here", 0.0001, 0.0002), "Probably not in your videos: over 99%."),
        (
            answer(hit()),
            "Not calibrated: the best match comes first, but even that may be wrong.",
        ),
    ],
)
def test_how_sure_an_answer_is_can_be_read(found, sentence):
    assert "".join(found.verdict) == sentence


def test_percentages_are_seen_wherever_an_answer_is_shown():
    found = sure("several plausible")
    lines = repr(found).splitlines()
    assert lines[1] == "".join(found.verdict)
    assert lines[2].split() == ["1", "0:02", "57%", "0:01-0:05", "0.500", "/v/a.mp4"]
    assert lines[3].split() == ["2", "0:02", "0:01-0:05", "0.500", "/v/b.mp4"]
    assert lines[2].index("0:01") == lines[3].index("0:01")
    table = found._repr_html_()
    assert "<td>57%</td>" in table and "<th>right</th>" in table and "Not sure: 57%" in table
    assert "<th>right</th>" not in answer(hit())._repr_html_()


def test_a_score_just_below_zero_is_shown_without_a_sign():
    found = answer(hit(score=-0.0001))
    texts = Descriptions(
        Path("/v/a.mp4"), None, (Description(1, "red", -0.0001),), "not calibrated", "tiny", ()
    )
    for shown in (repr(found), found._repr_html_(), repr(texts), texts._repr_html_()):
        assert "0.000" in shown and "-0.000" not in shown


def test_a_document_is_one_line_that_steers_no_terminal() -> None:
    text = json_text({"path": "a\n\x1b[31mü"})
    assert text.isprintable() and json.loads(text)["path"] == "a\n\x1b[31mü"
    assert json_text({"path": "ü"}, ascii_only=True).isascii()


BROKEN = [(Path("/v/a.mp4"), "is \x1b[2Jbroken")]


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({}, "0 videos found: nothing new."),
        ({"found": 1, "indexed": 1}, "1 video found: 1 indexed."),
        (
            {"found": 9, "unchanged": 2, "moved": 3, "copied": 4, "failed": BROKEN},
            "9 videos found: 2 unchanged, 3 moved, 4 identical to another, 1 failed.",
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
    assert result.to_dict()["failed"] == [{"path": "/v/a.mp4", "reason": "is \x1b[2Jbroken"}]
    assert repr(result).splitlines() == [
        "/db: 2 videos found: 1 indexed, 1 failed.",
        "  failed: /v/a.mp4: is \ufffd[2Jbroken",
        "  damaged: /v/b.mp4: cut off",
    ]
