"""What an encoder sees of a whole split, computed once and kept on disk.

Training a head on a frozen encoder reads the same features hundreds of times, so they are encoded
once. They are cached per video and per caption under what went into them: the content of a file
and the part of it that counts, the encoder, the number of frames. So a run that is stopped goes on
where it was, a subset of what was encoded is only read, runs share their work, and nothing in the
cache can be out of date.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Shaped
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from sureshot.datasets.annotation import read_pickle
from sureshot.datasets.split import Item, Split
from sureshot.errors import SureshotError, VideoError
from sureshot.files import replace_file, replace_folder, sampled_digest
from sureshot.media.discover import frame_files
from sureshot.media.sampling import sample_frames
from sureshot.media.sampling_rule import Sampling
from sureshot.media.signature import FrameSize
from sureshot.media.video import unreadable
from sureshot.media.workers import Prefetcher
from sureshot.models.encoders.base import (
    Cells,
    Encoder,
    FrameFeatures,
    Images,
    Prepared,
    TextFeatures,
    VideoFeatures,
    encode_together,
    padded,
    stack,
    with_cells,
)
from sureshot.models.encoders.experts import (
    Experts,
    ExpertSizes,
    checked_rows,
    file_stems,
    pack,
    starts_with_nan,
)
from sureshot.paths import cache_dir, expand
from sureshot.progress import Progress, Silent
from sureshot.settings import parse_json

_T = TypeVar("_T")


class _Transient(str):
    """Why a video has no features, for now."""


# The arrays of one key by name, each with its rows first; or why there are none and never will be.
CachedFeatures = Mapping[str, Shaped[np.ndarray, "..."]] | str

_PREFIX, _SUFFIX = "shard-", ".safetensors"
_HEADER = "entries"  # in the metadata: {key: rows of each array, or the reason}, in their order
_BROKEN = (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError)
_DENSE = 4  # a shard is read whole if at least one key in so many is wanted


class FeatureCache:
    """A folder of shards, which is made when the first shard is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(
        self,
        what: str,
        inputs: Mapping[str, _T],
        size: int,
        encode: Callable[[Mapping[str, _T]], dict[str, CachedFeatures]],
        progress: Progress,
        unread: Collection[str] = (),
    ) -> dict[str, Any]:
        """The entries of all keys; those that no shard has are encoded, and kept for good.

        A stopped run loses a shard, of ``size`` entries, at most; arrays that are ``unread`` stay
        on the disk.
        """
        entries = self.read(inputs, unread)
        unknown = [key for key in inputs if key not in entries]
        if len(unknown) < len(inputs):
            progress.update(what, len(entries), len(inputs))
        for first in range(0, len(unknown), size):
            encoded = encode({key: inputs[key] for key in unknown[first : first + size]})
            self.write({k: one for k, one in encoded.items() if not isinstance(one, _Transient)})
            for key, one in encoded.items():
                kept = one if isinstance(one, str) else {n: one[n] for n in one if n not in unread}
                entries[key] = kept
            progress.update(what, len(entries), len(inputs))
        return entries

    def read(
        self, keys: Collection[str], unread: Collection[str] = ()
    ) -> dict[str, CachedFeatures]:
        """The entries of those keys that some shard has; a shard that is damaged has none."""
        wanted = set(keys)
        entries: dict[str, CachedFeatures] = {}
        for path in sorted(self.folder.glob(f"{_PREFIX}*{_SUFFIX}")):
            if not wanted:
                break
            with contextlib.suppress(*_BROKEN):
                entries.update(_read_shard(path, wanted, unread))
                wanted -= entries.keys()
        return entries

    def write(self, entries: Mapping[str, CachedFeatures]) -> None:
        """Add a shard with these entries, which have arrays of the same names and row shapes."""
        arrays = [entry for entry in entries.values() if not isinstance(entry, str)]
        names = list(arrays[0]) if arrays else []
        joined = {name: np.concatenate([entry[name] for entry in arrays]) for name in names}
        header = {
            key: entry if isinstance(entry, str) else [len(entry[name]) for name in names]
            for key, entry in entries.items()
        }
        digest = hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()[:32]
        metadata = {_HEADER: json.dumps({"arrays": names, "rows": header})}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replace_file(self.folder / f"{_PREFIX}{digest}{_SUFFIX}") as fresh:
                save_file(joined, fresh, metadata)
        except (OSError, SafetensorError) as error:
            raise SureshotError(
                f"The features cannot be kept in {self.folder}: {error}. Free some space, or name "
                f"another folder."
            ) from None


