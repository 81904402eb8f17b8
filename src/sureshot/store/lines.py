"""The table of lines: what is said and written in videos, with times, and its search.

A row is one line with its sentence vector. Another kind of row, without text, says what of one
source of a video was read and what that gave, so that lines and the note that they are there come
and go in one commit. Lance's own inverted index finds words: of a million lines it takes 29 bytes
each and 10 ms, where FTS5 of SQLite takes 48 bytes, and 4 s for a sentence with common words.
"""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float
from lance.fragment import write_fragments
from lance.query import MatchQuery, PhraseQuery

from sureshot.media.lines import Line
from sureshot.store.integrity import id_list, sound_by_video
from sureshot.store.locks import write_lock
from sureshot.store.rows import (
    LINE_WIDTH,
    Header,
    VideoRecord,
    from_text,
    line_schema,
    sound,
    sum_of_checks,
    texts_of,
    to_text,
    with_checksums,
)
from sureshot.store.tables import Tables, as_store_error, check_rows
from sureshot.store.vector_search import PARTITIONS, SelectedRows, Selection, add_segment, path_is
from sureshot.store.writing import replace_rows
from sureshot.text import counted, plain

_NAME = "words"
_WORDS: dict[str, Any] = {
    "base_tokenizer": "icu",  # which parts Chinese and Thai, too
    "stem": True,
    "remove_stop_words": False,
    "ascii_folding": True,
    "with_position": True,  # 7 bytes per line, for phrases
}
_LATEST = 4096  # lines outside of the inverted index, which a search reads one by one
_READ = 20_000  # lines of which all words are looked at, 0.2 s
_LETTERS = r"[^\W\d_]+"
_SLIPS = 2  # letters by which words are alike
_ALIKE = 200  # lines with such words that are looked at
_AT_ONCE = 500  # videos named in a condition
_ROWS = 8192  # read at once where every line is checked
_CHECKED = 100_000  # lines that are read and checked by every `sureshot index`, 90 MB
_NOTHING = {"check_count": 0, "check_sum": 0}
_OF_LANCE = ("_score", "_distance", "_rowid")


