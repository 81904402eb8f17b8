"""Pickles of Collaborative Experts made into a folder of experts, without running what is in them.

Such a pickle is a dictionary from the ids of all videos to the features of one expert: an array of
one row or of one a moment, a list of rows, or a lone NaN where the video lacks the expert. It is
read whole, so it must fit into memory, and is written as one file a video, which
`sureshot.models.encoders.experts` reads one at a time.

References:
    Liu et al., Use What You Have: Video Retrieval Using Representations From Collaborative Experts,
    2019.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from sureshot.datasets.pickles import read_pickle
from sureshot.errors import SureshotError
from sureshot.files import replace_folder
from sureshot.models.encoders.experts import checked_rows, file_stems, starts_with_nan


@dataclass(frozen=True, slots=True)
class ConvertedExpert:
    """What a pickle became.

    Attributes:
        name: name of the expert.
        folder: where its files are.
        videos: number of videos that have it.
        lacking: number of videos in the pickle that lack it.
    """

    name: str
    folder: Path
    videos: int
    lacking: int


def convert_pickle(path: Path, folder: Path, name: str | None = None) -> ConvertedExpert:
    """Write the features of a pickle as an expert of a folder; all of it, or nothing.

    Args:
        path: the pickle.
        folder: folder of experts; made where it is not there.
        name: name of the expert; None is that of the file, without its suffix.

    Raises:
        SureshotError: the pickle cannot be read, asks for anything but arrays of numbers and plain
            containers, or holds something else than features of videos; the folder has the expert
            already, or cannot be written.
    """
    name = path.stem if name is None else name
    place = folder / name
    if place.parent != folder or name == "..":
        raise SureshotError(f"An expert cannot be called {name!r}; give it the name of a folder.")
    if place.exists():
        raise SureshotError(f"{folder} has an expert {name} already; choose another name.")
    features = read_pickle(
        path,
        "set of features",
        "fetch it anew from where it was published, or extract them again",
        arrays=True,
    )
    if not isinstance(features, Mapping) or not features:
        raise SureshotError(f"{path} holds no dictionary from ids of videos to their features.")
    try:
        with replace_folder(place) as fresh:
            videos = _write(features, fresh, name, path)
    except OSError as error:
        raise SureshotError(
            f"The expert cannot be kept in {folder}: {error.strerror or error}."
        ) from None
    return ConvertedExpert(name=name, folder=place, videos=videos, lacking=len(features) - videos)


def _write(features: Mapping[Any, Any], folder: Path, name: str, source: Path) -> int:
    """One file for each video that has features; how many have."""
    written = 0
    for video, value in features.items():
        stem = file_stems(video)[-1] if isinstance(video, str) else ""
        if not stem:
            raise SureshotError(
                f"{source} has features of {video!r:.60}, which is no id of a video."
            )
        array = _array(value, video, source)
        if starts_with_nan(array):
            continue
        rows = checked_rows(array, name, f"{source}, of the video {video},")
        if rows is None:
            continue
        path = folder / f"{stem}.npy"
        if path.exists():
            raise SureshotError(f"{source} has features of {video} under two spellings of its id.")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, rows)
        written += 1
    return written


def _array(value: object, video: str, source: Path) -> Shaped[np.ndarray, "..."]:
    """The features of a video as one array; empty where it has none."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return np.zeros(0, np.float32)
    try:
        return np.asarray(value)
    except ValueError:
        raise SureshotError(
            f"{source} has rows of different lengths for the video {video}; they are no features."
        ) from None
