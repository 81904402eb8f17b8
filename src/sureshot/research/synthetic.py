"""A synthetic dataset on disk: ordinary videos and one JSON file with their captions."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sureshot.datasets.synthetic import (
    FILE,
    RATE,
    VIDEOS,
    SyntheticOptions,
    SyntheticSplit,
    frames_of,
    generate,
    truth_of,
    written,
)
from sureshot.errors import SureshotError, reason_of
from sureshot.files import write_json
from sureshot.media.mp4 import write_frames
from sureshot.paths import expand
from sureshot.progress import Progress, Silent
from sureshot.settings import build, read_json, to_values
from sureshot.text import counted

_BATCH = 64  # videos among which a caption's false negatives are counted


@dataclass(frozen=True, slots=True)
class SyntheticSummary:
    """A dataset that was written.

    Attributes:
        folder: ``root`` of a recipe with ``dataset = "synthetic"``.
        videos: number of videos in all splits.
        captions: number of captions in all splits.
        fit: videos of the test split that a caption of it fits, the mean; its own is one of them.
        false_negatives: share of captions to train on that fit another video of a batch of at most
            64, for batches drawn by chance.
        bayes: share of the test captions for which the best scorer finds the video first, in
            percent.
    """

    folder: Path
    videos: int
    captions: int
    fit: float
    false_negatives: float
    bayes: float

    def text(self) -> str:
        """Lines for a terminal."""
        counts = f"{counted(self.videos, 'video')}, {counted(self.captions, 'caption')}"
        return (
            f"{self.folder}: {counts}.\n"
            f"A test caption fits {self.fit:.1f} test videos on average, its own among them.\n"
            f"{100 * self.false_negatives:.0f} % of the training captions fit another video of a "
            f"batch of at most {_BATCH}.\n"
            f"The best possible scorer finds {self.bayes:.1f} % of test captions' videos first.\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "folder": str(self.folder.absolute())}


def write_dataset(
    to: Path,
    options: SyntheticOptions | Mapping[str, object] | None = None,
    *,
    progress: Progress | None = None,
) -> SyntheticSummary:
    """Write a synthetic dataset, unless the same one is already there.

    The folder gets ``synthetic.json`` and ``videos/ID.mp4``. Where some are missing they are made
    again. ``options`` may be a mapping of those that differ from the defaults.
    """
    to = expand(to)
    if not isinstance(options, SyntheticOptions):
        options = build(SyntheticOptions, options or {}, "options")
    _refuse_other(to, options)
    parts = generate(options)
    videos = [video for part in parts for video in part.videos]
    try:
        (to / VIDEOS).mkdir(parents=True, exist_ok=True)
        files = {to / VIDEOS / f"{video.id}.mp4": video for video in videos}
        if (to / FILE).exists():
            files = {file: video for file, video in files.items() if not file.is_file()}
        for number, (file, video) in enumerate(files.items(), start=1):
            frames = frames_of(video.scenes, np.random.default_rng(video.pixels))
            write_frames(file, list(frames), RATE)
            (progress or Silent()).update("videos", number, len(files))
        if not (to / FILE).exists():
            write_json(to / FILE, written(parts))  # last: all videos of such a dataset were written
    except OSError as error:
        raise SureshotError(f"{to} cannot be written: {reason_of(error)}.") from None
    train, _, test = parts
    others, fit = len(train.videos) - 1, truth_of(train).videos_that_fit[:, None] - 1
    drawn = np.arange(min(_BATCH - 1, others))  # none of them twice
    spared = np.maximum((others - fit - drawn) / (others - drawn), 0).prod(1)
    return SyntheticSummary(
        folder=to,
        videos=len(videos),
        captions=sum(len(part.captions) for part in parts),
        fit=float(truth_of(test).videos_that_fit.mean()),
        false_negatives=float(np.mean(1 - spared)),
        bayes=best_recall(test),
    )


def best_recall(part: SyntheticSplit) -> float:
    """R@1 of the Bayes scorer on a split in percent, videos that score alike sharing a place."""
    bayes = truth_of(part).bayes
    own = np.array([caption.video for caption in part.captions])
    sought = bayes[np.arange(len(own)), own][:, None]
    first = (bayes > sought).sum(1) == 0
    return float(100 * np.mean(first / (bayes == sought).sum(1)))


def _refuse_other(to: Path, options: SyntheticOptions) -> None:
    if (to / FILE).exists():
        if read_json(to / FILE).get("options") != to_values(options):
            raise SureshotError(
                f"{to} holds a synthetic dataset with other options; name a new folder."
            )
    elif to.exists() and {path.name for path in to.iterdir()} - {VIDEOS}:
        raise SureshotError(f"{to} holds something else; name a new folder.")
