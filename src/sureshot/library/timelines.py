"""Moments as timelines, playlists and lists, for editors and players.

* Cuts are on frames: the one on screen at the start of a moment, up to the one at its end.
* Frames are counted as the camera did: true rate, start timecode, drop-frame where the file has it.
* OpenTimelineIO and FCPXML hold videos of several rates. A CMX3600 list holds one: the first hit's.
"""

import contextlib
import csv
import io
import json
import math
import os
import re
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sureshot.errors import ArgumentError, VideoError
from sureshot.library.results import Hit
from sureshot.media.lines import Line
from sureshot.media.timecode import Timing, frame_number, read_timing, timecode
from sureshot.media.video import picture_delay
from sureshot.paths import is_folder_at
from sureshot.text import file_name, plain, printable

_NAME_BYTES = 100  # of a query or a video in the name of a file
_MOST = 100  # frames per second that two digits of a CMX3600 list count


@dataclass(frozen=True, slots=True)
class Moment:
    """A hit on a timeline, from second to second of its video, as was searched for.

    Its timing is None where frames cannot be counted, for a ``fault``.
    """

    hit: Hit
    query: str
    start: float
    end: float
    timing: Timing | None
    fault: str = ""

    @property
    def name(self) -> str:
        """File name, in one line."""
        return plain(self.hit.path.name)

    @property
    def label(self) -> str:
        """Percentage, where there is one, and query, in one line."""
        return " ".join(filter(None, (self.hit.percentage, plain(self.query))))

    @property
    def counted(self) -> Timing:
        """How the frames are counted; VideoError where they cannot be."""
        if self.timing is None:
            raise VideoError(self.fault)
        return self.timing

    @property
    def frames(self) -> tuple[int, int]:
        """First frame, and the one behind the last, counted from the beginning of the file."""
        timing = self.counted
        first = min(math.floor(self.start * timing.rate + self._slack), timing.length - 1)
        last = math.ceil(self.end * timing.rate - self._slack)
        return first, max(first + 1, min(last, timing.length))

    @property
    def peak(self) -> int:
        """Frame that fits best, counted like `frames`."""
        first, last = self.frames
        peak = math.floor(self.hit.peak * self.counted.rate + self._slack)
        return min(max(peak, first), last - 1)

    @property
    def _slack(self) -> float:
        """Frames that a time may be off: Matroska rounds each to a millisecond."""
        return min(0.25, 0.0006 * float(self.counted.rate))

    @property
    def url(self) -> str:
        """Where the file is, for editors."""
        path = str(self.hit.path)
        quoted = urllib.parse.quote(os.fsencode(path))
        return path if "://" in path else f"file://{quoted}"

    @property
    def played(self) -> tuple[float, float]:
        """Start and end as players count, from the beginning of the file."""
        delay = picture_delay(self.hit.path)
        return self.start + delay, self.end + delay


def read_moment(hit: Hit, query: str, start: float, end: float) -> Moment:
    """A hit with what its file says of its frames; VideoError, without the path, if it is gone."""
    timing, fault = None, "is a folder of frames, which has no timecode; export it as clips"
    if not is_folder_at(hit.path):
        with contextlib.suppress(OSError):
            if not hit.path.exists():
                raise VideoError("does not exist; was it moved, or is a drive missing?")
        try:
            timing = read_timing(hit.path)
            if start < timing.length / timing.rate:
                end = min(end, float(timing.length / timing.rate))
            else:  # no length is stated, or that of one of several recordings in the file
                timing = replace(timing, length=math.ceil(end * timing.rate))
        except VideoError as error:
            fault = str(error)
    return Moment(hit=hit, query=query, start=start, end=end, timing=timing, fault=fault)


