"""When a video was recorded: what its file says of it, and the day that this is."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, NamedTuple, TypeAlias

from sureshot.media.discover import Source, frame_files

# What of a file says so: the date with a time zone that Apple's phones write, the date of MP4, MOV,
# MKV, AVI and others, EXIF of the first frame of a folder; or the name that a phone, a messenger or
# a screen recorder gave it; or only when the file last changed.
DateSource: TypeAlias = Literal["quicktime", "creation_time", "exif", "name", "file"]
_QUICKTIME = "com.apple.quicktime.creationdate"
_EXIF, _ORIGINAL, _OFFSET = 0x8769, 0x9003, 0x9011  # tags: all of EXIF, and two in it
# Months in which the clocks of cameras begin that were never set: those of QuickTime and of Unix.
_UNSET = {(1904, 1), (1970, 1), (1969, 12)}
_AHEAD = timedelta(days=1)  # no clock on Earth is more ahead of another
_STAMP = re.compile(
    r"(\d{4})[-:](\d\d)[-:](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?\Z"
)
# A day in a file's name, with or without the time: VID_20240531_140322, video_2024-05-31_14-03-22,
# PXL_20240531_120322123, VID-20240531-WA0003, "Screen Recording 2024-05-31 at 14.03.22".
_NAMED = re.compile(
    r"(?:(?<![^\W_])|(?<=VID)|(?<=IMG))((?:19[89]|20\d)\d)([-_.]?)(0[1-9]|1[0-2])\2([0-3]\d)"
    r"(?:(?:[-_ T]| at )?([01]\d|2[0-3])([-_.]?)([0-5]\d)\6([0-5]\d)(?:\d{3})?"
    r"(?: ?([AP])M|(Z))?(?!\d)|(?!\d))",
    re.I,
)
_IN_UTC = "PXL_"  # how names begin whose time is that of UTC


class Shot(NamedTuple):
    """When a video was recorded, and what of its file says so; both empty where that does not.

    The time is as ISO 8601 writes it, without an offset where the file states none.
    """

    time: str = ""
    source: str = ""


class VideoDate(NamedTuple):
    """The date of a video, and what says so.

    The time has the offset of the place of the recording if the file states one, else that of this
    computer. It is None where a file has a time that no calendar has.
    """

    time: datetime | None
    source: DateSource

    @property
    def day(self) -> date | None:
        """The day, where it was recorded."""
        return None if self.time is None else self.time.date()

    @property
    def text(self) -> str:
        """As ISO 8601 writes it; empty where there is none."""
        return "" if self.time is None else self.time.isoformat(timespec="seconds")


def video_date(time: str, source: str, mtime_ns: int, name: str = "") -> VideoDate:
    """The date of a video by its `Shot`, else by its name or its last change.

    Messengers, which remove all else, and phones put the day into the name.

    Examples:
        >>> video_date("2024-05-31T23:30:00+02:00", "quicktime", 0).text
        '2024-05-31T23:30:00+02:00'
        >>> video_date("", "", 86_400_000_000_000).source
        'file'
        >>> video_date("", "", 0, "VID-20240531-WA0003.mp4").day
        datetime.date(2024, 5, 31)
    """
    with contextlib.suppress(ValueError, OverflowError, OSError):
        match source if time else "":
            case "quicktime" | "exif" | "creation_time" as said:
                there = datetime.fromisoformat(time)
                # A creation time with a zone is UTC, whatever the clock of the place was; an AVI
                # has that clock's time and no zone.
                is_local = there.tzinfo is None or said == "creation_time"
                return VideoDate(there.astimezone() if is_local else there, said)
        if named := _of_name(name):
            return VideoDate(named, "name")
        return VideoDate(
            datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC).astimezone(), "file"
        )
    return VideoDate(None, "file")


def _of_name(name: str) -> datetime | None:
    """The day in a file's name, at noon where it has no time; none of those still to come."""
    for found in _NAMED.finditer(name):
        year, _, month, day, hour, _, minute, second, half, utc = found.groups()
        at = time(12)
        if hour:
            number = int(hour) % 12 + 12 * (half in "pP") if half else int(hour)
            at = time(number, int(minute), int(second))
        with contextlib.suppress(ValueError):  # the 31st of February
            zone = UTC if hour and (utc or name.startswith(_IN_UTC)) else None
            day_of = date(int(year), int(month), int(day))
            said = datetime.combine(day_of, at, zone).astimezone()
            if said - datetime.now(UTC) <= _AHEAD:
                return said
    return None


def read_shot(
    source: Source,
    metadata: Sequence[Mapping[str, str]] | None = None,
    *,
    now: datetime | None = None,
) -> Shot:
    """When a video was recorded, as far as its file says.

    Dates of clocks that were never set, and dates that are still to come, are none.

    ``metadata`` is of the file as a whole and of its tracks, where it was opened already.
    """
    # Whatever is wrong with a file, who decodes it says so; ffmpeg and Pillow have many errors.
    with contextlib.suppress(Exception):
        said: list[tuple[DateSource, str]]
        if source.kind == "frames":
            from sureshot.media.frames import open_image

            with open_image(frame_files(source.path)[0]) as image:
                tags = image.getexif().get_ifd(_EXIF)
            parts = (str(tags.get(tag, "")).strip(" \0") for tag in (_ORIGINAL, _OFFSET))
            said = [("exif", "".join(parts))]
        else:
            metadata = metadata or _metadata(source)
            said = [("quicktime", metadata[0].get(_QUICKTIME, ""))]
            # The whole may be without a date where a track has one.
            said += [("creation_time", one.get("creation_time", "")) for one in metadata]
        for kind, text in said:
            if time := _believable(text, now or datetime.now(UTC)):
                return Shot(time, kind)
    return Shot()


def _metadata(source: Source) -> list[Mapping[str, str]]:
    from sureshot.media.container import open_container

    with open_container(source.path) as container:
        return [container.metadata, *(stream.metadata for stream in container.streams.video)]


def _believable(text: str, now: datetime) -> str:
    """A date as ISO 8601 writes it; empty if it is none, or one of a clock that is not set."""
    if (found := _STAMP.fullmatch(text.strip(" \0"))) is None:
        return ""
    year, month, *_, zone = found.groups()
    if (int(year), int(month)) in _UNSET:
        return ""
    time = datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*found.groups()) + (zone or ""))
    ahead = (time if time.tzinfo else time.replace(tzinfo=UTC)) - now
    return "" if ahead > _AHEAD else time.isoformat()
