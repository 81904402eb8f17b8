"""Packets of a video, of which those are left out whose pictures an index can do without.

Two kinds: pictures that soon give way to the next one, where no other is worked out from them; and
those shortly before a keyframe that has the colours of the picture before them, so that no cut is
in between.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import av
import av.error
import numpy as np
from jaxtyping import Float

from sureshot.media.frames import FileFrame, Scalers
from sureshot.media.windows import THUMBNAIL, colour_change, colour_shares

_SOON = 0.06  # seconds until the next picture, so that one in between is not missed
_REORDERED = 16  # packets that may come between two whose pictures follow each other
_SPARED = 0.5  # seconds after which a picture is decoded even if no other depends on it
_AHEAD = 600  # packets, and
_AHEAD_BYTES = 1 << 25  # bytes, that are held to look for the next keyframe, at most
_ALIKE = 0.2  # colours of a keyframe that may have changed; a cut changes more
_LOOK = 0.25  # seconds between pictures that are compared with the next keyframe
_Colours = Float[np.ndarray, "4 3 bins"]


class Needed:
    """The packets of a track that are to be decoded, in their order.

    Where some are left out comes an empty one: the decoder then gives the frames that it still has,
    and is to begin from nothing.

    Args:
        packets: all of them; times are those that frames will have.
        context: their decoder, whose ``skip_frame`` is set before each packet.
        gap: seconds before a keyframe, at most, that are left out where it has the colours of the
            picture at their start. What is shown in between for less is not seen.
    """

    def __init__(self, packets: Iterator[Any], context: Any, gap: float) -> None:
        self.empty: Any = None  # the last empty packet
        self._packets = packets
        self._context = context
        self._gap = gap
        self._colours_of = _ahead_of_time(context)
        self._waiting: deque[Any] = deque()
        self._keys: deque[Any] = deque()  # of those waiting
        self._bytes = 0  # of those waiting
        self._near: deque[int] = deque(maxlen=2 * _REORDERED)  # when pictures about here are shown
        self._tick = 0.0
        self._whole = -math.inf  # seconds: the last picture decoded in any case
        self._from = -math.inf  # ticks: what is shown before is left out
        self._shown: FileFrame | None = None
        self._shown_at = self._looked = -math.inf  # ticks

    def show(self, frame: FileFrame, pts: int | None) -> None:
        """Take note of a frame that was decoded."""
        if pts is not None:
            self._shown, self._shown_at = frame, pts

    def __iter__(self) -> Iterator[Any]:
        for packet in self._packets:
            self._waiting.append(packet)
            self._bytes += packet.size
            if packet.pts is not None:
                self._tick = float(packet.time_base or 0)
                if packet.is_keyframe:
                    self._keys.append(packet)
            if len(self._waiting) <= _REORDERED:
                if packet.pts is not None:
                    self._near.append(packet.pts)
                continue
            while self._is_enough():
                yield from self._first()
        while self._waiting:
            yield from self._first()

    def _is_enough(self) -> bool:
        """Whether what follows the first packet is known as far as it matters or can be held."""
        waiting = self._waiting
        if len(waiting) <= _REORDERED:
            return False
        if self._keys or len(waiting) > _AHEAD or self._bytes > _AHEAD_BYTES:
            return True
        first, last = waiting[0].pts, waiting[-1].pts
        return first is None or last is None or (last - first) * self._tick > self._gap

    def _first(self) -> Iterator[Any]:
        packet = self._waiting.popleft()
        self._bytes -= packet.size
        if len(self._waiting) >= _REORDERED:
            later = self._waiting[_REORDERED - 1].pts
            if later is not None:
                self._near.append(later)
        if packet.pts is None:
            self._context.skip_frame = "DEFAULT"
            yield packet
            return
        if self._keys and packet is self._keys[0]:
            self._keys.popleft()
            if packet.pts == self._from:
                self.empty = av.Packet()
                self.empty.stream, self.empty.time_base = packet.stream, packet.time_base
                yield self.empty
        elif self._keys and self._is_still():
            self._from = self._keys[0].pts
        if packet.pts < self._from:
            return
        time = packet.pts * self._tick
        passes = (
            self._context.has_b_frames
            and abs(time - self._whole) < _SPARED
            and any(0 < (pts - packet.pts) * self._tick <= _SOON for pts in self._near)
        )
        self._whole = self._whole if passes else time
        self._context.skip_frame = "NONREF" if passes else "DEFAULT"
        yield packet

    def _is_still(self) -> bool:
        """Whether the next keyframe is near and has the colours of what is on screen."""
        key = self._keys[0]
        if self._shown is None or not 0 < (key.pts - self._shown_at) * self._tick <= self._gap:
            return False
        if abs(self._shown_at - self._looked) * self._tick < _LOOK:
            return False
        self._looked = self._shown_at
        colours = self._colours_of(key)
        return colours is not None and colour_change(_colours(self._shown), colours) < _ALIKE


def _colours(frame: FileFrame) -> _Colours:
    return colour_shares(frame.thumbnail(*THUMBNAIL))


def _ahead_of_time(track: Any) -> Callable[[Any], _Colours | None]:
    """What gives the colours of a keyframe before its turn; None if it cannot be decoded alone."""
    scalers, decoder = Scalers(), None

    @lru_cache(maxsize=1)
    def colours(packet: Any) -> _Colours | None:
        nonlocal decoder
        try:
            if decoder is None:
                decoder = av.CodecContext.create(track.codec, "r")
                decoder.extradata = track.extradata
                decoder.options = dict(track.options)
                decoder.thread_count = 1
            frames = [*decoder.decode(packet), *decoder.decode(None)]
            decoder.flush_buffers()
        except (av.error.FFmpegError, ValueError):
            return None
        if len(frames) != 1 or frames[0].is_corrupt:
            return None
        return _colours(FileFrame(0.0, frames[0], 1.0, scalers))

    return colours
