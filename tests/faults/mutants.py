"""Damaged and hostile media from a seed, each read in every way that Sureshot reads videos.

`python -m tests.faults.mutants FOLDER SEED FIRST COUNT` reads that many and prints what is wrong
with them. It runs as a process of its own, so that a crash or a hang of ffmpeg has a number.
"""

import contextlib
import os
import random
import resource
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sureshot.errors import VideoError
from sureshot.media.discover import Source
from sureshot.media.excerpt import footage
from sureshot.media.video import frames_at, open_video
from tests.clips import film, patterns
from tests.openers import openers, referring

FORMATS = (
    ("mp4", "libx264", "yuv420p"), ("mov", "mjpeg", "yuvj420p"), ("mkv", "libx264", "yuv420p"),
    ("mkv", "ffv1", "yuv420p"), ("webm", "libvpx", "yuv420p"), ("avi", "mpeg4", "yuv420p"),
    ("avi", "mjpeg", "yuvj420p"), ("mpg", "mpeg2video", "yuv420p"), ("ts", "libx264", "yuv420p"),
    ("flv", "flv1", "yuv420p"), ("wmv", "wmv2", "yuv420p"), ("gif", "gif", "rgb8"),
    ("apng", "apng", "rgb24"), ("mjpeg", "mjpeg", "yuvj420p"), ("nut", "mpeg4", "yuv420p"),
    ("y4m", "rawvideo", "yuv420p"), ("h264", "libx264", "yuv420p"), ("ogg", "flac", ""),
)  # fmt: skip
_FRAMES = 300  # read of one file
_MEMORY = 6 << 30  # bytes of address space that the whole process may take


def originals(folder: Path) -> list[Path]:
    """Small sound videos in all containers, made once."""
    pipe = folder / "other.mp4"
    os.mkfifo(pipe)  # whoever opens it to read waits forever
    for number, (suffix, codec, pixels) in enumerate(FORMATS):
        if pixels:
            rate = 25 if codec == "mpeg2video" else 10
            path = folder / f"{number:02}.{suffix}"
            film(path, patterns(12, (64, 48)), codec=codec, pixels=pixels, rate=rate)
    for name, content in openers(pipe).items():
        (folder / f"list-{name}.mp4").write_bytes(content)
    referring(folder / "00.mp4", pipe, folder / "refers.mov")
    return sorted(path for path in folder.iterdir() if path.is_file())


def mutant(originals: list[Path], seed: int, number: int) -> tuple[str, bytes]:
    """Suffix and bytes of a case; the same for the same seed and number."""
    draw = random.Random(f"{seed}/{number}")
    path = draw.choice(originals)
    data = bytearray(path.read_bytes())
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        data = draw.choice(_WAYS)(data, draw, originals)
    suffix = path.suffix if draw.random() < 0.6 else draw.choice(originals).suffix
    return suffix, bytes(data)


def _flip(data: bytearray, draw: random.Random, _: list[Path]) -> bytearray:
    for _ in range(draw.choice((1, 4, 30))):
        if data:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data


def _head(data: bytearray, draw: random.Random, _: list[Path]) -> bytearray:
    for _ in range(draw.choice((1, 3, 10))):
        if data:
            data[draw.randrange(min(len(data), 600))] = draw.choice((0, 1, 127, 128, 255))
    return data


def _number(data: bytearray, draw: random.Random, _: list[Path]) -> bytearray:
    """Four bytes that may be a length, a size or a time become an extreme one."""
    at = draw.randrange(max(1, len(data) - 4))
    extreme = draw.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xEA60EA60, 0xFFFF))
    data[at : at + 4] = extreme.to_bytes(4, draw.choice(("big", "little")))
    return data


def _cut(data: bytearray, draw: random.Random, _: list[Path]) -> bytearray:
    return data[: draw.randrange(1, max(2, len(data)))]


def _swap(data: bytearray, draw: random.Random, _: list[Path]) -> bytearray:
    size = draw.choice((4, 16, 188, 1000))
    one, two = draw.randrange(max(1, len(data))), draw.randrange(max(1, len(data)))
    data[one : one + size], data[two : two + size] = data[two : two + size], data[one : one + size]
    return data


def _repeat(data: bytearray, draw: random.Random, _: list[Path]) -> bytearray:
    at = draw.randrange(max(1, len(data)))
    block = data[at : at + draw.choice((8, 188, 2000))]
    return data[:at] + block * draw.choice((2, 20)) + data[at:]


def _splice(data: bytearray, draw: random.Random, originals: list[Path]) -> bytearray:
    other = draw.choice(originals).read_bytes()
    return data[: draw.randrange(max(1, len(data)))] + other[draw.randrange(max(1, len(other))) :]


def _zero(data: bytearray, draw: random.Random, _: list[Path]) -> bytearray:
    at, size = draw.randrange(max(1, len(data))), draw.choice((16, 512, 4096))
    data[at : at + size] = bytes(len(data[at : at + size]))
    return data


_WAYS: tuple[Callable[[bytearray, random.Random, list[Path]], bytearray], ...] = (
    _flip, _flip, _head, _number, _number, _cut, _swap, _repeat, _splice, _zero,
)  # fmt: skip


def faults(path: Path, ended: Counter[str]) -> list[str]:
    """What is wrong with how a file is read: each way gives frames or a reason in one line.

    Args:
        path: the file.
        ended: how often reading has ended in which way so far; counted on.
    """
    found = []
    for name, way in (("index", _index), ("look", _look), ("export", _export)):
        try:
            way(path)
            ended["frames"] += name == "index"
        except VideoError as error:
            ended["a reason"] += name == "index"
            told = str(error)
            if not told or "\n" in told or len(told) > 300 or str(path.parent) in told:
                found.append(f"{name}: unclear reason {told!r}")
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found


def _index(path: Path) -> None:
    last = 0.0
    with open_video(Source(path, "file", path.stat().st_size, 0)) as video:
        for number, frame in enumerate(video):
            frame.thumbnail(8, 8)
            if frame.image(32).shape[2] != 3 or not frame.time >= last:
                raise AssertionError("times fall, or a frame is no picture")
            last = frame.time
            if number > _FRAMES:
                break


def _look(path: Path) -> None:
    frames_at(path, [0.0, 0.5, 7.0], side=32)


def _export(path: Path) -> None:
    pictures, sounds = footage(path, 0.2, 0.6, 1.0)
    for some in (pictures, sounds):
        for number, _ in enumerate(some):
            if number > _FRAMES:
                break


def main(folder: Path, seed: int, first: int, count: int) -> None:
    """Reads the cases from the first one on; the number of each is in the file `at`."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    made = sorted(p for p in (folder / "originals").iterdir() if p.is_file())
    ended: Counter[str] = Counter()
    for number in range(first, first + count):
        suffix, data = mutant(made, seed, number)
        path = folder / f"case{suffix}"
        path.write_bytes(data)
        (folder / "at").write_text(str(number))
        for fault in faults(path, ended):
            print(f"case {number}: {fault}", flush=True)
        with contextlib.suppress(OSError):
            path.unlink()
    for way, count in ended.items():
        print(f"{way} {count}")
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
