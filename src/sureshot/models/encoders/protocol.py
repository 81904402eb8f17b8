"""What an encoder gives: values with named, shaped fields, and the protocol that produces them.

Features are numpy arrays, not tensors: they are stored, cached and searched far more often than
they are differentiated, and a search must not wait for torch to import.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt8

from sureshot.media.size import FrameSize


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """Texts as an encoder sees them, in the space it shares with frames.

    Attributes:
        sentence: one vector a text, unit length.
        words: one vector a word token, unscaled; padding rows are zero.
        mask: True where a word token is real; every text has at least one.
        truncated: True where the text was longer than the encoder reads and its end was dropped.
        length: length that each sentence vector had before, on the scale of the words; None where
            unit length is its own.
    """

    sentence: Float[np.ndarray, "texts dim"]
    words: Float[np.ndarray, "texts words dim"]
    mask: Bool[np.ndarray, "texts words"]
    truncated: Bool[np.ndarray, " texts"]
    length: Float[np.ndarray, " texts"] | None = None


@dataclass(frozen=True, slots=True)
class FrameFeatures:
    """Frames as an encoder sees them, without padding: rows are frames of one or many videos.

    Attributes:
        frames: one vector a frame in the space shared with texts, unscaled.
        patches: the cells of each frame in the same space, row by row from the top left.
        backbone: the features before the projection into that space, for systems that
            learn their own.
    """

    frames: Float[np.ndarray, "frames dim"]
    patches: Float[np.ndarray, "frames patches dim"]
    backbone: Float[np.ndarray, "frames channels"]


@dataclass(frozen=True, slots=True)
class VideoFeatures:
    """Videos (or windows of videos) as padded frame tokens.

    Attributes:
        frames: frame vectors, padding rows zero.
        patches: cells of each frame, padding rows zero; ``patches`` may be 0.
        backbone: features before the projection, padding rows zero.
        mask: True where a frame is real; every video has at least one.
        experts: rows of features extracted beforehand, as `sureshot.models.encoders.experts.pack`
            gives them; None without.
        which: the expert that each row is of; None without.
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
        """Videos of which nothing but the frames is known, as of those in an index."""
        videos, longest, dim = frames.shape
        return cls(
            frames=frames,
            patches=np.zeros((videos, longest, 0, dim), frames.dtype),
            backbone=np.zeros((videos, longest, 0), frames.dtype),
            mask=mask,
        )

    def part(self, rows: slice | Int[np.ndarray, " chosen"]) -> "VideoFeatures":
        """Some of the videos."""
        arrays = ((field.name, getattr(self, field.name)) for field in fields(self))
        chosen: dict[str, Any] = {name: a if a is None else a[rows] for name, a in arrays}
        return VideoFeatures(**chosen)


@runtime_checkable
class Encoder(Protocol):
    """Turns texts and frames into vectors of one shared space.

    Attributes:
        name: what `sureshot.models.encoders.load_encoder` takes to give this encoder again.
        dim: size of the shared space.
        channels: size of the backbone features.
        latin_only: whether texts in other scripts mean nothing to it.
    """

    name: str
    dim: int
    channels: int
    latin_only: bool

    @property
    def frame_size(self) -> FrameSize:
        """Size in which frames are decoded for `prepare`.

        The shorter side, in pixels, above which a frame holds nothing the encoder can see; or its
        own way to make a whole frame small.
        """
        ...

    @property
    def fingerprint(self) -> str:
        """Hex digest of weights and settings; equal fingerprints give equal vectors."""
        ...

    @property
    def vocabulary(self) -> frozenset[str] | None:
        """Words of the captions that it learned from, in small letters; None if not known."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; at least one. An empty text is the caller's error."""
        ...

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> Shaped[np.ndarray, "frames 3 side side"]:
        """Resize RGB frames to the network's input; cheap, thread-safe, run beside the decoder."""
        ...

    def encode_frames(self, prepared: Shaped[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        """Encode prepared frames of any number of videos in one batch."""
        ...


def stack(videos: Sequence[FrameFeatures]) -> VideoFeatures:
    """Pad the frames of several videos to one length.

    Args:
        videos: one value per video, each with at least one frame and equal sizes otherwise.

    Returns:
        Padded features; the mask tells real frames from padding.
    """
    longest = max(len(v.frames) for v in videos)

    def pad(parts: list[np.ndarray]) -> np.ndarray:
        out = np.zeros((len(parts), longest, *parts[0].shape[1:]), np.float32)
        for row, part in zip(out, parts, strict=True):
            row[: len(part)] = part
        return out

    mask = np.arange(longest)[None, :] < np.array([len(v.frames) for v in videos])[:, None]
    return VideoFeatures(
        frames=pad([v.frames for v in videos]),
        patches=pad([v.patches for v in videos]),
        backbone=pad([v.backbone for v in videos]),
        mask=mask,
    )
