"""Poolings that do not look at the text."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sureshot.models.layers.pooling import (
    CrossAttentionPooling,
    SelfAttentionPooling,
    TanhPooling,
    WeightedPooling,
    fast_scores,
    masked_mean,
    mean_of_units,
    scores_direct,
)
from tests.models.layers.weights import load, sample, shake, tensor

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

    def test_gradients_are_finite_beside_padding(self, pooling):
        frames = sample(3, 4, 6).masked_fill(~MASK[..., None], torch.nan).requires_grad_()
        pooling(frames, MASK)[:, 0].sum().backward()
        assert frames.grad.isfinite().all()
        assert frames.grad[MASK].count_nonzero() > 0


def test_clip4clip_mean_pooling(golden):
    told = golden("clip4clip_meanp")
    frames, mask = tensor(told["inputs"]["video"]), tensor(told["inputs"]["video_mask"]).bool()
    text = torch.nn.functional.normalize(tensor(told["inputs"]["text"]), dim=-1)
    for name, real in (("logits", mask), ("logits_all_valid", torch.ones_like(mask))):
        logits = 100 * text @ mean_of_units(frames, real).T
        torch.testing.assert_close(logits, tensor(told["outputs"][name]), rtol=1e-6, atol=1e-7)


def test_self_attention_pooling_is_the_mean_of_what_the_block_says():
    pooling = SelfAttentionPooling(6, heads=3)
    shake(pooling)
    frames = sample(3, 4, 6)
    for i in range(3):
        kept = frames[i : i + 1, MASK[i]]
        full = torch.ones(1, kept.shape[1], dtype=torch.bool)
        expected = pooling.block(kept, full).mean(1)
        torch.testing.assert_close(pooling(frames, MASK)[i : i + 1], expected)


XPOOL = {
    "queries": "cross_attn.q_proj",
    "keys": "cross_attn.k_proj",
    "values": "cross_attn.v_proj",
    "out": "cross_attn.out_proj",
    "linear": "linear_proj",
    "norm_inputs": "layer_norm1",
    "norm_pooled": "layer_norm2",
    "norm_out": "layer_norm3",
}


def pooling_of(**options):
    pooling = CrossAttentionPooling(6, **options).double().eval().requires_grad_(False)
    shake(pooling)
    return pooling


def released_pooling(told, names, **options):
    text, video = tensor(told["inputs"]["text"]), tensor(told["inputs"]["video"])
    pooling = CrossAttentionPooling(text.shape[1], **options)
    load(pooling, told["weights"], names)
    return pooling, text, video, torch.ones(video.shape[:2], dtype=torch.bool)


CLOSE = {"rtol": 1e-6, "atol": 1e-8}


def test_xpool(golden):
    told = golden("xpool_pooling")
    pooling, text, video, mask = released_pooling(told, XPOOL)
    pooled, sims = (tensor(told["outputs"][name]) for name in ("pooled", "sims"))
    torch.testing.assert_close(pooling(text, video, mask), pooled, **CLOSE)
    torch.testing.assert_close(scores_direct(pooling, text, video, mask), sims, **CLOSE)
    fast = fast_scores(pooling.float().eval(), text.float(), video.float(), mask)
    torch.testing.assert_close(fast, sims.float(), rtol=0, atol=1e-5)


NORMS = {"norm_texts": "ln1", "norm_inputs": "ln2", "norm_pooled": "ln3", "norm_out": "ln4"}


@pytest.mark.parametrize(
    ("name", "names", "options"),
    [
        ("duq_head_cam", XPOOL | NORMS, {"separate_norms": True}),
        ("duq_c89_cross_attention", XPOOL, {}),
    ],
)
def test_duq_with_separate_norms_and_at_the_earlier_commit(golden, name, names, options):
    told = golden(name)
    pooling, text, video, mask = released_pooling(told, names, **options)
    torch.testing.assert_close(
        pooling(text, video, mask), tensor(told["outputs"]["pooled"]), **CLOSE
    )


def test_padding_has_no_influence():
    pooling = pooling_of()
    texts, frames = sample(5, 6, dtype=torch.float64), sample(3, 4, 6, dtype=torch.float64)
    spoilt = frames.masked_fill(~MASK[..., None], torch.nan)
    pooled = pooling(texts, frames, MASK)
    assert torch.equal(pooling(texts, spoilt, MASK), pooled)
    wide = torch.cat([spoilt, torch.full((3, 2, 6), torch.inf, dtype=torch.float64)], dim=1)
    wide_mask = torch.cat([MASK, torch.zeros(3, 2, dtype=torch.bool)], dim=1)
    torch.testing.assert_close(pooling(texts, wide, wide_mask), pooled)


def test_dropout_takes_part_in_training_only():
    pooling = CrossAttentionPooling(64, dropout=0.5)
    texts, frames, mask = (
        sample(2, 64),
        sample(3, 4, 64, seed=1),
        torch.ones(3, 4, dtype=torch.bool),
    )
    torch.manual_seed(0)
    assert not torch.equal(pooling(texts, frames, mask), pooling(texts, frames, mask))
    pooling.eval()
    assert torch.equal(pooling(texts, frames, mask), pooling(texts, frames, mask))


@pytest.mark.parametrize("options", [{}, {"separate_norms": True}])
def test_a_paired_video_is_the_one_its_text_sees_among_all(options):
    pooling = pooling_of(**options)
    double = torch.float64
    texts, frames = sample(3, 6, dtype=double), sample(3, 4, 6, seed=1, dtype=double)
    found = pooling.paired(texts, frames, MASK)
    torch.testing.assert_close(found, pooling(texts, frames, MASK).diagonal().T)


def pooling_of_fast_pooling(dim=6, size=0.3, seed=0, **options):
    pooling = CrossAttentionPooling(dim, **options).eval()
    shake(pooling, seed, size)
    return pooling


def exact(pooling, texts, frames, mask):
    """The direct form in double precision."""
    separate = pooling.norm_texts is not None
    double = CrossAttentionPooling(texts.shape[1], separate_norms=separate).double()
    double.load_state_dict(pooling.state_dict())
    double.eval()
    return scores_direct(double, texts.double(), frames.double(), mask).float().detach()


@settings(max_examples=40)
@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([16, 24, 512]),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_agrees_with_the_direct_form(texts, videos, count, dim, size, length, separate_norms, seed):
    # Weights of 512 x 512 at 1.0 make logits of thousands: there the direct form itself is noise.
    size = min(size, 0.05) if dim == 512 else size
    pooling = pooling_of_fast_pooling(dim, size, seed, separate_norms=separate_norms)
    asked, frames = (
        sample(texts, dim, seed=seed),
        length * sample(videos, count, dim, seed=seed + 1),
    )
    mask = sample(videos, count, seed=seed + 2) > 0
    mask[:, seed % count] = True
    torch.testing.assert_close(
        fast_scores(pooling, asked, frames, mask),
        exact(pooling, asked, frames, mask),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize("block", [1, 2, 3, 7, 100])
def test_blocks_do_not_matter(block):
    pooling = pooling_of_fast_pooling(32)
    texts, frames, mask = sample(11, 32), sample(9, 5, 32), sample(9, 5) > 0
    mask[:, 2] = True
    whole = fast_scores(pooling, texts, frames, mask)
    found = fast_scores(pooling, texts, frames, mask, block=block)
    torch.testing.assert_close(found, whole, rtol=0, atol=1e-5)


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
            else fast_scores(pooling, *inputs, mask, block=2)
        )
        (scores * weighing).sum().backward()
        found.append([*(i.grad for i in inputs), *(p.grad.clone() for p in pooling.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-6)
