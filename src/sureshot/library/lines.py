"""Words of videos on their way into the index: what is read, and what is there already."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from sureshot.errors import ArgumentError, SureshotError, VideoError, first_line, option
from sureshot.library.index_result import Indexed
from sureshot.media import lines, subtitles
from sureshot.media.discover import Source as VideoSource
from sureshot.media.lines import SOURCES, TITLES, Line, Source
from sureshot.models.encoders.bundled import sentence_encoder
from sureshot.paths import absolute_model
from sureshot.store.index import Store
from sureshot.store.lines import WordsRead
from sureshot.store.rows import VideoRecord

Words = Literal["none", "subtitles", "all"]
_EVERY = 1.0  # seconds between commits
_PAGE = 4096  # videos whose subtitle files are looked for at once
_TEXTS = 256  # encoded at once


class Wanted(NamedTuple):
    """Which words of videos are read into an index, and the model that hears speech."""

    words: Words = "subtitles"
    speech: str | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources that are read; speech only where a model for it was named."""
        if self.words != "all":
            return ("subtitles",) if self.words == "subtitles" else ()
        return tuple(one for one in SOURCES if one != "speech" or self.speech)

    @classmethod
    def of(cls, store: Store, words: str | None, speech: str | Path | None) -> "Wanted":
        """What is asked for now, else what was last time; it is remembered."""
        known = cls(*json.loads(store.words() or "[]"))
        if speech and not words:
            words = "all"
        if speech:
            speech = absolute_model(speech)
        wanted = cls(words or known.words, speech or known.speech)  # type: ignore[arg-type]
        if wanted != known:
            store.set_words(json.dumps(wanted))
        return wanted


def check_words(words: str | None, speech: str | Path | None) -> None:
    """Refuse what cannot be asked for, see `Wanted.of`."""
    if words is not None and words not in get_args(Words):
        raise ArgumentError(f"{option('words', words)} is not one of {', '.join(get_args(Words))}.")
    if speech and words in ("none", "subtitles"):
        raise ArgumentError(
            f"{option('speech')} hears words, and {option('words', words)} reads none of them; "
            "leave out one of the two."
        )
    if speech and (why := lines.why_not("speech", absolute_model(speech))):
        raise ArgumentError(f"{option('speech', absolute_model(speech))} cannot be used: {why}.")


class _Todo(NamedTuple):
    video: VideoRecord
    source: Source
    stamp: str
    sidecars: Sequence[subtitles.Sidecar]


@dataclass(eq=False, repr=False)
class WordReader:
    """Reads the words of indexed videos that are not in the index as they are now.

    No frame is encoded again. What is read of a video is committed with what others give within a
    second.
    """

    store: Store
    wanted: Wanted
    result: Indexed  # takes in what is done
    progress: Callable[[], None]  # called after each video
    roots: Sequence[Path]  # folders below which links to subtitle files may lead
    force: bool  # whether words that are there are read again

    def __post_init__(self) -> None:
        self._known = self.store.words_read()
        self._waiting: list[WordsRead] = []
        self._last = time.monotonic()

    def read(self, sources: Sequence[VideoSource]) -> None:
        """Read the words of videos, from the sources that take least time first."""
        chosen = []
        for source in self.wanted.sources:
            if why := lines.why_not(source, self.wanted.speech):
                self.result.warnings.append(f"{TITLES[source]} was not read: {why}.")
            else:
                chosen.append(source)
        todo: list[_Todo] = []
        for first in range(0, len(sources) if chosen else 0, _PAGE):
            todo += self._unread(sources[first : first + _PAGE], chosen)
        try:
            for source in SOURCES:
                self._read([one for one in todo if one.source == source], source)
        finally:
            self._commit()
            self.result.reading = ""

    def _unread(self, page: Sequence[VideoSource], sources: Sequence[Source]) -> Iterator[_Todo]:
        """Which words of some videos are to be read."""
        # How many seconds have text in the picture to be read too is noted.
        more = self.wanted.words == "subtitles" and not lines.why_not("picture")
        found = self.store.at([source.path for source in page])
        videos = [video for video in found.values() if video.windows]
        left_out: list[str] = []
        sidecars = subtitles.sidecars([video.path for video in videos], self.roots, left_out.append)
        self.result.warnings += [f"{remark}." for remark in left_out]
        for video in videos:
            mine, there = sidecars.get(video.path), self._known.get(video.id, {})
            if more and "picture" not in there:
                unread = self.result.unread
                unread["picture"] = unread.get("picture", 0.0) + video.duration
            for source in sources:
                of = (mine or ()) if source == "subtitles" else ()
                stamp = f"{video.digest} {lines.stamp(source, of, self.wanted.speech)}"
                before, count = there.get(source, ("", 0))
                # Nothing is known of the files; what was read of them stays.
                kept = source == "subtitles" and mine is None and before
                if not kept and (self.force or before != stamp):
                    yield _Todo(video, source, stamp, of)
                elif count:
                    self.result.worded[source] += 1

    def _read(self, todo: Sequence[_Todo], source: Source) -> None:
        result = self.result
        before = 0.0
        result.to_read = sum(one.video.duration for one in todo)
        try:
            for one in todo:
                result.reading, result.read_seconds, result.current = source, before, one.video.path
                if (read := self._lines_of(one, before)) is not None:
                    self._waiting.append(read)
                before += one.video.duration
                if time.monotonic() - self._last > _EVERY:
                    self._commit()
                    result.read_seconds = before
                    self.progress()
        except SureshotError as error:  # of a model that cannot be loaded, which concerns all
            result.warnings.append(f"{TITLES[source]} was not read: {error}")

    def _lines_of(self, one: _Todo, before: float) -> WordsRead | None:
        """The lines of a video from a source; None where they may be read another time.

        Before it so many seconds of video were read from this source.
        """
        result, found = self.result, list[Line]()

        def progress(seconds: float) -> None:
            result.read_seconds = before + min(seconds, one.video.duration)
            self.progress()

        try:
            for line in lines.read(
                one.video.path,
                one.source,
                sidecars=one.sidecars,
                duration=one.video.duration,
                rate=self.store.settings.frame_rate,
                speech=self.wanted.speech,
                note=lambda remark: result.left_out.append((one.video.path, remark)),
                progress=progress,
            ):
                found.append(line)
        except VideoError as error:
            result.left_out.append((one.video.path, f"{TITLES[one.source]}: {error}"))
            if error.transient:
                return None
        except SureshotError:  # of the model, not of this video
            raise
        except Exception as error:  # one broken video must not end the run
            fault = f"{TITLES[one.source]}: cannot be read ({first_line(error)})"
            result.left_out.append((one.video.path, fault))
        if found:
            result.worded[one.source] += 1
            result.lines[one.source] += len(found)
        texts = [line.text for line in found]
        parts = [texts[first : first + _TEXTS] for first in range(0, len(texts), _TEXTS)]
        vectors = [sentence_encoder().encode(part).sentence for part in parts]
        return WordsRead(
            video=one.video,
            source=one.source,
            stamp=one.stamp,
            lines=found,
            vectors=np.concatenate([np.zeros((0, 384), np.float32), *vectors]),
        )

    def _commit(self) -> None:
        read, self._waiting = self._waiting, []
        self.store.write_lines(read)
        self._last = time.monotonic()
