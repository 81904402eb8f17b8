"""X-Pool as its scripts run it: first weights, scores, losses, gradients and three steps."""

from pathlib import Path

import pytest
import torch

from tests.golden.whole import (
    LOSS,
    Official,
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
    return Official(whole, "xpool")


@pytest.fixture
def trained(official: Official) -> Trained:
    settings = {"name": "xpool", "dropout": 0.0}
    return Trained(official, settings, pooling(), "hugging_face", openai=False)


def test_first_weights_are_identities(official: Official, trained: Trained) -> None:
    check_start(trained)
    names = {name for group in official.told["parameter_groups"] for name in group["names"]}
    assert names == set(trained.sources)


@pytest.mark.parametrize("variant", VARIANTS)
def test_vectors_scores_losses_and_gradients(
    official: Official, trained: Trained, batch, variant: str
) -> None:
    if variant == "perturbed_head":
        trained.load_head()
    told = official.told["variants"][variant]
    trained.modules.eval()
    with torch.no_grad():
        texts, videos = trained.tokens(*batch)
        codes = trained.codes(*batch)
        scores = trained.model.system.similarity(*codes)
        pooled = trained.model.system.pooled.pool(texts.sentence, videos.frames, videos.mask)
    for found, name in ((texts.sentence, "sentence"), (videos.frames, "frames")):
        torch.testing.assert_close(found, official.arrays[name], rtol=LOSS, atol=10 * LOSS)
    expected = official.arrays[f"{variant}_pooled_by_text"]
    torch.testing.assert_close(pooled, expected, rtol=LOSS, atol=LOSS)
    cosines = torch.tensor(told["evaluation"]["sims"])[:, 0]
    torch.testing.assert_close(scores, cosines, rtol=LOSS, atol=1e-7)
    losses = trained.losses(*batch)
    assert losses["similarity"] == pytest.approx(told["training"]["contrastive"], rel=LOSS)
    assert losses["loss"] == pytest.approx(told["training"]["total"], rel=LOSS)
    check_gradients(trained, told["gradients"])


def test_what_is_trained_at_which_rate_and_decay(trained: Trained) -> None:
    check_groups(trained)


def test_three_steps_move_the_weights_as_far(official: Official, trained: Trained, batch) -> None:
    check_steps(trained, *batch, official.told["steps"]["losses_in_call_order"])
