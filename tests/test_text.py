"""Queries, paths and times."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.errors import QueryError
from sureshot.library.query_checks import clean, parse_time
from sureshot.text import (
    decoded,
    duration,
    other_script,
    plain,
    printable,
    time_range,
    timecode,
)


def test_a_query_is_one_line_without_control_characters():
    assert clean(" a\x1b[31mred\r\n\tdog\x07 ") == "a [31mred dog"
    assert clean("caf\udce9") == "caf?"
    assert clean("日本 \u3000 語") == "日本 語"


@given(st.text(st.characters(), max_size=30))
def test_whatever_is_typed_is_cleaned_or_refused(text):
    try:
        cleaned = clean(text)
    except QueryError:
        return
    assert cleaned == clean(cleaned) == cleaned.strip()
    assert cleaned.encode().decode() == cleaned
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in cleaned)


@pytest.mark.parametrize("text", ["", " ", "\t\x1b", "\u200b"])
def test_a_query_that_says_nothing_is_refused(text):
    with pytest.raises(QueryError, match="The query is empty"):
        clean(text)


def test_a_script_is_another_one_where_most_letters_are_not_latin():
    assert other_script("красная car")
    assert other_script("赤い車")
    assert not other_script("a long café 赤")
    assert not other_script("123")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0:00"),
        (0.999, "0:00"),
        (59.99, "0:59"),
        (60, "1:00"),
        (3599.9, "59:59"),
        (3600, "1:00:00"),
        (3725.5, "1:02:05"),
        (360_000, "100:00:00"),
        (-3.0, "0:00"),
    ],
)
def test_a_time_is_shown_in_whole_seconds_rounded_down(seconds, shown):
    assert timecode(float(seconds)) == shown


def test_a_range_holds_what_it_names():
    assert time_range(61.2, 90.1) == "1:01-1:31"
    assert time_range(0.0, 30.0) == "0:00-0:30"
    assert time_range(3590.0, 3601.0) == "59:50-1:00:01"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90.5", 90.5), ("1:30", 90), ("1:02:05", 3725), ("0:00", 0), (" 5 ", 5)],
)
def test_seconds_and_clock_times_are_read(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text", ["", ":", "1:", "a", "1:2:3:4", "-5", "1:-30", "nan", "inf", "1e308:0:0", "1h30m"]
)
def test_what_is_no_time_is_refused_with_an_example(text):
    with pytest.raises(QueryError, match="is not a time; write seconds"):
        parse_time(text)


@given(st.integers(0, 10**7))
def test_a_time_shown_is_read_as_itself(seconds):
    assert parse_time(timecode(float(seconds))) == seconds


def test_paths_are_shown_without_half_characters_and_what_steers_a_terminal():
    path = Path(os.fsdecode(b"caf\xe9 \x1b[2J \xe7\x8a\xac"))
    assert printable(path) == "caf\ufffd \x1b[2J 犬"
    assert plain(path) == "caf\ufffd \ufffd[2J 犬"


@pytest.mark.parametrize(
    "seconds, words",
    [
        (-5, "0 s"),
        (0, "0 s"),
        (1e-9, "0.01 s"),
        (0.04, "0.04 s"),
        (0.5, "0.5 s"),
        (0.6, "1 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3599.9, "1 h"),
        (7260, "2 h 1 min"),
        (360_000, "100 h"),
    ],
)
def test_lengths_of_time_in_words(seconds, words):
    assert duration(float(seconds)) == words


def test_bytes_that_are_no_text_are_refused_or_replaced():
    for coding in ("utf-8", "utf-8-sig", "utf-16"):
        assert decoded("é\n日本".encode(coding)) == "é\n日本"
    with pytest.raises(UnicodeDecodeError):
        decoded(b"a\xff")
    assert decoded(b"a\xff", "replace") == "a\ufffd"
