"""One frame of a video file or of a folder: upright, opaque, small enough to work with."""

import re
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import av
import av.error
import numpy as np
from av.sidedata.sidedata import SideDataContainer
from av.video.reformatter import VideoReformatter
from jaxtyping import Float32, UInt8

from sureshot.errors import VideoError, first_line
from sureshot.media.container import MOST_PIXELS
from sureshot.media.discover import PHOTO_SUFFIXES, open_regular
from sureshot.media.signature import FrameSize, shrunk

if TYPE_CHECKING:
    from PIL import Image

# By their bytes, whatever their names; Pillow would start a program for what calls itself EPS.
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "AVIF")
_HEIC = re.compile(rb"....ftyp(hei|hev|mif1|msf1)", re.DOTALL)
_LARGEST = 1024  # pixels of the shorter side that an image of a folder is held in
# Colour matrices by the numbers of H.273 that ffmpeg can undo; it refuses frames with other ones,
# which wrong colours are better than.
_UNKNOWN = 2
_MATRICES = frozenset({0, 1, _UNKNOWN, 4, 5, 6, 7, 9})
# Transfer functions of HDR, by the numbers of H.273: films and phones, phones and television.
_PQ, _HLG = 16, 18
_WHITE = 203.0  # candelas a square metre of a white sheet in HDR, by BT.2408
_PEAK = 1000.0  # of the display that HLG is made for, and of most PQ
_KNEE = 0.3  # share of that white up to which tone mapping leaves light alone
_LUMINANCE_2020 = np.array([0.2627, 0.6780, 0.0593], np.float32)
_FROM_2020 = np.array(  # to the primaries of BT.709
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], np.float32
)


@runtime_checkable
class Frame(Protocol):
    """One decoded frame; pixels are converted only when asked for."""

    time: float  # seconds from the start of the video, never falling
    pixels: int  # that it holds in memory

    def thumbnail(self, width: int, height: int) -> UInt8[np.ndarray, "height width 3"]:
        """A small RGB picture of exactly this size, to compare frames."""
        ...

    def image(self, size: FrameSize) -> UInt8[np.ndarray, "height width 3"]:
        """RGB, upright, in square pixels: shrunk to a shorter side, or as a function makes it."""
        ...


@dataclass(frozen=True, slots=True)
class Scalers:
    """The scalers of one video, one per purpose: setting one up costs more than using it."""

    thumbnail: VideoReformatter = field(default_factory=VideoReformatter)
    image: VideoReformatter = field(default_factory=VideoReformatter)
    whole: VideoReformatter = field(default_factory=VideoReformatter)


class FileFrame:
    """A frame of a file; ``ratio`` is the width of a pixel over its height.

    The colour matrix of the decoded frame may be changed.
    """

    def __init__(self, time: float, frame: av.VideoFrame, ratio: float, scalers: Scalers) -> None:
        self.time = time
        if frame.colorspace not in _MATRICES:
            frame.colorspace = _UNKNOWN
        self.pixels = frame.width * frame.height
        self._frame = frame
        # A wide pixel may not make a huge picture of a large one.
        self._ratio = ratio if self.pixels * ratio <= MOST_PIXELS else 1.0
        self._scalers = scalers

    def thumbnail(self, width: int, height: int) -> UInt8[np.ndarray, "height width 3"]:
        """As in `Frame`, but not turned upright: copies of one file compare all the same."""
        return self._rgb(self._scalers.thumbnail, width, height)

    def image(self, size: FrameSize) -> UInt8[np.ndarray, "height width 3"]:
        """As in `Frame`."""
        width, height = self._frame.width * self._ratio, self._frame.height
        if callable(size):
            whole = self._rgb(self._scalers.whole, max(1, round(width)), height)
            return size(_upright(whole, self._frame))
        return _upright(self._rgb(self._scalers.image, *shrunk(width, height, size)), self._frame)

    def _rgb(
        self, scaler: VideoReformatter, width: int, height: int
    ) -> UInt8[np.ndarray, "height width 3"]:
        frame, form = self._frame, self._frame.format
        alpha = has_alpha(form)
        kind = "rgba" if alpha else "rgb24"
        if frame.interlaced_frame and 3 * height < 2 * frame.height and not alpha:
            frame = _field(frame)
        try:
            # AREA looks at every pixel: cheaper ways see other ones in each frame and find motion.
            small = scaler.reformat(frame, width, height, kind, interpolation="AREA", threads=1)
        except (av.error.FFmpegError, ValueError) as error:
            raise VideoError(f"has frames of a kind that cannot be shown ({form.name})") from error
        pixels: UInt8[np.ndarray, "h w c"] = small.to_ndarray().astype(np.uint8, copy=False)
        return _tone_mapped(flatten(pixels) if alpha else pixels, self._frame.color_trc)