def _read_shard(
    path: Path, keys: Collection[str], unread: Collection[str]
) -> Iterator[tuple[str, CachedFeatures]]:
    with safe_open(path, framework="numpy") as file:
        header = parse_json(file.metadata()[_HEADER])
        names, rows = header["arrays"], header["rows"]
        here = keys & rows.keys()
        dense = len(here) * _DENSE >= len(rows)
        arrays = {
            name: file.get_tensor(name) if dense else file.get_slice(name)
            for name in names
            if here and name not in unread
        }
        begin = dict.fromkeys(names, 0)
        for key, counts in rows.items():
            if isinstance(counts, str):
                if key in keys:
                    yield key, counts
                continue
            ends = {name: begin[name] + count for name, count in zip(names, counts, strict=True)}
            if key in keys:
                yield key, {name: arrays[name][begin[name] : ends[name]] for name in arrays}
            begin = ends


class FrameMemory:
    """Frames of videos as one encoder prepares them, sampled by one rule; the same in all epochs.

    They are kept in so much ``room`` of memory, and in a ``folder`` for other runs.
    """

    def __init__(self, room: int = 512 * 2**20, folder: Path | None = None) -> None:
        self._room, self._folder = room, folder
        self._kept: dict[Item, Prepared] = {}

    def prepared(
        self, item: Item, encoder: Encoder, read: Callable[[], Images]
    ) -> Prepared | VideoError:
        """The frames of a video, kept or read and prepared now; or why there are none."""
        if (known := self._kept.get(item)) is not None:
            return known
        path, frames = None, None
        if self._folder is not None:
            key = item_key(item)
            path = self._folder / key[:2] / f"{key[2:]}{_SUFFIX}"
            # A file that is not there, or damaged, holds nothing.
            with contextlib.suppress(*_BROKEN):
                frames = load_file(path)["frames"]
        if frames is None:
            try:
                frames = encoder.prepare(read())
            except VideoError as error:
                return error
            except OSError as error:
                return unreadable(error)
            if path is not None:
                self._write(path, frames)
        if item not in self._kept and frames.nbytes <= self._room:
            self._room -= frames.nbytes
            self._kept[item] = frames
        return frames

    def holds(self, videos: int) -> bool:
        """Whether there is room for so many videos like those that are kept; not if none are."""
        kept = sum(frames.nbytes for frames in self._kept.values())
        return bool(kept) and videos * kept <= len(self._kept) * (self._room + kept)

    def _write(self, path: Path, frames: Prepared) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as fresh:
                save_file({"frames": frames}, fresh)
        except (OSError, SafetensorError) as error:
            raise SureshotError(
                f"Prepared frames cannot be kept in {self._folder}: {error}. Free some space."
            ) from None


def frame_memory(encoder: Encoder, frames: int, sampling: Sampling, room: int = 0) -> FrameMemory:
    """Where frames are kept: for all runs if preparing them is most of an encoder's network."""
    prepared_by = getattr(encoder, "prepared_by", None)
    if prepared_by is None:
        return FrameMemory(room)
    named = f"{prepared_by[:16]}-{_sampled(frames, sampling)}-as-prepared"
    return FrameMemory(folder=cache_dir() / "features" / named)


def _sampled(frames: int, sampling: Sampling) -> str:
    """Name of a way to sample frames."""
    if sampling == Sampling():
        return str(frames)
    fps = "" if sampling.fps is None else f"-{sampling.fps:g}fps"
    return f"{frames}-{sampling.kind}{fps}"


_VIDEOS, _TEXTS = 64, 2048  # in one shard of the cache
_AHEAD = 16  # videos decoded before the encoder asks for them
_BATCH = 32  # frames encoded at once
_ARRAYS = ("frames", "patches", "backbone", "sentence", "words")  # of videos and captions

# Sentence at the length the encoder gives it, and words of a caption: any number of them.
Text = tuple[Shaped[np.ndarray, " dim"], Shaped[np.ndarray, "_ dim"]]


