"""What the largest and longest films take: seconds, memory, and how right the time left is.

    python -m benchmarks.long_films DIR [4k 8k ten-hours variable gif]

Each film is made in DIR (kept, and made once), then indexed by `sureshot index` with the bundled
model in a process of its own. Its scenes are seven drawings of coloured squares with noise, in
which a bar moves; each is encoded once and comes again and again, so that a film is quickly made:

    4k, 8k       a minute of 3840 x 2160 or 7680 x 4320, 25 frames per second, H.264, a scene lasts
                 two seconds
    ten-hours    160 x 90, 25 frames per second, 900,000 frames, H.264, a scene lasts 40 s
    variable     90,000 frames of that film, of which every eighth lasts from 0.01 to 1 s
    gif          64 x 48, 10 frames per second, a million frames, a scene lasts 40 s

The first time left that is said, after ten seconds or more, is compared with the time that was.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.frame import PictureType

SCENES = 7
SECONDS = {"s": 1, "min": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Film:
    """A film to be made: its frames, and how many of one scene are encoded and how often shown."""

    size: tuple[int, int]
    frames: int
    encoded: int
    shown: int
    rate: int = 25
    suffix: str = "mp4"
    varies: bool = False


FILMS = {
    "4k": Film((3840, 2160), frames=1500, encoded=50, shown=1),
    "8k": Film((7680, 4320), frames=1500, encoded=50, shown=1),
    "ten-hours": Film((160, 90), frames=900_000, encoded=250, shown=4),
    "variable": Film((160, 90), frames=90_000, encoded=250, shown=4, varies=True),
    "gif": Film((64, 48), frames=1_000_000, encoded=100, shown=4, rate=10, suffix="gif"),
}


def main() -> None:
    """Make each film and index it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("place", type=Path)
    parser.add_argument(
        "kinds", nargs="*", choices=[*FILMS, []], metavar="KIND", help=", ".join(FILMS)
    )
    options = parser.parse_args()
    options.place.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds or FILMS:
        path = options.place / f"{kind}.{FILMS[kind].suffix}"
        if not path.exists():
            fresh = path.with_name(f"new-{path.name}")
            make(fresh, FILMS[kind])
            fresh.rename(path)
        print(f"{kind} ({path.stat().st_size / 1e6:.1f} MB): {measured(path)}", flush=True)


# --- films ----------------------------------------------------------------------------------------


def make(path: Path, film: Film) -> None:
    """Write a film."""
    draw = np.random.default_rng(0)
    gif = film.suffix == "gif"
    tick = Fraction(1, 100)
    with av.open(path, "w") as container:
        options = {} if gif else {"preset": "ultrafast", "forced-idr": "1", "tune": "zerolatency"}
        stream = container.add_stream("gif" if gif else "libx264", rate=film.rate, options=options)
        stream.width, stream.height = film.size
        stream.pix_fmt = "rgb8" if gif else "yuv420p"
        stream.gop_size = film.encoded
        stream.codec_context.time_base = Fraction(1, film.rate)
        scenes = []
        for number in range(SCENES):
            packets = []
            for at, frame in enumerate(scene(film, draw)):
                frame.pts = number * film.encoded + at
                frame.pict_type = PictureType.NONE if at else PictureType.I
                packets += stream.encode(frame)
            scenes.append([bytes(packet) for packet in packets])
        stream.encode(None)
        now = 0
        for number, data in enumerate(order(film, scenes, draw)):
            packet = av.Packet(data)
            packet.stream = stream
            packet.time_base = tick
            packet.pts = packet.dts = now
            varies = film.varies and number % 8 == 0
            packet.duration = int(draw.integers(1, 101)) if varies else 100 // film.rate
            packet.is_keyframe = number % film.encoded == 0
            now += packet.duration
            container.mux(packet)


def order(film: Film, scenes: list[list[bytes]], draw: np.random.Generator) -> Iterator[bytes]:
    """The packets of a film: no scene follows itself."""
    last, left = 0, film.frames
    while left:
        last = (last + int(draw.integers(1, SCENES))) % SCENES
        for _ in range(film.shown):
            yield from scenes[last][:left]
            left -= min(left, len(scenes[last]))


def scene(film: Film, draw: np.random.Generator) -> Iterator[av.VideoFrame]:
    """The frames of a scene."""
    width, height = film.size
    squares = draw.integers(0, 256, (9, 16, 3), np.uint8)
    still = squares[np.arange(height) * 9 // height][:, np.arange(width) * 16 // width]
    noise = draw.integers(0, 24, (height, width, 1), np.uint8)
    still = np.maximum(still, 24) - noise
    for number in range(film.encoded):
        picture = still.copy()
        at = number * (width - width // 16) // film.encoded
        picture[height // 3 : height // 2, at : at + width // 16] = 255
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
        yield frame.reformat(format="rgb8" if film.suffix == "gif" else "yuv420p")


# --- measurements ---------------------------------------------------------------------------------


def measured(path: Path) -> str:
    """What it takes to index a film, in words."""
    index = path.with_suffix(".index")
    shutil.rmtree(index, ignore_errors=True)
    began = time.perf_counter()
    command = [sys.executable, "-m", "sureshot", "index", str(path), "--db", str(index)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said = [(time.perf_counter() - began, line.strip()) for line in process.stdout]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.perf_counter() - began
    shutil.rmtree(index, ignore_errors=True)
    found = "; ".join(line for _, line in said if line.startswith(("Indexed", "1 ", "note")))
    return (
        f"{took:.0f} s, {used.ru_utime + used.ru_stime:.0f} of a processor, "
        f"{used.ru_maxrss / 1e3:.0f} MB; {time_left(said, took)}. {found}"
    )


def time_left(said: list[tuple[float, str]], took: float) -> str:
    """The first time left that was said, next to the time that was left."""
    for at, line in said:
        if found := re.search(r"about (.+) left", line):
            words = found[1].split()
            pairs = zip(words[::2], words[1::2], strict=True)
            seconds = sum(float(number) * SECONDS[unit] for number, unit in pairs)
            return f"after {at:.0f} s it said {seconds:.0f} s left, and {took - at:.0f} s were"
    return "no time left was said"


if __name__ == "__main__":
    main()
