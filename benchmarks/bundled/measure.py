"""Recall of a network in training, as the product ranks, and what is chosen by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from benchmarks.bundled.items import Item
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from sureshot.metrics.ranks import text_ranks
from sureshot.models.encoders.base import mean_pool

_FRAMES, _TEXTS = 256, 512  # at once
_DEPTHS = np.array([1, 5, 10])

# Of each item the share of its captions that have it among the first 1, 5 and 10, in percent.
Hits = Float[np.ndarray, "items 3"]


@dataclass(frozen=True, slots=True)
class Seen:
    """Pictures and videos, and the states of their frames."""

    items: list[Item]
    states: list[list[State]]

    def part(self, rows: Sequence[int]) -> "Seen":
        """Some of them."""
        return Seen([self.items[row] for row in rows], [self.states[row] for row in rows])


def hits(network: Network, seen: Seen) -> Hits:
    """Recalls of all captions of a gallery, item by item; a video is the mean of its frames."""
    network.eval()
    texts = [caption for item in seen.items for caption in item.captions]
    counts = np.array([len(item.captions) for item in seen.items])
    owner = np.repeat(np.arange(len(counts)), counts)
    with torch.inference_mode():
        queries = [network.texts(texts[i : i + _TEXTS]) for i in range(0, len(texts), _TEXTS)]
        flat = [state for frames in seen.states for state in frames]
        found = [network.frames(flat[i : i + _FRAMES]) for i in range(0, len(flat), _FRAMES)]
    network.forget()
    videos = pooled(torch.cat(found).cpu().numpy(), [len(frames) for frames in seen.states])
    ranks = text_ranks(torch.cat(queries).cpu().numpy() @ videos.T, owner)
    first = np.cumsum(counts) - counts
    right = 100.0 * (ranks[:, None] <= _DEPTHS)
    return np.add.reduceat(right, first) / counts[:, None]


def pooled(
    frames: Float[np.ndarray, "frames dim"], counts: Sequence[int]
) -> Float[np.ndarray, "videos dim"]:
    """The mean of the frames of each video."""
    parts = np.split(frames, np.cumsum(counts)[:-1])
    return np.concatenate([mean_pool(p[None], np.ones((1, len(p)), bool)) for p in parts])


def recalls(found: Sequence[Hits], items: Sequence[Sequence[Item]]) -> list[float]:
    """R@1, R@5 and R@10 of all captions, the mean over galleries of a kind."""
    weights = [np.array([len(item.captions) for item in some]) for some in items]
    means = [np.average(h, axis=0, weights=w) for h, w in zip(found, weights, strict=True)]
    return [float(recall) for recall in np.mean(means, axis=0)]


def choose_share(found: Mapping[float, Sequence[Hits]]) -> float:
    """The smallest share of the way that is as good on validation as the best, as far as one sees.

    That is, whose sum of R@1, R@5 and R@10 over all galleries is at most one standard error of the
    difference (over items) below the highest. Less of the way is better on pictures unlike what was
    trained on, which validation does not show (LOG.md).

    Args:
        found: hits by share, in each validation gallery.
    """
    sums = {share: [h.sum(1) for h in of] for share, of in found.items()}
    total = {share: sum(h.mean() for h in of) for share, of in sums.items()}
    best = max(sums, key=lambda share: (total[share], -share))

    def near(share: float) -> bool:
        lost = [b - s for b, s in zip(sums[best], sums[share], strict=True)]
        error = sum(d.var(ddof=1) / len(d) for d in lost) ** 0.5
        return bool(total[best] - total[share] <= error)

    return min(share for share in sums if near(share))


def shown(found: Sequence[float]) -> str:
    """Recalls in a line."""
    return " / ".join(f"{recall:.1f}" for recall in found)
