"""Films with lines that are known, in the picture or in a file, and how much of them is read.

    python -m benchmarks.subtitled_films write films/ --data clips --count 8 --seed 0
    python -m benchmarks.subtitled_films read films/ --source picture
    python -m benchmarks.subtitled_films read films/ --source speech --speech MODEL
    python -m benchmarks.subtitled_films search films/ --source picture --seed 0

The films are joined from captioned videos as in `benchmarks.films`. Their lines are captions of
other MSR-VTT videos, so they say nothing about the pictures, and stay as long as subtitles do. In
`burnt/` they are drawn into the pictures, in four fonts and sizes at 360p and 720p; in `sidecar/`
the same films have them in an .srt, and in `spoken/` four voices of espeak-ng say them, where that
is installed.
`lines.json` and `shots.json` say what is where. `search` indexes the films as a user does and asks
for their lines, in quotes and in other words, for lines that are not there, and for the pictures.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from functools import cache
from itertools import cycle
from pathlib import Path

import av
import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from benchmarks import data, voices
from benchmarks.films import RATE, captioned, join_several
from benchmarks.words import print_calibration, reworded
from sureshot.library import open_index
from sureshot.library.results import Answer, Hit
from sureshot.media import lines, subtitles
from sureshot.media.speech import RATE as VOICE

HEIGHTS = (360, 720)
FONTS = ("DejaVuSans.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf", "STIXGeneral.ttf")
SIZES = (0.04, 0.05, 0.065, 0.09)  # of a letter, as a share of the height of the picture
_PACE = 15.0  # letters per second, which subtitles are written for
_SHORTEST, _LONGEST = 1.5, 6.0  # seconds that a line stays
_WIDEST = 0.9  # of the width of the picture
_FOLDERS = {"picture": "burnt", "subtitles": "sidecar", "speech": "spoken"}
_OFF = {"picture": 1.5, "subtitles": 0.5, "speech": 0.5}  # seconds that a time may be wrong by


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A line of a film.

    Attributes:
        film: name of its file.
        size: height of a letter, as a share of that of the picture.
    """

    film: str
    start: float
    end: float
    text: str
    height: int
    font: str
    size: float
    top: bool = False


@dataclass(frozen=True, slots=True)
class Shot:
    """A video in a film, and what people wrote of it."""

    film: str
    start: float
    end: float
    captions: list[str]


def write(
    to: Path, *, name: str = "clips", most: int = 60, count: int = 8, seed: int = 0
) -> list[KnownLine]:
    """Films with lines, in `to`; returns the lines.

    Args:
        to: a folder; it is made if it is not there.
        name: which videos, as in `benchmarks.films.captioned`.
        most: how many videos at most.
        count: how many films; eight have each font at each height.
        seed: deals the videos out and draws the lines.
    """
    draw = np.random.default_rng(seed)
    videos = captioned(name)
    order = draw.permutation(len(videos))[:most]
    films = join_several(
        [list(videos)[place] for place in order], to / "plain", count=count, fade=0.0, seed=seed
    )
    captions = data.captions()
    others = [text for video in data.split("train") for text in _plain(captions[video])]
    found: list[KnownLine] = []
    shots: list[Shot] = []
    for number, (film, intervals) in enumerate(films.items()):
        height, font = HEIGHTS[number % 2], FONTS[number // 2 % len(FONTS)]
        known = [
            KnownLine(
                film=film.name, start=start, end=end, text=text, height=height, font=font,
                size=float(draw.choice(SIZES)), top=bool(draw.random() < 0.2),
            )
            for start, end, text in _spoken(intervals[-1].end, others, draw)
        ]  # fmt: skip
        _burn(film, to / "burnt" / film.name, known, height)
        _burn(film, to / "sidecar" / film.name, (), height)
        if shutil.which("espeak-ng"):
            _say(to / "sidecar" / film.name, to / "spoken" / film.name, known)
        (to / "sidecar" / film.name).with_suffix(".en.srt").write_text(_srt(known), "utf-8")
        found += known
        shots += [
            Shot(film=film.name, start=there.start, end=there.end, captions=videos[there.path])
            for there in intervals
        ]
    for file, values in (("lines.json", found), ("shots.json", shots)):
        (to / file).write_text(json.dumps([asdict(value) for value in values], indent=1), "utf-8")
    return found


def _plain(texts: Sequence[str]) -> list[str]:
    """Captions of 4 to 14 words that can be typed on any keyboard."""
    return [text for text in texts if text.isascii() and 4 <= len(text.split()) <= 14]


def _spoken(
    until: float, texts: Sequence[str], draw: np.random.Generator
) -> Iterator[tuple[float, float, str]]:
    """Times and texts of lines that stay for as long as it takes to read them."""
    start = float(draw.uniform(0.5, 3.0))
    while True:
        text = texts[int(draw.integers(len(texts)))]
        end = start + min(_LONGEST, max(_SHORTEST, len(text) / _PACE))
        if end > until:
            return
        yield round(start, 3), round(end, 3), text
        start = end + float(draw.uniform(0.2, 3.0))


def _srt(known: Sequence[KnownLine]) -> str:
    def clock(seconds: float) -> str:
        minutes, rest = divmod(round(seconds * 1000), 60_000)
        return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02},{rest % 1000:03}"

    return "".join(
        f"{number}\n{clock(line.start)} --> {clock(line.end)}\n{line.text}\n\n"
        for number, line in enumerate(known, 1)
    )


