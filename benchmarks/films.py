"""Films joined from captioned videos, so that where each caption is true is known.

    python -m benchmarks.films clips films/ --fade 1 --seed 0 --takes 1

With ``--takes 2`` two neighbours are cut into each other as shot and counter-shot: the first half
of one, that of the other, the second half of one, that of the other.

Joins with hard cuts or with cross-fades, as an editor does; what phones record has neither, and a
cross-fade is the nearest to it that can be labelled. A film has no sound. The 26 clips bring real
motion. The MSR-VTT videos at hand are real pictures one second apart: each stays on screen for its
second, so that nothing moves in between.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
from jaxtyping import UInt8
from PIL import Image

from benchmarks import data
from sureshot.media.discover import Source, discover
from sureshot.media.video import open_video

RATE = 12  # frames a second of a film
SIZE = (320, 240)  # width, height of a film; other shapes get black borders
LEAST = 4.0  # seconds: a shorter video is shown forwards and backwards until it lasts so long


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a video lies in a film.

    Attributes:
        path: the video.
        start: seconds; the middle of the fade where there is one.
        end: seconds; the start of the next one, or the end of the film.
    """

    path: Path
    start: float
    end: float


def join(
    paths: Sequence[Path],
    to: Path,
    *,
    fade: float = 1.0,
    seed: int | None = None,
    least: float = LEAST,
    takes: int = 1,
) -> list[Interval]:
    """Write videos one after another into one mp4 without sound.

    Args:
        paths: videos or folders of frames, at least one.
        to: the mp4; replaced if it exists. Its folder is made if it is not there.
        fade: seconds during which two neighbours blend into each other; 0 cuts.
        seed: shuffles the videos; None keeps their order.
        least: seconds that each video lasts at least, fades included; never less than 3 fades.
        takes: pieces of a video, in turn with those of its neighbour; each lasts ``least``.

    Returns:
        Where each piece of a video lies, in the order of the film.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    order = list(paths)
    if seed is not None:
        np.random.default_rng(seed).shuffle(order)
    overlap = round(fade * RATE)
    pieces = list(_pieces(order, takes))
    shots = (_shot(path, max(round(least * RATE), 3 * overlap), part) for path, *part in pieces)
    edges = [0.0]
    with av.open(to, "w") as film:
        track = film.add_stream("libx264", RATE, {"crf": "20", "preset": "veryfast"})
        track.width, track.height = SIZE
        track.pix_fmt = "yuv420p"
        track.codec_context.time_base = Fraction(1, RATE)
        for number, (picture, is_edge) in enumerate(_faded(shots, overlap)):
            if is_edge:
                edges.append(number / RATE)
            frame = av.VideoFrame.from_ndarray(picture, "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            film.mux(track.encode(frame))
        film.mux(track.encode(None))
    edges.append((number + 1) / RATE)
    return [
        Interval(path, start, end)
        for (path, *_), (start, end) in zip(pieces, pairwise(edges), strict=True)
    ]


def _pieces(order: Sequence[Path], takes: int) -> Iterator[tuple[Path, float, float]]:
    """Each piece of some videos as a share of its time, two neighbours in turn."""
    for pair in (order[first : first + 2] for first in range(0, len(order), 2)):
        for take in range(takes):
            yield from ((path, take / takes, (take + 1) / takes) for path in pair)


def join_several(
    paths: Sequence[Path],
    to: Path,
    *,
    count: int,
    fade: float = 1.0,
    seed: int = 0,
    least: float = LEAST,
    takes: int = 1,
) -> dict[Path, list[Interval]]:
    """Films of several lengths, each video in one of them: the last is the longest.

    Args:
        paths: videos, at least ``count`` * (``count`` + 1) / 2 of them.
        to: folder of the films; it is made if it is not there.
        count: how many films; the n-th one has about n times as many videos as the first.
        fade: seconds, as in `join`.
        seed: deals the videos out.
        least: seconds, as in `join`.
        takes: as in `join`.

    Returns:
        For each film its videos in their order.
    """
    dealt = list(paths)
    np.random.default_rng(seed).shuffle(dealt)
    shares = np.cumsum(np.arange(count + 1)) / (count * (count + 1) / 2)
    bounds = np.round(shares * len(dealt)).astype(int)
    films = {}
    for number, (first, last) in enumerate(pairwise(bounds)):
        film = to / f"film-{number:02}.mp4"
        films[film] = join(dealt[first:last], film, fade=fade, least=least, takes=takes)
    return films


def _faded(
    shots: Iterator[UInt8[np.ndarray, "_ height width 3"]], overlap: int
) -> Iterator[tuple[UInt8[np.ndarray, "height width 3"], bool]]:
    """The pictures of a film, and whether another video begins there; in a fade at its middle."""
    before = next(shots)
    yield from ((picture, False) for picture in before[: len(before) - overlap])
    for shot in shots:
        for step in range(overlap):
            share = (step + 1) / (overlap + 1)
            old, new = before[len(before) - overlap + step], shot[step]
            yield ((1 - share) * old + share * new).round().astype(np.uint8), step == overlap // 2
        rest = shot[overlap : len(shot) - overlap]
        yield from ((picture, not overlap and not place) for place, picture in enumerate(rest))
        before = shot
    yield from ((picture, False) for picture in before[len(before) - overlap :])


def _shot(
    path: Path, least: int, part: Iterable[float] = (0, 1)
) -> UInt8[np.ndarray, "_ height width 3"]:
    """The pictures of a part of one video at the rate and in the size of a film, at least so many.

    Args:
        part: its first and last moment as shares of the time of the video.
    """
    source = next(iter(discover([path])), None)
    if not isinstance(source, Source):
        raise SystemExit(f"{path} is no video; name files or folders of frames.")
    with open_video(source, decode="all") as video:
        frames = [(frame.time, _fitted(frame.image(min(SIZE)))) for frame in video]
    times = np.array([time for time, _ in frames])
    # The last picture lasts as long as the others do.
    end = times[-1] + (np.diff(times).mean() if len(times) > 1 else 1.0)
    first, last = (share * end for share in part)
    shown = np.searchsorted(times, np.arange(first, last, 1 / RATE) + 1e-6, side="right") - 1
    there_and_back = np.concatenate([shown, shown[::-1]])
    wanted = max(least, len(shown))
    pictures = np.stack([picture for _, picture in frames])
    return pictures[np.resize(there_and_back, wanted)]


def _fitted(picture: UInt8[np.ndarray, "_ _ 3"]) -> UInt8[np.ndarray, "height width 3"]:
    """A picture as large as fits, in the middle of a black one of a film's size."""
    height, width = picture.shape[:2]
    scale = min(SIZE[0] / width, SIZE[1] / height)
    inner = max(1, round(width * scale)), max(1, round(height * scale))
    canvas = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    left, top = (SIZE[0] - inner[0]) // 2, (SIZE[1] - inner[1]) // 2
    small = Image.fromarray(picture).resize(inner, Image.Resampling.BILINEAR)
    canvas[top : top + inner[1], left : left + inner[0]] = np.asarray(small)
    return canvas


def captioned(name: str) -> dict[Path, list[str]]:
    """Videos with what people wrote of them.

    Args:
        name: ``clips`` (26), or a split of the MSR-VTT videos at hand: ``train``, ``val`` or
            ``test``.
    """
    if name == "clips":
        folder = data.folder("clips") / "videos"
        return {folder / file: [text] for file, text in data.clip_captions().items()}
    folder, texts = data.folder("msrvtt") / "videos", data.captions()
    return {folder / f"{video}.mp4": texts[video] for video in data.split(name)}


def main() -> None:
    """Write films and say where each video lies in them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=["clips", "train", "val", "test"])
    parser.add_argument("to", type=Path)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--fade", type=float, default=1.0)
    parser.add_argument("--least", type=float, default=LEAST)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--takes", type=int, default=1)
    options = parser.parse_args()
    films = join_several(
        list(captioned(options.data)),
        options.to,
        count=options.count,
        fade=options.fade,
        seed=options.seed,
        least=options.least,
        takes=options.takes,
    )
    for film, intervals in films.items():
        for there in intervals:
            print(f"{film}\t{there.start:.3f}\t{there.end:.3f}\t{there.path}")


if __name__ == "__main__":
    main()
