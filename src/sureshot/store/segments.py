"""The index of vectors: segments, each made from the vectors of some files of windows.

It holds five bits of each number of each vector (RaBitQ), 0.2 kB a window. A search compares those
of all windows: leaving partitions out, as such indexes usually do, loses up to half of the best
windows where the query is a sentence (benchmarks/candidates.py). Windows that no segment covers are
compared one by one.

A segment is made from its own files alone, so that new windows cost what they are and workers can
make theirs where the data is; each has its own partitions. As each costs a search some
milliseconds, a new one takes in those that are not much larger, and there are few.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sureshot.store.remote import is_remote
from sureshot.store.tables import Tables
from sureshot.store.written import check_written

SCANNED = 20_000  # windows that a search may compare one by one, which takes about 15 ms
PARTITIONS = 16
_LARGEST = 4_000_000  # windows of a segment that is left alone, as 1 GB has to be read for more
_GROWTH = 2  # a segment is made anew where others bring at least its size divided by this
_NAME = "vectors"
_COLUMN = "vector"


def add_segment(tables: Tables) -> bool:
    """Make a segment of windows that have none, if they are more than `SCANNED`.

    Killed midway, the index is as it was; what was written is removed with old versions.

    Returns:
        Whether it was done.

    Raises:
        OSError, ValueError, RuntimeError: it cannot be written, or another process was quicker.
    """
    chosen = tables.use("windows", _due)
    if not chosen:
        return False

    def act(table: Any) -> None:
        made = make_segment(table, chosen)
        if not is_remote(tables.location):
            folder = Path(tables.location) / "windows.lance" / "_indices" / str(made.uuid)
            check_written(folder.iterdir())
        table.commit_existing_index_segments(_NAME, _COLUMN, [made])

    tables.change("windows", act)
    return True


def make_segment(table: Any, fragments: Collection[int]) -> Any:
    """Write a segment of some files; it counts once ``commit_existing_index_segments`` has it.

    Args:
        table: the table of windows.
        fragments: numbers of its fragments, those of whole segments where they are in one.
    """
    return table.create_index_uncommitted(
        _COLUMN,
        "IVF_RQ",
        name=_NAME,
        metric="dot",
        num_partitions=PARTITIONS,
        fragment_ids=sorted(fragments),
        replace=True,  # of the segments of these fragments, not of others
    )


def segments(table: Any) -> list[frozenset[int]]:
    """Fragments of each segment there is."""
    found = [index for index in table.describe_indices() if index.name == _NAME]
    return [frozenset(part.fragment_ids) for index in found for part in index.segments]


def _due(table: Any) -> frozenset[int]:
    """Fragments of the segment that is to be made; none where there is none to make."""
    rows = {f.fragment_id: f.physical_rows - f.num_deletions for f in table.get_fragments()}
    there = [frozenset(part & rows.keys()) for part in segments(table)]
    return due(rows, there)


def due(rows: dict[int, int], there: Sequence[frozenset[int]]) -> frozenset[int]:
    """Which fragments a new segment is made of.

    Args:
        rows: number of windows of each fragment.
        there: fragments of each segment.
    """
    chosen = frozenset(rows).difference(*there)
    count = sum(rows[number] for number in chosen)
    if count <= SCANNED:
        return frozenset()
    for part in sorted(there, key=lambda part: sum(rows[number] for number in part)):
        size = sum(rows[number] for number in part)
        if size > min(_GROWTH * count, _LARGEST):
            break
        chosen, count = chosen | part, count + size
    return chosen
