"""Features extracted beforehand by other networks: experts for sound, motion, faces and the like.

They lie in a folder, in any of these layouts or in several::

    experts/audio/video7.npy        one folder an expert, one file a video (.npy or .npz)
    experts/video7.npz              one file a video, one array an expert: audio, motion, …
    mult_h5/v/i/d/video7.h5         as MMT publishes them: ``features.audio``, ``features.s3d``, …

An array has one row a moment, or is one row. ``NAME_times`` next to NAME is taken for the times of
its rows, which no system reads so far, and passed over, and so are MMT's ``features_t.NAME`` and
captions. A file is named after the id of its video, as the data set spells it, with or without the
suffix of a video file and ActivityNet's ``v_``. What is not there, has no rows, or begins with a
NaN in MMT's files, is an expert that the video lacks. Nothing in a file can run: pickled objects
are refused; `sureshot.research.convert_pickle` brings the pickles of Collaborative Experts into the
first layout.

References:
    Liu et al., Use What You Have: Video Retrieval Using Representations From Collaborative Experts,
    2019.
    Gabeur et al., Multi-modal Transformer for Video Retrieval, 2020 (MMT).
"""

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from jaxtyping import Bool, Float, Shaped

from sureshot.errors import SureshotError, require_research
from sureshot.media.discover import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from sureshot.settings import open_file

Experts = Mapping[str, Float[np.ndarray, "_rows _size"]]  # of one video, by name
ExpertSizes = tuple[tuple[str, int], ...]  # name of each expert, and how long its rows are

_TIMES, _FEATURES = "_times", "features."
_BROKEN = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


def read_experts(folder: Path | None, ids: Iterable[str]) -> dict[str, Experts]:
    """The experts of these videos, by the id of the video; none without a folder."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise SureshotError(f"There is no folder of experts at {folder}.")
    names = sorted(place.name for place in folder.iterdir() if place.is_dir())
    found: dict[str, Experts] = {video: dict(_of_video(folder, names, video)) for video in ids}
    if found and not any(found.values()):
        stem = file_stems(next(iter(found)))[-1]
        raise SureshotError(
            f"{folder} holds no expert of any of the {len(found)} videos. Looked for "
            f"{folder / 'NAME' / stem}.npy and {folder / stem}.npz, among others."
        )
    return found


def expert_sizes(sets: Iterable[Mapping[str, Experts]]) -> ExpertSizes:
    """Names of all experts, sorted, and the length of their rows."""
    known: dict[str, tuple[int, str]] = {}
    for video, own in (item for videos in sets for item in videos.items()):
        for name, rows in own.items():
            size, first = known.setdefault(name, (rows.shape[1], video))
            if size != rows.shape[1]:
                raise SureshotError(
                    f"The expert {name} has {size} numbers a row for {first} and {rows.shape[1]} "
                    f"for {video}; extract one of them again."
                )
    return tuple((name, known[name][0]) for name in sorted(known))


def pack(
    videos: Sequence[Experts], sizes: ExpertSizes
) -> tuple[Float[np.ndarray, "videos rows size"], Bool[np.ndarray, "videos rows experts"]]:
    """The experts of several videos as one array: all rows of a video below each other.

    Experts are taken in the order of ``sizes``; a video may lack any of them, and have others. Rows
    are zero where they are padding or shorter than the longest; ``which`` is True for the one
    expert that each real row is of.
    """
    counts = [sum(len(own[name]) for name, _ in sizes if name in own) for own in videos]
    longest = max(counts, default=0)
    rows = np.zeros((len(videos), longest, max((n for _, n in sizes), default=0)), np.float32)
    which = np.zeros((len(videos), longest, len(sizes)), bool)
    for place, own in enumerate(videos):
        first = 0
        for number, (name, size) in enumerate(sizes):
            given = own.get(name, np.zeros((0, size)))
            if given.shape[1] != size:
                raise SureshotError(
                    f"The expert {name} has {given.shape[1]} numbers a row, and the model was "
                    f"trained on {size}."
                )
            own_rows = slice(first, first := first + len(given))
            rows[place, own_rows, :size] = given
            which[place, own_rows, number] = True
    return rows, which


def presence(videos: Mapping[str, Experts]) -> str:
    """How many videos have each expert, as in "audio of 1, motion of 2 of 2 videos"."""
    names = sorted({name for own in videos.values() for name in own})
    counts = (f"{name} of {sum(name in own for own in videos.values()):,}" for name in names)
    return f"{', '.join(counts)} of {len(videos):,} videos"


def _of_video(
    folder: Path, names: Sequence[str], video: str
) -> Iterator[tuple[str, Float[np.ndarray, "rows size"]]]:
    """Names and rows of the experts that a video has."""
    seen: dict[str, Path] = {}
    for path, only in _files(folder, names, video):
        for name, array in _arrays(path, only).items():
            if name in seen:
                raise SureshotError(
                    f"The expert {name} of {video} is in {seen[name]} and in {path}; "
                    "leave one of them out."
                )
            seen[name] = path
            rows = checked_rows(array, name, path)
            if rows is not None:
                yield name, rows


def file_stems(video: str) -> list[str]:
    """How the file of a video may be called, without the suffix and always below the folder.

    Examples:
        >>> file_stems("../videos/7.mp4")
        ['videos/7.mp4', 'videos/7']
    """
    path = PurePosixPath(video)
    stems = ["/".join(part for part in path.parts if part not in ("/", "..", "."))]
    if path.suffix.lower() in VIDEO_SUFFIXES | IMAGE_SUFFIXES:
        stems.append(stems[0].removesuffix(path.suffix))
    return stems


def _files(folder: Path, names: Sequence[str], video: str) -> list[tuple[Path, str | None]]:
    """The files of a video that are there, each with the one expert it holds, if it is one."""
    for prefix in ("", "v_"):
        found: list[tuple[Path, str | None]] = []
        for stem in (prefix + stem for stem in file_stems(video)):
            found += [(folder / f"{stem}.npz", None)]
            found += [(folder.joinpath(*stem[:3], f"{stem}.h5"), None)]
            found += [(folder / n / f"{stem}{end}", n) for n in names for end in (".npy", ".npz")]
        if found := [(path, name) for path, name in found if path.is_file()]:
            return found
    return []


def _arrays(path: Path, only: str | None) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of a file by expert; ``only`` is the one it holds, None if they have names."""
    try:
        found = _arrays_of_mmt(path) if path.suffix == ".h5" else _arrays_of_numpy(path)
    except _BROKEN as error:
        raise SureshotError(f"The expert in {path} cannot be read: {error}.") from None
    if only is None:
        return found
    if only not in found and len(found) != 1:
        held = f"the arrays {', '.join(found)}; call one of them {only}" if found else "no array"
        raise SureshotError(f"{path} holds {held}.")
    return {only: found[only] if only in found else next(iter(found.values()))}


