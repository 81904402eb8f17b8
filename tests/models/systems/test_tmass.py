"""T-MASS: the released numbers but for their leak, its masses as loops, and fixed noise."""

import math

import pytest
import torch

from sureshot.models.layers.gaussian import draw_noise
from sureshot.models.layers.pooling import scores_direct
from sureshot.models.systems.tmass import Radius, TMass, TMassConfig
from tests.models.layers.weights import load, sample, shake, tensor
from tests.models.systems.every import WIDTH, texts, videos
from tests.models.systems.loops import cosine, picking


def tmass(seed: int = 0, **settings) -> TMass:
    torch.manual_seed(seed)
    made = TMass(TMassConfig(**{"frames": 4, "dropout": 0.0, **settings}), WIDTH)
    shake(made.pooled, size=0.1)
    shake(made.radius, size=0.1, seed=1)
    return made


@pytest.fixture
def stochastic(golden) -> tuple[Radius, dict]:
    """The released code's radius, and its numbers."""
    told = golden("tmass_stochastic")
    made = Radius(told["config"]["num_frames"], told["config"]["embed_dim"])
    names = {"linear": "std_branch.linear_proj"}
    load(made, told["weights"], names)
    return made, told


def test_the_radius_is_that_of_the_released_code(stochastic: tuple[Radius, dict]) -> None:
    made, told = stochastic
    sentences, frames = (tensor(told["inputs"][name]) for name in ("text", "video"))
    shown = made.show(frames, torch.ones(frames.shape[:2]).bool())
    units = torch.nn.functional.normalize(sentences, dim=-1)
    found = made(torch.einsum("td,tmd->tm", units, shown))
    torch.testing.assert_close(found, tensor(told["outputs"]["log_var"]), rtol=1e-6, atol=1e-6)


def test_a_trial_is_compared_with_the_video_as_the_text_itself_pools_it(golden) -> None:
    told = golden("tmass_inference_sims")
    # Of text and video; the numbers have a text of its own for each video, and no radius.
    drawn, pooled = (tensor(told["inputs"][name]) for name in ("text_stochastic", "video_pooled"))
    made = TMass(TMassConfig(mode="paper", frames=1, trials=1), drawn.shape[-1]).double()
    made.trial_noise = drawn.transpose(0, 1)[None]
    torch.nn.init.zeros_(made.radius.linear.weight)
    made._pool = lambda sentences, videos: pooled
    sentences = torch.zeros_like(drawn[0])
    mask = torch.ones(len(drawn), 1).bool()
    films = {"video": pooled, "frames": torch.ones_like(pooled[:, :1]), "mask": mask}
    found = made.similarity({"sentence": sentences}, films)
    slots = tensor(told["outputs"]["label_free"]).flatten(0, 1)
    expected = slots[~slots.isnan().any(1)]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_a_video_is_stretched_over_the_places_of_the_radius() -> None:
    made = Radius(6, WIDTH)
    frames = sample(5, 8, WIDTH)
    lengths = [8, 6, 4, 2, 1]
    mask = torch.arange(8) < torch.tensor(lengths)[:, None]
    shown = made.show(frames.masked_fill(~mask[..., None], 50.0), mask)
    for item, places in enumerate(
        ([0, 1, 2, 4, 5, 6], [0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 1], [0] * 6)
    ):
        expected = torch.nn.functional.normalize(frames[item, places], dim=-1)
        torch.testing.assert_close(shown[item], expected)


