"""Distances of sets of samples and of distributions, for all pairs."""

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from sureshot.models.layers import gaussian
from sureshot.models.layers.gaussian import Gaussian
from sureshot.models.scoring import (
    candidate_bonus,
    expected_distance,
    kl_distance,
    labelled_distance,
    sample_cosines,
    sample_distance,
    token_interaction,
    wasserstein_distance,
)
from tests.models.layers.weights import load, tensor


def both_divergences(one, other):
    """Mean of the divergences in both directions, of each item and its partner."""
    return (gaussian.kl_between(one, other) + gaussian.kl_between(other, one)) / 2


def between_samples(one, other):
    """Mean squared distance of a sample of each item and one of its partner."""
    return gaussian.wasserstein2(one, other) + 2 * ((one.log_var + other.log_var) / 2).exp().sum(-1)


CLOSED = [
    (kl_distance, both_divergences),
    (wasserstein_distance, gaussian.wasserstein2),
    (expected_distance, between_samples),
]
REDUCED = {"mean": lambda d: sum(d) / len(d), "min": min}


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gaussians(seed, count, dim=6):
    return Gaussian(2 * noise(seed, count, dim), noise(seed + 100, count, dim) - 1)


def test_all_samples_meet_all_samples():
    texts, videos = noise(0, 2, 3, 5), noise(1, 4, 2, 5)
    cosines = sample_cosines(texts, videos)
    assert cosines.shape == (2, 3, 4, 2)
    for t, k, v, m in torch.cartesian_prod(*(torch.arange(n) for n in cosines.shape)).tolist():
        expected = cosine_similarity(texts[t, k], videos[v, m], dim=0)
        assert cosines[t, k, v, m].item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("block", [1, 2, 64])
@pytest.mark.parametrize("reduction", REDUCED)
def test_distances_are_those_of_a_loop_over_samples(reduction, block):
    texts, videos = noise(0, 3, 4, 5), noise(1, 2, 3, 5)
    distance = sample_distance(texts, videos, reduction, block=block)
    for t in range(3):
        for v in range(2):
            each = [
                1 - cosine_similarity(one, other, dim=0).item()
                for one in texts[t]
                for other in videos[v]
            ]
            assert distance[t, v].item() == pytest.approx(REDUCED[reduction](each), abs=1e-12)


@pytest.mark.parametrize("block", [2, 64])
def test_labels_choose_the_closest_for_matches_and_the_farthest_for_others(block):
    texts, videos = noise(0, 5, 3, 4), noise(1, 5, 3, 4)
    matched = torch.eye(5).bool()
    matched[1, 3] = True  # a second caption of a video
    distance = labelled_distance(texts, videos, matched, block=block)
    cosines = sample_cosines(texts, videos)
    expected = torch.where(matched, cosines.amax((1, 3)), cosines.amin((1, 3)))
    assert torch.allclose(distance, 1 - expected, atol=1e-14)


@pytest.mark.parametrize(("all_pairs", "one_pair"), CLOSED)
def test_matrices_hold_the_distances_of_all_pairs(all_pairs, one_pair):
    texts, videos = gaussians(0, 4), gaussians(1, 3)
    matrix = all_pairs(texts, videos)
    assert matrix.shape == (4, 3)
    for t in range(4):
        for v in range(3):
            pair = (Gaussian(*(x[i] for x in g)) for g, i in ((texts, t), (videos, v)))
            assert matrix[t, v].item() == pytest.approx(one_pair(*pair).item(), rel=1e-9)


@pytest.mark.parametrize(("all_pairs", "one_pair"), CLOSED)
def test_thirty_two_bits_rank_as_sixty_four_do(all_pairs, one_pair):
    # The regime of training: means of length 1 in 512 dimensions, samples about as long.
    unit = torch.nn.functional.normalize
    texts, videos = (
        Gaussian(unit(noise(s, 40, 512), dim=-1), noise(s + 9, 40, 512) * 0.3 - 6.2) for s in (0, 1)
    )
    single = all_pairs(*(Gaussian(g.mean.float(), g.log_var.float()) for g in (texts, videos)))
    double = all_pairs(texts, videos)
    assert single.dtype == torch.float32
    assert (single - double).abs().max() < 1e-4 * double.std()
    same = all_pairs(texts, texts).diagonal()
    assert torch.allclose(same, one_pair(texts, texts), atol=1e-9)
    assert (all_pairs(*[Gaussian(*(x.float() for x in texts))] * 2) >= 0).all()


def test_closed_forms_are_pcme_plus_plus(golden):
    file = golden("pcmepp_csd")
    image, caption = (
        Gaussian(
            torch.tensor(file["inputs"][f"{side}_mean"], dtype=torch.float64),
            torch.tensor(file["inputs"][f"{side}_std"], dtype=torch.float64),
        )
        for side in ("image", "caption")
    )
    for name, function in (("csd", expected_distance), ("w2_squared", wasserstein_distance)):
        expected = torch.tensor(file["outputs"][name], dtype=torch.float64)
        assert torch.allclose(function(image, caption), expected, rtol=1e-6)


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
    given = [weights(mask) + ~mask for mask in (word_mask, frame_mask)]
    scores = token_interaction(words, frames, word_mask, frame_mask, *given, block=block)
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
    scores = token_interaction(*tokens, *masks, *given)
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
    scores = token_interaction(*tokens, *masks, *given)
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


def test_an_item_without_a_token_scores_minus_infinity_and_harms_no_other():
    words, frames, word_mask, frame_mask = batch()
    before = token_interaction(words, frames, word_mask, frame_mask)
    word_mask[1], frame_mask[2] = False, False
    words.requires_grad_()
    given = [torch.rand(mask.shape).double().requires_grad_() for mask in (word_mask, frame_mask)]
    weighted = token_interaction(words, frames, word_mask, frame_mask, *given)
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


def test_tokens_of_zeros_stay_zero_in_half_precision():
    zeros, ones, mask = torch.zeros(1, 1, 4), torch.ones(1, 1, 4), torch.ones(1, 1).bool()
    assert token_interaction(zeros.half(), ones.half(), mask, mask).item() == 0


def test_bonus_is_the_standard_score_in_units_of_the_scores():
    vacuities = torch.tensor([0.5, 0.7, 0.9], dtype=torch.float64)
    bank = torch.tensor([[0.1, 0.3, -0.4], [0.2, 0.0, 0.6]], dtype=torch.float64)
    flat = bank.flatten().tolist()
    mean = sum(flat) / 6
    deviation = math.sqrt(sum((x - mean) ** 2 for x in flat) / 6)
    unit = math.sqrt((0.2**2 + 0 + 0.2**2) / 3)
    expected = [-0.2 / unit * deviation, 0.0, 0.2 / unit * deviation]
    assert candidate_bonus(vacuities, bank).tolist() == pytest.approx(expected, abs=1e-12)
    for count in range(1, 30):  # the mean of equal numbers differs from them by rounding
        assert not candidate_bonus(torch.full((count,), 0.1), bank.float()).any()
