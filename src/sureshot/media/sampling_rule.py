"""Which frames of a video to sample; needs no decoder."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

SamplingKind = Literal["uniform", "spread", "head", "segments", "random", "phase"]
DRAWN: tuple[SamplingKind, ...] = ("random", "phase")  # other frames each time


@dataclass(frozen=True, slots=True)
class Sampling:
    """A rule that picks frames, as the codes of the papers have theirs.

    Attributes:
        kind: ``uniform``, nearest in time to the middles of equal parts, as in an index;
            ``segments``, the middle ones of equal runs of frames (X-Pool, T-MASS); ``random``, one
            drawn from each of these runs; ``spread``, evenly from the first frame to the last one
            (CLIP4Clip, DUQ); ``phase``, the same from a first frame that is drawn (UATVR);
            ``head``, the first frames.
        fps: frames per second to choose from, each the first one at or after its time; None
            chooses from all.
    """

    kind: SamplingKind = "uniform"
    fps: float | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether it takes other frames each time."""
        return self.kind in DRAWN


def sampled_numbers(
    total: int, count: int, kind: SamplingKind, draw: "np.random.Generator"
) -> Int[np.ndarray, " frames"]:
    """Numbers of the ``count`` of ``total`` frames that a rule picks, rising.

    All of them where there are no more; ``draw`` is for ``random`` alone.

    Examples:
        >>> draw = np.random.default_rng(0)
        >>> sampled_numbers(10, 4, "spread", draw).tolist()
        [0, 3, 6, 9]
        >>> sampled_numbers(10, 4, "segments", draw).tolist()
        [0, 3, 5, 8]
    """
    if total <= count:
        return np.arange(total)
    if kind == "head":
        return np.arange(count)
    if kind in ("spread", "phase"):
        return np.linspace(0, total - 1, count).astype(np.int64)
    edges = np.linspace(0, total, count + 1).astype(np.int64)
    if kind == "random":
        return draw.integers(edges[:-1], edges[1:])
    return (edges[:-1] + edges[1:] - 1) // 2
