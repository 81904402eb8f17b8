"""Encoders that are trained: the same tokens as frozen, gradients, a folder of their own."""

import math

import numpy as np
import pytest
import torch

from sureshot.datasets.synthetic import SyntheticOptions
from sureshot.errors import ModelError
from sureshot.models.encoders.base import pool_grid, stack
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.small import SmallEncoder
from sureshot.models.systems.base import text_tokens, video_tokens
from sureshot.models.systems.hit import HiT, HitConfig
from sureshot.models.systems.xpool import XPool, XPoolConfig
from sureshot.research.evaluation import evaluate
from sureshot.research.synthetic import best_recall, write_dataset
from sureshot.research.training.encoder_tuning import TunedClip, TunedSmall
from sureshot.research.training.optim import groups
from sureshot.research.training.recipe import TrainingConfig
from sureshot.research.training.run import train
from sureshot.research.training.step import gradients, update
from tests.models.encoders.test_clip import clip, siglip
from tests.research.training.toy import Toy
from tests.synthetic import synthetic_recipe

TEXTS = ["a dog catches a frisbee", "two cars", "a red bus, a blue bus", "x " * 40]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Digests are not remembered outside of the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", params=["clip", "siglip"])
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    {"clip": clip, "siglip": siglip}[request.param](place)
    return place


@pytest.fixture
def tuned(folder):
    return TunedClip(ClipEncoder.load(str(folder), "cpu"))


def shots(encoder, lengths=(3, 1, 2, 4)):
    random = np.random.default_rng(0)
    return [
        encoder.prepare(random.integers(0, 256, (count, 40, 56, 3), np.uint8)) for count in lengths
    ]


def frozen(encoder, prepared):
    """What `sureshot.research.features` makes of the same frames."""
    parts = []
    for frames in prepared:
        read = encoder.encode_frames(frames)
        parts.append(type(read)(read.frames, pool_grid(read.patches, 3), read.backbone))
    return stack(parts)


