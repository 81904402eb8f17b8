"""Token-wise similarity, against loops over all tokens and the released code."""

import pytest
import torch

from sureshot.models.scoring import token_interaction, weighted_token_interaction
from tests.models.layers.weights import load, tensor

TEXTS, WORDS, VIDEOS, FRAMES, DIM = 5, 4, 3, 6, 8


def batch(seed=0, dtype=torch.float64):
    """Tokens and masks; every item has a real token, the first text and video only one."""
    draw = torch.Generator().manual_seed(seed)
    words = torch.randn(TEXTS, WORDS, DIM, generator=draw, dtype=dtype)
    frames = torch.randn(VIDEOS, FRAMES, DIM, generator=draw, dtype=dtype)
    word_mask = torch.rand(TEXTS, WORDS, generator=draw) < 0.5
    frame_mask = torch.rand(VIDEOS, FRAMES, generator=draw) < 0.5
    word_mask[0], frame_mask[0] = False, False
    word_mask[:, 1], frame_mask[:, 2] = True, True
    return words, frames, word_mask, frame_mask


def weights(mask, seed=0):
    draw = torch.Generator().manual_seed(seed)
    logits = torch.randn(mask.shape, generator=draw, dtype=torch.float64)
    return logits.masked_fill(~mask, -torch.inf).softmax(-1)


def slow(words, frames, word_weights, frame_weights, word_mask, frame_mask):
    """One pair of tokens at a time."""
    scores = torch.zeros(len(words), len(frames), dtype=torch.float64)
    for t, text in enumerate(words):
        for v, video in enumerate(frames):
            real = [n for n in range(len(text)) if word_mask[t, n]]
            shown = [m for m in range(len(video)) if frame_mask[v, m]]

            def cosine(n, m, text=text, video=video):
                return (text[n] @ video[m] / text[n].norm() / video[m].norm()).item()

            of_words = sum(word_weights[t, n] * max(cosine(n, m) for m in shown) for n in real)
            of_frames = sum(frame_weights[v, m] * max(cosine(n, m) for n in real) for m in shown)
            scores[t, v] = (of_words + of_frames) / 2
    return scores


def equal(mask):
    return mask.double() / mask.sum(1, keepdim=True)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("block", [1, 2, 5, 99])
def test_scores_are_those_of_a_loop_over_all_tokens(block, sign):
    words, frames, word_mask, frame_mask = batch()
    if sign < 0:  # all similarities negative
        words, frames = words.abs(), -frames.abs()
    expected = slow(words, frames, equal(word_mask), equal(frame_mask), word_mask, frame_mask)
    scores = token_interaction(words, frames, word_mask, frame_mask, block=block)
    assert torch.allclose(scores, expected, atol=1e-12)
    given = weights(word_mask), weights(frame_mask)
    scores = weighted_token_interaction(words, frames, *given, word_mask, frame_mask, block=block)
    assert torch.allclose(scores, slow(words, frames, *given, word_mask, frame_mask), atol=1e-12)


def test_scores_are_the_released_codes_where_nothing_is_padded(golden):
    file = golden("uatvr_token_interaction")
    words, frames = (
        torch.tensor(file["inputs"][name], dtype=torch.float64)
        for name in ("text_token", "video_token")
    )
    masks = torch.ones(words.shape[:2]).bool(), torch.ones(frames.shape[:2]).bool()
    expected = torch.tensor(file["outputs"]["ti_all_valid"], dtype=torch.float64)
    # The stored unit vectors are rounded, and the code takes their inner products.
    assert torch.allclose(token_interaction(words, frames, *masks), expected, rtol=0, atol=2e-6)


def test_padding_does_not_win_over_negative_similarities_as_in_the_released_code(golden):
    file = golden("uatvr_token_interaction")
    values, outputs = (
        {name: torch.tensor(numbers, dtype=torch.float64) for name, numbers in file[part].items()}
        for part in ("inputs", "outputs")
    )
    masks = values["text_mask"].bool(), values["video_mask"].bool()
    tokens = values["text_token"], values["video_token"]
    given = outputs["text_weight"], outputs["video_weight"]
    scores = weighted_token_interaction(*tokens, *given, *masks)
    assert torch.allclose(scores, slow(*tokens, *given, *masks), atol=1e-8)
    # Theirs are those whose padding has a cosine of 0 with everything, so ours are never higher.
    real = masks[0][:, None, :, None] & masks[1][None, :, None, :]
    cosines = torch.einsum("tnd,vmd->tvnm", *tokens).masked_fill(~real, 0)
    theirs = torch.einsum("tn,tvn->tv", given[0], cosines.amax(3))
    theirs += torch.einsum("vm,tvm->tv", given[1], cosines.amax(2))
    assert torch.allclose(theirs / 2, outputs["wti"], rtol=0, atol=2e-6)
    assert (scores <= outputs["wti"] + 2e-6).all()


@pytest.mark.parametrize(
    ("kind", "text", "video", "names"),
    [
        ("tv", "text_samples", "video_samples", ("t_prob_w", "v_prob_w")),
        ("wp", "words", "patches", ("w_feat_w", "p_feat_w")),
    ],
)
def test_samples_and_patches_meet_as_in_the_released_code_of_duq(golden, kind, text, video, names):
    file = golden("duq_head_similarities")
    tokens = [tensor(file["inputs"][side]) for side in (text, video)]
    given = []
    for name, own in zip(names, tokens, strict=True):
        hidden, width = tensor(file["weights"][f"{name}.0.weight"]).shape
        worth = torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1)
        )
        load(worth, file["weights"], {str(i): f"{name}.{i}" for i in (0, 2)})
        given.append(worth(own).squeeze(-1).softmax(-1))
    masks = [torch.ones(own.shape[:2]).bool() for own in tokens]
    scores = weighted_token_interaction(*tokens, *given, *masks)
    torch.testing.assert_close(
        scores, tensor(file["outputs"][f"sims_{kind}"]), rtol=1e-6, atol=1e-8
    )


