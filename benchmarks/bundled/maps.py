"""Fit the maps of the bundled model anew, on what its tuned networks make of all it is trained on.

    python -m benchmarks.bundled.maps [--seeds 1] [--to .cache/bundled/kept] [--write]

While the networks are tuned, the maps follow features that move, for eight epochs. Here the
networks stand still, so 96 epochs take some minutes. Features and fitted maps are kept below the
folder, by the networks that they are of, so that a stopped run goes on. Recalls are printed of each
seed. With ``--write`` the maps of seed 0 take the place of those in the package; the bank and the
calibration card have to be made next.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from benchmarks.bundled import kept
from benchmarks.bundled.features import data_of, sets_of
from benchmarks.bundled.heads import Data, Head, Trial, fit, map_of, recalls, scores
from benchmarks.bundled.measure import shown
from benchmarks.bundled.network import class_inputs
from sureshot.files import replace_file
from sureshot.models.encoders.bundled import head_path

# Chosen on validation galleries (LOG.md). Only a sixth of the items are videos.
HOW = Trial(epochs=96, captions=3, weights=(("msrvtt", 2.0),))


def main() -> None:
    """Fit, measure, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--to", type=Path, default=Path(".cache/bundled/kept"))
    parser.add_argument("--write", action="store_true", help="ship the maps of seed 0")
    options = parser.parse_args()
    folder = kept.home(options.to)
    sets = sets_of(None)
    train = data_of(folder / "train", sets.pop("train"), True, "t")
    known = {name: data_of(folder / name, some, False, "t") for name, some in sets.items()}
    print(f"{len(train.family)} items", flush=True)
    for seed in range(options.seeds):
        print(f"seed {seed}: {measured(fitted(train, seed, folder / 'maps'), known)}", flush=True)
    if options.write:
        shipped = load_file(head_path()) | weights(fitted(train, 0, folder / "maps"))
        with replace_file(head_path()) as fresh:
            save_file(shipped, fresh)
        print(f"wrote {head_path().name}: make the bank and the card next")


def fitted(train: Data, seed: int, folder: Path) -> Head:
    """The maps of a seed: those of these data in the folder, or new ones that are put there."""
    digest = hashlib.sha256(repr(HOW).encode())
    for values in (train.texts.numpy(), train.text_item, train.frame_item, train.family):
        digest.update(np.ascontiguousarray(values).tobytes())
    path = folder / f"{seed}-{digest.hexdigest()[:12]}.safetensors"
    head = Head(HOW, train)
    if path.exists():
        head.load_state_dict({k: torch.from_numpy(v) for k, v in load_file(path).items()})
        return head.eval()
    head = fit(HOW, train, seed)
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as fresh:
        save_file({name: value.numpy() for name, value in head.state_dict().items()}, fresh)
    return head


def measured(head: Head, galleries: dict[str, Data]) -> str:
    """Recalls in each gallery, in a line."""
    found = {name: recalls(scores([head], data), data) for name, data in galleries.items()}
    return ", ".join(f"{name} {shown((r[0], r[1], r[2]))}" for name, r in found.items())


def weights(head: Head) -> dict[str, np.ndarray]:
    """The maps in half precision, by the names that the encoder reads."""
    looks, names = map_of(head, 0), map_of(head, 1)
    found = {
        "text.weight": head.text.weight,
        "text.bias": head.text.bias,
        "frame.weight": looks.weight,
        "frame.bias": looks.bias,
        "frame.labels": names.weight @ class_inputs().T,
    }
    return {name: value.detach().half().numpy() for name, value in found.items()}


if __name__ == "__main__":
    main()
