"""Scores of the videos of an index, each the score of its best window.

A confidence is worked out from how the videos of a library score, not its windows: a long film must
not count as many rivals of itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from sureshot.models.encoders.protocol import TextFeatures
from sureshot.models.retriever import Scoring, elsewhere
from sureshot.store.rows import StoredWindows, VideoRecord
from sureshot.store.store import Store

AT_MOST = 500  # videos of one query
_FIRST, _LAST = 1600, 25_600  # windows looked at: first, and at most for one query
_EACH = 4  # windows of a video that are scored exactly
_AT_ONCE = 2000  # windows held in memory where all are scored
# Scores of padded windows, the best of all queries each.
Score = Callable[
    [Float[np.ndarray, "windows frames dim"], Bool[np.ndarray, "windows frames"]],
    Float[np.ndarray, " windows"],
]
Told = Callable[[int, int], None]  # how many windows are done, of how many


@dataclass(frozen=True, slots=True)
class VideoScores:
    """The best videos for one query.

    Attributes:
        scores: of the best window of each video, higher is better, best first.
        paths: the videos, in the same order; equal scores in the order of paths.
        windows: windows in the index, or of it at or below the path that was named.
        videos: videos there.
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
        scores: of the best window of each video, higher is better.
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
        vector: of the query, unit length, that chooses the candidates.
        score: of their windows.
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
    found = store.windows_with([key for own in keys.values() for key in own])
    best = best_windows(found, score(found.frames, found.mask)[None])
    order = np.argsort(-best.scores[0], kind="stable")[:most]
    return VideoScores(best.scores[0][order], [best.paths[row] for row in order], windows, videos)


def every_video(
    store: Store, scoring: Scoring, texts: Sequence[TextFeatures], told: Told | None = None
) -> Gallery:
    """The score of every text with the best window of every video, none left out.

    Args:
        store: the index.
        scoring: of its model.
        texts: in batches of any size, at least one.
        told: called with windows done and windows there are.
    """
    videos = [video for video in store.videos() if video.windows]
    total, done = sum(video.windows for video in videos), 0
    parts = []
    for chosen in _parts(videos):
        found = store.windows_in(chosen)
        scores = [scoring.score(part, found.frames, found.mask) for part in texts]
        parts.append(best_windows(found, np.concatenate(scores)))
        done += sum(video.windows for video in chosen)
        if told is not None:
            told(done, total)
    count = sum(len(part.sentence) for part in texts)
    none = np.zeros((count, 0), np.float32)
    joined = np.concatenate([none, *(part.scores for part in parts)], axis=1)
    paths = [path for part in parts for path in part.paths]
    apart = [own for part in texts if (own := elsewhere(scoring, part)) is not None]
    return Gallery(joined, paths, total, np.concatenate(apart) if apart else None)


def best_windows(found: StoredWindows, scores: Float[np.ndarray, "texts windows"]) -> Gallery:
    """Of each video among some windows the score of its best one, videos in the order of paths."""
    paths = sorted(set(found.paths))
    place = {path: column for column, path in enumerate(paths)}
    best = np.full((len(paths), len(scores)), -np.inf, scores.dtype)
    np.maximum.at(best, np.array([place[path] for path in found.paths], int), scores.T)
    return Gallery(best.T, paths, len(found.keys))


def _nearest_each(near: Sequence[tuple[str, Path]], most: int) -> dict[Path, list[str]]:
    """The first keys of each of the first videos."""
    keys: dict[Path, list[str]] = {}
    for key, path in near:
        if path in keys or len(keys) < most:
            own = keys.setdefault(path, [])
            if len(own) < _EACH:
                own.append(key)
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