def _say(film: Path, to: Path, known: Sequence[KnownLine]) -> None:
    """A copy of a film in which its lines are said, by one voice after another."""
    to.parent.mkdir(parents=True, exist_ok=True)
    sound = np.zeros(0, np.float32)
    for line, voice in zip(known, cycle(voices.VOICES["espeak-ng"])):
        samples = voices.say(line.text, "espeak-ng", voice)
        start = round(line.start * VOICE)
        sound = np.pad(sound, (0, max(0, start + len(samples) - len(sound))))
        sound[start : start + len(samples)] = samples
    with av.open(film) as source, av.open(to, "w") as out:
        pictures = out.add_stream_from_template(source.streams.video[0])
        track = out.add_stream("aac", VOICE)
        track.layout = "mono"
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = pictures
                out.mux(packet)
        for first in range(0, len(sound), 1024):
            heard = av.AudioFrame.from_ndarray(sound[None, first : first + 1024], "fltp", "mono")
            heard.sample_rate, heard.pts = VOICE, first
            heard.time_base = Fraction(1, VOICE)
            out.mux(track.encode(heard))
        out.mux(track.encode(None))


def _burn(film: Path, to: Path, known: Sequence[KnownLine], height: int) -> None:
    """A copy of a film of another height, with lines in its pictures."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with av.open(film) as source, av.open(to, "w") as out:
        stream = source.streams.video[0]
        width = round(stream.width * height / stream.height / 2) * 2
        track = out.add_stream("libx264", RATE, {"crf": "23", "preset": "veryfast"})
        track.width, track.height, track.pix_fmt = width, height, "yuv420p"
        track.codec_context.time_base = Fraction(1, RATE)
        for number, frame in enumerate(source.decode(stream)):
            picture = frame.to_ndarray(width=width, height=height, format="rgb24")
            for line in known:
                if line.start <= number / RATE < line.end:
                    picture = _drawn(picture, line)
            shown = av.VideoFrame.from_ndarray(picture, "rgb24")
            shown.pts, shown.time_base = number, Fraction(1, RATE)
            out.mux(track.encode(shown))
        out.mux(track.encode(None))


@cache
def _font(name: str, pixels: int) -> ImageFont.FreeTypeFont:
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(str(folder / name), pixels)


def _drawn(
    picture: UInt8[np.ndarray, "height width 3"], line: KnownLine
) -> UInt8[np.ndarray, "height width 3"]:
    """A picture with a line at its bottom or top: white with a black edge, as players draw it."""
    height, width = picture.shape[:2]
    font = _font(line.font, round(line.size * height))
    image = Image.fromarray(picture)
    canvas = ImageDraw.Draw(image)
    rows = [""]
    for word in line.text.split():
        longer = f"{rows[-1]} {word}".strip()
        if canvas.textlength(longer, font) > _WIDEST * width and rows[-1]:
            rows.append(word)
        else:
            rows[-1] = longer
    edge = 0.03 * height
    place, side = ((width / 2, edge), "ma") if line.top else ((width / 2, height - edge), "md")
    canvas.multiline_text(
        place,
        "\n".join(rows),
        "white",
        font,
        anchor=side,
        align="center",
        stroke_width=max(1, height // 240),
        stroke_fill="black",
    )
    return np.asarray(image)


def known_lines(folder: Path) -> list[KnownLine]:
    """The lines of the films in a folder, as `write` left them there."""
    return [KnownLine(**line) for line in json.loads((folder / "lines.json").read_text("utf-8"))]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _agreement(text: str, found: Sequence[str]) -> tuple[bool, float, float]:
    """Whether a line is in what was found; the best share of letters, and that of its words."""
    wanted, there = " ".join(_words(text)), [" ".join(_words(one)) for one in found]
    letters = (SequenceMatcher(None, wanted, one, autojunk=False).ratio() for one in there)
    known = {word for one in there for word in one.split()}
    share = np.mean([word in known for word in wanted.split()])
    return any(wanted in one for one in there), max(letters, default=0.0), float(share)


def read(folder: Path, source: lines.Source, speech: str | None = None) -> None:
    """Print how much of the lines is read from a source, and what that costs.

    Args:
        folder: that of `write`.
        source: which source.
        speech: model that hears speech.
    """
    films = folder / _FOLDERS[source]
    known = defaultdict(list)
    for line in known_lines(folder):
        known[line.film].append(line)
    # Loading is no part of the pace.
    list(lines.read(films / min(known), source, speech=speech))
    seconds = spent = 0.0
    late: list[float] = []
    rates: dict[tuple[str, str], list[tuple[bool, float, float]]] = defaultdict(list)
    extra = 0
    for film, there in sorted(known.items()):
        began = time.process_time()
        files = subtitles.sidecars([films / film]).get(films / film, ())
        found = list(lines.read(films / film, source, sidecars=files, speech=speech))
        spent += time.process_time() - began
        with av.open(films / film) as opened:
            seconds += (opened.duration or 0) / av.time_base
        for line in there:
            near = [one for one in found if one.start < line.end and one.end > line.start]
            result = _agreement(line.text, [one.text for one in near])
            late += [
                abs(one.start - line.start)
                for one in near
                if _agreement(line.text, [one.text])[1] >= 0.8
            ][:1]
            for key in (
                ("all", ""),
                ("height", str(line.height)),
                ("font", line.font),
                ("size", f"{line.size:.1%}"),
                ("seconds", str(round(line.end - line.start))),
            ):
                rates[key].append(result)
        extra += sum(
            max(_agreement(line.text, [one.text])[1] for line in there) < 0.5 for one in found
        )
    for (what, value), results in sorted(rates.items(), key=str):
        whole, letters, words = np.array(results, float).T
        print(
            f"{what:8} {value:20} {len(results):4} lines: {whole.mean():6.1%} without an error, "
            f"{(letters >= 0.8).mean():6.1%} of 4 in 5 letters, {words.mean():6.1%} of the words"
        )
    print(f"start: {np.median(late):.2f} s off in the middle, {max(late):.2f} s at most")
    print(f"{extra} more texts that are none of the lines, in {seconds:.0f} s of film")
    print(f"{3600 * spent / seconds:.0f} processor seconds per hour of film")


def search(folder: Path, source: lines.Source, seed: int, speech: str | None = None) -> None:
    """Print how often what is asked for comes first in an index of the films, and percentages.

    Args:
        folder: that of `write`.
        source: which source.
        seed: draws the queries.
        speech: model that hears speech.
    """
    films, db = folder / _FOLDERS[source], folder / f"index-{source}"
    known, draw = known_lines(folder), random.Random(seed)
    shots = [Shot(**shot) for shot in json.loads((folder / "shots.json").read_text("utf-8"))]
    seen = [draw.choice(shot.captions) for shot in shots]
    others = [text for video in data.split("val") for text in _plain(data.captions()[video])]
    said = {line.text for line in known}
    absent = [text for text in draw.sample(others, 2 * len(known)) if text not in said]
    by_film = defaultdict(list)
    for line in known:
        by_film[line.film].append(line)
    makers = {"quote": _quote, "reworded": reworded}

    def answers(queries: Sequence[str]) -> list[Answer]:
        return list(open_index(db).search_many(queries))

    def first(queries: Sequence[str]) -> list[Hit]:
        return [answer[0] for answer in answers(queries)]

    def shown(hits: Sequence[Hit]) -> list[bool]:
        return [_shows(hit, shot) for hit, shot in zip(hits, shots, strict=True)]

    shutil.rmtree(db, ignore_errors=True)
    _index(films, db, *(["--words", "none"] if source == "subtitles" else []))
    before = shown(first(seen))
    _index(films, db, "--words", "subtitles" if source == "subtitles" else "all")
    if speech:
        _index(films, db, "--speech", speech)
    every: list[tuple[Hit, bool]] = []
    among: list[tuple[int, bool]] = []  # how many results one is said to be among, and whether
    for kind, make in makers.items():
        queries = [make(line.text, draw) for line in known]
        found = answers(queries)
        rights = [
            [_says(hit, query, line, by_film[hit.path.name], _OFF[source]) for hit in answer]
            for answer, query, line in zip(found, queries, known, strict=True)
        ]
        among += _among(found, rights)
        hits, right = [answer[0] for answer in found], [good[0] for good in rights]
        every += zip(hits, right, strict=True)
        print(f"{kind:>9}: R@1 {100 * np.mean(right):5.1f} % of {len(right)}")
        for line, query, hit, good in zip(known, queries, hits, right, strict=True):
            if not good:
                print(f"  {line}\n    {query!r} gave {hit} {[one.text for one in hit.lines]}")
        late = [
            abs(hit.peak - line.start)
            for hit, line, good in zip(hits, known, right, strict=True)
            if good and hit.path.name == line.film
        ]
        print(f"  start: {np.median(late):.2f} s off in the middle, {max(late):.2f} s at most")
    found = answers(seen)
    rights = [
        [_shows(hit, shot) for hit in answer] for answer, shot in zip(found, shots, strict=True)
    ]
    among += _among(found, rights)
    hits = [answer[0] for answer in found]
    print(
        f"pictures: R@1 {100 * np.mean(before):.1f} % of {len(seen)} without lines, "
        f"{100 * np.mean(shown(hits)):.1f} % with them"
    )
    every += zip(hits, shown(hits), strict=True)
    numbers, there = (np.array(column) for column in zip(*among, strict=True))
    print(
        f"{len(among)} of {len(known) * len(makers) + len(seen)} answers say that it is among the "
        f"first {numbers.mean():.1f} on average, if it is there: {100 * there.mean():.1f} % of "
        "these are (90 is said)"
    )
    asked = [list(makers.values())[number % 2](text, draw) for number, text in enumerate(absent)]
    every += [(hit, False) for hit in first(asked)]
    for name in ("frames", source):
        rows = [(hit.probability or 0.0, good) for hit, good in every if hit.source == name]
        print(f"{len(rows)} of {len(every)} first hits are by {name}:")
        print_calibration(*(np.array(column) for column in zip(*rows, strict=True)))


def _among(found: Sequence[Answer], rights: Sequence[Sequence[bool]]) -> Iterator[tuple[int, bool]]:
    """Of the answers that name a number of results, it and whether one of so many is right."""
    for answer, right in zip(found, rights, strict=True):
        if answer.confidence is not None and answer.confidence.plausible is not None:
            yield answer.confidence.plausible, any(right[: answer.confidence.plausible])


def _quote(text: str, draw: random.Random) -> str:
    words = text.split()
    count = min(len(words), draw.randint(4, 7))
    first = draw.randrange(len(words) - count + 1)
    return " ".join(words[first : first + count])


def _says(hit: Hit, query: str, meant: KnownLine, there: Sequence[KnownLine], off: float) -> bool:
    """Whether a hit is at the time of the line that is meant, or of one that has all of a quote.

    Args:
        there: the lines of the film of the hit.
        off: seconds that a time may be wrong by.
    """
    times = [(one.start, one.end) for one in hit.lines] or [(hit.start, hit.end)]
    return any(
        start - off <= line.end and line.start <= end + off
        for line in there
        for start, end in times
        if line == meant or query in line.text
    )


def _shows(hit: Hit, shot: Shot) -> bool:
    """Whether most of a hit is of a shot."""
    both = min(hit.end, shot.end) - max(hit.start, shot.start)
    return hit.path.name == shot.film and both > (hit.end - hit.start) / 2


def _index(films: Path, db: Path, *options: str) -> None:
    """Index films as a user does; print what that says of words, and what it took."""
    began, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "sureshot", "index", str(films), "--db", str(db), *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = os.times()
    spent = sum(after[2:4]) - sum(before[2:4])
    took = time.perf_counter() - began
    print(f"index {' '.join(options)}: {took:.0f} s, {spent:.0f} processor s")
    for line in done.stdout.splitlines():
        if any(title.lower() in line.lower() for title in lines.TITLES.values()):
            print(f"  {line}")


def main() -> None:
    """Write films with lines, read them, or search them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["write", "read", "search"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", choices=["clips", "val", "test"], default="clips")
    parser.add_argument("--most", type=int, default=60, help="videos")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source", choices=lines.SOURCES, default="picture")
    parser.add_argument("--speech", help="model that hears speech")
    options = parser.parse_args()
    if options.step == "write":
        made = write(
            options.folder,
            name=options.data,
            most=options.most,
            count=options.count,
            seed=options.seed,
        )
        print(f"{len(made)} lines in {len({line.film for line in made})} films")
    elif options.step == "read":
        read(options.folder, options.source, options.speech)
    else:
        search(options.folder, options.source, options.seed, options.speech)


if __name__ == "__main__":
    main()
