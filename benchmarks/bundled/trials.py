"""What may make the bundled model better, tried on features that stay as they are.

    python -m benchmarks.bundled.trials keep [--part 0/2]     # features, an hour or more; resumable
    python -m benchmarks.bundled.trials try [NAME...] [--seeds 3] [--on u]

Each name is one change of the training, beside the same training without it (``as it is``), on the
same items. ``--on`` says whose features: ``u`` of the networks as their packages have them, which
have seen none of these pictures, or ``t`` of those that ship, whose tuning saw ``cocoval`` and
``ade``. Both families are left out of the heads' training. ``--items`` takes the first of all
training items, drawn in one random order. Recalls are raw, text to video or photo, means of seeds;
the sums of three recalls have their standard deviation over seeds.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from benchmarks.bundled import kept
from benchmarks.bundled.features import data_of, sets_of
from benchmarks.bundled.heads import Data, Head, Trial, fit, merged, recalls, scores

LEFT_OUT = ("cocoval", "ade")
_GALLERY, _GALLERIES = 132, 8

TRIALS = {
    "as it is": Trial(),
    "same captions from 0.7": Trial(same=0.7),
    "same captions from 0.8": Trial(same=0.8),
    "soft 0.1": Trial(soft=0.1),
    "soft 0.3": Trial(soft=0.3),
    "all frames": Trial(whole=True),
    "3 captions": Trial(captions=3),
    "batch 512": Trial(batch=512),
    "batch 1024, rate doubled": Trial(batch=1024, rate=2e-3),
    "queue of 4": Trial(queue=4),
    "queue of 4 in the last third": Trial(queue=4, queue_from=0.67),
    "MSR-VTT twice": Trial(weights=(("msrvtt", 2.0),)),
    "MSR-VTT thrice": Trial(weights=(("msrvtt", 3.0),)),
    "web half": Trial(weights=(("cc", 0.5),)),
    "weights of the last half": Trial(mean_of=0.5),
    "weights of the last fifth": Trial(mean_of=0.2),
    "layers below": Trial(inputs=("looks", "names", "low")),
    "largest cell": Trial(inputs=("looks", "names", "largest")),
    "cells by attention": Trial(cells=True),
    "hidden layer of 1024": Trial(hidden=1024),
    "512 numbers": Trial(dim=512),
    "no phrases": Trial(phrases=0.0),
    "dropout 0.5": Trial(dropout=0.5),
    "6 captions": Trial(captions=6),
    "3 captions, layers below": Trial(captions=3, inputs=(*Trial().inputs, "low")),
    "3 captions, layers below, cells": Trial(
        captions=3, inputs=(*Trial().inputs, "low"), cells=True
    ),
    "6 captions, layers below": Trial(captions=6, inputs=(*Trial().inputs, "low")),
    "3 captions, MSR-VTT twice": Trial(captions=3, weights=(("msrvtt", 2.0),)),
}
# What is made of several heads; a trial that they are of may follow after a colon.
TOGETHER = (
    *("weights of 3", "scores of 3", "scores of 8", "merged 3", "merged 8"),
    *("taught by 3", "taught by 8"),
    *("scores of 8: 6 captions, layers below", "merged 8: 6 captions, layers below"),
)
Known = dict[tuple[str, int, int | None], Head]  # by trial, seed, and seed of first weights


@dataclass(frozen=True, slots=True)
class Bench:
    """What all trials share."""

    train: Data
    galleries: dict[str, list[Data]]

    def measured(self, heads: Sequence[Head]) -> Float[np.ndarray, "galleries 3"]:
        """Recalls in each set of galleries."""
        return np.array(
            [
                np.mean([recalls(scores(heads, data), data) for data in parts], axis=0)
                for parts in self.galleries.values()
            ]
        )


def main() -> None:
    """Keep features, or try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("keep", "try"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*TRIALS, *TOGETHER]))
    parser.add_argument("--part", default="0/1", help="of processes that keep features together")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--on", choices=("u", "t"), default="u")
    parser.add_argument("--items", type=int, help="of training, the first of a random order")
    parser.add_argument("--epochs", type=int, default=Trial().epochs)
    parser.add_argument("--to", type=Path, default=Path(".cache/bundled/kept"))
    options = parser.parse_args()
    if options.verb == "keep":
        number, of = map(int, options.part.split("/"))
        for name, items in sets_of(options.items).items():
            folder = kept.home(options.to) / name
            for _ in kept.captions(items, folder, name == "train", (number, of)):
                pass
            for _ in kept.pictures(items, folder, (number, of)):
                pass
        return
    names = options.names or [*TRIALS, *TOGETHER]
    if unknown := set(names) - {*TRIALS, *TOGETHER}:
        parser.error(f"no trial is named {', '.join(sorted(unknown))}")
    bench = read(kept.home(options.to), options.on, options.items)
    print(f"{len(bench.train.family)} items | {' | '.join(bench.galleries)} | sums | all")
    known: Known = {}
    for name in names:
        found = [
            bench.measured(tried(bench.train, name, seed, options.epochs, known))
            for seed in range(options.seeds)
        ]
        print(row(name, np.array(found)), flush=True)


