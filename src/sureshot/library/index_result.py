"""What an indexing run did, and how far it is."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sureshot.library.results import JSON_SCHEMA, json_values
from sureshot.media.lines import TITLES, Source
from sureshot.text import counted, duration, plain, time_left


@dataclass(slots=True, repr=False)
class Indexed:
    """What a run did; passed to ``progress`` as it grows, and returned at the end.

    Attributes:
        index: where the index is.
        found: videos at or below the paths.
        bytes_found: their size.
        bytes_done: size of those dealt with, for progress.
        bytes_begun: bytes encoded so far, about, of the videos being encoded now.
        seconds_begun: length encoded so far of the videos being encoded now.
        indexed: videos decoded, encoded and written.
        unchanged: videos that the index already had.
        moved: videos found again under another name, not encoded again.
        copied: videos whose content was already there under another name.
        failed: paths that could not be indexed, with reasons.
        notes: paths that were indexed in spite of some damage, with what it was.
        known_failures: files that failed in an earlier run, unchanged since, not tried again.
        pruned: videos removed because their files are gone.
        excluded: files and folders passed over, as patterns exclude them.
        forgotten: indexed videos removed because patterns exclude them.
        missing: videos whose files are gone and which stay until ``prune``.
        away: videos whose folder or disk is not there now, which stay in any case.
        windows: windows written.
        seconds: length of the videos indexed.
        elapsed: seconds the run took.
        lines: lines of words that were read, by their source.
        worded: videos with lines in the index now, of those found, by their source.
        unread: seconds of video whose words could be read, by their source, but are not asked for.
        left_out: videos with subtitles that could not be read, or not to their end, and why.
        reading: the source of words that is read now, for progress; empty before.
        read_seconds: seconds of video that were read for it, of ``to_read``.
        current: the video dealt with last.
        interrupted: whether the run was stopped before its end.
        warnings: what the user should know about the index.
        engine: what computed the frames, ``onnxruntime``, ``openvino`` or ``torch``; empty where
            none were, or where the model leaves no choice.
    """

    index: str = ""
    found: int = 0
    bytes_found: int = 0
    bytes_done: int = 0
    bytes_begun: int = 0
    seconds_begun: float = 0.0
    indexed: int = 0
    unchanged: int = 0
    moved: int = 0
    copied: int = 0
    failed: list[tuple[Path, str]] = field(default_factory=list)
    notes: list[tuple[Path, str]] = field(default_factory=list)
    known_failures: int = 0
    pruned: int = 0
    excluded: int = 0
    forgotten: int = 0
    missing: int = 0
    away: int = 0
    windows: int = 0
    seconds: float = 0.0
    elapsed: float = 0.0
    lines: Counter[str] = field(default_factory=Counter)
    worded: Counter[str] = field(default_factory=Counter)
    unread: dict[str, float] = field(default_factory=dict)
    left_out: list[tuple[Path, str]] = field(default_factory=list)
    reading: Source | Literal[""] = ""
    read_seconds: float = 0.0
    to_read: float = 0.0
    current: Path | None = None
    interrupted: bool = False
    warnings: list[str] = field(default_factory=list)
    engine: str = ""

    @property
    def decoded(self) -> float:
        """Seconds of video that this run has encoded, of videos not yet complete too."""
        return self.seconds + self.seconds_begun

    @property
    def speed(self) -> float:
        """Seconds of video encoded in a second, since the run began."""
        return self.decoded / max(self.elapsed, 1e-9)

    @property
    def engine_title(self) -> str:
        """What computed the frames, by the name that its makers give it; empty for nothing."""
        from sureshot.models.encoders.engines import TITLES

        return TITLES.get(self.engine, self.engine)

    @property
    def summary(self) -> str:
        """How many videos were found, and what became of them."""
        became = {
            "indexed": self.indexed,
            "unchanged": self.unchanged,
            "moved": self.moved,
            "identical to another": self.copied,
            "failed": len(self.failed),
            "failed before": self.known_failures,
        }
        parts = [] if self.indexed or self.copied else ["nothing new"]
        parts += [f"{count} {what}" for what, count in became.items() if count]
        return f"{counted(self.found, 'video')} found: {', '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        values = json_values(self, schema=JSON_SCHEMA)
        hidden = ("current", "bytes_begun", "bytes_done", "bytes_found", "seconds_begun")
        for name in (*hidden, "reading", "read_seconds", "to_read"):
            del values[name]
        return values

    def __repr__(self) -> str:
        lines = [f"{plain(self.index)}: {self.summary}"]
        lines += [f"  failed: {plain(path)}: {plain(reason)}" for path, reason in self.failed]
        lines += [f"  damaged: {plain(path)}: {plain(note)}" for path, note in self.notes]
        lines += [f"  words: {plain(path)}: {plain(note)}" for path, note in self.left_out]
        return "\n".join(lines)


_MEASURED = 5.0  # seconds of encoding before an estimate of the time that is left


class IndexProgress:
    """How far an indexing run is: in words, in bytes, and how long the rest will take."""

    def __init__(self) -> None:
        self.text = "looking for videos"
        self.left = ""  # in words to put after the others; empty until enough was measured
        self.done = self.total = 0
        self._work, self._since, self._before = "", 0.0, 0  # how much was done when it began

    def update(self, result: Indexed) -> None:
        """Take in where the run stands."""
        if not result.found:
            return
        # To load the model, and what was indexed before, says nothing about the rest.
        work = result.reading or ("encoding" if result.decoded else self._work)
        if result.reading:
            self.done, self.total = round(result.read_seconds), round(result.to_read)
            done, total = duration(self.done), duration(self.total)
            self.text = f"reading {TITLES[result.reading].lower()}: {done} of {total} of video"
        else:
            # Bytes, not videos, so that one film among clips does not upset the estimate.
            self.done, self.total = result.bytes_done + result.bytes_begun, result.bytes_found
            self.text = self._videos(result)
        if work != self._work:
            self._work, self._since, self._before = work, result.elapsed, self.done
        elapsed = result.elapsed - self._since
        left = time_left(elapsed, self.done - self._before, self.total - self._before)
        self.left = left if work and elapsed >= _MEASURED else ""

    def _videos(self, result: Indexed) -> str:
        failed = len(result.failed) + result.known_failures
        done = result.indexed + result.unchanged + result.moved + result.copied + failed
        text = f"{done} of {result.found} videos"
        if result.failed:
            text += f", {len(result.failed)} failed"
        if result.decoded:
            # Of a film among clips the number of videos stands still for long; its time does not.
            video = duration(result.decoded)
            text += f", {video} of video, {result.speed:.1f} times real time"
        return text
