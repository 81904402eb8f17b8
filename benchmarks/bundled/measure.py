"""Recall of a network in training, as the product ranks: a video is the mean of its frames."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from benchmarks.bundled.items import Item
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from sureshot.metrics.ranks import text_ranks
from sureshot.models.encoders.base import cosine, mean_pool

_FRAMES, _TEXTS = 256, 512  # at once

Recalls = tuple[float, float, float]


def recalls(network: Network, items: Sequence[Item], states: Sequence[list[State]]) -> Recalls:
    """R@1, R@5 and R@10 in percent of all captions of a gallery."""
    network.eval()
    texts = [caption for item in items for caption in item.captions]
    owner = np.repeat(np.arange(len(items)), [len(item.captions) for item in items])
    with torch.inference_mode():
        queries = [network.texts(texts[i : i + _TEXTS]) for i in range(0, len(texts), _TEXTS)]
        flat = [state for frames in states for state in frames]
        seen = [network.frames(flat[i : i + _FRAMES]) for i in range(0, len(flat), _FRAMES)]
    videos = pooled(torch.cat(seen).numpy(), [len(frames) for frames in states])
    ranks = text_ranks(cosine(torch.cat(queries).numpy(), videos), owner)
    one, five, ten = (100 * float((ranks <= k).mean()) for k in (1, 5, 10))
    return one, five, ten


def pooled(
    frames: Float[np.ndarray, "frames dim"], counts: Sequence[int]
) -> Float[np.ndarray, "videos dim"]:
    """The mean of the frames of each video."""
    parts = np.split(frames, np.cumsum(counts)[:-1])
    return np.concatenate([mean_pool(p[None], np.ones((1, len(p)), bool)) for p in parts])


def shown(found: Recalls) -> str:
    """Recalls in a line."""
    return " / ".join(f"{recall:.1f}" for recall in found)
