"""The same film in all kinds of files: red, then green, then blue, two seconds each."""

import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from sureshot.models.encoders.toy import COLOURS
from tests.clips import film, remuxed

KINDS = (
    *("h264", "hevc", "mpeg4", "vp9", "av1", "mjpeg", "mpeg2", "gif", "frames"),
    *("h264-mkv", "vp9-mkv", "av1-mkv"),
)
_RATE = 10
# Written once and kept. As root SVT-AV1 gives the process that calls it the highest real-time
# priority, which every browser and server it starts inherits; two of them that wait for anybody
# else then hold both cores for good. What x265 writes depends on the processor.
_KEPT = {kind: Path(__file__).with_name(f"{kind}.mp4") for kind in ("av1", "hevc")}
_ENCODERS = {
    "h264": ("mp4", "libx264", "yuv420p"),
    "mpeg4": ("mp4", "mpeg4", "yuv420p"),
    "vp9": ("webm", "libvpx-vp9", "yuv420p"),
    "mjpeg": ("avi", "mjpeg", "yuvj420p"),
    "mpeg2": ("mpg", "mpeg2video", "yuv420p"),
    "gif": ("gif", "gif", "rgb8"),
}


def _pictures() -> list[np.ndarray]:
    shown = []
    for colour in ("red", "green", "blue"):
        for number in range(2 * _RATE):
            picture = np.full((96, 128, 3), COLOURS[colour], np.uint8)
            picture[8:16, 4 * number : 4 * number + 8] = 128
            shown.append(picture)
    return shown


def written(kind: str, folder: Path) -> Path:
    """The film as one kind of file."""
    pictures = _pictures()
    if kind == "frames":
        place = folder / "frames"
        place.mkdir()
        for number, picture in enumerate(pictures[:: 2 * _RATE // 2]):  # one a second
            Image.fromarray(picture).save(place / f"{number:03}.png")
        return place
    if kind.endswith("-mkv"):
        (folder / "before").mkdir()
        made = remuxed(
            written(kind.removesuffix("-mkv"), folder / "before"), folder / f"{kind}.mkv"
        )
        shutil.rmtree(folder / "before")
        return made
    if kind in _KEPT:
        return Path(shutil.copy(_KEPT[kind], folder))
    suffix, codec, pixels = _ENCODERS[kind]
    rate = 25 if kind == "mpeg2" else _RATE
    times = [round(1000 * number / _RATE) for number in range(len(pictures))]
    even = [pictures[number * _RATE // rate] for number in range(6 * rate)]
    return film(
        folder / f"{kind}.{suffix}",
        even if kind == "mpeg2" else pictures,
        rate=rate,
        times=times if suffix in ("mp4", "webm") else None,
        codec=codec,
        pixels=pixels,
    )
