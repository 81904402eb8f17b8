"""Encoded windows put together anew, so that each shows one scene.

Films are decoded in short windows, as nobody knows where a scene fades before its frames have been
encoded. Then windows that go on with each other are joined, and parted where the frames change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sureshot.media.windows import SHORTEST, evenly
from sureshot.models.changes import parts, price_of
from sureshot.store.rows import EncodedWindow

_BLOCK = 90  # windows, at most 15 minutes, after which a long film is settled so far


class Stretches:
    """The windows of one video as they come from the encoder.

    A block at a time is settled and keeps only the frames that will be stored, so that memory grows
    with a film no faster than its index. A scene that goes on over the end of a block is two
    windows, as one is that is too long.

    Args:
        longest: seconds a window may last.
        most: frames of a window.
        by_frames: whether windows are put together anew; False leaves them as they come.
    """

    def __init__(self, longest: float, most: int, *, by_frames: bool) -> None:
        self._longest = longest
        self._most = most
        self._by_frames = by_frames
        self._settled: list[EncodedWindow] = []
        self._waiting: list[tuple[EncodedWindow, bool]] = []

    def add(self, window: EncodedWindow, *, follows: bool) -> None:
        """Take another window, and whether it goes on with the scene of the one before it."""
        self._waiting.append((window, follows))
        if len(self._waiting) == _BLOCK:
            self._settle()

    def windows(self) -> list[EncodedWindow]:
        """All windows that are to be stored, in the order of time."""
        self._settle()
        return sorted(self._settled, key=lambda window: window.start)

    def _settle(self) -> None:
        ordered = sorted(self._waiting, key=lambda pair: pair[0].start)
        windows, follows = [window for window, _ in ordered], [goes_on for _, goes_on in ordered]
        if windows and self._by_frames:
            windows = by_scene(windows, follows, longest=self._longest, most=self._most)
        self._settled += windows
        self._waiting = []


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Windows that go on with each other, taken as one.

    Attributes:
        window: all their frames.
        edges: seconds between which each frame stands for what is shown, one more than frames.
    """

    window: EncodedWindow
    edges: Float[np.ndarray, " edges"]


def by_scene(
    windows: Sequence[EncodedWindow], follows: Sequence[bool], *, longest: float, most: int
) -> list[EncodedWindow]:
    """Windows of one video parted where its frames say that the scene changes.

    Args:
        windows: windows of one video in the order of time, at least one.
        follows: whether each goes on with the scene of the one before it, as far as colours tell.
        longest: seconds a window may last.
        most: frames of a window; of more, as many evenly over it are kept.
    """
    runs: list[list[EncodedWindow]] = []
    for window, goes_on in zip(windows, follows, strict=True):
        if goes_on and runs:
            runs[-1].append(window)
        else:
            runs.append([window])
    stretches = [_stretch(run) for run in runs]
    price = price_of(
        np.concatenate([s.window.frames for s in stretches]),
        np.concatenate([np.diff(s.edges) for s in stretches]),
    )
    return [part for s in stretches for part in _parted(s, price, longest, most)]


def _stretch(run: Sequence[EncodedWindow]) -> _Stretch:
    """Windows that go on with each other as one of all their frames."""
    window = EncodedWindow(
        start=run[0].start,
        end=run[-1].end,
        times=np.concatenate([w.times for w in run]),
        signatures=np.concatenate([w.signatures for w in run]),
        frames=np.concatenate([w.frames for w in run]),
    )
    between = (window.times[1:] + window.times[:-1]) / 2
    return _Stretch(window, np.concatenate([[window.start], between, [window.end]]))


def _parted(stretch: _Stretch, price: float, longest: float, most: int) -> Iterator[EncodedWindow]:
    """The scenes of a stretch."""
    window, edges = stretch.window, stretch.edges
    firsts = parts(
        window.frames,
        np.diff(edges),
        price=price,
        shortest=SHORTEST,
        longest=longest,
    )
    for first, after in zip(firsts, [*firsts[1:], len(window.times)], strict=True):
        start, end = edges[first].item(), edges[after].item()
        rows = first + np.array(evenly(window.times[first:after], start, end, most))
        yield EncodedWindow(
            start=start,
            end=end,
            times=window.times[rows],
            signatures=window.signatures[rows],
            frames=window.frames[rows],
        )
