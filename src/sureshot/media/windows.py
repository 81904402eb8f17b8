"""Cut a stream of frames into windows, at scene changes and by length, and sample each."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, UInt8

from sureshot.media.frames import Frame
from sureshot.media.signature import FrameSize, signature

THUMBNAIL = (32, 24)  # width, height of the pictures compared
_BINS = 10
_ABSOLUTE = 0.35  # least change of a cut, as a share of the pixels that changed their colour
_RELATIVE = 3.0  # a cut changes this many times more than the frames around it usually do
_MEMORY = 16  # changes that "usually" goes by


class CutDetector:
    """Tells cuts from motion by comparing each change of colours with the changes before it.

    A hand-held or slowly sampled video changes a lot from frame to frame and has few cuts; a static
    one has a cut at its first large change. Hence both limits must be exceeded.

    On 26 clips the largest change without a cut is 0.27, and 99 of 100 cuts between frames of
    different videos change 0.35 or more (LOG.md).
    """

    def __init__(self) -> None:
        self._colours: Float[np.ndarray, "4 3 bins"] | None = None
        self._before: Float[np.ndarray, "4 3 bins"] | None = None
        self._changes: deque[float] = deque(maxlen=_MEMORY)

    def is_cut(self, picture: UInt8[np.ndarray, "height width 3"]) -> bool:
        """Whether a new scene has begun since the previous picture; the first one begins none."""
        self._before, self._colours = self._colours, colour_shares(picture)
        if self._before is None:
            return False
        change = colour_change(self._before, self._colours)
        usual = float(np.median(self._changes)) if self._changes else 0.0
        self._changes.append(change)
        return change > max(_ABSOLUTE, _RELATIVE * usual)

    def is_after(self, picture: UInt8[np.ndarray, "height width 3"]) -> bool:
        """Whether a picture between the last two compared resembles the later one."""
        if self._before is None or self._colours is None:
            return False
        colours = colour_shares(picture)
        return colour_change(colours, self._colours) < colour_change(colours, self._before)


def colour_shares(picture: UInt8[np.ndarray, "height width 3"]) -> Float[np.ndarray, "4 3 bins"]:
    """Histogram of each channel in each quarter of a picture; each histogram sums to 1.

    Quarters make a change of layout count; separate channels keep it short. A value is split among
    the two nearest bins, so that a slow fade never leaps from one to the next.
    """
    height, width = picture.shape[0] // 2, picture.shape[1] // 2
    quarters = picture[: 2 * height, : 2 * width].reshape(2, height, 2, width, 3)
    place = quarters.transpose(0, 2, 4, 1, 3).reshape(12, -1) * ((_BINS - 1) / 255)
    lower = np.minimum(place.astype(np.int64), _BINS - 2)
    upper_share = place - lower
    cells = (lower + _BINS * np.arange(12)[:, None]).ravel()
    counts = np.bincount(cells, (1 - upper_share).ravel(), 12 * _BINS)
    counts += np.bincount(cells + 1, upper_share.ravel(), 12 * _BINS)
    return counts.reshape(4, 3, _BINS) / (height * width)


def colour_change(
    before: Float[np.ndarray, "4 3 bins"], after: Float[np.ndarray, "4 3 bins"]
) -> float:
    """Share of the pixels that changed their colour, in [0, 1]; a mean over the quarters.

    In each quarter the channel that changed most counts: red and magenta differ in blue alone.
    """
    changed = np.abs(before - after).sum(-1) / 2
    return float(changed.max(-1).mean())


_LOOK = 0.11  # seconds: pictures closer together are not compared for cuts
_HELD = 8  # frames held back between two such pictures, at most
_HELD_PIXELS = 1 << 27  # and as many pixels: 8 frames in 4K, 4 in 8K
_DENSEST = 0.08  # seconds: frames closer together are not kept as samples
_INSTANT = 0.04  # seconds that a frame lasts where nothing says how long
_ROUNDING = 1e-6  # seconds: sums of times are not exact
_TOGETHER = 0.5  # of the longest window: frames further apart do not go on with each other
SHORTEST = 1.5  # seconds: a scene that is cut earlier goes on with the one after it
_SPARE = 4  # samples are picked from up to this many times as many kept frames
_WAITING_PIXELS = 1 << 25  # of kept frames of a scene that wait, as decoded, until they are picked


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of one video, in seconds from its start, and the frames sampled from it.

    Attributes:
        end: the next window's start, or the end of the last frame. Where one frame stays on screen
            for longer than a window may last, its window ends first.
        follows: whether it continues the scene of the previous window, which had got too long.
    """

    start: float
    end: float
    times: Float[np.ndarray, " frames"]
    images: UInt8[np.ndarray, "frames height width 3"]
    signatures: UInt8[np.ndarray, "frames 288"]
    follows: bool = False


@dataclass(slots=True)
class _Kept:
    """A frame that may be picked; shrunk only then, as that costs as much as decoding it."""

    time: float
    frame: Frame | None
    _image: UInt8[np.ndarray, "height width 3"] | None = None

    def image(self, size: FrameSize) -> UInt8[np.ndarray, "height width 3"]:
        """Its picture, made once; the decoded frame is dropped then."""
        if self._image is None:
            assert self.frame is not None
            self._image, self.frame = self.frame.image(size), None
        return self._image


@dataclass(slots=True)
class _Scene:
    """A scene still being read: frames are thinned as it grows, so memory is bounded."""

    start: float
    end: float = 0.0
    kept: list[_Kept] = field(default_factory=list)
    spacing: float = _DENSEST
    follows: bool = False

    def add(self, frame: Frame, size: FrameSize, max_frames: int) -> None:
        if self.kept and frame.time - self.kept[-1].time < self.spacing * 0.99:
            return
        self.kept.append(_Kept(frame.time, frame))
        if len(self.kept) > max_frames:
            self.kept = self.kept[::2]
            gaps = np.diff([k.time for k in self.kept])
            self.spacing = max(2 * self.spacing, float(np.median(gaps)))
        pixels = 0
        for kept in reversed(self.kept):
            pixels += 0 if kept.frame is None else kept.frame.pixels
            if pixels > _WAITING_PIXELS:
                kept.image(size)


