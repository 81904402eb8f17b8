"""Rows in files that no version of a table names yet, and the commit that takes them in.

Files are written by any machine that sees the index, and committed by one.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from sureshot.errors import StoreError
from sureshot.store.durable import sync_paths
from sureshot.store.remote import is_remote
from sureshot.store.tables import CONFLICTS, Name, Tables, is_there
from sureshot.store.versions import numbers
from sureshot.store.written import check_rows
from sureshot.text import counted

_KEPT = 2  # versions whose files are needed


def stage(tables: Tables, name: Name, rows: pa.Table) -> list[str]:
    """Write rows into files on the disk; descriptions of the files, as `put` takes them."""
    data = _data(tables, name)

    def act(table: Any) -> list[str]:
        made = write_fragments(rows, table, mode="append")
        check_rows(tables.location, name, made)
        return [json.dumps(fragment.to_json()) for fragment in made]

    staged = tables.use(name, act)
    if data is not None:
        sync_paths([*(data / path for path in _paths(staged)), data])
    return staged


def put(tables: Tables, name: Name, staged: Sequence[str], *, instead: str) -> None:
    """Take staged rows in, and those out that meet an SQL condition, in one commit.

    Raises:
        StoreError: a file with staged rows is not there.
    """
    data = _data(tables, name)
    gone = [path for path in _paths(staged) if data is not None and not is_there(data / path)]
    if gone:
        are = "is" if len(gone) == 1 else "are"
        raise StoreError(
            f"{counted(len(gone), 'file')} with encoded windows {are} not at {data}, such as "
            f"{gone[0]}. The index must lie where all machines that write to it see one folder."
        )
    new = [lance.FragmentMetadata.from_json(one) for one in staged]

    def act(table: Any) -> None:
        operation = _replacing(table, new, instead)
        lance.LanceDataset.commit(table, operation, read_version=table.version)

    for left in reversed(range(CONFLICTS)):
        try:
            return tables.change(name, act)
        except CommitConflictError:
            if not left:
                raise
    return None


def unnamed(tables: Tables, name: Name) -> int:
    """How many files of rows lie in a local table that its last versions do not name."""
    data = _data(tables, name)
    if data is None or not data.is_dir():
        return 0
    named = set()
    for number in numbers(data.parent)[:_KEPT]:
        table = lance.dataset(str(data.parent), version=number)
        named |= {file.path for part in table.get_fragments() for file in part.data_files()}
    return len({entry.name for entry in os.scandir(data)} - named)


def _replacing(table: Any, new: list[Any], instead: str) -> Any:
    """The operation that adds files of rows and takes out rows that meet a condition."""
    old = table.scanner(columns=[], filter=instead, with_row_address=True).to_table()
    touched = sorted({address >> 32 for address in old.column("_rowaddr").to_pylist()})
    if not touched:
        return lance.LanceOperation.Append(new)
    less = {number: table.get_fragment(number).delete(instead) for number in touched}
    return lance.LanceOperation.Update(
        removed_fragment_ids=[number for number, fragment in less.items() if fragment is None],
        updated_fragments=[fragment for fragment in less.values() if fragment is not None],
        new_fragments=new,
    )


def _data(tables: Tables, name: Name) -> Path | None:
    """Folder of the files of rows of a local table."""
    return None if is_remote(tables.location) else Path(tables.location) / f"{name}.lance" / "data"


def _paths(staged: Sequence[str]) -> list[str]:
    """Names of the files of staged rows."""
    return [file["path"] for one in staged for file in json.loads(one)["files"]]