def write_otio(title: str, moments: Sequence[Moment]) -> str:
    """A timeline of OpenTimelineIO, with a track of pictures and one of sound."""
    kinds = ["Video", "Audio"] if any(m.counted.sound for m in moments) else ["Video"]
    clips = {kind: [_otio_clip(moment, kind) for moment in moments] for kind in kinds}
    tracks = [
        {"OTIO_SCHEMA": "Track.1", "kind": k, "children": those} for k, those in clips.items()
    ]
    stack = {"OTIO_SCHEMA": "Stack.1", "name": "tracks", "children": tracks}
    values = {"OTIO_SCHEMA": "Timeline.1", "name": title, "tracks": stack}
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def _otio_clip(moment: Moment, kind: str) -> dict[str, Any]:
    timing, (first, last) = moment.counted, moment.frames

    time = {"OTIO_SCHEMA": "RationalTime.1", "rate": float(timing.rate)}

    def frames(start: int, count: int) -> dict[str, Any]:
        ends = {"start_time": time | {"value": start}, "duration": time | {"value": count}}
        return {"OTIO_SCHEMA": "TimeRange.1", **ends}

    source = frames(timing.first + first, last - first)
    if kind == "Audio" and not timing.sound:
        return {"OTIO_SCHEMA": "Gap.1", "source_range": source}
    hit = moment.hit
    found = {"query": printable(moment.query), "probability": hit.probability, "score": hit.score}
    marker = {
        "OTIO_SCHEMA": "Marker.2",
        "name": moment.label,
        "color": "GREEN",
        "marked_range": frames(timing.first + moment.peak, 1),
        "metadata": {"sureshot": found},
    }
    media = {
        "OTIO_SCHEMA": "ExternalReference.1",
        "target_url": moment.url,
        "available_range": frames(timing.first, timing.length),
    }
    return {
        "OTIO_SCHEMA": "Clip.2",
        "name": moment.name,
        "source_range": source,
        "markers": [marker] if kind == "Video" else [],
        "media_references": {"DEFAULT_MEDIA": media},
        "active_media_reference_key": "DEFAULT_MEDIA",
    }


def write_fcpxml(title: str, moments: Sequence[Moment]) -> str:
    """A project of Final Cut Pro (FCPXML 1.8), which DaVinci Resolve reads too."""
    root = ElementTree.Element("fcpxml", version="1.8")
    resources = ElementTree.SubElement(root, "resources")
    formats: dict[tuple[Any, ...], str] = {}
    assets: dict[Path, str] = {}
    for moment in moments:
        timing = moment.counted
        shape = timing.rate, timing.width, timing.height, timing.pixel
        if shape not in formats:
            formats[shape] = f"r{len(formats) + len(assets) + 1}"
            pixel = [str(number) for number in timing.pixel.as_integer_ratio()]
            about = {"id": formats[shape], "frameDuration": _seconds(1, timing.rate)}
            about |= {"width": str(timing.width), "height": str(timing.height)}
            about |= {} if timing.pixel == 1 else {"paspH": pixel[0], "paspV": pixel[1]}
            ElementTree.SubElement(resources, "format", about)
        if moment.hit.path not in assets:
            assets[moment.hit.path] = f"r{len(formats) + len(assets) + 1}"
            about = {"id": assets[moment.hit.path], "name": moment.name, "src": moment.url}
            about |= {"start": _seconds(timing.first, timing.rate)}
            about |= {"duration": _seconds(timing.length, timing.rate)}
            about |= {"hasVideo": "1", "format": formats[shape]}
            if timing.sound:
                rate, channels = (str(number) for number in timing.sound)
                about |= {"hasAudio": "1", "audioSources": "1"}
                about |= {"audioChannels": channels, "audioRate": rate}
            ElementTree.SubElement(resources, "asset", about)
    lead = moments[0].counted
    event = ElementTree.SubElement(ElementTree.SubElement(root, "library"), "event", name=title)
    project = ElementTree.SubElement(event, "project", name=title)
    about = {"format": formats[lead.rate, lead.width, lead.height, lead.pixel], "tcStart": "0s"}
    about |= {"tcFormat": "DF" if lead.drop else "NDF"}
    sequence = ElementTree.SubElement(project, "sequence", about)
    spine, at = ElementTree.SubElement(sequence, "spine"), 0
    for moment in moments:
        timing, (first, last) = moment.counted, moment.frames
        # In frames of the sequence, and no more of them than the file has.
        most = math.floor((timing.length - first) * lead.rate / timing.rate)
        count = max(1, min(round((last - first) * lead.rate / timing.rate), most))
        about = {"ref": assets[moment.hit.path], "name": moment.name}
        about |= {"tcFormat": "DF" if timing.drop else "NDF"}
        about |= {"offset": _seconds(at, lead.rate), "duration": _seconds(count, lead.rate)}
        about |= {"start": _seconds(timing.first + first, timing.rate)}
        clip = ElementTree.SubElement(spine, "asset-clip", about)
        peak = _seconds(timing.first + moment.peak, timing.rate)
        about = {"start": peak, "duration": _seconds(1, timing.rate), "value": moment.label}
        ElementTree.SubElement(clip, "marker", about)
        at += count
    sequence.set("duration", _seconds(at, lead.rate))
    ElementTree.indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n'
    return head + ElementTree.tostring(root, encoding="unicode") + "\n"


def _seconds(frames: int, rate: Fraction) -> str:
    """So many frames as FCPXML writes them: a fraction of seconds that ends on a frame."""
    return f"{frames / rate}s"


