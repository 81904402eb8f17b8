"""Which videos a search looks at, by where they lie, how long they are and how old."""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path

from sureshot.errors import QueryError
from sureshot.store.conditions import Among, Under
from sureshot.store.rows import VideoRecord
from sureshot.store.store import Store
from sureshot.text import duration, printable


@dataclass(frozen=True, slots=True)
class Choice:
    """What videos have to be like; all of it holds.

    Attributes:
        under: path at or below which they lie.
        shortest: seconds that they last at least.
        longest: seconds that they last at most.
        since: first day, in UTC, on which their files may have changed last.
        until: last such day.
    """

    under: Path | None = None
    shortest: float | None = None
    longest: float | None = None
    since: date | None = None
    until: date | None = None

    def videos(self, store: Store) -> Under | None:
        """The videos of an index that are so; None for all of them.

        Raises:
            QueryError: no video can be so.
            StoreError: the index cannot be read.
        """
        if (self.shortest or 0) > self._most:
            raise QueryError("The shortest length is above the longest; exchange them.")
        if self.since and self.until and self.since > self.until:
            raise QueryError("The first day is after the last one; exchange them.")
        if (self.shortest, self.longest, self.since, self.until) == (None,) * 4:
            return self.under
        ids = frozenset(record.id for record in store.videos() if self._fits(record))
        return Among(ids=ids, words=self._words())

    @property
    def _most(self) -> float:
        return math.inf if self.longest is None else self.longest

    def _fits(self, record: VideoRecord) -> bool:
        if self.under is not None and not record.path.is_relative_to(self.under):
            return False
        if not (self.shortest or 0) <= record.duration <= self._most:
            return False
        first = -math.inf if self.since is None else _second(self.since)
        after = math.inf if self.until is None else _second(self.until) + 86_400
        return first <= record.mtime_ns / 1e9 < after

    def _words(self) -> str:
        """What chosen videos have in common, to stand behind "nothing is indexed"."""
        parts = [] if self.under is None else [f"at or below {printable(self.under)}"]
        if self.shortest is not None:
            parts.append(f"that lasts {duration(self.shortest)} or longer")
        if self.longest is not None:
            parts.append(f"that lasts {duration(self.longest)} or less")
        if self.since is not None:
            parts.append(f"that changed on {self.since} or later")
        if self.until is not None:
            parts.append(f"that changed on {self.until} or before")
        return ", ".join(parts)


def _second(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()
