"""What one file may cost: pixels of a frame, seconds in ffmpeg, seconds without a word.

A file of two megabytes can claim a day of grey in 4K, or frames of 60,000 x 60,000. Whoever put it
there pays two megabytes, so that is what its cost goes by.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sureshot.errors import VideoError
from sureshot.media.ahead import beat

# 8192 x 8192 and 11,520 x 5760 pass, the largest that cameras for all directions write. The largest
# level of H.264, H.265 and AV1 that decoders know has half as many.
MOST_PIXELS = 1 << 26
# Seconds that any file may take, and bytes that buy one more. A film of 1 Mb/s gets 12 times as
# long as it lasts; a lecture of 60 kb/s, which hardly moves, 0.7 times, and needs a tenth.
_ANY = 120.0
_BYTES = 10_000
_SILENCE = 60.0  # seconds that one packet or frame may take
_IN_FLIGHT = 1 << 27  # pixels that the threads of one decoder hold together
_GROWTH = 4  # times as many pixels as declared that a frame may have, midway
_ROOM = 1 << 23  # pixels that it may have in any case: 4096 x 2048
_MOST_THREADS = 16  # what ffmpeg itself takes at most

_Item = TypeVar("_Item")


class Effort:
    """Seconds that reading one file has cost so far; only time inside ffmpeg counts.

    Args:
        size: bytes of the file.
        seconds: limit of all its calls together; None takes two minutes and a second each 10 kB.
        clock: seconds from any start.

    Attributes:
        limit: seconds that all calls together may take.
    """

    def __init__(
        self,
        size: int,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = _ANY + size / _BYTES if seconds is None else seconds
        self._size = size
        self._clock = clock
        self._spent = 0.0
        self._since: float | None = None
        self._heard = 0.0

    def begin(self) -> None:
        """A call begins that ffmpeg works in."""
        self._since = self._heard = self._clock()

    def end(self) -> None:
        """The call has come back."""
        if self._since is not None:
            self._spent += self._clock() - self._since
            self._since = None

    def step(self) -> None:
        """A packet has come.

        Raises:
            VideoError: the whole took more than the limit.
        """
        beat()
        now = self._heard = self._clock()
        if self._spent + (0.0 if self._since is None else now - self._since) > self.limit:
            raise VideoError(
                f"took more than {self.limit:.0f} s, the most for a file of {_bytes(self._size)}"
            )

    def wait(self) -> None:
        """More of the file is read for the packet to come.

        Raises:
            VideoError: it has not come for a minute, or the whole took more than the limit.
        """
        heard = self._heard
        if self._since is not None and self._clock() - heard > _SILENCE:
            raise VideoError(f"gave nothing for {_SILENCE:.0f} s", transient=True)
        self.step()
        self._heard = heard


def timed(items: Iterable[_Item], effort: Effort) -> Iterator[_Item]:
    """The items that come out of ffmpeg; the work on each counts, the time between does not."""
    waiting = iter(items)
    while True:
        effort.begin()
        try:
            item = next(waiting)
        except StopIteration:
            return
        finally:
            effort.end()
        yield item


def tame(stream: Any) -> None:
    """Hold a stream of pictures that is not decoded yet to frames of a bearable size.

    Frames that grow beyond it midway are damage to its decoder. Large frames have fewer threads,
    as each thread holds one.

    Args:
        stream: a video stream as PyAV has it.

    Raises:
        VideoError: it says itself that its frames have more pixels than `MOST_PIXELS`.
    """
    context = stream.codec_context
    width, height = context.width, context.height
    if width * height > MOST_PIXELS:
        raise VideoError(
            f"has frames of {width} x {height} pixels; the most is "
            f"{MOST_PIXELS // 1_000_000} million pixels"
        )
    most = min(MOST_PIXELS, max(_GROWTH * width * height, _ROOM))
    stream.thread_type = "AUTO"
    context.thread_count = max(1, min(_MOST_THREADS, _IN_FLIGHT // most, (os.cpu_count() or 1) + 1))
    context.options = {"max_pixels": str(most)}


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"
