"""T-MASS as its scripts run it: first weights, scores, losses, gradients and three steps.

Its evaluation pools each video by its own caption; the numbers compared here are those of the clean
form, which the set has beside them.
"""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.golden.whole import (
    LOSS,
    Official,
    Source,
    Trained,
    check_gradients,
    check_groups,
    check_start,
    check_steps,
    pooling,
)

VARIANTS = ["official_initialisation", "perturbed_head"]


@pytest.fixture
def official(whole: Path) -> Official:
    return Official(whole, "tmass")


@pytest.fixture
def trained(official: Official) -> Trained:
    told = official.config
    settings = {
        "name": "tmass",
        "mode": "released",
        "dropout": 0.0,
        "frames": told["num_frames"],
        "trials": told["trials"],
        "support": official.told["variants"][VARIANTS[0]]["training"]["support_weight"],
    }
    head: dict[str, Source] = {
        f"stochastic.std_branch.linear_proj.{kind}": (
            (f"model.system.radius.linear.{kind}",),
            False,
        )
        for kind in ("weight", "bias")
    }
    return Trained(official, settings, pooling() | head, "hugging_face", openai=False)


def draw(trained: Trained, noise: Tensor) -> None:
    """Have the next losses draw this noise."""
    object.__setattr__(trained.model.system, "_noise", lambda shape, source: noise)


def test_first_weights_are_identities(official: Official, trained: Trained) -> None:
    check_start(trained)
    every = {name for group in official.told["parameter_groups"] for name in group["names"]}
    # Memory that was not set there, and is not used.
    assert every - {"stochastic.std_branch.learnable_scalar"} == set(trained.sources)


@pytest.mark.parametrize("variant", VARIANTS)
def test_vectors_and_scores(official: Official, trained: Trained, batch, variant: str) -> None:
    if variant == "perturbed_head":
        trained.load_head()
    trained.modules.eval()
    system = trained.model.system
    # Of video, trial and text to trial, text and video: noise of their own for all pairs.
    system.trial_noise = official.arrays["eval_noise"].permute(1, 2, 0, 3)
    with torch.no_grad():
        texts, videos = trained.tokens(*batch)
        codes = trained.codes(*batch)
        scores = system.similarity(*codes)
        pooled = system.pooled.pool(texts.sentence, videos.frames, videos.mask)
    for found, name in ((texts.sentence, "sentence"), (videos.frames, "frames")):
        torch.testing.assert_close(found, official.arrays[name], rtol=LOSS, atol=10 * LOSS)
    expected = official.arrays[f"{variant}_pooled_by_text"]
    torch.testing.assert_close(pooled, expected, rtol=LOSS, atol=LOSS)
    told = torch.tensor(official.told["variants"][variant]["evaluation"]["sims_label_free"])
    torch.testing.assert_close(scores, told, rtol=LOSS, atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_losses_and_gradients(official: Official, trained: Trained, batch, variant: str) -> None:
    if variant == "perturbed_head":
        trained.load_head()
    draw(trained, official.arrays["train_noise"])
    losses, told = trained.losses(*batch), official.told["variants"][variant]
    training = told["training"]
    assert losses["similarity"] == pytest.approx(training["contrastive_stochastic"], rel=LOSS)
    assert losses["support"] == pytest.approx(training["contrastive_support"], rel=LOSS)
    assert losses["loss"] == pytest.approx(training["total"], rel=LOSS)
    check_gradients(trained, told["gradients"])


def test_what_is_trained_at_which_rate_and_decay(trained: Trained) -> None:
    check_groups(trained)


def test_three_steps_move_the_weights_as_far(official: Official, trained: Trained, batch) -> None:
    noise = official.arrays["steps_noise"]
    parts = official.told["steps"]["losses_in_call_order"]
    weight = trained.model.system.weights["support"]
    losses = [
        drawn + weight * support for drawn, support in zip(parts[::2], parts[1::2], strict=True)
    ]
    check_steps(trained, *batch, losses, lambda step: draw(trained, noise[step]))
