"""UATVR: its equations as loops, its released numbers, and what only training may see."""

import copy
import math
from pathlib import Path

import pytest
import torch

from sureshot.models.checkpoint import Checkpoint
from sureshot.models.layers.gaussian import Gaussian, draw_samples, kl_to_prior
from sureshot.models.losses.contrastive import info_nce, mil_nce
from sureshot.models.losses.uncertainty import soft_contrastive
from sureshot.models.scoring import token_interaction
from sureshot.models.systems.base import Codes, TextTokens, VideoTokens
from sureshot.models.systems.uatvr import Uatvr, UatvrConfig
from tests.models.layers.weights import blocks, load, shake, tensor
from tests.models.systems.every import WIDTH, texts, videos
from tests.trained import saved

SAMPLES = 3


def uatvr(seed: int = 0, **settings) -> Uatvr:
    torch.manual_seed(seed)
    return Uatvr(UatvrConfig(**{"layers": 1, "heads": 2, "samples": SAMPLES, **settings}), WIDTH)


def coded(made: Uatvr, count: int = 4) -> tuple[Codes, Codes]:
    return made.texts(texts(count)), made.videos(videos(count))


@pytest.fixture
def released(golden) -> tuple[Uatvr, dict]:
    """The head of the released code with its weights, and its numbers."""
    told = golden("uatvr_full_head")
    inputs, theirs = told["inputs"], told["config"]
    longest, width = tensor(told["weights"]["frame_position_embeddings.weight"]).shape
    config = UatvrConfig(
        mode="paper",
        video_tokens=theirs["extra_video"],
        text_tokens=theirs["extra_text"],
        layers=theirs["layers"],
        heads=theirs["heads"],
        interaction="weighted",
        longest=longest,
    )
    made = Uatvr(config, width)
    fresh = {"log_scale": math.log(100), "log_match_scale": 0.0, "match": [5.0, 5.0]}
    tables = {}
    names = {name: name for name in fresh}
    for i in range(config.layers):
        names |= blocks(f"frames.transformer.blocks.{i}", f"transformerClip.resblocks.{i}")
    for side, table, token, count, extra in (
        ("video", "frame", "frames", len(inputs["frames"][0]), config.video_tokens),
        ("text", "word", "words", len(inputs["text_token"][0]), config.text_tokens),
    ):
        rows = told["weights"][f"{table}_position_embeddings.weight"]
        tables[f"{side}_extra"] = rows[count : count + extra]
        names |= {
            f"{token}.positions.weight": f"{table}_position_embeddings.weight",
            f"{token}.extra.weight": f"{side}_extra",
            **{f"{table}_worth.{i}": f"{side}_weight_fc.{i}" for i in (0, 2)},
            **{
                f"{side}_head.{part}.pool.worth.{i}": f"{net}_net_{side}.attention.w_{k}"
                for part, net in (("mean", "pie"), ("deviation", "uncertain"))
                for i, k in ((0, 1), (2, 2))
            },
            f"{side}_head.mean.linear": f"pie_net_{side}.fc",
            f"{side}_head.mean.norm": f"pie_net_{side}.layer_norm",
            f"{side}_head.deviation.linear": f"uncertain_net_{side}.fc",
            f"{side}_head.deviation.linear_whole": f"uncertain_net_{side}.fc2",
        }
    load(made, {**told["weights"], **fresh, **tables}, names)
    return made, told


def given(told: dict) -> tuple[TextTokens, VideoTokens]:
    inputs = told["inputs"]
    sentence, words, frames = (
        tensor(inputs[name]) for name in ("text_global", "text_token", "frames")
    )
    masks = (torch.tensor(inputs[f"{side}_mask"]).bool() for side in ("text", "video"))
    none = frames.new_zeros(*frames.shape[:2], 0, frames.shape[2])
    return TextTokens(sentence, words, next(masks)), VideoTokens(
        frames, none, frames[..., :0], next(masks)
    )


