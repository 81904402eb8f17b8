"""Subtitles: files next to a video, and tracks inside it.

ffmpeg parses all of them, so a broken file is read as ffmpeg's players read it. Encodings are
guessed, and styling is removed, here.
"""

import codecs
import html
import io
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import av
import av.error
from av.stream import Discard

from sureshot.errors import VideoError, reason_of
from sureshot.media.container import open_container
from sureshot.media.discover import VIDEO_SUFFIXES, open_regular
from sureshot.text import counted, plain, timecode

SUFFIXES = frozenset({".srt", ".vtt", ".ass", ".ssa"})
_VERSION = 1  # of the reading; a higher one makes indexes read subtitles again
_FOLDERS = frozenset({"sub", "subs", "subtitles"})  # in which players look as well
_MOST_BYTES = 1 << 25  # of a file that are read
_MOST_CUES = 100_000  # of a file or track; three hours of talk have 4,000
_MOST_LETTERS = 1000  # of a cue; what is longer is no caption
_MOST_SIDECARS = 100  # of a video
_TOUCHING = 0.1  # seconds: a cue that begins this soon after another one goes on with it
_HEAD = 4096  # letters that tell the kind of a file
_TEXT = {"subrip", "srt", "webvtt", "ass", "ssa", "mov_text", "text"}
_CODE = re.compile(r"\{\\[^{}]*\}|<[/A-Za-z0-9][^<>]*>")
_DRAWING = re.compile(r"\{[^{}]*\\p[1-9][^{}]*\}[^{}]*")
_FORCED_BREAK = re.compile(r"\\[Nnh]")
_HEAD_LANGUAGE = re.compile(r"\AWEBVTT[^\n]*\n(?:[^\n]+\n){0,5}?Language: *([\w-]+)")

# Names of languages: the tag, then codes and words that files use for it.
_LANGUAGES = """
en eng english|de ger deu german deutsch|fr fre fra french français|es spa spanish español
it ita italian italiano|pt por portuguese português|nl dut nld dutch|sv swe swedish|da dan danish
no nor nob nb norwegian|fi fin finnish|is ice isl icelandic|pl pol polish|cs cze ces czech
sk slo slk slovak|hu hun hungarian|ro rum ron romanian|bg bul bulgarian|hr hrv croatian
sr srp scc serbian|sl slv slovenian|bs bos bosnian|mk mac mkd macedonian|sq alb sqi albanian
el gre ell greek|tr tur turkish|ru rus russian|uk ukr ukrainian|be bel belarusian
et est estonian|lv lav latvian|lt lit lithuanian|he heb hebrew|ar ara arabic|fa per fas persian
hi hin hindi|bn ben bengali|ur urd urdu|ta tam tamil|te tel telugu|ml mal malayalam
kn kan kannada|mr mar marathi|th tha thai|vi vie vietnamese|id ind indonesian|ms may msa malay
tl fil tgl filipino tagalog|zh chi zho chinese|ja jpn japanese|ko kor korean|ca cat catalan
eu baq eus basque|gl glg galician|ga gle irish|cy wel cym welsh|af afr afrikaans|sw swa swahili
ka geo kat georgian|hy arm hye armenian|az aze azerbaijani|kk kaz kazakh|eo epo esperanto
la lat latin
"""
_TAGS = {
    name: names.split()[0]
    for names in re.split(r"[|\n]", _LANGUAGES.strip())
    for name in names.split()
}


class Cue(NamedTuple):
    """What is to be read or heard from ``start`` to ``end``, in seconds from the video's start."""

    start: float
    end: float
    text: str
    language: str = ""


class Sidecar(NamedTuple):
    """A subtitle file of a video."""

    path: Path
    language: str
    size: int
    mtime_ns: int


def sidecars(
    videos: Iterable[Path],
    roots: Sequence[Path] = (),
    note: Callable[[str], None] = lambda remark: None,
) -> dict[Path, list[Sidecar]]:
    """The subtitle files of each video that has some, in the order of their names.

    They are called as the video is, up to its last dot, and may be in a folder ``Subs``. A link
    counts where it stays in the folder of its video, of the file that the video links to, or below
    one of ``roots``.

    Args:
        videos: absolute paths; each folder is looked at once, so give many at a time.
        roots: folders that are indexed.
        note: called with a remark on each file that is not one of them.
    """
    found: dict[Path, list[Sidecar]] = {}
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    for video in videos:
        by_folder[video.parent].append(video)
    for folder, inside in by_folder.items():
        owned = _owned(folder)
        for video in inside:
            real = [*roots, folder, Path(os.path.realpath(video)).parent]
            allowed = [os.path.realpath(root) for root in real] if video.name in owned else []
            for path in owned.get(video.name, [])[:_MOST_SIDECARS]:
                try:
                    found.setdefault(video, []).append(_sidecar(path, video, allowed))
                except (VideoError, OSError) as error:
                    reason = reason_of(error) if isinstance(error, OSError) else str(error)
                    note(f"{plain(path)} is left out: {reason}")
    return found