@dataclass(frozen=True, slots=True)
class WordsRead:
    """What one source of a video gave, perhaps nothing."""

    video: VideoRecord
    source: str
    stamp: str  # of what was read, by which a change is seen
    lines: Sequence[Line]
    vectors: Float[np.ndarray, "lines 384"]  # of the sentences, of unit length


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line that may be meant."""

    path: Path
    line: Line
    similarity: float  # of its sentence vector with that of the query, in [-1, 1]
    key: str = ""  # of its row


class Lines:
    """The lines of an index. Without the table there are none, and nothing is opened or loaded."""

    def __init__(self, tables: Tables, header: Header) -> None:
        self._tables = tables
        self._header = header
        self._counted: tuple[int, int] = -1, 0  # of a version
        self._selected = SelectedRows()
        self._damaged: set[str] = set()  # paths

    def count(self, selection: Selection | None = None) -> int:
        """Number of lines of all videos, or of those selected."""
        if not self._tables.has_lines():
            return 0

        def act(table: Any) -> int:
            if selection is not None or table.version != self._counted[0]:
                found = self._selected.count(table, selection, "text IS NOT NULL")
                if selection is not None:
                    return found
                self._counted = table.version, found
            return self._counted[1]

        return self._tables.read("lines", act)

    def of(self, path: Path) -> list[Line]:
        """The lines of a video in the order of time."""
        return [one.line for one in self._found(filter=f"text IS NOT NULL AND {path_is(path)}")]

    def search(
        self,
        text: str,
        vector: Float[np.ndarray, " 384"],
        count: int,
        selection: Selection | None = None,
    ) -> list[FoundLine]:
        """The lines nearest to a sentence, so many by their words and by what they say, each once.

        Damaged ones are left out, see `trouble`.
        """
        near = {"column": "vector", "metric": "dot", "nprobes": PARTITIONS, "k": count}
        near |= {"q": vector.astype(np.float16), "use_index": "lines" not in self._tables.unindexed}
        words = MatchQuery(text, "text")
        by_words = self._found(vector, selection, full_text_query=words, limit=count)
        by_meaning = self._found(vector, selection, nearest=near)
        return list({(one.path, one.line): one for one in (*by_meaning, *by_words)}.values())

    def having(
        self,
        phrase: str,
        vector: Float[np.ndarray, " 384"],
        count: int,
        selection: Selection | None = None,
    ) -> list[FoundLine]:
        """Lines that have some words in a row, but for endings; the shortest first."""
        words = PhraseQuery(phrase, "text")
        return self._found(vector, selection, full_text_query=words, limit=count)

    def next_to(self, found: Sequence[tuple[FoundLine, int]]) -> list[FoundLine | None]:
        """The lines so many before or after others of one source of a video; None without one."""
        keys = [f"{one.key[:-6]}{int(one.key[-6:]) + step:06}" for one, step in found]
        named = f"text IS NOT NULL AND key IN ({id_list(list(dict.fromkeys(keys)))})"
        there = self._found(filter=named) if keys else []
        known = {one.key: one for one in there}
        return [known.get(key) for key in keys]

    def has(self, word: str) -> bool:
        """Whether a word is in any line."""
        return bool(self._found(full_text_query=MatchQuery(word, "text"), limit=1))

    def spelt_like(self, word: str) -> Counter[str]:
        """Words in small letters of lines, those like a word among them, each with its lines.

        Of many lines only those with such a word are looked at, and none that the inverted index
        does not have yet.
        """
        if self.count() > _READ:
            nearly = MatchQuery(word, "text", fuzziness=_SLIPS)
            texts = [f.line.text for f in self._found(full_text_query=nearly, limit=_ALIKE)]
        else:
            with as_store_error(self._tables.location, "read"):
                rows = self._tables.rows("lines", ["text"], "text IS NOT NULL")
            texts = texts_of(rows["text"])  # also those that may be damaged
        return Counter(each for text in texts for each in set(re.findall(_LETTERS, text.lower())))

    def trouble(self) -> list[str]:
        """A sentence on damaged lines that were met."""
        if not self._damaged:
            return []
        return [
            f"Words in {counted(len(self._damaged), 'video')}, such as {min(self._damaged)}, are "
            f"not what was written and were left out. `sureshot index FOLDER` reads them again."
        ]

    def known(self) -> dict[str, dict[str, tuple[str, int]]]:
        """By ids of videos the stamp and the number of lines of each source that was read.

        A source is missing where a line of it is not what was written. What Lance says of files
        that cannot be read comes out as it is, see `Store.words_read`.
        """
        if not self._tables.has_lines():
            return {}

        def act(table: Any) -> tuple[pa.Table, pa.Table, set[tuple[str, str]]]:
            notes = table.to_table(filter="stamp IS NOT NULL")
            lines = table.to_table(columns=["video", "source", "check"], filter="stamp IS NULL")
            damaged = _damaged(table) if len(lines) <= _CHECKED else set()
            return notes.filter(pa.array(sound(notes))), lines, damaged

        notes, lines, damaged = self._tables.use("lines", act)
        sums = lines.group_by(["video", "source"]).aggregate([("check", "sum"), ("check", "count")])
        counts = sums.select(["check_count", "check_sum"]).to_pylist()
        there = dict(zip(_owners(sums), counts, strict=True))
        found: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
        for note in notes.to_pylist():
            said, owner = json.loads(note["stamp"]), (note["video"], note["source"])
            claimed = {"check_count": said["lines"], "check_sum": said["check"]}
            if there.get(owner, _NOTHING) == claimed and owner not in damaged:
                found[note["video"]][note["source"]] = said["read"], said["lines"]
        return dict(found)

    def faults(self) -> list[str]:
        """What is wrong with the lines, as sentences; all of them are read."""
        if not self._tables.has_lines():
            return []
        damaged = self._tables.read("lines", _damaged)
        videos = counted(len({video for video, _ in damaged}), "video")
        return [f"Words in {videos} are not what was written."] if damaged else []

    def write(self, read: Sequence[WordsRead]) -> None:
        """Store what was read, in place of what the same sources gave; all of it or nothing.

        What was read of videos that others have removed meanwhile is left out.
        """
        with as_store_error(self._tables.location, "write to"), write_lock(self._tables.location):
            self._tables.create_lines(self._header)
            indexed = self._indexed()
            self._replace([one for one in read if one.video.id in indexed])

    def copy(self, copies: Sequence[tuple[VideoRecord, VideoRecord]]) -> None:
        """Give videos the lines of others with the same content; the caller has the write lock.

        Lines that are not sound stay behind, and are read again.
        """
        if not self._tables.has_lines():
            return
        there = sound_by_video(self._tables, "lines", (old.id for old, _ in copies))
        pairs = [(there[old.id], new) for old, new in copies if old.id in there]
        self._replace([one for rows, new in pairs for one in _as_read(rows, new)])

    def sweep(self, before: float) -> None:
        """Remove lines that were written before a time and are of no indexed video."""
        old = f"stamp IS NOT NULL AND written_at < {before!r}"
        found = self._tables.rows("lines", ["video"], old)["video"]
        orphans = sorted(set(texts_of(found)) - self._indexed())
        for first in range(0, len(orphans), _AT_ONCE):
            ids = id_list(orphans[first : first + _AT_ONCE])
            self._tables.drop("lines", f"video IN ({ids}) AND written_at < {before!r}")

    def _indexed(self) -> set[str]:
        return set(texts_of(self._tables.rows("videos", ["id"], "windows > 0")["id"]))

    def _replace(self, read: Sequence[WordsRead]) -> None:
        if not read:
            return
        rows = pa.concat_tables([_rows(one, self._header) for one in read])
        owners = (_key(one.video.id, one.source) for one in read)
        keys = " OR ".join(f"starts_with(key, '{key}')" for key in owners)

        def act(table: Any) -> None:
            new = write_fragments(rows, table, mode="append")
            check_rows(self._tables.location, "lines", new)
            replace_rows(table, new, keys)

        self._tables.commit("lines", act)

    def _found(
        self,
        query: Float[np.ndarray, " 384"] | None = None,
        selection: Selection | None = None,
        **wanted: Any,
    ) -> list[FoundLine]:
        """Sound lines as Lance is asked for them, in the order of time where it has no other."""
        if not self._tables.has_lines():
            return []

        def act(table: Any) -> pa.Table:
            own = {"full_text_query": "_score", "nearest": "_distance"}
            names = [*table.schema.names, *(name for how, name in own.items() if how in wanted)]
            some = self._selected.options(table, selection)
            return table.scanner(columns=names, **wanted, **some).to_table()

        rows = self._tables.read("lines", act)
        right = sound(rows.drop_columns([n for n in rows.column_names if n in _OF_LANCE]))
        if not right.all():
            bad = texts_of(rows.filter(pa.array(~right))["path"])
            self._damaged |= {plain(path or "?") for path in bad}
            rows = rows.filter(pa.array(right))
        if "filter" in wanted and len(wanted) == 1:
            rows = rows.sort_by([("start", "ascending"), ("key", "ascending")])
        return _lines_of(rows, query)


def _lines_of(rows: pa.Table, query: Float[np.ndarray, " 384"] | None = None) -> list[FoundLine]:
    rows = rows.filter(rows.column("text").is_valid())
    vectors = rows.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
    vectors = vectors.reshape(len(rows), LINE_WIDTH).astype(np.float32)
    # By rows: in `@` the last bit of one goes by how many there are and where it is.
    similar = (vectors * query).sum(1) if query is not None else np.zeros(len(rows))
    kept = rows.drop_columns(["vector"]).to_pylist()
    return [
        FoundLine(
            path=from_text(row["path"]),
            line=Line(**{name: row[name] for name in Line._fields}),
            similarity=float(one),
            key=row["key"],
        )
        for row, one in zip(kept, similar, strict=True)
    ]


def _as_read(rows: pa.Table, video: VideoRecord) -> Iterator[WordsRead]:
    """Sound rows of one video as what was read of another; of each source all lines or none."""
    for note in rows.filter(rows.column("stamp").is_valid()).to_pylist():
        lines = rows.filter(pa.compute.equal(rows.column("source"), note["source"]))
        lines = lines.filter(lines.column("text").is_valid()).sort_by("key")
        said = json.loads(note["stamp"])
        if (len(lines), sum_of_checks(lines)) == (said["lines"], said["check"]):
            vectors = np.array(lines.column("vector").to_pylist(), np.float32)
            yield WordsRead(
                video=video,
                source=note["source"],
                stamp=said["read"],
                lines=[one.line for one in _lines_of(lines)],
                vectors=vectors.reshape(len(lines), LINE_WIDTH),
            )


def _rows(read: WordsRead, header: Header) -> pa.Table:
    """Lines of a source as rows, and the row that says that they are all."""
    schema, lines = line_schema(header), read.lines
    vectors = pa.array(read.vectors.astype(np.float16).ravel(), pa.float16())
    columns = {
        "key": [f"{_key(read.video.id, read.source)}{number:06}" for number in range(len(lines))],
        "language": [line.language for line in lines],
        "start": [float(line.start) for line in lines],
        "end": [float(line.end) for line in lines],
        "text": [line.text.encode("utf-8", "replace").decode() for line in lines],
        "vector": pa.FixedSizeListArray.from_arrays(vectors, LINE_WIDTH),
    }
    made = with_checksums(_filled(read, columns, len(lines), schema))
    said = {"read": read.stamp, "lines": len(lines), "check": sum_of_checks(made)}
    note = {"key": [_key(read.video.id, read.source)], "stamp": [json.dumps(said)]}
    return pa.concat_tables([made, with_checksums(_filled(read, note, 1, schema))])


def _filled(read: WordsRead, columns: dict[str, Any], count: int, schema: pa.Schema) -> pa.Table:
    """Rows of a source with what all of them have; what else they lack is null."""
    every: dict[str, Any] = dict.fromkeys(schema.names)
    every |= {"video": read.video.id, "path": to_text(read.video.path), "source": read.source}
    every |= {"written_at": time.time()}
    columns = {name: [value] * count for name, value in every.items()} | columns
    return pa.table(columns, schema=schema)


def _key(video: str, source: str) -> str:
    """Key of the row that says what was read; those of lines go on with a number."""
    return f"{video}-{source}-"


def _owners(rows: pa.Table) -> Iterator[tuple[str, str]]:
    """The video and the source of each row."""
    return zip(texts_of(rows["video"]), texts_of(rows["source"]), strict=True)


def _damaged(table: Any) -> set[tuple[str, str]]:
    """Sources of videos of which a row is not what was written."""
    found = set()
    for batch in table.to_batches(batch_size=_ROWS):
        rows = pa.Table.from_batches([batch])
        found |= set(_owners(rows.filter(pa.array(~sound(rows)))))
    return found


def index_lines(tables: Tables) -> bool:
    """Index words and vectors of lines if to look at them one by one takes long; whether it was."""
    done = add_segment(tables, "lines")

    def left(table: Any) -> int | None:
        there = [one.num_rows_indexed for one in table.describe_indices() if one.name == _NAME]
        return table.count_rows() - there[0] if there else None

    def act(table: Any) -> None:
        if latest is None:
            table.create_scalar_index("text", "INVERTED", name=_NAME, **_WORDS)
        else:
            table.optimize.optimize_indices(index_names=[_NAME])

    latest = tables.use("lines", left)
    if latest is not None and latest <= _LATEST:
        return done
    tables.change("lines", act)
    return True
