"""The videos of an index: those that fit by folder, length and date, and a list of them."""

import base64
import csv
import io
import math
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sureshot.errors import ArgumentError, QueryError, option
from sureshot.library.query_checks import seconds
from sureshot.library.results import JSON_SCHEMA, looked_for
from sureshot.paths import IndexPlace, index_place
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord, from_text, to_text
from sureshot.store.vector_search import Folders, Selection, VideoSet, is_selected, said
from sureshot.text import counted, duration, plain, printable

Sort: TypeAlias = Literal["best", "date"]
_SHOWN = 10  # videos of a page in its `repr`
_COLUMNS = (
    *("path", "id", "seconds", "windows", "date", "date_from", "modified", "missing", "away"),
    *("reason", "note"),
)


@dataclass(frozen=True, slots=True)
class VideoFilter:
    """What videos have to be like: all of it, bounds included, as `Searcher.search` takes it."""

    folder: Folders | VideoSet | None = None
    longer: float | str | None = None
    shorter: float | str | None = None
    since: date | str | None = None
    until: date | str | None = None

    def videos(self, store: Store) -> Selection | None:
        """The videos of an index that are so; None for all of them."""
        longer, shorter = seconds(self.longer, "longer"), seconds(self.shorter, "shorter")
        since, until = _day(self.since, "since"), _day(self.until, "until")
        if longer is not None and shorter is not None and longer > shorter:
            raise ArgumentError(
                f"No video can be so long for {option('longer')} and so short for "
                f"{option('shorter')}; exchange them."
            )
        if since is not None and until is not None and since > until:
            raise ArgumentError(
                f"The day of {option('since')} is after that of {option('until')}; exchange them."
            )
        chosen = self.folder
        place = chosen if chosen is None or isinstance(chosen, VideoSet) else store.select(chosen)
        parts = [
            *([] if longer is None else [f"that lasts {duration(longer)} or longer"]),
            *([] if shorter is None else [f"that lasts {duration(shorter)} or less"]),
        ]
        if since and until:
            parts.append(f"dated {since}" if since == until else f"dated from {since} to {until}")
        elif since or until:
            parts.append(f"dated {since} or later" if since else f"dated {until} or before")
        if not parts:
            return place
        if place is not None:
            parts.insert(0, said(place))
        least, most = longer or 0, math.inf if shorter is None else shorter
        limited = longer is not None or shorter is not None  # the length of a failed one is unknown
        dated = since is not None or until is not None
        first, last = since or date.min, until or date.max
        ids = frozenset(
            record.id
            for record in store.videos()
            if is_selected(record, place)
            and least <= round(record.duration, 3) <= most
            and not (record.reason and limited)
            and not (dated and not first <= (record.date.day or date.min) <= last)
        )
        note = place.note if isinstance(place, VideoSet) else ""
        return VideoSet(ids=ids, words=", ".join(parts), note=note)


def newest_first(record: VideoRecord) -> tuple[float, Path]:
    """Key that sorts videos by their date, the last one first."""
    time = record.date.time
    return -record.mtime_ns / 1e9 if time is None else -time.timestamp(), record.path


def by_date(sources: Sequence[str]) -> str:
    """What to know of hits that are sorted by their dates, which come from these sources."""
    said = "Newest first; number 1 is the best match."
    if count := sources.count("file"):
        said += f" The date of {counted(count, 'hit')} is that of the file's last change."
    return said


def check_sort(sort: str, other: str = "best") -> None:
    """Refuse an order that is neither by date nor the other one."""
    if sort not in (other, "date"):
        raise ArgumentError(f"{option('sort')} is {plain(sort)!r}; give {other} or date.")


def _day(day: date | str | None, name: str) -> date | None:
    """A day; of a year or month in text the first one, or for ``until`` the last."""
    if isinstance(day, datetime):
        return day.date()
    if day is None or isinstance(day, date):
        return day
    try:
        first = date.fromisoformat(day + {4: "-01-01", 7: "-01"}.get(len(day), ""))
        if name == "since" or len(day) > 7:
            return first
        month = first.month if "-" in day else 12
        return date(first.year, month, monthrange(first.year, month)[1])
    except (TypeError, ValueError):
        shown = plain(day) if isinstance(day, str) else day
        wrong = f"{option(name)} is {shown!r}, which is no date"
        raise ArgumentError(f"{wrong}; write it as 2024-05-31, 2024-05 or 2024.") from None


