"""What enters the first tuned block of the image network, for every frame that is trained on.

The layers below it are not trained and cost most of the network, so they are run once and
kept on disk, in shards of 256 items: a stopped run goes on where it was. 40 kB a frame. Where the
whole network is tuned, what enters it are the frames, with 270 kB each.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float16, UInt8
from PIL import Image
from rich.progress import track
from safetensors.numpy import save_file

from benchmarks.bundled.items import Item, digest_of
from benchmarks.bundled.views import bad
from sureshot.datasets import Item as Listed
from sureshot.files import replace_file
from sureshot.media.sampling_rule import Sampling
from sureshot.models.encoders.backbone import SIDE, Backbone, resized_whole
from sureshot.research.features import sampled_frames

FRAMES = 4  # of a video that is trained on: the frame subset has no more
VIDEOS = (".mp4", ".gif")
_SHARD = 256
_TOGETHER = (32, 8, 2, 1)  # frames of one shape at once

# The states of one frame: rows, columns, channels. Of block 0 it is the frame, resized.
State = Float16[np.ndarray, "i j c"] | UInt8[np.ndarray, "i j 3"]
Look = Callable[[Item, int], list[np.ndarray]]


def images(item: Item, frames: int) -> list[np.ndarray]:
    """Frames of a video in time order, or a picture alone."""
    if item.path.suffix not in VIDEOS:
        with Image.open(item.path) as picture:
            return [np.asarray(picture.convert("RGB"))]
    return list(sampled_frames(Listed(item.path.stem, item.path), frames, SIDE, Sampling()))


def bad_images(item: Item, frames: int) -> list[np.ndarray]:
    """The same as a phone takes them badly, in one of four ways that the item's name decides."""
    return bad(images(item, frames), zlib.crc32(item.path.stem.encode()))


def states_of(
    items: Sequence[Item],
    backbone: Backbone,
    block: int,
    folder: Path,
    frames: int = FRAMES,
    kept: Callable[[], None] = lambda: None,
    look: Look = images,
) -> list[list[State]]:
    """States of the frames of each item.

    Args:
        items: pictures and videos.
        backbone: the untrained network.
        block: what enters it.
        folder: where shards are kept, by what they are of.
        frames: most frames of a video.
        kept: is called after each shard that was computed.
        look: gives the frames of an item.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: list[list[State]] = []
    for first in track(range(0, len(items), _SHARD), f"frames of {folder.name}"):
        some = items[first : first + _SHARD]
        path = folder / f"{first // _SHARD:04}-{digest_of(some)}.safetensors"
        if not path.exists():
            with ThreadPoolExecutor() as pool:  # so that the network need not wait for decoding
                seen = pool.map(lambda item: look(item, frames), some)
                rows = [_states(pictures, backbone, block) for pictures in seen]
            arrays = {f"{i} {k}": s for i, row in enumerate(rows) for k, s in enumerate(row)}
            with replace_file(path) as fresh:
                save_file(arrays, fresh)
            kept()
        found += _rows(_mapped(path))
    return found


def _mapped(path: Path) -> dict[str, State]:
    """The arrays of a shard, read from the disk as they are used: frames would fill 10 GB."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    data = np.memmap(path, np.uint8, "r", 8 + size)
    kinds = {"F16": np.float16, "U8": np.uint8}
    return {
        name: data[slice(*of["data_offsets"])].view(kinds[of["dtype"]]).reshape(of["shape"])
        for name, of in header.items()
    }


def _rows(arrays: dict[str, State]) -> list[list[State]]:
    rows: list[list[State]] = []
    for name in sorted(arrays, key=lambda name: tuple(map(int, name.split()))):
        if name.endswith(" 0"):
            rows.append([])
        rows[-1].append(arrays[name])
    return rows


def _states(pictures: list[np.ndarray], backbone: Backbone, block: int) -> list[State]:
    prepared = resized_whole(np.stack(pictures))
    if block == 0:
        return [*np.ascontiguousarray(prepared.transpose(0, 2, 3, 1))]
    return list(backbone.lower(prepared, block).astype(np.float16))


def grouped(
    states: Sequence[State],
) -> list[tuple[list[int], Float[torch.Tensor, "n c i j"]]]:
    """Frames of one shape together, with their rows: a convolution takes no others.

    They come in groups of few sizes: oneDNN prepares each convolution anew for every shape and
    number of frames that it has not seen, which takes longer than to compute it.
    """
    rows: dict[tuple[int, ...], list[int]] = {}
    for row, state in enumerate(states):
        rows.setdefault(state.shape, []).append(row)
    groups = []
    for same in rows.values():
        while same:
            size = next(size for size in _TOGETHER if size <= len(same))
            some, same = same[:size], same[size:]
            batch = torch.from_numpy(np.stack([states[r] for r in some])).float()
            groups.append((some, batch.permute(0, 3, 1, 2)))
    return groups
