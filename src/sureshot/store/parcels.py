"""Videos on their way into an index: windows in files of their own, which one commit takes in.

Whoever encodes writes the files, on any machine that sees the index. They belong to no version of
the index yet, so nobody sees them. Whoever commits, takes in those of many videos at once.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from sureshot.store.catalogue import id_list
from sureshot.store.checks import sound_throughout, sum_of_checks
from sureshot.store.header import Header
from sureshot.store.rows import VideoRecord, renamed, video_rows
from sureshot.store.staging import put, stage
from sureshot.store.tables import Tables


@dataclass(frozen=True, slots=True)
class Parcel:
    """A video that only has to be committed.

    Attributes:
        record: the video, indexed or failed.
        files: descriptions of the files with its windows, as `sureshot.store.staging.stage` gives
            them; none of a failed video.
    """

    record: VideoRecord
    files: tuple[str, ...] = ()


def parcel_of(tables: Tables, record: VideoRecord, rows: pa.Table) -> Parcel:
    """The windows of a video in files on the disk.

    Args:
        tables: the index.
        record: the video, indexed, not failed.
        rows: its windows as rows of the table of windows, one at least.
    """
    known = replace(
        record,
        windows=len(rows),
        check_windows=sum_of_checks(rows),
        # Its row counts as written no earlier than its windows, whatever the clock says then.
        indexed_at=max(rows.column("written_at").to_pylist()),
    )
    return Parcel(known, tuple(stage(tables, "windows", rows)))


def parcel_of_copy(tables: Tables, old: VideoRecord, new: VideoRecord) -> Parcel | None:
    """A video with the windows of another that shares its content; None if these are not sound."""
    rows = tables.use("windows", lambda table: table.to_table(filter=f"video = '{old.id}'"))
    if len(rows) != old.windows or sum_of_checks(rows) != old.check_windows:
        return None
    if not sound_throughout(rows).all():
        return None
    return parcel_of(tables, replace(new, duration=old.duration, note=old.note), renamed(rows, new))


def deliver(tables: Tables, header: Header, parcels: Sequence[Parcel]) -> None:
    """Take videos in, in place of what was known of them. The caller has the turn.

    The windows of all come with one commit, which also takes older ones away, and are on the disk
    before the rows of the videos are written. Killed in between, the videos are encoded again.

    Args:
        tables: the index.
        header: what it says of itself.
        parcels: videos, each once; of none nothing is done.
    """
    whole = [parcel for parcel in parcels if parcel.files]
    failed = [parcel.record.id for parcel in parcels if not parcel.files]
    if whole:
        files = [file for parcel in whole for file in parcel.files]
        instead = _of([parcel.record.id for parcel in whole])
        put(tables, "windows", files, instead=instead)
        tables.sync()
    if parcels:
        tables.upsert("videos", video_rows([parcel.record for parcel in parcels], header))
    # Failed ones last: killed between the two, no row must claim windows that are gone.
    if failed and tables.use("windows", lambda table: table.count_rows(_of(failed))):
        tables.drop("windows", _of(failed))


def drop_videos(tables: Tables, known: Sequence[VideoRecord]) -> None:
    """Take videos and their windows out, but for what is written of them from now on."""
    ids = id_list([record.id for record in known])
    # Where writers cannot take turns, one may be at it; what it writes is to stay.
    until = max(time.time(), *(record.indexed_at for record in known))
    # The videos first: a window without its video is an orphan that `sweep` removes.
    tables.drop("videos", f"id IN ({ids}) AND indexed_at <= {until!r}")
    tables.drop("windows", f"video IN ({ids}) AND written_at <= {until!r}")


def _of(videos: Sequence[str]) -> str:
    """Condition on a window: it belongs to one of some videos, by either of what says so."""
    ids = id_list(videos)
    return f"(video IN ({ids}) OR left(key, {len(videos[0])}) IN ({ids}))"