@dataclass(frozen=True, slots=True, repr=False)
class VideoPage:
    """Some videos of an index, failed ones among them: a sequence of what is known of each.

    Attributes:
        videos: in the order of their paths, if no other was asked for.
        total: videos that can be found, as `status` counts them, on all pages.
        failed: files that could not be indexed, on all pages.
        seconds: length of those that can be found.
        after: where the next page begins; None on the last one.
        note: what to know of the choice: that nothing is there, or whose folders these are.
    """

    videos: tuple[VideoRecord, ...]
    total: int
    failed: int
    seconds: float
    after: str | None = None
    note: str = ""

    def __iter__(self) -> Iterator[VideoRecord]:
        return iter(self.videos)

    def __len__(self) -> int:
        return len(self.videos)

    def __getitem__(self, index: int) -> VideoRecord:
        return self.videos[index]

    def __repr__(self) -> str:
        failed = f"; {self.failed} could not be indexed" if self.failed else ""
        shown = [
            f"  {duration(one.duration):>8}  {one.date.text[:10]:10}  {plain(one.path)}"
            for one in self.videos[:_SHOWN]
        ]
        shown += [f"  … and {more} more"] if (more := len(self) - len(shown)) else []
        note = [f"note: {self.note}"] if self.note else []
        return "\n".join([self.text + failed, *note, *shown])

    @property
    def text(self) -> str:
        """Their number and length in words."""
        return f"{counted(self.total, 'video')}, {duration(self.seconds)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/api.md describes them."""
        return {
            "schema": JSON_SCHEMA,
            "total": self.total,
            "failed": self.failed,
            "text": self.text,
            "videos": [video_values(record) for record in self.videos],
        }

    def to_csv(self) -> str:
        """A table with a header, a line per video, and the columns of ``videos`` of `to_dict`."""
        rows = [video_values(record) for record in self.videos]
        lines = io.StringIO()
        table = csv.DictWriter(lines, _COLUMNS, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows({name: plain(str(row[name])) for name in _COLUMNS} for row in rows)
        return lines.getvalue()


def videos(
    db: IndexPlace = None,
    *,
    folder: Folders | VideoSet | None = None,
    longer: float | str | None = None,
    shorter: float | str | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    sort: str = "path",
    limit: int | None = None,
    after: str | None = None,
    failed: bool = True,
) -> VideoPage:
    """All videos of an index, or those that fit, failed ones among them.

    Args:
        db: place of the index, or an open one; None is the default index of this user.
        sort: by ``path``, or by ``date``, the newest first.
        limit: videos of a page, at least 1; None gives all of them.
        after: ``after`` of the page before; None begins with the first video. Videos that came or
            went in between shift no page.
        failed: whether those that could not be indexed are listed too; they are counted anyway.

    The others are those of `Searcher.search`. Failed videos have no length that could fit.
    """
    check_sort(sort, "path")
    if limit is not None and not (hasattr(limit, "__index__") and limit >= 1):
        raise ArgumentError(f"limit is {limit!r}; give a whole number, 1 or more.")
    store = db if isinstance(db, Store) else Store.open(index_place(db))
    wanted = VideoFilter(
        folder=folder, longer=longer, shorter=shorter, since=since, until=until
    ).videos(store)
    key = newest_first if sort == "date" else lambda record: (0.0, record.path)
    records = [one for one in store.videos() if is_selected(one, wanted)]
    good, bad = split_failed(records)
    shown = records if failed else good
    ordered = shown if sort == "path" else sorted(shown, key=key)
    last = None if after is None else _place(after)
    left = ordered if last is None else [one for one in ordered if key(one) > last]
    page = left[:limit]
    nothing = "" if wanted is None or page else f"Nothing is indexed {said(wanted)}."
    return VideoPage(
        tuple(page),
        total=len(good),
        failed=len(bad),
        seconds=sum((record.duration for record in good), 0.0),
        after=_mark(key(page[-1])) if len(left) > len(page) else None,
        note=nothing or (wanted.note if isinstance(wanted, VideoSet) else ""),
    )


def video_values(record: VideoRecord) -> dict[str, Any]:
    """What an index knows of one video, as plain values for JSON."""
    return {
        "id": record.id,
        "path": printable(record.path),
        **looked_for(record.path),
        "seconds": round(record.duration, 3),
        "text": duration(record.duration),
        "windows": record.windows,
        "date": record.date.text,
        "date_from": record.date.source,
        "modified": _date(record.mtime_ns),
        "reason": printable(record.reason),
        "note": printable(record.note),
    }


def split_failed(records: Iterable[VideoRecord]) -> tuple[list[VideoRecord], list[VideoRecord]]:
    """Videos that can be found, which are those that count, and those that failed."""
    good: list[VideoRecord] = []
    failed: list[VideoRecord] = []
    for record in records:
        (failed if record.reason else good).append(record)
    return good, failed


def _mark(place: tuple[float, Path]) -> str:
    text = f"{place[0]!r} {to_text(place[1])}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place(mark: str) -> tuple[float, Path]:
    """What a mark stands for; its path is compared with others and never looked at."""
    try:
        padded = mark.encode("ascii") + b"=" * (-len(mark) % 4)
        time, path = base64.b64decode(padded, b"-_", validate=True).decode().split(" ", 1)
        return float(time), from_text(path)
    except ValueError:
        raise QueryError("The cursor is from no page; leave it out to start again.") from None


def _date(mtime_ns: int) -> str:
    """Date and time of a file in UTC; empty where they are beyond what calendars have."""
    try:
        return datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
