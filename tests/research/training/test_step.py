"""One step: its gradients, however the batch is cut."""

import math

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import Sizes, joined, objective
from sureshot.models.systems.xpool import XPool, XPoolConfig
from sureshot.research.training.optim import groups
from sureshot.research.training.recipe import TrainingConfig
from sureshot.research.training.step import gradients, update
from tests.research.training.toy import CHANNELS, DIM, WIDTH, Pairs, model

ROWS = [0, 3, 4, 7, 9, 10, 13, 21]


def embedder(net, pairs):
    return lambda rows: (net.texts(pairs.texts(rows)), net.videos(pairs.videos(rows)))


def taken(net):
    return {name: weight.grad for name, weight in net.named_parameters()}


def same(found, expected, atol=1e-6):
    assert found.keys() == expected.keys()
    for name, grad in expected.items():
        if grad is None:
            assert found[name] is None, name
        else:
            torch.testing.assert_close(found[name], grad, atol=atol, rtol=1e-5)


def plain(net, pairs, rows, seed=0, step=0):
    """The step in as few lines as there are; without dropout."""
    generator = torch.Generator()
    from sureshot.research.training.step import _seed

    generator.manual_seed(_seed(seed, step))
    texts, videos = embedder(net, pairs)(rows)
    losses = net.system.losses(texts, videos, generator)
    total = objective(losses, net.system.weights)
    total.backward()
    return total.item(), losses


def test_the_gradients_are_those_of_the_objective():
    pairs, net, other = Pairs(), model(), model()
    told = gradients(net.system, embedder(net, pairs), ROWS, TrainingConfig(seed=3), step=5)
    total, losses = plain(other, pairs, ROWS, 3, 5)
    same(taken(net), taken(other))
    assert told == pytest.approx({"loss": total} | {k: v.item() for k, v in losses.items()})
    assert any(grad is not None and grad.abs().sum() > 0.01 for grad in taken(net).values())


@pytest.mark.parametrize("micro", [1, 3, 4, 7, 8, 100])
def test_gradients_of_micro_batches_are_those_of_the_whole_batch(micro):
    pairs, net, other = Pairs(), model(), model()
    told = gradients(net.system, embedder(net, pairs), ROWS, TrainingConfig(micro_batch=micro))
    whole = gradients(other.system, embedder(other, pairs), ROWS, TrainingConfig())
    assert told == pytest.approx(whole, abs=1e-6)
    same(taken(net), taken(other))
    assert net.system.unused.weight.grad is None


@pytest.mark.parametrize("micro", [1, 3])
def test_with_dropout_too_each_micro_batch_meets_the_same_noise_twice(micro):
    """Against one graph over the micro-batches, each embedded once under recorded noise."""
    pairs, net, other = Pairs(), model(0.5).train(), model(0.5).train()
    states = []

    def spied(rows):
        states.append((list(rows), torch.get_rng_state()))
        return embedder(net, pairs)(rows)

    told = gradients(net.system, spied, ROWS, TrainingConfig(micro_batch=micro, seed=1), step=2)
    count = math.ceil(len(ROWS) / micro)
    assert len(states) == 2 * count
    assert len({state.numpy().tobytes() for _, state in states}) == count  # unlike for each part
    parts = []
    for rows, state in states[:count]:
        torch.set_rng_state(state)
        parts.append(embedder(other, pairs)(rows))
    texts, videos = (joined(list(side)) for side in zip(*parts, strict=True))
    from sureshot.research.training.step import _seed

    generator = torch.Generator().manual_seed(_seed(1, 2))
    total = objective(other.system.losses(texts, videos, generator), other.system.weights)
    total.backward()
    assert told["loss"] == pytest.approx(total.item(), abs=1e-6)
    same(taken(net), taken(other))


def test_noise_differs_between_steps_and_between_seeds_and_is_the_same_again():
    pairs, net = Pairs(), model(0.5).train()

    def loss(seed, step):
        method = TrainingConfig(seed=seed)
        return gradients(net.system, embedder(net, pairs), ROWS, method, step=step)["loss"]

    found = {loss(seed, step) for seed in (0, 1) for step in (0, 1)}
    assert len(found) == 4
    assert loss(0, 1) in found


def test_dropout_within_a_loss_follows_from_seed_and_step_too():
    """Else a run that goes on meets other noise than one that was never stopped."""
    stem = Stem(StemConfig("linear", WIDTH, 0.0), Sizes(DIM, CHANNELS))
    pairs, net = Pairs(), Model(stem, XPool(XPoolConfig(dropout=0.5), WIDTH)).train()

    def loss(seed, step):
        method = TrainingConfig(seed=seed)
        return gradients(net.system, embedder(net, pairs), ROWS, method, step=step)["loss"]

    torch.manual_seed(1)
    state, expected = torch.get_rng_state(), [loss(0, 0), loss(0, 1), loss(1, 0)]
    assert torch.equal(torch.get_rng_state(), state)
    assert len(set(expected)) == 3
    torch.manual_seed(2)
    assert [loss(0, 0), loss(0, 1), loss(1, 0)] == expected


