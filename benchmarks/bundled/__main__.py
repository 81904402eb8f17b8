"""Make the bundled model again, from public packages and the research data.

    make model                                  # all of it, into the package; resumable
    python -m benchmarks.bundled [--to .cache/bundled] [--without cocoval ade] [--write]

Stages, each kept in the folder: what enters the last block of the image network for every frame,
then epochs of training. With ``--write`` the weights go into the package; the bank and the
calibration card know them and have to be made next, which ``make model`` does. With ``--without``
families of pictures stay out of training and their recalls are printed: so settings are chosen.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from benchmarks.bundled.fit import Settings, fit
from benchmarks.bundled.items import CAPTIONED, Item, caption_words, captioned, training, validation
from benchmarks.bundled.measure import recalls, shown
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import FRAMES, State, states_of
from sureshot.files import replace_file, write_text
from sureshot.models.encoders.backbone import Backbone
from sureshot.models.encoders.bridge import image_network
from sureshot.models.encoders.bundled import head_path, words_path

_GALLERY = 132  # pictures of a family that was left out, as many as a small library has videos
_ALL_FRAMES = 12  # of a video that is asked for


def main() -> None:
    """Compute, train, measure, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path(".cache/bundled"))
    parser.add_argument("--without", nargs="*", default=[], choices=CAPTIONED)
    parser.add_argument("--epochs", type=int, default=Settings().epochs)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="ship the weights")
    options = parser.parse_args()
    backbone = Backbone(image_network, "cpu", None)
    pictures = list(captioned())
    sets = {
        "msrvtt": [item for item in training() if item.family == "msrvtt"],
        "flickr8k": [item for item in training() if item.family == "flickr8k"],
        "captioned": pictures,
    }
    states = {
        name: states_of(items, backbone, options.to / name, FRAMES) for name, items in sets.items()
    }
    chosen = [
        (item, seen)
        for name, items in sets.items()
        for item, seen in zip(items, states[name], strict=True)
        if item.family not in options.without and not item.held_out
    ]
    settings = replace(Settings(), epochs=options.epochs, seed=options.seed)
    name = "without-" + "-".join(options.without) if options.without else "all"
    folder = options.to / name
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{len(chosen)} items", flush=True)
    network = fit([item for item, _ in chosen], [seen for _, seen in chosen], settings, folder)
    for title, items in validation().items():
        seen = states_of(items, backbone, options.to / title.replace(" ", "-"), _ALL_FRAMES)
        print(f"{title:14} {shown(recalls(network, items, seen))}", flush=True)
    known = dict(zip((item.path for item in pictures), states["captioned"], strict=True))
    for family in options.without:
        left_out(network, [item for item in pictures if item.family == family], known)
    if options.write:
        with replace_file(head_path()) as fresh:
            save_file(weights(network), fresh)
        words = caption_words([item for item, _ in chosen])
        write_text(words_path(), "\n".join(words) + "\n")
        print(f"wrote {head_path().name}: make the bank and the card next")


def left_out(network: Network, items: Sequence[Item], states: dict[Path, list[State]]) -> None:
    """Mean recalls of galleries of a family that was not trained on."""
    order = np.random.default_rng(0).permutation(len(items))
    found = []
    for first in range(0, len(items) - _GALLERY + 1, _GALLERY):
        part = [items[row] for row in order[first : first + _GALLERY]]
        found.append(recalls(network, part, [states[item.path] for item in part]))
    one, five, ten = np.mean(found, axis=0)
    family = f"{items[0].family}, {_GALLERY} each"
    print(f"{family:14} {shown((one, five, ten))}", flush=True)


def weights(network: Network) -> dict[str, np.ndarray]:
    """All that was trained, in half precision, by the names that the encoder reads."""
    trained = {name for name, weight in network.named_parameters() if weight.requires_grad}
    found = {"frame.labels": network.labels()}
    for name, weight in network.named_parameters():
        if name in trained - {"log_scale", "label.weight"}:
            renamed = name.replace("bert.", "text.network.").replace("image.", "frame.network.")
            found[renamed] = weight
    return {name: weight.detach().half().numpy() for name, weight in found.items()}


if __name__ == "__main__":
    main()
