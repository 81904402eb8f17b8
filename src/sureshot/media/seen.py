"""Files that were met, kept on disk where they are many, so that a million take no memory."""

import os
import sqlite3


class Seen:
    """A set of files and folders, by what they are, whatever their names."""

    def __init__(self) -> None:
        # Without a name it is a file that the system deletes, and in memory while it is small.
        self._files = sqlite3.connect("", isolation_level=None)
        self._files.execute("PRAGMA synchronous = OFF")
        self._files.execute("PRAGMA journal_mode = OFF")
        self._files.execute("BEGIN")  # else each file would be a transaction of its own
        self._files.execute("CREATE TABLE seen (file TEXT PRIMARY KEY) WITHOUT ROWID")

    def add(self, stat: os.stat_result) -> bool:
        """Note a file; whether it is met for the first time."""
        # As text: the numbers of some file systems take more than the 63 bits of a database.
        file = f"{stat.st_ino:x}/{stat.st_dev:x}"
        done = self._files.execute("INSERT OR IGNORE INTO seen VALUES (?)", (file,))
        return done.rowcount > 0

    def close(self) -> None:
        """Let go of them."""
        self._files.close()

    def __enter__(self) -> "Seen":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
