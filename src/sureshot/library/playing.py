"""What a player is given of a video: the file, or a short part of it that a browser can show."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sureshot.errors import QueryError, VideoError
from sureshot.library.answer import JSON_SCHEMA
from sureshot.library.clips import cut
from sureshot.media.playable import MP4, Playable, lay_anew, playable
from sureshot.store.rows import VideoRecord
from sureshot.text import plain

LONGEST = 30.0  # seconds of a part that is encoded anew
_FIRST = 4.0  # seconds of such a part that are encoded before the whole of it
_LAST = 0.5  # seconds before the end of a part at which they begin at the latest
_AROUND = 2.0  # seconds before and after the moment that are played too
_SIDE = 540  # lines of such a part
_LAID_ANEW = 300_000_000  # bytes; of larger files a part is quicker than the whole


@dataclass(frozen=True, slots=True)
class Film:
    """What is played of a video.

    Attributes:
        how: how it can be played.
        start: second of the video at which the film begins.
        end: second at which it ends.
    """

    how: Playable
    start: float
    end: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/api.md describes them."""
        return {
            "schema": JSON_SCHEMA,
            "way": self.how.way,
            "type": self.how.type,
            "start": self.start,
            "end": self.end,
        }


def film_of(record: VideoRecord, *, at: float, start: float, end: float) -> Film:
    """What to play so that a moment of a video is seen, by what its file holds.

    Args:
        record: an indexed video.
        at: second that is looked for.
        start: second at which the moment begins.
        end: second at which it ends.

    Raises:
        QueryError: there is nothing at that second.
        VideoError: the video cannot be read; the message names it.
    """
    if not 0 <= at <= record.duration + 1:
        length = f"{record.duration:.2f}".rstrip("0").rstrip(".")
        raise QueryError(f"{plain(record.path)} is {length} s long; there is nothing at {at:g} s.")
    try:
        how = playable(record.path)
    except VideoError as error:
        raise VideoError(f"{plain(record.path)} {error}.") from None
    if how.way == "remux" and record.size > _LAID_ANEW:
        how = Playable("clip", MP4)
    if how.way != "clip":
        return Film(how, 0.0, round(record.duration, 3))
    first, last = part_around(at, start, end, record.duration)
    return Film(how, first, last)


def part_around(at: float, start: float, end: float, duration: float) -> tuple[float, float]:
    """Beginning and end, in seconds, of the part of a video that shows a moment.

    Examples:
        >>> part_around(12.0, 10.0, 20.0, 100.0)
        (8.0, 22.0)
        >>> part_around(300.0, 0.0, 600.0, 600.0)
        (285.0, 315.0)
    """
    first, last = max(min(start, at) - _AROUND, 0.0), min(max(end, at) + _AROUND, duration)
    if last - first > LONGEST:
        first = min(max(first, at - LONGEST / 2), last - LONGEST)
        last = first + LONGEST
    return round(first, 1), round(max(last, first + 0.1), 1)


def first_part(film: Film, at: float) -> Film | None:
    """The seconds of a part that are seen first, which are encoded long before the whole of it.

    Args:
        film: what is played.
        at: second of the video that is looked for.

    Returns:
        The part from that second on; None where the film is as quickly made, or need not be.
    """
    if film.how.way != "clip" or film.end - film.start <= _FIRST:
        return None
    begins = min(math.floor(10 * at) / 10, film.end - _LAST)
    start = round(max(begins, film.start), 1)
    return replace(film, start=start, end=round(min(start + _FIRST, film.end), 1))


def write_part(record: VideoRecord, film: Film, target: Path, *, rate: float) -> None:
    """Make what is played of a video that cannot be played as it is.

    Args:
        record: an indexed video.
        film: what is played.
        target: a file named ``.mp4`` in an existing folder.
        rate: frames per second of a folder of frames.

    Raises:
        VideoError: the video cannot be read; the message names it.
        SureshotError: the target cannot be written.
    """
    if film.how.way != "remux":
        span = film.start, film.end
        cut(record.path, *span, target, frame_rate=rate, overwrite=True, side=_SIDE)
        return
    try:
        lay_anew(record.path, target)
    except VideoError as error:
        raise VideoError(f"{plain(record.path)} {error}.") from None