def write_edl(title: str, moments: Sequence[Moment]) -> str:
    """A decision list in CMX3600, one rate for all, beginning at one hour."""
    lead = moments[0].counted
    lines, mode = [f"TITLE: {title}", _count_mode(lead), ""], lead.drop
    at = frame_number("01:00:00:00", lead.rate, drop=lead.drop)
    for number, moment in enumerate(moments, 1):
        timing, (first, last) = moment.counted, moment.frames
        source = _in_and_out(timing, first, last)
        record = [timecode(frame, lead.rate, drop=lead.drop) for frame in (at, at + last - first)]
        peak = timecode(at + moment.peak - first, lead.rate, drop=lead.drop)
        tracks = "B" if timing.sound else "V"
        if timing.drop != mode:
            lines.append(_count_mode(timing))
            mode = timing.drop
        lines += [
            f"{number:03}  AX       {tracks}     C        {' '.join((*source, *record))}",
            f"* FROM CLIP NAME: {moment.name}",
            f"* LOC: {peak} GREEN   {moment.label}",
        ]
        at += last - first
    return "\n".join(lines) + "\n"


def write_markers(title: str, moments: Sequence[Moment]) -> str:
    """Markers on one whole video, as DaVinci Resolve imports them from a list of edits."""
    timing = moments[0].counted
    lines = [f"TITLE: {title}", _count_mode(timing)]
    for number, moment in enumerate(sorted(moments, key=lambda moment: moment.frames), 1):
        first, last = moment.frames
        place = _in_and_out(timing, first, first + 1)
        label = moment.label.replace("|", "/")
        lines += [
            "",
            f"{number:03}  001      V     C        {' '.join(place * 2)}",
            f" |C:ResolveColorBlue |M:{label} |D:{last - first}",
        ]
    return "\n".join(lines) + "\n"


def _in_and_out(timing: Timing, first: int, last: int) -> tuple[str, str]:
    """Timecodes of two frames; past midnight the second counts on, as it must be later."""
    start, end = timing.timecode(first), timing.timecode(last)
    return start, end if start < end else f"{int(end[:2]) + 24}{end[2:]}"


def _count_mode(timing: Timing) -> str:
    return f"FCM: {'' if timing.drop else 'NON-'}DROP FRAME"


def write_m3u(title: str, moments: Sequence[Moment]) -> str:
    """A playlist; VLC plays each moment, players that know no more the whole videos."""
    lines = ["#EXTM3U", f"#PLAYLIST:{title}"]
    for moment in moments:
        path = str(moment.hit.path)
        start, end = moment.played
        lines += [
            f"#EXTINF:{math.ceil(moment.end - moment.start)},{moment.name} {moment.label}",
            f"#EXTVLCOPT:start-time={start:.3f}",
            f"#EXTVLCOPT:stop-time={end:.3f}",
            moment.url if _NO_LINE.search(path) else path,
        ]
    return "\n".join(lines) + "\n"


# Of a path that is no line of UTF-8: breaks of lines, and bytes that are no letters.
_NO_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def write_mpv(_title: str, moments: Sequence[Moment]) -> str:
    """A list of edits of mpv, which plays the moments as one film."""
    lines = ["# mpv EDL v0"]
    for moment in moments:
        span = f"start={moment.played[0]:.3f},length={moment.end - moment.start:.3f}"
        label = f"{moment.name} {moment.label}"
        lines.append(f"{_measured(str(moment.hit.path))},{span},title={_measured(label)}")
    return "\n".join(lines) + "\n"


def _measured(text: str) -> str:
    """Text in which every character stands for itself."""
    return f"%{len(os.fsencode(text))}%{text}"


_COLUMNS = (
    *("rank", "video", "start", "end", "peak", "start_timecode", "end_timecode"),
    *("frame_rate", "probability", "score", "query", "date", "date_from"),
)


