"""An index of an older format brought to one that can be written to, in place."""

import json
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa

from sureshot.settings import to_values
from sureshot.store.agreement import StoredOf, stored_by_video
from sureshot.store.checks import WINDOW_CHECKS, checked_videos, checked_windows
from sureshot.store.header import CHECKED, KEY, Header
from sureshot.store.tables import Name, Tables
from sureshot.store.written import check_rows

_ROWS_AT_ONCE = 256
_UNREAD = ("patches", "backbone")  # nine tenths of their bytes


def upgrade(tables: Tables, header: Header) -> list[str]:
    """Give every row its checksums, drop what none reads, then say so in the header.

    Killed midway, the index is one of its old format still, and the next call goes on.

    Returns:
        A sentence for people; none where the format is not an older one.

    Raises:
        OSError: it cannot be written, as on a full disk. The index stays as it was.
    """
    if header.schema >= CHECKED:
        return []
    _add(tables, "windows", WINDOW_CHECKS, checked_windows)
    tables.change("windows", _drop_unread)
    stored = stored_by_video(tables)

    def checked(rows: pa.Table) -> pa.Table:
        return checked_videos(_with_sums(rows, stored))

    _add(tables, "videos", ("check_windows", "check"), checked)
    tables.sync()
    values = {KEY.decode(): json.dumps(to_values(header) | {"schema": CHECKED})}
    tables.change("windows", lambda table: table.update_schema_metadata(values))
    tables.sync()
    return ["This index was of an older format; its rows have checksums from now on."]


def _add(
    tables: Tables, name: Name, columns: tuple[str, ...], checked: Callable[[pa.Table], pa.Table]
) -> None:
    """Add columns to a table that another table of the same rows has."""

    def act(table: Any) -> None:
        if set(columns) <= set(table.schema.names):
            return
        empty = checked(table.schema.empty_table())
        schema = pa.schema([empty.schema.field(column) for column in columns])

        @lance.batch_udf(output_schema=schema)  # type: ignore[untyped-decorator]
        def values(batch: pa.RecordBatch) -> pa.RecordBatch:
            rows = checked(pa.Table.from_batches([batch])).select(list(columns))
            return rows.cast(schema).combine_chunks().to_batches()[0]

        parts = table.get_fragments()
        before = [file.path for part in parts for file in part.data_files()]
        made = [part.merge_columns(values, batch_size=_ROWS_AT_ONCE) for part in parts]
        # A table without files has no fragment that could tell its new schema.
        if not made:
            table.add_columns(list(schema))
            return
        fragments = [fragment for fragment, _ in made]
        check_rows(tables.location, name, fragments, before)
        merge = lance.LanceOperation.Merge(fragments, made[0][1])
        lance.LanceDataset.commit(table, merge, read_version=table.version)

    tables.change(name, act)


def _drop_unread(table: Any) -> None:
    """Take out what formats 1 and 2 kept and no search reads; compaction gives its bytes back."""
    there = [name for name in _UNREAD if name in table.schema.names]
    if there:
        table.drop_columns(there)


def _with_sums(rows: pa.Table, stored: dict[str, StoredOf]) -> pa.Table:
    sums = [stored[i].check if i in stored else 0 for i in rows.column("id").to_pylist()]
    return rows.append_column("check_windows", pa.array(sums, pa.int64()))