def tried(train: Data, name: str, seed: int, epochs: int, known: Known) -> list[Head]:
    """Heads that a trial ends with, whose scores are summed; members of several are known."""
    if name in TRIALS:
        return [fit(replace(TRIALS[name], epochs=epochs), train, seed)]
    what, _, of = name.partition(": ")
    how, _, count = what.rpartition(" ")
    trial = replace(TRIALS[of or "as it is"], epochs=epochs)
    others = [100 * (seed + 1) + k for k in range(int(count))]
    same = seed if how == "weights of" else None
    for other in others:
        if (of, other, same) not in known:
            known[of, other, same] = fit(trial, train, other, first=same)
    heads = [known[of, other, same] for other in others]
    if how == "scores of":
        return heads
    if how == "merged":
        return [merged(heads, train)]
    if how == "taught by":
        return [fit(trial, train, seed, heads)]
    mean = Head(trial, train).eval()
    states = [head.state_dict() for head in heads]
    mean.load_state_dict({k: torch.stack([s[k] for s in states]).mean(0) for k in states[0]})
    return [mean]


def row(name: str, found: Float[np.ndarray, "seeds galleries 3"]) -> str:
    """Line of a table: recalls, their sum in each gallery, and the sum of all."""
    shown = [" / ".join(f"{value:.1f}" for value in part) for part in found.mean(0)]
    sums = found.sum(2)
    total = sums.sum(1)
    each = " ".join(_spread(values) for values in (*sums.T, total))
    return f"| {name} | {' | '.join(shown)} | {each} |"


def _spread(values: Float[np.ndarray, " seeds"]) -> str:
    """Mean and deviation of a number over seeds; of one seed the number alone."""
    mean = f"{values.mean():.1f}"
    return mean if len(values) < 2 else f"{mean}±{values.std(ddof=1):.1f}"


def read(folder: Path, on: str, items: int | None) -> Bench:
    """Features that were kept, as far as training and galleries need them."""
    sets = sets_of(items)
    made = {name: data_of(folder / name, some, name == "train", on) for name, some in sets.items()}
    train = made["train"]
    galleries = {"MSR-VTT val": [made["msrvtt-val"]], "Flickr8k val": [made["flickr8k-val"]]}
    for family in LEFT_OUT:
        rows = np.flatnonzero(train.family == family)
        count = min(max(len(rows) // _GALLERY, 1), _GALLERIES)
        parts = [rows[k * _GALLERY : (k + 1) * _GALLERY] for k in range(count)]
        galleries[f"{family}, {count} of {len(parts[0])}"] = [_asked(train, part) for part in parts]
    left = np.flatnonzero(~np.isin(train.family, LEFT_OUT))
    return Bench(train.part(left), galleries)


def _asked(data: Data, items: np.ndarray) -> Data:
    """A gallery, without the phrases that are trained on."""
    part = data.part(items)
    kept_texts = torch.from_numpy(~part.phrase)
    return Data(
        frames=part.frames,
        frame_item=part.frame_item,
        texts=part.texts[kept_texts],
        alike=part.alike[kept_texts],
        text_item=part.text_item[~part.phrase],
        phrase=part.phrase[~part.phrase],
        family=part.family,
    )


if __name__ == "__main__":
    main()
