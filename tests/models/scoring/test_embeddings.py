"""Distances of sets of samples and of distributions, for all pairs."""

import pytest
import torch
from torch.nn.functional import cosine_similarity

from sureshot.models.layers import gaussian
from sureshot.models.layers.gaussian import Gaussian
from sureshot.models.scoring import (
    expected_distance,
    kl_distance,
    labelled_distance,
    sample_cosines,
    sample_distance,
    wasserstein_distance,
)


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
REDUCED = {"mean": lambda d: sum(d) / len(d), "min": min, "max": max}


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gaussians(seed, count, dim=6):
    return Gaussian(2 * noise(seed, count, dim), noise(seed + 100, count, dim) - 1)


def first_places(distance):
    """Share of texts whose own video is the closest."""
    return (distance.argmin(1) == torch.arange(len(distance))).double().mean().item()


def test_all_samples_meet_all_samples():
    texts, videos = noise(0, 2, 3, 5), noise(1, 4, 2, 5)
    cosines = sample_cosines(texts, videos)
    assert cosines.shape == (2, 3, 4, 2)
    for t, k, v, m in torch.cartesian_prod(*(torch.arange(n) for n in cosines.shape)).tolist():
        expected = cosine_similarity(texts[t, k], videos[v, m], dim=0)
        assert cosines[t, k, v, m].item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("block", [1, 2, 64])
@pytest.mark.parametrize("reduction", ["mean", "min", "max"])
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


@pytest.mark.parametrize("reduction", ["mean", "min", "max"])
def test_gradients_of_distances(reduction):
    inputs = [noise(0, 2, 3, 4).requires_grad_(), noise(1, 3, 2, 4).requires_grad_()]
    assert torch.autograd.gradcheck(lambda t, v: sample_distance(t, v, reduction), inputs)


def test_one_sample_has_one_distance():
    texts, videos = noise(0, 3, 1, 4), noise(1, 3, 1, 4)
    mean, least, most = (sample_distance(texts, videos, how) for how in ("mean", "min", "max"))
    assert torch.allclose(mean, least, atol=1e-12)
    assert torch.equal(least, most)
    assert torch.equal(least, labelled_distance(texts, videos, torch.eye(3).bool()))


@pytest.mark.parametrize("block", [2, 64])
def test_labels_choose_the_closest_for_matches_and_the_farthest_for_others(block):
    texts, videos = noise(0, 5, 3, 4), noise(1, 5, 3, 4)
    matched = torch.eye(5).bool()
    matched[1, 3] = True  # a second caption of a video
    distance = labelled_distance(texts, videos, matched, block=block)
    closest, farthest = (sample_distance(texts, videos, how) for how in ("min", "max"))
    assert torch.allclose(distance[matched], closest[matched], atol=1e-14)
    assert torch.allclose(distance[~matched], farthest[~matched], atol=1e-14)
    assert (farthest - closest).min() > 0.1


@pytest.mark.parametrize("reduction", ["mean", "min", "max"])
def test_noise_is_ranked_at_chance_without_labels_and_without_error_with_them(reduction):
    texts, videos = noise(5, 200, 7, 32), noise(6, 200, 7, 32)
    distance = sample_distance(texts, videos, reduction)
    assert first_places(distance) <= 0.03  # chance is 1 of 200
    assert first_places(distance.T) <= 0.03
    leaked = labelled_distance(texts, videos, torch.eye(200).bool())
    assert first_places(leaked) == 1
    wrong = torch.eye(200).bool().roll(1, 0)
    assert first_places(labelled_distance(texts, videos, wrong)) == 0


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


@pytest.mark.parametrize(("all_pairs", "_"), CLOSED)
def test_gradients_of_closed_forms(all_pairs, _):
    inputs = [x.requires_grad_() for x in (*gaussians(0, 2, 3), *gaussians(1, 3, 3))]
    assert torch.autograd.gradcheck(
        lambda a, b, c, d: all_pairs(Gaussian(a, b), Gaussian(c, d)), inputs
    )


@pytest.mark.parametrize(("all_pairs", "_"), CLOSED)
def test_noise_is_ranked_at_chance_by_closed_forms(all_pairs, _):
    texts, videos = gaussians(2, 200, 16), gaussians(3, 200, 16)
    assert first_places(all_pairs(texts, videos)) <= 0.03
    assert first_places(all_pairs(texts, videos).T) <= 0.03


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


def test_not_a_number_stays_with_its_item():
    texts, videos = noise(0, 3, 2, 4), noise(1, 3, 2, 4)
    texts[1, 0, 0] = torch.nan
    for reduction in ("mean", "min", "max"):
        rows = sample_distance(texts, videos, reduction).isnan().all(1)
        assert rows.tolist() == [False, True, False]
    spoilt = gaussians(0, 3)
    spoilt.mean[1, 0] = torch.nan
    for all_pairs, _ in CLOSED:
        rows = all_pairs(spoilt, gaussians(1, 3)).isnan().all(1)
        assert rows.tolist() == [False, True, False]


def test_no_texts_give_no_distances():
    assert sample_distance(noise(0, 0, 2, 4), noise(1, 3, 2, 4), "max").shape == (0, 3)
