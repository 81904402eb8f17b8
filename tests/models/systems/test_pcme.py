"""PCME: its equations as loops, its released losses, and scores that are drawn from nothing."""

import math

import pytest
import torch

from sureshot.models.layers.gaussian import Gaussian, draw_noise
from sureshot.models.losses.uncertainty import soft_contrastive
from sureshot.models.systems import pcme as systems_pcme
from sureshot.models.systems.base import Codes
from sureshot.models.systems.pcme import Pcme, PcmeConfig
from tests.models.layers.weights import shake, tensor
from tests.models.systems.every import WIDTH, gaussians, texts, videos
from tests.models.systems.loops import SAMPLES, divergence, samples


def pcme(seed: int = 0, **settings) -> Pcme:
    torch.manual_seed(seed)
    return Pcme(PcmeConfig(**{"samples": SAMPLES, **settings}), WIDTH)


def coded(made: Pcme, count: int = 4) -> tuple[Codes, Codes]:
    return made.texts(texts(count)), made.videos(videos(count))


def pairs(count: int = 4) -> tuple[Codes, Codes]:
    return tuple(
        {name: code.double() for name, code in gaussians(count, seed).items()} for seed in (1, 2)
    )


def match(one: list, other: list, a: float, b: float, factor: float) -> list[float]:
    """Probabilities that these samples match."""
    return [
        1 / (1 + math.exp(factor * (a * math.sqrt(math.dist(x, y) ** 2 + 1e-6) - b)))
        for x in one
        for y in other
    ]


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("weighing", ["balanced", "sum"])
def test_the_losses_are_the_equations(doubled: bool, weighing: str) -> None:
    made = pcme(doubled=doubled, weighing=weighing, uniformity=10.0, scale=4.0, shift=3.0).double()
    codes = pairs(3)
    losses = made.losses(*codes, torch.Generator().manual_seed(5))
    draw = torch.Generator().manual_seed(5)
    drawn = [samples(code, draw) for code in codes]
    sides = [torch.tensor(side, dtype=torch.float64) for side in drawn]
    expected = soft_contrastive(*sides, made.scale, made.shift, doubled, weighing)
    torch.testing.assert_close(losses["similarity"], expected)
    every = [x for side in drawn for item in side for x in item]
    close = [math.exp(-2 * math.dist(x, y) ** 2) for n, x in enumerate(every) for y in every[:n]]
    assert losses["uniformity"].item() == pytest.approx(math.log(sum(close) / len(close)), rel=1e-6)
    prior = sum(divergence(code, 1 / WIDTH) for code in codes)
    assert losses["divergence"].item() == pytest.approx(prior, rel=1e-6)


