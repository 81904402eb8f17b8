"""Subtitles: files next to a video, and tracks inside it.

ffmpeg parses all of them, so a broken file is read as ffmpeg's players read it. Encodings are
guessed, and styling is removed, here.
"""

import codecs
import contextlib
import errno
import html
import io
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import av
import av.error
from av.stream import Discard

from sureshot.errors import VideoError, reason_of
from sureshot.media.container import TimeBudget, open_container, within_budget
from sureshot.media.discover import VIDEO_SUFFIXES, open_regular
from sureshot.media.lines import Line
from sureshot.media.video import file_size, picture_delay, picture_stream, start_of
from sureshot.s3 import ObjectPath
from sureshot.text import composed, counted, one_line, plain, timecode
from sureshot.text import decoded as text_of

SUFFIXES = frozenset({".srt", ".vtt", ".ass", ".ssa"})
_VERSION = 2  # of the reading; a higher one makes indexes read subtitles again
FOLDERS = frozenset({"sub", "subs", "subtitles"})  # in which players look as well
_MOST_BYTES = 1 << 24  # of a file that are read
_MOST_CUES = 100_000  # of a file or track; three hours of talk have 4,000
_ANYHOW, _A_SECOND = 1000, 20  # cues that any video may have, and those of a second more
_MOST_LETTERS = 1000  # of a cue; what is longer is no caption
_MOST_SIDECARS = 100  # of a video
_ITS_OWN = (FileNotFoundError, NotADirectoryError, PermissionError)  # of one file, for as long
_NO_FILE = {errno.ENOENT, errno.ENOTSUP, errno.EISDIR, errno.ENXIO, errno.ELOOP}
_TOUCHING = 0.1  # seconds: a cue that begins this soon after another one goes on with it
_HEAD = 4096  # letters that tell the kind of a file
_TEXT = {"subrip", "srt", "webvtt", "ass", "ssa", "mov_text", "text"}
_MOST_CODE = 20_000  # bytes of a cue that are looked at
_CODE = re.compile(r"\{\\[^{}]*\}|<[/A-Za-z0-9][^<>]*>")
_HEAD_LANGUAGE = re.compile(r"\AWEBVTT[^\n]*\n(?:[^\n]+\n){0,5}?Language: *([\w-]+)")

