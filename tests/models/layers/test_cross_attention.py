"""Text-conditioned pooling: against one pair at a time, and against X-Pool's and DUQ's numbers."""

import math

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.layers.pooling import CrossAttentionPooling, scores_direct
from tests.models.layers.weights import load, sample, shake, tensor

MASK = torch.tensor([[True] * 4, [True, False, True, False], [False, True, False, False]])

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


def norm(vector, layer):
    centred = vector - vector.mean()
    return centred / math.sqrt(centred.square().mean() + layer.eps) * layer.weight + layer.bias


def project(vector, layer):
    return layer.weight @ vector + layer.bias


def one_pair(pooling, text, frames):
    """A video as one text sees it, one frame and one head at a time."""
    frames = [norm(frame, pooling.norm_inputs) for frame in frames]
    query = project(norm(text, pooling.norm_texts or pooling.norm_inputs), pooling.queries)
    width = len(text) // pooling.heads
    mixed = []
    for head in range(pooling.heads):
        at = slice(head * width, (head + 1) * width)
        logits = [
            (query[at] @ project(frame, pooling.keys)[at]).item() / math.sqrt(width)
            for frame in frames
        ]
        total = sum(math.exp(logit) for logit in logits)
        values = [project(frame, pooling.values)[at] for frame in frames]
        mixed.append(sum(math.exp(x) / total * v for x, v in zip(logits, values, strict=True)))
    pooled = norm(project(torch.cat(mixed), pooling.out), pooling.norm_pooled)
    return norm(pooled + project(pooled, pooling.linear), pooling.norm_out)


def pooling_of(**options):
    pooling = CrossAttentionPooling(6, **options).double().eval().requires_grad_(False)
    shake(pooling)
    return pooling


@pytest.mark.parametrize("options", [{}, {"heads": 3}, {"separate_norms": True, "heads": 2}])
def test_agrees_with_one_pair_at_a_time(options):
    pooling = pooling_of(**options)
    texts, frames = sample(5, 6, dtype=torch.float64), sample(3, 4, 6, dtype=torch.float64)
    pooled, scores = pooling(texts, frames, MASK), scores_direct(pooling, texts, frames, MASK)
    assert pooled.shape == (3, 5, 6)
    for i in range(5):
        for j in range(3):
            expected = one_pair(pooling, texts[i], frames[j][MASK[j]])
            torch.testing.assert_close(pooled[j, i], expected)
            cosine = texts[i] @ expected / math.sqrt(texts[i] @ texts[i] * (expected @ expected))
            torch.testing.assert_close(scores[i, j], cosine)


def released_pooling(told, names, **options):
    text, video = tensor(told["inputs"]["text"]), tensor(told["inputs"]["video"])
    pooling = CrossAttentionPooling(text.shape[1], **options)
    load(pooling, told["weights"], names)
    return pooling, text, video, torch.ones(video.shape[:2], dtype=torch.bool)


@pytest.mark.parametrize(("heads", "suffix"), [(1, ""), (2, "_heads2")])
def test_xpool(golden, heads, suffix):
    told = golden("xpool_pooling")
    pooling, text, video, mask = released_pooling(told, XPOOL, heads=heads)
    torch.testing.assert_close(
        pooling(text, video, mask), tensor(told["outputs"][f"pooled{suffix}"]), rtol=1e-6, atol=1e-8
    )
    torch.testing.assert_close(
        scores_direct(pooling, text, video, mask),
        tensor(told["outputs"][f"sims{suffix}"]),
        rtol=1e-6,
        atol=1e-8,
    )


def test_xpool_before_training(golden):
    told = golden("xpool_pooling")
    text, video = tensor(told["inputs"]["text"]), tensor(told["inputs"]["video"])
    mask = torch.ones(video.shape[:2], dtype=torch.bool)
    untrained = CrossAttentionPooling(text.shape[1]).double().eval()
    found = scores_direct(untrained, text, video, mask)
    torch.testing.assert_close(
        found, tensor(told["outputs"]["sims_identity_init"]), rtol=1e-6, atol=1e-8
    )


def test_duq_with_separate_norms(golden):
    told = golden("duq_head_cam")
    names = XPOOL | {
        "norm_texts": "ln1",
        "norm_inputs": "ln2",
        "norm_pooled": "ln3",
        "norm_out": "ln4",
    }
    pooling, text, video, mask = released_pooling(told, names, separate_norms=True)
    torch.testing.assert_close(
        pooling(text, video, mask), tensor(told["outputs"]["pooled"]), rtol=1e-6, atol=1e-8
    )


def test_duq_at_the_earlier_commit(golden):
    told = golden("duq_c89_cross_attention")
    pooling, text, video, mask = released_pooling(told, XPOOL)
    torch.testing.assert_close(
        pooling(text, video, mask), tensor(told["outputs"]["pooled"]), rtol=1e-6, atol=1e-8
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


def test_no_pair_knows_of_the_others():
    pooling = pooling_of(heads=2)
    texts, frames = sample(5, 6, dtype=torch.float64), sample(3, 4, 6, dtype=torch.float64)
    together = scores_direct(pooling, texts, frames, MASK)
    alone = scores_direct(pooling, texts[3:4], frames[1:2], MASK[1:2])
    torch.testing.assert_close(together[3:4, 1:2], alone)


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


def test_gradients_reach_every_weight_and_stay_finite_beside_padding():
    pooling = pooling_of(separate_norms=True).requires_grad_(True).train()
    frames = sample(3, 4, 6, dtype=torch.float64).masked_fill(~MASK[..., None], torch.nan)
    scores_direct(pooling, sample(5, 6, dtype=torch.float64), frames, MASK)[0].sum().backward()
    for name, weight in pooling.named_parameters():
        assert weight.grad.isfinite().all(), name
        if name != "keys.bias":  # moves all logits of a text alike
            assert weight.grad.abs().max() > 1e-9, name


def test_no_weight_is_stored_twice():
    state = CrossAttentionPooling(6).state_dict()
    assert len({weight.data_ptr() for weight in state.values()}) == len(state)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(SureshotError, match="do not divide"):
        CrossAttentionPooling(6, heads=4)


@pytest.mark.parametrize("options", [{}, {"heads": 3}, {"separate_norms": True}])
def test_a_paired_video_is_the_one_its_text_sees_among_all(options):
    pooling = pooling_of(**options)
    double = torch.float64
    texts, frames = sample(3, 6, dtype=double), sample(3, 4, 6, seed=1, dtype=double)
    found = pooling.paired(texts, frames, MASK)
    for row in range(3):
        torch.testing.assert_close(
            found[row], one_pair(pooling, texts[row], frames[row][MASK[row]])
        )
    torch.testing.assert_close(found, pooling(texts, frames, MASK).diagonal().T)
