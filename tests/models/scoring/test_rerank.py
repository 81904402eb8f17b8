"""Scores corrected by uncertainty: what the printed rule cannot do, and ours does."""

import math

import pytest
import torch

from sureshot.models.scoring import candidate_bonus, rerank, rerank_as_printed


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def vacuity(scores):
    """Of each row, with ReLU evidence, one number at a time."""
    return torch.tensor(
        [len(row) / sum(max(s.item(), 0) + 1 for s in row) for row in scores],
        dtype=scores.dtype,
    )


def hubs(seed, count=200):
    """Cosine-like scores in which every video has its own nearness to all queries."""
    generator = draw(seed)
    scores = 0.1 * torch.randn(count, count, generator=generator, dtype=torch.float64)
    scores += 0.35 * torch.eye(count, dtype=torch.float64)
    return scores + 0.1 * torch.randn(count, generator=draw(99), dtype=torch.float64)


def first_places(scores):
    return (scores.argmax(1) == torch.arange(len(scores))).double().mean().item()


def test_the_printed_rule_one_pair_at_a_time():
    similarity = torch.rand(3, 4, generator=draw(), dtype=torch.float64) * 2 - 1
    distance = torch.rand(3, 4, generator=draw(1), dtype=torch.float64) * 2
    of_similarity, of_distance = (torch.rand(3, generator=draw(s)).double() for s in (2, 3))
    scores = rerank_as_printed(
        similarity, distance, of_similarity, of_distance, gamma_distance=0.3, gamma_similarity=0.7
    )
    for i in range(3):
        for j in range(4):
            expected = (
                math.exp(-0.3 * of_distance[i])
                * (1 - distance[i, j])
                * math.exp(-0.7 * of_similarity[i])
                * similarity[i, j]
            )
            assert scores[i, j].item() == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 5.0])
def test_the_printed_rule_ranks_no_query_otherwise_whatever_the_gammas(gamma):
    scores = hubs(0)
    distance = 1 - hubs(1)
    gammas = {"gamma_distance": gamma, "gamma_similarity": gamma}
    plain = rerank_as_printed(scores, distance, torch.ones(200), torch.ones(200))
    other = rerank_as_printed(scores, distance, vacuity(scores), vacuity(distance), **gammas)
    assert torch.equal(plain.argsort(1), other.argsort(1))


def test_the_printed_rule_takes_two_rejections_for_a_match():
    similarity, closeness = torch.tensor([[-0.3, 0.28]]), torch.tensor([[-0.3, 0.28]])
    none = torch.zeros(1)
    assert rerank_as_printed(similarity, 1 - closeness, none, none).argmax() == 0
    assert similarity.argmax() == closeness.argmax() == 1


def test_bonus_is_the_standard_score_in_units_of_the_scores():
    vacuities = torch.tensor([0.5, 0.7, 0.9], dtype=torch.float64)
    bank = torch.tensor([[0.1, 0.3, -0.4], [0.2, 0.0, 0.6]], dtype=torch.float64)
    flat = bank.flatten().tolist()
    mean = sum(flat) / 6
    deviation = math.sqrt(sum((x - mean) ** 2 for x in flat) / 6)
    unit = math.sqrt((0.2**2 + 0 + 0.2**2) / 3)
    expected = [-0.2 / unit * deviation, 0.0, 0.2 / unit * deviation]
    assert candidate_bonus(vacuities, bank).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 5, 7])  # the mean of seven times 0.7 is not quite 0.7
def test_equal_candidates_get_no_bonus(count, dtype):
    same = torch.full((count,), 0.7, dtype=dtype)
    bank = torch.rand(4, count, generator=draw()).to(dtype)
    assert candidate_bonus(same, bank).tolist() == [0.0] * count


def test_a_bonus_from_a_bank_takes_hubs_down_and_its_opposite_takes_them_up():
    bank, test = hubs(0), hubs(1)
    bonus = candidate_bonus(vacuity(bank.T), bank)
    hub = bank.mean(0).argmax()
    assert bonus[hub] < 0
    plain, better, worse = (first_places(rerank(test, bonus, w)) for w in (0.0, 0.3, -0.3))
    assert better > plain + 0.02
    assert worse < plain - 0.02
    won = [(rerank(test, bonus, w).argmax(1) == hub).sum() for w in (0.0, 0.3)]
    assert won[1] < won[0]


def test_a_score_does_not_depend_on_what_else_is_asked():
    bank, test = hubs(0), hubs(1)
    bonus = candidate_bonus(vacuity(bank.T), bank)
    together = rerank(test, bonus, 0.2)
    assert torch.equal(rerank(test[7:8], bonus, 0.2), together[7:8])
    assert torch.equal(rerank(test, bonus, 0.0), test)
