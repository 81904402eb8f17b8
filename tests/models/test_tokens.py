"""An encoder's features become tensors, number for number."""

from dataclasses import replace

import numpy as np
import torch

from sureshot.models.encoders.base import FrameFeatures, stack
from sureshot.models.encoders.experts import pack
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.systems.base import VideoTokens, text_tokens, video_tokens, without_first


def test_texts() -> None:
    features = TinyEncoder().encode_texts(["a red wall", "blue"])
    tokens = text_tokens(features)
    np.testing.assert_array_equal(tokens.sentence.numpy(), features.sentence)
    np.testing.assert_array_equal(tokens.words.numpy(), features.words)
    np.testing.assert_array_equal(tokens.mask.numpy(), features.mask)
    assert tokens.mask.dtype == torch.bool
    assert tokens.mask.sum(1).tolist() == [3, 1]


def test_videos_in_half_precision_become_single() -> None:
    draw = np.random.default_rng(0)

    def some(frames: int) -> FrameFeatures:
        shapes = (frames, 4), (frames, 2, 4), (frames, 3)
        return FrameFeatures(*(draw.normal(size=shape).astype(np.float16) for shape in shapes))

    parts = [some(3), some(1)]
    tokens = video_tokens(stack(parts))
    assert {t.dtype for t in tokens} == {torch.float32, torch.bool}
    for row, part in enumerate(parts):
        count = len(part.frames)
        for name in ("frames", "patches", "backbone"):
            found = getattr(tokens, name)[row].numpy()
            np.testing.assert_array_equal(found[:count], getattr(part, name).astype(np.float32))
            assert not found[count:].any()
    assert tokens.mask.tolist() == [[True] * 3, [True, False, False]]


def test_a_mask_without_the_first_word_keeps_an_only_one() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
    kept = mask.clone()
    assert without_first(mask).tolist() == [
        [False, True, True],
        [True, False, False],
        [False, True, False],
    ]
    assert torch.equal(mask, kept)


def test_experts_come_along_and_are_none_otherwise() -> None:
    draw = np.random.default_rng(0)

    def some(*shape: int) -> np.ndarray:
        return draw.normal(size=shape).astype(np.float16)

    plain = stack([FrameFeatures(some(2, 4), some(2, 1, 4), some(2, 3)) for _ in range(3)])
    bare = video_tokens(plain)
    assert bare.experts.shape == bare.which.shape == (3, 0, 0)
    assert (bare.experts.dtype, bare.which.dtype) == (torch.float32, torch.bool)
    own = [{"audio": some(2, 5)}, {}, {"motion": some(1, 7), "audio": some(1, 5)}]
    experts, which = pack(own, (("audio", 5), ("motion", 7)))
    tokens = video_tokens(replace(plain, experts=experts, which=which))
    np.testing.assert_array_equal(tokens.experts.numpy(), experts)
    np.testing.assert_array_equal(tokens.which.numpy(), which)
    # Cut and joined like every other tensor of a video, and kept by what replaces others.
    parts = [VideoTokens(*(part[rows] for part in tokens)) for rows in (slice(1), slice(1, 3))]
    whole = VideoTokens(*(torch.cat(pair) for pair in zip(*parts, strict=True)))
    assert all(torch.equal(a, b) for a, b in zip(whole, tokens, strict=True))
    other = tokens._replace(frames=2 * tokens.frames)
    assert isinstance(other, VideoTokens) and other.experts is tokens.experts