def test_scores_are_those_of_the_released_code_where_nothing_is_padding(
    released: tuple[Uatvr, dict],
) -> None:
    made, told = released
    words, films = given(told)
    full = [part._replace(mask=torch.ones_like(part.mask)) for part in (words, films)]
    logits = 100 * made.similarity(made.texts(full[0]), made.videos(full[1]))
    expected = tensor(told["outputs"]["logits_all_valid"])
    torch.testing.assert_close(logits, expected, rtol=1e-6, atol=1e-6)
    # With padding, where no maximum is negative the product that lets padding win does no harm.
    codes = made.texts(words), made.videos(films)
    padded = 100 * made.similarity(*codes)
    harmless = torch.tensor(
        [[_positive(codes, i, j) for j in range(len(films.mask))] for i in range(len(words.mask))]
    )
    expected = tensor(told["outputs"]["logits"])
    torch.testing.assert_close(padded[harmless], expected[harmless], rtol=1e-6, atol=1e-6)


def _positive(codes: tuple[Codes, Codes], i: int, j: int) -> bool:
    words, frames = (
        side[name][k][side["mask"][k]]
        for side, name, k in ((codes[0], "words", i), (codes[1], "frames", j))
    )
    cosines = words @ frames.T
    return bool(cosines.amax(0).min() > 0 and cosines.amax(1).min() > 0)


@pytest.mark.parametrize("mode", ["well_posed", "paper", "released"])
@pytest.mark.parametrize("matching", ["mil_nce", "mil_nce_averaged", "soft_contrastive"])
def test_the_losses_are_the_equations(mode: str, matching: str) -> None:
    made, printed = uatvr(mode=mode, matching=matching, scale=10.0), mode != "well_posed"
    shake(made, size=0.1)
    words, films = codes = coded(made, 3)
    losses = made.losses(*codes, torch.Generator().manual_seed(5))
    sides = words["words"], films["frames"], words["mask"], films["mask"]
    scores = token_interaction(*sides, words["weights"], films["weights"])
    directions = 2 if mode == "paper" else 1  # their sum in equation 6, their mean in the code
    torch.testing.assert_close(losses["similarity"], directions * info_nce(scores, made.scale))

    draw, drawn, far = torch.Generator().manual_seed(5), [], torch.zeros(3)
    for code in codes:
        own = Gaussian(code["mean"], code["log_var"])
        samples = draw_samples(own, SAMPLES, draw)
        if mode == "released":
            own = Gaussian(samples.mean(1), own.log_var / 2)
        drawn.append(samples if printed else torch.nn.functional.normalize(samples, dim=-1))
        far = far + kl_to_prior(own, 0.0 if printed else -math.log(WIDTH))
    torch.testing.assert_close(losses["divergence"], far.sum() if printed else far.mean())

    if matching == "soft_contrastive":
        expected = soft_contrastive(*drawn, *made.match)
    else:
        scale = 1.0 if printed else made.log_match_scale.exp()
        average = "inside" if matching == "mil_nce" else "outside"
        expected = mil_nce(torch.einsum("ikd,jld->ikjl", *drawn), scale, average)
    torch.testing.assert_close(losses["matching"], expected)


def test_one_transformer_reads_both_and_is_saved_once(tmp_path: Path) -> None:
    made = uatvr(layers=2)
    for one in (made, copy.deepcopy(made).double(), uatvr().half()):
        assert one.words.transformer is one.frames.transformer
    kept = made.state_dict()
    assert len({weight.data_ptr() for weight in kept.values()}) == len(kept)
    found = Checkpoint.from_pretrained(saved(tmp_path / "model", "uatvr", "linear"), "cpu")
    system = found.model.system
    assert isinstance(system, Uatvr) and system.config == UatvrConfig()
    assert system.words.transformer is system.frames.transformer


def test_learned_tokens_take_part_and_can_be_left_out() -> None:
    words, films = texts(3), videos(3)
    made, bare = uatvr(), uatvr(adaptation=False)
    for one, more in ((made, (2, 3)), (bare, (0, 0))):
        codes = one.texts(words), one.videos(films)
        for code, tokens, extra in zip(codes, (words, films), more, strict=True):
            count = tokens.mask.shape[1]
            assert code["mask"].shape == (3, count + extra)
            assert torch.equal(code["mask"][:, :count], tokens.mask)
            assert code["mask"][:, count:].all()
    before = made.similarity(made.texts(words), made.videos(films))
    with torch.no_grad():
        made.frames.extra.weight.normal_()
    after = made.similarity(made.texts(words), made.videos(films))
    assert not torch.allclose(before, after, atol=1e-3)
    code = made.videos(films)
    for vector, tokens, mask in zip(
        made.video_vectors(code), code["frames"], films.mask, strict=True
    ):
        mean = tokens[: len(mask)][mask].mean(0)
        torch.testing.assert_close(vector, mean / mean.norm())


