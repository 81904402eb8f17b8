"""Scores of every caption and every video of a split, by a trained model or by an encoder alone."""

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Integer

from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.metrics.recall import Recall, recall
from sureshot.models.mean_frames import cosine, mean_pool
from sureshot.models.model import Model
from sureshot.models.systems.system import Codes, joined
from sureshot.models.tokens import VideoTokens, stored_tokens, text_tokens, video_tokens
from sureshot.research.features import SplitFeatures

_ITEMS = 256  # texts or videos coded at once
_PAIRS = 4_000_000  # scores worked out at once, so that a full test set fits beside its tokens


def code_texts(
    model: Model, features: SplitFeatures, chosen: Sequence[int], device: str = "cpu"
) -> Codes:
    """Codes of some captions, as the model gives them in evaluation mode."""
    with _frozen(model):
        return joined(
            [
                model.texts(text_tokens(features.text_batch(part), device))
                for part in _parts(chosen, _ITEMS)
            ]
        )


def code_videos(
    model: Model, features: SplitFeatures, chosen: Sequence[int], device: str = "cpu"
) -> Codes:
    """Codes of some videos, as the model gives them in evaluation mode."""
    experts = model.stem.sizes.experts
    with _frozen(model):
        return joined(
            [
                model.videos(video_tokens(features.video_batch(part, experts), device))
                for part in _parts(chosen, _ITEMS)
            ]
        )


def similarity(
    model: Model,
    features: SplitFeatures,
    *,
    captions: Sequence[int] | None = None,
    bank: SplitFeatures | None = None,
    device: str = "cpu",
) -> Float[np.ndarray, "texts videos"]:
    """Raw scores; rows captions, columns videos, higher is better.

    They do not depend on how captions or videos are batched.

    Args:
        model: put into evaluation mode for the time being.
        features: whose videos are the gallery.
        captions: rows of the captions to score; None is all.
        bank: take the captions from here instead, such as the training captions.
        device: where the model is.
    """
    source = bank or features
    chosen = range(len(source.texts)) if captions is None else captions
    videos = code_videos(model, features, range(len(features.videos)), device)
    count = max(1, _PAIRS // max(len(features.videos), 1))
    scores = []
    for part in _parts(chosen, count):
        texts = code_texts(model, source, part, device)
        with _frozen(model):
            scores.append(model.system.similarity(texts, videos).cpu().numpy())
    return np.concatenate(scores)


def stem_videos(model: Model, features: SplitFeatures, device: str = "cpu") -> VideoTokens:
    """Videos as an index of the model keeps them: through its stem, without patches."""
    rows, experts = range(len(features.videos)), model.stem.sizes.experts
    with _frozen(model):
        found = model.stem.videos(video_tokens(features.video_batch(rows, experts), device))
    return stored_tokens(found.frames, found.mask)


def text_measures(
    model: Model,
    features: SplitFeatures,
    *,
    captions: Sequence[int] | None = None,
    device: str = "cpu",
) -> dict[str, Float[np.ndarray, " texts"]]:
    """The uncertainties that a system's paper defines of a text before all videos of a split.

    Args:
        model: put into evaluation mode for the time being.
        features: whose videos are the gallery.
        captions: rows of the captions; None is all.
        device: where the model is.

    Returns:
        By the name of `sureshot.models.systems.system.System.measures`; higher is less sure. Empty
        where the paper defines none.
    """
    chosen = range(len(features.texts)) if captions is None else captions
    videos = code_videos(model, features, range(len(features.videos)), device)
    found: dict[str, list[Float[np.ndarray, " texts"]]] = {}
    for part in _parts(chosen, _ITEMS):
        texts = code_texts(model, features, part, device)
        with _frozen(model):
            measures = model.system.measures(texts, videos)
        for name, values in measures.items():
            if name.startswith("text "):
                found.setdefault(name.removeprefix("text "), []).append(values.cpu().numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def encoder_similarity(
    features: SplitFeatures, *, bank: SplitFeatures | None = None
) -> Float[np.ndarray, "texts videos"]:
    """Scores of the encoder alone: cosines of sentences and mean frames, arguments as above."""
    return cosine(encoder_texts(bank or features), encoder_videos(features))


def encoder_texts(features: SplitFeatures) -> Float[np.ndarray, "texts dim"]:
    """The sentence vector of each caption, at unit length."""
    texts = np.stack([sentence for sentence, _ in features.texts]).astype(np.float32)
    return texts / np.linalg.norm(texts, axis=1, keepdims=True)


def encoder_videos(features: SplitFeatures) -> Float[np.ndarray, "videos dim"]:
    """The mean frame of each video, at unit length."""
    batches = [features.video_batch(part) for part in _parts(range(len(features.videos)), _ITEMS)]
    return np.concatenate([mean_pool(batch.frames, batch.mask) for batch in batches])


def recalls(
    scores: Float[np.ndarray, "texts videos"], owner: Integer[np.ndarray, " texts"]
) -> tuple[Recall, Recall]:
    """Recalls text to video and video to text; ``owner`` is the video of each text."""
    return recall(text_ranks(scores, owner)), recall(video_ranks(scores, owner))


@contextlib.contextmanager
def _frozen(model: Model) -> Iterator[None]:
    """Evaluation mode without gradients, and back to what it was."""
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was)


def _parts(chosen: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (chosen[first : first + size] for first in range(0, len(chosen), size))
