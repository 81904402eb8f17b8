"""Cut a stream of frames into windows, at scene changes and by length, and sample each."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int, UInt8

from sureshot.media.frames import Frame
from sureshot.media.signature import FrameSize, signature

THUMBNAIL = (32, 24)  # width, height of the pictures compared
Thumbnail: TypeAlias = UInt8[np.ndarray, "24 32 3"]
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
    """A stretch of one video, in seconds from its start, and the frames sampled from it."""

    start: float
    # The next window's start, or the end of the last frame. Where one frame stays on screen for
    # longer than a window may last, its window ends first.
    end: float
    times: Float[np.ndarray, " frames"]
    images: UInt8[np.ndarray, "images height width 3"]  # that differ, in the order of time
    shown: Int[np.ndarray, " frames"]  # which of them each frame shows
    signatures: UInt8[np.ndarray, "frames 288"]
    follows: bool = False  # whether it goes on with the scene of the one before, which was too long


class _Picture:
    """What a frame shows, or several that hardly differ: the one in their middle.

    It is shrunk only once it is picked, as that costs as much as to decode a frame. The first of
    several may be the end of a fade, and the last one the beginning of another.
    """

    def __init__(self, small: Thumbnail | None) -> None:
        self.small = small  # what later frames are compared with; None if they are not
        self.frames: deque[Frame] = deque()  # that may be the middle one; none once it is shrunk
        self._count = 0
        self._image: UInt8[np.ndarray, "height width 3"] | None = None

    def add(self, frame: Frame) -> None:
        """Take another frame that shows it."""
        if self._image is None:
            self.frames.append(frame)
            self._count += 1
            if self._count % 2 == 0:
                self.frames.popleft()

    def image(self, size: FrameSize) -> UInt8[np.ndarray, "height width 3"]:
        """In the size asked for, made once; decoded frames are dropped then."""
        if self._image is None:
            self._image = self.frames[0].image(size)
            self.frames.clear()
        return self._image


@dataclass(slots=True)
class _Kept:
    """A frame that may be picked."""

    time: float
    picture: _Picture


@dataclass(frozen=True, slots=True)
class _Rule:
    """The arguments of `windows`."""

    longest: float
    samples: int
    size: FrameSize
    scenes: bool
    still: float

    @property
    def shortest(self) -> float:
        return min(SHORTEST, self.longest / 2)


@dataclass(slots=True)
class _Scene:
    """A scene still being read: frames are thinned as it grows, so memory is bounded."""

    start: float
    end: float = 0.0
    kept: list[_Kept] = field(default_factory=list)
    spacing: float = _DENSEST
    follows: bool = False

    def add(self, frame: Frame, small: Thumbnail | None, rule: _Rule) -> None:
        if self.kept and frame.time - self.kept[-1].time < self.spacing * 0.99:
            return
        if rule.still and small is None:
            if self.kept and rule.scenes:
                return  # one that was compared for cuts comes at once
            small = frame.thumbnail(*THUMBNAIL)
        picture = self.kept[-1].picture if self.kept else None
        if picture is None or _difference(picture.small, small) >= rule.still:
            picture = _Picture(small)
        picture.add(frame)
        self.kept.append(_Kept(frame.time, picture))
        if len(self.kept) > rule.samples * _SPARE:
            self.kept = self.kept[::2]
            gaps = np.diff([k.time for k in self.kept])
            self.spacing = max(2 * self.spacing, float(np.median(gaps)))
        pixels = 0
        for waiting in dict.fromkeys(k.picture for k in reversed(self.kept)):
            pixels += sum(frame.pixels for frame in waiting.frames)
            if pixels > _WAITING_PIXELS:
                waiting.image(rule.size)


def _difference(one: Thumbnail | None, other: Thumbnail | None) -> float:
    """How far two thumbnails differ where they differ most; infinite where one is not known.

    A mean over one of 12 parts, in levels of 256: what moves is often small.
    """
    if one is None or other is None:
        return math.inf
    changes = np.abs(one.astype(np.int16) - other).mean(-1)
    return float(changes.reshape(3, 8, 4, 8).mean((1, 3)).max())


def windows(
    frames: Iterable[Frame],
    *,
    longest: float,
    samples: int,
    size: FrameSize,
    scenes: bool = True,
    still: float = 0.0,
) -> Iterator[Window]:
    """Cut a video into windows in one pass, with memory for the frames of two windows.

    A last piece too short to stand alone joins the window before it, or the two are split in half
    where they would be too long together.

    Args:
        longest: seconds a window may last.
        samples: frames picked from each window; a window with fewer keeps all it has.
        scenes: whether a change of scene ends a window.
        still: a frame that differs by less from the picture before it shares that picture, as in
            `IndexSettings`; with 0 each has its own.
    """
    rule = _Rule(longest=longest, samples=samples, size=size, scenes=scenes, still=still)
    before: _Scene | None = None
    shortest = rule.shortest
    for scene in _scenes(_marked(frames, scenes), rule):
        if before is not None:
            # No more than this apart, or halves of the two could be longer than a window may be.
            near = scene.start - before.end < shortest
            if scene.end - scene.start < shortest and near:
                scene = replace(before, end=scene.end, kept=before.kept + scene.kept)
                if scene.end - scene.start > longest:
                    before, scene = _halve(scene)
                    yield _window(before, rule)
            else:
                yield _window(before, rule)
        before = scene
    if before is not None:
        yield _window(before, rule)


def _marked(
    frames: Iterable[Frame], scenes: bool
) -> Iterator[tuple[Frame, Thumbnail | None, bool]]:
    """Each frame, its thumbnail if it was compared, and whether a new scene begins with it.

    Not every frame is compared, as neighbours often resemble each other across a cut. The frames in
    between are held back until the next comparison; if it finds a cut, they show where it is.
    """
    if not scenes:
        yield from ((frame, None, False) for frame in frames)
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
        first, small = len(held), frame.thumbnail(*THUMBNAIL)
        if detector.is_cut(small):
            later = (detector.is_after(f.thumbnail(*THUMBNAIL)) for f in held[:-1])
            first = next((place for place, is_after in enumerate(later) if is_after), first - 1)
        for place, one in enumerate(held):
            yield one, small if one is frame else None, place == first
        held = []
    yield from ((one, None, False) for one in held)


def _scenes(
    frames: Iterable[tuple[Frame, Thumbnail | None, bool]], rule: _Rule
) -> Iterator[_Scene]:
    """Scenes by cuts and by length. Only the last one may be shorter than the rule's shortest."""
    longest, shortest = rule.longest, rule.shortest
    scene: _Scene | None = None
    gaps: deque[float] = deque(maxlen=2)
    last = 0.0
    for frame, small, is_first in frames:
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
        scene.add(frame, small, rule)
        last = frame.time
    if scene is not None:
        # The last frame lasts as long as those before it, the longer of two gaps being a leap.
        scene.end = min(last + min(gaps, default=_INSTANT), scene.start + longest)
        yield scene


