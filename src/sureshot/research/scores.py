"""Scores of every caption and every video of a split, by a trained model or by an encoder alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Integer

from sureshot.datasets.split import Split
from sureshot.errors import ArgumentError, option
from sureshot.metrics.ranks import Recall, recall, text_ranks, video_ranks
from sureshot.metrics.report import CorrectedScores
from sureshot.models.encoders.base import TextFeatures, VideoFeatures, shares
from sureshot.models.load import Scorer
from sureshot.models.losses.uncertainty import evidence, opinion
from sureshot.models.model import frozen
from sureshot.models.scoring import candidate_bonus
from sureshot.models.similarity import Similarity
from sureshot.models.systems.base import video_tokens
from sureshot.models.systems.duq import Duq
from sureshot.research.features import SplitFeatures, caption_features
from sureshot.trust.signals import QueryContext, word_counts

_ITEMS = 256  # texts or videos coded at once
_PAIRS = 4_000_000  # scores worked out at once, so that a full test set fits next to its tokens


def similarity(
    compare: Similarity,
    features: SplitFeatures,
    *,
    captions: Sequence[int] | None = None,
    bank: SplitFeatures | None = None,
) -> Float[np.ndarray, "texts videos"]:
    """Scores, higher is better, however captions or videos are batched.

    Args:
        compare: of a `Scorer`, ``raw`` or, as a search ranks, ``ranking``.
        captions: rows of the captions to score; None is all.
        bank: take the captions from here instead, such as the training captions.
    """
    source = bank or features
    chosen = range(len(source.texts)) if captions is None else captions
    videos = code_videos(compare, features, range(len(features.videos)))
    count = max(1, _PAIRS // max(len(features.videos), 1))
    parts = _parts(chosen, count)
    return np.concatenate(
        [compare.similarity(code_texts(compare, source, part), videos) for part in parts]
    )


def caption_scores(
    scorer: Scorer, captions: Split, features: SplitFeatures, cache: str | Path | None = None
) -> Float[np.ndarray, "captions videos"]:
    """Raw scores of other captions, such as those of training, with the videos of a split."""
    known = caption_features(captions, scorer.encoder, cache=cache)
    return similarity(scorer.raw, features, bank=known)


def ranking(
    scorer: Scorer,
    features: SplitFeatures,
    others: SplitFeatures | None = None,
    *,
    raw: Float[np.ndarray, "texts videos"] | None = None,
) -> Float[np.ndarray, "texts videos"]:
    """The scores that a search ranks by: raw ones, if known ``raw``, minus the hub correction.

    Captions are those of ``others``, if they are given.
    """
    if raw is None:
        return similarity(scorer.ranking, features, bank=others)
    if scorer.bank is None:
        return raw
    videos = code_videos(scorer.ranking, features, range(len(features.videos)))
    return (raw - videos.offsets).astype(raw.dtype)


def background(scorer: Scorer, features: SplitFeatures) -> Float[np.ndarray, " texts"] | None:
    """What each caption scores with the videos of the model's bank; None for one without any."""
    found = [
        scorer.ranking.background(code_texts(scorer.ranking, features, part))
        for part in _parts(range(len(features.texts)), _ITEMS)
    ]
    known = [scores for scores in found if scores is not None]
    return np.concatenate(known) if known else None


def known_of(scorer: Scorer, features: SplitFeatures) -> QueryContext:
    """What a calibration knows of captions besides their scores."""
    texts = features.split.texts()
    return QueryContext(
        background=background(scorer, features),
        words=word_counts(texts),
        common=shares(scorer.encoder.vocabulary, texts),
    )


def stored_videos(scorer: Scorer, features: SplitFeatures) -> VideoFeatures:
    """All videos as a bank keeps them: through the stem, or of an encoder alone the mean frame."""
    rows = range(len(features.videos))
    if scorer.model is None:
        means = code_videos(scorer.raw, features, rows)[:, None]
        return VideoFeatures.of_frames(means, np.ones(means.shape[:2], bool))
    batch = features.video_batch(rows, scorer.raw.experts)
    with frozen(scorer.model):
        tokens = scorer.model.stem.videos(video_tokens(batch, scorer.device))
    return VideoFeatures.of_frames(tokens.frames.cpu().numpy(), tokens.mask.cpu().numpy())


def bank_similarity(
    scorer: Scorer, texts: TextFeatures, features: SplitFeatures
) -> Float[np.ndarray, "texts videos"]:
    """Raw scores, with all videos of a split, of texts as a bank keeps them."""
    videos = code_videos(scorer.raw, features, range(len(features.videos)))
    return scorer.raw.similarity(scorer.stored.texts(texts), videos)


