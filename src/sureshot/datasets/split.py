"""A split of a benchmark as every system sees it: videos, captions, and what was not found."""

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from sureshot.datasets import media
from sureshot.datasets.annotation import read_lines
from sureshot.errors import SureshotError
from sureshot.paths import is_folder_at
from sureshot.text import listed

_TITLES = {
    "activitynet": "ActivityNet",
    "charades": "Charades",
    "didemo": "DiDeMo",
    "flickr8k": "Flickr8k",
    "lsmdc": "LSMDC",
    "synthetic": "Synthetic",
    "msrvtt": "MSR-VTT",
    "msvd": "MSVD",
    "vatex": "VATEX",
}
SPLITS = ("train", "val", "test")
_NAMED = 5  # ids that a message names before it only counts


@dataclass(frozen=True, slots=True)
class Item:
    """One video: a file, a photo, or a folder of frames."""

    id: str  # name in the annotation, without what the reader of the data set strips
    path: Path
    start: float | None = None  # seconds, where only a part of it counts; None is its beginning
    end: float | None = None  # likewise; None is its end


@dataclass(frozen=True, slots=True)
class Caption:
    """One text, never empty, and the number of its video."""

    text: str
    video: int


@dataclass(frozen=True, slots=True)
class Split:
    """The part of a data set that one run trains on, chooses on or is tested on."""

    dataset: str  # as ``load_split`` takes it
    name: str
    protocol: str  # which of several published readings of the data set this is
    items: tuple[Item, ...]  # each has at least one caption
    captions: tuple[Caption, ...]  # those of one video side by side; repeated texts are kept
    missing: tuple[str, ...] = ()  # ids without a file or without a caption
    expected: int | None = None  # number of videos the published split has, if one is published
    dropped: int = 0  # empty captions left out when the split was read
    label: str | None = None  # of results that differ from published ones in more than size
    experts: Path | None = None  # folder of features, see `sureshot.models.encoders.experts`
    root: Path | None = None  # of a synthetic dataset, which has the truth about the captions

    def title(self) -> str:
        """What a table of results calls this split; part of a split never looks like all of it.

        Examples:
            >>> items = (Item("video7", Path("video7.mp4")),)
            >>> captions = (Caption("a dog", 0), Caption("a dog runs", 0))
            >>> Split("msrvtt", "test", "1k-A", items, captions, expected=1000).title()
            'MSR-VTT 1k-A test, 1 of 1000 videos, 2 captions'
            >>> Split("msrvtt", "test", "1k-A", items, captions, label="frame subset").title()
            'MSR-VTT frame subset (1)'
        """
        dataset = _TITLES.get(self.dataset, self.dataset)
        if self.label is not None:
            name = "" if self.name == "test" else f" {self.name}"
            return f"{dataset} {self.label}{name} ({len(self.items)})"
        there, full = len(self.items), self.expected
        if full is None:
            full = there + len(self.missing)
        count = f"{there}" if there >= full else f"{there} of {full}"
        kind = "photos" if self.dataset == "flickr8k" else "videos"
        captions = f"{len(self.captions)} captions"
        return f"{dataset} {self.protocol} {self.name}, {count} {kind}, {captions}"

    def summary(self) -> str:
        """The title, and what of the split was not there."""
        line = self.title()
        if self.missing:
            count, first = len(self.missing), self.missing[0]
            line += f"; {count} without a video or a caption, such as {first}"
        if self.dropped:
            line += f"; {self.dropped} empty captions left out"
        return line

    def by_video(self) -> list[list[int]]:
        """The rows of the captions of each item."""
        rows: list[list[int]] = [[] for _ in self.items]
        for row, caption in enumerate(self.captions):
            rows[caption.video].append(row)
        return rows

    def texts(self) -> list[str]:
        """The text of each caption."""
        return [caption.text for caption in self.captions]

    def owner(self) -> Int64[np.ndarray, " captions"]:
        """The index of the video of each caption."""
        return np.array([caption.video for caption in self.captions], np.int64)

    def digest(self) -> str:
        """12 letters that change with the ids or the captions."""
        content = [item.id for item in self.items], self.texts(), self.owner().tolist()
        return hashlib.sha256(repr(content).encode()).hexdigest()[:12]

    def part(self, ids: Collection[str]) -> "Split":
        """The same split with these videos only, in the order they have here.

        The ids may also name videos that are missing and so stay missing.
        """
        wanted = set(ids)
        unknown = wanted - {item.id for item in self.items} - set(self.missing)
        if unknown:
            names = listed(sorted(unknown), _NAMED)
            raise SureshotError(f"{self.title()} has no video {names}; take ids of its own items.")
        kept = [i for i, item in enumerate(self.items) if item.id in wanted]
        if not kept:
            raise SureshotError(f"No video of {self.title()} would be left; name some of its ids.")
        here = frozenset(kept)
        rows = [row for row, caption in enumerate(self.captions) if caption.video in here]
        missing = tuple(name for name in self.missing if name in wanted)
        return replace(self._of(kept, rows), missing=missing)

    def of_captions(self, rows: Sequence[int]) -> "Split":
        """The same split with these captions only; a video without one is left out."""
        return self._of(sorted({self.captions[row].video for row in rows}), rows)

    def _of(self, kept: Sequence[int], rows: Sequence[int]) -> "Split":
        """The same split with these videos and captions of them."""
        place = {old: new for new, old in enumerate(kept)}
        captions = (self.captions[row] for row in rows)
        return replace(
            self,
            items=tuple(self.items[video] for video in kept),
            captions=tuple(Caption(one.text, place[one.video]) for one in captions),
        )