def _arrays_of_numpy(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of a file but for times; the only one of a file of one has its name."""
    with open_file(path) as file:
        # The pickles that NumPy's files may hold run whatever they like.
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {path.stem: loaded}
        times = {name + _TIMES for name in loaded.files}
        return {name: loaded[name] for name in loaded.files if name not in times}


def _arrays_of_mmt(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The features of a file of MMT, but for those that it marks as missing."""
    require_research(f"{path} is HDF5, which", "h5py")
    import h5py

    with h5py.File(path, "r") as file:
        features = {name: file[name][()] for name in file if name.startswith(_FEATURES)}
    return {
        name.removeprefix(_FEATURES): array
        for name, array in features.items()
        if not starts_with_nan(array)
    }


def starts_with_nan(array: Shaped[np.ndarray, "..."]) -> bool:
    """Whether an array is one that published features have where there was nothing to extract."""
    return array.size > 0 and array.dtype.kind == "f" and bool(np.isnan(array.flat[0]))


def checked_rows(
    array: Shaped[np.ndarray, "..."], name: str, place: object
) -> Float[np.ndarray, "rows size"] | None:
    """An expert's rows, 16-bit where the array is and 32-bit otherwise; None where it has none."""
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
        raise SureshotError(
            f"The expert {name} in {place} is an array of {array.dtype} with the shape "
            f"{array.shape}; it must be rows of numbers, or one row."
        )
    if array.size == 0:
        return None
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        rows = np.atleast_2d(array).astype(np.float16 if array.dtype == np.float16 else np.float32)
    if not np.isfinite(rows).all():
        raise SureshotError(
            f"The expert {name} in {place} holds a number that is not finite; delete these rows, "
            "or the file: the expert is then one that the video lacks."
        )
    return rows
