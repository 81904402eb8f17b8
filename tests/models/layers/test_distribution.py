"""Gaussian heads: what they start from, the literal form, and DUQ's and UATVR's numbers."""

import math

import pytest
import torch

from sureshot.models.layers.gaussian import (
    Branch,
    GaussianHead,
    LocalAggregation,
    PieAggregation,
    PieGaussianHead,
)
from tests.models.layers.test_aggregation import PIE
from tests.models.layers.weights import load, sample, shake, tensor
from tests.models.systems.every import WIDTH, texts


def test_mean_and_spread_are_linear_and_the_mean_has_unit_length():
    head = GaussianHead(6)
    shake(head)
    features = sample(4, 6)
    gaussian = head(features)
    for z, mean, log_var in zip(features, gaussian.mean, gaussian.log_var, strict=True):
        expected = head.mean.weight @ z + head.mean.bias
        torch.testing.assert_close(mean, expected / math.sqrt((expected @ expected).item()))
        torch.testing.assert_close(log_var, head.spread.weight @ z + head.spread.bias)


def test_the_literal_head_is_two_plain_linear_layers_and_gives_a_log_deviation():
    head = GaussianHead(6, literal=True)
    shake(head)
    features = sample(4, 6)
    gaussian = head(features)
    for z, mean, log_var in zip(features, gaussian.mean, gaussian.log_var, strict=True):
        torch.testing.assert_close(mean, head.mean.weight @ z + head.mean.bias)
        torch.testing.assert_close(
            (log_var / 2).exp(), (head.spread.weight @ z + head.spread.bias).exp()
        )


def test_it_starts_as_the_feature_with_noise_about_as_long():
    torch.manual_seed(0)
    head = GaussianHead(512)
    features = torch.nn.functional.layer_norm(sample(20, 512), (512,))
    gaussian = head(features)
    torch.testing.assert_close(gaussian.mean, torch.nn.functional.normalize(features, dim=-1))
    noise = gaussian.log_var.exp().sum(1).sqrt()
    assert 0.9 < noise.min() <= noise.max() < 1.3


def test_the_spread_to_start_from_can_be_chosen():
    head = GaussianHead(6, init_log_var=-4.0)
    assert head(torch.zeros(1, 6)).log_var.tolist() == [[-4.0] * 6]
    literal = GaussianHead(6, literal=True)(torch.zeros(1, 6))
    assert literal.log_var.tolist() == [[0.0] * 6]
    assert literal.mean.tolist() == [[0.0] * 6]


@pytest.mark.parametrize("name", PIE)
def test_pie_head(golden, name):
    told, here = golden(name), PIE[name]
    whole, tokens = tensor(told["inputs"][here["inputs"]]), tensor(told["inputs"]["tokens"])
    head = PieGaussianHead(whole.shape[1], told["config"]["hidden"])
    names = {
        f"{part}.{own}": to for part in ("mean", "deviation") for own, to in here[part].items()
    }
    load(head, told["weights"], names)
    gaussian = head(whole, tokens, torch.ones(tokens.shape[:2], dtype=torch.bool))
    close = {"rtol": 1e-6, "atol": 1e-8}
    torch.testing.assert_close(gaussian.mean, tensor(told["outputs"][here["unit"]]), **close)
    deviation = (gaussian.log_var / 2).exp()
    samples = gaussian.mean[:, None] + deviation[:, None] * tensor(told["inputs"]["eps"])
    torch.testing.assert_close(samples, tensor(told["outputs"]["samples"]), **close)


def test_pie_head_starts_from_the_spread_asked_for():
    torch.manual_seed(0)
    zeros = torch.zeros(1, 6), torch.zeros(1, 2, 6), torch.ones(1, 2, dtype=torch.bool)
    assert PieGaussianHead(6, 3)(*zeros).log_var.tolist() == [[0.0] * 6]
    assert PieGaussianHead(6, 3, init_log_var=-4.0)(*zeros).log_var.tolist() == [[-4.0] * 6]


def test_a_branch_is_its_head_on_its_aggregation() -> None:
    torch.manual_seed(0)
    words = texts(3)
    for kind, layer in (("attention", LocalAggregation), ("pie", PieAggregation)):
        for literal in (False, True):
            branch = Branch(WIDTH, kind, literal=literal)
            assert type(branch.aggregate) is layer
            assert branch.head.literal == literal
            expected = branch.head(branch.aggregate(*words))
            found = branch(*words)
            assert torch.equal(found.mean, expected.mean)
            assert torch.equal(found.log_var, expected.log_var)
    assert Branch(WIDTH, "attention", literal=True).aggregate.residual == "double"
    assert Branch(WIDTH, "attention", literal=False).aggregate.residual == "single"


def test_a_text_without_a_word_is_its_sentence_alone() -> None:
    torch.manual_seed(0)
    branch, words = Branch(WIDTH, "attention", literal=False), texts(2)
    none = torch.zeros_like(words.mask)
    found = branch(words.sentence, words.words, none)
    bare = branch(words.sentence, words.words[:, :0], none[:, :0])
    torch.testing.assert_close(found.mean, bare.mean)
    assert found.mean.isfinite().all()