def check_disjoint(train: Split, test: Split) -> None:
    """Refuse to train on a video that is tested on.

    Two splits of one data set share a video if they share its id; any two splits do if they share
    its file, links followed. In lists of one's own an id is only a path relative to the list, so
    there the file alone decides; two parts of one file count as shared.
    """
    ids_tell = train.dataset == test.dataset != "pairs"
    ids = {item.id for item in train.items} if ids_tell else set()
    files = {os.path.realpath(item.path): item.id for item in train.items}
    shared: list[str] = []
    for item in test.items:
        twin = files.get(os.path.realpath(item.path))
        if item.id in ids or twin == item.id:
            shared.append(item.id)
        elif twin is not None:
            shared.append(f"{item.id} (the same file as {twin})")
    if shared:
        raise SureshotError(
            f"{train.title()} and {test.title()} share {len(shared)} videos: "
            f"{listed(sorted(shared), _NAMED)}. A model must not be tested on what it learned "
            "from; take them out of one."
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """Ids and captions of a split."""

    protocol: str  # as the title of the split shows it
    captions: dict[str, list[str]]  # by id; none where the annotation has none
    expected: int | None = None
    # Other spellings of an id, as a file name and in a list of ids.
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    span: tuple[float, float] | None = None  # seconds of each video that count, if not all
    photos: bool = False  # the videos are pictures

    def only(self, path: Path) -> "Listing":
        """The videos that a file of ids names, one a line, in the order they have here."""
        named = {one: others for one, others in self.names.items() if one in self.captions}
        spelled = {other: name for name, others in named.items() for other in others}
        spelled |= {name: name for name in self.captions}
        wanted = read_lines(path)
        unknown = [name for name in wanted if name not in spelled]
        if unknown:
            raise SureshotError(
                f"{path} names {len(unknown)} of {len(wanted)} videos that are not in this split, "
                f"the first {unknown[0]}; it must name videos of the split asked for."
            )
        if not wanted:
            raise SureshotError(f"{path} is empty; it must name one video a line.")
        kept = {spelled[name] for name in wanted}
        return replace(self, captions={k: v for k, v in self.captions.items() if k in kept})


def to_split(
    listing: Listing, dataset: str, name: str, folders: Sequence[Path], label: str | None = None
) -> Split:
    """The split of a listing, each video from the first of the folders that has it."""
    if not listing.captions:
        raise SureshotError(f"The annotation of {dataset} {name} lists no video; is it complete?")
    names = {one: listing.names.get(one, ()) for one in listing.captions}
    paths = media.find_videos(folders, names, photos=listing.photos)
    start, end = listing.span or (None, None)
    items: list[Item] = []
    captions: list[Caption] = []
    missing: list[str] = []
    dropped = 0
    for one, texts in listing.captions.items():
        kept = [text.strip() for text in texts if text.strip()]
        if one in paths:
            dropped += len(texts) - len(kept)
        if one not in paths or not kept:
            missing.append(one)
            continue
        if listing.span and is_folder_at(paths[one]):
            raise SureshotError(
                f"{paths[one]} is a folder of frames, which does not say how many were taken a "
                f"second, and of {dataset} only {start:g} to {end:g} s count; make a video of it "
                "(ffmpeg -framerate R)."
            )
        captions += [Caption(text, len(items)) for text in kept]
        items.append(Item(id=one, path=paths[one], start=start, end=end))
    if not items:
        raise SureshotError(
            f"None of the {len(paths)} videos found for {dataset} {name} has a caption; the "
            "annotation and the videos are of different splits."
        )
    return Split(
        dataset=dataset,
        name=name,
        protocol=listing.protocol,
        items=tuple(items),
        captions=tuple(captions),
        missing=tuple(missing),
        expected=listing.expected,
        dropped=dropped,
        label=label,
    )
