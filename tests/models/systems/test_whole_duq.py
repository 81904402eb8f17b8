"""DUQ as its scripts run it: first weights, scores, losses, gradients and three steps.

In the released code attention runs across the items of a batch, and padded words take part. Here
neither is so; `across` puts both back, and then all numbers are the official ones. The last test
says what difference it makes.
"""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from sureshot.models.layers.transformer import Block
from sureshot.models.systems.duq_released import DuqReleased
from tests.golden.whole import (
    LOSS,
    Official,
    Padding,
    Source,
    Trained,
    block,
    check_gradients,
    check_groups,
    check_start,
    check_steps,
)

BRANCHES = ("sentence_frame", "word_patch", "distribution")


class AcrossItems(Block):
    """A block whose tokens look at those of the same place in other items, as released."""

    def _attend(self, tokens: Tensor, mask: Tensor) -> Tensor:
        every = torch.ones_like(mask.T)
        return super()._attend(tokens.transpose(0, 1), every).transpose(0, 1)


@pytest.fixture
def official(whole: Path) -> Official:
    return Official(whole, "duq")


def names(layers: int) -> dict[str, Source]:
    found: dict[str, Source] = {}
    at = "model.system."
    found["frame_position_embeddings.weight"] = ((f"{at}temporal.positions.weight",), False)
    for number in range(layers):
        found |= block(
            f"transformerClip.resblocks.{number}.", f"{at}temporal.transformer.blocks.{number}."
        )
    parts = {}
    for theirs, ours in (
        ("w_feat_w", "word_worth"),
        ("f_feat_w", "frame_worth"),
        ("p_feat_w", "patch_worth"),
        ("t_prob_w", "text_side.sample_worth"),
        ("v_prob_w", "video_side.sample_worth"),
    ):
        parts |= {f"{theirs}.{layer}": f"{ours}.{layer}" for layer in (0, 2)}
    for number in range(3):
        pairs = {
            "pcm_p_{}.conv.conv": "conv",
            "pcm_p_{}.norm": "norm",
            "pcm_p_{}.score": "score",
            "att_block_p_{}.norm1": "norm_attention",
            "att_block_p_{}.attn.q": "queries",
            "att_block_p_{}.attn.kv": "keys_values",
            "att_block_p_{}.attn.proj": "out",
        }
        parts |= {
            f"v_{theirs.format(number + 1)}": f"mergings.{number}.{ours}"
            for theirs, ours in pairs.items()
        }
    for side in ("text", "video"):
        for net, part, mlp in (("agg", "mean", "mlp"), ("prob", "deviation", "feat_mlp")):
            there, here = f"{net}_{side}.", f"{side}_side.{part}."
            found |= block(f"{there}attention.ResBlock.", f"{at}{here}block.")
            for layer in (0, 2):
                parts[f"{there}attention.feat_w.{layer}"] = f"{here}pool.worth.{layer}"
                parts[f"{there}{mlp}.{layer}"] = f"{here}mlp.{layer}"
            parts[f"{there}ln"] = f"{here}norm"
    for theirs, ours in parts.items():
        for kind in ("weight",) if theirs.endswith("conv.conv") else ("weight", "bias"):
            found[f"{theirs}.{kind}"] = ((f"{at}{ours}.{kind}",), False)
    return found


@pytest.fixture
def trained(official: Official) -> Trained:
    told = official.config
    settings = {
        "name": "duq_released",
        "layers": told["sequential_layers"],
        "heads": told["heads_clip"],
        "samples": told["samples"],
    }
    return Trained(official, settings, names(told["sequential_layers"]), "bert_adam")


@pytest.fixture
def across(official: Official, trained: Trained) -> Trained:
    """The same with the attention and the words of the released code."""
    system = trained.model.system
    assert isinstance(system, DuqReleased)
    for side in (system.text_side, system.video_side):
        for part in (side.mean, side.deviation):
            part.block.__class__ = AcrossItems
    trained.tuned = Padding(trained.tuned, official, "frames_full", masked=True)
    return trained


def scores(official: Official, trained: Trained, batch) -> dict[str, Tensor]:
    """Of each branch and of all, with the official noise of an evaluation."""
    trained.modules.eval()
    system = trained.model.system
    for side in ("text", "video"):
        setattr(system, f"{side}_noise", official.arrays[f"eval_eps_{side}"])
    with torch.no_grad():
        codes = trained.codes(*batch)
        found = system.matrices(*codes)
        return {name.replace(" ", "_"): value for name, value in found.items()} | {
            "raw": system.similarity(*codes)
        }


def check_losses(told: dict, losses: dict[str, float]) -> None:
    for ours, name in zip(("similarity", *BRANCHES[1:]), BRANCHES, strict=True):
        rows, columns = told[f"cross_entropy_{name}"]
        assert losses[ours] == pytest.approx((rows + columns) / 2, rel=LOSS), name
        evidence = told[f"evidential_{name}"]
        assert losses[f"{ours}_evidence"] == pytest.approx(evidence, rel=LOSS), name
    assert losses["divergence"] == pytest.approx(told["kl_unit_gaussian"], rel=LOSS)
    assert losses["agreement"] == pytest.approx(told["kl_between_branches_mean"], rel=LOSS)
    assert losses["loss"] == pytest.approx(told["total"], rel=LOSS)


def test_first_weights_are_those_of_clip_and_of_torch(official: Official, trained: Trained) -> None:
    check_start(trained)
    every = {name for group in official.told["parameter_groups"] for name in group["names"]}
    unused = {name for name in every if name.startswith("s_feat_w")}  # never used there
    assert every - unused == set(trained.sources)


def test_without_padding_two_branches_are_official_as_they_are(
    official: Official, trained: Trained
) -> None:
    trained.load_head()
    batch = official.texts("ids_full", None), official.videos("frames_full")
    found, told = scores(official, trained, batch), official.told["without_padding"]
    for name in ("sentence_frame", "word_patch"):
        expected = torch.tensor(told[f"sims_{name}"])
        torch.testing.assert_close(found[name], expected, rtol=LOSS, atol=1e-6)


def test_with_attention_across_items_all_scores_are_official(
    official: Official, across: Trained
) -> None:
    across.load_head()
    found = scores(official, across, (official.texts(), official.videos("frames_full")))
    told = official.told["evaluation"]
    for name in BRANCHES:
        expected = torch.tensor(told[f"sims_{name}"])
        torch.testing.assert_close(found[name], expected, rtol=LOSS, atol=1e-6, msg=name)
    expected = torch.tensor(told["scores_raw"])
    torch.testing.assert_close(found["raw"], expected, rtol=LOSS, atol=1e-6)


def test_with_attention_across_items_losses_and_gradients_are_official(
    official: Official, across: Trained, draws
) -> None:
    across.load_head()
    draws("train")
    batch = official.texts(), official.videos("frames_full")
    check_losses(official.told["training"], across.losses(*batch))
    check_gradients(across, official.told["gradients"])


def test_what_is_trained_at_which_rate_and_decay(trained: Trained) -> None:
    check_groups(trained)


def test_three_steps_move_the_weights_as_far(official: Official, across: Trained, draws) -> None:
    across.load_head()
    batch = official.texts(), official.videos("frames_full")
    told = official.told["steps"]["losses"]
    check_steps(across, *batch, told, lambda step: draws("steps", step))