def windows(
    frames: Iterable[Frame], *, longest: float, samples: int, size: FrameSize, scenes: bool = True
) -> Iterator[Window]:
    """Cut a video into windows in one pass, with memory for the frames of two windows.

    A last piece too short to stand alone joins the window before it, or the two are split in half
    where they would be too long together.

    Args:
        frames: decoded frames, times never falling.
        longest: seconds a window may last.
        samples: frames picked from each window; a window with fewer keeps all it has.
        size: size of the picked frames.
        scenes: whether a change of scene ends a window.
    """
    before: _Scene | None = None
    shortest = min(SHORTEST, longest / 2)
    for scene in _scenes(_marked(frames, scenes), longest, shortest, samples * _SPARE, size):
        if before is not None:
            # No more than this apart, or halves of the two could be longer than a window may be.
            near = scene.start - before.end < shortest
            if scene.end - scene.start < shortest and near:
                scene = _join(before, scene)
                if scene.end - scene.start > longest:
                    before, scene = _halve(scene)
                    yield _window(before, samples, size)
            else:
                yield _window(before, samples, size)
        before = scene
    if before is not None:
        yield _window(before, samples, size)


def _marked(frames: Iterable[Frame], scenes: bool) -> Iterator[tuple[Frame, bool]]:
    """Each frame, and whether a new scene begins with it.

    Not every frame is compared, as neighbours often resemble each other across a cut. The frames in
    between are held back until the next comparison; if it finds a cut, they show where it is.
    """
    if not scenes:
        yield from ((frame, False) for frame in frames)
        return
    detector = CutDetector()
    held: list[Frame] = []
    looked = -math.inf
    for frame in frames:
        held.append(frame)
        most = min(_HELD, _HELD_PIXELS // max(1, frame.pixels))
        if frame.time - looked < _LOOK and len(held) < most:
            continue
        looked = frame.time
        first = len(held)
        if detector.is_cut(frame.thumbnail(*THUMBNAIL)):
            later = (detector.is_after(f.thumbnail(*THUMBNAIL)) for f in held[:-1])
            first = next((place for place, is_after in enumerate(later) if is_after), first - 1)
        yield from ((f, place == first) for place, f in enumerate(held))
        held = []
    yield from ((f, False) for f in held)


def _scenes(
    frames: Iterable[tuple[Frame, bool]],
    longest: float,
    shortest: float,
    max_frames: int,
    size: FrameSize,
) -> Iterator[_Scene]:
    """Scenes by cuts and by length. Only the last one may be shorter than ``shortest``."""
    scene: _Scene | None = None
    gaps: deque[float] = deque(maxlen=2)
    last = 0.0
    for frame, is_first in frames:
        if scene is None:
            scene = _Scene(start=frame.time)
        elif frame.time > last:
            gaps.append(frame.time - last)
            length = frame.time - scene.start
            if length > longest - _ROUNDING or (is_first and length >= shortest):
                # A frame is on screen until the next one comes, but not forever.
                scene.end = min(frame.time, scene.start + longest)
                yield scene
                follows = not is_first and gaps[-1] <= _TOGETHER * longest
                scene = _Scene(start=frame.time, follows=follows)
        scene.add(frame, size, max_frames)
        last = frame.time
    if scene is not None:
        # The last frame lasts as long as those before it, the longer of two gaps being a leap.
        scene.end = min(last + min(gaps, default=_INSTANT), scene.start + longest)
        yield scene


def _join(first: _Scene, second: _Scene) -> _Scene:
    return _Scene(
        start=first.start, end=second.end, kept=first.kept + second.kept, follows=first.follows
    )


def _halve(scene: _Scene) -> tuple[_Scene, _Scene]:
    middle = (scene.start + scene.end) / 2
    early = [k for k in scene.kept if k.time < middle]
    late = [k for k in scene.kept if k.time >= middle]
    first = _Scene(start=scene.start, end=middle, kept=early, follows=scene.follows)
    return first, _Scene(start=middle, end=scene.end, kept=late, follows=True)


def _fitted(
    image: UInt8[np.ndarray, "h w 3"], first: UInt8[np.ndarray, "height width 3"]
) -> UInt8[np.ndarray, "height width 3"]:
    """A picture in the size of the first one of its window: a stream may change its size midway."""
    if image.shape == first.shape:
        return image
    from PIL import Image

    height, width = first.shape[:2]
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BOX))


def _window(scene: _Scene, samples: int, size: FrameSize) -> Window:
    times = np.array([k.time for k in scene.kept])
    kept = [scene.kept[i] for i in evenly(times, scene.start, scene.end, samples)]
    images = [_fitted(k.image(size), kept[0].image(size)) for k in kept]
    return Window(
        start=scene.start,
        end=scene.end,
        times=np.array([k.time for k in kept]),
        images=np.stack(images),
        signatures=np.stack([signature(image) for image in images]),
        follows=scene.follows,
    )


def evenly(times: Float[np.ndarray, " frames"], start: float, end: float, count: int) -> list[int]:
    """The frames nearest to the middles of ``count`` equal parts of a stretch, none twice.

    All of them where there are no more.
    """
    if len(times) <= count:
        return list(range(len(times)))
    middles = start + (np.arange(count) + 0.5) * (end - start) / count
    return sorted({int(np.abs(times - m).argmin()) for m in middles})
