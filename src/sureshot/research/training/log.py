"""The log of a run: one line of JSON for each step and each epoch."""

import json
from pathlib import Path
from typing import Any

from sureshot.files import write_text
from sureshot.formats import parse_json


class Log:
    """Appends entries to a file, each on disk as soon as it is written; a context manager.

    Args:
        path: file of the log.
        after: number of steps that are done; later entries, and what a killed run left of a line,
            are dropped. 0 starts the file anew.
    """

    def __init__(self, path: Path, after: int = 0) -> None:
        kept = [entry for entry in read(path) if entry["step"] <= after] if after else []
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "".join(map(_line, kept)))
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def write(self, **entry: Any) -> None:
        """Append an entry; it has the number of a ``step``."""
        self._file.write(_line(entry))

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()


def read(path: Path) -> list[dict[str, Any]]:
    """The entries of a log that are whole; none where there is no file."""
    entries: list[dict[str, Any]] = []
    if not path.exists():
        return entries
    for line in path.read_text("utf-8").splitlines():
        try:
            entries.append(parse_json(line))
        except ValueError:  # the last line of a killed run
            break
    return entries


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"