def test_half_precision_embeds_in_it_and_keeps_weights_and_losses_in_single():
    pairs, net, other = Pairs(), model(), model()
    kinds = []

    def spied(rows):
        codes = embedder(net, pairs)(rows)
        kinds.append(net.stem.frame(torch.zeros(1, 11)).dtype)
        return codes

    method = TrainingConfig(precision="bfloat16", micro_batch=3)
    told = gradients(net.system, spied, ROWS, method)
    exact = gradients(other.system, embedder(other, pairs), ROWS, TrainingConfig())
    assert set(kinds) == {torch.bfloat16}
    assert told["loss"] != exact["loss"]
    assert told["loss"] == pytest.approx(exact["loss"], rel=0.05)
    assert {grad.dtype for grad in taken(net).values() if grad is not None} == {torch.float32}


@pytest.mark.parametrize("micro", [None, 3])
def test_a_loss_that_is_not_finite_names_itself_and_the_pairs(micro):
    pairs, net = Pairs(), model()
    pairs.words[9][0, 0] = math.nan
    with pytest.raises(SureshotError) as caught:
        method = TrainingConfig(micro_batch=micro)
        gradients(net.system, embedder(net, pairs), ROWS, method, name=pairs.name)
    message = str(caught.value)
    assert "contrast = nan" in message and "loss = nan" in message
    assert "video4 'caption 9'" in message
    assert "caption 3'" not in message
    assert all(grad is None for grad in taken(net).values())


def test_where_all_codes_are_finite_the_batch_is_named():
    pairs, net = Pairs(), model()
    with torch.no_grad():
        net.system.log_scale.fill_(1e9)
    with pytest.raises(SureshotError, match=r"finite codes of video0 'caption 0'; .*"):
        gradients(net.system, embedder(net, pairs), ROWS, TrainingConfig(), name=pairs.name)
    many = list(range(0, 24, 2))
    with pytest.raises(SureshotError, match=r"caption 14' and 4 more\."):
        gradients(net.system, embedder(net, pairs), many, TrainingConfig(), name=pairs.name)


def optimiser(net, rate=0.1):
    return torch.optim.SGD(groups([(net, rate)], 0.0))


def test_an_update_goes_down_the_gradient_at_a_share_of_the_rate():
    pairs, net = Pairs(), model()
    gradients(net.system, embedder(net, pairs), ROWS, TrainingConfig())
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    grads = {n: None if g is None else g.clone() for n, g in taken(net).items()}
    length = update(optimiser(net), net, net.system, share=0.5, clip=None)
    assert length == pytest.approx(
        sum(grad.square().sum().item() for grad in grads.values() if grad is not None) ** 0.5
    )
    for name, weight in net.named_parameters():
        moved = 0.0 if grads[name] is None else -0.05 * grads[name]
        torch.testing.assert_close(weight.detach(), before[name] + moved)
        assert weight.grad is None


def test_a_long_gradient_is_shortened_and_a_short_one_is_not():
    pairs, net = Pairs(), model()
    for clip, moved in ((0.01, 0.01), (1e6, None)):
        before = torch.cat([weight.detach().flatten() for weight in net.parameters()])
        gradients(net.system, embedder(net, pairs), ROWS, TrainingConfig())
        length = update(optimiser(net, 1.0), net, net.system, share=1.0, clip=clip)
        after = torch.cat([weight.detach().flatten() for weight in net.parameters()])
        assert (after - before).norm().item() == pytest.approx(moved or length, rel=1e-3)


def test_the_logit_scale_is_held_at_a_hundred():
    net = model()
    net.system.log_scale.grad = torch.tensor(-1e3)
    update(optimiser(net), net, net.system, share=1.0, clip=None)
    assert net.system.scale.item() == pytest.approx(100, rel=1e-5)


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_named():
    net = model()
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    for weight in net.parameters():
        weight.grad = torch.ones_like(weight)
    net.stem.frame.bias.grad[0] = math.inf
    with pytest.raises(SureshotError, match=r"not finite \(of stem\.frame\.bias\)"):
        update(optimiser(net), net, net.system, share=1.0, clip=1.0)
    for name, weight in net.named_parameters():
        assert torch.equal(weight, before[name])
        assert weight.grad is None
