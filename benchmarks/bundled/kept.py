"""Features of pictures and captions by the networks as they come and as they ship, for trials.

Of each frame: the mean of the last feature map and of its 3 x 3 cells, by the network of the
package (``u``, ``uc``) and by the one that ships (``t``, ``tc``), and the means of four layers
below by that of the package (``low``). Of each caption its sentence vector (``u``, ``t``); of each
training item two phrases more. Shards lie in one folder, by what they are of, and several processes
may fill it, each with its own.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from safetensors.numpy import load_file, save_file
from torch.nn import functional

from benchmarks.bundled.fit import phrase
from benchmarks.bundled.items import Item, digest_of
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import images
from sureshot.files import replace_file
from sureshot.models.encoders.backbone import CHANNELS, GRID, resized_whole
from sureshot.models.encoders.bundled import (
    TUNED_BLOCK,
    TUNED_LAYERS,
    BundledEncoder,
    image_network,
    load_head,
)
from sureshot.models.encoders.minilm import DIM as SENTENCE
from sureshot.models.encoders.openvino import openvino

BELOW = {6: 48, 10: 88, 14: 120, 19: 208}  # blocks whose mean outputs are kept: channels
_FRAMES, _PICTURES, _TEXTS, _AT_ONCE = 4, 64, 512, 64
_CAPTIONS, _PHRASES = 8, 2  # of a training item
Shard = dict[str, np.ndarray]
Part = tuple[int, int]  # a process and how many there are


def home(root: Path) -> Path:
    """Folder of what the networks that ship now have made; others have others."""
    digest = hashlib.sha256()
    for prefix in ("frame.network.", "text.network."):
        for name, weights in sorted(load_head(prefix).items()):
            digest.update(name.encode() + weights.tobytes())
    return root / digest.hexdigest()[:12]


def pictures(items: Sequence[Item], folder: Path, part: Part = (0, 1)) -> Iterator[Shard]:
    """Features of the frames of items; ``item`` counts within the shard."""
    see: list[Callable[[np.ndarray], Shard]] = []

    def made(some: Sequence[Item]) -> Shard:
        if not see:
            see.append(_seen())
        found = [see[0](resized_whole(np.stack(images(item, _FRAMES)))) for item in some]
        counts = [len(frames["u"]) for frames in found]
        return {name: np.concatenate([f[name] for f in found]) for name in found[0]} | {
            "item": np.repeat(np.arange(len(some)), counts)
        }

    yield from _shards(items, folder / "pictures", _PICTURES, part, made)


def captions(
    items: Sequence[Item], folder: Path, trained: bool, part: Part = (0, 1)
) -> Iterator[Shard]:
    """Sentence vectors of captions, and of phrases where they are ``trained`` on."""
    read: list[Callable[[Sequence[str]], Shard]] = []

    def made(some: Sequence[Item]) -> Shard:
        if not read:
            read.append(_read())
        draw = np.random.default_rng(len(some[0].captions[0]))
        kept = [item.captions[: _CAPTIONS if trained else None] for item in some]
        cut = _PHRASES if trained else 0
        texts = [
            text
            for found in kept
            for text in (*found, *(phrase(str(draw.choice(found)), draw) for _ in range(cut)))
        ]
        counts = [len(found) + cut for found in kept]
        places = np.concatenate([np.arange(count) for count in counts])
        return read[0](texts) | {
            "item": np.repeat(np.arange(len(some)), counts),
            "phrase": places >= np.repeat(np.array(counts) - cut, counts),
        }

    yield from _shards(items, folder / "captions", _TEXTS, part, made)


def _shards(
    items: Sequence[Item],
    folder: Path,
    size: int,
    part: Part,
    made: Callable[[Sequence[Item]], Shard],
) -> Iterator[Shard]:
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(part[0] * size, len(items), part[1] * size):
        some = items[first : first + size]
        path = folder / f"{first:05}-{digest_of(some)}.safetensors"
        if not path.exists():
            with replace_file(path) as fresh:
                save_file(made(some), fresh)
            print(path, flush=True)
        yield load_file(path)


def _seen() -> Callable[[UInt8[np.ndarray, "n 3 rows columns"]], Shard]:
    """Run both image networks by OpenVINO: one body, two ends."""
    from sureshot.models.encoders.openvino import _convolved

    ov = openvino()
    op = ov.opset13
    untuned, tuned = image_network(), BundledEncoder("cpu").backbone.net
    frames = op.parameter([-1, 3, -1, -1], np.uint8)
    middle, scale = (op.constant(np.float32(value)) for value in (127, 1 / 128))
    x = op.multiply(op.subtract(op.convert(frames, np.float32), middle), scale)
    x = op.clamp(_convolved(op, x, untuned.stem), 0.0, 6.0)
    place, grid = op.constant(np.array([2, 3])), op.constant(np.array([GRID, GRID]))
    means, ends = [], []
    for number in range(TUNED_BLOCK):
        x = _through(op, x, untuned.blocks[number])
        if number in BELOW:
            means.append(op.reduce_mean(x, place, False))
    for network in (untuned, tuned):
        y = x
        for number in range(TUNED_BLOCK, len(network.blocks)):
            y = _through(op, y, network.blocks[number])
            if number in BELOW and network is untuned:
                means.append(op.reduce_mean(y, place, False))
        y = op.clamp(_convolved(op, y, network.head), 0.0, 6.0)
        ends += [op.reduce_mean(y, place, False), op.adaptive_avg_pool(y, grid)]
    model = ov.Model([op.concat(means, 1), *ends], [frames], "two ends")
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"}
    compiled = ov.Core().compile_model(model, "CPU", options)

    def see(prepared: np.ndarray) -> Shard:
        low, u, uc, t, tc = (np.asarray(value) for value in compiled([prepared]).values())
        uc, tc = (c.reshape(-1, CHANNELS, GRID**2).transpose(0, 2, 1) for c in (uc, tc))
        found = {"low": low, "u": u, "uc": uc, "t": t, "tc": tc}
        return {name: np.ascontiguousarray(v).astype(np.float16) for name, v in found.items()}

    return see


def _through(op: Any, x: Any, block: Any) -> Any:
    from sureshot.models.encoders.openvino import _convolved

    y = x if block.expand is None else op.clamp(_convolved(op, x, block.expand), 0.0, 6.0)
    y = _convolved(op, op.clamp(_convolved(op, y, block.filter), 0.0, 6.0), block.project)
    return op.add(x, y) if block.residual else y


def _read() -> Callable[[Sequence[str]], Shard]:
    """Encode texts by the upper layers of the package and by those that ship."""
    network = Network().eval()
    bert: Any = network.bert
    first = len(bert.encoder.layer) - TUNED_LAYERS
    tuned = copy.deepcopy(bert)
    weights = {name: torch.from_numpy(v) for name, v in load_head("text.network.").items()}
    tuned.load_state_dict(weights, strict=False)
    ends = {"u": bert.encoder.layer[first:], "t": tuned.encoder.layer[first:]}

    def read(texts: Sequence[str]) -> Shard:
        ids = network.tokens(texts)
        found = {name: np.zeros((len(ids), SENTENCE), np.float16) for name in ends}
        for length in sorted({len(i) for i in ids}):  # one length at a time: nothing is padded
            same = [row for row, i in enumerate(ids) if len(i) == length]
            for rows in (same[k : k + _AT_ONCE] for k in range(0, len(same), _AT_ONCE)):
                with torch.inference_mode():
                    below = bert.embeddings(torch.stack([ids[row] for row in rows]))
                    for layer in bert.encoder.layer[:first]:
                        below = layer(below)
                    for name, layers in ends.items():
                        states = below
                        for layer in layers:
                            states = layer(states)
                        vectors = functional.normalize(states.sum(1), dim=-1)
                        found[name][rows] = vectors.numpy()
        return found

    return read
