"""Times for people: seconds in code, ``H:MM:SS`` on the screen."""

import math

from sureshot.errors import QueryError


def timecode(seconds: float) -> str:
    """Clock time, whole seconds rounded down; hours only where there are some.

    Examples:
        >>> timecode(5.9), timecode(3725.0)
        ('0:05', '1:02:05')
    """
    whole = max(0, math.floor(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def time_range(start: float, end: float) -> str:
    """A range of clock times, its end rounded up so that the range holds what it names.

    Examples:
        >>> time_range(61.2, 90.1)
        '1:01-1:31'
    """
    return f"{timecode(start)}-{timecode(float(math.ceil(end)))}"


def parse_time(text: str) -> float:
    """Seconds from ``90``, ``90.5``, ``1:30`` or ``1:02:05``.

    Raises:
        QueryError: not a time.

    Examples:
        >>> parse_time("1:30")
        90.0
    """
    try:
        parts = [float(part) for part in text.split(":")]
    except ValueError:
        parts = []
    if not 1 <= len(parts) <= 3 or any(not math.isfinite(p) or p < 0 for p in parts):
        raise QueryError(f"{text!r} is not a time; write seconds (90) or a clock time (1:30).")
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + part
    if not math.isfinite(seconds):
        raise QueryError(f"{text!r} is not a time; write seconds (90) or a clock time (1:30).")
    return seconds
