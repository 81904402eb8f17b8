"""Sampling and divergences, against torch.distributions and the papers' numbers."""

import math

import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from sureshot.models.layers.gaussian import (
    Branch,
    Gaussian,
    GaussianHead,
    LocalAggregation,
    PieAggregation,
    PieDeviation,
    draw_noise,
    kl_between,
    kl_to_prior,
    sample,
)
from tests.models.layers.weights import blocks, load, shake, tensor
from tests.models.layers.weights import sample as randoms
from tests.models.systems.every import WIDTH, texts

PIE = {
    "duq_c89_local_prob": {
        "inputs": "global_feat",
        "mean": {
            "pool.worth.0": "local_merge.attention.w_1",
            "pool.worth.2": "local_merge.attention.w_2",
            "linear": "local_merge.fc",
            "norm": "local_merge.layer_norm",
        },
        "deviation": {
            "pool.worth.0": "prob_embed.attention.w_1",
            "pool.worth.2": "prob_embed.attention.w_2",
            "linear": "prob_embed.fc",
            "linear_whole": "prob_embed.fc1",
        },
        "masked": ("out_with_pad_mask_last2", 2),
        "log_deviation": "sigma",
        "unit": "mu",
    },
    "uatvr_pie_heads": {
        "inputs": "pooled",
        "mean": {
            "pool.worth.0": "pie.attention.w_1",
            "pool.worth.2": "pie.attention.w_2",
            "linear": "pie.fc",
            "norm": "pie.layer_norm",
        },
        "deviation": {
            "pool.worth.0": "unc.attention.w_1",
            "pool.worth.2": "unc.attention.w_2",
            "linear": "unc.fc",
            "linear_whole": "unc.fc2",
        },
        "masked": ("out_masked_last", 1),
        "log_deviation": "logsigma",
        "unit": "mean",
    },
}


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    mean = 3 * draw_noise(shape, generator, torch.float64)
    return Gaussian(mean, 2 * draw_noise(shape, generator, torch.float64) - 1)


def torchs(gaussian):
    return Independent(Normal(gaussian.mean, (0.5 * gaussian.log_var).exp()), 1)


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def test_sampling_is_the_released_codes_with_twice_its_logarithm(golden):
    file = golden("duq_c89_local_prob")
    gaussian = Gaussian(double(file["outputs"]["mu"]), 2 * double(file["outputs"]["sigma"]))
    expected = double(file["outputs"]["samples"])
    assert torch.allclose(sample(gaussian, double(file["inputs"]["eps"])), expected, rtol=1e-6)


@pytest.mark.parametrize("prior_log_var", [0.0, -math.log(5), 1.5])
def test_divergence_from_the_prior_is_torchs(prior_log_var):
    gaussian = drawn(1, 6, 5)
    prior = Gaussian(double([[0.0] * 5] * 6), double([[prior_log_var] * 5] * 6))
    expected = kl_divergence(torchs(gaussian), torchs(prior))
    assert torch.allclose(kl_to_prior(gaussian, prior_log_var), expected, rtol=1e-9)
    assert torch.allclose(kl_to_prior(prior, prior_log_var), torch.zeros(6).double(), atol=1e-12)


def test_divergence_from_the_prior_is_pcmes(golden):
    file = golden("kl_unit_gaussian")
    video, text = (
        Gaussian(double(file["inputs"][f"mu_{side}"]), double(file["inputs"][f"s_{side}"]))
        for side in ("video", "text")
    )
    outputs = file["outputs"]
    assert kl_to_prior(video).sum().item() == pytest.approx(outputs["pcme_video_mu"], rel=1e-6)
    mean = kl_to_prior(video).mean().item() / video.mean.shape[-1]
    assert mean == pytest.approx(outputs["pcmepp_video_mu_mean"], rel=1e-6)
    # The released UATVR and DUQ: the mean of the samples for the mean, both sides added up.
    coded = sum(
        kl_to_prior(Gaussian(double(file["inputs"][f"samples_{side}"]).mean(1), own.log_var)).sum()
        for side, own in (("video", video), ("text", text))
    )
    assert coded.item() == pytest.approx(outputs["duq_samples"], rel=1e-6)
    # Read as the deviation, which their sampling does, the same numbers diverge otherwise.
    deviation = Gaussian(video.mean, 2 * video.log_var)
    assert kl_to_prior(deviation).sum().item() == pytest.approx(
        outputs["torch_log_std_sum"], rel=1e-6
    )


def test_divergence_between_items_is_torchs():
    one, other = drawn(3, 6, 5), drawn(4, 6, 5)
    expected = kl_divergence(torchs(one), torchs(other))
    assert torch.allclose(kl_between(one, other), expected, rtol=1e-9)
    assert torch.equal(kl_between(one, one), torch.zeros(6).double())


def test_mean_and_spread_are_linear_and_the_mean_has_unit_length():
    head = GaussianHead(6)
    shake(head)
    features = randoms(4, 6)
    gaussian = head(features)
    for z, mean, log_var in zip(features, gaussian.mean, gaussian.log_var, strict=True):
        expected = head.mean.weight @ z + head.mean.bias
        torch.testing.assert_close(mean, expected / math.sqrt((expected @ expected).item()))
        torch.testing.assert_close(log_var, head.spread.weight @ z + head.spread.bias)


