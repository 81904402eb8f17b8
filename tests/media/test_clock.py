"""Times: near zero at the start, never falling, and true where the file tells the truth."""

from fractions import Fraction
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from sureshot.media.video import Clock

MILLI = Fraction(1, 1000)


def stream(start=0, rate=10):
    return SimpleNamespace(average_rate=rate, guessed_rate=None, start_time=start, time_base=MILLI)


def packet(dts, pts=None):
    return SimpleNamespace(dts=dts, pts=dts if pts is None else pts, time_base=MILLI)


def told(clock, stamps):
    """Times told for packets of these milliseconds that are decoded as they come."""
    times = []
    for stamp in stamps:
        one = packet(stamp)
        clock.mend(one)
        times.append(round(clock.tell(one.pts / 1000), 3))
    return times


def test_times_count_from_the_start_of_the_stream():
    assert told(Clock(stream(start=5000)), [5000, 5100, 5200]) == [0.0, 0.1, 0.2]
    assert told(Clock(stream(start=-200)), [-200, -100, 0]) == [0.0, 0.1, 0.2]


def test_a_start_that_the_file_does_not_tell_is_its_first_frame():
    assert told(Clock(stream(start=None)), [5000, 5100]) == [0.0, 0.1]


def test_frames_without_times_come_at_the_rate_of_the_stream():
    assert [Clock(stream(rate=rate)).tell(None) for rate in (10, None, 0, 10**6)] == [0.0] * 4
    clock = Clock(stream(rate=10))
    assert [round(clock.tell(None), 3) for _ in range(3)] == [0.0, 0.1, 0.2]
    clock = Clock(stream(rate=None))
    assert [round(clock.tell(None), 3) for _ in range(3)] == [0.0, 0.04, 0.08]
    assert clock.tell(float("nan")) > 0.08


def test_a_clock_set_back_goes_on_from_where_it_was():
    clock = Clock(stream())
    assert told(clock, [0, 100, 200, 5000, 0, 100, 200]) == [0, 0.1, 0.2, 5.0, 5.1, 5.2, 5.3]
    assert clock.was_set


def test_a_clock_that_leaps_for_days_was_set_as_well():
    wrap = round(2**33 / 90)  # milliseconds after which the clock of MPEG begins anew
    clock = Clock(stream())
    assert told(clock, [0, 100, wrap, wrap + 100]) == [0, 0.1, 0.2, 0.3]
    assert clock.was_set


def test_gaps_and_tremors_stay():
    clock = Clock(stream())
    assert told(clock, [0, 3_600_000, 3_599_900, 3_600_200]) == [0, 3600.0, 3600.0, 3600.2]
    assert not clock.was_set


def test_a_packet_without_a_decoding_time_is_left_alone():
    clock, blank = Clock(stream()), SimpleNamespace(dts=None, pts=7, time_base=MILLI)
    clock.mend(packet(50_000))
    clock.mend(blank)
    assert blank.pts == 7 and not clock.was_set


@given(st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), max_size=30))
def test_times_never_fall_and_never_are_negative(stamps):
    clock, times = Clock(stream(start=None)), []
    for stamp in stamps:
        one = packet(stamp, 0 if stamp is None else stamp)
        clock.mend(one)
        times.append(clock.tell(None if stamp is None else one.pts / 1000))
    assert times == sorted(times) and all(time >= 0 for time in times)
