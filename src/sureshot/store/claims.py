"""Whether a search met all that the index claims, and nothing else.

A manifest that is gone, or changed where nothing has a checksum, leaves a table that opens without
a word and has other rows. So what the videos claim is held against what is stored, once a version.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sureshot.errors import StoreError
from sureshot.store.agreement import disagreeing, stored_by_video
from sureshot.store.checks import sound_videos
from sureshot.store.remote import is_remote
from sureshot.store.rows import VideoRecord, video_record
from sureshot.store.tables import NAMES, Tables, guard
from sureshot.store.turns import turn
from sureshot.store.vectors import MOST
from sureshot.text import counted, plain


class Claims:
    """Holds what an index claims against what it has, once for each version of its tables.

    Args:
        tables: the index.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._said: tuple[tuple[int, ...], list[str]] = (), []  # of these versions

    def trouble(self) -> list[str]:
        """Sentences on windows that are lost or nobody's; none where all is as claimed.

        Of more than `MOST` windows it is only seen how many there are.
        """
        try:
            with guard(self._tables.location, "read"):
                versions = tuple(self._tables.use(name, lambda t: t.version) for name in NAMES)
                if versions != self._said[0]:
                    self._said = versions, self._look()
        except StoreError as error:
            return [str(error)]  # a search does without the table of videos, but not in silence
        return self._said[1]

    def _look(self) -> list[str]:
        count = self._tables.use("windows", lambda table: int(table.count_rows()))
        if count > MOST and count == self._tables.use("videos", _claimed):
            return []
        if count <= MOST and not self._sentences():
            return []
        with turn(self._tables.location):  # else a video that is just being written would seem lost
            return self._sentences()

    def _sentences(self) -> list[str]:
        rows = self._tables.use("videos", lambda table: table.to_table())
        sound = sound_videos(rows)
        records = [video_record(row) for row in rows.filter(pa.array(sound)).to_pylist()]
        stored = stored_by_video(self._tables)
        strays = stored.keys() - {record.id for record in records if record.windows}
        said = on_lost(disagreeing(records, stored))
        if strays and sound.all() and not is_remote(self._tables.location):
            are = "is" if len(strays) == 1 else "are"
            said.append(
                f"Among what is searched {are} {counted(len(strays), 'video')} that the index does "
                f"not list, as a command that was ended leaves it. `sureshot index FOLDER` puts "
                f"that right."
            )
        return said


def on_lost(lost: Sequence[VideoRecord]) -> list[str]:
    """A sentence on videos whose windows are not those that the index claims.

    Args:
        lost: videos; of none nothing is said.
    """
    if not lost:
        return []
    have = "has" if len(lost) == 1 else "have"
    return [
        f"{counted(len(lost), 'video')} {have} lost windows, such as {plain(lost[0].path)}. "
        f"`sureshot index FOLDER` indexes them again."
    ]


def _claimed(table: Any) -> int:
    return int(pc.sum(table.to_table(columns=["windows"]).column("windows")).as_py() or 0)
