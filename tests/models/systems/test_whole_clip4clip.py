"""CLIP4Clip as its scripts run it: first weights, scores, losses, gradients and three steps."""

from pathlib import Path

import pytest
import torch

from tests.golden.whole import (
    LOSS,
    Official,
    Trained,
    block,
    check_gradients,
    check_groups,
    check_start,
    check_steps,
)


@pytest.fixture(params=["clip4clip_meanP", "clip4clip_seqTransf"])
def official(whole: Path, request: pytest.FixtureRequest) -> Official:
    return Official(whole, request.param)


@pytest.fixture
def trained(official: Official) -> Trained:
    settings: dict[str, object] = {"name": "clip4clip"}
    head = {}
    if official.name.endswith("seqTransf"):
        layers = official.config["sequential_layers"]
        settings |= {"temporal": "transformer", "layers": layers, "heads": official.config["heads"]}
        at = "model.system.temporal."
        head["frame_position_embeddings.weight"] = ((f"{at}positions.weight",), False)
        for number in range(layers):
            head |= block(
                f"transformerClip.resblocks.{number}.", f"{at}transformer.blocks.{number}."
            )
    return Trained(official, settings, head, "bert_adam")


@pytest.fixture
def batch(official: Official):
    return official.texts(), official.videos("frames_zero", "frame_mask")


def test_first_weights_are_those_of_clip(official: Official, trained: Trained) -> None:
    check_start(trained)
    ours = {name for name, _ in trained.modules.named_parameters() if "model.system" in name}
    covered = {part for parts, _ in trained.sources.values() for part in parts}
    assert ours <= covered
    names = {name for group in official.told["parameter_groups"] for name in group["names"]}
    assert names == set(trained.sources)


def test_what_enters_the_head_and_the_scores(official: Official, trained: Trained, batch) -> None:
    trained.modules.eval()
    with torch.no_grad():
        texts, videos = trained.tokens(*batch)
        codes = trained.codes(*batch)
        scores = trained.model.system.scale * trained.model.system.similarity(*codes)
    sentence, frames = official.arrays["eval_sentence"][:, 0], official.arrays["eval_frames"]
    torch.testing.assert_close(texts.sentence, sentence, rtol=LOSS, atol=LOSS * 10)
    mask = videos.mask[..., None]
    torch.testing.assert_close(videos.frames, frames * mask, rtol=LOSS, atol=LOSS * 10)
    told = torch.tensor(official.told["evaluation"]["logits"])
    torch.testing.assert_close(scores, told, rtol=LOSS, atol=LOSS * told.abs().max().item())


def test_losses_and_gradients(official: Official, trained: Trained, batch) -> None:
    losses = trained.losses(*batch)
    assert losses["similarity"] == pytest.approx(official.told["training"]["contrastive"], rel=LOSS)
    assert losses["loss"] == pytest.approx(official.told["training"]["total"], rel=LOSS)
    check_gradients(trained, official.told["gradients"])


def test_what_is_trained_at_which_rate_and_decay(trained: Trained) -> None:
    check_groups(trained)


def test_three_steps_move_the_weights_as_far(official: Official, trained: Trained, batch) -> None:
    check_steps(trained, *batch, official.told["steps"]["losses"])
