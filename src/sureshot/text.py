"""Text people type and read: queries, paths, times and numbers."""

import codecs
import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from sureshot.errors import masked

# Words, in small letters, that say nothing of a picture.
_LISTED = """
    a about after all also an and any are around as at be been being but by can did do does for from
    had has have he her here his how i in into is it its me my near no not of off on or our out over
    she so some that the their them then there these they this those to under up us was we were what
    when where which while who with you your
"""
EMPTY_WORDS = frozenset(_LISTED.split())
_JOINERS = "\u200c\u200d"  # invisible, but many scripts and emoji fall apart without them


def decoded(data: bytes, errors: str = "strict") -> str:
    """The text of a file: UTF-8, or UTF-16 as a PowerShell of Windows writes it."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors)
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors)


def other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin."""
    letters = [c for c in text if c.isalpha()]
    latin = sum("LATIN" in unicodedata.name(c, "") for c in letters)
    return bool(letters) and latin < len(letters) / 2


def timecode(seconds: float) -> str:
    """Clock time, whole seconds rounded down; hours only where there are some.

    Examples:
        >>> timecode(5.9), timecode(3725.0)
        ('0:05', '1:02:05')
    """
    whole = max(0, math.floor(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def at_time(path: str | Path, at: float | None) -> str:
    """A file with a time in it, as ``--like`` takes one.

    Examples:
        >>> at_time("clip.mp4", 2.0), at_time("clip.mp4", 61.25), at_time("clip.mp4", None)
        ('clip.mp4@0:02', 'clip.mp4@1:01.25', 'clip.mp4')
    """
    if at is None:
        return printable(path)
    hundredths = round(100 * at)
    part = f".{hundredths % 100:02}".rstrip("0").rstrip(".")
    return f"{printable(path)}@{timecode(hundredths // 100)}{part}"


def time_range(start: float, end: float) -> str:
    """A range of clock times, its end rounded up so that the range holds what it names.

    Examples:
        >>> time_range(61.2, 90.1), time_range(5.0, 10.000000000000002)
        ('1:01-1:31', '0:05-0:10')
    """
    return f"{timecode(start)}-{timecode(float(math.ceil(round(end, 3))))}"


def composed(name: str) -> str:
    """A name with each accent in one piece with its letter; Macs write the two apart."""
    return unicodedata.normalize("NFC", name)


def printable(path: str | Path) -> str:
    """A path as valid Unicode: undecodable bytes become U+FFFD, every other character stays."""
    try:
        return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # half a character, which no file name holds
        return encodable(str(path))


def encodable(text: str) -> str:
    """Text with a question mark for each half of a character, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(text: str | Path) -> str:
    r"""Text to be shown: no credentials, and U+FFFD for what could steer a terminal.

    Examples:
        >>> plain("a\x1b[2Jb") == "a\ufffd[2Jb"
        True
    """
    # Separators such as U+202F, which macOS puts into the names of recordings, are harmless.
    return "".join(
        c if c.isprintable() or c in _JOINERS or unicodedata.category(c) == "Zs" else "\ufffd"
        for c in masked(str(text))
    )


def one_line(text: str) -> str:
    r"""Text from elsewhere as one line: single spaces, and nothing that cannot be seen.

    Examples:
        >>> one_line(" two\n lines\x1b ")
        'two lines'
    """
    seen = (
        " " if c.isspace() else c for c in text if c.isprintable() or c.isspace() or c in _JOINERS
    )
    return " ".join("".join(seen).split())


def file_name(text: str, room: int, otherwise: str) -> str:
    """Text as part of a file name: safe on every system and at most ``room`` bytes long.

    Where nothing safe is left, it is ``otherwise``.

    Examples:
        >>> file_name("who? me/you ", 100, "video")
        'who_ me_you'
    """
    safe = "".join("_" if _unsafe(letter) else letter for letter in composed(text))
    name = " ".join(safe.split()).strip(". ") or otherwise
    return name.encode()[:room].decode(errors="ignore").strip(". ")


def _unsafe(letter: str) -> bool:
    """True for what some system refuses or hides; joiners, which many scripts need, are kept."""
    hidden = unicodedata.category(letter).startswith("C") and letter not in _JOINERS
    return hidden or letter in '/\\:*?"<>|'


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun.

    Examples:
        >>> counted(1, "window"), counted(2, "window"), counted(0, "copy", "copies")
        ('1 window', '2 windows', '0 copies')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def listed(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first names of many, and how many more there are.

    Examples:
        >>> listed(["a", "b", "c", "d"], 2)
        'a, b and 2 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table as lines with columns of equal width, the first one to the left.

    Examples:
        >>> aligned([["", "R@1"], ["raw", "9.5"], ["corrected", "10.5"]])
        ['            R@1', 'raw         9.5', 'corrected  10.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def duration(seconds: float) -> str:
    """A length of time in words.

    Examples:
        >>> duration(29.4), duration(250.0), duration(7500.0)
        ('29 s', '4 min 10 s', '2 h 5 min')
    """
    whole = max(round(seconds), 0)
    hours, minutes = whole // 3600, whole // 60 % 60
    parts = [(hours, "h"), (minutes, "min"), (0 if hours else whole % 60, "s")]
    short = f"{max(seconds, 0.01):.1g} s" if seconds > 0 else "0 s"
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or short


def time_left(elapsed: float, done: float | int, total: float | int) -> str:
    """How long the rest of some work will take, in words to put behind others; empty at first.

    ``elapsed`` is in seconds since the work began, done and total are in any unit.

    Examples:
        >>> time_left(10.0, 1, 5), time_left(100.0, 1, 1000), time_left(100.0, 1, 10)
        (', about 40 s left', '', ', about 15 min left')
    """
    if done <= 0 or done < 0.01 * total:  # too little to tell by
        return ""
    left = elapsed * (total - done) / done
    if left < 1:
        return ""
    # An estimate to the second would claim too much.
    return f", about {duration(left if left < 100 else round(left / 60) * 60.0)} left"


def percent(share: float) -> str:
    """A share as people read it; nothing is certain.

    Examples:
        >>> percent(0.834), percent(0.998), percent(0.001), percent(0.0)
        ('83%', 'over 99%', 'under 1%', 'under 1%')
    """
    if share > 0.99:
        return "over 99%"
    return "under 1%" if share < 0.01 else f"{round(100 * share)}%"
