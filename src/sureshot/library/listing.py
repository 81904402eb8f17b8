"""The videos of an index, one page of them after another."""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sureshot.errors import QueryError
from sureshot.library.answer import JSON_SCHEMA
from sureshot.media.discover import is_gone
from sureshot.store.rows import VideoRecord, from_text, to_text
from sureshot.store.store import Store
from sureshot.text import counted, duration, printable


@dataclass(frozen=True, slots=True)
class VideoPage:
    """Some videos of an index.

    Attributes:
        videos: the videos, failed ones among them.
        total: videos that there are on all pages.
        seconds: length of all of these.
        after: where the next page begins; None on the last one.
    """

    videos: tuple[VideoRecord, ...]
    total: int
    seconds: float
    after: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/api.md describes them."""
        return {
            "schema": JSON_SCHEMA,
            "total": self.total,
            "said": f"{counted(self.total, 'video')}, {duration(self.seconds)}",
            "videos": [video_values(record) for record in self.videos],
            "next": self.after,
        }


def video_values(record: VideoRecord) -> dict[str, Any]:
    """What an index knows of one video, as plain values for JSON."""
    return {
        "id": record.id,
        "path": printable(record.path),
        "missing": is_gone(record.path),
        "seconds": round(record.duration, 3),
        "said": duration(record.duration),
        "windows": record.windows,
        "modified": _date(record.mtime_ns),
        "reason": printable(record.reason),
        "note": printable(record.note),
    }


def list_videos(
    store: Store,
    *,
    limit: int,
    after: str | None = None,
    under: Path | None = None,
    newest: bool = False,
) -> VideoPage:
    """A page of the videos of an index, in the order of their paths.

    Args:
        store: the index.
        limit: videos of a page, at least 1.
        after: what the page before gave as its ``after``; None begins with the first video. Videos
            that came or went in between shift no page.
        under: only videos at or below this path.
        newest: only those that can be found, the last changed first; there is one page of them.

    Raises:
        QueryError: ``after`` is from no page.
        StoreError: the index cannot be read.
    """
    last = None if after is None else _place(after)
    records = [r for r in store.videos() if under is None or r.path.is_relative_to(under)]
    left = [r for r in records if last is None or r.path > last]
    if newest:
        left = sorted((r for r in left if r.windows), key=lambda r: (-r.mtime_ns, r.path))
    page = left[:limit]
    more = _mark(page[-1].path) if len(left) > limit and not newest else None
    seconds = sum((record.duration for record in records), 0.0)
    return VideoPage(videos=tuple(page), total=len(records), seconds=seconds, after=more)


def _mark(path: Path) -> str:
    return base64.urlsafe_b64encode(to_text(path).encode()).decode().rstrip("=")


def _place(mark: str) -> Path:
    """The path that a mark stands for; it is compared with others and never looked at."""
    try:
        padded = mark.encode("ascii") + b"=" * (-len(mark) % 4)
        return from_text(base64.b64decode(padded, b"-_", validate=True).decode())
    except (ValueError, binascii.Error):
        raise QueryError("The cursor is from no page; leave it out to begin anew.") from None


def _date(mtime_ns: int) -> str:
    """Date and time of a file in UTC; empty where they are beyond what calendars have."""
    try:
        return datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
