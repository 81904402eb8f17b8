"""Features of a data set against the loop one writes first: photos and captions of Flickr8k val.

    python -m benchmarks.extraction [--photos 256] [--captions 512] [--rounds 3]

Photos, frames a second: `sureshot.research.features.extract` into an empty cache, beside a loop
that opens a photo with Pillow, prepares it and gives it to the network in batches of 16. Captions a
second: `encode_texts` of the bundled encoder, beside transformers' BertModel with the same weights
in batches of 64. Both sides take turns in one process and have the same threads; medians.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import all_minilm_l6_v2
import numpy as np
import torch
from PIL import Image

from benchmarks import data
from sureshot.datasets import load_split
from sureshot.models.encoders.bundled import BridgeEncoder
from sureshot.research.features import extract

_BATCH, _TEXTS = 16, 64


def main() -> None:
    """Alternate the two sides and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=256)
    parser.add_argument("--captions", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    whole = load_split("flickr8k", "val", data.folder("flickr8k"))
    split = whole.part({item.id for item in whole.items[: options.photos]})
    encoder = BridgeEncoder()
    texts = split.texts()[: options.captions]
    paths = [item.path for item in split.items]
    bert = _bert()
    sides: dict[str, tuple[Callable[[], object], int]] = {
        "photos, loop": (lambda: loop(encoder, paths), len(paths)),
        "photos, extract": (lambda: cold(encoder, split), len(paths)),
        "captions, transformers": (lambda: bert(texts), len(texts)),
        "captions, encode_texts": (lambda: encoder.encode_texts(texts), len(texts)),
    }
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds + 1):  # the first one warms up
        for name, (work, _) in sides.items():
            began = time.perf_counter()
            work()
            spent[name].append(time.perf_counter() - began)
    print(f"{torch.get_num_threads()} threads, medians of {options.rounds} rounds in turn")
    rates = {name: sides[name][1] / float(np.median(taken[1:])) for name, taken in spent.items()}
    for name, rate in rates.items():
        print(f"{name:24}{rate:8.1f} a second")
    ratio = rates["photos, extract"] / rates["photos, loop"]
    print(f"photos: extract is {ratio:.2f} times the loop")
    ratio = rates["captions, encode_texts"] / rates["captions, transformers"]
    print(f"captions: encode_texts is {ratio:.2f} times transformers")


def loop(encoder: BridgeEncoder, paths: Sequence[Path]) -> int:
    """The plain loop over photos."""
    batch, done = [], 0
    for path in paths:
        with Image.open(path) as photo:
            batch.append(encoder.prepare(np.asarray(photo.convert("RGB"))[None])[0])
        alike = [image for image in batch if image.shape == batch[-1].shape]
        if len(alike) == _BATCH:
            done += len(encoder.encode_frames(np.stack(alike)).frames)
            batch = [image for image in batch if image.shape != batch[-1].shape]
    for shape in {image.shape for image in batch}:
        rest = np.stack([image for image in batch if image.shape == shape])
        done += len(encoder.encode_frames(rest).frames)
    return done


def cold(encoder: BridgeEncoder, split: Any) -> int:
    """Extraction into a cache that is empty; of a caption a photo too, it cannot do without."""
    with tempfile.TemporaryDirectory() as cache:
        rows = {caption.video: row for row, caption in enumerate(split.captions)}
        few = replace(split, captions=tuple(split.captions[row] for row in sorted(rows.values())))
        return len(extract(few, encoder, cache=Path(cache)).videos)


def _bert() -> Callable[[Sequence[str]], object]:
    """MiniLM by transformers, with the weights of the package."""
    from transformers import AutoModel, AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        all_minilm_l6_v2.extract_model(folder)
        files = Path(folder) / "all-MiniLM-L6-v2"
        tokenizer = AutoTokenizer.from_pretrained(files)
        model = AutoModel.from_pretrained(files).eval()

    def encode(texts: Sequence[str]) -> list[torch.Tensor]:
        found = []
        with torch.inference_mode():
            for first in range(0, len(texts), _TEXTS):
                part = tokenizer(
                    list(texts[first : first + _TEXTS]), padding=True, return_tensors="pt"
                )
                found.append(model(**part).last_hidden_state)
        return found

    return encode


if __name__ == "__main__":
    main()
