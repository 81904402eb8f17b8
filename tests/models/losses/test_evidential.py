"""Evidence, belief and vacuity; the loss against torch's Dirichlet distribution."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Dirichlet

from sureshot.models.losses.uncertainty import (
    evidence,
    evidential,
    evidential_rows,
    exp_evidence,
    opinion,
    relu_evidence,
    softplus_evidence,
)

# Similarities that the file of the released code names but does not hold.
CONSTANT = {
    "zero": lambda count: torch.zeros(count, count),
    "identity": torch.eye,
    "ones": lambda count: torch.ones(count, count),
}


def noise(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_loss_and_vacuity_are_the_released_codes(golden):
    file = golden("duq_um")
    for name, expected in file["outputs"].items():
        if name in file["inputs"]:
            similarity = torch.tensor(file["inputs"][name], dtype=torch.float64)
        else:
            similarity = CONSTANT[name.rstrip("0123456789")](len(expected["per_row"])).double()
        found, labels = relu_evidence(similarity), torch.eye(len(similarity)).double()
        assert evidential(found, total="mean").item() == pytest.approx(expected["loss"], rel=1e-6)
        both = expected["loss_rows"] + expected["loss_cols"]
        assert evidential(found).item() == pytest.approx(both, rel=1e-6)
        rows = evidential_rows(found, labels).tolist()
        assert rows == pytest.approx(expected["per_row"], rel=1e-6)
        returned = (1 - opinion(found).vacuity).tolist()
        assert returned == pytest.approx(expected["returned_second"], rel=1e-6, abs=1e-8)


def test_rows_are_the_expected_squared_error_of_a_dirichlet_distribution():
    found = noise(0, 4, 5).abs() * 3
    labels = torch.rand(4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for i in range(4):
        dirichlet = Dirichlet(found[i] + 1)
        closed = ((labels[i] - dirichlet.mean).square() + dirichlet.variance).sum().item()
        assert evidential_rows(found, labels)[i].item() == pytest.approx(closed, rel=1e-9)
    torch.manual_seed(0)
    drawn = Dirichlet(found + 1).sample((20000,))
    expected = (drawn - labels).square().sum(-1).mean(0)
    assert torch.allclose(evidential_rows(found, labels), expected, rtol=0.03)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9))
def test_vacuity_and_beliefs_make_one(numbers):
    found = torch.tensor(numbers, dtype=torch.float64)
    belief, vacuity = opinion(found)
    strength = sum(x + 1 for x in numbers)
    assert vacuity.item() == pytest.approx(len(numbers) / strength, rel=1e-9)
    assert belief.tolist() == pytest.approx([x / strength for x in numbers], rel=1e-9)
    assert (belief.sum() + vacuity).item() == pytest.approx(1)
    assert 0 < vacuity <= 1
    assert (belief >= 0).all()


def test_no_evidence_is_full_vacuity_in_every_row():
    belief, vacuity = opinion(torch.zeros(2, 3, 4))
    assert torch.equal(vacuity, torch.ones(2, 3))
    assert torch.equal(belief, torch.zeros(2, 3, 4))


@pytest.mark.parametrize("s", [-300.0, -2.0, -0.1, 0.0, 0.3, 1.0, 7.0])
def test_functions_of_evidence_at_single_similarities(s):
    at = torch.tensor([s], dtype=torch.float64)
    assert relu_evidence(at).item() == max(0, s)
    assert softplus_evidence(at).item() == pytest.approx(math.log1p(math.exp(s)))
    assert softplus_evidence(at, 3.0).item() == pytest.approx(
        math.log1p(math.exp(3 * s)) / 3, abs=1e-6
    )
    assert exp_evidence(at).item() == pytest.approx(math.exp(s / 5))
    assert exp_evidence(at, 0.5).item() == pytest.approx(math.exp(2 * s))


def test_softplus_is_linear_above_its_threshold():
    at = torch.tensor([1.4, 1.6], dtype=torch.float64)
    below, above = softplus_evidence(at, 2.0, 3.0).tolist()
    assert below > 1.4 + 0.02
    assert above == 1.6


def test_no_similarity_overflows_the_loss():
    extreme = torch.tensor([[1e4, -1e4], [1e4, 1e4]])
    for kind in ("relu", "softplus", "exp"):
        found = evidence(extreme, kind, kappa=1.0 if kind == "relu" else 100.0)
        assert (found >= 0).all()
        assert evidential(found).isfinite()


@pytest.mark.parametrize("kind", ["relu", "softplus", "exp"])
def test_steepness_and_offset_come_before_the_function(kind):
    similarity = noise(0, 3, 4).tanh()
    named = {"relu": relu_evidence, "softplus": softplus_evidence, "exp": exp_evidence}[kind]
    assert torch.equal(evidence(similarity, kind), named(similarity))
    expected = named(20.0 * (similarity - 0.3))
    assert torch.allclose(evidence(similarity, kind, kappa=20.0, offset=0.3), expected)


@pytest.mark.parametrize("kind", ["relu", "softplus", "exp"])
def test_gradients_reach_similarities_steepness_and_offset(kind):
    kappa, offset = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (5.0, 0.1))
    inputs = noise(0, 3, 3).tanh().requires_grad_(), kappa, offset
    assert torch.autograd.gradcheck(
        lambda s, k, m: evidential(evidence(s, kind, kappa=k, offset=m)), inputs
    )


def test_labels_of_texts_hold_transposed_for_videos():
    found = noise(0, 3, 4).abs()
    labels = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]).double()
    expected = evidential_rows(found, labels).mean() + evidential_rows(found.T, labels.T).mean()
    assert torch.equal(evidential(found, labels), expected)
    assert torch.equal(evidential(found, labels, total="mean"), expected / 2)


def test_cosines_as_evidence_are_backwards_and_hardly_move_the_loss():
    none, ideal, same = torch.zeros(32, 32), torch.eye(32), torch.ones(32, 32)
    assert opinion(ideal).vacuity[0].item() == pytest.approx(32 / 33)
    assert opinion(same).vacuity[0].item() == pytest.approx(0.5)
    assert evidential(none, total="mean").item() == pytest.approx(0.998, abs=5e-4)
    assert evidential(ideal, total="mean").item() == pytest.approx(0.939, abs=5e-4)


@pytest.mark.parametrize(("kappa", "loss", "vacuity"), [(1.0, 0.939, 0.970), (100.0, 0.060, 0.242)])
def test_steep_evidence_lets_one_match_stand_out(kappa, loss, vacuity):
    found = evidence(torch.eye(32), kappa=kappa)
    assert evidential(found, total="mean").item() == pytest.approx(loss, abs=5e-4)
    assert opinion(found).vacuity[0].item() == pytest.approx(vacuity, abs=5e-4)


def test_more_evidence_for_the_match_costs_less_and_for_another_more():
    base = torch.full((4, 4), 0.2, dtype=torch.float64)
    match, other = base + torch.eye(4), base + torch.eye(4).roll(1, 0)
    assert evidential(match) < evidential(base) < evidential(other)


@pytest.mark.parametrize("kind", ["relu", "softplus", "exp"])
@pytest.mark.parametrize("similarity", [-1.0, 0.0, 1.0])
def test_a_batch_of_one_costs_nothing(kind, similarity):
    assert evidential(evidence(torch.tensor([[similarity]]), kind)).item() == 0


def test_not_a_number_comes_through():
    similarity = noise(0, 3, 3)
    similarity[1, 2] = torch.nan
    for kind in ("relu", "softplus", "exp"):
        assert evidential(evidence(similarity, kind)).isnan()
        assert opinion(evidence(similarity, kind)).vacuity.isnan().tolist() == [False, True, False]
