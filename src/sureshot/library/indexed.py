"""What an indexing run did."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sureshot.library.answer import JSON_SCHEMA, reasons
from sureshot.text import counted, duration, plain, printable, time_left


@dataclass(slots=True, repr=False)
class Indexed:
    """What a run did; handed to the observer as it grows, and returned at the end.

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
        windows: windows written.
        seconds: length of the videos indexed.
        elapsed: seconds the run took.
        current: the video dealt with last.
        interrupted: whether the run was stopped before its end.
        warnings: what the user should know about the index.
        engine: what computed the frames, ``torch`` or ``openvino``; empty where none were, or where
            the model leaves no choice.
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
    windows: int = 0
    seconds: float = 0.0
    elapsed: float = 0.0
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
    def summary(self) -> str:
        """How many videos were found, and what became of them."""
        parts = [
            f"{self.indexed} indexed" if self.indexed else "nothing new",
            f"{self.unchanged} unchanged" if self.unchanged else "",
            f"{self.moved} moved" if self.moved else "",
            f"{self.copied} with the content of another" if self.copied else "",
            f"{len(self.failed)} failed" if self.failed else "",
            f"{self.known_failures} failed before" if self.known_failures else "",
        ]
        return f"{counted(self.found, 'video')} found: {', '.join(part for part in parts if part)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        values = asdict(self)
        for name in ("current", "bytes_begun", "bytes_done", "bytes_found", "seconds_begun"):
            del values[name]
        return {
            "schema": JSON_SCHEMA,
            **values,
            "index": printable(self.index),
            "failed": reasons(self.failed),
            "notes": reasons(self.notes),
            "seconds": round(self.seconds, 3),
            "elapsed": round(self.elapsed, 3),
        }

    def __repr__(self) -> str:
        lines = [f"{plain(self.index)}: {self.summary}"]
        lines += [f"  failed: {plain(path)}: {plain(reason)}" for path, reason in self.failed]
        lines += [f"  damaged: {plain(path)}: {plain(note)}" for path, note in self.notes]
        return "\n".join(lines)


class Headway:
    """How far an indexing run is, in words and in bytes.

    Attributes:
        text: the state in words.
        done: bytes dealt with, about.
        total: bytes there are.
        free: bytes that cost no time, as they were indexed before.
    """

    def __init__(self) -> None:
        self.text = "looking for videos"
        self.done = self.total = self.free = 0

    def update(self, result: Indexed) -> None:
        """Take in where the run stands."""
        if not result.indexed + len(result.failed):
            self.free = result.bytes_done
        if not result.found:
            return
        # Bytes, not videos, so that one film among clips does not upset the estimate.
        self.done, self.total = result.bytes_done + result.bytes_begun, result.bytes_found
        failed = len(result.failed) + result.known_failures
        done = result.indexed + result.unchanged + result.moved + result.copied + failed
        self.text = f"{done} of {result.found} videos"
        if result.failed:
            self.text += f", {len(result.failed)} failed"
        if result.decoded:
            # Of a film among clips the number of videos stands still for long; its time does not.
            video = duration(result.decoded)
            self.text += f", {video} of video, {result.speed:.1f} times real time"

    def left(self, elapsed: float) -> str:
        """How long the rest will take, in words to put behind the others.

        Args:
            elapsed: seconds since the run began.
        """
        return time_left(elapsed, self.done - self.free, self.total - self.free)
