"""Whether the vectors that searches compare are those that were written.

Lance compares vectors without our reading them, so a changed one would move a window up or down
without a word. They are read once for each file and process, where they are few enough for that.
"""

from typing import Any

import pyarrow as pa

from sureshot.store.checks import sound_vectors

MOST = 20_000  # windows; 10 MB of the bundled model's vectors, read and checked in 60 ms


class VectorCheck:
    """Checks the vectors of a table of windows, those of each file once."""

    def __init__(self) -> None:
        self._sound: set[str] = set()  # files

    def damaged(self, table: Any) -> pa.Table:
        """Keys and paths of the windows of a version whose vectors are not what was written.

        None where there are more windows than `MOST`, or in a format without checksums.
        """
        fresh = {}
        if "check_vector" in table.schema.names and table.count_rows() <= MOST:
            for fragment in table.get_fragments():
                files = "+".join(part.path for part in fragment.data_files())
                if files not in self._sound:
                    fresh[files] = fragment
        columns = ["key", "path", "vector", "check_vector"]
        if not fresh:
            return pa.table({"key": pa.array([], pa.string()), "path": pa.array([], pa.string())})
        rows = table.scanner(columns=columns, fragments=list(fresh.values())).to_table()
        sound = sound_vectors(rows)
        if sound.all():
            self._sound |= set(fresh)
        return rows.filter(pa.array(~sound)).select(["key", "path"])