def text_measures(
    scorer: Scorer, features: SplitFeatures
) -> dict[str, Float[np.ndarray, " texts"]]:
    """The uncertainties that a system's paper defines of a text before all videos of a split.

    By the name of `sureshot.models.systems.base.System.measures`; higher is less sure. Empty where
    the paper defines none, and for an encoder alone.
    """
    if scorer.model is None:
        return {}
    videos = code_videos(scorer.raw, features, range(len(features.videos)))
    known: dict[str, list[Float[np.ndarray, " texts"]]] = {}
    for part in _parts(range(len(features.texts)), _ITEMS):
        texts = code_texts(scorer.raw, features, part)
        with frozen(scorer.model):
            measures = scorer.model.system.measures(texts, videos)
        for name, values in measures.items():
            if name.startswith("text "):
                known.setdefault(name.removeprefix("text "), []).append(values.cpu().numpy())
    return {name: np.concatenate(parts) for name, parts in known.items()}


def recalls(
    scores: Float[np.ndarray, "texts videos"], owner: Integer[np.ndarray, " texts"]
) -> tuple[Recall, Recall]:
    """Recalls text to video and video to text; ``owner`` is the video of each text."""
    return recall(text_ranks(scores, owner)), recall(video_ranks(scores, owner))


def code_texts(compare: Similarity, features: SplitFeatures, chosen: Sequence[int]) -> Any:
    """Some captions, as they are compared."""
    parts = _parts(chosen, _ITEMS)
    return compare.join([compare.texts(features.text_batch(part)) for part in parts])


def code_videos(compare: Similarity, features: SplitFeatures, chosen: Sequence[int]) -> Any:
    """Some videos, as they are compared."""
    batches = (features.video_batch(part, compare.experts) for part in _parts(chosen, _ITEMS))
    return compare.join([compare.videos(batch) for batch in batches])


def _parts(chosen: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (chosen[first : first + size] for first in range(0, len(chosen), size))


PRINTED, CANDIDATES = "duq_printed", "duq_candidates"  # the rule as printed, and one that can help


def check_printed(scorer: Scorer) -> Duq:
    """The system of a model that has distances to re-rank by; refuses others."""
    if scorer.model is None or not isinstance(scorer.model.system, Duq):
        raise ArgumentError(
            f"{option('post', PRINTED)} takes similarities and distances of DUQ, and {scorer.name} "
            f"is not DUQ. Take {option('post', CANDIDATES)}, which needs scores alone."
        )
    return scorer.model.system


def printed_scores(
    scorer: Scorer, features: SplitFeatures, gamma: float
) -> tuple[CorrectedScores, CorrectedScores]:
    """The rule as printed: one matrix, its rows read for text to video, its columns for the other.

    Both gammas of the rule are ``gamma``.
    """
    system, parts = check_printed(scorer), []
    videos = code_videos(scorer.raw, features, range(len(features.videos)))
    for chosen in _parts(range(len(features.texts)), _ITEMS):
        texts = code_texts(scorer.raw, features, chosen)
        with frozen(system):
            parts.append(system.printed(texts, videos, gamma).cpu().numpy())
    looks = "looks at the query alone; its rank is the same for every gamma"
    scores = np.concatenate(parts)
    return _both("as printed", looks, (scores, scores), gamma)


def candidate_scores(
    scores: Float[np.ndarray, "texts videos"],
    bank: Float[np.ndarray, "captions videos"],
    gamma: float,
) -> tuple[CorrectedScores, CorrectedScores]:
    r"""Scores with a share of each candidate's uncertainty added, which takes hubs down.

    .. math:: s'_{ij} = s_{ij} + \gamma \, \mathrm{sd}(S^{bank}) \, z(u_j)

    with u the vacuity of ReLU evidence and z its standard score among the candidates. Of a video u
    is taken over the captions of the bank; of a text, the candidate of video to text, over the
    tested videos, for want of a bank of others.

    Args:
        bank: raw scores of captions that are not tested, such as those of training.
    """
    both = _by_candidate(scores, bank, gamma), _by_candidate(scores.T, scores.T, gamma).T
    return _both("by candidates", f"bank: {len(bank)} training captions", both, gamma)


def _both(
    how: str,
    looks: str,
    scores: tuple[Float[np.ndarray, "texts videos"], Float[np.ndarray, "texts videos"]],
    gamma: float,
) -> tuple[CorrectedScores, CorrectedScores]:
    """Scores by which videos and texts are ranked; the former look at less than all queries."""
    name = f"DUQ re-ranking {how}, gamma {gamma:g}"
    texts, videos = f"{name} ({looks})", f"{name} (looks at all test queries)"
    return (
        CorrectedScores(name=texts, direction="t2v", scores=scores[0], gamma=gamma),
        CorrectedScores(name=videos, direction="v2t", scores=scores[1], gamma=gamma),
    )


def _by_candidate(
    scores: Float[np.ndarray, "queries candidates"],
    bank: Float[np.ndarray, "bank candidates"],
    gamma: float,
) -> Float[np.ndarray, "queries candidates"]:
    asked, known = (torch.from_numpy(np.array(one, np.float64)) for one in (scores, bank))
    vacuity = opinion(evidence(known.T)).vacuity
    return (asked + gamma * candidate_bonus(vacuity, known)).numpy()
