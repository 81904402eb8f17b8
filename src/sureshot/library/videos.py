"""Scores of the videos of an index, each the score of its best window.

A confidence is worked out from how the videos of a library score, not its windows: a long film must
not count as many rivals of itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.models.comparing import Comparing
from sureshot.models.encoders.protocol import VideoFeatures
from sureshot.store.rows import StoredWindows, VideoRecord
from sureshot.store.store import Store

AT_MOST = 500  # videos of one query
_FIRST, _LAST = 1600, 25_600  # windows looked at: first, and at most for one query
_EACH = 4  # windows of a video that are scored exactly
_AT_ONCE = 2000  # windows held in memory where all are scored
# The score of each window: that of the query it fits best.
Score = Callable[[VideoFeatures], Float[np.ndarray, " windows"]]
Told = Callable[[int, int], None]  # how many windows are done, of how many


@dataclass(frozen=True, slots=True)
class VideoScores:
    """The best videos for one query.

    Attributes:
        scores: score of the best window of each video, higher is better, best first.
        paths: the videos, in the same order; equal scores in the order of paths.
        windows: how many windows are indexed, at or below the path where one was named.
        videos: how many videos these windows are of.
        elsewhere: what the query scores with videos that the model brings along; None without.
    """

    scores: Float[np.ndarray, " videos"]
    paths: list[Path]
    windows: int
    videos: int
    elsewhere: float | None = None


@dataclass(frozen=True, slots=True)
class Gallery:
    """Scores of some queries with every video of an index.

    Attributes:
        scores: score of the best window of each video, higher is better.
        paths: the videos, in the order of the columns, which is that of paths.
        windows: windows in the index.
        elsewhere: what each text scores with videos that the model brings along; None without.
    """

    scores: Float[np.ndarray, "texts videos"]
    paths: list[Path]
    windows: int
    elsewhere: Float[np.ndarray, " texts"] | None = None


def best_videos(
    store: Store,
    vector: Float[np.ndarray, " dim"],
    score: Score,
    *,
    most: int = AT_MOST,
    under: Path | None = None,
) -> VideoScores:
    """The videos whose windows lie nearest to a query, scored exactly.

    Windows are looked at from the nearest on until there are so many videos, or 25,600 of them. Of
    each video the four nearest are scored; for an encoder alone without a hub correction the best
    is always among them, otherwise almost always.

    Args:
        store: the index.
        vector: the query's unit vector, which chooses the candidates.
        score: gives the scores of their windows.
        most: videos at most.
        under: only videos at or below this path.
    """
    windows, videos = store.count(under), store.count_videos(under)
    wanted = _FIRST
    while True:
        near = store.nearest_keys(vector, wanted, under)
        keys = _nearest_each(near, most)
        if len(keys) >= min(most, videos) or len(near) < wanted or wanted >= _LAST:
            break
        wanted *= 4
    near_windows = store.windows_with([key for few in keys.values() for key in few])
    best = best_windows(near_windows, score(near_windows.features)[None])
    order = np.argsort(-best.scores[0], kind="stable")[:most]
    return VideoScores(
        scores=best.scores[0][order],
        paths=[best.paths[row] for row in order],
        windows=windows,
        videos=videos,
    )


def every_video(
    store: Store, comparing: Comparing, texts: Sequence[Any], told: Told | None = None
) -> Gallery:
    """The score of every text with the best window of every video, none left out.

    Args:
        store: the index.
        comparing: how the index's model compares.
        texts: codes of texts in batches of any size, at least one batch.
        told: called with windows done and windows there are.
    """
    videos = [video for video in store.videos() if video.windows]
    total, done = sum(video.windows for video in videos), 0
    queries = comparing.join(texts)
    galleries = []
    for part in _parts(videos):
        windows = store.windows_in(part)
        codes = comparing.videos(windows.features)
        scores = [comparing.similarity(batch, codes) for batch in texts]
        galleries.append(best_windows(windows, np.concatenate(scores)))
        done += sum(video.windows for video in part)
        if told is not None:
            told(done, total)
    none = np.zeros((len(comparing.text_vectors(queries)), 0), np.float32)
    return Gallery(
        scores=np.concatenate([none, *(gallery.scores for gallery in galleries)], axis=1),
        paths=[path for gallery in galleries for path in gallery.paths],
        windows=total,
        elsewhere=comparing.elsewhere(queries),
    )


def best_windows(windows: StoredWindows, scores: Float[np.ndarray, "texts windows"]) -> Gallery:
    """Of each video among some windows the score of its best one, videos in the order of paths."""
    paths = sorted(set(windows.paths))
    column = {path: number for number, path in enumerate(paths)}
    best = np.full((len(paths), len(scores)), -np.inf, scores.dtype)
    np.maximum.at(best, np.array([column[path] for path in windows.paths], int), scores.T)
    return Gallery(scores=best.T, paths=paths, windows=len(windows.keys))


def _nearest_each(near: Sequence[tuple[str, Path]], most: int) -> dict[Path, list[str]]:
    """The first keys of each of the first videos."""
    keys: dict[Path, list[str]] = {}
    for key, path in near:
        if path in keys or len(keys) < most:
            few = keys.setdefault(path, [])
            if len(few) < _EACH:
                few.append(key)
    return keys


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
