"""Which videos a search or a list is about: by folder, length and date."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from sureshot.errors import ArgumentError, QueryError, option
from sureshot.library.query_checks import parse_time
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord
from sureshot.store.vector_search import Selection, VideoSet, is_selected, said
from sureshot.text import counted, duration, plain

Sort: TypeAlias = Literal["best", "date"]


@dataclass(frozen=True, slots=True)
class VideoFilter:
    """What videos have to be like: all of it, bounds included, as `Searcher.search` takes it."""

    folder: str | Selection | None = None
    longer: float | str | None = None
    shorter: float | str | None = None
    since: date | str | None = None
    until: date | str | None = None

    def videos(self, store: Store) -> Selection | None:
        """The videos of an index that are so; None for all of them."""
        longer, shorter = _seconds(self.longer, "longer"), _seconds(self.shorter, "shorter")
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


def check_sort(sort: str) -> None:
    """Refuse an order that there is none of."""
    if sort not in ("best", "date"):
        raise ArgumentError(f"{option('sort')} is {plain(sort)!r}; give best or date.")


def _seconds(length: float | str | None, name: str) -> float | None:
    if isinstance(length, str):
        try:
            length = parse_time(length)
        except QueryError as error:
            raise ArgumentError(f"{option(name)}: {error}") from None
    if not (length is None or hasattr(length, "__float__")):
        raise ArgumentError(f"{option(name)} is {length!r}; give seconds.")
    if length is not None and not 0 <= length < math.inf:
        raise ArgumentError(f"{option(name)} is {length:g}; give seconds, 0 or more.")
    return length


def _day(day: date | str | None, name: str) -> date | None:
    if isinstance(day, datetime):
        return day.date()
    if day is None or isinstance(day, date):
        return day
    try:
        return date.fromisoformat(day)
    except (TypeError, ValueError):
        shown = plain(day) if isinstance(day, str) else day
        raise ArgumentError(
            f"{option(name)} is {shown!r}, which is no date; write it as 2024-05-31."
        ) from None
