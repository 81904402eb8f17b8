"""Hits as files: clips, lists for editors, what the page plays and shows, and contact sheets."""

import contextlib
import io
import math
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import numpy as np
from jaxtyping import UInt8

from sureshot.errors import ArgumentError, QueryError, SureshotError, VideoError, option, reason_of
from sureshot.files import replace_file
from sureshot.library.confidence import at_least
from sureshot.library.query_checks import parse_share, seconds
from sureshot.library.results import (
    JSON_SCHEMA,
    WEAK,
    Answer,
    FrameScore,
    Hit,
    json_values,
)
from sureshot.library.search import Searcher
from sureshot.library.timelines import FORMATS, check_format, clock, subtitles, timelines
from sureshot.media import excerpt
from sureshot.media.contact_sheet import SheetFrame, SheetRow, contact_sheet, save_sheet
from sureshot.media.container import open_container
from sureshot.media.frames import read_image
from sureshot.media.lines import Line
from sureshot.media.video import frames_at, naming
from sureshot.paths import absolute, expand, is_folder_at, is_taken
from sureshot.store.rows import VideoRecord
from sureshot.text import at_time, counted, file_name, percent, plain, printable, time_range

_NAME_BYTES = 200
_Failed = list[tuple[Path, str]]  # files or videos, with reasons
_PHOTOS = threading.BoundedSemaphore(2)  # a large one takes hundreds of megabytes as it is read


@dataclass(frozen=True, slots=True)
class Exported:
    """What became of the hits of an answer.

    Attributes:
        written: the clips, or the files that list the moments.
        failed: clips that were not written, or videos that are not listed, with reasons.
        left_out: how many hits were not cut, as they are probably wrong.
        remark: what to know of it, in sentences; empty where there is nothing.
    """

    written: tuple[Path, ...]
    failed: tuple[tuple[Path, str], ...]
    left_out: int = 0
    remark: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return json_values(self)


