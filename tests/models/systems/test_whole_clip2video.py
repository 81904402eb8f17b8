"""CLIP2Video as it was released: first weights, scores, losses and gradients.

There is no script to train it. The released code takes the step from the last frame to the padding
for motion; without padding our numbers are its numbers.
"""

from pathlib import Path

import pytest
import torch

from tests.golden.whole import LOSS, Official, Source, Trained, block, check_gradients, check_start


@pytest.fixture
def official(whole: Path) -> Official:
    return Official(whole, "clip2video")


def names(layers: int) -> dict[str, Source]:
    at = "model.system."
    found: dict[str, Source] = {
        "weight_center": ((f"{at}alignment.weights",), False),
        "emb_center": ((f"{at}alignment.centres",), False),
        "frame_position_embeddings.weight": ((f"{at}positions.weight",), False),
        "type_position_embeddings.weight": ((f"{at}difference.types.weight",), False),
        **block("frame2t_attention.resblocks.0.", f"{at}difference.block."),
        **block("actionClip.resblocks.0.", f"{at}sparse.blocks.0."),
    }
    for number in range(layers):
        found |= block(f"transformerClip.resblocks.{number}.", f"{at}transformer.blocks.{number}.")
    for kind in ("weight", "bias"):
        found[f"trans_layernorm.{kind}"] = ((f"{at}difference.norm.{kind}",), False)
    return found


@pytest.fixture
def trained(official: Official) -> Trained:
    told = official.config
    settings = {
        "name": "clip2video",
        "layers": told["sequential_layers"],
        "heads": told["heads"],
        "centres": told["centres"],
        "share": told["centre_weight"],
    }
    return Trained(official, settings, names(told["sequential_layers"]), "bert_adam")


@pytest.fixture
def full(official: Official):
    return official.texts("ids_full", None), official.videos("frames_full")


def test_first_weights_are_those_of_clip(official: Official, trained: Trained) -> None:
    check_start(trained)
    head = set(official.told["initialisation"]["head"])
    assert head == {name for name in trained.sources if not name.startswith("clip.")}
    assert not any(
        name.startswith("encoder.network") and not weight.requires_grad
        for name, weight in trained.modules.named_parameters()
        if not name.endswith("logit_scale")
    )


def test_without_padding_scores_losses_and_gradients_are_the_official_ones(
    official: Official, trained: Trained, full
) -> None:
    trained.load_head()
    told, system = official.told["without_padding"], trained.model.system
    trained.modules.eval()
    with torch.no_grad():
        scores = system.scale * system.similarity(*trained.codes(*full))
    logits = torch.tensor(told["logits"])
    torch.testing.assert_close(scores, logits, rtol=LOSS, atol=LOSS * logits.abs().max().item())
    losses = trained.losses(*full)
    for ours, theirs in (("similarity", "global"), ("alignment", "tab")):
        expected = (told[f"{theirs}_rows_texts"] + told[f"{theirs}_columns_videos"]) / 2
        assert losses[ours] == pytest.approx(expected, rel=LOSS), ours
    assert losses["loss"] == pytest.approx(told["total"], rel=LOSS)
    check_gradients(trained, told, per_group=False)


def test_masks_make_a_difference_where_there_is_padding_and_nowhere_else(
    official: Official, trained: Trained, record_property
) -> None:
    """Our difference on purpose: a change is one between two real frames."""
    trained.load_head()
    trained.modules.eval()
    batch, system = (
        (official.texts(), official.videos("frames_zero", "frame_mask")),
        trained.model.system,
    )
    with torch.no_grad():
        scores = system.scale * system.similarity(*trained.codes(*batch))
    logits = torch.tensor(official.told["evaluation"]["logits"])
    whole = official.inputs["frame_mask"].bool().all(1)
    torch.testing.assert_close(scores[:, whole], logits[:, whole], rtol=LOSS, atol=1e-3)
    largest = (scores - logits)[:, ~whole].abs().max().item()
    record_property("largest difference of a logit", largest)
    assert 0.01 < largest < 100
