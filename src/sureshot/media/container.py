"""Open untrusted files: plain containers only, within limits of time and size.

ffmpeg knows some 370 formats. A dozen of them are lists of other files, addresses or devices, and
it goes by what a file begins with, so a playlist named `.mp4` would be followed. Two locks hold:

* Formats that are not in `PLAIN` are refused before anything but their first bytes is looked at.
* ffmpeg opens nothing. It gets the open file, and no protocol to open another one by.

A file of two megabytes can claim a day of grey in 4K, or frames of 60,000 x 60,000 pixels. So the
time that a file may take goes by its size, and frames have at most `MOST_PIXELS`.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import Any, TypeVar

import av
import av.error
from av.container import InputContainer

from sureshot.errors import VideoError
from sureshot.media.discover import PHOTO_SUFFIXES, open_regular
from sureshot.media.workers import heartbeat

# 8192 x 8192 and 11,520 x 5760 pass, the largest that cameras for all directions write. The largest
# level of H.264, H.265 and AV1 that decoders know has half as many.
MOST_PIXELS = 1 << 26
# Seconds that any file may take, and bytes that buy one more. A film of 1 Mb/s gets 12 times as
# long as it lasts; a lecture of 60 kb/s, which hardly moves, 0.7 times, and needs a tenth.
_ANY = 120.0
_BYTES = 10_000
_SILENCE = 60.0  # seconds that one packet or frame may take
_OPENING = 60.0  # seconds
_IN_FLIGHT = 1 << 27  # pixels that the threads of one decoder hold together
_GROWTH = 4  # times as many pixels as declared that a frame may have midway
_ROOM = 1 << 23  # pixels that it may have in any case: 4096 x 2048
_MOST_THREADS = 16  # ffmpeg itself takes no more
_KEPT = 8  # frames that a decoder keeps to work out others from, and that are on their way
_PER_THREAD = 1 << 24  # bytes that a thread takes, however small its frames
_HEAD = 4096  # bytes that identify a playlist
_BUFFER = 1 << 16  # bytes that ffmpeg asks for at once

_Item = TypeVar("_Item")


# fmt: off
# Names of the ffmpeg formats that read one file. Left out: all that open others
# (concat, dash, hls, image2, imf, mlv, rtp, rtsp, sap, sdp, vobsub, webm_dash_manifest), devices
# (alsa, fbdev, kmsgrab, lavfi, oss, v4l2, x11grab), drawings and text taken for pictures (svg, tty,
# bin, xbin, adf, idf), formats of old games, bare samples without a header, and new ones.
PLAIN = frozenset({
    # Containers of moving pictures.
    "apng", "asf", "avi", "cine", "dhav", "dv", "flv", "gif", "gxf", "ivf", "jpegxl_anim",
    "kux", "live_flv", "lxf", "matroska", "mov", "mp4", "mpeg", "mpegts", "mxf", "mxg", "nsv",
    "nut", "nuv", "obu", "ogg", "pva", "rm", "ser", "swf", "ty", "webm", "wtv", "yuv4mpegpipe",
    # Bare streams of pictures.
    "apv", "av1", "avs2", "avs3", "cavsvideo", "dirac", "dnxhd", "evc", "h261", "h263", "h264",
    "hevc", "ipu", "m4v", "mjpeg", "mpegvideo", "vc1", "vc1test", "vvc",
    # One picture, which is a video of one frame.
    "bmp_pipe", "dds_pipe", "dpx_pipe", "exr_pipe", "gif_pipe", "hdr_pipe", "ico", "j2k_pipe",
    "jpeg_pipe", "jpegls_pipe", "jpegxl_pipe", "pam_pipe", "pbm_pipe", "pcx_pipe", "pgm_pipe",
    "png_pipe", "ppm_pipe", "psd_pipe", "qoi_pipe", "sgi_pipe", "sunrast_pipe", "tiff_pipe",
    "webp_pipe", "xbm_pipe", "xpm_pipe", "xwd_pipe",
    # Sound and subtitles, so that the reason is that they have no pictures.
    "aac", "ac3", "aiff", "amr", "ape", "ass", "au", "caf", "dts", "eac3", "flac", "mp3", "mpc",
    "mpc8", "srt", "tta", "w64", "wav", "webvtt", "wv",
})
# fmt: on
# How files begin that name others; white space and a mark of the encoding may come before.
_PLAYLISTS = (
    ("HLS or M3U", rb"#EXTM3U"),
    ("ffconcat", rb"ffconcat\s"),
    ("DASH", rb"(<\?xml[^>]*>)?\s*(<!--.*?-->\s*)*<([\w.-]+:)?MPD[\s>]"),
    ("IMF", rb"(<\?xml[^>]*>)?\s*(<!--.*?-->\s*)*<([\w.-]+:)?(AssetMap|CompositionPlaylist)[\s>]"),
    ("WebM DASH", rb"<webm_dash"),
    (
        "a player's list",
        rb"(<\?xml[^>]*>|<\?wpl[^>]*>)?\s*(<!--.*?-->\s*)*<(asx|smil|playlist|rss)[\s>]",
    ),
    ("a player's list", rb"\[(playlist|reference)\]"),
    ("SDP", rb"v=0\s.*?^[oscm]="),
    ("an address", rb"(rtsp|rtmp|mms|pnm|https?|concat|subfile|file)[a-z]*:"),
    ("DVD", rb"DVDVIDEO-V(MG|TS)"),
    ("VobSub", rb"# VobSub index file"),
    ("Magic Lantern", rb"MLVI"),
)


class TimeBudget:
    """Seconds that reading one file has cost so far; only time inside ffmpeg counts.

    The limit is two minutes and a second per 10 kB, unless it is given.
    """

    def __init__(
        self, size: int, seconds: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = _ANY + size / _BYTES if seconds is None else seconds
        self._size, self._clock = size, clock
        self._spent = self._heard = 0.0
        self._since: float | None = None

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count the time of a call that ffmpeg works in."""
        self._since = self._heard = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - self._since
            self._since = None

    def step(self) -> None:
        """A packet has come; VideoError if the whole took more than the limit."""
        heartbeat()
        now = self._heard = self._clock()
        if self._spent + (0.0 if self._since is None else now - self._since) > self.limit:
            size = self._size
            shown = f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"
            raise VideoError(f"took more than {self.limit:.0f} s, the most for a file of {shown}")

    def wait(self) -> None:
        """More is read for the next packet; VideoError if that has not come for a minute."""
        heard = self._heard
        if self._since is not None and self._clock() - heard > _SILENCE:
            raise VideoError(f"gave nothing for {_SILENCE:.0f} s", transient=True)
        self.step()
        self._heard = heard