_REPLACED = "\ufffd"  # stands for what cannot be decoded
_DAMAGE = 10  # at most one such letter in so many beyond ASCII is damage to UTF-8
_SAMPLE = 1 << 15  # bytes that an encoding is guessed from
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What subtitles were written in before UTF-8, and the languages that Windows has cp1252 for.
_ENCODINGS = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("cp874", "koi8_r", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]
# Letters beyond ASCII of languages, by what Windows wrote them in. The byte of a Portuguese ã is
# that of a Romanian ă, so only which letters a language has tells these encodings apart.
_ALPHABETS = tuple(
    (encoding, frozenset(letters + letters.upper()))
    for encoding, languages in {
        "cp1252": "éèêëàâæçîïôœùûüÿ áàâãçéêíóôõúü\u00aa\u00ba áéíñóúü\u00aa\u00ba àèéìíîòóù äöüß"
        " åäöéü æøåéòô àçéèíïóòúü áðéíóúýþæö éëïóöüèêá äöåšž",
        "cp1254": "çğıİöşüâîû",
        "cp1250": "ąćęłńóśźż áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž áéíóöőúüű ăâîşţ čćđšž",
        "cp1257": "ąčęėįšųūž āčēģīķļņšūž äõöüšž",
    }.items()
    for letters in languages.split()
)
_IN_WORDS = re.compile(r"[^\W\d_][¡-©¬-³µ¶¸¹¼-¿×÷]")
_FOREIGN = 0.05  # share of the letters that may be of another alphabet, as in names
_WESTERN = {"en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "is", "ca", "eu"}

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
    """The subtitle files of each video, in the order of their names.

    Videos whose folder or storage cannot be asked are left out.

    They are called as the video is, up to its last dot, and may be in a folder ``Subs``. A link
    counts where it stays in the folder of its video, of the file that the video links to, or below
    one of ``roots``, the folders that are indexed.

    Args:
        videos: absolute paths; each folder is looked at once, so give many at a time.
        note: called with a remark on each file, or folder, that is left out.
    """
    found: dict[Path, list[Sidecar]] = {}
    tops: set[Path] = set()
    for root in roots:
        with contextlib.suppress(OSError, RuntimeError):  # of links in a circle
            tops.add(root.resolve())
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    for video in videos:
        by_folder[video.parent].append(video)
    for folder, asked in by_folder.items():
        mine: dict[Path, list[Sidecar]] = {video: [] for video in asked}
        try:
            owned = _owned(folder, {video.name for video in asked}, note)
            for video in asked:
                for path in owned.get(video.name, [])[:_MOST_SIDECARS]:
                    try:
                        mine[video].append(_sidecar(path, video, tops))
                    except (VideoError, *_ITS_OWN, RuntimeError) as error:  # of links in a circle
                        note(f"{plain(path)} is left out: {_reason(error)}")
        except OSError as error:
            note(f"Subtitles in {plain(folder)} were not looked for: {reason_of(error)}")
        else:
            found |= mine
    return found


def _sidecar(path: Path, video: Path, tops: Set[Path]) -> Sidecar:
    folders = {video.parent.resolve(), video.resolve().parent, *tops}
    if folders.isdisjoint(path.resolve().parents) and path.resolve() not in folders:
        raise VideoError("it is a link out of the folders that are indexed")
    if not isinstance(path, ObjectPath) and not os.access(path, os.R_OK):
        raise VideoError(os.strerror(errno.EACCES).lower())
    if isinstance(path, ObjectPath) and path.listed:
        size, mtime_ns = path.listed.size, path.listed.mtime_ns
    else:
        size, mtime_ns = (status := path.stat()).st_size, status.st_mtime_ns
    language = _language(composed(path.stem).removeprefix(composed(video.stem)))
    return Sidecar(path=path, language=language, size=size, mtime_ns=mtime_ns)


def _reason(error: Exception) -> str:
    return reason_of(error) if isinstance(error, OSError) else str(error)


def _owned(folder: Path, asked: set[str], note: Callable[[str], None]) -> dict[str, list[Path]]:
    """The subtitle files of a folder by the names of their videos."""
    entries = _entries(folder)
    stems: dict[str, list[str]] = defaultdict(list)
    for name in {one.name for one in entries if one.suffix.lower() in VIDEO_SUFFIXES} | asked:
        stems[composed(Path(name).stem)].append(name)
    owned: dict[str, list[Path]] = defaultdict(list)

    def give(path: Path, stem: str) -> None:
        if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
            names = stems.get(stem, [])
            # Of two that differ in the form of an accent alone, the one that is spelt so.
            exact = [name for name in names if path.name.startswith(Path(name).stem)]
            for name in exact or names:
                owned[name].append(path)

    for one in entries:
        give(one, _stem(composed(one.name), stems))
    for place in (one for one in entries if one.name.lower() in FOLDERS):
        try:
            for path, stem in [*_in_subs(place, stems)]:
                give(path, stem)
        except PermissionError as error:
            note(f"{plain(place)} is left out: {reason_of(error)}")
    return owned


def _in_subs(place: Path, stems: Collection[str]) -> Iterator[tuple[Path, str]]:
    """What is in a folder ``Subs``, and the names, without suffix, of the videos it belongs to."""
    only = next(iter(stems)) if len(stems) == 1 else ""
    for entry in _entries(place):
        name = composed(entry.name)
        if name in stems:  # a folder of its own
            yield from ((inner, name) for inner in _entries(entry))
        else:  # where a folder has one video only, all are its own
            yield entry, _stem(name, stems) or only


def _entries(folder: Path) -> Sequence[Path]:
    """What is in a folder, in the order of names; nothing where there is none."""
    try:
        if isinstance(folder, ObjectPath):
            return folder.entries()
        return [folder / name for name in sorted(os.listdir(folder))]  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stem(name: str, stems: Container[str]) -> str:
    """The longest of some stems that a name begins with, up to a dot; empty if none."""
    end = len(name)
    while (end := name.rfind(".", 0, end)) > 0:
        if name[:end] in stems:
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
) -> Iterator[Line]:
    """The cues of a video: of its subtitle files, then of its tracks, each once per language.

    Args:
        duration: seconds of the video; cues that begin later are left out.
        note: called with a remark on each file or track that cannot be read, or not to its end.
    """
    seen: set[tuple[str, str, int]] = set()

    def new(cues: Iterator[Line], name: str) -> Iterator[Line]:
        for cue in merged(_kept(cues, duration, name, note)):
            key = cue.text, cue.language, round(cue.start)
            if key not in seen:
                seen.add(key)
                yield cue

    delay = picture_delay(video) if files else 0.0
    for file in files:
        yield from new(_of_file(file, delay), plain(file.path.name))
    for number, cues in enumerate(_embedded(video, note), 1):
        yield from new(iter(cues), f"subtitle track {number}")


