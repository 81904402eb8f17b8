"""A split of a benchmark as every system sees it: videos, captions, and what was not found.

Whatever file carries an id as its name, up to the extension, may be the video: the containers
people keep these data sets in are too many to list. Known extensions come first; what is known to
be something else (text, features, sound) is passed over, and pictures count only where the data
set is one of photos.
"""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from sureshot.datasets.annotation import read_lines
from sureshot.errors import SureshotError
from sureshot.media.discover import IMAGE_SUFFIXES, VIDEO_SUFFIXES, numbered_images
from sureshot.paths import is_folder_at
from sureshot.text import listed, plain

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
    paths = find_videos(folders, names, photos=listing.photos)
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


# Folders below the annotation that hold the videos in the layouts people share.
_USUAL = (
    "videos",
    "Videos",
    "video",
    "all",
    "MSRVTT_Videos",
    "MSVD_Videos",
    "YouTubeClips",
    "Charades_v1_480",
    "Charades_v1",
    "images",
    "Images",
    "frames",
)
# fmt: off
_NO_VIDEO = frozenset({
    ".txt", ".json", ".jsonl", ".csv", ".tsv", ".xml", ".yaml", ".yml", ".html", ".md", ".log",
    ".description", ".annotations",
    ".npy", ".npz", ".pt", ".pth", ".pkl", ".pickle", ".h5", ".hdf5", ".safetensors", ".parquet",
    ".wav", ".mp3", ".m4a", ".aac", ".flac", ".ogg", ".opus", ".srt", ".vtt", ".ass",
    ".md5", ".sha256", ".part", ".ytdl", ".tmp", ".zip", ".tar", ".gz", ".7z",
})
# fmt: on
_EXACT, _VIDEO, _FOLDER, _OTHER = range(4)  # what wins where one id has several; the lowest


def usual_folders(root: Path) -> list[Path]:
    """Where the videos of an annotation folder may be, the likeliest first, itself last."""
    return [root / name for name in _USUAL if is_folder_at(root / name)] + [root]


def find_videos(
    folders: Sequence[Path],
    names: Mapping[str, Sequence[str]],
    *,
    photos: bool = False,
) -> dict[str, Path]:
    """The video of each id, from the first folder that has it; ids without one are left out.

    Sub-folders are searched as well. What is named by the id wins over what is named by another
    spelling; a file whose name is the whole id over one that adds the extension of a video, that
    over a folder of frames; of two alike, the one nearer to the folder. Other extensions come after
    all of these, and count in the first folder with videos alone.

    Args:
        names: other spellings that the file of each id may have.
        photos: pictures count as videos of one frame.
    """
    owner = {other: name for name, others in names.items() for other in others}
    owner |= {name: name for name in names}
    found: dict[str, tuple[tuple[bool, int, bool, int], Path]] = {}
    seen: dict[tuple[int, int], bool] = {}
    refused: SureshotError | None = None
    for number, folder in enumerate(folders):
        begun = bool(found)  # what may be no video counts in the first folder with videos alone
        try:
            for spelling, kind, path in _matches(folder, owner.keys(), photos, seen):
                name = owner[spelling]
                rank = kind == _OTHER, number, spelling != name, kind
                if (name not in found or rank < found[name][0]) and not (begun and rank[0]):
                    found[name] = rank, path
        except SureshotError as error:
            refused = refused or error
        if len(found) == len(names) and not any(rank[0] for rank, _ in found.values()):
            break
    if found:
        return {name: path for name, (_, path) in found.items()}
    if refused:
        raise refused
    example = next(iter(names), "")
    looked = ", ".join(str(folder) for folder in folders)
    raise SureshotError(
        f"No {'photo' if photos else 'video'} of the {len(names)} wanted was found in {looked} or "
        f"below; looked for {plain(example)[:200]} with any extension or as a folder of numbered "
        "images. Name the right folder as videos."
    )


def _matches(
    top: Path, ids: Collection[str], photos: bool, seen: dict[tuple[int, int], bool]
) -> Iterator[tuple[str, int, Path]]:
    """Wanted names below a folder, what carries them, and where.

    ``seen`` are real folders that were read, each once, and whether they are of frames.
    """
    todo = [top]
    for folder in todo:
        try:
            stat = folder.stat()
            here = stat.st_dev, stat.st_ino
            entries = [] if here in seen else _listed(folder)
            if here not in seen:
                seen[here] = len(numbered_images(entry.name for entry in entries)) > 1
            if seen[here] and folder != top and folder.name in ids:
                yield folder.name, _FOLDER, folder
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                path = folder / entry.name
                if entry.is_dir():  # of frames too: a video may lie next to its thumbnails
                    todo.append(path)
                else:
                    yield from _file(entry, path, ids, photos)
        except OSError as error:
            if folder != top:
                continue  # a lost+found and its like; videos in it are counted as missing
            raise SureshotError(
                f"{folder} cannot be searched for videos: {error.strerror or error}."
            ) from None


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _file(
    entry: os.DirEntry[str], path: Path, ids: Collection[str], photos: bool
) -> Iterator[tuple[str, int, Path]]:
    """The wanted name that a file carries, if any."""
    stem, suffix = os.path.splitext(entry.name)  # noqa: PTH122 - a name, not a path
    suffix = suffix.lower()
    if suffix in _NO_VIDEO or (suffix in IMAGE_SUFFIXES) != photos:
        return
    name = entry.name if entry.name in ids else stem
    if name in ids and entry.is_file():  # a link that leads nowhere is no file
        known = photos or suffix in VIDEO_SUFFIXES
        yield name, _EXACT if name == entry.name else _VIDEO if known else _OTHER, path
