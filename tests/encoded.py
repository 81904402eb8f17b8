"""Windows and indexes for tests, without a video behind them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow, IndexSettings, VideoRecord
from sureshot.store.writing import StagedVideo

SETTINGS = IndexSettings(model="tiny")


def make_store(place: Path | str, settings: IndexSettings = SETTINGS) -> Store:
    """An index as `sureshot index --model tiny` makes it."""
    tiny = TinyEncoder()
    return Store.create(place, settings, tiny.fingerprint, tiny.dim)


def record(path: str | Path, **known) -> VideoRecord:
    """What the index would know of a file at a path."""
    return VideoRecord(Path(path), **{"kind": "file", "size": 100, "mtime_ns": 7} | known)


def fail(store: Store, video: VideoRecord) -> None:
    """Remember that a video could not be indexed, and drop what it gave earlier."""
    store.commit([StagedVideo(video)])


def random_windows(
    count: int, *, seed: int = 0, frames: int = 3, dim: int = 24
) -> list[EncodedWindow]:
    """Windows of ten seconds, one after another, with features of both signs and all sizes."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        sizes = 10.0 ** rng.uniform(-3, 1, shape)
        return (rng.standard_normal(shape) * sizes).astype(np.float32)

    return [
        EncodedWindow(
            10.0 * number,
            10.0 * number + 10,
            10.0 * number + np.arange(frames, dtype=float),
            rng.integers(0, 256, (frames, 288), np.uint8),
            draw(frames, dim),
        )
        for number in range(count)
    ]


def pointing(vectors: Sequence[np.ndarray]) -> list[EncodedWindow]:
    """Windows of one frame each without a pattern, whose pooled vectors point along these."""
    windows, flat = random_windows(len(vectors), frames=1), np.zeros((1, 288), np.uint8)
    return [
        replace(window, signatures=flat, frames=vector[None].astype(np.float32))
        for window, vector in zip(windows, vectors, strict=True)
    ]


def contents(place: Path | str) -> tuple[list, ...]:
    """All rows of each table, but for when they were written and checksums, which cover that."""
    tables = []
    names = [("videos", "id", "indexed_at"), ("windows", "key", "written_at")]
    if Path(f"{place}/lines.lance").exists():
        names.append(("lines", "key", "written_at"))
    for name, key, when in names:
        table = lance.dataset(f"{place}/{name}.lance").to_table()
        left_out = [when, *(c for c in table.column_names if c.startswith("check"))]
        tables.append(table.drop_columns(left_out).sort_by(key).to_pylist())
    for row in tables[-1] if len(tables) > 2 else ():
        if row["stamp"] is not None:
            row["stamp"] = {**json.loads(row["stamp"]), "check": 0}
    return tuple(tables)


def spoil(store: Store, video: str, column: str = "packed") -> None:
    """Change a value of a window of a video behind the back of its checksums, as a disk may.

    Args:
        store: the index.
        video: id of the video, whose second window is changed.
        column: the value; a number of it changes its last bit.
    """
    rows = store._tables.use("windows", lambda t: t.to_table(filter=f"video = '{video}'"))
    rows = rows.sort_by("start").slice(min(1, len(rows) - 1), 1)
    at = rows.column_names.index(column)
    values = rows.column(column).to_pylist()
    values = pa.array([flipped(values[0])], rows.schema.field(column).type)
    store._tables.upsert("windows", rows.set_column(at, rows.schema.field(column), values))


def flipped(value: Any) -> Any:
    """A value that differs in the last bit of a number, or in a character."""
    match value:
        case bool():
            return not value
        case list():
            return [*value[:-1], flipped(value[-1])]
        case float():
            return (
                value + 1 if value > 6e4 else float(np.nextafter(np.float16(value), np.float16(9)))
            )
        case bytes():
            return value[:-1] + bytes([value[-1] ^ 1])
        case str():
            return value[:-1] + chr(ord(value[-1:] or "a") ^ 1)
    return value ^ 1
