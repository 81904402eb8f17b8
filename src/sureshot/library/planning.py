"""What an indexing run has to decode: all that lies below its paths, less what it has already."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from sureshot.library.encode import content_digest
from sureshot.library.indexed import Indexed
from sureshot.library.packing import record_of
from sureshot.library.shard import Shard
from sureshot.library.worklist import Worklist
from sureshot.media.discover import Source, Unreadable, discover, frame_files
from sureshot.media.excluded import Excluded
from sureshot.places import absolute
from sureshot.store.rows import VideoRecord
from sureshot.store.store import Store

_Observe = Callable[[Indexed], None]


def find_sources(
    paths: Sequence[Path],
    excluded: Excluded,
    shard: Shard,
    result: Indexed,
    observe: _Observe,
) -> Worklist:
    """Every video of a share at or below the paths; what cannot be looked at is noted."""
    tops = [absolute(path) for path in paths]

    def leave_out(path: Path) -> bool:
        left = excluded.matches(path, tops)
        result.excluded += left
        return left

    sources = Worklist()
    for source in discover(paths, leave_out):
        # What was named and cannot be read concerns everybody.
        if not (shard.has(source.path) or (isinstance(source, Unreadable) and source.path in tops)):
            continue
        if isinstance(source, Unreadable):
            result.failed.append((source.path, source.reason))
            continue
        sources.add(source)
        result.found += 1
        result.bytes_found += source.size
        if result.found % 200 == 0:
            observe(result)
    return sources


class Planner:
    """Deals with what need not be decoded, and lists the rest.

    Args:
        store: the index.
        shard: which videos are this run's; of others none is removed.
        lost: paths of videos whose windows are not there as they were written.
        force: whether to decode what is already there, failed files included.
    """

    def __init__(self, store: Store, shard: Shard, lost: Collection[Path], *, force: bool) -> None:
        self._store = store
        self._shard = shard
        self._lost = lost
        self._force = force

    def todo(self, sources: Worklist, result: Indexed, observe: _Observe) -> Worklist:
        """The sources that must be decoded; everything else is dealt with here."""
        left = Worklist()
        for page in sources.pages():
            known, by_size = self._known(page)
            for source in page:
                if self._force or not self._up_to_date(
                    source, known.get(source.path), by_size[source.size], result
                ):
                    left.add(source)
                else:
                    result.bytes_done += source.size
                    observe(result)
        return left

    def _known(
        self, page: Sequence[Source]
    ) -> tuple[dict[Path, VideoRecord], dict[int, list[VideoRecord]]]:
        """What the index has of some sources, and the videos that may be their twins, by size."""
        by_size: dict[int, list[VideoRecord]] = defaultdict(list)
        if self._force:
            return {}, by_size
        known = {
            path: record
            for path, record in self._store.at([source.path for source in page]).items()
            if path not in self._lost
        }
        new = {s.size for s in page if s.path not in known or not stamped(known[s.path], s)}
        for record in self._store.of_sizes(new) if new else ():
            if record.path not in self._lost:
                by_size[record.size].append(record)
        return known, by_size

    def _up_to_date(
        self,
        source: Source,
        record: VideoRecord | None,
        same_size: list[VideoRecord],
        result: Indexed,
    ) -> bool:
        """Whether the index has this video, or could be given it without decoding."""
        if record and stamped(record, source):
            if not record.reason:
                result.unchanged += 1
            elif not record.transient:
                result.known_failures += 1
            return not record.transient
        if not same_size:
            return False
        try:
            digest = content_digest(source)
        except OSError:
            return False  # decoding meets the same error and notes it
        if record and not record.reason and record.digest == digest:
            # Touched, not changed.
            self._store.touch(replace(record, mtime_ns=source.mtime_ns))
            result.unchanged += 1
            return True
        twins = [r for r in same_size if (r.kind, r.digest) == (source.kind, digest)]
        return bool(twins) and self._take_over(twins[0], source, same_size, result)

    def _take_over(
        self,
        twin: VideoRecord,
        source: Source,
        same_size: list[VideoRecord],
        result: Indexed,
    ) -> bool:
        """Give a video the windows of its twin; False if another process has taken them away."""
        copy = self._store.copy(twin, record_of(source, digest=twin.digest))
        if copy is None:
            return False
        same_size.append(copy)
        if is_on_disk(twin) or not self._shard.has(twin.path):
            result.copied += 1
        else:
            self._store.remove([twin])
            same_size.remove(twin)
            result.moved += 1
        return True


def stamped(record: VideoRecord, now: Source | VideoRecord) -> bool:
    """Whether a file has the size and time that a record knows of it."""
    return (record.size, record.mtime_ns) == (now.size, now.mtime_ns)


def is_on_disk(record: VideoRecord) -> bool:
    """Whether a video is still on disk, as far as one may look."""
    try:
        return bool(frame_files(record.path)) if record.kind == "frames" else record.path.exists()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # may not be looked at, which is not the same as gone
        return True