def _sidecar(path: Path, video: Path, allowed: Sequence[str]) -> Sidecar:
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(folder) for folder in allowed):
        raise VideoError("it is a link out of the folders that are indexed")
    status = path.stat()
    language = _language(path.stem.removeprefix(video.stem))
    return Sidecar(path, language, status.st_size, status.st_mtime_ns)


def _owned(folder: Path) -> dict[str, list[Path]]:
    """The subtitle files of a folder by the name of their video."""
    names = _names(folder)
    videos = [name for name in names if Path(name).suffix.lower() in VIDEO_SUFFIXES]
    stems: dict[str, list[str]] = defaultdict(list)
    for name in videos:
        stems[Path(name).stem].append(name)
    owned: dict[str, list[Path]] = defaultdict(list)
    for path in [folder / name for name in names if _is_subtitles(name)]:
        for name in stems.get(_stem(path.name, stems), ()):
            owned[name].append(path)
    for place in [folder / name for name in names if name.lower() in _FOLDERS]:
        for entry in _names(place):
            if entry in stems:  # a folder of one video's
                paths = [place / entry / name for name in _names(place / entry)]
                owner = entry
            else:
                paths = [place / entry]
                # Of a film that has its folder for itself, all are.
                owner = next(iter(stems)) if len(stems) == 1 else _stem(entry, stems)
            for name in stems.get(owner, ()):
                owned[name] += [path for path in paths if _is_subtitles(path.name)]
    return owned


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - of a million names no paths are made
    except OSError:
        return []


