"""Frame rates and timecodes as cameras write and editors count them (SMPTE ST 12-1)."""

import re
import statistics
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import av

from sureshot.errors import VideoError
from sureshot.media.container import limit_decoder, open_container
from sureshot.media.video import file_size, picture_stream, pixel_ratio, reading

_RATES = (
    *(Fraction(n) for n in (24, 25, 30, 48, 50, 60, 100, 120, 240)),
    *(Fraction(n * 1000, 1001) for n in (24, 30, 48, 60, 120, 240)),
)
_NEAR = 0.0004  # share by which a rate may miss one of these that it means; 29.97 and 30 are 0.001
_VARIES = 0.1  # share of a frame by which its length differs from the others
_LEAST = Fraction(9, 10)  # frames per second that a timecode can count
_PROBED = 300  # packets that are looked at where a file has no table of its frames
_TIMECODE = re.compile(r"(\d\d):(\d\d):(\d\d)([:;.,])(\d{2,3})")


@dataclass(frozen=True, slots=True)
class Timing:
    """How the frames of a video are counted; width, height and pixels are of upright pictures."""

    rate: Fraction  # frames per second; where that varies, about how many
    first: int  # number of the first frame by the timecode that the file begins with; 0 without one
    drop: bool  # whether that leaves numbers out (29.97 drop-frame), so as to keep the time
    varies: bool  # whether frames last differently long
    length: int  # in frames
    width: int
    height: int
    sound: tuple[int, int] | None = None  # samples per second and channels
    pixel: Fraction = Fraction(1)  # width of a pixel over its height

    def timecode(self, frame: int) -> str:
        """Timecode of a frame, counted from the first one of the file."""
        return timecode(self.first + frame, self.rate, drop=self.drop)


@reading()
def read_timing(path: Path) -> Timing:
    """How the frames of a video file are counted; VideoError if it does not say."""
    file_size(path)
    with open_container(path) as container:
        width, height, pixel = _size(container)
    with open_container(path) as container:
        stream = picture_stream(container)
        rate, varies = _rate(container, stream)
        if rate < _LEAST:
            raise VideoError(
                f"has {float(rate):.3g} frames per second, and editors count no fewer than 1; "
                "export it as clips"
            )
        stated = stream.metadata | container.metadata
        written = next((v for k, v in stated.items() if k.lower() == "timecode"), "")
        seconds = float((stream.duration or 0) * (stream.time_base or 0))
        seconds = seconds or (container.duration or 0) / av.time_base
        sound = next((s.codec_context for s in container.streams.audio if s.codec_context), None)
        drop = bool(re.search(r"[;.,]", written)) and round(rate) % 30 == 0
        return Timing(
            rate=rate,
            first=frame_number(written, rate, drop=drop),
            drop=drop,
            varies=varies,
            length=max(1, round(seconds * rate)),
            width=width,
            height=height,
            sound=(sound.sample_rate, sound.channels) if sound else None,
            pixel=pixel,
        )


def timecode(frame: int, rate: Fraction, *, drop: bool = False) -> str:
    """Timecode of a frame number, which begins again after a day.

    Examples:
        >>> timecode(1800, Fraction(30000, 1001), drop=True), timecode(90, Fraction(25))
        ('00:01:00;02', '00:00:03:15')
    """
    base = round(rate)
    if drop:  # numbers 0 and 1 (of 60: to 3) of each minute but each tenth are left out
        left_out = base // 15
        tens, rest = divmod(frame, 600 * base - 9 * left_out)
        frame += left_out * (9 * tens + max(0, (rest - left_out) // (60 * base - left_out)))
    seconds, number = divmod(frame, base)
    minutes, second = divmod(seconds, 60)
    mark, digits = ";" if drop else ":", len(str(base - 1))
    hours = minutes // 60 % 24
    return f"{hours:02}:{minutes % 60:02}:{second:02}{mark}{number:0{max(2, digits)}}"


def frame_number(written: str, rate: Fraction, *, drop: bool) -> int:
    """The frame number of a timecode; 0 of what is none.

    Examples:
        >>> frame_number("00:01:00;02", Fraction(30000, 1001), drop=True)
        1800
    """
    if not (match := _TIMECODE.fullmatch(written)):
        return 0
    hours, minutes, seconds, number = (int(match[place]) for place in (1, 2, 3, 5))
    base, minutes = round(rate), 60 * hours + minutes
    left_out = (base // 15) * (minutes - minutes // 10) if drop else 0
    return (60 * minutes + seconds) * base + number - left_out


def _size(container: Any) -> tuple[int, int, Fraction]:
    """Width and height of the first frame as it is shown, and the shape of its pixels."""
    stream = picture_stream(container)
    limit_decoder(stream)
    frame = next(container.decode(stream), None)
    if frame is None:
        raise VideoError("holds no frame that can be decoded")
    pixel = Fraction(pixel_ratio(stream)).limit_denominator(1000)
    if round(frame.rotation / 90) % 2:
        return frame.height, frame.width, 1 / pixel
    return frame.width, frame.height, pixel


def _rate(container: Any, stream: Any) -> tuple[Fraction, bool]:
    """Frames per second, and whether that varies."""
    ticks = [entry.timestamp for entry in islice(stream.index_entries, 100_000)]
    if not stream.frames or len(ticks) < min(stream.frames, 100_000):  # of keyframes alone
        packets = islice(container.demux(stream), _PROBED)
        ticks = [packet.pts for packet in packets if packet.pts is not None]
        ticks = sorted(ticks)[: max(2, len(ticks) - 8)]  # the last ones may lack those between
    lengths = [after - before for before, after in pairwise(sorted(ticks)) if after > before]
    usual = statistics.median(lengths) if lengths else 0
    allowed = 1.5 + _VARIES * usual  # times are rounded to a tick
    # The last frame may last longer.
    if any(abs(length - usual) > allowed for length in lengths[:-1]):
        return _known(1 / (Fraction(usual) * stream.time_base), 0.02), True
    if stream.average_rate and 0.01 < stream.average_rate < 1000:
        return _known(stream.average_rate, _NEAR), False
    if not usual:
        raise VideoError("states no frame rate, which editors need")
    return _known(1 / (Fraction(usual) * stream.time_base), 0.02), False


def _known(rate: Fraction, near: float) -> Fraction:
    """The usual rate that a measured one means, else the measured one, rounded."""
    close = min(_RATES, key=lambda usual: abs(usual - rate))
    return close if abs(close - rate) <= near * rate else Fraction(rate).limit_denominator(1001)
