"""The bank of a trained model.

A hub correction, chosen on validation videos and kept only where it helps, and videos of several
sources, which tell queries that a library answers from others.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Integer

from sureshot.datasets import Split
from sureshot.metrics.hubs import nearest_mean
from sureshot.metrics.intervals import Interval, interval, mean_of
from sureshot.metrics.ranks import text_ranks
from sureshot.models.encoders import Encoder, TextFeatures
from sureshot.models.encoders.base import padded
from sureshot.models.hub_bank import Bank
from sureshot.models.huggingface import BANK
from sureshot.models.load import Scorer, load
from sureshot.research.features import SplitFeatures
from sureshot.research.scores import bank_similarity, similarity, stored_videos

VIDEOS = 512  # from elsewhere; four times as many tell absent queries a little better
CAPTIONS, K = 512, 16  # four times as many gain a few tenths more, see LOG.md
WEIGHTS = (0.25, 0.5, 0.75, 1.0)
_RESAMPLES = 1000

# Scores of captions with the videos of a gallery, those of the bank's captions with the same
# videos, and the column of the video of each caption.
Compared = tuple[
    Float[np.ndarray, "texts videos"],
    Float[np.ndarray, "captions videos"],
    Integer[np.ndarray, " texts"],
]


def fit_hub_bank(
    scorer: Scorer,
    splits: Sequence[Split],
    galleries: Sequence[SplitFeatures],
    sets: Sequence[SplitFeatures] = (),
    seed: int = 0,
) -> tuple[Bank | None, str]:
    """The bank of a model, None if there is nothing to keep, and a line that says what was found.

    The captions are drawn from the training set, one a video; see `choose_weight` for the weight.

    Args:
        splits: data sets that the model was trained on.
        galleries: validation videos.
        sets: training videos. Of several data sets the bank keeps some, of one none: a library of
            the same kind would look as far from a query as what is elsewhere.
    """
    rng = np.random.default_rng(seed)
    words = scorer.model is not None and scorer.model.system.reads_words
    texts = encode_captions(scorer.require_searchable(), draw_captions(splits, rng), words)
    compared = [
        (similarity(scorer.raw, val), bank_similarity(scorer, texts, val), val.split.owner())
        for val in galleries
    ]
    weight, gain = choose_weight(compared, rng)
    count = sum(len(val.videos) for val in galleries)
    found = (
        f"{gain.value:+.1f} of R@1 + R@5 + R@10 on {count} validation videos "
        f"({gain.low:+.1f} to {gain.high:+.1f})"
    )
    frames, mask, scores = _reference(scorer, texts, sets, rng)
    none = f"no hub correction: the best one gives {found}"
    if weight is None and not len(mask):
        return None, none
    bank = Bank(
        texts=texts,
        k=K,
        weight=weight or 0.0,
        frames=frames,
        mask=mask,
        corrections=(weight or 0.0) * nearest_mean(scores, K) if len(mask) else np.zeros(0),
        model=scorer.fingerprint,
        source=" and ".join(split.title() for split in splits),
    )
    kept = f"{none}; {len(mask)} videos are kept"
    return bank, kept if weight is None else f"{bank.title}: {found}"


def save(
    folder: Path,
    splits: Sequence[Split],
    val: SplitFeatures,
    sets: Sequence[SplitFeatures] = (),
    seed: int = 0,
    device: str | None = None,
) -> str:
    """Give a checkpoint its bank, and say so; see `fit_hub_bank`.

    A model that cannot be searched with gets none.
    """
    (folder / BANK).unlink(missing_ok=True)  # of a run that went on
    scorer = load(folder, device)
    if scorer.searchable is None or len(val.split.items) < 2:  # of one video nothing is learned
        return ""
    bank, found = fit_hub_bank(scorer, splits, [val], sets, seed)
    if bank is not None:
        bank.save(folder)
    return found


def choose_weight(
    galleries: Sequence[Compared], rng: np.random.Generator
) -> tuple[float | None, Interval]:
    """The weight of a correction that rankings gain by, and the gain.

    Of four weights the one with the best R@1 + R@5 + R@10, text to video, of all captions of all
    galleries. None unless the lower end of the 95 % interval of its gain, over resampled videos,
    is above 0.
    """
    first, owners = 0, []
    gains: dict[float, list[np.ndarray]] = {weight: [] for weight in WEIGHTS}
    for raw, known, own in galleries:
        owners.append(own + first)
        first += raw.shape[1]
        hubs, hits = nearest_mean(known, K), _hits(raw, own)
        for weight, gain in gains.items():
            gain.append(_hits(raw - weight * hubs, own) - hits)
    gained = {weight: np.concatenate(gain) for weight, gain in gains.items()}
    best = max(WEIGHTS, key=lambda weight: gained[weight].mean())
    found = interval(mean_of(gained[best]), np.concatenate(owners), rng, resamples=_RESAMPLES)
    return best if found.low > 0 else None, found


def draw_captions(splits: Sequence[Split], rng: np.random.Generator) -> list[str]:
    """Captions of as many different videos, one each, no more of one set than its share."""
    rows = [(split, own) for split in splits for own in split.by_video() if len(own)]
    chosen = rng.permutation(len(rows))[:CAPTIONS]
    return [
        split.captions[own[int(rng.integers(len(own)))]].text
        for split, own in (rows[place] for place in chosen)
    ]


def _reference(
    scorer: Scorer, texts: TextFeatures, sets: Sequence[SplitFeatures], rng: np.random.Generator
) -> tuple[
    Float[np.ndarray, "videos frames dim"],
    Bool[np.ndarray, "videos frames"],
    Float[np.ndarray, "texts videos"],
]:
    """Videos of all sets alike, as an index keeps them in 16 bits, and their scores with texts."""
    if len(sets) < 2:
        none = np.zeros((0, 1, texts.sentence.shape[1]), np.float32)
        return none, np.zeros((0, 1), bool), np.zeros((len(texts.mask), 0))
    kept, scores = [], []
    for some in sets:
        count = len(some.videos)
        rows = np.sort(rng.permutation(count)[: VIDEOS // len(sets)]).tolist()
        chosen = replace(
            some,
            split=some.split.part({some.split.items[row].id for row in rows}),
            videos=[some.videos[row] for row in rows],
        )
        kept.append(stored_videos(scorer, chosen))
        scores.append(bank_similarity(scorer, texts, chosen))
    every = ((one, real) for v in kept for one, real in zip(v.frames, v.mask, strict=True))
    frames, mask = padded([one[real] for one, real in every])
    return _halved(frames), mask, np.concatenate(scores, axis=1)


def _hits(
    scores: Float[np.ndarray, "texts videos"], owner: Integer[np.ndarray, " texts"]
) -> Float[np.ndarray, " texts"]:
    """Of each caption 100 for each of R@1, R@5 and R@10 that counts it."""
    ranks = text_ranks(scores, owner)
    return 100.0 * (ranks[:, None] <= np.array([1, 5, 10])).sum(1)


def encode_captions(encoder: Encoder, captions: Sequence[str], words: bool) -> TextFeatures:
    """All captions in one value as a bank keeps it: 16 bits, words only where they are read."""
    found, most = encoder.encode_texts(captions), None if words else 0
    return TextFeatures(
        sentence=_halved(found.sentence),
        words=_halved(found.words[:, :most]),
        mask=found.mask[:, :most],
        truncated=found.truncated,
    )


def _halved(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return values.astype(np.float16).astype(np.float32)
