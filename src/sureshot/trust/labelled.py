"""Queries whose right answers are known, before a gallery."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Integer

from sureshot.errors import SureshotError
from sureshot.trust.galleries import draw_present
from sureshot.trust.signals import UNKNOWN, About


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Some queries, each with a relevant video in the gallery.

    Attributes:
        scores: scores that order the results.
        relevant: whether each video is relevant to each query.
        video: number of the video, or of the group of near copies, that each query belongs to.
        about: what else is known of the queries.
    """

    scores: Float[np.ndarray, "queries videos"]
    relevant: Bool[np.ndarray, "queries videos"]
    video: Int[np.ndarray, " queries"]
    about: About

    def of(self, rows: Int[np.ndarray, " rows"]) -> "Labelled":
        """Some of the queries."""
        return Labelled(
            scores=self.scores[rows],
            relevant=self.relevant[rows],
            video=self.video[rows],
            about=self.about.of(rows),
        )

    def at_most(self, queries: int, rng: np.random.Generator) -> "Labelled":
        """So many queries of each video that all together are no more, or one of each."""
        each = max(1, queries // len(np.unique(self.video)))
        mixed = rng.permutation(len(self.video))
        mixed = mixed[np.argsort(self.video[mixed], kind="stable")]
        _, first, count = np.unique(self.video[mixed], return_index=True, return_counts=True)
        place = np.arange(len(mixed)) - np.repeat(first, count)
        return self.of(np.sort(mixed[place < each]))

    def present(self, size: int, rng: np.random.Generator) -> "Labelled":
        """The same queries, each in a gallery of its own that holds a relevant video."""
        columns = draw_present(self.relevant, size, rng)
        return replace(
            self,
            scores=np.take_along_axis(self.scores, columns, 1),
            relevant=np.take_along_axis(self.relevant, columns, 1),
        )

    def best_relevant(self) -> Float[np.ndarray, " queries"]:
        """Score of the best relevant video of each query."""
        return np.where(self.relevant, self.scores, -np.inf).max(1).astype(np.float64)


def labelled(
    scores: Float[np.ndarray, "queries videos"],
    relevant: Bool[np.ndarray, "other_queries other_videos"],
    video: Integer[np.ndarray, " labelled"],
    about: About = UNKNOWN,
) -> Labelled:
    """The queries that have a relevant video, all arguments checked.

    Args:
        scores: finite scores that order all videos of a gallery for labelled queries: similarities,
            less the hub correction where there is one.
        relevant: whether each video is relevant to each query.
        video: number of the video, or of the group of near copies, that a query belongs to.
        about: what else is known of the queries.

    Raises:
        SureshotError: shapes that do not fit together, scores that are not finite, or no query
            with a relevant video.
    """
    none = np.zeros(len(scores))
    apart = none if about.elsewhere is None else about.elsewhere
    words = none if about.words is None else about.words
    if scores.shape != relevant.shape or {len(video), len(apart), len(words)} != {len(scores)}:
        raise SureshotError(
            f"The scores are {scores.shape}, the labels {relevant.shape}, with {len(video)} videos "
            "of queries; give all for the same queries and videos."
        )
    if not np.isfinite(scores).all() or not np.isfinite(apart).all():
        raise SureshotError("A score is NaN or infinite; nothing can be calibrated on it.")
    there = np.flatnonzero(relevant.any(1))
    if not len(there):
        raise SureshotError(
            "None of the labelled queries has a relevant video in the gallery, so there is nothing "
            "to calibrate on; label queries whose videos are there."
        )
    _, number = np.unique(video, return_inverse=True)
    known = Labelled(scores=scores, relevant=relevant, video=number, about=about)
    return known.of(there)
