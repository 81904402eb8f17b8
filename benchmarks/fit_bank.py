"""Make the bank of the bundled model, if validation videos say that its hub correction helps.

    python -m benchmarks.fit_bank [--cache DIR] [--write]

The captions are from MSR-VTT train, the videos from MSR-VTT train and Flickr8k train, on which its
head was trained; the gain is measured on the MSR-VTT validation videos. No test data are read. Make
it again whenever the head changes, and then the card, which knows it: see docs/bundled-model.md.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks import data
from sureshot.datasets import Split, load_split
from sureshot.models.bank import FILE, home_of
from sureshot.models.loading import load
from sureshot.research.features import extract
from sureshot.research.training.correction import VIDEOS, equip


def main() -> None:
    """Measure, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--write", action="store_true", help="ship it")
    options = parser.parse_args()
    root, scorer = data.folder("msrvtt"), load("bundled")
    train, val = (
        load_split("msrvtt", name, root, ids=root / f"split_{name}.txt", label="1k-A frame subset")
        for name in ("train", "val")
    )
    photos = load_split("flickr8k", "train", data.folder("flickr8k"))
    sets = [extract(_some(split), scorer.encoder, cache=options.cache) for split in (train, photos)]
    features = extract(val, scorer.encoder, cache=options.cache)
    place = home_of("bundled")
    if options.write:
        (place / FILE).unlink(missing_ok=True)  # of another head, with which nothing would load
    bank, told = equip(scorer, [train], features, sets)
    print(told)
    if bank is not None:
        print(f"with {len(bank.frames)} videos from elsewhere")
        if options.write:
            print(f"wrote {bank.save(place)}")


def _some(split: Split) -> Split:
    """As many of its videos as may be kept, drawn with seed 0: encoding all would take long."""
    rows = np.random.default_rng(0).permutation(len(split.items))[: VIDEOS // 2]
    return split.part({split.items[row].id for row in rows})


if __name__ == "__main__":
    main()
