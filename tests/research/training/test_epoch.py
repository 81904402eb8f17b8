"""The steps of an epoch: as many as are left, and none of what cannot be read."""

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.research.training.loop import prepare, steps_of
from sureshot.research.training.recipe import TrainingConfig
from tests.research.training.toy import Pairs, model


def fitting(pairs=None, **settings):
    config = TrainingConfig(epochs=2, batch=5, rate=0.02, **settings)
    return prepare(model(0.0, 0), pairs or Pairs(), config, None, {}, None)


def test_an_epoch_has_its_steps_and_their_numbers():
    run = fitting()
    assert run.epoch_steps == 3
    told = list(steps_of(run, 1))
    assert [p.step for p in told] == [4, 5, 6] and {p.epoch for p in told} == {2}
    assert {p.steps for p in told} == {6} and run.pairs.epoch == 1


def test_steps_that_were_taken_are_not_taken_again():
    whole, rest = fitting(), fitting()
    first = list(steps_of(whole, 0))
    state = fitting()
    next(steps := steps_of(state, 0))
    steps.close()
    rest.model.load_state_dict(state.model.state_dict())
    rest.optimiser.load_state_dict(state.optimiser.state_dict())
    told = list(steps_of(rest, 0, taken=1))
    assert [p.step for p in told] == [2, 3]
    assert [p.losses for p in told] == [p.losses for p in first[1:]]
    one, other = whole.model.state_dict(), rest.model.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_schedule_does_not_wait_for_batches_that_are_left_out():
    pairs = Pairs(videos=6, captions=1)
    run = fitting(pairs)  # two batches of three
    rates = [p.rate for p in steps_of(run, 1)]
    pairs.unreadable = set(range(6)) - {0, 1}
    with pytest.raises(SureshotError, match="no batch has two videos"):
        while True:
            left = [p.rate for p in steps_of(fitting(pairs), 1)]
            assert len(left) == 1 and left[0] in rates
            pairs.unreadable.add(0)


def test_float16_scales_gradients_and_others_do_not():
    assert fitting(precision="float16").scaler is not None
    assert fitting(precision="bfloat16").scaler is None
