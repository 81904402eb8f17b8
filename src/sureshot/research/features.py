"""What an encoder sees of a whole split, computed once and kept on disk.

Training a head on a frozen encoder reads the same features hundreds of times, so they are encoded
once. The cache is a folder of small files, each named after what went into it: a run that is
stopped goes on where it was, two runs share their work, and nothing in it can be out of date.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt8
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from sureshot.datasets.split import Item, Split
from sureshot.errors import SureshotError, VideoError
from sureshot.files import replace_file, sampled_digest
from sureshot.media.ahead import Ahead
from sureshot.media.discover import frame_files
from sureshot.media.sampling import sample_frames
from sureshot.media.video import unreadable
from sureshot.models.encoders.experts import Experts, ExpertSizes, pack
from sureshot.models.encoders.protocol import (
    Encoder,
    FrameFeatures,
    TextFeatures,
    VideoFeatures,
    stack,
)
from sureshot.models.mean_frames import pool_grid
from sureshot.places import cache_dir

_VIDEOS, _TEXTS = 64, 2048  # in one file of the cache: what a stopped run loses at most
_AHEAD = 16  # videos decoded before the encoder asks for them
_BATCH = 32  # frames encoded at once

# Sentence at the length the encoder gives it, and words of a caption: any number of them.
Text = tuple[Shaped[np.ndarray, " dim"], Shaped[np.ndarray, "_ dim"]]
Told = Callable[[str, int, int], None]  # what is being done, how many are done, of how many


@dataclass(frozen=True, slots=True)
class SplitFeatures:
    """The features of a split whose every video could be read.

    Attributes:
        split: the videos that could be read and their captions.
        encoder: name of the encoder.
        fingerprint: of the encoder.
        frames: most frames a video was sampled at.
        videos: one value a video, in the order of ``split.items``, 16-bit.
        texts: sentence vector and word tokens of each caption, in the order of ``split.captions``.
        unreadable: id and reason of each video left out.
        experts: what was extracted of videos beforehand, by the id of the video.
    """

    split: Split
    encoder: str
    fingerprint: str
    frames: int
    videos: Sequence[FrameFeatures]
    texts: Sequence[Text]
    unreadable: tuple[tuple[str, str], ...] = ()
    experts: Mapping[str, Experts] = field(default_factory=dict)

    def video_batch(self, rows: Sequence[int], experts: ExpertSizes = ()) -> VideoFeatures:
        """The videos of these rows, padded to the longest of them, with these experts."""
        seen = stack([self.videos[row] for row in rows])
        own = [self.experts.get(self.split.items[row].id, {}) for row in rows]
        packed, which = pack(own, experts)
        return replace(seen, experts=packed, which=which)

    def text_batch(self, rows: Sequence[int]) -> TextFeatures:
        """The captions of these rows, padded to the longest; sentences at their own length."""
        chosen = [self.texts[row] for row in rows]
        longest = max(len(words) for _, words in chosen)
        padded = np.zeros((len(chosen), longest, chosen[0][1].shape[1]), np.float32)
        for row, (_, words) in zip(padded, chosen, strict=True):
            row[: len(words)] = words
        lengths = np.array([len(words) for _, words in chosen])
        return TextFeatures(
            sentence=np.stack([sentence for sentence, _ in chosen]).astype(np.float32),
            words=padded,
            mask=np.arange(longest) < lengths[:, None],
            truncated=np.zeros(len(chosen), bool),
        )


def extract(
    split: Split,
    encoder: Encoder,
    *,
    frames: int = 12,
    cache: Path | None = None,
    told: Told | None = None,
) -> SplitFeatures:
    """Features of a split, from the cache where they are there.

    Args:
        split: what to encode. A video that cannot be read is left out, with its captions.
        encoder: what encodes it.
        frames: frames sampled uniformly from each video; a shorter one keeps all it has.
        cache: folder of the cache; None is one in the user's cache folder.
        told: called with "videos" or "captions", how many are done and how many there are.

    Raises:
        SureshotError: no video of the split can be read, or a feature is not finite.
    """
    folder = _folder(cache, encoder, str(frames))
    told = told or (lambda what, done, total: None)
    # In an order of their own, so that the files of the cache serve any reader of the same data.
    stamps = [_stamp(item) for item in split.items]
    order = sorted(range(len(stamps)), key=stamps.__getitem__)
    found: dict[int, FrameFeatures] = {}
    failed: dict[int, str] = {}
    for first in range(0, len(order), _VIDEOS):
        rows = order[first : first + _VIDEOS]
        path = folder / f"videos-{_digest([stamps[row] for row in rows])}.safetensors"
        read, broken = _video_chunk([split.items[row] for row in rows], encoder, frames, path)
        found |= {rows[place]: features for place, features in read.items()}
        failed |= {rows[place]: reason for place, reason in broken.items()}
        told("videos", first + len(rows), len(order))
    kept = [item.id for row, item in enumerate(split.items) if row not in failed]
    if not kept:
        some = next(iter(failed.values()), "there is none")
        raise SureshotError(f"No video of {split.title()} can be read: {some}.")
    unread = tuple((split.items[row].id, failed[row]) for row in sorted(failed))
    whole = split
    if failed:
        # What is left must not pass for the whole, in its title or elsewhere.
        full = len(split.items) + len(split.missing)
        whole = replace(split.part({*kept, *split.missing}), expected=split.expected or full)
    return SplitFeatures(
        whole,
        encoder.name,
        encoder.fingerprint,
        frames,
        [found[row] for row in sorted(found)],
        _texts(whole.texts(), encoder, cache, told),
        unread,
    )


def caption_features(split: Split, encoder: Encoder, *, cache: Path | None = None) -> SplitFeatures:
    """Features of the captions of a split alone; it gets no videos."""
    encoded = _texts(split.texts(), encoder, cache, lambda what, done, total: None)
    return SplitFeatures(split, encoder.name, encoder.fingerprint, 0, [], encoded)


def _video_chunk(
    items: Sequence[Item], encoder: Encoder, frames: int, path: Path
) -> tuple[dict[int, FrameFeatures], dict[int, str]]:
    """By row: features of those items that can be read, and why the others cannot."""
    stored = _load(path)
    if stored is None:
        stored, final = _encode_chunk(items, encoder, frames)
        if final:
            _save(path, stored)
    failed = {int(row): why for row, why in json.loads(stored["failed"].tobytes()).items()}
    ends = np.cumsum(stored["lengths"])[:-1]
    names = ("frames", "patches", "backbone")
    parts = zip(*(np.split(stored[name], ends) for name in names), strict=True)
    rows = [row for row in range(len(items)) if row not in failed]
    return dict(zip(rows, (FrameFeatures(*part) for part in parts if rows), strict=False)), failed


def _encode_chunk(
    items: Sequence[Item], encoder: Encoder, frames: int
) -> tuple[dict[str, Shaped[np.ndarray, "..."]], bool]:
    """What a file of the cache holds, and whether it will be the same next time."""
    prepared: dict[int, Shaped[np.ndarray, "frames 3 rows columns"]] = {}
    failed: dict[int, str] = {}
    transient = False
    done: dict[int, FrameFeatures] = {}

    def flush(least: int) -> None:
        for shape in {array.shape[1:] for array in prepared.values()}:
            rows = [row for row, array in prepared.items() if array.shape[1:] == shape]
            if sum(len(prepared[row]) for row in rows) >= least:
                joined = encoder.encode_frames(np.concatenate([prepared[row] for row in rows]))
                ends = np.cumsum([len(prepared.pop(row)) for row in rows])[:-1]
                done.update(zip(rows, _parted(joined, ends), strict=True))

    with Ahead(partial(_decode, encoder=encoder, frames=frames)) as decoded:
        for row, item in enumerate(items):
            decoded.want(items[row : row + _AHEAD])
            outcome = decoded.get(item)
            if isinstance(outcome, VideoError):
                failed[row] = str(outcome)
                transient |= outcome.transient
            else:
                prepared[row] = outcome
                flush(_BATCH)
        flush(1)
    kept = [done[row] for row in sorted(done)]
    _check_finite(items, sorted(done), kept)
    empty = np.zeros((0, 0), np.float16)
    return {
        "frames": np.concatenate([k.frames for k in kept]) if kept else empty,
        "patches": np.concatenate([k.patches for k in kept]) if kept else empty,
        "backbone": np.concatenate([k.backbone for k in kept]) if kept else empty,
        "lengths": np.array([len(k.frames) for k in kept], np.int64),
        "failed": np.frombuffer(json.dumps(failed).encode(), np.uint8),
    }, not transient


def _parted(joined: FrameFeatures, ends: Shaped[np.ndarray, " n"]) -> list[FrameFeatures]:
    """The features of each video, 16-bit, their patches on the grid of an index."""
    arrays = (joined.frames, pool_grid(joined.patches), joined.backbone)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        parts = [np.split(array.astype(np.float16), ends) for array in arrays]
    return [FrameFeatures(*part) for part in zip(*parts, strict=True)]


def _check_finite(
    items: Sequence[Item], rows: Sequence[int], features: Sequence[FrameFeatures]
) -> None:
    for row, value in zip(rows, features, strict=True):
        if not all(np.isfinite(a).all() for a in (value.frames, value.patches, value.backbone)):
            raise SureshotError(
                f"The encoder gives a number that is not finite, or too large for 16 bits, for the "
                f"video {items[row].id} ({items[row].path}); leave it out, or check the model's "
                f"weights."
            )


def _decode(
    item: Item, encoder: Encoder, frames: int
) -> Shaped[np.ndarray, "frames 3 rows columns"] | VideoError:
    """Prepared frames of an item, or why there are none."""
    try:
        return encoder.prepare(sampled_frames(item, frames, encoder.frame_side))
    except VideoError as error:
        return error
    except OSError as error:
        return unreadable(error)


def sampled_frames(
    item: Item, frames: int, side: int
) -> UInt8[np.ndarray, "frames height width 3"]:
    """RGB frames sampled uniformly from an item, see `sureshot.media.sampling.sample_frames`."""
    return sample_frames(item.path, frames, side, start=item.start, end=item.end)


def _texts(texts: Sequence[str], encoder: Encoder, cache: Path | None, told: Told) -> list[Text]:
    """Sentence and words of each text; equal ones are encoded once."""
    folder = _folder(cache, encoder, "captions")
    encoded: dict[str, Text] = {}
    different = sorted(set(texts))
    for first in range(0, len(different), _TEXTS):
        part = different[first : first + _TEXTS]
        encoded.update(zip(part, _text_chunk(part, encoder, folder), strict=True))
        told("captions", first + len(part), len(different))
    return [encoded[text] for text in texts]


def _text_chunk(texts: Sequence[str], encoder: Encoder, folder: Path) -> list[Text]:
    path = folder / f"texts-{_digest(texts)}.safetensors"
    stored = _load(path)
    if stored is None:
        features = encoder.encode_texts(texts)
        sentence = features.sentence
        if features.length is not None:
            sentence = sentence * features.length[:, None]
        stored = {
            "sentence": sentence.astype(np.float16),
            "words": features.words[features.mask].astype(np.float16),
            "lengths": features.mask.sum(1),
        }
        if not all(np.isfinite(stored[name]).all() for name in ("sentence", "words")):
            raise SureshotError(f"The encoder {encoder.name!r} gives a number that is not finite.")
        _save(path, stored)
    words = np.split(stored["words"], np.cumsum(stored["lengths"])[:-1])
    return list(zip(stored["sentence"], words, strict=True))


def _folder(cache: Path | None, encoder: Encoder, of: str) -> Path:
    return (cache or cache_dir() / "features") / f"{encoder.fingerprint[:16]}-{of}"


def _stamp(item: Item) -> str:
    """What tells one state of an item from another; its folder may move, its times may change."""
    try:
        files = frame_files(item.path) if item.path.is_dir() else [item.path]
        content = _digest([sampled_digest(file) for file in files])
    except OSError:
        content = "unreadable"
    return f"{item.path.name} {content} {item.start} {item.end}"


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(encoded)} ".encode() + encoded)
    return digest.hexdigest()[:32]


def _load(path: Path) -> dict[str, Shaped[np.ndarray, "..."]] | None:
    """A file of the cache; None if it is not there or was damaged."""
    with contextlib.suppress(OSError, SafetensorError):
        return load_file(path)
    return None


def _save(path: Path, arrays: dict[str, Shaped[np.ndarray, "..."]]) -> None:
    """Write in one step; a full disk is the user's to know of."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as fresh:
            save_file(arrays, fresh)
    except (OSError, SafetensorError) as error:
        raise SureshotError(
            f"The features cannot be kept in {path.parent}: {error}. Free some space, or name "
            f"another folder."
        ) from None
