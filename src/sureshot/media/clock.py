"""Times of frames that can be relied on, from the times that files give them."""

import math
from typing import Any

_DEFAULT_STEP = 0.04  # seconds between frames where a file does not say
_SET_BACK = 1.0  # seconds: a clock that falls by more was set back; by less, it trembles
_LEAP = 43_200.0  # seconds: no pause is that long, but a 33-bit clock set back leaps 26 hours ahead


class Clock:
    """Times that begin near 0 and never fall, whatever the clock of the file does.

    Attributes:
        start: what the file's clock says at time 0; None until it is known.
        now: the time told last; before the first one, a step before 0.
        was_set: whether the file's clock was set in the middle of it.
    """

    def __init__(self, stream: Any) -> None:
        rate = stream.average_rate or stream.guessed_rate
        self._step = 1 / float(rate) if rate and 0.001 < float(rate) < 1000 else _DEFAULT_STEP
        self._ahead = 0.0  # seconds that packets are moved by
        self._newest: float | None = None
        self.now = -self._step
        self.was_set = False
        self.start: float | None = None
        if stream.start_time is not None and stream.time_base:
            self.start = float(stream.start_time * stream.time_base)

    def mend(self, packet: Any) -> None:
        """Let a packet follow the one before it where the file's clock was set back in between.

        Two recordings in one file do that. A damaged frame may come out of the decoder late, too,
        but packets are stored in the order of their decoding time.
        """
        if packet.dts is None or not packet.time_base:
            return
        decoded = float(packet.dts * packet.time_base)
        if self._newest is not None:
            passed = decoded + self._ahead - self._newest
            if not -_SET_BACK <= passed <= _LEAP:
                self.was_set = True
                self._ahead = self._newest + self._step - decoded
        self._newest = decoded + self._ahead
        ticks = round(self._ahead / packet.time_base)
        packet.dts += ticks
        if packet.pts is not None:
            packet.pts += ticks

    def tell(self, said: float | None) -> float:
        """Seconds from the start of a frame that the file puts at ``said``, or nowhere."""
        if said is None or not math.isfinite(said):
            self.now += self._step
        else:
            self.start = said if self.start is None else self.start
            self.now = max(self.now, said - self.start)
        self.now = max(self.now, 0.0)
        return self.now