@dataclass(frozen=True, slots=True)
class SplitFeatures:
    """The features of a split, 16-bit, of each item and of each caption."""

    split: Split  # the videos that could be read and their captions
    frames: int  # most that a video was sampled at
    videos: Sequence[FrameFeatures]
    texts: Sequence[Text]
    unreadable: tuple[tuple[str, str], ...] = ()  # id and reason of each video left out
    sampling: Sampling = field(default_factory=Sampling)
    experts: Mapping[str, Experts] = field(default_factory=dict)  # by the id of the video

    def video_batch(self, rows: Sequence[int], experts: ExpertSizes = ()) -> VideoFeatures:
        """The videos of these rows, see `padded_videos`."""
        own = [self.experts.get(self.split.items[row].id, {}) for row in rows]
        return padded_videos([self.videos[row] for row in rows], own, experts)

    def text_batch(self, rows: Sequence[int]) -> TextFeatures:
        """The captions of these rows, see `padded_texts`."""
        return padded_texts([self.texts[row] for row in rows])

    def stand_in(self, split: Split, experts: Mapping[str, Experts]) -> "SplitFeatures":
        """These in turn as the features of a split that has not been encoded, to measure time."""
        videos = [self.videos[row % len(self.videos)] for row in range(len(split.items))]
        texts = [self.texts[row % len(self.texts)] for row in range(len(split.captions))]
        return replace(self, split=split, videos=videos, texts=texts, experts=experts)


def padded_videos(
    videos: Sequence[FrameFeatures], own: Sequence[Experts], experts: ExpertSizes
) -> VideoFeatures:
    """Videos padded to the longest of them, with these experts."""
    packed, which = pack(own, experts)
    return replace(stack(videos), experts=packed, which=which)


def padded_texts(texts: Sequence[Text]) -> TextFeatures:
    """Texts padded to the longest; sentences at their own length."""
    words, mask = padded([words for _, words in texts])
    return TextFeatures(
        sentence=np.stack([sentence for sentence, _ in texts]).astype(np.float32),
        words=words,
        mask=mask,
        truncated=np.zeros(len(texts), bool),
    )


def extract(
    split: Split,
    encoder: Encoder,
    *,
    frames: int = 12,
    sampling: Sampling | None = None,
    cells: Cells = "coarse",
    cache: str | Path | None = None,
    progress: Progress | None = None,
    memory: FrameMemory | None = None,
) -> SplitFeatures:
    """Features of a split, from the cache where they are there.

    Args:
        split: what to encode. A video that cannot be read is left out, with its captions.
        frames: frames sampled from each video; a shorter one keeps all it has.
        sampling: which frames; None is uniformly. One that draws gives those of its first draw.
        cells: which patches of a frame are read; without them they stay on the disk, as they are
            most of what a frame has.
        cache: folder of the cache; None is one in the user's cache folder.
        memory: prepared frames, for encoding the same videos repeatedly while the encoder learns.
    """
    progress = progress or Silent()
    rule = sampling or Sampling()
    keys = [item_key(item) if encoder.channels else item.id for item in split.items]
    kept = memory or frame_memory(encoder, frames, rule)
    videos = _VideoEncoder(encoder, frames, rule, cells, kept)
    wanted = dict(zip(keys, split.items, strict=True))
    place = _videos_cache(cache, encoder, frames=frames, sampling=rule, cells=cells)
    if encoder.channels:
        unread = ("patches",) if cells == "none" else ()
        entries = place.fill("videos encoded", wanted, _VIDEOS, videos.encode, progress, unread)
    else:  # it reads texts alone, so no video is opened
        nothing = encoder.encode_frames(np.zeros((1, 3, 1, 1), np.uint8))
        entries = {key: videos.arrays(item, nothing) for key, item in wanted.items()}
    found = [(item, entries[key]) for item, key in zip(split.items, keys, strict=True)]
    failed = tuple((item.id, entry) for item, entry in found if isinstance(entry, str))
    read = [(item.id, _seen(entry)) for item, entry in found if not isinstance(entry, str)]
    if not read:
        some = failed[0][1] if failed else "there is none"
        raise SureshotError(f"No video of {split.title()} can be read: {some}.")
    whole = split
    if failed:
        # What is left must not pass for the whole, in its title or elsewhere.
        full, ids = len(split.items) + len(split.missing), {name for name, _ in read}
        whole = replace(split.part({*ids, *split.missing}), expected=split.expected or full)
    return SplitFeatures(
        split=whole,
        frames=frames,
        videos=[seen for _, seen in read],
        texts=_texts(whole.texts(), encoder, cache, progress),
        unreadable=failed,
        sampling=rule,
    )