@pytest.mark.parametrize("mode", ["well_posed", "paper"])
@pytest.mark.parametrize("noise", ["normal", "uniform"])
def test_the_losses_are_the_equations(mode: str, noise: str) -> None:
    made = tmass(mode=mode, noise=noise, scale=10.0, frames=3).double()
    words, films = texts(3), videos(3)
    words = words._replace(sentence=words.sentence.double())
    films = films._replace(frames=films.frames.double())
    codes = made.texts(words), made.videos(films)
    losses = made.losses(*codes, torch.Generator().manual_seed(5))
    draw = torch.Generator().manual_seed(5)
    eps = (
        draw_noise((3, WIDTH), draw) if noise == "normal" else torch.rand(3, WIDTH, generator=draw)
    )
    drawn, support = [], []
    pooled = made.pooled.pool(words.sentence, films.frames, films.mask)
    for i in range(3):
        t, v = words.sentence[i].tolist(), pooled[i, i].tolist()
        count = int(films.mask[i].sum())
        cosines = [cosine(t, films.frames[i, m * count // 3].tolist()) for m in range(3)]
        linear = made.radius.linear
        reach = [
            math.exp(math.fsum(w * c for w, c in zip(row, cosines, strict=True)) + b)
            for row, b in zip(linear.weight.tolist(), linear.bias.tolist(), strict=True)
        ]
        step = eps[i].tolist()
        if mode == "well_posed":
            t, v = ([x / math.hypot(*y) for x in y] for y in (t, v))
            step = [e / math.sqrt(WIDTH) for e in step]
        ahead = [b - a for a, b in zip(t, v, strict=True)]
        ahead = [a / math.hypot(*ahead) for a in ahead]
        for found, towards in ((drawn, step), (support, ahead)):
            found.append([x + r * e for x, r, e in zip(t, reach, towards, strict=True)])
    assert losses.keys() == made.weights.keys()
    for name, vectors in (("similarity", drawn), ("support", support)):
        scores = [[cosine(vectors[i], pooled[j, i].tolist()) for j in range(3)] for i in range(3)]
        assert losses[name].item() == pytest.approx(-picking(scores, 10.0), rel=1e-6)


def test_by_default_the_text_itself_is_compared() -> None:
    made, words, films = tmass().eval(), texts(3), videos(4)
    found = made.similarity(made.texts(words), made.videos(films))
    expected = scores_direct(made.pooled.pool, words.sentence, films.frames, films.mask)
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)
    # The radius has no say.
    shake(made.radius, size=1.0)
    assert torch.equal(made.similarity(made.texts(words), made.videos(films)), found)


@pytest.mark.parametrize("mode", ["well_posed", "paper"])
@pytest.mark.parametrize("choice", ["mean", "best"])
def test_trials_are_those_of_the_model_for_every_pair(mode: str, choice: str) -> None:
    made = tmass(mode=mode, choice=choice, trials=3).double().eval()
    words, films = texts(3), videos(4)
    words = words._replace(sentence=words.sentence.double())
    films = films._replace(frames=films.frames.double())
    found = made.similarity(made.texts(words), made.videos(films))
    pooled = made.pooled.pool(words.sentence, films.frames, films.mask)
    for i in range(3):
        t = words.sentence[i]
        for j in range(4):
            count = int(films.mask[j].sum())
            cosines = [
                cosine(t.tolist(), films.frames[j, m * count // 4].tolist()) for m in range(4)
            ]
            reach = made.radius(torch.tensor(cosines, dtype=torch.float64)).exp()
            middle = t / t.norm() if mode == "well_posed" else t
            seen = [
                cosine((middle + reach * e).tolist(), pooled[j, i].tolist())
                for e in made.trial_noise
            ]
            expected = max(seen) if choice == "best" else sum(seen) / 3
            assert found[i, j].item() == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_the_noise_of_trials_is_saved_with_the_model() -> None:
    made = tmass(trials=5)
    other = tmass(seed=1, trials=5)
    assert torch.equal(made.trial_noise, other.trial_noise)
    assert torch.equal(made.trial_noise, tmass(trials=5, mode="paper").trial_noise / WIDTH**0.5)
    assert "trial_noise" in made.state_dict()
    assert "trial_noise" not in tmass().state_dict()


@pytest.mark.parametrize("mode", ["well_posed", "paper"])
def test_noise_is_as_long_as_the_text_or_as_printed(mode: str) -> None:
    length = 1.0 if mode == "well_posed" else math.sqrt(512)
    for noise, square, mean in (("normal", 1.0, 0.0), ("uniform", 1 / 3, 0.5)):
        made = TMass(TMassConfig(mode, noise, trials=50), 512)
        found = made.trial_noise * math.sqrt(512) / length
        assert found.square().mean().item() == pytest.approx(square, rel=0.05)
        assert found.mean().item() == pytest.approx(mean, abs=0.03)


def test_the_radius_of_every_pair_can_be_looked_at() -> None:
    made = tmass()
    codes = made.texts(texts(3)), made.videos(videos(4))
    (found,) = made.matrices(*codes).values()
    one = made.radius(made._seen(codes[0]["sentence"], codes[1]))
    torch.testing.assert_close(found, one.mean(-1))
    assert found.shape == (3, 4) and found.std() > 0


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("well_posed", (0, "mean", "normal")), ("released", (20, "best", "uniform"))],
)
def test_defaults_are_those_of_the_mode(mode: str, expected: tuple) -> None:
    made = tmass(mode=mode)
    assert (made.trials, made.choice, made.noise) == expected
    assert made.weights["support"] == 0.8
