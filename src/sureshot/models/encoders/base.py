"""What an encoder gives: values with named, shaped fields, and the protocol that produces them.

Features are numpy arrays, not tensors: they are stored, cached and searched far more often than
they are differentiated, and a search must not wait for torch to import.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Shaped, UInt8
from tokenizers import Encoding

from sureshot.media.signature import FrameSize
from sureshot.text import EMPTY_WORDS

if TYPE_CHECKING:
    import torch

Images = UInt8[np.ndarray, "frames height width 3"]  # RGB, as decoded
Pixels = UInt8[np.ndarray, "frames 3 rows columns"]  # resized for a network


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The words that an encoder of texts knows, in small letters."""

    captions: Mapping[str, int]  # in how many of those that it learned from a word was
    # Whether its tokenizer has a word whole, as it has frequent words and names.
    is_token: Callable[[str], bool] = lambda word: False

    def share(self, text: str) -> float:
        """Log of the share of captions that have all words of a text, if words were independent.

        The most frequent word, such as "the", is in about a quarter of captions. Words that say
        nothing of a picture do not count.
        """
        every = 4 * max(self.captions.values(), default=1)
        words = seen_words(text.lower())
        return sum(math.log((self.captions.get(word, 0) + 1) / every) for word in words)


def seen_words(text: str) -> list[str]:
    """Words as they are counted in captions, without those that say nothing of a picture."""
    words = re.findall(r"[^\W\d_]{2,}", text)
    return [word for word in words if word.lower() not in EMPTY_WORDS]


def shares(
    vocabulary: Vocabulary | None, texts: Sequence[str]
) -> Float[np.ndarray, " texts"] | None:
    """`Vocabulary.share` of each text; None where the words are not known."""
    if vocabulary is None:
        return None
    return np.array([vocabulary.share(text) for text in texts], np.float64)