def uncached(split: Split, encoder: Encoder, cache: str | Path | None, **how: Any) -> int:
    """Videos of a split of which, or of whose captions, the cache lacks something for `extract`."""
    keys = [item_key(item) for item in split.items] if encoder.channels else []
    texts = [_digest([text]) for text in split.texts()]
    seen = _videos_cache(cache, encoder, **how).read(keys, _ARRAYS)
    said = _cache(cache, encoder, "captions").read(texts, _ARRAYS)
    lacking = {row for row, key in enumerate(keys) if key not in seen}
    failed = {row for row, key in enumerate(keys) if isinstance(seen.get(key), str)}
    spoken = zip(split.captions, texts, strict=True)
    return len(lacking | {one.video for one, key in spoken if key not in said} - failed)


def _seen(arrays: Mapping[str, np.ndarray]) -> FrameFeatures:
    """Features of a video, without patches where they were not read."""
    count, dim = arrays["frames"].shape
    return FrameFeatures(**{"patches": np.zeros((count, 0, dim), np.float16), **arrays})


def caption_features(split: Split, encoder: Encoder, *, cache: str | Path | None) -> SplitFeatures:
    """Features of the captions of a split alone; it gets no videos."""
    texts = _texts(split.texts(), encoder, cache, Silent())
    return SplitFeatures(split, frames=0, videos=[], texts=texts)


@dataclass(frozen=True, slots=True)
class _VideoEncoder:
    """Decodes and encodes videos; arguments as of `extract`."""

    encoder: Encoder
    frames: int
    sampling: Sampling
    cells: Cells
    memory: FrameMemory

    def encode(self, items: Mapping[str, Item]) -> dict[str, CachedFeatures]:
        """The entry of each item by its key."""
        prepared: dict[str, Prepared] = {}
        entries: dict[str, CachedFeatures] = {}

        def flush(least: int) -> None:
            for shape in {array.shape[1:] for array in prepared.values()}:
                keys = [key for key, array in prepared.items() if array.shape[1:] == shape]
                if sum(len(prepared[key]) for key in keys) >= least:
                    encoded = encode_together(self.encoder, [prepared.pop(key) for key in keys])
                    for key, features in zip(keys, encoded, strict=True):
                        entries[key] = self.arrays(items[key], features)

        with Prefetcher(self._decode) as decoded:
            order = list(items.values())
            for place, (key, item) in enumerate(items.items()):
                decoded.want(order[place : place + _AHEAD])
                frames = decoded.get(item)
                if isinstance(frames, VideoError):
                    entries[key] = (_Transient if frames.transient else str)(frames)
                    continue
                prepared[key] = frames
                flush(_BATCH)
            flush(1)
        return entries

    def arrays(self, item: Item, features: FrameFeatures) -> dict[str, Shaped[np.ndarray, "..."]]:
        """The features of a video, 16-bit, their patches on a coarse grid unless whole."""
        # Without cells the coarse grid is kept all the same, for others who read it.
        pooled = with_cells(features, "whole" if self.cells == "whole" else "coarse")
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            arrays = {f.name: getattr(pooled, f.name).astype(np.float16) for f in fields(pooled)}
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise SureshotError(
                f"The encoder gives a number that is not finite, or too large for 16 bits, for the "
                f"video {item.id} ({item.path}); leave it out, or check the model's weights."
            )
        return arrays

    def _decode(self, item: Item) -> Prepared | VideoError:
        size = self.encoder.frame_size
        read = partial(sampled_frames, item, self.frames, size, self.sampling)
        return self.memory.prepared(item, self.encoder, read)


def sampled_frames(
    item: Item,
    frames: int,
    size: FrameSize,
    sampling: Sampling | None = None,
    draw: np.random.Generator | None = None,
) -> Images:
    """RGB frames of an item, see `sureshot.media.sampling.sample_frames`."""
    return sample_frames(
        item.path, frames, size, start=item.start, end=item.end, sampling=sampling, draw=draw
    )