def test_losses_are_those_of_the_released_code(golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given its samples; it counts each pair twice, once in each direction."""
    told = golden("pcme_soft_contrastive")
    samples = [tensor(told["inputs"][f"{side}_samples"]) for side in ("caption", "image")]
    for case, (shift, scale, weight, _) in told["config"]["cases"].items():
        made = pcme(
            doubled=True,
            weighing="sum",
            uniformity=float(weight),
            beta=0.0,
            scale=float(scale),
            shift=float(shift),
        ).double()
        given = iter(samples)
        monkeypatch.setattr(systems_pcme, "draw_samples", lambda *_, given=given: next(given))
        losses, expected = made.losses(*pairs(len(samples[0]))), told["outputs"][case]
        assert losses["similarity"].item() == pytest.approx(expected["i2t_loss"], rel=1e-6)
        if weight:
            assert losses["uniformity"].item() == pytest.approx(expected["uniform_loss"], rel=1e-6)


def test_the_distance_is_that_of_samples_in_expectation() -> None:
    made, codes = pcme().double(), pairs(3)
    found = made.similarity(*codes)
    draw = torch.Generator().manual_seed(0)
    for i in range(3):
        for j in range(3):
            one, other = (
                Gaussian(c["mean"][k], c["log_var"][k]) for c, k in zip(codes, (i, j), strict=True)
            )
            spread = one.log_var.exp() + other.log_var.exp()
            apart = ((one.mean - other.mean).square() + spread).sum()
            assert found[i, j].item() == pytest.approx(1 - apart.item() / 2, rel=1e-9)
            many = [
                g.mean + (g.log_var / 2).exp() * draw_noise((20_000, WIDTH), draw).double()
                for g in (one, other)
            ]
            seen = (many[0] - many[1]).square().sum(-1).mean().item()
            assert apart.item() == pytest.approx(seen, rel=0.02)


@pytest.mark.parametrize("doubled", [False, True])
def test_the_match_probability_is_the_average_over_fixed_samples(doubled: bool) -> None:
    made = pcme(score="probability", doubled=doubled, scale=4.0, shift=3.0).double()
    codes = pairs(3)
    found = made.similarity(*codes)
    drawn = [
        [
            [(m + (v / 2).exp() * e).tolist() for e in noise]
            for m, v in zip(code["mean"], code["log_var"], strict=True)
        ]
        for code, noise in zip(codes, (made.text_noise, made.video_noise), strict=True)
    ]
    a, b = made.scale.item(), made.shift.item()
    for i in range(3):
        for j in range(3):
            odds = match(drawn[0][i], drawn[1][j], a, b, 2.0 if doubled else 1.0)
            expected = math.log(sum(odds) / len(odds))
            assert found[i, j].item() == pytest.approx(expected, rel=1e-6)


def test_fixed_noise_is_like_drawn_noise_but_centred() -> None:
    made = Pcme(PcmeConfig(score="probability"), 512)
    for noise in (made.text_noise, made.video_noise):
        assert noise.shape == (7, 512)
        assert noise.mean(0).abs().max() < 1e-6
        assert noise.square().mean().item() == pytest.approx(1.0, rel=0.1)
    assert not torch.allclose(made.text_noise, made.video_noise)
    assert torch.equal(made.text_noise, Pcme(PcmeConfig(score="probability"), 512).text_noise)
    assert {"text_noise", "video_noise"} < made.state_dict().keys()
    assert "text_noise" not in pcme().state_dict()
    assert pcme(score="probability", samples=1).text_noise.abs().max() == 0


def test_many_pairs_are_scored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    made, codes = pcme(score="probability").double(), pairs(6)
    whole = made.similarity(*codes)
    monkeypatch.setattr("sureshot.models.systems.pcme._BLOCK", 2 * SAMPLES**2 * 6)
    torch.testing.assert_close(made.similarity(*codes), whole)
    none = {name: code[:0] for name, code in codes[0].items()}
    assert made.similarity(none, codes[1]).shape == (0, 6)


def test_a_video_s_gaussian_is_that_of_its_frames_and_their_mean() -> None:
    made, films, words = pcme(), videos(4), texts(4)
    shake(made, size=0.1)
    code = made.videos(films)
    for item in range(4):
        own = films.frames[item][films.mask[item]]
        head = made.video_head(own.mean(0)[None], own[None], torch.ones(1, len(own)).bool())
        torch.testing.assert_close(code["mean"][item], head.mean[0])
        torch.testing.assert_close(code["log_var"][item], head.log_var[0])
    code, head = made.texts(words), made.text_head(words.sentence, words.words, words.mask)
    assert torch.equal(code["mean"], head.mean) and torch.equal(code["log_var"], head.log_var)


def test_noise_begins_as_long_as_the_mean_and_the_prior_is_as_large() -> None:
    for mode, length in (("well_posed", 1.0), ("paper", math.sqrt(WIDTH))):
        made = pcme(mode=mode)
        assert math.sqrt(WIDTH) * math.exp(made.prior / 2) == pytest.approx(length)
        bias = made.text_head.deviation.linear.bias
        torch.testing.assert_close(2 * bias, torch.full((WIDTH,), made.prior))


def test_losses_without_weight_are_not_computed() -> None:
    for settings, names in (
        ({}, {"similarity", "divergence"}),
        ({"beta": 0.0}, {"similarity"}),
        ({"uniformity": 10.0}, {"similarity", "divergence", "uniformity"}),
    ):
        made = pcme(**settings)
        assert made.losses(*coded(made)).keys() == names
    assert made.weights == {"similarity": 1.0, "uniformity": 10.0, "divergence": 1e-5}


def test_measures_are_the_geometric_mean_of_deviations_and_the_total_variance() -> None:
    made = pcme()
    codes = coded(made)
    seen = made.measures(*codes)
    for side, code in zip(("text", "video"), codes, strict=True):
        variances = [[math.exp(v) for v in row] for row in code["log_var"].tolist()]
        expected = [math.prod(row) ** (0.5 / WIDTH) for row in variances]
        assert seen[f"{side} deviation"].tolist() == pytest.approx(expected, rel=1e-5)
        expected = [math.log(sum(row)) for row in variances]
        assert seen[f"{side} spread"].tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5)