def test_more_padding_changes_no_score_whatever_stands_there():
    words, frames, word_mask, frame_mask = batch()
    before = token_interaction(words, frames, word_mask, frame_mask)
    for garbage in (0.0, 1e6, torch.nan, torch.inf):
        longer = torch.full((TEXTS, 3, DIM), garbage).double()
        more = torch.full((VIDEOS, 2, DIM), garbage).double()
        after = token_interaction(
            torch.cat([words, longer], 1),
            torch.cat([more, frames], 1),
            torch.cat([word_mask, torch.zeros(TEXTS, 3).bool()], 1),
            torch.cat([torch.zeros(VIDEOS, 2).bool(), frame_mask], 1),
        )
        assert torch.allclose(after, before, atol=1e-14)


def test_gradients_are_right_and_nothing_comes_back_from_padding():
    words, frames, word_mask, frame_mask = batch()
    words[~word_mask], frames[~frame_mask] = torch.nan, torch.nan
    words.requires_grad_()
    frames.requires_grad_()
    token_interaction(words, frames, word_mask, frame_mask).sum().backward()
    assert (words.grad[~word_mask] == 0).all()
    assert (frames.grad[~frame_mask] == 0).all()
    assert (words.grad[word_mask].norm(dim=-1) > 0).all()
    clean = [x.detach().nan_to_num().requires_grad_() for x in (words, frames)]
    assert torch.autograd.gradcheck(
        lambda w, f: token_interaction(w, f, word_mask, frame_mask, block=2), clean
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_padding_loses_to_a_token_that_points_the_other_way(dtype):
    words = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]], dtype=dtype, requires_grad=True)
    frames = torch.tensor([[[9.0, 9.0], [-1.0, 0.0]]], dtype=dtype, requires_grad=True)
    given = [torch.tensor([[share, 1 - share]], dtype=dtype) for share in (1.0, 0.0)]
    given = [one.requires_grad_() for one in given]
    masks = torch.tensor([[True, False]]), torch.tensor([[False, True]])
    score = weighted_token_interaction(words, frames, *given, *masks)
    assert score.item() == -1
    score.sum().backward()
    # Only the real tokens and their weights are learned from.
    assert given[0].grad.tolist() == [[-0.5, 0.0]] and given[1].grad.tolist() == [[0.0, -0.5]]
    assert (words.grad[0, 1] == 0).all() and (frames.grad[0, 0] == 0).all()
    assert words.grad.isfinite().all() and frames.grad.isfinite().all()


def test_an_item_without_a_token_scores_minus_infinity_and_harms_no_other():
    words, frames, word_mask, frame_mask = batch()
    before = token_interaction(words, frames, word_mask, frame_mask)
    word_mask[1], frame_mask[2] = False, False
    words.requires_grad_()
    given = [torch.rand(mask.shape).double().requires_grad_() for mask in (word_mask, frame_mask)]
    weighted = weighted_token_interaction(words, frames, *given, word_mask, frame_mask)
    scores = token_interaction(words, frames, word_mask, frame_mask)
    empty = torch.zeros(TEXTS, VIDEOS).bool()
    empty[1], empty[:, 2] = True, True
    assert (scores[empty] == -torch.inf).all()
    assert torch.equal(scores[~empty], before[~empty])
    assert (weighted[empty] == -torch.inf).all()
    (scores[~empty] + weighted[~empty]).sum().backward()
    for leaf in (words, *given):
        assert leaf.grad.isfinite().all()
        assert leaf.grad.any()


def test_length_of_tokens_does_not_matter_and_no_score_is_beyond_one():
    words, frames, word_mask, frame_mask = batch(dtype=torch.float32)
    scores = token_interaction(words, frames, word_mask, frame_mask)
    longer = token_interaction(words * 7, frames * 0.3, word_mask, frame_mask)
    assert torch.allclose(scores, longer, atol=1e-6)
    assert (scores.abs() <= 1 + 1e-6).all()


def test_weights_of_padding_do_not_count():
    words, frames, word_mask, frame_mask = batch()
    given = weights(word_mask), weights(frame_mask)
    expected = weighted_token_interaction(words, frames, *given, word_mask, frame_mask)
    spoilt = (
        given[0].masked_fill(~word_mask, torch.nan),
        given[1].masked_fill(~frame_mask, torch.nan),
    )
    scores = weighted_token_interaction(words, frames, *spoilt, word_mask, frame_mask)
    assert torch.equal(scores, expected)


def test_a_real_token_that_is_not_a_number_comes_through():
    words, frames, word_mask, frame_mask = batch()
    words[2, 1] = torch.nan
    scores = token_interaction(words, frames, word_mask, frame_mask)
    assert scores.isnan().any(1).tolist() == [False, False, True, False, False]


def test_no_texts_give_no_scores():
    words, frames, word_mask, frame_mask = batch()
    assert token_interaction(words[:0], frames, word_mask[:0], frame_mask).shape == (0, VIDEOS)
