"""Scores of all windows of an index, for calibrating on them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.models.comparing import Comparing
from sureshot.store.rows import VideoRecord
from sureshot.store.store import Store

_AT_ONCE = 2000  # windows held in memory
Told = Callable[[int, int], None]  # how many windows are done, of how many


@dataclass(frozen=True, slots=True)
class Gallery:
    """Scores of some queries with every window of an index.

    Attributes:
        scores: score of each window, higher is better.
        paths: the video of each window, in order; its windows in the order of time.
        start: where each window begins, in seconds.
        end: where it ends, in seconds.
        elsewhere: what each text scores with videos that the model brings along; None without.
    """

    scores: Float[np.ndarray, "texts windows"]
    paths: list[Path]
    start: Float[np.ndarray, " windows"]
    end: Float[np.ndarray, " windows"]
    elsewhere: Float[np.ndarray, " texts"] | None = None


def every_window(
    store: Store, comparing: Comparing, texts: Sequence[Any], told: Told | None = None
) -> Gallery:
    """The score of every text with every window, none left out.

    Args:
        store: the index.
        comparing: how the index's model compares.
        texts: codes of texts in batches of any size, at least one batch.
        told: called with windows done and windows there are.
    """
    videos = [video for video in store.videos() if video.windows]
    total = sum(video.windows for video in videos)
    queries = comparing.join(texts)
    none = np.zeros((len(comparing.text_vectors(queries)), 0), np.float32)
    scores, starts, ends = [none], [np.zeros(0)], [np.zeros(0)]
    paths: list[Path] = []
    for part in _parts(videos):
        windows = store.windows_in(part)
        codes = comparing.videos(windows.features)
        scores.append(np.concatenate([comparing.similarity(batch, codes) for batch in texts]))
        paths += windows.paths
        starts.append(windows.start)
        ends.append(windows.end)
        if told is not None:
            told(len(paths), total)
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = sorted(range(len(paths)), key=lambda row: (paths[row], start[row]))
    return Gallery(
        scores=np.concatenate(scores, axis=1)[:, order],
        paths=[paths[row] for row in order],
        start=start[order],
        end=end[order],
        elsewhere=comparing.elsewhere(queries),
    )


def _parts(videos: Sequence[VideoRecord]) -> Iterator[list[VideoRecord]]:
    """Videos in order, so many at a time that their windows fit into memory."""
    part: list[VideoRecord] = []
    windows = 0
    for video in videos:
        if part and windows + video.windows > _AT_ONCE:
            yield part
            part, windows = [], 0
        part.append(video)
        windows += video.windows
    if part:
        yield part
