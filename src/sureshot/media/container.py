"""Opening foreign files: plain containers only, and never a file besides the one that was named.

ffmpeg knows some 370 formats. A dozen of them are lists of other files, addresses or devices, and
it goes by what a file begins with, so a playlist named `.mp4` would be followed. Two locks hold:

* Formats that are not in `PLAIN` are refused before anything but their first bytes is looked at.
* ffmpeg opens nothing. It gets the open file, and no protocol to open another one by.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path

import av
import av.error
from av.container import InputContainer

from sureshot.errors import VideoError
from sureshot.media.effort import MOST_PIXELS, Effort

# fmt: off
# Formats of ffmpeg's that read one file, by its names. What is left out: all that open others
# (concat, dash, hls, image2, imf, mlv, rtp, rtsp, sap, sdp, vobsub, webm_dash_manifest), devices
# (alsa, fbdev, kmsgrab, lavfi, oss, v4l2, x11grab), drawings and text taken for pictures (svg, tty,
# bin, xbin, adf, idf), formats of old games, bare samples without a header, and what is to come.
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
_HEAD = 4096  # bytes that tell a playlist
_BUFFER = 1 << 16  # bytes that ffmpeg asks for at once
_OPENING = 60.0  # seconds
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


@contextmanager
def open_container(path: Path, effort: Effort | None = None) -> Iterator[InputContainer]:
    """The file as ffmpeg sees it, closed at the end.

    Args:
        path: the file.
        effort: what reading it may cost, told of each read; None limits the opening only.

    Raises:
        VideoError: it is a playlist, or takes too long; the message is the reason, without the
            path.
        av.error.FFmpegError: it is no plain container, or is damaged.
        OSError: it cannot be opened.
    """
    with path.open("rb", buffering=0) as file:
        effort = effort or Effort(path.stat().st_size)
        effort.begin()
        try:
            container = av.open(
                _Reader(path, file, effort),
                metadata_errors="ignore",
                # The size of frames holds for the decoders that ffmpeg tries while it opens, too.
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
        finally:
            effort.end()
        assert isinstance(container, InputContainer)
        with container:
            yield container


class _Reader:
    """An open file that asks before each read whether reading goes on.

    Attributes:
        name: path of the file; ffmpeg looks at its suffix.
    """

    def __init__(self, path: Path, file: RawIOBase, effort: Effort) -> None:
        self.name = str(path)
        self._effort = effort
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, count: int) -> bytes:
        self._effort.wait()
        return self._file.read(count) or b""


def _playlist(file: RawIOBase) -> str:
    """What kind of list of other files it is; empty if none."""
    with suppress(OSError):
        file.seek(0)
        head = (file.read(_HEAD) or b"").removeprefix(b"\xef\xbb\xbf").lstrip()
        for kind, start in _PLAYLISTS:
            if re.match(start, head, re.IGNORECASE | re.DOTALL | re.MULTILINE):
                return kind
    return ""
