"""Make the bundled model again, from public packages and the research data.

    make model                                  # all of it, into the package; resumable
    python -m benchmarks.bundled [--to .cache/bundled] [--without cocoval ade] [--write]

Stages, each kept in the folder: what enters the tuned blocks of the image network for every frame;
maps beside the networks as they come; epochs of tuning. Recalls are printed after either. With
``--write`` the weights go into the package; the bank and the calibration card know them and have to
be made next, which ``make model`` does. With ``--without`` families of pictures stay out of
training and their recalls are printed as well: so settings are chosen.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from benchmarks.bundled import maps
from benchmarks.bundled.fit import Settings, fit
from benchmarks.bundled.items import CAPTIONED, Item, caption_words, captioned, training, validation
from benchmarks.bundled.measure import recalls, shown
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import FRAMES, State, states_of
from sureshot.files import replace_file, write_text
from sureshot.models.encoders.backbone import Backbone
from sureshot.models.encoders.bundled import TUNED_BLOCK, head_path, image_network, words_path

_GALLERY = 132  # pictures of a family that was left out, as many as a small library has videos
_GALLERIES = 8  # of a family at most
_ALL_FRAMES = 12  # of a video that is asked for


@dataclass(frozen=True, slots=True)
class Seen:
    """Pictures and videos, and the states of their frames."""

    items: list[Item]
    states: list[list[State]]

    def part(self, rows: Sequence[int]) -> "Seen":
        """Some of them."""
        return Seen([self.items[row] for row in rows], [self.states[row] for row in rows])


def main() -> None:
    """Compute, fit, tune, measure, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path(".cache/bundled"))
    parser.add_argument("--without", nargs="*", default=[], choices=CAPTIONED)
    parser.add_argument("--epochs", type=int, nargs="+", default=Settings().epochs)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="ship the weights")
    options = parser.parse_args()
    folder = options.to / ("without-" + "-".join(options.without) if options.without else "all")
    folder.mkdir(parents=True, exist_ok=True)
    train, galleries = read(options.to, options.without)
    print(f"{len(train.items)} items", flush=True)
    settings = replace(Settings(), epochs=tuple(options.epochs), seed=options.seed)

    network = Network()
    data = maps.data_of(network, train.items, train.states, folder)
    maps.put(maps.fitted(maps.HOW, data, settings.seed, folder), network)
    del data
    print(f"maps: {measured(network, galleries)}", flush=True)
    fit(network, train.items, train.states, settings, folder)
    print(f"tuned: {measured(network, galleries)}", flush=True)
    if options.write:
        with replace_file(head_path()) as fresh:
            save_file(weights(network), fresh)
        words = caption_words(train.items)
        write_text(words_path(), "".join(f"{word} {n}\n" for word, n in words.items()))
        print(f"wrote {head_path().name}: make the bank and the card next")


def measured(network: Network, galleries: dict[str, list[Seen]]) -> str:
    """Recalls in each kind of gallery, in a line; the mean where there are several of a kind."""
    found = {
        name: np.mean([recalls(network, seen.items, seen.states) for seen in some], axis=0)
        for name, some in galleries.items()
    }
    return ", ".join(f"{name} {shown((r[0], r[1], r[2]))}" for name, r in found.items())


def read(folder: Path, without: Sequence[str]) -> tuple[Seen, dict[str, list[Seen]]]:
    """What is trained on, and galleries: validation ones, and those of families left out."""
    backbone = Backbone(image_network, "cpu", None)
    place = folder / f"states-{TUNED_BLOCK}"

    def seen(items: list[Item], name: str, frames: int = FRAMES) -> Seen:
        return Seen(items, states_of(items, backbone, place / name, frames))

    listed = training()
    sets = [
        seen([item for item in listed if item.family == name], name)
        for name in ("msrvtt", "flickr8k")
    ]
    pictures = seen(list(captioned()), "captioned")
    galleries = {
        title: [seen(items, title.replace(" ", "-"), _ALL_FRAMES)]
        for title, items in validation().items()
    }
    for family in without:
        rows = [row for row, item in enumerate(pictures.items) if item.family == family]
        order = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
        parts = [order[k * _GALLERY : (k + 1) * _GALLERY] for k in range(_GALLERIES)]
        galleries[family] = [pictures.part(part) for part in parts if len(part) == _GALLERY]
    kept = [
        row
        for row, item in enumerate(pictures.items)
        if item.family not in without and not item.held_out
    ]
    sets.append(pictures.part(kept))
    items = [item for some in sets for item in some.items]
    return Seen(items, [states for some in sets for states in some.states]), galleries


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