def test_tokens_are_those_of_the_frozen_encoder(tuned):
    for found, expected in zip(
        tuned.texts(TEXTS), text_tokens(tuned.encoder.encode_texts(TEXTS)), strict=True
    ):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    prepared = shots(tuned.encoder)
    expected = video_tokens(frozen(tuned.encoder, prepared))
    for found, other in zip(tuned.videos(prepared), expected, strict=True):
        torch.testing.assert_close(found, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("count", [4, 9, 16, 49, 50])
def test_patches_are_pooled_as_those_of_features(count):
    patches = np.random.default_rng(count).normal(size=(2, count, 3)).astype(np.float32)
    found = pool_grid(torch.from_numpy(patches), stack=torch.stack).numpy()
    np.testing.assert_allclose(found, pool_grid(patches, 3), rtol=1e-5, atol=1e-6)


def system(tuned):
    torch.manual_seed(0)
    return Toy(tuned.encoder.dim)


def trained(tuned, micro, precision="float32", steps=1, rate=1e-3):
    head, prepared = system(tuned), shots(tuned.encoder)

    def embed(rows):
        texts = head.texts(tuned.texts([TEXTS[row] for row in rows]))
        return texts, head.videos(tuned.videos([prepared[row] for row in rows]))

    both = torch.nn.ModuleDict({"head": head, "encoder": tuned})
    optimiser = torch.optim.AdamW(groups([(head, rate), (tuned, rate)], 0.0))
    told = []
    for step in range(steps):
        method = TrainingConfig(micro_batch=micro, precision=precision)
        told.append(gradients(head, embed, range(4), method, step=step)["contrast"])
        grads = {n: None if w.grad is None else w.grad.clone() for n, w in both.named_parameters()}
        update(optimiser, both, head, share=1.0, clip=1.0)
    return told, grads


def test_both_networks_get_gradients_and_micro_batches_give_the_same(folder, tuned):
    told, whole = trained(tuned, None)
    other, cut = trained(TunedClip(ClipEncoder.load(str(folder), "cpu")), 1)
    assert told == pytest.approx(other, abs=1e-4)
    for name, grad in whole.items():
        assert (grad is None) == (cut[name] is None), name
        if grad is not None:
            scale = max(grad.abs().max().item(), 1e-3)
            torch.testing.assert_close(cut[name], grad, atol=1e-4 * scale, rtol=1e-3, msg=name)
    for part in ("text_model", "vision_model"):
        reached = [g for n, g in whole.items() if part in n and g is not None]
        assert len(reached) > 20 and sum(g.abs().sum().item() for g in reached) > 0


def test_what_is_learned_is_what_is_encoded(tuned):
    before = tuned.encoder.encode_texts(TEXTS).sentence
    told, _ = trained(tuned, 2, steps=25, rate=1e-2)
    assert told[-1] < told[0] - 0.2
    after = tuned.encoder.encode_texts(TEXTS).sentence
    assert np.abs(after - before).max() > 1e-3
    found = torch.nn.functional.normalize(tuned.texts(TEXTS).sentence.detach(), dim=-1)
    np.testing.assert_allclose(after, found, rtol=1e-4, atol=1e-5)


def test_half_precision_passes_leave_weights_in_single_and_small_updates_count(tuned):
    before = {name: weight.detach().clone() for name, weight in tuned.named_parameters()}
    trained(tuned, 2, "bfloat16", rate=1e-7)
    moved = total = 0
    for name, weight in tuned.named_parameters():
        assert weight.dtype == torch.float32
        if weight.ndim >= 2 and "layers" in name:
            moved += int((weight != before[name]).sum())
            total += weight.numel()
    assert moved > 0.5 * total  # in 16 bits hardly one in a hundred would


def test_a_saved_encoder_is_loaded_like_any_other_and_is_another_one(tuned, tmp_path):
    fingerprint = tuned.encoder.fingerprint
    trained(tuned, 2, steps=2)
    tuned.save(tmp_path / "new")
    loaded = ClipEncoder.load(str(tmp_path / "new"), "cpu")
    assert loaded.fingerprint != fingerprint
    found, expected = (encoder.encode_texts(TEXTS) for encoder in (loaded, tuned.encoder))
    np.testing.assert_array_equal(found.sentence, expected.sentence)
    prepared = shots(loaded)
    np.testing.assert_array_equal(prepared[0], shots(tuned.encoder)[0])
    np.testing.assert_array_equal(
        loaded.encode_frames(prepared[0]).patches, tuned.encoder.encode_frames(prepared[0]).patches
    )


@pytest.mark.parametrize(("frozen", "still"), [("nothing", 0), ("patches", 1), ("embeddings", 7)])
def test_what_a_system_freezes_stays(folder, tuned, frozen, still):
    head = system(tuned)
    head.frozen = frozen
    made = TunedClip(ClipEncoder.load(str(folder), "cpu"), head)
    names = {
        name
        for name, weight in made.network.named_parameters()
        if not weight.requires_grad and not name.startswith("logit_")
    }
    assert all("embedding" in name or "pre_layrnorm" in name for name in names)
    # SigLIP has a bias of its patches, and neither a class token nor a norm before the blocks.
    siglip = {"patches": 2, "embeddings": 5}.get(frozen, 0)
    assert len(names) == (still if "clip" in folder.name and "sig" not in folder.name else siglip)


def test_the_logit_scale_is_one_parameter_at_the_encoders_rate(folder, tmp_path):
    encoder = ClipEncoder.load(str(folder), "cpu")
    head = XPool(XPoolConfig(), encoder.dim)
    made = TunedClip(encoder, head)
    own = made.network.logit_scale
    assert made.log_scale is head.log_scale and not own.requires_grad
    assert head.log_scale.item() == pytest.approx(min(own.item(), math.log(100)))
    at_encoder = groups([(made, 1e-7), (head, 1e-4)], 0.2, "all_but_biases")[0]
    assert any(weight is head.log_scale for weight in at_encoder["params"])
    assert (at_encoder["rate"], at_encoder["weight_decay"]) == (1e-7, 0.2)
    head.log_scale.data.fill_(1.5)
    made.save(tmp_path / "new")
    again = TunedClip(ClipEncoder.load(str(tmp_path / "new"), "cpu"))
    assert again.network.logit_scale.item() == 1.5


def test_a_scale_that_was_asked_for_or_is_of_another_kind_is_kept(folder):
    encoder = ClipEncoder.load(str(folder), "cpu")
    head = XPool(XPoolConfig(scale=20.0), encoder.dim)
    TunedClip(encoder, head)
    assert head.scale.item() == pytest.approx(20)
    head = HiT(HitConfig(layers=1, heads=4, bank=0), encoder.dim)
    made = TunedClip(encoder, head)
    assert made.log_scale is None and head.scale.item() == pytest.approx(1 / 0.07)


def test_a_place_that_cannot_be_written_is_named(tuned, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"cannot be written to .*file"):
        tuned.save(tmp_path / "file" / "deep")


def test_tokens_with_a_graph_are_those_of_the_encoder():
    encoder = SmallEncoder(device="cpu")
    made = TunedSmall(encoder, seed=3)
    frames = np.random.default_rng(0).integers(0, 255, (5, 3, 32, 32), np.uint8)
    texts, seen = encoder.encode_texts(["a red ring", "it"]), encoder.encode_frames(frames)
    tokens = made.texts(["a red ring", "it"])
    assert tokens.words.detach().numpy() == pytest.approx(texts.words, abs=1e-6)
    lengths = tokens.sentence.detach().norm(dim=-1).numpy()
    assert lengths == pytest.approx(texts.length, abs=1e-6)
    videos = made.videos([frames[:2], frames[2:]])
    assert videos.mask.tolist() == [[True, True, False], [True] * 3]
    assert videos.frames[1].detach().numpy() == pytest.approx(seen.frames[2:], abs=1e-5)
    videos.frames.sum().backward()
    assert encoder.network.frame.weight.grad is not None
    pooled = pool_grid(encoder.encode_frames(frames).patches)
    assert videos.patches[1].detach().numpy() == pytest.approx(pooled[2:], abs=1e-5)


def test_each_seed_begins_from_weights_of_its_own_and_a_trained_encoder_from_its_own(tmp_path):
    first, other = (TunedSmall(SmallEncoder(device="cpu"), seed).encoder.network for seed in (1, 2))
    assert not torch.equal(first.frame.weight, other.frame.weight)
    trained = TunedSmall(SmallEncoder(device="cpu"), 7)
    trained.save(tmp_path / "kept")
    kept = SmallEncoder.load(tmp_path / "kept", "cpu")
    again = TunedSmall(kept, seed=1)
    same = zip(trained.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in same)


@pytest.mark.slow
def test_clip4clip_learns_a_world_from_pixels(tmp_path):
    """Among the first ten of 300 videos chance has 3 %; some 400 steps three times as many."""
    root = write_dataset(tmp_path / "world", SyntheticOptions(train=600, val=60, test=300)).folder
    recipe = synthetic_recipe(root, {"name": "clip4clip", "scale": 20.0}, epochs=10, batch=64)
    fitted = train(recipe, to=tmp_path / "run")
    found = evaluate(fitted.folder, "synthetic", root, device="cpu").report
    from sureshot.datasets.synthetic import read_part

    recall = found.raw[0].recall
    assert recall.r10 > 10 and recall.r1 <= best_recall(read_part(root, "test")) + 5
