"""Times for people, written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.errors import QueryError
from sureshot.timecode import parse_time, time_range, timecode


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
    "text", ["", ":", "1:", "a", "1:2:3:4", "-5", "1:-30", "nan", "inf", "1e999", "1h30m"]
)
def test_what_is_no_time_is_refused_with_an_example(text):
    with pytest.raises(QueryError, match="is not a time; write seconds"):
        parse_time(text)


@given(st.integers(0, 10**7))
def test_a_time_shown_is_read_as_itself(seconds):
    assert parse_time(timecode(float(seconds))) == seconds


def test_a_time_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(QueryError):
        parse_time("1e308:0:0")
