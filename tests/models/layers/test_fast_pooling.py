"""Fast text-conditioned pooling: the direct form's scores, whatever the weights and blocks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.errors import SureshotError
from sureshot.models.layers.pooling import (
    CrossAttentionPooling,
    PooledVideos,
    fast_scores,
    precompute,
    scores_direct,
)
from tests.models.layers.test_cross_attention import MASK, XPOOL, released_pooling
from tests.models.layers.weights import sample, shake, tensor


def pooling_of(dim=6, size=0.3, seed=0, **options):
    pooling = CrossAttentionPooling(dim, **options).eval()
    shake(pooling, seed, size)
    return pooling


def exact(pooling, texts, frames, mask):
    """The direct form in double precision."""
    double = CrossAttentionPooling(
        texts.shape[1], heads=pooling.heads, separate_norms=pooling.norm_texts is not None
    ).double()
    double.load_state_dict(pooling.state_dict())
    double.eval()
    return scores_direct(double, texts.double(), frames.double(), mask).float().detach()


def fast(pooling, texts, frames, mask, **options):
    return fast_scores(pooling, texts, precompute(pooling, frames, mask), **options)


@settings(max_examples=40)
@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([(16, 1), (16, 2), (24, 3), (512, 1)]),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_agrees_with_the_direct_form(
    texts, videos, count, shape, size, length, separate_norms, seed
):
    dim, heads = shape
    # Weights of 512 x 512 at 1.0 make logits of thousands: there the direct form itself is noise.
    size = min(size, 0.05) if dim == 512 else size
    pooling = pooling_of(dim, size, seed, heads=heads, separate_norms=separate_norms)
    asked, frames = (
        sample(texts, dim, seed=seed),
        length * sample(videos, count, dim, seed=seed + 1),
    )
    mask = sample(videos, count, seed=seed + 2) > 0
    mask[:, seed % count] = True
    torch.testing.assert_close(
        fast(pooling, asked, frames, mask),
        exact(pooling, asked, frames, mask),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize(("heads", "suffix"), [(1, ""), (2, "_heads2")])
def test_xpool(golden, heads, suffix):
    told = golden("xpool_pooling")
    pooling, text, video, mask = released_pooling(told, XPOOL, heads=heads)
    found = fast(pooling.float(), text.float(), video.float(), mask)
    expected = tensor(told["outputs"][f"sims{suffix}"], torch.float32)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_a_pooling_in_double_precision_is_stored_in_single(golden):
    told = golden("xpool_pooling")
    pooling, text, video, mask = released_pooling(told, XPOOL)
    videos = precompute(pooling, video, mask)
    assert {getattr(videos, name).dtype for name in PooledVideos.__slots__} == {torch.float32}
    expected = tensor(told["outputs"]["sims"], torch.float32)
    torch.testing.assert_close(fast_scores(pooling, text, videos), expected, rtol=0, atol=1e-5)


def test_frames_that_are_all_the_same():
    pooling = pooling_of()
    frames = sample(3, 1, 6).expand(3, 4, 6)
    texts = sample(5, 6)
    found = fast(pooling, texts, frames, MASK)
    torch.testing.assert_close(found, exact(pooling, texts, frames, MASK), rtol=0, atol=1e-5)
    torch.testing.assert_close(found, fast(pooling, texts, frames[:, :1], MASK[:, :1] | True))


@pytest.mark.parametrize("small", ["out", "norm_pooled"])
def test_sums_so_small_that_the_norms_do_not_bring_them_to_full_size(small):
    pooling = pooling_of()
    with torch.no_grad():
        for weight in getattr(pooling, small).parameters():
            weight *= 0.003
    texts, frames = sample(5, 6), sample(3, 4, 6)
    found = fast(pooling, texts, frames, MASK)
    torch.testing.assert_close(found, exact(pooling, texts, frames, MASK), rtol=0, atol=1e-5)


def test_a_frame_of_zeros_and_a_text_of_zeros():
    pooling = pooling_of()
    texts, frames = sample(2, 6), sample(3, 4, 6)
    texts[0] = 0
    frames[0] = 0
    found = fast(pooling, texts, frames, MASK)
    assert found[0].tolist() == [0.0, 0.0, 0.0]
    torch.testing.assert_close(found, exact(pooling, texts, frames, MASK), rtol=0, atol=1e-5)


def test_a_video_pooled_to_nothing_scores_zero():
    pooling = pooling_of()
    torch.nn.init.zeros_(pooling.norm_out.weight)
    torch.nn.init.zeros_(pooling.norm_out.bias)
    assert fast(pooling, sample(5, 6), sample(3, 4, 6), MASK).count_nonzero() == 0


def test_scores_keep_to_their_range():
    pooling = pooling_of(16)
    scores = fast(pooling, sample(200, 16), sample(50, 3, 16), torch.ones(50, 3, dtype=torch.bool))
    assert scores.abs().max() <= 1 + 1e-6
    assert scores.min() < 0 < scores.max()


def test_padding_has_no_influence():
    pooling = pooling_of(heads=2)
    texts, frames = sample(5, 6), sample(3, 4, 6)
    spoilt = frames.masked_fill(~MASK[..., None], torch.nan)
    found = fast(pooling, texts, frames, MASK)
    assert torch.equal(fast(pooling, texts, spoilt, MASK), found)
    wide = torch.cat([spoilt, torch.full((3, 2, 6), torch.inf)], dim=1)
    wide_mask = torch.cat([MASK, torch.zeros(3, 2, dtype=torch.bool)], dim=1)
    torch.testing.assert_close(fast(pooling, texts, wide, wide_mask), found, rtol=0, atol=1e-5)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 100])
def test_blocks_do_not_matter(block):
    pooling = pooling_of(32)
    texts, frames, mask = sample(11, 32), sample(9, 5, 32), sample(9, 5) > 0
    mask[:, 2] = True
    whole = fast(pooling, texts, frames, mask)
    videos = precompute(pooling, frames, mask, block=block)
    found = fast_scores(pooling, texts, videos, block=block)
    torch.testing.assert_close(found, whole, rtol=0, atol=1e-5)


def test_neither_the_order_nor_the_company_of_texts_and_videos_matters():
    pooling = pooling_of(32)
    texts, frames, mask = sample(11, 32), sample(9, 5, 32), torch.ones(9, 5, dtype=torch.bool)
    whole = fast(pooling, texts, frames, mask)
    back = fast(pooling, texts.flip(0), frames.flip(0), mask).flip(0, 1)
    torch.testing.assert_close(back, whole, rtol=0, atol=1e-5)
    alone = fast(pooling, texts[4:5], frames[7:8], mask[7:8])
    torch.testing.assert_close(alone, whole[4:5, 7:8], rtol=0, atol=1e-5)


def test_the_same_call_twice_gives_the_same_bits():
    pooling = pooling_of(32)
    texts, frames, mask = sample(11, 32), sample(9, 5, 32), torch.ones(9, 5, dtype=torch.bool)
    assert torch.equal(fast(pooling, texts, frames, mask), fast(pooling, texts, frames, mask))


def test_nothing_of_either_gives_nothing():
    pooling = pooling_of()
    texts, frames = sample(5, 6), sample(3, 4, 6)
    assert fast(pooling, texts[:0], frames, MASK).shape == (0, 3)
    assert fast(pooling, texts, frames[:0], MASK[:0]).shape == (5, 0)


def test_pooled_videos_can_be_cut_and_joined():
    pooling = pooling_of()
    texts, frames = sample(5, 6), sample(3, 4, 6)
    videos = precompute(pooling, frames, MASK)
    assert len(videos) == 3
    assert len(videos[1:]) == 2
    joined = PooledVideos.joined([videos[2:], videos[:2]])
    torch.testing.assert_close(
        fast_scores(pooling, texts, joined),
        fast_scores(pooling, texts, videos)[:, [2, 0, 1]],
        rtol=0,
        atol=1e-5,
    )


def test_joining_nothing_or_different_numbers_of_frames_is_refused():
    pooling = pooling_of()
    one = precompute(pooling, sample(1, 4, 6), MASK[:1])
    other = precompute(pooling, sample(1, 3, 6), MASK[:1, :3])
    with pytest.raises(SureshotError, match=r"Pooled videos of \[3, 4\] frames cannot be joined"):
        PooledVideos.joined([one, other])
    with pytest.raises(SureshotError, match="at least one part"):
        PooledVideos.joined([])


def test_training_with_dropout_is_refused_and_without_is_not():
    pooling = pooling_of()
    videos = precompute(pooling, sample(3, 4, 6), MASK)
    pooling.train()
    with pytest.raises(SureshotError, match="call its eval"):
        precompute(pooling, sample(3, 4, 6), MASK)
    with pytest.raises(SureshotError, match="scores_direct"):
        fast_scores(pooling, sample(5, 6), videos)
    without = pooling_of(dropout=0.0).train()
    fast(without, sample(5, 6), sample(3, 4, 6), MASK)


def test_gradients_are_those_of_the_direct_form() -> None:
    torch.manual_seed(0)
    pooling = CrossAttentionPooling(16, dropout=0.0)
    with torch.no_grad():
        for weight in pooling.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    texts, frames = torch.randn(5, 16), torch.randn(4, 3, 16)
    mask = torch.tensor([[True] * 3, [True, True, False], [True, False, False], [True] * 3])
    weighing = torch.randn(5, 4)
    found = []
    for direct in (True, False):
        pooling.zero_grad()
        inputs = texts.clone().requires_grad_(), frames.clone().requires_grad_()
        scores = (
            scores_direct(pooling, *inputs, mask)
            if direct
            else fast_scores(
                pooling, inputs[0], precompute(pooling, inputs[1], mask, block=2), block=3
            )
        )
        (scores * weighing).sum().backward()
        found.append([*(i.grad for i in inputs), *(p.grad.clone() for p in pooling.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-6)
