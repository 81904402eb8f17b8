"""The small encoder is trained from the seed of the run, and learns."""

import numpy as np
import pytest
import torch

from sureshot.datasets import load_split
from sureshot.datasets.synthetic import SyntheticOptions
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders.small import SmallEncoder
from sureshot.research.evaluation import evaluate
from sureshot.research.synthetic import best_recall, write_dataset
from sureshot.research.training.encoder_tuning import TunedSmall
from sureshot.research.training.run import train
from tests.synthetic import small_dataset, synthetic_recipe


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


def test_each_seed_begins_from_weights_of_its_own():
    first, again, other = (TunedSmall(SmallEncoder(device="cpu"), seed) for seed in (1, 1, 2))
    same = zip(first.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in same)
    assert not torch.equal(first.encoder.network.frame.weight, other.encoder.network.frame.weight)


def test_an_encoder_that_was_trained_goes_on_from_there(tmp_path):
    trained = TunedSmall(SmallEncoder(device="cpu"), 7)
    trained.save(tmp_path / "kept")
    kept = SmallEncoder.load(tmp_path / "kept", "cpu")
    again = TunedSmall(kept, seed=1)
    same = zip(trained.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in same)


def test_a_run_keeps_its_encoder_and_can_be_measured(tmp_path):
    root = small_dataset(tmp_path / "world")
    recipe = synthetic_recipe(root, {"name": "clip4clip", "scale": 20.0})
    fitted = train(recipe, to=tmp_path / "run")
    encoder = Checkpoint.from_pretrained(fitted.folder).load_encoder(fitted.folder, "cpu")
    assert encoder.fingerprint != SmallEncoder(device="cpu").fingerprint
    measured = evaluate(fitted.folder, "synthetic", root, device="cpu", cache=tmp_path / "cache")
    assert measured.report.title == load_split("synthetic", "test", root).title()


@pytest.mark.slow
def test_clip4clip_learns_a_world_from_pixels(tmp_path):
    """Of 300 videos chance finds 0.3 %; some 400 steps get most of what can be got."""
    root = write_dataset(tmp_path / "world", SyntheticOptions(train=600, val=60, test=300)).folder
    recipe = synthetic_recipe(root, {"name": "clip4clip", "scale": 20.0}, epochs=10, batch=64)
    fitted = train(recipe, to=tmp_path / "run")
    found = evaluate(fitted.folder, "synthetic", root, device="cpu").report
    from sureshot.datasets.synthetic import read_part

    best = best_recall(read_part(root, "test"))
    assert best / 3 < found.text_to_video.r1 <= best + 5
