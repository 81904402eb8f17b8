"""Signatures of frames, to tell copies of a video from videos that merely resemble it."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, UInt8

_SIDE = 16  # pixels each way of the grey picture
_GREY = _SIDE * _SIDE
_PATCHES = 4  # colour patches each way
SIZE = _GREY + 2 * _PATCHES * _PATCHES  # bytes of a signature
_NEUTRAL = 128  # what no colour at all is stored as
_FLAT = 6.0  # grey levels: a frame that varies less has nothing to recognise it by
_SAME = 0.98  # correlation from which two frames show the same picture
_LIKE = 0.8  # from which they may be neighbours in one shot
_PLACES = 5  # pictures that must come at the same pace in both, where they are merely alike
COPY = 0.75  # share of frames that must be found again in another video to call it a copy
_AT_ONCE = 4_000_000  # pairs of frames whose coarse pictures are compared at once
_PAIRS = 8192  # pairs that are compared in full at once
_DENSE = 16  # if one pair in so many is near, all are compared in one product
_ROUNDING = 1e-5  # of distances in single precision
_TINGE = 12.0  # levels by which the colours of a copy differ from those of its original, at most,
_HUE = 0.8  # or else they have at least this cosine, being paler or stronger


def signature(image: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "288"]:
    """A frame shrunk to 16 x 16 grey pixels and to 4 x 4 patches of colour.

    The 256 greys come first, then 16 times Cb, then 16 times Cr; all are means of their part.

    Small pictures beat the usual bit hashes here: over 26 clips, half-size copies at a third of the
    quality correlate at 0.990 or more with their originals, and the most alike pair of different
    videos (two people before one wall) at 0.934 (LOG.md). A difference hash confuses the two.
    """
    from PIL import Image

    picture = Image.fromarray(image)
    grey = picture.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    few = picture.resize((_PATCHES, _PATCHES), Image.Resampling.BOX).convert("YCbCr")
    colours = np.asarray(few)[..., 1:].clip(1).transpose(2, 0, 1)
    return np.concatenate([np.asarray(grey).reshape(-1), colours.reshape(-1)])


class Patterns:
    """Frames of windows as grey pictures free of brightness and contrast, to be compared.

    Frames are matched wherever they stand, so a shifted sampling or a trimmed copy still counts.
    Flat frames (black, white) and padding (zeros) are not ``telling``: they have no pattern.
    """

    def __init__(self, signatures: UInt8[np.ndarray, "windows frames 288"]) -> None:
        self._marks = signatures.reshape(-1, SIZE)
        self._size = signatures.shape[1]
        grey = self._marks[:, :_GREY].astype(np.float32)
        grey -= grey.mean(-1, keepdims=True)
        length = np.sqrt(np.einsum("fp,fp->f", grey, grey))
        telling = length >= _FLAT * _SIDE  # the norm of 16 * 16 values is 16 times their deviation
        grey *= np.where(telling, 1 / np.where(telling, length, 1), 0)[:, None]
        self._patterns = grey
        self.telling: Bool[np.ndarray, "windows frames"] = telling.reshape(signatures.shape[:2])
        self._coarse = grey @ _blocks()
        self._lengths = np.where(telling, (self._coarse**2).sum(-1), np.inf)

    def alike(self, windows: Sequence[int]) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """Frames that show the same picture as one of some windows, by number, and that one.

        Frames are counted through all windows. Pictures that are near each other are near in every
        part, so a sixteenth of the numbers rules out most pairs.
        """
        step = max(1, _AT_ONCE // max(1, len(self._marks) * self._size))
        found = [self._alike(windows[at : at + step]) for at in range(0, len(windows), step)]
        none = np.zeros(0, int)
        ones, others = zip((none, none), *found, strict=True)
        return np.concatenate(ones), np.concatenate(others)

    def _alike(self, windows: Sequence[int]) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        chosen = (np.array(windows)[:, None] * self._size + np.arange(self._size)).ravel()
        near = self._coarse @ self._coarse[chosen].T
        near *= -2
        near += self._lengths[:, None]
        near += self._lengths[chosen]
        one, place = np.nonzero(near <= 2 * (1 - _SAME) + _ROUNDING)
        if len(one) > near.size // _DENSE:
            kept = (self._patterns @ self._patterns[chosen].T)[one, place] >= _SAME
            one, place = one[kept], place[kept]
        other, same = chosen[place], np.zeros(len(one), bool)
        for at in range(0, len(one), _PAIRS):
            some = slice(at, at + _PAIRS)
            rows, copies = one[some], other[some]
            products = np.einsum("np,np->n", self._patterns[rows], self._patterns[copies])
            coloured = _coloured_alike(self._marks[rows], self._marks[copies])
            same[some] = (products >= _SAME) & coloured
        return one[same], other[same]

    def in_step(
        self,
        windows: Sequence[int],
        others: Int[np.ndarray, " n"],
        times: Float[np.ndarray, "windows frames"],
    ) -> Bool[np.ndarray, " n"]:
        """Which other windows show the pictures of some adjacent windows at the same pace.

        A copy whose keyframes are elsewhere is sampled between the frames of its original, and
        what moves has moved on. So its frames need only resemble theirs, but three quarters of them
        must resemble most the one that is shown at the same time, all shifted by as much. Another
        take by a camera that stands still has its best matches anywhere (LOG.md).

        Args:
            windows: numbers of the windows, in the order of time.
            others: numbers of those that may be copies.
            times: seconds of each frame.
        """
        numbers = np.arange(len(self._marks)).reshape(-1, self._size)
        chosen = np.array(windows)
        own = numbers[chosen][self.telling[chosen]]
        needed = np.maximum(COPY * self.telling[others].sum(-1), _PLACES)
        found = np.zeros(len(others), bool)
        step = max(1, _AT_ONCE // max(1, len(own) * self._size))
        for at in range(0, len(others) if len(own) >= _PLACES else 0, step):
            some = numbers[others[at : at + step]]
            near = self._coarse[some.ravel()] @ self._coarse[own].T
            near -= self._lengths[own] / 2
            least = self._lengths[some] / 2 - near.max(-1).reshape(some.shape)
            like = (least <= 1 - _LIKE + _ROUNDING).sum(-1) >= needed[at : at + step]
            rows = np.flatnonzero(like)
            found[at + rows] = self._paced(some[rows], own, times.ravel(), needed[at + rows])
        return found

    def _paced(
        self,
        frames: Int[np.ndarray, "rows frames"],
        own: Int[np.ndarray, " own"],
        times: Float[np.ndarray, " all"],
        needed: Float[np.ndarray, " rows"],
    ) -> Bool[np.ndarray, " rows"]:
        """Whether so many frames of each row are most like the one at their time, shifted."""
        products = self._patterns[frames] @ self._patterns[own].T
        best = products.max(-1)
        same = products >= best[..., None] - _ROUNDING  # a picture that stands still lasts
        first, last = same.argmax(-1), len(own) - 1 - same[..., ::-1].argmax(-1)
        coloured = _coloured_alike(
            self._marks[frames.ravel()], self._marks[own[first.ravel()]]
        ).reshape(frames.shape)
        like = (best >= _LIKE) & coloured
        gap = np.median(np.diff(times[own]))
        earliest, latest = (times[own[of]] - times[frames] for of in (first, last))
        found = np.zeros(len(frames), bool)
        for shift in earliest.T[..., None] if len(frames) else ():
            fit = like & (earliest - gap <= shift) & (shift <= latest + gap)
            shown = np.zeros((len(frames), len(own)), bool)
            shown[np.nonzero(fit)[0], first[fit]] = True
            found |= (fit.sum(-1) >= needed) & (shown.sum(-1) >= _PLACES)
        return found


def _blocks() -> Float32[np.ndarray, "256 16"]:
    """Orthonormal blocks of pixels, which make a coarse picture of a pattern."""
    size = _SIDE // _PATCHES
    one = np.kron(np.eye(_PATCHES, dtype=np.float32), np.ones((size, 1), np.float32))
    return np.kron(one, one) / np.float32(size)


def _coloured_alike(
    ones: UInt8[np.ndarray, "pairs 288"], others: UInt8[np.ndarray, "pairs 288"]
) -> Bool[np.ndarray, " pairs"]:
    """Whether the frames of each pair have the same colours, paler or not.

    Over 33 clips and 200 photos, none of 2,875 copies that were re-encoded, halved, or changed in
    brightness, contrast, saturation, gamma or matrix leaves these bounds; with red and blue
    swapped all 87 do whose colours are strong (LOG.md). A black-and-white copy of strong colours
    leaves them, too.
    """
    one, other = (part[:, _GREY:].astype(np.float32) - _NEUTRAL for part in (ones, others))
    inner = (one * other).sum(-1)
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    near = np.abs(one - other).mean(-1) <= _TINGE
    return near | (inner > _HUE * lengths)


# Makes an image of a whole RGB frame; called by several decoding threads at once.
Resize: TypeAlias = Callable[[UInt8[np.ndarray, "h w 3"]], UInt8[np.ndarray, "height width 3"]]
# The shorter side in pixels, at most, that an area filter shrinks a frame to while its colours are
# converted; or a function for those who must have its pixels as they are.
FrameSize: TypeAlias = int | Resize

_LONGEST = 8  # a sliver of a frame is cut down to this many times the side asked for


def shrunk(width: float | int, height: int, side: int) -> tuple[int, int]:
    """Width and height in the same shape whose shorter side is at most ``side``; never enlarged.

    Examples:
        >>> shrunk(640, 360, 224)
        (398, 224)
    """
    scale = min(1.0, side / min(width, height))
    most = _LONGEST * side
    return tuple(max(1, min(round(length * scale), most)) for length in (width, height))  # type: ignore[return-value]
