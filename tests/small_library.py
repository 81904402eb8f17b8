"""A small library of videos and its index, built once a test run with the tiny encoder."""

from dataclasses import dataclass
from pathlib import Path

import sureshot
from tests.clips import blocks, coloured, film


@dataclass(frozen=True)
class Library:
    """Where the videos are and where their index is.

    * ``red.mp4``: 2 s of red.
    * ``scenes.mp4``: red, green, blue, 4 s each.
    * ``long/yellow.mp4``: 12 s of yellow, then 4 s of magenta, in windows of 2 s.
    * ``tapes/tape.mp4`` and ``tapes/copy.mp4``: white and black blocks; one is half the size.
    """

    videos: Path
    db: str


def build(root: Path) -> Library:
    """Write the videos below a folder and index them."""
    videos = root / "videos"
    (videos / "long").mkdir(parents=True)
    (videos / "tapes").mkdir()
    coloured(videos / "red.mp4", ["red"], rate=5)
    coloured(videos / "scenes.mp4", ["red", "green", "blue"], seconds=4, rate=5)
    yellow = ["yellow"] * 3 + ["magenta"]
    coloured(videos / "long" / "yellow.mp4", yellow, seconds=4, rate=5)
    film(videos / "tapes" / "tape.mp4", blocks(8, ["white", "black"]), rate=4)
    small = blocks(8, ["white", "black"], size=(48, 32))
    film(videos / "tapes" / "copy.mp4", small, rate=4, codec="mpeg4")
    library = Library(videos, str(root / "index"))
    index(library.db, videos)
    return library


def index(db: str, *paths: Path, frame_rate: float | None = None) -> None:
    """Index videos with the tiny encoder in windows of two seconds."""
    made = {"model": "tiny", "window": 2.0, "frames": 4, "frame_rate": frame_rate}
    sureshot.index(paths, db=db, workers=1, **made)