def write_csv(_title: str, moments: Sequence[Moment]) -> str:
    """A table of the moments with times and timecodes."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for moment in moments:
        hit, timing = moment.hit, moment.timing
        codes = [timing.timecode(frame) for frame in moment.frames] if timing else ["", ""]
        rate = f"{float(timing.rate):.3f}".rstrip("0").rstrip(".") if timing else ""
        likely = "" if hit.probability is None else f"{hit.probability:.4f}"
        times = [f"{second:.3f}" for second in (moment.start, moment.end, hit.peak)]
        found = likely, f"{hit.score:.6f}", plain(moment.query), hit.date, hit.date_from
        # Plain, as a line break in a name would begin a row, and that might begin a formula.
        rows.writerow((hit.rank, plain(hit.path), *times, *codes, rate, *found))
    return table.getvalue()


def subtitles(lines: Sequence[Line], start: float, end: float) -> dict[str, str]:
    r"""What is said from second to second, as SubRip by language; speech where nothing is written.

    Examples:
        >>> line = Line(start=9.5, end=11.0, text="Hi.", source="subtitles", language="en")
        >>> subtitles([line], 10.0, 20.0)
        {'en': '1\n00:00:00,000 --> 00:00:01,000\nHi.\n'}
    """
    here = [line for line in lines if line.start < end and start < line.end]
    source = "subtitles" if any(line.source == "subtitles" for line in here) else "speech"
    texts: dict[str, list[str]] = {}
    for line in here:
        if line.source == source:
            language = re.sub(r"[^A-Za-z0-9-]", "", line.language)
            cues = texts.setdefault(language, [])
            times = []
            for time in (line.start, line.end):
                since = min(max(time, start), end) - start
                whole, thousandths = divmod(round(1000 * since), 1000)
                times.append(f"{clock(whole)},{thousandths:03}")
            cues.append(f"{len(cues) + 1}\n{' --> '.join(times)}\n{plain(line.text)}\n")
    return {language: "\n".join(cues) for language, cues in texts.items()}


def clock(seconds: int, mark: str = ":") -> str:
    """Hours, minutes and seconds of two digits each."""
    minutes, second = divmod(seconds, 60)
    return mark.join(f"{number:02}" for number in (minutes // 60, minutes % 60, second))


PLAYED = ("m3u", "mpv")  # by seconds; all others but csv count frames
# Suffix and writer of each format.
FORMATS: dict[str, tuple[str, Callable[[str, Sequence[Moment]], str]]] = {
    "otio": (".otio", write_otio),
    "fcpxml": (".fcpxml", write_fcpxml),
    "edl": (".edl", write_edl),
    "m3u": (".m3u8", write_m3u),
    "mpv": (".mpv", write_mpv),
    "csv": (".csv", write_csv),
    "markers": (".markers.edl", write_markers),
}


def timelines(
    format: str, query: str, spans: Sequence[tuple[Hit, float, float]]
) -> tuple[dict[str, str], list[tuple[Path, str]], list[str]]:
    """Texts of the files of a format by their names; what is not in them, with reasons; and notes.

    Markers are a file for each video; all others are one file. ``spans`` are hits of the query,
    each from second to second.
    """
    read: list[Moment] = []
    kept: list[Moment] = []
    failed: list[tuple[Path, str]] = []
    for hit, start, end in spans:
        try:
            moment = read_moment(hit, query, start, end)
            read.append(moment)
            _check_room(format, moment, kept)
            kept.append(moment)
        except VideoError as error:
            failed.append((hit.path, str(error)))
    suffix, write = FORMATS[format]
    films: dict[Path, list[Moment]] = {}
    for moment in kept:
        films.setdefault(moment.hit.path if format == "markers" else Path(), []).append(moment)
    texts = {}
    for those in films.values():
        title = plain(query)
        name = file_name(title, _NAME_BYTES, "hits")
        if format == "markers":
            title = those[0].name
            video = file_name(those[0].hit.path.stem, _NAME_BYTES, "video")
            name = f"{those[0].hit.rank:02d} {video} {name}"
        texts[name + suffix] = write(title, those)
    rates = {m.name: m.timing.rate for m in read if m.timing and m.timing.varies}
    named = ", ".join(f"{name} ({float(rate):.5g} taken)" for name, rate in rates.items())
    note = f"The frame rate varies in {named}; an editor may be a few frames off."
    return texts, failed, [note] if rates and format not in PLAYED else []


def _check_room(format: str, moment: Moment, kept: Sequence[Moment]) -> None:
    """Refuse a moment that a format has no room for after others."""
    if format in PLAYED and is_folder_at(moment.hit.path):
        raise VideoError(moment.fault)
    if format in PLAYED and "://" in str(moment.hit.path):
        raise VideoError("is in object storage, which players do not reach; export clips")
    if format not in (*PLAYED, "csv"):
        rate = moment.counted.rate
        if format in ("edl", "markers") and round(rate) > _MOST:
            raise VideoError(
                f"has {float(rate):.5g} frames per second, and an EDL counts at most {_MOST}; "
                "export it as otio or fcpxml"
            )
        if format == "edl" and kept and rate != (one := kept[0].counted.rate):
            raise VideoError(
                f"has {float(rate):.5g} frames per second and the first hit {float(one):.5g}; an "
                "EDL holds one rate"
            )


def check_format(format: str) -> None:
    """ArgumentError with all formats if it is none of them."""
    if format not in ("clips", *FORMATS):
        raise ArgumentError(f"There is no format {format!r}; choose clips, {', '.join(FORMATS)}.")