def _halve(scene: _Scene) -> tuple[_Scene, _Scene]:
    middle = (scene.start + scene.end) / 2
    early = [k for k in scene.kept if k.time < middle]
    late = [k for k in scene.kept if k.time >= middle]
    first = replace(scene, end=middle, kept=early)
    return first, replace(scene, start=middle, kept=late, follows=True)


def fitted(
    image: UInt8[np.ndarray, "h w 3"], first: UInt8[np.ndarray, "height width 3"]
) -> UInt8[np.ndarray, "height width 3"]:
    """A picture in the size of the first one of its window: a stream may change its size midway."""
    if image.shape == first.shape:
        return image
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize(first.shape[1::-1], Image.Resampling.BOX))


def _window(scene: _Scene, rule: _Rule) -> Window:
    times = np.array([k.time for k in scene.kept])
    rows = evenly(times, scene.start, scene.end, rule.samples)
    shown = [scene.kept[row].picture for row in rows]
    pictures = list(dict.fromkeys(shown))
    images = [fitted(p.image(rule.size), pictures[0].image(rule.size)) for p in pictures]
    number = np.array([pictures.index(picture) for picture in shown])
    return Window(
        start=scene.start,
        end=scene.end,
        times=times[rows],
        images=np.stack(images),
        shown=number,
        signatures=np.stack([signature(image) for image in images])[number],
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