def _field(frame: av.VideoFrame) -> av.VideoFrame:
    """Every other line of an interlaced frame; those between are of another instant, a comb."""
    field = av.VideoFrame(frame.width, (frame.height + 1) // 2, frame.format.name)
    field.colorspace, field.color_range = frame.colorspace, frame.color_range
    for part, half in zip(frame.planes, field.planes, strict=True):
        if part.line_size < 0:  # it is stored upside down
            return frame
        lines, kept = (
            np.asarray(memoryview(plane)).reshape(-1, plane.line_size) for plane in (part, half)
        )
        width = min(part.line_size, half.line_size)
        kept[:, :width] = lines[::2, :width][: len(kept)]
    return field


class ImageFrame:
    """A frame of a folder of frames, as `read_image` gives it.

    Its file is read again where all pixels are wanted and the picture has fewer.
    """

    def __init__(self, time: float, picture: "Image.Image", path: Path) -> None:
        self.time = time
        self.pixels = picture.width * picture.height
        self._picture = picture
        self._path = path

    def thumbnail(self, width: int, height: int) -> UInt8[np.ndarray, "height width 3"]:
        """As in `Frame`, by an area filter."""
        from PIL import Image

        return np.asarray(self._picture.resize((width, height), Image.Resampling.BOX))

    def image(self, size: FrameSize) -> UInt8[np.ndarray, "height width 3"]:
        """As in `Frame`, by an area filter; VideoError if a large file has changed or gone."""
        if not callable(size):
            return self.thumbnail(*shrunk(*self._picture.size, size))
        whole = min(self._picture.size) < _LARGEST
        return size(np.asarray(self._picture if whole else read_image(self._path, None)))


def read_image(path: Path, largest: int | None = _LARGEST) -> "Image.Image":
    """An image file in RGB: upright, over white where it is transparent, not needlessly large.

    ``largest`` is most pixels of the shorter side; VideoError says why it cannot be read.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with open_image(path) as opened:
            if largest is not None:
                opened.draft("RGB", (largest, largest))  # of JPEG alone
            if opened.format != "JPEG" and opened.width * opened.height > MOST_PIXELS:
                raise Image.DecompressionBombError
            picture = _eight_bit(ImageOps.exif_transpose(opened), largest)
    except UnidentifiedImageError:
        is_heic = "is a HEIC photo, which cannot be read here; save it as JPEG"
        raise VideoError(is_heic if _is_heic(path) else "is not an image") from None
    # Pillow's readers of broken files are not more precise than this.
    except (OSError, ValueError, SyntaxError, EOFError, TypeError, Warning, struct.error) as error:
        # Pillow's own complaints have no number; what the system refuses may be granted next time.
        refused = getattr(error, "errno", None) is not None
        reason = getattr(error, "strerror", None) or first_line(error)
        raise VideoError(reason.lower(), transient=refused) from None
    except Image.DecompressionBombError:
        most, jpeg = MOST_PIXELS // 1_000_000, 2 * (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
        raise VideoError(
            f"is too large; the most is {most} million pixels, of JPEG {jpeg}"
        ) from None
    return picture


@contextmanager
def open_image(path: Path) -> Iterator["Image.Image"]:
    """An image file as Pillow sees it, of which no pixels are read yet."""
    from PIL import Image

    # Our limit is above that of its warning, at which it is an error.
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    # Buffered, as Pillow reads a few bytes at a time.
    with (
        BufferedReader(open_regular(path)) as file,
        Image.open(file, formats=_FORMATS) as opened,
    ):
        yield opened


def is_photo(path: Path) -> bool:
    """Whether a file is one picture, going by its name and whether it moves."""
    if path.suffix.lower() not in PHOTO_SUFFIXES:
        return False
    try:
        with open_image(path) as opened:
            # ffmpeg reads no WebP that moves: of that the first picture counts.
            return opened.format == "WEBP" or not getattr(opened, "is_animated", False)
    except Exception:
        return True  # reading it says what is wrong


def _is_heic(path: Path) -> bool:
    """Whether a file begins as photos of newer phones do."""
    with suppress(OSError), open_regular(path) as file:
        return bool(_HEIC.match(file.read(16) or b""))
    return False


def _eight_bit(picture: "Image.Image", largest: int | None) -> "Image.Image":
    """RGB with eight bits a channel, shrunk to so many pixels of the shorter side."""
    from PIL import Image

    if picture.mode.startswith("I"):  # 16-bit grey, which `convert` would clip to white
        grey = np.clip(np.asarray(picture) // 256, 0, 255)
        picture = Image.fromarray(grey.astype(np.uint8))
    has_holes = "A" in picture.getbands() or "transparency" in picture.info
    picture = picture.convert("RGBA" if has_holes else "RGB")
    size = picture.size if largest is None else shrunk(*picture.size, largest)
    if picture.size != size:  # first, as to lay a large one over white takes ten times its memory
        picture = picture.resize(size, Image.Resampling.BOX)
    return Image.fromarray(flatten(np.asarray(picture))) if has_holes else picture


def has_alpha(form: av.VideoFormat) -> bool:
    """Whether frames of a pixel format may be transparent somewhere."""
    return form.has_palette or any(part.is_alpha for part in form.components)


def flatten(rgba: UInt8[np.ndarray, "h w 4"]) -> UInt8[np.ndarray, "h w 3"]:
    """Transparent pixels over white, as a viewer shows them."""
    alpha = rgba[..., 3:].astype(np.uint16)
    return ((rgba[..., :3] * alpha + 255 * (255 - alpha)) // 255).astype(np.uint8)


def _tone_mapped(rgb: UInt8[np.ndarray, "h w 3"], transfer: int) -> UInt8[np.ndarray, "h w 3"]:
    """HDR as an ordinary display shows it; other pictures as they are.

    Light up to a third of white is kept, what is brighter is bent to fit (BT.2100's curves, the
    Moebius curve of ffmpeg's tonemap), and BT.2020's colours become BT.709's.
    """
    if transfer not in (_PQ, _HLG):
        return rgb
    light = _light(transfer)[rgb]
    if transfer == _HLG:  # a display of this peak brightens the scene by its gamma of 1.2
        light *= (light @ _LUMINANCE_2020)[..., None] ** 0.2
        light *= _PEAK / _WHITE
    brightest, peak, knee = light.max(axis=-1, keepdims=True), _PEAK / _WHITE, _KNEE
    below = -knee * knee * (peak - 1) / (knee * knee - 2 * knee + peak)
    above = (knee * knee - 2 * knee * peak + peak) / (peak - 1)
    scale = (above * above + 2 * above * knee + knee * knee) / (above - below)
    bent = scale * (brightest + below) / (brightest + above)
    light *= np.where(brightest > knee, bent / np.maximum(brightest, knee), 1)
    shown = np.clip(light @ _FROM_2020.T, 0, 1) ** (1 / 2.4)
    return (shown * 255 + 0.5).astype(np.uint8)


@cache
def _light(transfer: int) -> Float32[np.ndarray, "256"]:
    """Light of each code value: of PQ in units of white, of HLG in units of its peak."""
    code = np.arange(256) / 255
    if transfer == _PQ:
        root = code ** (32 / 2523)
        over = np.maximum(root - 107 / 128, 0) / (2413 / 128 - 2392 / 128 * root)
        light = over ** (8192 / 1305) * 10_000 / _WHITE
    else:
        bright = (np.exp((code - 0.55991073) / 0.17883277) + 0.28466892) / 12
        light = np.where(code <= 0.5, code * code / 3, bright)
    return light.astype(np.float32)


def _upright(
    rgb: UInt8[np.ndarray, "h w 3"], frame: av.VideoFrame
) -> UInt8[np.ndarray, "height width 3"]:
    """The picture turned and mirrored as the display matrix of its frame asks, if it has one.

    The matrix of an mp4 takes (x, y) to (ax + cy, bx + dy), y pointing down.
    """
    # Its own `side_data` and the frame hold each other, so that frames would wait in memory for the
    # garbage collector, which counts objects and not pixels: ten gigabytes of 40 large frames.
    try:
        data: Any = SideDataContainer(frame).get("DISPLAYMATRIX")  # type: ignore[call-arg]
    except ValueError:  # PyAV does not know all kinds of data that a frame may have, such as EXIF
        return np.ascontiguousarray(np.rot90(rgb, round(frame.rotation / 90) % 4))
    if data is None:
        return rgb
    a, b, _, c, d = struct.unpack("=5i", bytes(data)[:20])
    across, down = a, d
    if abs(b) > abs(a):
        rgb, across, down = rgb.transpose(1, 0, 2), c, b
    return np.ascontiguousarray(rgb[:: -1 if down < 0 else 1, :: -1 if across < 0 else 1])
