"""Poolings that do not look at the text."""

import math

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.layers.pooling import (
    SelfAttentionPooling,
    TanhPooling,
    WeightedPooling,
    masked_mean,
    mean_of_units,
    token_shares,
)
from tests.models.layers.weights import sample, shake, tensor

MASK = torch.tensor([[True] * 4, [True, False, True, False], [False, True, False, False]])


def poolings():
    torch.manual_seed(0)
    learned = [WeightedPooling(6), TanhPooling(6, 4), SelfAttentionPooling(6, heads=2)]
    for pooling in learned:
        shake(pooling)
    return [mean_of_units, masked_mean, *learned]


@pytest.mark.parametrize("pooling", poolings())
class TestEvery:
    def test_padding_has_no_influence(self, pooling):
        frames = sample(3, 4, 6)
        pooled = pooling(frames, MASK)
        assert pooled.shape == (3, 6)
        spoilt = frames.masked_fill(~MASK[..., None], torch.nan)
        assert torch.equal(pooling(spoilt, MASK), pooled)
        wide = torch.cat([spoilt, torch.full((3, 2, 6), torch.inf)], dim=1)
        wide_mask = torch.cat([MASK, torch.zeros(3, 2, dtype=torch.bool)], dim=1)
        torch.testing.assert_close(pooling(wide, wide_mask), pooled)

    def test_videos_do_not_see_each_other(self, pooling):
        frames = sample(3, 4, 6)
        alone = torch.cat([pooling(frames[i : i + 1], MASK[i : i + 1]) for i in range(3)])
        torch.testing.assert_close(pooling(frames, MASK), alone)

    def test_the_order_of_frames_does_not_matter(self, pooling):
        frames = sample(3, 4, 6)
        order = [2, 0, 3, 1]
        torch.testing.assert_close(pooling(frames[:, order], MASK[:, order]), pooling(frames, MASK))

    def test_gradients_are_finite_beside_padding(self, pooling):
        frames = sample(3, 4, 6).masked_fill(~MASK[..., None], torch.nan).requires_grad_()
        pooling(frames, MASK)[:, 0].sum().backward()
        assert frames.grad.isfinite().all()
        assert frames.grad[MASK].count_nonzero() > 0


def test_mean_of_units_agrees_with_one_video_at_a_time():
    frames = sample(3, 4, 6, dtype=torch.float64)
    for video, real, found in zip(frames, MASK, mean_of_units(frames, MASK), strict=True):
        units = [f / math.sqrt(f @ f) for f, there in zip(video, real, strict=True) if there]
        total = sum(units)
        torch.testing.assert_close(found, total / math.sqrt(total @ total))


def test_clip4clip_mean_pooling(golden):
    told = golden("clip4clip_meanp")
    frames, mask = tensor(told["inputs"]["video"]), tensor(told["inputs"]["video_mask"]).bool()
    text = torch.nn.functional.normalize(tensor(told["inputs"]["text"]), dim=-1)
    for name, real in (("logits", mask), ("logits_all_valid", torch.ones_like(mask))):
        logits = 100 * text @ mean_of_units(frames, real).T
        torch.testing.assert_close(logits, tensor(told["outputs"][name]), rtol=1e-6, atol=1e-7)


def test_a_video_without_frames_and_one_whose_frames_cancel_are_zero():
    frames = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [-2.0, -4.0]]])
    mask = torch.tensor([[False, False], [True, True]])
    assert mean_of_units(frames, mask).abs().max() < 1e-6
    assert masked_mean(frames, mask)[0].count_nonzero() == 0


def test_weighted_pooling_agrees_with_one_frame_at_a_time():
    pooling = WeightedPooling(6).double()
    shake(pooling)
    pooling.requires_grad_(False)
    first, last = pooling.worth[0], pooling.worth[2]
    frames = sample(3, 4, 6, dtype=torch.float64)
    assert first.weight.shape == (12, 6)
    for video, real, found in zip(frames, MASK, pooling(frames, MASK), strict=True):
        kept = [f for f, there in zip(video, real, strict=True) if there]
        worth = [
            math.exp(last.weight[0] @ (first.weight @ f + first.bias).clamp(min=0) + last.bias[0])
            for f in kept
        ]
        expected = sum(w / sum(worth) * f for w, f in zip(worth, kept, strict=True))
        torch.testing.assert_close(found, expected)


def test_shares_survive_worths_that_would_overflow():
    tokens = torch.tensor([[[1000.0], [1000.0], [2000.0]]])
    mask = torch.tensor([[True, True, False]])
    assert token_shares(torch.nn.Identity(), tokens, mask).tolist() == [[0.5, 0.5, 0.0]]


def test_self_attention_pooling_is_the_mean_of_what_the_block_says():
    pooling = SelfAttentionPooling(6, heads=3)
    shake(pooling)
    frames = sample(3, 4, 6)
    for i in range(3):
        kept = frames[i : i + 1, MASK[i]]
        full = torch.ones(1, kept.shape[1], dtype=torch.bool)
        expected = pooling.block(kept, full).mean(1)
        torch.testing.assert_close(pooling(frames, MASK)[i : i + 1], expected)


def test_a_frame_alone_is_what_is_pooled():
    frames = sample(1, 1, 6)
    one = torch.ones(1, 1, dtype=torch.bool)
    torch.testing.assert_close(WeightedPooling(6)(frames, one), frames[:, 0])


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(SureshotError, match="do not divide"):
        SelfAttentionPooling(6, heads=4)


def test_tanh_pooling_starts_without_biases_and_of_the_right_size():
    torch.manual_seed(0)
    first, _, last = TanhPooling(64, 128).worth
    assert first.bias is None
    assert last.bias is None
    bound = (6 / (64 + 128)) ** 0.5
    assert 0.98 * bound < first.weight.abs().max() <= bound
