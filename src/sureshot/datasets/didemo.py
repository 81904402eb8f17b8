"""DiDeMo: Flickr videos whose descriptions of moments are joined into one paragraph.

The descriptions of a video are joined in the order of the file, and its first 30 seconds count:
longer videos were cut there before people described them.

Files:
    ``{train,val,test}_list.txt`` (ids with or without extension; may be absent) and
    ``{train,val,test}_data.json`` (list of ``video`` and ``description``); or
    ``didemo_{train,val,test}_label.csv``, a header and six columns, the second the path of the
    video and the fifth its paragraph.

    Ids lose their extension, so that lists and files agree whatever the videos were converted to.
    A few videos are nowhere to be had; published test sets have 1,003 or 1,004 of them.

References:
    Hendricks et al., Localizing Moments in Video with Natural Language, 2017.

Differs:
    CLIP4Clip reads up to second 31.
"""

from pathlib import Path, PurePosixPath

from sureshot.datasets.annotation import expecting, pick, read_annotation, read_lines, read_rows
from sureshot.datasets.split import Listing

PROTOCOLS = {"paragraph": ""}
_EXPECTED = {"train": 8395, "val": 1065, "test": 1004}
_SPAN = (0.0, 30.0)  # seconds


def read(root: Path, split: str, protocol: str) -> Listing:
    """The listing of one split."""
    path = pick(root, f"{split}_data.json", f"didemo_{split}_label.csv")
    described = _from_json(path) if path.suffix == ".json" else _from_table(path)
    listed = root / f"{split}_list.txt"
    spelled = read_lines(listed) if listed.is_file() else [video for video, _ in described]
    texts: dict[str, list[str]] = {_bare(name): [] for name in spelled}
    for video, text in described:
        if _bare(video) in texts and text.strip():
            texts[_bare(video)].append(text.strip())
    names: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys([*spelled, *(video for video, _ in described)]):
        names[_bare(name)] = (*names.get(_bare(name), ()), name)
    return Listing(
        protocol=protocol,
        captions={name: [" ".join(parts)] for name, parts in texts.items()},
        expected=_EXPECTED[split],
        names=names,
        span=_SPAN,
    )


def _bare(name: str) -> str:
    """An id without the extension, if it has one; Flickr's ids have no other dot."""
    return name.partition(".")[0]


def _from_json(path: Path) -> list[tuple[str, str]]:
    data = read_annotation(path)
    with expecting(path, 'a list of "video" and "description"'):
        return [(one["video"].strip(), one["description"].strip()) for one in data]


def _from_table(path: Path) -> list[tuple[str, str]]:
    # The names of the columns differ from copy to copy, so their places count.
    with expecting(path, "a header and six columns: success, path, start, end, text, frames"):
        return [(PurePosixPath(row[1]).name, row[4]) for row in read_rows(path)[1:]]