def within_budget(items: Iterable[_Item], budget: TimeBudget) -> Iterator[_Item]:
    """The items that come out of ffmpeg; the work on each counts, the time between does not."""
    waiting = iter(items)
    while True:
        with budget.call():
            try:
                item = next(waiting)
            except StopIteration:
                return
        yield item


def limit_decoder(stream: Any) -> int:
    """Limit the frames of a stream that is not decoded yet, or refuse it; bytes it will hold.

    Frames that grow beyond the limit midway are damage to its decoder. Large frames get fewer
    threads, as each thread holds one.
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
    form, threads = context.format, context.thread_count
    frame = width * height * (form.bits_per_pixel if form else 12) // 8
    return int(frame * (_KEPT + threads) + _PER_THREAD * threads)


@contextmanager
def open_container(path: Path, budget: TimeBudget | None = None) -> Iterator[InputContainer]:
    """The file as ffmpeg sees it, closed at the end; without a budget only opening is limited.

    VideoError says, without the path, that it is a playlist or takes too long. ffmpeg's own error
    comes out of what is no plain container, or is damaged.
    """
    with open_regular(path) as file:
        budget = budget or TimeBudget(file.seek(0, os.SEEK_END))
        file.seek(0)
        try:
            with budget.call():
                container = av.open(
                    _Reader(path, file, budget),
                    metadata_errors="ignore",
                    # It holds for the decoders that ffmpeg tries while it opens, too.
                    options={"max_pixels": str(MOST_PIXELS)},
                    container_options={
                        "format_whitelist": ",".join(sorted(PLAIN)),
                        "protocol_whitelist": "none",
                    },
                    buffer_size=_BUFFER,
                    timeout=(_OPENING, None),
                )
        except av.error.ExitError:
            raise VideoError(f"could not be opened within {_OPENING:.0f} s") from None
        except (av.error.FFmpegError, OSError):
            if kind := _playlist(file):
                raise VideoError(
                    f"is a playlist ({kind}): it names other files; index the videos themselves"
                ) from None
            raise
        assert isinstance(container, InputContainer)
        with container:
            yield container


class _Reader:
    """An open file that asks before each read whether reading goes on."""

    def __init__(self, path: Path, file: RawIOBase, budget: TimeBudget) -> None:
        # ffmpeg looks at its suffix, and takes one of a picture for a pattern of names.
        self.name = "" if path.suffix.lower() in PHOTO_SUFFIXES else str(path)
        self._budget = budget
        self._file = file
        self.seek, self.tell = file.seek, file.tell
        self._failed = False

    def read(self, count: int) -> bytes:
        if self._failed:  # PyAV raises the first error, and prints each that comes before it does
            return b""
        self._failed = True
        self._budget.wait()
        data = self._file.read(count) or b""
        self._failed = False
        return data


def _playlist(file: RawIOBase) -> str:
    """What kind of list of other files it is; empty if none."""
    with suppress(OSError):
        file.seek(0)
        head = (file.read(_HEAD) or b"").removeprefix(b"\xef\xbb\xbf").lstrip()
        for kind, start in _PLAYLISTS:
            if re.match(start, head, re.IGNORECASE | re.DOTALL | re.MULTILINE):
                return kind
    return ""
