"""Cuts a moment out of a video, or out of a folder of frames, into an mp4 that plays everywhere.

* Everything is encoded anew (H.264, AAC), so the cut is exact to the frame and to the sample.
* A cut opens with the frame on screen at its start, even if that frame came up long before.
* The film grows beside the target under a hidden name and moves into place when it is complete.

Not covered: subtitles, chapters, more than one sound track, more than two channels of sound, and
what `sureshot.media.mp4` names.
"""

import math
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av

from sureshot.errors import SureshotError, VideoError, option, reason_of
from sureshot.files import replace_file
from sureshot.library.answer import Answer, reasons
from sureshot.media.excerpt import footage
from sureshot.media.mp4 import write_film
from sureshot.places import absolute, is_folder_at
from sureshot.text import plain, printable

_NAME_BYTES = 200


@dataclass(frozen=True, slots=True)
class Exported:
    """What became of the hits of an answer.

    Attributes:
        written: the clips.
        failed: clips that were not written, with reasons.
    """

    written: tuple[Path, ...]
    failed: tuple[tuple[Path, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        written = [printable(path) for path in self.written]
        return {"written": written, "failed": reasons(self.failed)}


def export(
    answer: Answer,
    to: str | Path = ".",
    *,
    pad: float = 0.0,
    overwrite: bool = False,
    frame_rate: float = 1.0,
) -> Exported:
    """Cut every hit of an answer into an mp4 of its own, named after its rank, video and times.

    Args:
        answer: the answer of a search.
        to: folder of the clips; it is made if it is not there.
        pad: seconds added before and after each hit.
        overwrite: replace clips of the same name.
        frame_rate: frames per second of a folder of frames; a video knows its own.

    Raises:
        SureshotError: the folder cannot be made.
    """
    folder = absolute(to)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SureshotError(f"Cannot write to {folder}: {reason_of(error)}.") from None
    written: list[Path] = []
    failed: list[tuple[Path, str]] = []
    for hit in answer:
        target = folder / export_name(hit.path, hit.start, hit.end, hit.rank)
        start, end = hit.start - pad, hit.end + pad
        if os.path.lexists(target) and not overwrite:
            failed.append((target, f"exists already; {option('overwrite', True)} replaces it"))
            continue
        try:
            cut(hit.path, start, end, target, overwrite=overwrite, frame_rate=frame_rate)
            written.append(target)
        except SureshotError as error:
            failed.append((target, str(error)))
    return Exported(tuple(written), tuple(failed))


def cut(
    source: Path,
    start: float,
    end: float,
    target: Path,
    *,
    frame_rate: float = 1.0,
    overwrite: bool = False,
    side: int | None = None,
) -> Path:
    """The mp4 at `target` with what `source` shows, and plays, from `start` to `end`.

    Args:
        source: a video, or a folder of images in natural name order.
        start: seconds from the first frame; below 0 counts as 0.
        end: seconds from the first frame; beyond the last frame counts as the end of the video.
        target: a file named `.mp4` in an existing folder. Appears only when it is complete.
        frame_rate: frames per second of a folder; a video knows its own.
        overwrite: replace an existing `target`. The source itself is never replaced.
        side: shorter side in pixels at most, for a clip that is made to be watched at once; None
            keeps every pixel.

    Raises:
        VideoError: the source cannot be read, or shows nothing in this range.
        SureshotError: the range is empty, or the target is refused or cannot be written.
    """
    start = max(start, 0.0)
    try:
        _check(source, start, end, target, frame_rate, overwrite)
        with replace_file(target) as fresh:
            pictures, sounds = footage(source, start, end, frame_rate)
            if not write_film(pictures, sounds, fresh, side=side):
                raise VideoError(f"shows nothing from {start:g} s to {end:g} s; widen the range")
    except VideoError as error:
        raise VideoError(f"{plain(source)} {error}") from error
    except (av.FFmpegError, OSError) as error:
        raise SureshotError(
            f"{plain(target)} could not be written ({error.strerror or error}); "
            "free some space there or choose another folder"
        ) from error
    return target


def export_name(source: Path, start: float, end: float, rank: int) -> str:
    """A file name for a cut: safe on every system and at most 200 bytes long.

    Args:
        source: the video or folder; its name is kept as far as it is safe and short enough.
        start: seconds, rounded down to a whole second.
        end: seconds, rounded up to a whole second.
        rank: 1-based place among the hits; puts the files in order.

    Examples:
        >>> export_name(Path("holiday/beach-day.mov"), 725.0, 755.0, 1)
        '01 beach-day 00.12.05-00.12.35.mp4'
    """
    first, last = math.floor(round(start, 3)), math.ceil(round(end, 3))
    head, tail = f"{rank:02d} ", f" {_dotted(first)}-{_dotted(last)}.mp4"
    letters = unicodedata.normalize("NFC", source.stem)
    safe = "".join("_" if _unsafe(letter) else letter for letter in letters)
    stem = " ".join(safe.split()).strip(". ") or "video"
    room = _NAME_BYTES - len(head) - len(tail)
    return head + stem.encode()[:room].decode(errors="ignore").strip(". ") + tail


def _dotted(seconds: int) -> str:
    """Hours, minutes and seconds with points, as a colon is not allowed in every file name."""
    minutes, second = divmod(max(seconds, 0), 60)
    return f"{minutes // 60:02d}.{minutes % 60:02d}.{second:02d}"


def _unsafe(letter: str) -> bool:
    """True for what some system refuses or hides; joiners, which many scripts need, are kept."""
    hidden = unicodedata.category(letter).startswith("C") and letter not in "\u200c\u200d"
    return hidden or letter in '/\\:*?"<>|'


def _check(
    source: Path, start: float, end: float, target: Path, frame_rate: float, overwrite: bool
) -> None:
    """Refuses what is bound to fail or would harm the source."""
    if not start < end:
        raise SureshotError(
            f"there is nothing from {start:g} s to {end:g} s; give an end after the start"
        )
    if not 0 < frame_rate < math.inf:
        raise SureshotError(f"a frame rate of {frame_rate:g} is not possible; give one above 0")
    if target.suffix.lower() != ".mp4":
        raise SureshotError(f"{plain(target)} would be an mp4; give it a name that ends in .mp4")
    if not is_folder_at(target.parent):
        raise SureshotError(f"the folder {plain(target.parent)} does not exist; create it first")
    if _same(source, target):
        raise SureshotError(f"{plain(target)} is the source itself; choose another target")
    if os.path.lexists(target) and not overwrite:
        raise SureshotError(
            f"{plain(target)} exists already; choose another name, or allow to overwrite it"
        )


def _same(one: Path, other: Path) -> bool:
    """True for two names of one file, by links too."""
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return False
