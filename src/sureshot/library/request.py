"""What a search was asked for, and the hits that answer it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.errors import QueryError, option
from sureshot.library.answer import FrameScore, Hit
from sureshot.library.looked import Looked
from sureshot.library.moments import Moment, join_adjacent
from sureshot.media.discover import is_gone
from sureshot.store.conditions import Among, Under
from sureshot.store.rows import StoredWindows
from sureshot.text import counted, printable

_LOOKED_AT = 2000  # windows; they take memory with all their frames


@dataclass(frozen=True, slots=True)
class Request:
    """What a search was asked for, beside its query.

    Attributes:
        like: the video that more like it is looked for; None for a sentence.
        at: seconds of the moment in that video; None for the whole of it.
        less_hubs: whether candidates are chosen by scores less the model's hub correction.
    """

    k: int
    per_video: int | None
    fold: bool
    under: Under | None = None
    like: Path | None = None
    at: float | None = None
    less_hubs: bool = False

    def __post_init__(self) -> None:
        for name in ("k", "per_video"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise QueryError(f"{name} is {value}; it must be at least 1.")

    @property
    def without(self) -> Path | None:
        """The video that is left out whole."""
        return self.like if self.at is None else None

    @property
    def most(self) -> int:
        """How many windows are looked at, at most; more of them are copies than it is worth."""
        return max(_LOOKED_AT, 10 * self.k)

    def is_asked(self, moment: Moment) -> bool:
        """Whether a moment is the very one that more like it is looked for."""
        at = self.at
        return at is not None and moment.path == self.like and moment.start <= at <= moment.end


@dataclass(frozen=True, eq=False)
class NearWindows:
    """The windows nearest to a query.

    Attributes:
        looked: the windows.
        texts: the codes of the query.
        scores: their exact scores.
        wanted: how many were asked for.
        whole: whether there are no others.
    """

    looked: Looked
    texts: Any
    scores: Float[np.ndarray, " windows"]
    wanted: int
    whole: bool

    @classmethod
    def of(cls, looked: Looked, texts: Any, wanted: int, *, whole: bool) -> "NearWindows":
        """Windows with their scores."""
        scores = looked.scores(texts)
        return cls(looked=looked, texts=texts, scores=scores, wanted=wanted, whole=whole)

    @property
    def windows(self) -> StoredWindows:
        """The windows."""
        return self.looked.windows

    @cached_property
    def moments(self) -> list[Moment]:
        """Their moments, best first."""
        found = self.windows
        return join_adjacent(found.paths, found.start, found.end, self.scores, per_video=None)


def check_shares(coverage: float, minimum: float) -> None:
    """Check what a search asks of percentages.

    Raises:
        QueryError: one is no share.
    """
    if not 0 < coverage < 1:
        raise QueryError(f"coverage is {coverage}; it must be between 0 and 1, such as 0.9.")
    if not 0 <= minimum < 1:
        raise QueryError(f"minimum is {minimum}; it must be 0 or more and below 1, such as 0.2.")


def why_few(asked: Request, hits: int, near: NearWindows, left_out: bool) -> list[str]:
    """Why an answer has fewer hits than were asked for, though there may be more moments.

    Args:
        asked: the request.
        hits: how many there are.
        near: windows that were looked at.
        left_out: whether a video has more moments than it may give.

    Returns:
        One sentence, or none where there are enough, or no more.
    """
    few = f"{counted(hits, 'hit')} of {asked.k} asked for: "
    if hits >= asked.k or (near.whole and not left_out):
        return []
    if left_out:
        return [f"{few}one video gives at most {asked.per_video} ({option('per_video')})."]
    looked_at = counted(len(near.windows.keys), "nearest window")
    return [f"{few}the {looked_at} are copies of these. Look elsewhere with {option('under')}."]


def why_nothing(asked: Request, windows: int) -> str:
    """Why an answer has no hits, which is never for lack of a good one: there is a nearest."""
    if windows == 0:
        return "Nothing is indexed yet; do that with `sureshot index FOLDER`."
    if isinstance(asked.under, Among):
        return f"Nothing is indexed {asked.under}."
    if asked.under is not None:
        return f"Nothing is indexed at or below {printable(asked.under)}."
    if asked.at is not None:
        return "Nothing else is indexed than the moment that was asked about."
    return "No other video is indexed."


def best_moments(near: NearWindows, asked: Request, most: int) -> tuple[list[Moment], bool]:
    """The best moments, at most so many of a video, and whether a video has more of them."""
    seen: Counter[Path] = Counter()
    moments = []
    for moment in near.moments:
        if asked.is_asked(moment):
            continue
        seen[moment.path] += 1
        if seen[moment.path] <= most:
            moments.append(moment)
    left_out = max(seen.values(), default=0) > most
    if asked.fold:
        return near.looked.copies.fold(moments, asked.k), left_out
    return moments[: asked.k], left_out


def scored_hits(moments: Sequence[Moment], near: NearWindows) -> tuple[Hit, ...]:
    """Moments with a score of its own for each frame, as if that were the whole video.

    Args:
        moments: best first.
        near: the windows that they are moments of.
    """
    rows = [row for moment in moments for row in moment.rows]
    scores = dict(zip(rows, near.looked.frame_scores(near.texts, rows), strict=True))
    times, mask = near.windows.times, near.windows.mask
    return tuple(
        Hit(
            rank=rank,
            path=moment.path,
            start=moment.start,
            end=moment.end,
            score=moment.score,
            frames=tuple(
                FrameScore(time, score)
                for row in moment.rows
                for time, score in zip(
                    times[row][mask[row]].tolist(), scores[row].tolist(), strict=True
                )
            ),
            copies=tuple(moment.copies),
            missing=is_gone(moment.path),
        )
        for rank, moment in enumerate(moments, 1)
    )
