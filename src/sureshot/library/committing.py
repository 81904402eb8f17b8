"""Videos of an indexing run taken into the index, and the run's progress told."""

import math
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from sureshot.library.indexed import Indexed
from sureshot.library.planning import stamped
from sureshot.media.discover import Source
from sureshot.store.parcels import Parcel
from sureshot.store.rows import VideoRecord
from sureshot.store.store import Store

_EVERY = 1.0  # seconds: a commit waits for the disk, as long as a short clip takes to encode


class Committing:
    """Commits what is packed, at most once a second, and keeps the result of the run.

    Args:
        store: the index.
        result: what the run has done, kept up to date here.
        lost: paths of videos whose windows were not there as they were written.
        observe: called with the result after every step.
        began: when the run began, by `time.monotonic`.

    Attributes:
        mended: how many of the lost videos are there again.
    """

    def __init__(
        self,
        store: Store,
        result: Indexed,
        lost: Collection[Path],
        observe: Callable[[Indexed], None],
        began: float,
    ) -> None:
        self.mended = 0
        self._store, self._result, self._lost, self._observe = store, result, lost, observe
        self._begun: dict[Path, tuple[int, float]] = {}  # bytes and seconds done of a video
        self._waiting: list[Parcel] = []
        self._began = began
        self._last = -math.inf  # commit, so that the first video can be found at once

    def advance(self, source: Source, share: float, seconds: float) -> None:
        """Note how far a video is, as `sureshot.library.encode.encode_videos` tells it."""
        size, until = self._begun.get(source.path, (0, 0.0))
        self._begun[source.path] = max(size, int(share * source.size)), max(until, seconds)
        self._commit(_EVERY)  # what is done must not wait for the end of a long film
        self.tell()

    def take(self, parcels: Sequence[Parcel]) -> None:
        """Commit videos, now or with those that come within a second."""
        self._waiting += parcels
        self._commit(_EVERY)
        self.tell()

    def finish(self) -> None:
        """Commit all that waits."""
        if self._waiting:
            self._commit(0.0)
            self.tell()

    def tell(self) -> None:
        """Tell of the result so far."""
        self._result.bytes_begun = sum(size for size, _ in self._begun.values())
        self._result.seconds_begun = sum(seconds for _, seconds in self._begun.values())
        self._result.elapsed = time.monotonic() - self._began
        self._observe(self._result)

    def _commit(self, pause: float) -> None:
        if not self._waiting or time.monotonic() - self._last < pause:
            return
        parcels, self._waiting = self._waiting, []
        _settle(self._store, parcels, self._result)
        for record in (parcel.record for parcel in parcels):
            self.mended += record.path in self._lost and not record.reason
            self._begun.pop(record.path, None)
        self._last = time.monotonic()


def _settle(store: Store, parcels: Sequence[Parcel], result: Indexed) -> None:
    """Commit videos and note what became of them."""
    told = [parcel for parcel in parcels if not _still_holds(store, parcel.record)]
    try:
        store.commit(told)
    except KeyboardInterrupt:
        # They may be committed or not. Once more, so that the result of the run is true.
        store.commit(told)
        _note(result, parcels)
        raise
    _note(result, parcels)


def _still_holds(store: Store, now: VideoRecord) -> bool:
    """Whether a video was indexed again by force and is out of reach just now."""
    old = store.at([now.path]).get(now.path) if now.reason and now.transient else None
    return old is not None and not old.reason and stamped(old, now)


def _note(result: Indexed, parcels: Sequence[Parcel]) -> None:
    for record in (parcel.record for parcel in parcels):
        result.current = record.path
        result.bytes_done += record.size
        if record.reason:
            result.failed.append((record.path, record.reason))
            continue
        result.indexed += 1
        result.windows += record.windows
        result.seconds += record.duration
        if record.note:
            result.notes.append((record.path, record.note))
