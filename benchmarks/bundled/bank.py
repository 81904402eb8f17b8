"""Make the bank of the bundled model, if validation videos say that its hub correction helps.

    python -m benchmarks.bundled.bank [--model bundled-bf16] [--cache DIR] [--write]

Captions and videos are of what the model was trained on: MSR-VTT train, Flickr8k train and
``captioned``, alike. The gain is measured on validation videos of MSR-VTT and photos of Flickr8k,
since a user's videos come from elsewhere, too. No test data are read.
The bank knows its model, and the calibration card knows the bank, so the card is made after it.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.bundled.items import Item, training
from sureshot.datasets import Caption, Split, load_split
from sureshot.datasets import Item as Listed
from sureshot.models.hub_bank import BUNDLED
from sureshot.models.huggingface import BANK
from sureshot.models.load import load
from sureshot.research.features import extract
from sureshot.research.training.hub_correction import VIDEOS, fit_hub_bank

_KINDS = {"msrvtt": "frame subset", "flickr8k": "photos", "captioned": "photos"}


def main() -> None:
    """Measure, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=BUNDLED, default="bundled")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--write", action="store_true", help="ship it")
    options = parser.parse_args()
    if options.write:
        BUNDLED[options.model].mkdir(exist_ok=True)
        # One of another head, with which nothing would load.
        (BUNDLED[options.model] / BANK).unlink(missing_ok=True)
    root, scorer = data.folder("msrvtt"), load(options.model)
    videos = load_split(
        "msrvtt", "val", root, ids=root / "split_val.txt", label="1k-A frame subset"
    )
    photos = load_split("flickr8k", "val", data.folder("flickr8k"))
    splits = [some(kind) for kind in _KINDS]
    sets = [extract(split, scorer.encoder, cache=options.cache) for split in splits]
    galleries = [extract(s, scorer.encoder, cache=options.cache) for s in (videos, photos)]
    bank, told = fit_hub_bank(scorer, splits, galleries, sets)
    print(told)
    if bank is not None:
        print(f"with {len(bank.frames)} videos and photos from elsewhere")
        if options.write:
            print(f"wrote {bank.save(BUNDLED[options.model])}")


def some(kind: str) -> Split:
    """As many items of a kind as may be kept, drawn with seed 0: encoding all would take long."""
    items = [item for item in training() if (_kind(item) == kind)]
    rows = np.random.default_rng(0).permutation(len(items))[: VIDEOS // len(_KINDS)]
    chosen = [items[row] for row in sorted(rows)]
    captions = [Caption(text, video) for video, item in enumerate(chosen) for text in item.captions]
    listed = tuple(Listed(f"{item.family}/{item.path.stem}", item.path) for item in chosen)
    return Split(kind, "train", "some", listed, tuple(captions), label=_KINDS[kind])


def _kind(item: Item) -> str:
    return item.family if item.family in _KINDS else "captioned"


if __name__ == "__main__":
    main()