def export(
    answer: Answer,
    to: str | Path = ".",
    *,
    format: str = "clips",
    copy: bool = False,
    pad: float | str = 0.0,
    min: float | str = WEAK,
    overwrite: bool = False,
    lines: Callable[[Path], Sequence[Line]] | None = None,
) -> Exported:
    """Cut the hits of an answer into clips, or write them as a timeline, a playlist or a table.

    Clips are named after rank, video and times; what lists moments is named after the query.
    The subtitles of a clip, where its video has some, are written next to it as SubRip.

    Args:
        to: folder of the files; it is made if it is not there.
        format: ``clips``, ``otio``, ``fcpxml``, ``edl``, ``m3u``, ``mpv``, ``csv`` or ``markers``.
        copy: copy the streams as they are, from the keyframe at or before the start of each hit on,
            in place of encoding exactly what the hit holds.
        pad: seconds added before and after each hit.
        min: leave out hits that are right with a lower probability than this, and all where
            probably none is right; 0 cuts every hit, as is done where nothing is calibrated.
        lines: the words of a video, such as `Searcher.lines`; None writes no subtitles.
    """
    if not isinstance(answer, Answer):
        raise ArgumentError(
            f"{type(answer).__name__} is not the answer to a search; to export some of its hits, "
            "give dataclasses.replace(answer, hits=(...))."
        )
    check_format(format)
    if copy and format != "clips":
        raise ArgumentError(f"{option('copy', True)} is about clips; leave out one of the two.")
    around = seconds(pad, "pad") or 0.0
    min = parse_share(min) if isinstance(min, str) else min
    if not 0 <= min < 1:
        raise ArgumentError(f"{option('min')} is {min:g}; it must be 0 or more and below 1.")
    folder = absolute(to)
    suffixes = {".mp4", *(suffix for suffix, _ in FORMATS.values())}
    if folder.suffix.lower() in suffixes and not is_folder_at(folder):
        raise ArgumentError(
            f"{option('to', plain(folder.name))} is named like a file; name the folder that the "
            "files go into."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SureshotError(f"Cannot write to {folder}: {reason_of(error)}.") from None
    absent = answer.status == "probably not here" and min > 0
    chosen = () if absent else at_least(min, answer.hits)
    left_out, notes = len(answer) - len(chosen), []
    if not answer.hits:
        notes.append("No moment was found, so nothing was written.")
    if left_out:
        why = "probably not in your videos" if absent else f"less likely right than {percent(min)}"
        done, every = ("cut", "cuts") if format == "clips" else ("listed", "lists")
        lift = f"{option('min', '0%')} {every} every hit"
        notes.append(f"{counted(left_out, 'hit')} not {done}: {why}. {lift}.")
    spans = [(hit, max(hit.start - around, 0.0), _end(hit, around)) for hit in chosen]
    failed: _Failed = []
    if format == "clips":
        made = [*_cut_hits(spans, folder, copy, overwrite, lines)]
    else:
        texts, failed, said = timelines(format, answer.query, spans)
        made = [_written(folder / name, text, overwrite) for name, text in texts.items()]
        notes += said
    return Exported(
        written=tuple(path for path, fault in made if not fault),
        failed=(*failed, *((path, fault) for path, fault in made if fault)),
        left_out=left_out,
        remark=" ".join(notes),
    )


def _cut_hits(
    spans: Sequence[tuple[Hit, float, float]],
    folder: Path,
    copy: bool,
    overwrite: bool,
    lines: Callable[[Path], Sequence[Line]] | None,
) -> Iterator[tuple[Path, str]]:
    """Write a clip of each hit with its subtitles: the files, and why one was not written."""
    for hit, start, end in spans:
        target = folder / export_name(hit.path, start, end, hit.rank)
        try:
            if copy:
                with naming(hit.path):
                    start = excerpt.keyframe_before(hit.path, start)
                ending = f" copy{_CONTAINERS.get(hit.path.suffix.lower(), '.mkv')}"
                target = folder / export_name(hit.path, start, end, hit.rank, ending)
            _refuse_existing(target, overwrite)
            if copy:
                _copy(hit.path, start, end, target)
            else:
                excerpt.cut(
                    hit.path, start, end, target, overwrite=overwrite, frame_rate=hit.frame_rate
                )
            yield target, ""
            said = subtitles(lines(hit.path), start, end) if lines else {}
        except SureshotError as error:
            yield target, str(error)
            continue
        for language, text in said.items():
            sidecar = target.with_suffix(f".{language}.srt" if language else ".srt")
            yield _written(sidecar, text, overwrite)


def _written(target: Path, text: str, overwrite: bool) -> tuple[Path, str]:
    """A file with a text, and why it was not written, if it was not."""
    try:
        _refuse_existing(target, overwrite)
        with replace_file(target) as fresh:
            # Names of files that are not UTF-8 stay the bytes that they are.
            fresh.write_text(text, "utf-8", "surrogateescape", newline="")
    except SureshotError as error:
        return target, str(error)
    except OSError as error:
        return target, f"cannot be written: {reason_of(error)}"
    return target, ""


def _refuse_existing(target: Path, overwrite: bool) -> None:
    if is_taken(target) and not overwrite:
        raise SureshotError(f"exists already; {option('overwrite', True)} replaces it")


# Suffix of the container that the streams of a video are copied into.
_CONTAINERS = {suffix: suffix for suffix in (
    ".mp4", ".mov", ".mkv", ".webm", ".avi", ".mxf", ".ts", ".mts", ".m2ts", ".mpg", ".flv", ".wmv",
    ".asf", ".3gp", ".3g2", ".ogv",
)} | {".m4v": ".mp4", ".vob": ".mpg"}  # fmt: skip


def _copy(source: Path, start: float, end: float, target: Path) -> None:
    """Copy the streams from a keyframe on, into a file that appears when it is complete."""
    try:
        with naming(source), replace_file(target) as fresh:
            excerpt.copy_streams(source, fresh, start, end)
    except (av.FFmpegError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SureshotError(
            f"{plain(source)} cannot be copied into {target.suffix} ({reason}); "
            f"leave out {option('copy', True)}"
        ) from error


def _end(hit: Hit, pad: float) -> float:
    """Where a hit with some seconds after it ends, which is not beyond the end of its video."""
    if pad:
        reading = contextlib.suppress(VideoError, OSError, av.FFmpegError)  # `cut` says why
        with reading, open_container(hit.path) as video:
            if video.duration:
                return max(hit.end, min(hit.end + pad, video.duration / av.time_base))
    return hit.end + pad


def export_name(source: Path, start: float, end: float, rank: int, ending: str = ".mp4") -> str:
    """A file name for a cut: safe on every system and at most 200 bytes long.

    Seconds are rounded down and up to whole ones; the rank puts the files in order.

    Examples:
        >>> export_name(Path("holiday/beach-day.mov"), 725.0, 755.0, 1)
        '01 beach-day 00.12.05-00.12.35.mp4'
    """
    # With points, as a colon is not allowed in every file name.
    first, last = math.floor(round(max(start, 0.0), 3)), math.ceil(round(end, 3))
    head, tail = f"{rank:02d} ", f" {clock(first, '.')}-{clock(last, '.')}{ending}"
    return head + file_name(source.stem, _NAME_BYTES - len(head) - len(tail), "video") + tail


LONGEST = 30.0  # seconds of a part that is encoded again
_FIRST = 4.0  # seconds of such a part that are encoded before the whole of it
_LAST = 0.5  # seconds before the end of a part at which they begin at the latest
_QUALITY = 82  # of the JPEGs of stills
_EXPLAIN_SIDE = 180  # shorter side of the frames of a contact sheet, in pixels
_FRAMES = 12  # frames of one hit at most
_AROUND = 2.0  # seconds before and after the moment that are played too
_SIDE = 540  # lines of such a part
_REMUXED = 300_000_000  # bytes; of larger files a part is quicker than the whole


@dataclass(frozen=True, slots=True)
class Film(excerpt.Playable):
    """What is played of a video, from second to second of it, and how."""

    start: float
    end: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/api.md describes them."""
        return json_values(self, schema=JSON_SCHEMA, text=time_range(self.start, self.end))


def film_of(
    record: VideoRecord, *, at: float, start: float, end: float, converted: bool = False
) -> Film:
    """What to play so that a second of a video, in a moment, is seen, by what its file holds.

    ``converted`` encodes it as H.264 even if most browsers play the file as it is.
    """
    if not 0 <= at <= record.duration + 1:
        length = f"{record.duration:.2f}".rstrip("0").rstrip(".")
        raise QueryError(f"{plain(record.path)} is {length} s long; there is nothing at {at:g} s.")
    with naming(record.path):
        kind = excerpt.playable(record.path)
    if converted or (kind.way == "remux" and record.size > _REMUXED):
        kind = excerpt.Playable("clip", excerpt.MP4)
    if kind.way != "clip":
        return Film(kind.way, kind.type, 0.0, round(record.duration, 3))
    return Film(kind.way, kind.type, *part_around(at, start, end, record.duration))


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
    """The part from a second on that is seen first, and encoded long before the whole of it.

    None where the film is as quickly made, or need not be.
    """
    if film.way != "clip" or film.end - film.start <= _FIRST:
        return None
    begins = min(math.floor(10 * at) / 10, film.end - _LAST)
    start = round(max(begins, film.start), 1)
    return replace(film, start=start, end=round(min(start + _FIRST, film.end), 1))


def write_part(record: VideoRecord, film: Film, target: Path, *, rate: float) -> None:
    """Make the mp4 of what is played of a video that cannot be played as it is.

    ``rate`` is in frames per second, of a folder of frames.
    """
    if film.way != "remux":
        span = film.start, film.end
        excerpt.cut(record.path, *span, target, frame_rate=rate, overwrite=True, side=_SIDE)
        return
    with naming(record.path):
        excerpt.remux(record.path, target)


def still(path: Path, at: float, *, side: int, rate: float = 1.0) -> bytes:
    """What a video shows at a second, as a JPEG; its first and last frame stand in for others.

    ``side`` is the shorter one, in pixels at most, ``rate`` that of a folder of frames.
    """
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(shown(path, at, side, rate)).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def like_photo(searcher: Searcher, data: bytes, name: str, **wanted: Any) -> Answer:
    """Moments that look like a photo, given as an image file; ``wanted`` as of `Searcher.like`."""
    with tempfile.TemporaryDirectory(prefix="sureshot-") as folder:
        given = Path(folder, "given")
        given.write_bytes(data)
        try:
            # Never to ffmpeg as it came: some of its formats are lists of other files to read.
            with _PHOTOS:
                picture = read_image(given)
        except VideoError as error:
            raise QueryError(
                f"{plain(name)} is not a picture that can be read ({error}); give a JPEG or a PNG."
            ) from None
    return replace(searcher.like(picture, **wanted), query=name)


def like_frame(searcher: Searcher, path: Path, at: float, **wanted: Any) -> Answer:
    """Moments that look like the one frame that a video shows at a time, in seconds."""
    picture = shown(path, at, 720, searcher.store.settings.frame_rate)
    return replace(searcher.like(picture, **wanted), query=at_time(path, at))


def shown(path: Path, at: float, side: int, rate: float) -> UInt8[np.ndarray, "height width 3"]:
    """The frame that a video shows at a time; ``side`` and ``rate`` are those of `still`."""
    with naming(path):
        return frames_at(path, [at], side=side, rate=rate)[0]


def draw_hits(answer: Answer, target: Path, *, title: str = "") -> Path:
    """Draw the `sheet_row` of each hit into a PNG; ``title`` is the line below the query."""
    note = title if answer.hits else " ".join(answer.warnings)
    return save_sheet(contact_sheet(answer.query, [*map(sheet_row, answer)], note), expand(target))


def sheet_row(hit: Hit) -> SheetRow:
    """The frames of a hit at its time range, each with its own score; or why there are none."""
    title = f"{hit.rank}. {printable(hit.path.name)}"
    right = f"right {hit.percentage} · " if hit.percentage else ""
    folder = f" · in {printable(hit.path.parent.name)}" if hit.path.parent.name else ""
    subtitle = f"{time_range(hit.start, hit.end)} · {right}score {hit.score:z.3f}{folder}"
    if hit.copies:
        subtitle += f" · {counted(len(hit.copies), 'copy', 'copies')} elsewhere"
    subtitle += "".join(f" · {line.said}" for line in hit.lines[:1])
    # At most a dozen frames, evenly over the hit, the best one among them.
    # Of words alone, where they are said.
    frames = hit.frames or (FrameScore(hit.peak, hit.score),)
    step = -(-len(frames) // _FRAMES)
    best = max(range(len(frames)), key=lambda i: frames[i].score)
    chosen = frames[best % step :: step]
    try:
        times = [frame.time for frame in chosen]
        images = frames_at(hit.path, times, side=_EXPLAIN_SIDE, rate=hit.frame_rate)
    except VideoError as error:
        return SheetRow(title, f"{subtitle} · cannot be shown, the video {error}", ())
    pairs = zip(images, chosen, strict=True)
    drawn = tuple(SheetFrame(image, frame.time, frame.score) for image, frame in pairs)
    return SheetRow(title, subtitle, drawn)
