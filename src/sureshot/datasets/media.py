"""From the ids of a split to the files or folders of frames on disk, in one walk over the folder.

Whatever file carries an id as its name, up to the extension, may be the video: the containers
people keep these data sets in are too many to list. Known extensions come first; what is known to
be something else (text, features, sound) is passed over, and pictures count only where the data
set is one of photos.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from sureshot.errors import SureshotError
from sureshot.media.discover import IMAGE_SUFFIXES, VIDEO_SUFFIXES, numbered_images
from sureshot.paths import is_folder_at
from sureshot.text import plain

# Folders below the annotation that hold the videos in the layouts people share.
_USUAL = (
    "videos",
    "Videos",
    "video",
    "all",
    "MSRVTT_Videos",
    "MSVD_Videos",
    "YouTubeClips",
    "Charades_v1_480",
    "Charades_v1",
    "images",
    "Images",
    "frames",
)
# fmt: off
_NO_VIDEO = frozenset({
    ".txt", ".json", ".jsonl", ".csv", ".tsv", ".xml", ".yaml", ".yml", ".html", ".md", ".log",
    ".description", ".annotations",
    ".npy", ".npz", ".pt", ".pth", ".pkl", ".pickle", ".h5", ".hdf5", ".safetensors", ".parquet",
    ".wav", ".mp3", ".m4a", ".aac", ".flac", ".ogg", ".opus", ".srt", ".vtt", ".ass",
    ".md5", ".sha256", ".part", ".ytdl", ".tmp", ".zip", ".tar", ".gz", ".7z",
})
# fmt: on
_EXACT, _VIDEO, _FOLDER, _OTHER = range(4)  # what wins where one id has several; the lowest


def usual_folders(root: Path) -> list[Path]:
    """Where the videos of an annotation folder may be, the likeliest first, itself last."""
    return [root / name for name in _USUAL if is_folder_at(root / name)] + [root]


def find_videos(
    folders: Sequence[Path],
    names: Mapping[str, Sequence[str]],
    *,
    photos: bool = False,
) -> dict[str, Path]:
    """The video of each id, from the first folder that has it; ids without one are left out.

    Sub-folders are searched as well. What is named by the id wins over what is named by another
    spelling; a file whose name is the whole id over one that adds the extension of a video, that
    over a folder of frames; of two alike, the one nearer to the folder. Other extensions come after
    all of these, and count in the first folder with videos alone.

    Args:
        names: other spellings that the file of each id may have.
        photos: pictures count as videos of one frame.
    """
    owner = {other: name for name, others in names.items() for other in others}
    owner |= {name: name for name in names}
    found: dict[str, tuple[tuple[bool, int, bool, int], Path]] = {}
    seen: dict[tuple[int, int], bool] = {}
    refused: SureshotError | None = None
    for number, folder in enumerate(folders):
        begun = bool(found)  # what may be no video counts in the first folder with videos alone
        try:
            for spelling, kind, path in _matches(folder, owner.keys(), photos, seen):
                name = owner[spelling]
                rank = kind == _OTHER, number, spelling != name, kind
                if (name not in found or rank < found[name][0]) and not (begun and rank[0]):
                    found[name] = rank, path
        except SureshotError as error:
            refused = refused or error
        if len(found) == len(names) and not any(rank[0] for rank, _ in found.values()):
            break
    if found:
        return {name: path for name, (_, path) in found.items()}
    if refused:
        raise refused
    example = next(iter(names), "")
    looked = ", ".join(str(folder) for folder in folders)
    raise SureshotError(
        f"No {'photo' if photos else 'video'} of the {len(names)} wanted was found in {looked} or "
        f"below; looked for {plain(example)[:200]} with any extension or as a folder of numbered "
        "images. Name the right folder as videos."
    )


def _matches(
    top: Path, ids: Collection[str], photos: bool, seen: dict[tuple[int, int], bool]
) -> Iterator[tuple[str, int, Path]]:
    """Wanted names below a folder, what carries them, and where.

    ``seen`` are real folders that were read, each once, and whether they are of frames.
    """
    todo = [top]
    for folder in todo:
        try:
            stat = folder.stat()
            here = stat.st_dev, stat.st_ino
            entries = [] if here in seen else _listed(folder)
            if here not in seen:
                seen[here] = len(numbered_images(entry.name for entry in entries)) > 1
            if seen[here] and folder != top and folder.name in ids:
                yield folder.name, _FOLDER, folder
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                path = folder / entry.name
                if entry.is_dir():  # of frames too: a video may lie next to its thumbnails
                    todo.append(path)
                else:
                    yield from _file(entry, path, ids, photos)
        except OSError as error:
            if folder != top:
                continue  # a lost+found and its like; videos in it are counted as missing
            raise SureshotError(
                f"{folder} cannot be searched for videos: {error.strerror or error}."
            ) from None


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _file(
    entry: os.DirEntry[str], path: Path, ids: Collection[str], photos: bool
) -> Iterator[tuple[str, int, Path]]:
    """The wanted name that a file carries, if any."""
    stem, suffix = os.path.splitext(entry.name)  # noqa: PTH122 - a name, not a path
    suffix = suffix.lower()
    if suffix in _NO_VIDEO or (suffix in IMAGE_SUFFIXES) != photos:
        return
    name = entry.name if entry.name in ids else stem
    if name in ids and entry.is_file():  # a link that leads nowhere is no file
        known = photos or suffix in VIDEO_SUFFIXES
        yield name, _EXACT if name == entry.name else _VIDEO if known else _OTHER, path