def _texts(
    texts: Sequence[str], encoder: Encoder, folder: str | Path | None, progress: Progress
) -> list[Text]:
    """Sentence at its own length and words of each text, 16-bit; equal ones are encoded once."""

    def encode(unknown: Mapping[str, str]) -> dict[str, CachedFeatures]:
        features = encoder.encode_texts(list(unknown.values()))
        length = 1.0 if features.length is None else features.length[:, None]
        with np.errstate(over="ignore"):
            sentences = (features.sentence * length).astype(np.float16)
            words = features.words.astype(np.float16)
        if not np.isfinite(sentences).all() or not np.isfinite(words[features.mask]).all():
            raise SureshotError(f"The encoder {encoder.name!r} gives a number that is not finite.")
        parts = zip(unknown, sentences[:, None], words, features.mask, strict=True)
        return {key: {"sentence": one, "words": rows[real]} for key, one, rows, real in parts}

    wanted = {_digest([text]): text for text in sorted(set(texts))}
    cache = _cache(folder, encoder, "captions")
    entries = cache.fill("captions encoded", wanted, _TEXTS, encode, progress)
    by_text = {text: entries[key] for key, text in wanted.items()}
    found = (by_text[text] for text in texts)
    return [(entry["sentence"][0], entry["words"]) for entry in found]


def _videos_cache(
    folder: str | Path | None, encoder: Encoder, *, frames: int, sampling: Sampling, cells: Cells
) -> FeatureCache:
    patches = "-patches" if cells == "whole" else ""
    return _cache(folder, encoder, f"{_sampled(frames, sampling)}{patches}")


def _cache(folder: str | Path | None, encoder: Encoder, of: str) -> FeatureCache:
    place = cache_dir() / "features" if folder is None else expand(folder)
    return FeatureCache(place / f"{encoder.fingerprint[:16]}-{of}")


def item_key(item: Item) -> str:
    """Digest of an item's name, content and times; its folder may move."""
    try:
        files = frame_files(item.path) if item.path.is_dir() else [item.path]
        content = _digest([sampled_digest(file) for file in files])
    except OSError:
        content = os.urandom(16).hex()  # nothing is known of it, so nothing is found under it
    return _digest([item.path.name, content, f"{item.start} {item.end}"])


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(encoded)} ".encode() + encoded)
    return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class ConvertedExpert:
    """What a pickle became.

    Attributes:
        name: name of the expert.
        folder: where its files are, one per video.
        videos: number of videos that have it.
        lacking: number of videos in the pickle that lack it.
    """

    name: str
    folder: Path
    videos: int
    lacking: int


def convert_pickle(path: Path, folder: Path, name: str | None = None) -> ConvertedExpert:
    """Write the features of a pickle as an expert of a folder; all of it, or nothing.

    Such a pickle is a dictionary from the ids of all videos to an array of one row or of one per
    moment, a list of rows, or a lone NaN where the video lacks the expert. It must fit into memory,
    and nothing in it is run.
    """
    name = path.stem if name is None else name
    place = folder / name
    if place.parent != folder or name == "..":
        raise SureshotError(f"An expert cannot be called {name!r}; give it the name of a folder.")
    if place.exists():
        raise SureshotError(f"{folder} has an expert {name} already; choose another name.")
    fix = "fetch it again from where it was published, or extract them again"
    features = read_pickle(path, "set of features", fix, arrays=True)
    if not isinstance(features, Mapping) or not features:
        raise SureshotError(f"{path} holds no dictionary from ids of videos to their features.")
    try:
        with replace_folder(place) as fresh:
            videos = _write_expert(features, fresh, name, path)
    except OSError as error:
        raise SureshotError(
            f"The expert cannot be kept in {folder}: {error.strerror or error}."
        ) from None
    return ConvertedExpert(name=name, folder=place, videos=videos, lacking=len(features) - videos)


def _write_expert(features: Mapping[Any, Any], folder: Path, name: str, source: Path) -> int:
    """One file for each video that has features; how many have."""
    written = 0
    for video, value in features.items():
        stem = file_stems(video)[-1] if isinstance(video, str) else ""
        if not stem:
            raise SureshotError(
                f"{source} has features of {video!r:.60}, which is no id of a video."
            )
        try:
            array = np.zeros(0) if value is None else np.asarray(value)
        except ValueError:
            raise SureshotError(
                f"{source} has rows of different lengths for the video {video}; they are no "
                "features."
            ) from None
        where = f"{source}, of the video {video},"
        rows = None if starts_with_nan(array) else checked_rows(array, name, where)
        if rows is None:
            continue
        path = folder / f"{stem}.npy"
        if path.exists():
            raise SureshotError(f"{source} has features of {video} under two spellings of its id.")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, rows)
        written += 1
    return written
