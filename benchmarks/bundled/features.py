"""Kept features in the form in which heads read them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.bundled import kept
from benchmarks.bundled.heads import Data
from benchmarks.bundled.items import Item, training, validation
from benchmarks.bundled.network import class_inputs
from sureshot.models.encoders.bundled import TEMPERATURE, image_network


def sets_of(items: int | None) -> dict[str, list[Item]]:
    """What is read of each set; training items in one random order."""
    val, everything = validation(), training()
    order = np.random.default_rng(0).permutation(len(everything))
    return {
        "msrvtt-val": val["MSR-VTT val"],
        "flickr8k-val": val["Flickr8k val"],
        "train": [everything[place] for place in order[:items]],
    }


def data_of(folder: Path, items: Sequence[Item], trained: bool, on: str) -> Data:
    """Join shards and put features into the form in which heads read them."""
    seen = _joined(list(kept.pictures(items, folder)))
    told = _joined(list(kept.captions(items, folder, trained)))
    whole, cells = (torch.from_numpy(seen[name]).float() for name in (on, f"{on}c"))
    low = np.split(seen["low"], np.cumsum(list(kept.BELOW.values()))[:-1], axis=1)
    network = image_network()
    believed = torch.softmax(network.classify(whole) / TEMPERATURE, dim=-1)
    frames = {
        "looks": _even(whole),
        "names": believed @ class_inputs(),
        "low": torch.cat([_even(torch.from_numpy(part).float()) for part in low], 1),
        "largest": _even(cells.amax(1)),
        "cells": torch.from_numpy(seen[f"{on}c"]),
    }
    return Data(
        frames=frames,
        frame_item=seen["item"],
        texts=torch.from_numpy(told[on]).float(),
        alike=torch.from_numpy(told["u"]).float(),
        text_item=told["item"],
        phrase=told["phrase"],
        family=np.array([item.family for item in items]),
    )


def _even(values: Tensor) -> Tensor:
    return functional.layer_norm(values, values.shape[-1:])


def _joined(shards: Sequence[kept.Shard]) -> kept.Shard:
    """Shards one after another; items are counted through."""
    counts = [int(shard["item"].max()) + 1 for shard in shards]
    first = np.cumsum([0, *counts[:-1]])
    items = [shard["item"] + add for shard, add in zip(shards, first, strict=True)]
    names = [name for name in shards[0] if name != "item"]
    return {name: np.concatenate([shard[name] for shard in shards]) for name in names} | {
        "item": np.concatenate(items)
    }