def test_the_first_word_may_stay_out_of_the_score_but_no_mask_is_changed() -> None:
    words = texts(6)
    kept = words.mask.clone()
    one_word = words.mask.sum(1) == 1
    assert one_word.any() and not one_word.all()
    with_first, without = (uatvr(include_special=on).texts(words) for on in (True, False))
    assert torch.equal(words.mask, kept)
    assert with_first["mask"][:, 0].all()
    assert torch.equal(without["mask"][:, 0], one_word)
    assert torch.equal(without["mask"][:, 1:], with_first["mask"][:, 1:])
    for name in ("words", "mean", "log_var"):
        assert torch.equal(with_first[name], without[name])
    # The mean that a Gaussian starts from never counts it.
    long = TextTokens(words.sentence, words.words, torch.ones_like(words.mask))
    made = uatvr()
    seen: list[torch.Tensor] = []
    made.text_head.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    code = made.texts(long)
    mean = code["words"][:, 1:5].mean(1)
    torch.testing.assert_close(seen[0], mean / mean.norm(dim=1, keepdim=True))
    assert torch.equal(made.text_vectors(code), seen[0])


def test_noise_begins_no_longer_than_the_mean_and_the_prior_is_as_large() -> None:
    for mode, length in (("well_posed", 1.0), ("paper", math.sqrt(WIDTH))):
        made = uatvr(mode=mode)
        assert math.sqrt(WIDTH) * math.exp(made.prior / 2) == pytest.approx(length)
        bias = made.text_head.deviation.linear.bias
        torch.testing.assert_close(2 * bias, torch.full((WIDTH,), made.prior))


def test_the_scale_of_samples_is_learned_and_held_unless_as_printed() -> None:
    made = uatvr()
    assert made.log_match_scale.exp().item() == pytest.approx(1 / 0.07)
    torch.nn.init.constant_(made.log_match_scale, 9.0)
    torch.nn.init.constant_(made.log_scale, 9.0)
    made.after_step()
    assert made.log_match_scale.exp().item() == pytest.approx(100.0)
    assert made.scale.item() == pytest.approx(100.0)
    assert made.log_match_scale.requires_grad
    for settings in ({"mode": "paper"}, {"matching": "none"}, {"matching": "soft_contrastive"}):
        assert not uatvr(**settings).log_match_scale.requires_grad


def test_parts_that_are_off_cost_nothing_and_are_not_trained() -> None:
    for settings, names in (
        ({}, {"similarity", "matching", "divergence"}),
        ({"divergence": False}, {"similarity", "matching"}),
        ({"matching": "none"}, {"similarity"}),
    ):
        made = uatvr(**settings)
        codes = coded(made)
        assert made.losses(*codes).keys() == names
        on = "matching" in names
        assert ("mean" in codes[0], "mean" in codes[1], bool(made.measures(*codes))) == (on,) * 3
        assert (made.gaussian(codes[0]) is not None) == on
    state = torch.get_rng_state()
    made.losses(*codes)
    assert torch.equal(torch.get_rng_state(), state)


def test_measures_are_the_geometric_means_of_the_deviations() -> None:
    made = uatvr()
    codes = coded(made)
    seen = made.measures(*codes)
    for side, code in zip(("text", "video"), codes, strict=True):
        expected = [
            math.prod(math.exp(v / 2) for v in row) ** (1 / WIDTH)
            for row in code["log_var"].tolist()
        ]
        assert seen[f"{side} deviation"].tolist() == pytest.approx(expected, rel=1e-5)


def test_what_follows_from_the_mode() -> None:
    paper, released = UatvrConfig(), UatvrConfig(mode="released")
    assert (paper.learned, paper.matched_by) == ((2, 3), "mil_nce")
    assert (released.learned, released.matched_by) == ((2, 2), "mil_nce_averaged")
    assert uatvr().weights == {"similarity": 1.0, "matching": 1e-2, "divergence": 1e-4}
