"""The maps of the bundled model, fitted on what its networks make of all that is trained on.

The networks stand still meanwhile. Their tuning then begins with maps that fit, and they are bent
less by what they see; maps that are fitted anew after it are no better (LOG.md).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor

from benchmarks.bundled.fit import contrast, phrase
from benchmarks.bundled.items import Item, digest_of
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from sureshot.files import replace_file

# Chosen on validation galleries (LOG.md). Only a sixth of the items are videos.
EPOCHS, _BATCH, _CAPTIONS, _CUT, _VIDEOS = 24, 256, 3, 0.2, 2
_RATE, _DECAY, _RISE = 1e-3, 0.1, 0.1
_PHRASES = 2  # of an item that is trained on
_SHARD = 256


@dataclass(frozen=True, slots=True)
class Features:
    """What the networks make of items; frames and texts stand by rising items.

    Attributes:
        looks, names: of frames, as `Network.see` reads them.
        texts: unit sentence vectors; the last `_PHRASES` of each item are of phrases.
        frames_of, texts_of: how many each item has.
    """

    looks: Float[Tensor, "frames 1280"]
    names: Float[Tensor, "frames 384"]
    texts: Float[Tensor, "texts 384"]
    frames_of: Int[np.ndarray, " items"]
    texts_of: Int[np.ndarray, " items"]


def features_of(
    network: Network,
    items: Sequence[Item],
    states: Sequence[list[State]],
    folder: Path,
    kept: Callable[[], None] = lambda: None,
) -> Features:
    """Features of items, kept in shards; a stopped run goes on where it was.

    Args:
        network: as its packages have it, whatever of it will be tuned.
        items: pictures and videos.
        states: frames of each.
        folder: where shards are kept, by what they are of.
        kept: is called after each shard that was computed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    network.eval()
    shards: list[dict[str, Tensor]] = []
    texts_of = []
    for first in range(0, len(items), _SHARD):
        some = items[first : first + _SHARD]
        draw = np.random.default_rng(first)
        texts = [[*i.captions, *(_phrase(i, draw) for _ in range(_PHRASES))] for i in some]
        texts_of += [len(of) for of in texts]
        path = folder / f"{first // _SHARD:04}-{digest_of(some)}.safetensors"
        if not path.exists():
            with torch.inference_mode():
                flat = [state for row in range(first, first + len(some)) for state in states[row]]
                looks, names = network.inputs(flat)
                found = {"looks": looks, "names": names}
                found["texts"] = network.sentences([text for of in texts for text in of])
            with replace_file(path) as fresh:
                save_file({name: value.half() for name, value in found.items()}, fresh)
            network.forget()
            kept()
        shards.append(load_file(path))
    looks, names, vectors = (
        torch.cat([shard[name] for shard in shards]).float() for name in ("looks", "names", "texts")
    )
    return Features(
        looks=looks,
        names=names,
        texts=vectors,
        frames_of=np.array([len(frames) for frames in states]),
        texts_of=np.array(texts_of),
    )


def _phrase(item: Item, draw: np.random.Generator) -> str:
    return phrase(str(draw.choice(item.captions)), draw)


def fit(
    network: Network, items: Sequence[Item], data: Features, folder: Path, epochs: int = EPOCHS
) -> None:
    """Give a network maps that fit: those in the folder, or new ones that are kept there."""
    digest = hashlib.sha256(f"{digest_of(items)} {epochs}".encode()).hexdigest()[:12]
    path = folder / f"maps-{digest}.safetensors"
    names = [f"{part}.{w}" for part in ("text", "frame") for w in ("weight", "bias")]
    names += ["label.weight", "log_scale"]
    if not path.exists():
        network.restart_maps(seed=0)
        _fit(network, data, np.array([item.family == "msrvtt" for item in items]), epochs)
        trained = network.trained()
        with replace_file(path) as fresh:
            save_file({name: trained[name].contiguous() for name in names}, fresh)
    network.load_state_dict(load_file(path), strict=False)


def _fit(network: Network, data: Features, videos: Bool[np.ndarray, " items"], epochs: int) -> None:
    draw = np.random.default_rng(0)
    an_epoch = np.repeat(np.arange(len(videos)), np.where(videos, _VIDEOS, 1))
    steps = epochs * len(an_epoch) // _BATCH + 1
    weights = [w for part in network.maps() for w in part.parameters()]
    optimizer = torch.optim.AdamW([*weights, network.log_scale], lr=_RATE, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, _RATE, total_steps=max(steps, round(2 / _RISE)) + 1, pct_start=_RISE
    )
    network.train()
    batches = _batches(an_epoch, draw)
    for _ in range(steps):
        rows = next(batches)
        frames = _first(data.frames_of)[rows] + draw.integers(data.frames_of[rows])
        owner = np.repeat(rows, _CAPTIONS)
        # Phrases are the last of an item's texts.
        whole = data.texts_of[owner] - _PHRASES
        cut = draw.random(len(owner)) < _CUT
        place = np.where(cut, whole + draw.integers(_PHRASES, size=len(owner)), 0)
        place += np.where(cut, 0, draw.integers(whole))
        texts = _first(data.texts_of)[owner] + place
        looks, names, read = (
            part.to(network.device)
            for part in (data.looks[frames], data.names[frames], data.texts[texts])
        )
        logits = network.log_scale.exp() * network.read(read) @ network.see(looks, names).T
        right = torch.from_numpy(owner[:, None] == rows).to(logits)
        optimizer.zero_grad()
        torch.autograd.backward((contrast(logits, right) + contrast(logits.T, right.T)) / 2)
        optimizer.step()
        schedule.step()
    network.eval()


def _first(counts: Int[np.ndarray, " items"]) -> Int[np.ndarray, " items"]:
    return np.cumsum(counts) - counts


def _batches(rows: np.ndarray, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches without end, each row once before any comes again."""
    waiting = np.zeros(0, int)
    while True:
        while len(waiting) < _BATCH:
            waiting = np.concatenate([waiting, draw.permutation(rows)])
        yield waiting[:_BATCH]
        waiting = waiting[_BATCH:]
