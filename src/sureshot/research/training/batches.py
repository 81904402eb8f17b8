"""Which captions are in which batch."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Int

from sureshot.errors import SureshotError

Captions = Literal["one", "all"]


def plan(
    video_of: Sequence[int],
    *,
    batch: int,
    captions: Captions = "one",
    seed: int = 0,
    epoch: int = 0,
) -> list[Int[np.ndarray, " pairs"]]:
    """The batches of an epoch, a pure function of the arguments: a run can go on anywhere.

    No two captions of a batch belong to one video, since to a contrastive loss each would be a
    wrong answer to the other. Sizes differ by one at most, so that no short batch comes last. A
    batch of one pair, which teaches nothing, is left only where the numbers leave no choice.

    Args:
        video_of: number of the video of each caption; those of several sets follow each other.
        batch: most pairs of a batch. Videos with more captions than batches are needed for it
            make the batches smaller.
        captions: ``one`` random caption of each video an epoch, or ``all`` of them.
        seed: number that all draws of the run come from.
        epoch: number of the epoch, from 0.

    Returns:
        Indices into ``video_of``, one array a batch; the number of batches is `count`, always.

    Raises:
        SureshotError: there are no two videos, or ``batch`` is below two.

    Examples:
        >>> [len(part) for part in plan(range(33), batch=32)]
        [17, 16]
    """
    total = count(video_of, batch=batch, captions=captions)
    random = np.random.default_rng((seed, epoch))
    groups = _grouped(video_of)
    random.shuffle(groups)
    if captions == "one":
        groups = [group[random.integers(len(group), size=1)] for group in groups]
    else:
        groups = [random.permutation(group) for group in groups]
    ordered = np.concatenate(groups)
    places = _deal([len(group) for group in groups], total, random)
    order = np.argsort(places, kind="stable")
    return np.split(ordered[order], np.cumsum(np.bincount(places, minlength=total))[:-1])


def count(video_of: Sequence[int], *, batch: int, captions: Captions = "one") -> int:
    """How many batches an epoch has.

    Raises:
        SureshotError: there are no two videos, or ``batch`` is below two.
    """
    sizes = np.unique(np.asarray(video_of, np.int64), return_counts=True)[1]
    if len(sizes) < 2:
        raise SureshotError(
            f"Training needs at least two videos with a caption; there is {len(sizes)}."
        )
    if batch < 2:
        raise SureshotError(
            f"training.batch is {batch}; a pair is learned from others, so 2 is least."
        )
    if captions == "one":
        return -(-len(sizes) // batch)
    return int(max(-(-sizes.sum() // batch), sizes.max()))


def _grouped(video_of: Sequence[int]) -> list[Int[np.ndarray, " captions"]]:
    """The captions of each video."""
    numbers = np.asarray(video_of, np.int64)
    order = np.argsort(numbers, kind="stable")
    edges = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(order, edges)


def _deal(
    sizes: Sequence[int], total: int, random: np.random.Generator
) -> Int[np.ndarray, " captions"]:
    """The batch of each caption: dealt like cards, never one batch twice to a video.

    The deck is one shuffled round of all batches after another. Where a video's captions reach into
    the next round, the batches it already has are put back further down.
    """
    deck: list[int] = []
    dealt: list[int] = []
    for size in sizes:
        if len(deck) < size:
            left = set(deck)
            fresh = [at for at in random.permutation(total).tolist() if at not in left]
            needed = size - len(deck)
            later = np.array(fresh[needed:] + deck, np.int64)
            deck += fresh[:needed] + random.permutation(later).tolist()
        dealt += deck[:size]
        deck = deck[size:]
    return np.array(dealt, np.int64)