def test_the_literal_head_is_two_plain_linear_layers_and_gives_a_log_deviation():
    head = GaussianHead(6, literal=True)
    shake(head)
    features = randoms(4, 6)
    gaussian = head(features)
    for z, mean, log_var in zip(features, gaussian.mean, gaussian.log_var, strict=True):
        torch.testing.assert_close(mean, head.mean.weight @ z + head.mean.bias)
        torch.testing.assert_close(
            (log_var / 2).exp(), (head.spread.weight @ z + head.spread.bias).exp()
        )


def test_it_starts_as_the_feature_with_noise_about_as_long():
    torch.manual_seed(0)
    head = GaussianHead(512)
    features = torch.nn.functional.layer_norm(randoms(20, 512), (512,))
    gaussian = head(features)
    torch.testing.assert_close(gaussian.mean, torch.nn.functional.normalize(features, dim=-1))
    noise = gaussian.log_var.exp().sum(1).sqrt()
    assert 0.9 < noise.min() <= noise.max() < 1.3


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
    assert Branch(WIDTH, "attention", literal=True).aggregate.doubled
    assert not Branch(WIDTH, "attention", literal=False).aggregate.doubled


# The last item has no real token but the global feature, which only LocalAggregation allows.
MASK = torch.tensor([[True] * 4, [True, False, True, False], [False] * 4])


def duq(told, part):
    mlp = {"agg": "agg.mlp", "prob": "prob.feat_mlp"}[part]
    width = len(told["inputs"]["tokens"][0][0])
    module = LocalAggregation(width, heads=told["config"]["heads"])
    load(
        module,
        told["weights"],
        blocks("block", f"{part}.attention.ResBlock")
        | {f"pool.worth.{i}": f"{part}.attention.feat_w.{i}" for i in (0, 2)}
        | {"mlp": mlp, "norm": f"{part}.ln"},
    )
    return module


def across_the_batch(module, tokens):
    """What the released code computes: its attention takes the first axis for the sequence."""
    swapped = tokens.transpose(0, 1)
    seen = module.block(swapped, torch.ones(swapped.shape[:2], dtype=torch.bool)).transpose(0, 1)
    full = torch.ones(tokens.shape[:2], dtype=torch.bool)
    return module.norm(module.mlp(module.pool(tokens + seen, full)))


def test_duq_but_for_attention_across_the_batch(golden):
    told = golden("duq_head_agg_prob")
    out, tokens = told["outputs"], tensor(told["inputs"]["tokens"])
    aggregate, deviation = duq(told, "agg"), duq(told, "prob")
    close = {"rtol": 1e-6, "atol": 1e-8}
    z = across_the_batch(aggregate, tokens)
    torch.testing.assert_close(z, tensor(out["z"]), **close)
    torch.testing.assert_close(torch.nn.functional.normalize(z, dim=-1), tensor(out["mu"]), **close)
    torch.testing.assert_close(across_the_batch(deviation, tokens), tensor(out["sigma"]), **close)
    changed = across_the_batch(aggregate, tensor(told["inputs"]["tokens_changed"]))
    torch.testing.assert_close(changed[0], tensor(out["z_changed_row0"]), **close)
    alone = torch.cat([across_the_batch(aggregate, item[None]) for item in tokens])
    torch.testing.assert_close(alone, tensor(out["z_single_items"]), **close)


def local(doubled=True):
    module = LocalAggregation(6, 2, doubled=doubled).eval()
    shake(module)
    return module


@pytest.mark.parametrize("doubled", [False, True])
def test_local_aggregation_agrees_with_one_item_at_a_time(doubled):
    module, whole, tokens = local(doubled), randoms(3, 6), randoms(3, 4, 6, seed=1)
    found = module(whole, tokens, MASK)
    for i in range(3):
        x = torch.cat([whole[i : i + 1], tokens[i][MASK[i]]])[None]
        seen = module.block(x, torch.ones(x.shape[:2], dtype=torch.bool))
        seen = seen[0] + x[0] if doubled else seen[0]
        weights = module.pool.worth(seen).squeeze(-1).exp()
        pooled = sum(w / weights.sum() * token for w, token in zip(weights, seen, strict=True))
        torch.testing.assert_close(found[i], module.norm(module.mlp(pooled)))


def pie(kind):
    module = kind(6, 5).eval()
    shake(module)
    return module


@pytest.mark.parametrize("name", PIE)
def test_pie(golden, name):
    told, here = golden(name), PIE[name]
    whole, tokens = tensor(told["inputs"][here["inputs"]]), tensor(told["inputs"]["tokens"])
    sizes = whole.shape[1], told["config"]["hidden"]
    mean, deviation = PieAggregation(*sizes), PieDeviation(*sizes)
    load(mean, told["weights"], here["mean"])
    load(deviation, told["weights"], here["deviation"])
    out, close = told["outputs"], {"rtol": 1e-6, "atol": 1e-8}
    full = torch.ones(tokens.shape[:2], dtype=torch.bool)
    torch.testing.assert_close(mean(whole, tokens, full), tensor(out["out"]), **close)
    torch.testing.assert_close(
        deviation(whole, tokens, full), tensor(out[here["log_deviation"]]), **close
    )
    output, last = here["masked"]
    masked = full.clone()
    masked[:, -last:] = False
    torch.testing.assert_close(mean(whole, tokens, masked), tensor(out[output]), **close)
