"""Pictures and videos with captions that the bundled model is trained on and chosen by.

Families: ``msrvtt`` (the frame subset), ``flickr8k``, and the sets of ``captioned``. One picture in
five of the rooms (``ade``, ``sun``) is never trained on, so that `benchmarks.quality rooms` can ask
for it. `tests` alone reads test videos and the 26 clips.
"""

import csv
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import data

CAPTIONED = ("cc", "cc3m", "cocoval", "coco256", "cocomini", "ade", "sun")
ROOMS = ("ade", "sun")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Item:
    """A picture or a video.

    Attributes:
        family: data set, or set of ``captioned``.
        path: its file.
        captions: what people or machines said of it, at least one.
    """

    family: str
    path: Path
    captions: tuple[str, ...]

    @property
    def held_out(self) -> bool:
        """Whether no model is trained on it, because it is asked for in a benchmark."""
        return self.family in ROOMS and zlib.crc32(self.path.stem.encode()) % 5 == 0


def digest_of(items: Sequence[Item]) -> str:
    """A name that other items, or others of their captions, do not have."""
    told = repr([(item.family, item.path.name, item.captions) for item in items])
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def training() -> list[Item]:
    """All that a model may be trained on."""
    items = [*_msrvtt("train"), *_flickr("train"), *captioned()]
    return [item for item in items if not item.held_out]


def validation() -> dict[str, list[Item]]:
    """Galleries to choose by, all captions of each being queries."""
    return {"MSR-VTT val": list(_msrvtt("val")), "Flickr8k val": list(_flickr("val"))}


def tests() -> dict[str, list[Item]]:
    """Galleries to report on, by which nothing is chosen."""
    clips = data.folder("clips") / "videos"
    asked = {item.path.stem: item for item in _msrvtt("test")}
    asked = {name: replace(asked[name], captions=(data.jsfusion()[name],)) for name in asked}
    return {
        "MSR-VTT test": list(asked.values()),
        "unshared": [asked[name] for name in data.split("test_unshared")],
        "clips": [Item("clips", clips / n, (text,)) for n, text in data.clip_captions().items()],
        **rooms(),
    }


def rooms() -> dict[str, list[Item]]:
    """The held-out pictures of rooms, by family."""
    held = [item for item in captioned() if item.held_out]
    return {family: [item for item in held if item.family == family] for family in ROOMS}


def caption_words(items: Sequence[Item], least: int = 2) -> dict[str, int]:
    """Words of two letters and more that stand in as many captions, and in how many each does."""
    count = Counter(
        word
        for item in items
        for caption in item.captions
        for word in set(_WORD.findall(caption.lower()))
    )
    known = sorted(word for word, n in count.items() if n >= least and len(word) > 1)
    return {word: count[word] for word in known}


def captioned() -> Iterator[Item]:
    """The pictures of ``captioned``, in the order of its list."""
    root = data.folder("captioned")
    found: dict[tuple[str, str], list[str]] = {}
    with (root / "captions.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["set"], row["file"]), []).append(row["caption"])
    for (family, name), captions in found.items():
        yield Item(family, root / family / name, tuple(captions))


def _msrvtt(split: str) -> Iterator[Item]:
    captions, folder = data.captions(), data.folder("msrvtt") / "videos"
    for name in data.split(split):
        yield Item("msrvtt", folder / f"{name}.mp4", tuple(captions[name]))


def _flickr(split: str) -> Iterator[Item]:
    folder = data.folder("flickr8k") / "images"
    for name, captions in data.flickr(split).items():
        yield Item("flickr8k", folder / name, tuple(captions))
