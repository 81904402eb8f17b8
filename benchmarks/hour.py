"""Processor seconds that an hour of film takes to index, at 360p, 720p and 1080p.

    python -m benchmarks.hour DIR [360p 720p 1080p] [--rounds 2] [--against FOLDER]
        [--models bundled bundled-bf16]

Each film is made in DIR (kept, and made once): the 26 captioned clips and those of `make demo`,
eight seconds or more of each, at 25 frames a second, cropped to 16:9, by x264 (`medium`, crf 23).
The two larger ones have grain of 4 levels, as films have, and are cut short, as grain takes long to
encode. What is measured is `sureshot index` of one film, a process of its
own, less what a film of a second takes, as a program starts and reads its model once for however
long a film. Beside it stands what the decoder alone takes for all pictures that others are worked
out from. With ``--against`` the package in another folder (its ``src``) does the same by turns, and
so do several models, since a machine's speed changes within an hour.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from benchmarks import data
from sureshot.media.discover import Source, discover
from sureshot.media.video import open_video

ROOT = Path(__file__).resolve().parents[1]
RATE = 25
LEAST = 8.0  # seconds: a shorter clip is shown forwards and backwards until it lasts so long
GRAIN = 4.0  # levels of 255, standard deviation


@dataclass(frozen=True, slots=True)
class Film:
    """A film to be made: its size, how many seconds of it at most, and whether it has grain."""

    size: tuple[int, int]
    seconds: float = float("inf")
    grain: float = 0.0


FILMS = {
    "360p": Film((640, 360)),
    "720p": Film((1280, 720), seconds=126, grain=GRAIN),
    "1080p": Film((1920, 1080), seconds=81, grain=GRAIN),
}


def main() -> None:
    """Make the films, index them by turns and print processor seconds per hour."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("place", type=Path)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(FILMS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--against", type=Path, help="a src folder to compare with")
    parser.add_argument("--models", nargs="+", default=["bundled"])
    options = parser.parse_args()
    options.place.mkdir(parents=True, exist_ok=True)
    sources = [ROOT / "src", *([options.against] if options.against else [])]
    ways = [(source, model) for source in sources for model in options.models]
    for kind in options.kinds or FILMS:
        path = options.place / f"{kind}.mp4"
        if not path.exists():
            fresh = path.with_name(f"new-{path.name}")
            make(fresh, FILMS[kind])
            fresh.rename(path)
        seconds = length(path)
        short = options.place / "second.mp4"
        if not short.exists():
            make(short, Film((64, 36), seconds=1))
        print(f"{kind}: decoding alone {decoding(path) * 3600 / seconds:.0f} processor seconds")
        runs: dict[tuple[Path, str], list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way in ways:
                whole, start = indexed(path, *way), indexed(short, *way)
                runs[way].append((whole[0] - start[0], whole[1] - start[1]))
        for (source, model), found in runs.items():
            used, took = (np.array(found) * 3600 / seconds).T
            print(
                f"{kind} ({seconds:.0f} s, {path.stat().st_size / 1e6:.1f} MB): "
                f"{used.min():.0f} to {used.max():.0f} processor seconds an hour, "
                f"{took.min():.0f} to {took.max():.0f} by the clock  "
                f"[{model}, {source.parent.name}]",
                flush=True,
            )


# --- films ----------------------------------------------------------------------------------------


def make(path: Path, film: Film) -> None:
    """Write a film."""
    draw = np.random.default_rng(0)
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", RATE, {"crf": "23", "preset": "medium"})
        stream.width, stream.height = film.size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, RATE)
        for number, picture in enumerate(pictures(clips(), film)):
            if number >= film.seconds * RATE:
                break
            if film.grain:
                noise = draw.normal(0, film.grain, (*picture.shape[:2], 1))
                picture = (picture + noise).clip(0, 255).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def clips() -> list[Path]:
    """The captioned clips, and those of the demo where it has been made."""
    demo = ROOT / ".cache" / "demo" / "clips"
    captioned = sorted((data.folder("clips") / "videos").iterdir())
    return captioned + (sorted(demo.iterdir()) if demo.is_dir() else [])


def pictures(paths: Sequence[Path], film: Film) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """Every picture of some clips one after another, at the rate and in the size of a film."""
    for source in discover(paths):
        assert isinstance(source, Source)
        with open_video(source, decode="all") as video:
            frames = [(frame.time, frame.image(min(film.size))) for frame in video]
        times = np.array([time for time, _ in frames])
        end = times[-1] + (np.diff(times).mean() if len(times) > 1 else 1.0)
        moments = np.arange(0, end, 1 / RATE) + 1e-6
        forwards = np.searchsorted(times, moments, side="right") - 1
        both_ways = np.concatenate([forwards, forwards[::-1]])
        for shown in np.resize(both_ways, max(len(forwards), round(LEAST * RATE))):
            picture = Image.fromarray(frames[shown][1])
            yield np.asarray(ImageOps.fit(picture, film.size, Image.Resampling.BICUBIC))


def length(path: Path) -> float:
    """Seconds of a film."""
    with av.open(path) as container:
        return float(container.duration or 0) / 1e6


# --- measurements ---------------------------------------------------------------------------------


def indexed(path: Path, source: Path, model: str) -> tuple[float, float]:
    """Seconds of a processor and by the clock of `sureshot index`."""
    index = path.with_suffix(".index")
    shutil.rmtree(index, ignore_errors=True)
    command = [sys.executable, "-m", "sureshot", "index", str(path), "--db", str(index)]
    command += ["--model", model]
    began = time.perf_counter()
    env = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{path} was not indexed: sureshot index ended with {process.returncode}.")
    shutil.rmtree(index)
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


def decoding(path: Path) -> float:
    """Seconds of a processor for the pictures that others refer to, without smoothing of blocks."""
    began = time.process_time()
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        stream.codec_context.skip_frame = "NONREF"
        stream.codec_context.options = {"skip_loop_filter": "all"}
        for _ in container.decode(stream):
            pass
    return time.process_time() - began


if __name__ == "__main__":
    main()
