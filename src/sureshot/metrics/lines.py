"""Lines of a report: one direction under one way of scoring, with intervals and ties."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Float64, Integer

from sureshot.metrics.bootstrap import Interval, intervals, mean_of, median_of
from sureshot.metrics.published import Direction
from sureshot.metrics.ranks import VideoQuery, text_ranks, video_ranks
from sureshot.metrics.recall import Recall, recall, recall_at


@dataclass(frozen=True, slots=True)
class Line:
    """The numbers of one direction under one way of scoring.

    Attributes:
        name: ``raw``, or the post-processing and what it looks at.
        direction: text to video or video to text.
        recall: the numbers.
        intervals: interval of each field of ``recall``, by resampling videos; empty for fewer than
            two videos.
        gain: R@1 less that of the raw scores, in points; None for these themselves.
        tied: queries whose sought item ties with another.
        r1_best: R@1 if every tie fell in our favour.
        r1_worst: R@1 if every tie fell against us.
        gamma: weight of the uncertainty in the scores; None where there is none.
    """

    name: str
    direction: Direction
    recall: Recall
    intervals: Mapping[str, Interval]
    gain: Interval | None
    tied: int
    r1_best: float
    r1_worst: float
    gamma: float | None = None


@dataclass(frozen=True, slots=True)
class CorrectedScores:
    """Scores of one direction after a correction that a report does not make itself.

    Attributes:
        name: the correction, its settings and what it looks at.
        direction: text to video or video to text.
        scores: rows are texts, columns videos, in both directions.
        gamma: weight of the uncertainty in it; None for a correction without one.
    """

    name: str
    direction: Direction
    scores: Float[np.ndarray, "texts videos"]
    gamma: float | None = None


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of the queries of one direction.

    Attributes:
        mean: rank with shared places.
        best: rank if every tie fell in our favour.
    """

    mean: Float64[np.ndarray, " queries"]
    best: Float64[np.ndarray, " queries"]

    @property
    def worst(self) -> Float64[np.ndarray, " queries"]:
        """Rank if every tie fell against us."""
        return 2 * self.mean - self.best


@dataclass(frozen=True, slots=True)
class Judge:
    """Ranks and lines of matrices over the same texts and videos.

    Attributes:
        owner: column of the video that each text describes.
        how: candidates of video to text.
        resamples: number of times that videos are drawn for the intervals.
        seed: seed of that chance; each line starts from it anew, so that all see the same videos.
    """

    owner: Integer[np.ndarray, " texts"]
    how: VideoQuery
    resamples: int
    seed: int

    def texts(self, similarity: Float[np.ndarray, "texts videos"]) -> Ranks:
        """Ranks of text to video."""
        rank = partial(text_ranks, similarity, self.owner)
        return Ranks(rank(), rank(ties="best"))

    def videos(self, similarity: Float[np.ndarray, "texts videos"]) -> Ranks:
        """Ranks of video to text."""
        rank = partial(video_ranks, similarity, self.owner, self.how)
        return Ranks(rank(), rank(ties="best"))

    def line(
        self,
        name: str,
        way: Direction,
        ranks: Ranks,
        raw: Ranks | None,
        gamma: float | None = None,
    ) -> Line:
        """The line of these ranks; ``raw`` are those it is to be compared with."""
        videos = self.owner if way == "t2v" else np.unique(self.owner)
        ends: dict[str, Interval] = {}
        statistics = {f"r{k}": mean_of(100.0 * (ranks.mean <= k)) for k in (1, 5, 10, 50)}
        statistics |= {"median": median_of(ranks.mean), "mean": mean_of(ranks.mean)}
        if raw is not None:
            statistics["gain"] = mean_of(100.0 * (ranks.mean <= 1) - 100.0 * (raw.mean <= 1))
        if len(np.unique(videos)) > 1:
            rng = np.random.default_rng(self.seed)
            ends = intervals(statistics, videos, rng, resamples=self.resamples)
        gain = ends.pop("gain", None)
        return Line(
            name=name,
            direction=way,
            recall=recall(ranks.mean),
            intervals=ends,
            gain=gain,
            tied=int(np.count_nonzero(ranks.mean > ranks.best)),
            r1_best=recall_at(ranks.best, 1),
            r1_worst=recall_at(ranks.worst, 1),
            gamma=gamma,
        )
