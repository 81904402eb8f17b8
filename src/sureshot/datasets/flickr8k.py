"""Flickr8k: photos with five sentences each, read as videos of one frame.

Files:
    Sentences: ``captions.csv`` or ``captions.txt`` (comma-separated, columns ``image`` and
    ``caption``), the official ``Flickr8k.token.txt`` (``PHOTO#NUMBER``, a tab, the sentence), or
    Karpathy's ``dataset_flickr8k.json`` or ``dataset.json``.
    Splits: ``split_{train,val,test}.txt`` or ``Flickr_8k.{train,dev,test}Images.txt`` (names of
    photos, one a line; their extension need not be that of the files), or Karpathy's JSON.

    Of several files the first one counts. The official ones may also lie in ``Flickr8k_text``.

References:
    Hodosh et al., Framing Image Description as a Ranking Task, 2013.
    Karpathy and Fei-Fei, Deep Visual-Semantic Alignments for Generating Image Descriptions, 2015.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from sureshot.datasets.annotation import (
    expecting,
    pick,
    read_annotation,
    read_lines,
    read_table,
    sentences,
)
from sureshot.datasets.split import Listing

PROTOCOLS = {"multi-caption": ""}
_LISTS = {"train": ("train", 6000), "val": ("dev", 1000), "test": ("test", 1000)}
_TABLES = ("captions.csv", "captions.txt")
_TOKENS = ("Flickr8k.token.txt", "Flickr8k_text/Flickr8k.token.txt")
_KARPATHY = ("dataset_flickr8k.json", "dataset.json")


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    other, expected = _LISTS[split]
    official = f"Flickr_8k.{other}Images.txt"
    listed = pick(root, f"split_{split}.txt", official, f"Flickr8k_text/{official}", *_KARPATHY)
    if listed.name in _KARPATHY:
        names = [name for name, part, _ in _karpathy(listed) if part == split]
    else:
        names = read_lines(listed)
    by_photo: dict[str, list[str]] = {}
    for name, sentence in _sentences(pick(root, *_TABLES, *_TOKENS, *_KARPATHY)):
        by_photo.setdefault(_stem(name), []).append(sentence)
    return Listing(
        protocol=protocol,
        captions={name: by_photo.get(_stem(name), []) for name in names},
        expected=expected,
        names={name: (_stem(name),) for name in names},
        photos=True,
    )


def _stem(name: str) -> str:
    return PurePosixPath(name).stem


def _sentences(path: Path) -> Iterator[tuple[str, str]]:
    """Each sentence with the name of its photo, from any of the three forms."""
    if path.name in _TABLES:
        yield from ((row["image"], row["caption"]) for row in read_table(path, "image", "caption"))
    elif path.name in _KARPATHY:
        yield from ((name, text) for name, _, texts in _karpathy(path) for text in texts)
    else:
        with expecting(path, "lines of PHOTO#NUMBER, a tab and a sentence"):
            for line in read_lines(path):
                place, _, sentence = line.partition("\t")
                name, _, number = place.rpartition("#")
                if not name or not number.isdigit():
                    raise ValueError(f"{line!r:.60} does not begin with a photo and a number")
                yield name, sentence


def _karpathy(path: Path) -> list[tuple[str, str, list[str]]]:
    """Name, split and sentences of each photo."""
    data = read_annotation(path)
    with expecting(path, '"images" with "filename", "split" and "sentences" with "raw"'):
        return [_photo(photo) for photo in data["images"]]


def _photo(values: Any) -> tuple[str, str, list[str]]:
    name, split = sentences([values["filename"], values["split"]])
    return name, split, sentences([sentence["raw"] for sentence in values["sentences"]])
