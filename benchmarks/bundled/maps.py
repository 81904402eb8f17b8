"""The maps of the bundled model, fitted on what its networks make of all that is trained on.

The networks stand still meanwhile. Their tuning then begins with maps that fit, and they are bent
less by what they see; maps that are fitted anew after it are no better (LOG.md).
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from safetensors.numpy import load_file, save_file

from benchmarks.bundled.fit import phrase
from benchmarks.bundled.heads import Data, Head, Trial, fit, map_of
from benchmarks.bundled.items import Item, digest_of
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from sureshot.files import replace_file

# Chosen on validation galleries (LOG.md). Only a sixth of the items are videos.
HOW = Trial(epochs=24, captions=3, weights=(("msrvtt", 2.0),))
_FRAMES, _TEXTS = 256, 512  # at once
_PHRASES = 2  # of an item that is trained on


def data_of(
    network: Network,
    items: Sequence[Item],
    states: Sequence[list[State]],
    folder: Path,
) -> Data:
    """What the networks make of items, kept in the folder by networks and items.

    Args:
        network: whose features they are.
        items: pictures and videos.
        states: frames of each.
        folder: where features are kept.
    """
    draw = np.random.default_rng(0)
    texts: list[tuple[str, int, bool]] = []
    for row, item in enumerate(items):
        cut = [phrase(str(draw.choice(item.captions)), draw) for _ in range(_PHRASES)]
        texts += [(text, row, False) for text in item.captions]
        texts += [(text, row, True) for text in cut]
    flat = [state for frames in states for state in frames]
    digest = hashlib.sha256(digest_of(items).encode())
    for module in network.tuned():
        for weight in module.state_dict().values():
            digest.update(weight.numpy().tobytes())
    path = folder / f"{digest.hexdigest()[:12]}-{_PHRASES}.safetensors"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        found = _features(network, [text for text, _, _ in texts], flat)
        with replace_file(path) as fresh:
            save_file(found, fresh)
    kept = {name: torch.from_numpy(v).float() for name, v in load_file(path).items()}
    return Data(
        frames={"looks": kept["looks"], "names": kept["names"]},
        frame_item=np.repeat(np.arange(len(items)), [len(frames) for frames in states]),
        texts=kept["texts"],
        alike=kept["texts"],
        text_item=np.array([row for _, row, _ in texts]),
        phrase=np.array([cut for _, _, cut in texts]),
        family=np.array([item.family for item in items]),
    )


def _features(
    network: Network, texts: Sequence[str], states: Sequence[State]
) -> dict[str, np.ndarray]:
    """Inputs of the maps, in half precision; texts of like length go together."""
    network.eval()
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    told = np.zeros((len(texts), network.text.in_features), np.float16)
    looks, names = [], []
    with torch.inference_mode():
        for first in track(range(0, len(texts), _TEXTS), "captions", disable=len(texts) < _TEXTS):
            rows = order[first : first + _TEXTS]
            told[rows] = network.sentences([texts[row] for row in rows]).numpy()
        for first in track(range(0, len(states), _FRAMES), "frames", disable=len(states) < _FRAMES):
            see, name = network.inputs(states[first : first + _FRAMES])
            looks.append(see.half().numpy())
            names.append(name.half().numpy())
    return {"texts": told, "looks": np.concatenate(looks), "names": np.concatenate(names)}


def fitted(how: Trial, train: Data, seed: int, folder: Path) -> Head:
    """The maps of a seed: those of these data in the folder, or new ones that are put there."""
    digest = hashlib.sha256(repr(how).encode())
    for values in (train.texts.numpy(), train.text_item, train.frame_item, train.family):
        digest.update(np.ascontiguousarray(values).tobytes())
    path = folder / f"maps-{seed}-{digest.hexdigest()[:12]}.safetensors"
    if path.exists():
        head = Head(how, train)
        head.load_state_dict({k: torch.from_numpy(v) for k, v in load_file(path).items()})
        return head.eval()
    head = fit(how, train, seed)
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as fresh:
        save_file({name: value.numpy() for name, value in head.state_dict().items()}, fresh)
    return head


def put(head: Head, network: Network) -> None:
    """Give a network these maps in place of its own."""
    with torch.no_grad():
        network.text.load_state_dict(head.text.state_dict())
        network.frame.load_state_dict(map_of(head, 0).state_dict())
        network.label.load_state_dict(map_of(head, 1).state_dict())
        network.log_scale.copy_(head.log_scale)
