"""ActivityNet Captions: long videos whose sentences are joined into one paragraph.

The test set of the papers is the validation set called val1. So there is nothing left to choose on:
``test`` is val1 here, and a validation set must be held out of ``train``.

Files:
    ``train_ids.json`` and ``val_ids.json`` (lists of ids; may be absent), ``train.json`` and
    ``val_1.json`` (id to ``sentences``). Ids begin with ``v_``, which they lose here; the name of a
    video may have it or not.

References:
    Krishna et al., Dense-Captioning Events in Videos, 2017.
    Zhang et al., Cross-Modal and Hierarchical Modeling of Video and Text, 2018 (paragraphs).
"""

from pathlib import Path

from sureshot.datasets.annotation import expecting, pick, read_annotation, sentences
from sureshot.datasets.split import Listing

PROTOCOLS = {
    "paragraph": "ActivityNet's val1 is what papers report results on: ask for the split test.",
}
_FILES = {
    "train": ("train_ids.json", "train.json", 10009),
    "test": ("val_ids.json", "val_1.json", 4917),
}


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    listed, described, expected = _FILES[split]
    path = pick(root, described)
    data = read_annotation(path)
    with expecting(path, 'an id and its "sentences" for each video'):
        paragraphs = {
            name.removeprefix("v_"): " ".join(filter(None, sentences(video["sentences"])))
            for name, video in data.items()
        }
    spelled = list(paragraphs)
    if (root / listed).is_file():
        spelled = read_annotation(root / listed)
        with expecting(root / listed, "a list of ids"):
            spelled = sentences(spelled)
    ids = [name.removeprefix("v_") for name in spelled]
    captions = {name: [paragraphs.get(name, "")] for name in ids}
    return Listing(
        protocol=f"{protocol} val1" if split == "test" else protocol,
        captions=captions,
        expected=expected,
        names={name: (f"v_{name}",) for name in captions},
    )
