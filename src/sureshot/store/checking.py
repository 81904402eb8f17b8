"""All of an index verified: every row against its checksum, both tables, what lies beside them."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sureshot.errors import StoreError
from sureshot.places import locate
from sureshot.store.agreement import disagreeing, owners, stored_by_video, window_batches
from sureshot.store.checks import sound_throughout, sound_videos
from sureshot.store.header import CHECKED, Header
from sureshot.store.removal import leftovers
from sureshot.store.rows import VideoRecord, video_record
from sureshot.store.tables import NAMES, Tables, guard
from sureshot.store.turns import turn
from sureshot.store.upkeep import in_flight
from sureshot.text import counted, plain

_NAMED = 5  # videos that a sentence names
AGAIN = "`sureshot index FOLDER` encodes them again."
FORCED = "`sureshot index --force PATH` encodes them again."
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with an index.

    Attributes:
        what: what it is, in a sentence.
        mend: what to do about it, in a sentence.
    """

    what: str
    mend: str


def find_faults(location: str, told: Told = lambda done, all_: None) -> list[Fault]:
    """Everything that is wrong with an index that can be opened.

    All rows are read: about 10 kB a window.

    Args:
        location: place of the index.
        told: called with the windows read so far and all windows.

    Raises:
        StoreError: it cannot be read.
    """
    tables = Tables(locate(location))
    header = tables.header()
    with guard(tables.location, "read"), turn(tables.location):
        # Together, else a video that is just being written would seem lost.
        rows = tables.use("videos", lambda table: table.to_table())
        stored = stored_by_video(tables)
    sound = sound_videos(rows)
    records = [video_record(row) for row in rows.filter(pa.array(sound)).to_pylist()]
    found = [
        *_of_format(header),
        *_of_tables(tables),
        *_of_rows(int((~sound).sum())),
        *_of_lost(disagreeing(records, stored)),
    ]
    with guard(tables.location, "read"):
        found += _of_windows(tables, records, told)
        found += _of_search(tables, header)
    known = {record.id for record in records if record.windows}
    since = time.time() - in_flight(tables.location)
    found += _of_orphans(
        [i for i, there in stored.items() if i not in known and there.newest < since]
    )
    return found + _of_leftovers(tables.location)


def _of_format(header: Header) -> list[Fault]:
    if header.schema >= CHECKED:
        return []
    return [
        Fault(
            what=f"The index is of format {header.schema}, which has no checksums.",
            mend="`sureshot index FOLDER` adds them.",
        )
    ]


def _of_tables(tables: Tables) -> list[Fault]:
    """Versions that cannot be opened, or lack files."""
    found = []
    for sentence in tables.trouble():
        what, _, mend = sentence.rpartition(". ")
        found.append(Fault(what=f"{what}.", mend=mend))
    if found:
        return found
    return [
        Fault(
            what=f"The version before the newest of the table of {name} is damaged, which only "
            f"matters if the newest is damaged too.",
            mend="The next change of the index makes a new one.",
        )
        for name in NAMES
        if not tables.before_is_whole(name)
    ]


def _of_rows(damaged: int) -> list[Fault]:
    if not damaged:
        return []
    what = f"The table of videos has {counted(damaged, 'damaged row')}."
    return [Fault(what=what, mend="`sureshot index FOLDER` makes them anew.")]


def _of_lost(lost: list[VideoRecord]) -> list[Fault]:
    if not lost:
        return []
    names = _listed(plain(record.path) for record in lost)
    what = f"Other windows are stored than the index claims, or none, of {names}."
    return [Fault(what=what, mend=AGAIN)]


def _of_windows(tables: Tables, records: Collection[VideoRecord], told: Told) -> list[Fault]:
    """Windows that are not what was written, by what searches read and by what they do not."""
    paths = {record.id: plain(record.path) for record in records}
    names: set[str] = set()
    count = tables.use("windows", lambda table: int(table.count_rows()))
    done = damaged = 0
    told(0, count)
    columns = tables.use("windows", lambda table: list(table.schema.names))
    for rows in window_batches(tables, columns):
        sound = sound_throughout(rows)
        damaged += int((~sound).sum())
        ids = owners(rows.filter(pa.array(~sound)))
        names |= {paths[i] for i in ids if i in paths}
        done += len(rows)
        told(done, max(count, done))
    if not damaged:
        return []
    of = f" of {_listed(names)}" if names else ""
    are = "is" if damaged == 1 else "are"
    what = f"{counted(damaged, 'window')}{of} {are} not what was written."
    return [Fault(what=what, mend=FORCED)]


def _of_search(tables: Tables, header: Header) -> list[Fault]:
    """Whether a search runs through, with the index of vectors where there is one."""
    near = {"column": "vector", "q": np.ones(header.width, np.float16), "k": 1, "metric": "dot"}

    def act(table: Any) -> None:
        table.to_table(columns=["key", "_distance"], nearest=near)

    try:
        with guard(tables.location, "search"):
            tables.use("windows", act)
    except StoreError as error:
        return [Fault(what=str(error), mend="`sureshot reset`, then index again.")]
    return []


def _of_orphans(orphans: list[str]) -> list[Fault]:
    if not orphans:
        return []
    what = f"Windows of {counted(len(orphans), 'video')} belong to no indexed video."
    return [Fault(what=what, mend="`sureshot index FOLDER` removes them once all else is sound.")]


def _of_leftovers(location: str) -> list[Fault]:
    found = leftovers(location)
    if not found:
        return []
    names = _listed(path.name for path in found)
    what = f"An ended process has left {names}."
    return [Fault(what=what, mend="`sureshot index FOLDER` removes them.")]


def _listed(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return f"{', '.join(every[:_NAMED])}{more}"
