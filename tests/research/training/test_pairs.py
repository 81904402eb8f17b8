"""Pairs of features: each caption beside its own video, whichever set it comes from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sureshot.datasets import Caption, Item, Split
from sureshot.errors import SureshotError
from sureshot.models.encoders.base import FrameFeatures
from sureshot.models.systems.base import Sizes, text_tokens, video_tokens
from sureshot.research.features import SplitFeatures
from sureshot.research.training.data import FeaturePairs, Pairs

DIM, CHANNELS = 4, 3


def features(lengths, captions, seed, fingerprint="f"):
    """A set whose videos have these numbers of frames; captions name their video."""
    random = np.random.default_rng(seed)

    def numbers(*shape):
        return random.normal(size=shape).astype(np.float16)

    split = Split(
        "pairs",
        "train",
        f"set {seed}",
        tuple(Item(f"s{seed}v{row}", Path(f"{row}.mp4")) for row in range(len(lengths))),
        tuple(Caption(f"caption {row}", video) for row, video in enumerate(captions)),
    )
    videos = [
        FrameFeatures(numbers(n, DIM), numbers(n, 9, DIM), numbers(n, CHANNELS)) for n in lengths
    ]
    texts = [(numbers(DIM), numbers(1 + seed, DIM)) for _ in captions]
    return SplitFeatures(split, "tiny", fingerprint, 12, videos, texts)


VIDEOS, PHOTOS = features([3, 1, 5], [0, 0, 1, 2], 1), features([1, 1], [1, 0, 1], 2)


def test_sets_follow_each_other_and_their_videos_stay_apart():
    pairs = FeaturePairs([VIDEOS, PHOTOS])
    assert isinstance(pairs, Pairs)
    assert pairs.video_of == [0, 0, 1, 2, 4, 3, 4]
    assert pairs.sizes == Sizes(DIM, CHANNELS)
    assert pairs.name(1) == "s1v0 'caption 1'"
    assert pairs.name(5) == "s2v0 'caption 1'"


def test_tokens_of_one_set_are_those_of_its_features():
    pairs, rows = FeaturePairs([VIDEOS]), [3, 0, 1]
    for found, expected in zip(
        pairs.texts(rows), text_tokens(VIDEOS.text_batch(rows)), strict=True
    ):
        assert torch.equal(found, expected) and found.dtype == expected.dtype
    owners = [VIDEOS.split.captions[row].video for row in rows]
    expected = video_tokens(VIDEOS.video_batch(owners))
    for found, other in zip(pairs.videos(rows), expected, strict=True):
        assert torch.equal(found, other)


def test_captions_of_two_sets_are_padded_to_the_longest():
    tokens = FeaturePairs([VIDEOS, PHOTOS]).texts([5, 2])
    assert tokens.words.shape == (2, 3, DIM)
    assert tokens.mask.tolist() == [[True, True, True], [True, True, False]]
    np.testing.assert_array_equal(tokens.words[1, :2].numpy(), VIDEOS.texts[2][1])
    assert not tokens.words[1, 2].any()


def test_a_batch_may_mix_videos_and_photos():
    tokens = FeaturePairs([VIDEOS, PHOTOS]).videos([3, 4])
    assert tokens.frames.shape == (2, 5, DIM)
    assert tokens.mask.sum(1).tolist() == [5, 1]
    np.testing.assert_array_equal(tokens.frames[1, 0].numpy(), PHOTOS.videos[1].frames[0])
    assert not tokens.frames[1, 1:].any() and not tokens.patches[1, 1:].any()


def test_patches_can_stay_behind():
    found, whole = (FeaturePairs([VIDEOS], patches=some).videos([0, 3]) for some in (False, True))
    assert found.patches.shape == (2, 5, 0, DIM)
    assert torch.equal(found.frames, whole.frames) and torch.equal(found.backbone, whole.backbone)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["frames", "patches", "backbone"])
def test_a_feature_that_is_not_finite_is_refused_by_the_id_of_its_video(value, field):
    broken = features([3, 1, 5], [0, 0, 1, 2], 1)
    getattr(broken.videos[1], field).flat[0] = value
    with pytest.raises(SureshotError, match="the video s1v1 hold a number that is not finite"):
        FeaturePairs([PHOTOS, broken])


@pytest.mark.parametrize("part", [0, 1])
def test_so_is_a_caption_by_its_text(part):
    broken = features([3, 1, 5], [0, 0, 1, 2], 1)
    broken.texts[2][part].flat[0] = np.nan
    with pytest.raises(SureshotError, match="caption of s1v1 'caption 2' hold a number that is"):
        FeaturePairs([broken])


def test_sets_of_two_encoders_are_refused():
    with pytest.raises(SureshotError, match="must share one encoder; they have tiny, tiny"):
        FeaturePairs([VIDEOS, features([1], [0], 3, "other")])
    with pytest.raises(SureshotError, match="they have none"):
        FeaturePairs([])


def test_experts_go_with_their_videos_whichever_set_they_are_of():
    draw = np.random.default_rng(0)
    given = [
        {"s1v0": {"audio": draw.normal(size=(2, 3))}, "s1v2": {"motion": draw.normal(size=(1, 5))}},
        {"s2v1": {"audio": draw.normal(size=(1, 3)), "motion": draw.normal(size=(2, 5))}},
    ]
    sets = [replace(part, experts=own) for part, own in zip((VIDEOS, PHOTOS), given, strict=True)]
    pairs = FeaturePairs([*sets, features([2], [0], 3)])
    assert pairs.sizes == Sizes(DIM, CHANNELS, (("audio", 3), ("motion", 5)))
    tokens = pairs.videos([1, 2, 3, 4, 7])  # the videos s1v0, s1v1, s1v2, s2v1, s3v0
    assert tokens.which.sum(1).tolist() == [[2, 0], [0, 0], [0, 1], [1, 2], [0, 0]]
    for row, own in ((0, given[0]["s1v0"]), (2, given[0]["s1v2"]), (3, given[1]["s2v1"])):
        for number, (name, size) in enumerate(pairs.sizes.experts):
            found = tokens.experts[row, tokens.which[row, :, number], :size].numpy()
            np.testing.assert_allclose(found, own.get(name, np.zeros((0, size))), rtol=1e-6)


def test_a_batch_of_a_set_has_the_experts_that_are_asked_for():
    rows = np.arange(6.0).reshape(2, 3)
    part = replace(VIDEOS, experts={"s1v1": {"audio": rows}, "s1v2": {"smell": rows}})
    batch = part.video_batch([2, 1], (("audio", 3),))
    assert batch.which.tolist() == [[[False], [False]], [[True], [True]]]
    np.testing.assert_array_equal(batch.experts[1], rows)
    assert part.video_batch([2, 1]).experts.shape == (2, 0, 0)