# Not Self, which beartype knows in whole classes only.
_Some = TypeVar("_Some", bound="_Rows")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Arrays that have a row for each of the same things."""

    def part(self: _Some, rows: slice | Sequence[int] | Int[np.ndarray, " chosen"]) -> _Some:
        """Some of them."""
        arrays: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{n: a[rows] for n, a in arrays.items() if a is not None})


@dataclass(frozen=True, slots=True)
class TextFeatures(_Rows):
    """Texts as an encoder sees them, in the space it shares with frames; padding is zero.

    ``length`` is that of each sentence vector before, on the scale of the words; None where unit
    length is its own.
    """

    sentence: Float[np.ndarray, "texts dim"]  # of unit length
    words: Float[np.ndarray, "texts words dim"]  # tokens, unscaled
    mask: Bool[np.ndarray, "texts words"]
    truncated: Bool[np.ndarray, " texts"]  # True where the end of a text was dropped
    length: Float[np.ndarray, " texts"] | None = None


@dataclass(frozen=True, slots=True)
class FrameFeatures(_Rows):
    """Frames as an encoder sees them, without padding: rows are frames of one or many videos.

    ``patches`` are the cells of each frame, row by row from the top left; maybe none.
    """

    frames: Float[np.ndarray, "frames dim"]  # in the space shared with texts, unscaled
    patches: Float[np.ndarray, "frames patches dim"]  # in the same space
    backbone: Float[np.ndarray, "frames channels"]  # before the projection into that space


@dataclass(frozen=True, slots=True)
class VideoFeatures(_Rows):
    """Videos (or windows of videos): their `FrameFeatures`, padded with zeros.

    ``experts`` and ``which`` are what `sureshot.models.encoders.experts.pack` gives; None without.
    """

    frames: Float[np.ndarray, "videos frames dim"]
    patches: Float[np.ndarray, "videos frames patches dim"]
    backbone: Float[np.ndarray, "videos frames channels"]
    mask: Bool[np.ndarray, "videos frames"]
    experts: Float[np.ndarray, "videos rows size"] | None = None
    which: Bool[np.ndarray, "videos rows experts"] | None = None

    @classmethod
    def of_frames(
        cls, frames: Float[np.ndarray, "videos frames dim"], mask: Bool[np.ndarray, "videos frames"]
    ) -> "VideoFeatures":
        """Videos of which only the frames are known, as in an index."""
        videos, longest, dim = frames.shape
        return cls(
            frames=frames,
            patches=np.zeros((videos, longest, 0, dim), frames.dtype),
            backbone=np.zeros((videos, longest, 0), frames.dtype),
            mask=mask,
        )


@runtime_checkable
class Encoder(Protocol):
    """Turns texts and frames into vectors of one shared space."""

    name: str  # by which `sureshot.models.encoders.load_encoder` gives it again
    dim: int
    channels: int  # of the backbone; 0 where it reads texts alone, and frames are zero
    latin_only: bool  # whether texts in other scripts mean nothing to it

    @property
    def frame_size(self) -> FrameSize:
        """The shorter side, in pixels, that frames are decoded at, or its own way to resize one."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of weights and settings; equal fingerprints give equal vectors."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words that it knows; None if that is not known."""

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; at least one. An empty text is the caller's error."""

    def prepare(self, frames: Images) -> Shaped[np.ndarray, "frames 3 side side"]:
        """Resize RGB frames to the network's input; cheap, thread-safe, run next to the decoder."""

    def encode_frames(self, prepared: Shaped[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        """Encode prepared frames of any number of videos in one batch."""


def padded(
    items: Sequence[Shaped[np.ndarray, "_ ..."]],
) -> tuple[Float32[np.ndarray, "items longest ..."], Bool[np.ndarray, "items longest"]]:
    """Rows of several items, with zeros behind them up to the longest; and which rows are real."""
    lengths = np.array([len(item) for item in items])
    mask = np.arange(lengths.max()) < lengths[:, None]
    rows = np.zeros((*mask.shape, *items[0].shape[1:]), np.float32)
    rows[mask] = np.concatenate(items)
    return rows, mask


def stack(videos: Sequence[FrameFeatures]) -> VideoFeatures:
    """Pad the frames of several videos to one length."""
    arrays = {}
    for field in fields(FrameFeatures):
        arrays[field.name], mask = padded([getattr(video, field.name) for video in videos])
    return VideoFeatures(**arrays, mask=mask)


_WORD = re.compile(r"\w+(?:['’]\w+)*")  # letters and digits; other signs are no words


@runtime_checkable
class HasWords(Protocol):
    """An encoder that can say which words its word tokens are."""

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each real token of each text, in the order of `TextFeatures.words`.

        A word of several tokens is named by each of them; a token that is no word of the text, such
        as its start or a comma, has an empty name.
        """


def token_words(text: str, encoding: Encoding) -> tuple[str, ...]:
    """The word of each token, as the text writes it; empty where a token is no word of it."""
    spans = [(found.start(), found.end(), found.group()) for found in _WORD.finditer(text)]
    # Some tokens begin with the space before their word.
    return tuple(
        next((word for start, end, word in spans if start < last and first < end), "")
        for first, last in encoding.offsets
    )


# Frames of one video as `Encoder.prepare` gives them, in whatever shape the encoder reads them.
Prepared = Shaped[np.ndarray, "_ _ _ _"]


def encode_together(encoder: Encoder, videos: Sequence[Prepared]) -> list[FrameFeatures]:
    """Features of each video; those of frames of one shape are encoded together."""
    found: dict[int, FrameFeatures] = {}
    for shape in dict.fromkeys(video.shape[1:] for video in videos):
        rows = [row for row, video in enumerate(videos) if video.shape[1:] == shape]
        features = encoder.encode_frames(np.concatenate([videos[row] for row in rows]))
        ends = np.cumsum([len(videos[row]) for row in rows])
        for row, end in zip(rows, ends, strict=True):
            found[row] = features.part(slice(end - len(videos[row]), end))
    return [found[row] for row in range(len(videos))]


def read_in_batches(
    read: Callable[..., Sequence["torch.Tensor"]], size: int, device: str, *arrays: np.ndarray
) -> list[np.ndarray]:
    """What a network of torch reads of rows, so many at a time and without gradients."""
    import torch

    batches = zip(*(torch.split(torch.from_numpy(a), size) for a in arrays), strict=True)
    with torch.inference_mode():
        parts = [[p.cpu() for p in read(*(b.to(device) for b in batch))] for batch in batches]
    return [torch.cat(part).numpy() for part in zip(*parts, strict=True)]


PATCH_GRID = 3  # rows and columns that the patches of a frame are pooled to, stored or trained on


def mean_pool(
    frames: Float[np.ndarray, "videos frames dim"], mask: Bool[np.ndarray, "videos frames"]
) -> Float[np.ndarray, "videos dim"]:
    r"""Unit vector along the mean of each video's real frames.

    .. math:: v = \frac{\sum_{f \in F} x_f}{\lVert \sum_{f \in F} x_f \rVert}

    Frames are summed as they come, not normalised first: a frame the encoder says little about
    then weighs little. A video whose frames cancel out, or are all zero, pools to zero.

    CLIP4Clip normalises each frame before the mean (Luo et al. 2021, section 3.3).
    """
    # Double precision: squares of large and small single ones neither overflow nor vanish in it.
    total = frames.sum(1, dtype=np.float64, where=mask[..., None])
    return unit_vectors(total).astype(frames.dtype)


def unit_vectors(x: Float[np.ndarray, "*n dim"]) -> Float[np.ndarray, "*n dim"]:
    """Vectors at unit length; a zero vector stays zero."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def pool_grid(
    patches: Float[Any, "frames patches dim"],
    side: int = PATCH_GRID,
    stack: Callable[[list[Any], int], Any] = np.stack,
) -> Float[Any, "frames cells dim"]:
    """Mean of the patches in each cell of a ``side`` x ``side`` grid, row by row.

    Patches that do not form a square, or no more than the grid has cells, come back as they are.
    They may be a tensor, with `torch.stack`.
    """
    frames, count, dim = patches.shape
    across = round(count**0.5)
    if across * across != count or across <= side:
        return patches
    square = patches.reshape(frames, across, across, dim)
    parts = [slice(part[0], part[-1] + 1) for part in np.array_split(range(across), side)]
    rows = [square[:, part].mean(1) for part in parts]
    return stack([row[:, part].mean(1) for row in rows for part in parts], 1)


Cells = Literal["none", "coarse", "whole"]  # no patches of a frame, a grid of them, or all


def with_cells(features: FrameFeatures, cells: Cells) -> FrameFeatures:
    """Features of frames with as many of their patches as are read."""
    return replace(features, patches=chosen_cells(features.patches, cells))


def chosen_cells(
    patches: Float[Any, "frames patches dim"],
    cells: Cells,
    stack: Callable[[list[Any], int], Any] = np.stack,
) -> Float[Any, "frames cells dim"]:
    """As many of the patches as are read; of a tensor with `torch.stack`."""
    if cells == "whole":
        return patches
    return patches[:, :0] if cells == "none" else pool_grid(patches, stack=stack)