def _kept(
    cues: Iterator[Line], duration: float, name: str, note: Callable[[str], None]
) -> list[Line]:
    """The cues of a track that are within a video, as far as it can be read."""
    kept: list[Line] = []
    late, most = 0, min(_MOST_CUES, _ANYHOW + _A_SECOND * duration)
    try:
        for cue in cues:
            if cue.start > duration:
                late += 1
            elif len(kept) >= most:
                raise VideoError(f"it has over {most:.0f} lines")
            else:
                kept.append(cue._replace(end=min(cue.end, duration)))
    except (VideoError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_FILE:
            # Of the disk or the storage: another time it may be read.
            raise VideoError(f"{name} cannot be read: {reason_of(error)}", transient=True) from None
        until = f"is read up to {timecode(kept[-1].start)}" if kept else "is left out"
        note(f"{name} {until}: {_reason(error)}")
    if late:
        note(f"{name}: {counted(late, 'line')} after the end of the video left out")
    return sorted(kept)


def _of_file(file: Sidecar, delay: float) -> Iterator[Line]:
    """The cues of a file, whose times count from the beginning of the video and not of pictures."""
    with io.BufferedReader(open_regular(file.path)) as opened:
        data = opened.read(_MOST_BYTES + 1)
    text = decoded(data[:_MOST_BYTES], file.language)
    language = file.language
    head = text[:_HEAD].lstrip()
    kind, count = "ass" if "[Script Info]" in head or "[Events]" in head else "srt", 0
    if head.startswith("WEBVTT"):
        kind = "webvtt"
        if not language and (named := _HEAD_LANGUAGE.match(head)):
            language = _tag(named[1])
    try:
        with av.open(io.BytesIO(text.encode()), "r", kind, metadata_errors="ignore") as parsed:
            for packet in parsed.demux(parsed.streams.subtitles):
                for cue in _cues(packet, language):
                    count += 1
                    if cue.end > delay:
                        start = max(cue.start - delay, 0.0)
                        yield cue._replace(start=start, end=cue.end - delay)
    except av.error.FFmpegError:
        raise VideoError("the rest is damaged" if count else "it has no subtitles") from None
    if not count:
        raise VideoError("it has no subtitles")
    if len(data) > _MOST_BYTES:
        raise VideoError(f"it has over {_MOST_BYTES // 1_000_000} MB")


def decoded(data: bytes, language: str = "") -> str:
    """The text of a subtitle file, its encoding guessed; VideoError if it is no text.

    The language helps where it is known: ``ã`` of a Portuguese file is ``ă`` in one of any.
    """
    text = text_of(data, "replace")
    if not data.startswith(_UTF16):
        if b"\0" in data:
            raise VideoError("it is not text")
        if text.count(_REPLACED) * _DAMAGE > sum(not letter.isascii() for letter in text):
            text = data.decode(_guessed(data, language), "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _guessed(data: bytes, language: str) -> str:
    from charset_normalizer import from_bytes

    if language.partition("-")[0] in _WESTERN:
        return "cp1252"
    # Times and English words fit everywhere; what tells encodings apart is the other lines.
    telling = b"\n".join(line for line in data.splitlines() if not line.isascii())[:_SAMPLE]
    found = [(_strange(telling, *alphabet), alphabet[0]) for alphabet in _ALPHABETS]
    strange, encoding = min(found, key=lambda one: one[0])
    if strange <= _FOREIGN:
        return encoding
    best = from_bytes(telling, cp_isolation=_ENCODINGS).best()  # of another script
    return best.encoding if best else "cp1252"


def _strange(data: bytes, encoding: str, alphabet: Set[str]) -> float:
    """The share of letters beyond ASCII that a language does not have, of bytes so decoded.

    Signs that follow a letter where only letters do count as such: Polish ``już`` read as ``ju¿``.
    """
    text = data.decode(encoding, "replace")
    letters = [letter for letter in text if not letter.isascii() and letter.isalpha()]
    others = sum(letter not in alphabet for letter in letters)
    others += len(_IN_WORDS.findall(text)) + text.count(_REPLACED)
    return others / len(letters) if letters else 1.0


def _embedded(video: Path, note: Callable[[str], None]) -> list[list[Line]]:
    """The cues of each text track of a video; none where there are none."""
    if video.suffix.lower() not in VIDEO_SUFFIXES:
        return []
    cues: dict[int, list[Line]] = {}
    try:
        budget = TimeBudget(file_size(video))
        with open_container(video, budget) as container:
            tracks = [
                track
                for track in container.streams.subtitles
                if track.codec_context is not None and track.codec_context.name in _TEXT
            ]
            cues = {track.index: [] for track in tracks}
            if not tracks:
                return []
            first = start_of(picture_stream(container))
            for stream in container.streams:
                if stream.index not in cues:
                    stream.discard = Discard.all
            for packet in within_budget(container.demux(tracks), budget):
                kept = cues.get(packet.stream_index)  # none for the marks of the ends
                if kept is not None and len(kept) <= _MOST_CUES:
                    kept += _cues(packet, _tag(packet.stream.language or ""), first)
    except (VideoError, av.error.FFmpegError, OSError, IndexError) as error:
        # Whoever reads the pictures says what is wrong with the file.
        if any(cues.values()):
            note(f"subtitle tracks are read as far as they go: {_reason(error)}")
    return list(cues.values())


def _cues(packet: Any, language: str, first: float = 0.0) -> Iterator[Line]:
    """The cue of a packet, if it has words; ``first`` is the clock of the file at second 0."""
    if packet.pts is None:
        return
    data = bytes(packet)
    kind = packet.stream.codec_context.name
    if kind == "mov_text":  # whose length comes first
        data = data[2 : 2 + int.from_bytes(data[:2], "big")]
    text = data[:_MOST_CODE].decode("utf-8", "replace")
    words = _ass_words(text) if kind in ("ass", "ssa") else html.unescape(_CODE.sub("", text))
    begin = float(packet.pts * packet.time_base) - first
    end = begin + float((packet.duration or 0) * packet.time_base)
    if begin < 0 and end <= 0:
        return  # over before the first picture
    if text := "\n".join(filter(None, map(one_line, words.split("\n")))):
        text = text[:_MOST_LETTERS].strip()
        start, end = max(0.0, begin), max(0.0, end)
        yield Line(start=start, end=end, text=text, source="subtitles", language=language)


def _ass_words(event: str) -> str:
    """The text of an event, its last field, without codes and drawings."""
    drawn, words = False, []
    for place, part in enumerate(re.split(r"\{([^{}]*)\}", event.split(",", 8)[-1])):
        if place % 2:
            modes = re.findall(r"\\p(\d)", part)
            drawn = modes[-1] != "0" if modes else drawn
        elif not drawn:
            words.append(part)
    return re.sub(r"\\[Nn]", "\n", "".join(words)).replace(r"\h", " ")


def merged(cues: Iterable[Line]) -> list[Line]:
    """Cues in the order of their times, each line once for as long as it is shown.

    Rolling captions repeat the lines above the new one, and typesetting a line for each frame.
    """
    kept: list[Line] = []
    shown: dict[str, int] = {}  # places in kept
    for cue in cues:
        new = []
        for line in cue.text.split("\n"):
            place = shown.get(line, -1)
            if place >= 0 and cue.start <= kept[place].end + _TOUCHING:
                kept[place] = kept[place]._replace(end=max(kept[place].end, cue.end))
            else:
                new.append(line)
        if new:
            shown.update(dict.fromkeys(new, len(kept)))
            kept.append(cue._replace(text=" ".join(new)))
    return kept