def _is_subtitles(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES and not name.startswith(".")


def _stem(name: str, stems: Iterable[str]) -> str:
    """The longest of some stems that a name begins with, up to a dot; empty if none."""
    end = len(name)
    known = stems if isinstance(stems, dict) else set(stems)
    while (end := name.rfind(".", 0, end)) > 0:
        if name[:end] in known:
            return name[:end]
    return ""


def _language(rest: str) -> str:
    """The language that a file name gives behind the name of its video; empty if none.

    Examples:
        >>> [_language(rest) for rest in (".en", ".pt-BR.forced", ".eng.hi", ".old", "2_English")]
        ['en', 'pt-BR', 'en', '', 'en']
    """
    tags = [tag for part in re.split(r"[._\s()\[\]]+", rest) if (tag := _tag(part))]
    if len(tags) > 1:
        tags = [tag for tag in tags if tag != "hi"] or tags  # hearing impaired, besides Hindi
    return tags[-1] if tags else ""


def _tag(name: str) -> str:
    """The tag of a language that a file calls by a code or a word; empty if it is not known."""
    base, *more = re.split("[-_]", name)
    known = _TAGS.get(base.lower(), "")
    return "-".join([known, *more]) if known and re.fullmatch(r"[\w-]{1,20}", name) else ""


def stamp(files: Sequence[Sidecar]) -> str:
    """What subtitles depend on besides the video itself."""
    return "|".join([str(_VERSION), *(f"{f.path.name}:{f.size}:{f.mtime_ns}" for f in files)])


def read(
    video: Path,
    files: Sequence[Sidecar],
    *,
    duration: float = math.inf,
    note: Callable[[str], None] = lambda remark: None,
) -> Iterator[Cue]:
    """The cues of a video: of its subtitle files, then of its tracks, each once per language.

    Args:
        video: a file or a folder of frames.
        files: see `sidecars`.
        duration: seconds of the video; cues that begin later are left out.
        note: called with a remark on each file or track that cannot be read, or not to its end.
    """
    seen: set[tuple[str, str, int]] = set()

    def new(cues: Iterator[Cue], name: str) -> Iterator[Cue]:
        for cue in merged(_kept(cues, duration, name, note)):
            key = cue.text, cue.language, round(cue.start)
            if key not in seen:
                seen.add(key)
                yield cue

    for file in files:
        yield from new(_of_file(file), plain(file.path.name))
    for number, cues in enumerate(_embedded(video, note), 1):
        yield from new(iter(cues), f"subtitle track {number}")


def _kept(
    cues: Iterator[Cue], duration: float, name: str, note: Callable[[str], None]
) -> list[Cue]:
    """The cues of a track that are within a video, as far as it can be read."""
    kept: list[Cue] = []
    late = 0
    try:
        for cue in cues:
            if cue.start > duration:
                late += 1
            elif len(kept) == _MOST_CUES:
                raise VideoError(f"it has over {_MOST_CUES} lines")
            else:
                kept.append(cue._replace(end=min(cue.end, duration)))
    except (VideoError, OSError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        until = f"is read up to {timecode(kept[-1].start)}" if kept else "is left out"
        note(f"{name} {until}: {reason}")
    if late:
        note(f"{name}: {counted(late, 'line')} after the end of the video left out")
    return sorted(kept)


def _of_file(file: Sidecar) -> Iterator[Cue]:
    with io.BufferedReader(open_regular(file.path)) as opened:
        data = opened.read(_MOST_BYTES + 1)
    text = decoded(data[:_MOST_BYTES])
    language = file.language
    head = text[:_HEAD].lstrip()
    if head.startswith("WEBVTT"):
        kind = "webvtt"
        if not language and (named := _HEAD_LANGUAGE.match(head)):
            language = _tag(named[1])
    elif "[Script Info]" in head or "[Events]" in head:
        kind = "ass"
    else:
        kind = "srt"
    count = 0
    try:
        with av.open(io.BytesIO(text.encode()), "r", kind, metadata_errors="ignore") as parsed:
            for packet in parsed.demux(parsed.streams.subtitles):
                for cue in _cues(packet, language):
                    count += 1
                    yield cue
    except av.error.FFmpegError:
        raise VideoError("it has no subtitles") from None
    if not count:
        raise VideoError("it has no subtitles")
    if len(data) > _MOST_BYTES:
        raise VideoError(f"it has over {_MOST_BYTES // 1_000_000} MB")


def decoded(data: bytes) -> str:
    """The text of a subtitle file in whatever encoding; VideoError if it is none."""
    marks = (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    )
    for mark, encoding in marks:
        if data.startswith(mark):
            return _unix(data.removeprefix(mark).decode(encoding, "replace"))
    if b"\0" in data:
        raise VideoError("it is not text")
    try:
        return _unix(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _unix(data.decode("cp1252", "replace"))


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _embedded(video: Path, note: Callable[[str], None]) -> list[list[Cue]]:
    """The cues of each text track of a video; none where there are none."""
    if video.suffix.lower() not in VIDEO_SUFFIXES or video.is_dir():
        return []
    cues: dict[int, list[Cue]] = {}
    try:
        with open_container(video) as container:
            tracks = [s for s in container.streams.subtitles if _is_text(s)]
            if not tracks:
                return []
            cues = {track.index: [] for track in tracks}
            for stream in container.streams:
                if stream.index not in cues:
                    stream.discard = Discard.all
            for packet in container.demux(tracks):
                kept = cues[packet.stream_index]
                if len(kept) <= _MOST_CUES:
                    kept += _cues(packet, _tag(packet.stream.language or ""))
    except (VideoError, av.error.FFmpegError, OSError, IndexError):
        pass  # whoever reads the pictures reports it
    return list(cues.values())


def _is_text(stream: Any) -> bool:
    return stream.codec_context is not None and stream.codec_context.name in _TEXT


def _cues(packet: Any, language: str) -> Iterator[Cue]:
    """The cue of a packet, if it has words."""
    if packet.pts is None:
        return
    data = bytes(packet)
    kind = packet.stream.codec_context.name
    if kind == "mov_text":  # which begins with its length
        data = data[2 : 2 + int.from_bytes(data[:2])]
    text = data.decode("utf-8", "replace")
    if kind in ("ass", "ssa"):
        text = text.split(",", 8)[-1]
    start = max(0.0, float(packet.pts * packet.time_base))
    end = start + max(0.0, float((packet.duration or 0) * packet.time_base))
    if text := _words(text, kind):
        yield Cue(start, end, text, language)


def _words(text: str, kind: str) -> str:
    """The words of a cue, without what styles them; its lines stay apart."""
    text = text[:_MOST_BYTES]
    if kind in ("ass", "ssa"):
        text = _FORCED_BREAK.sub(
            lambda found: " " if found[0] == r"\h" else "\n", _DRAWING.sub("", text)
        )
    text = _CODE.sub("", text)
    if kind not in ("ass", "ssa"):
        text = html.unescape(text)
    lines = (
        " ".join("".join(c if c.isprintable() else " " for c in line).split())
        for line in text.split("\n")
    )
    return "\n".join(filter(None, lines))[:_MOST_LETTERS].strip()


def merged(cues: Iterable[Cue]) -> Iterator[Cue]:
    """Cues in the order of their times, each line once for as long as it is shown.

    Rolling captions repeat the lines before the new one; typesetting repeats a line per frame.
    """
    shown: dict[str, int] = {}
    kept: list[Cue] = []
    for cue in cues:
        new = []
        for line in cue.text.split("\n"):
            place = shown.get(line)
            if place is not None and cue.start <= kept[place].end + _TOUCHING:
                kept[place] = kept[place]._replace(end=max(kept[place].end, cue.end))
            else:
                new.append(line)
        if new:
            kept.append(cue._replace(text=" ".join(new)))
            shown.update(dict.fromkeys(new, len(kept) - 1))

    return iter(kept)
