"""Losses on distances: the printed ones with what is wrong with them, and ours."""

import math

import pytest
import torch

from sureshot.models.losses.contrastive import info_nce
from sureshot.models.losses.uncertainty import (
    distance_loss,
    distance_loss_as_printed,
    evidence,
    evidential_distance,
    evidential_rows,
)


def distances(seed, items):
    draw = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(items, items, generator=draw, dtype=torch.float64)


def parted(items):
    """Matched pairs at distance 0, all others at 1."""
    return 1 - torch.eye(items, dtype=torch.float64)


def test_losses_are_those_of_loops():
    distance, scale, items = distances(0, 5), 7.0, 5
    ours = printed = 0.0
    for i in range(items):
        for line in (distance[i], distance[:, i]):
            own = distance[i, i].item()
            near = math.exp(-scale * own) / sum(math.exp(-scale * d) for d in line.tolist())
            far = math.exp(scale * own) / sum(math.exp(scale * d) for d in line.tolist())
            ours -= math.log(near) / (2 * items)
            printed += math.log(far) / (2 * items)
    assert distance_loss(distance, scale).item() == pytest.approx(ours, rel=1e-9)
    assert distance_loss_as_printed(distance, scale).item() == pytest.approx(printed, rel=1e-9)


def test_the_printed_loss_is_never_satisfied_and_ours_is():
    distance = parted(32).requires_grad_()
    (of_printed,) = torch.autograd.grad(distance_loss_as_printed(distance, 100.0), distance)
    (of_ours,) = torch.autograd.grad(distance_loss(distance, 100.0), distance)
    assert distance_loss_as_printed(distance, 100.0).item() == pytest.approx(-103.4, abs=0.05)
    assert of_printed.diagonal().tolist() == pytest.approx([100 / 32] * 32)
    assert distance_loss(distance, 100.0).item() == pytest.approx(0, abs=1e-9)
    assert of_ours.abs().max().item() == pytest.approx(0, abs=1e-9)


def test_both_want_matched_pairs_closer():
    distance = distances(1, 4).requires_grad_()
    for loss in (distance_loss, distance_loss_as_printed):
        (slope,) = torch.autograd.grad(loss(distance, 2.0), distance)
        assert (slope.diagonal() > 0).all()
        assert (slope[~torch.eye(4).bool()] < 0).all()


def test_a_learned_scale_gets_no_gradient_from_distances():
    scale = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    distance = distances(0, 3).requires_grad_()
    loss = distance_loss(distance, scale)
    assert torch.equal(loss, info_nce(-distance, 5.0))
    loss.backward()
    assert scale.grad is None
    assert distance.grad is not None


@pytest.mark.parametrize("loss", [distance_loss, distance_loss_as_printed])
def test_gradients_of_picking(loss):
    distance = distances(0, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda d: loss(d, 3.0), [distance])


@pytest.mark.parametrize("labels", ["matched", "unmatched", "unmatched_sum"])
@pytest.mark.parametrize("kind", ["relu", "softplus", "exp"])
def test_gradients_of_evidential_losses(labels, kind):
    distance = distances(0, 3).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda d: evidential_distance(d, labels, kind, kappa=3.0, offset=0.2), [distance]
    )


@pytest.mark.parametrize(("labels", "share"), [("unmatched_sum", 1), ("unmatched", 4)])
def test_distance_as_evidence_against_a_match(labels, share):
    distance = distances(0, 5)
    target = (1 - torch.eye(5).double()) / share
    found = evidence(distance, "softplus", kappa=4.0, offset=0.5)
    both = evidential_rows(found, target).mean() + evidential_rows(found.T, target).mean()
    options = {"kind": "softplus", "kappa": 4.0, "offset": 0.5}
    assert torch.allclose(evidential_distance(distance, labels, **options), both)
    mean = evidential_distance(distance, labels, total="mean", **options)
    assert torch.allclose(mean, both / 2)


def test_closeness_as_evidence_of_a_match():
    distance, target = distances(0, 5), torch.eye(5).double()
    found = evidence(1 - distance, kappa=4.0, offset=0.5)
    both = evidential_rows(found, target).mean() + evidential_rows(found.T, target).mean()
    assert torch.allclose(evidential_distance(distance, kappa=4.0, offset=0.5), both)
    mean = evidential_distance(distance, kappa=4.0, offset=0.5, total="mean")
    assert torch.allclose(mean, both / 2)


def test_labels_that_do_not_make_one_leave_a_constant():
    none, equal = torch.zeros(32, 32).double(), torch.ones(32, 32).double()
    floor = 30**2 / 31
    printed = [
        evidential_distance(d, "unmatched_sum", total="mean").item()
        for d in (none, equal, parted(32), 1e6 * parted(32))
    ]
    assert printed[:3] == pytest.approx([29.123, 29.109, 29.078], abs=1e-3)
    assert printed[3] == pytest.approx(floor, abs=1e-3)
    assert all(floor - 1e-9 <= p < 1.004 * floor for p in printed)
    fitted = [
        evidential_distance(d, "unmatched", total="mean").item()
        for d in (none, parted(32), 1e6 * parted(32))
    ]
    assert fitted[:2] == pytest.approx([0.0303, 0.0154], abs=1e-4)
    assert fitted[2] == pytest.approx(0, abs=1e-3)


def test_parting_costs_less_by_every_choice_of_labels():
    near = 0.5 * torch.ones(6, 6).double()
    for labels in ("matched", "unmatched", "unmatched_sum"):
        assert evidential_distance(parted(6), labels) < evidential_distance(near, labels)


@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0])
def test_a_batch_of_one_gives_a_finite_loss(distance):
    one = torch.tensor([[distance]], requires_grad=True)
    assert distance_loss(one, 100.0).item() == 0
    assert distance_loss_as_printed(one, 100.0).item() == 0
    for labels, expected in (("matched", 0), ("unmatched", 2), ("unmatched_sum", 2)):
        loss = evidential_distance(one, labels)
        assert loss.item() == expected
        (slope,) = torch.autograd.grad(loss, one)
        assert slope.isfinite().all()


def test_not_a_number_comes_through():
    distance = distances(0, 3)
    distance[0, 1] = torch.nan
    assert distance_loss(distance, 1.0).isnan()
    assert distance_loss_as_printed(distance, 1.0).isnan()
    for labels in ("matched", "unmatched", "unmatched_sum"):
        assert evidential_distance(distance, labels).isnan()
