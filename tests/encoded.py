"""Windows and indexes for tests, without a video behind them."""

from collections.abc import Sequence
from pathlib import Path

import lance
import numpy as np

from sureshot.models.encoders.protocol import FrameFeatures
from sureshot.models.encoders.tiny import TinyEncoder
from sureshot.store.header import IndexSettings
from sureshot.store.rows import EncodedWindow, VideoRecord
from sureshot.store.store import Store

SETTINGS = IndexSettings(model="tiny")


def make_store(place: Path | str, settings: IndexSettings = SETTINGS) -> Store:
    """An index as `sureshot index --model tiny` makes it."""
    tiny = TinyEncoder()
    return Store.create(place, settings, tiny.fingerprint, tiny.dim, tiny.channels)


def record(path: str | Path, **known) -> VideoRecord:
    """What the index would know of a file at a path."""
    return VideoRecord(Path(path), **{"kind": "file", "size": 100, "mtime_ns": 7} | known)


def random_windows(
    count: int,
    *,
    seed: int = 0,
    frames: int = 3,
    dim: int = 24,
    patches: int = 4,
    channels: int = 3,
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
            rng.integers(0, 256, (frames, 256), np.uint8),
            FrameFeatures(draw(frames, dim), draw(frames, patches, dim), draw(frames, channels)),
        )
        for number in range(count)
    ]


def pointing(vectors: Sequence[np.ndarray]) -> list[EncodedWindow]:
    """Windows of one frame each, whose pooled vectors point along these."""
    return [
        EncodedWindow(
            10.0 * number,
            10.0 * number + 10,
            np.array([10.0 * number]),
            np.zeros((1, 256), np.uint8),
            FrameFeatures(
                vector[None].astype(np.float32),
                np.zeros((1, 4, len(vector)), np.float32),
                np.zeros((1, 3), np.float32),
            ),
        )
        for number, vector in enumerate(vectors)
    ]


def contents(place: Path | str) -> tuple[list, list]:
    """All rows of both tables, but for when they were written."""
    tables = []
    for name, key, when in (("videos", "id", "indexed_at"), ("windows", "key", "written_at")):
        table = lance.dataset(f"{place}/{name}.lance").to_table()
        tables.append(table.drop([when]).sort_by(key).to_pylist())
    return tables[0], tables[1]
