"""Your own videos and captions: a CSV or JSONL file, one caption per line.

Columns, or keys of each line's object:
    ``video`` (or ``file``): path, relative ones from the folder of videos if one is given, else
    from the folder of this file, else from ``videos`` next to it; a folder of numbered images is a
    video. ``caption``: the text. Optional: ``split`` (``train``, ``val`` or ``test``; without it
    every line belongs to whichever split is asked for), ``start`` and ``end`` in seconds, where a
    caption tells of a part of the video; each part is an item of its own.

All lines are checked, also those of other splits: a fault in your own file is worth knowing. A
video that is not there is no fault; it goes to the missing ones.
"""

import collections
import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sureshot.datasets.annotation import pick, read_lines
from sureshot.datasets.split import SPLITS, Caption, Item, Split
from sureshot.errors import SureshotError, reason_of
from sureshot.media.discover import frame_files
from sureshot.paths import is_folder_at
from sureshot.settings import ANNOTATION, parse_json, read_text
from sureshot.text import plain

_FILES = ("captions.csv", "captions.jsonl", "pairs.csv", "pairs.jsonl")


@dataclass(frozen=True, slots=True)
class _Row:
    """One checked line; the split is empty where the file does not say."""

    video: str
    caption: str
    split: str
    start: float | None
    end: float | None

    def id(self) -> str:
        """The video as it is spelled, with the part of it as a media fragment."""
        if self.start is None and self.end is None:
            return self.video
        start, end = ("" if t is None else f"{t}" for t in (self.start, self.end))
        return f"{self.video}#t={start},{end}"


def read_pairs(
    file: Path,
    split: str,
    videos: Path | None = None,
    ids: Path | None = None,
    label: str | None = None,
) -> Split:
    """One split of a list, or of a folder that has one as ``captions`` or ``pairs``.

    Args:
        videos: folder that relative paths start from.
        ids: file of ids, one a line: videos as the list spells them, with all their parts, or
            one part as ``VIDEO#t=START,END``.
    """
    if is_folder_at(file):
        file = pick(file, *_FILES)
    rows = list(_rows(file))
    wanted = [row for row in rows if row.split in ("", split)]
    if not wanted:
        known = ", ".join(sorted({row.split for row in rows})) or "none, the file is empty"
        raise SureshotError(f"{file} has no line of the split {split}; it has: {known}.")
    bases = [file.parent, file.parent / "videos"] if videos is None else [videos]
    whole, spelled = _collect(wanted, file, split, bases, label)
    if ids is None:
        return whole
    return whole.part({one for name in read_lines(ids) for one in spelled.get(name, {name})})


def _collect(
    rows: list[_Row], file: Path, split: str, bases: list[Path], label: str | None
) -> tuple[Split, dict[str, set[str]]]:
    """The split of the rows whose videos are there, and the ids that each spelling means."""
    paths = {video: _path(video, bases) for video in dict.fromkeys(row.video for row in rows)}
    spelled: dict[str, set[str]] = collections.defaultdict(set)
    items: dict[tuple[Path, float | None, float | None], Item] = {}
    captions: dict[Item, list[str]] = collections.defaultdict(list)
    missing: dict[str, None] = {}  # a set that keeps the order
    for row in rows:
        path, name = paths[row.video], row.id()
        if path is None:
            missing[name] = None
        else:  # a part that was spelled otherwise before keeps that name
            new = Item(id=name, path=path, start=row.start, end=row.end)
            item = items.setdefault((path, row.start, row.end), new)
            captions[item].append(row.caption)
            name = item.id
        spelled[row.video].add(name)
        spelled[row.id()].add(name)
    if not items:
        raise SureshotError(
            f"{file} names {len(paths)} videos and none of them is there, for example "
            f"{plain(bases[0] / rows[0].video)[:300]}. Paths start from {bases[0]}; name another "
            "folder as videos if they lie elsewhere."
        )
    whole = Split(
        dataset="pairs",
        name=split,
        protocol=file.name,
        items=tuple(items.values()),
        captions=tuple(
            Caption(text, i) for i, item in enumerate(items.values()) for text in captions[item]
        ),
        missing=tuple(missing),
        label=label,
    )
    return whole, spelled


def _path(video: str, bases: list[Path]) -> Path | None:
    """Where a video is; absolute paths stand for themselves."""
    for base in bases:
        path = base / video
        try:
            if path.is_file() or (path.is_dir() and frame_files(path)):
                return path
        except (OSError, ValueError):  # no permission, too long, no name of a file
            continue
    return None


def _rows(file: Path) -> Iterator[_Row]:
    try:
        text = io.StringIO(read_text(file, ANNOTATION), newline="")
    except OSError as error:
        raise SureshotError(f"{file} cannot be read: {reason_of(error)}.") from None
    except ValueError as error:
        raise SureshotError(f"{file} cannot be read: {error}. Save it as UTF-8.") from None
    lines = _json(text, file) if file.suffix.lower() == ".jsonl" else _csv(text, file)
    for number, values in lines:
        try:
            yield _checked(values)
        except ValueError as error:
            raise SureshotError(f"{file}, line {number}: {plain(str(error))}.") from None


_COLUMNS = ("video", "file", "caption", "split", "start", "end")


def _csv(text: io.StringIO, file: Path) -> Iterator[tuple[int, Any]]:
    tab = file.suffix.lower() == ".tsv"
    lines = csv.DictReader(text, delimiter="\t" if tab else ",", strict=True)
    try:
        header = lines.fieldnames or []
        for name in header:
            if (meant := name.strip().lower()) in _COLUMNS and meant != name:
                raise SureshotError(f"{file}, line 1: write {meant} for {plain(repr(name))}.")
        for name in _COLUMNS:
            if header.count(name) > 1:
                raise SureshotError(f"{file}, line 1 names the column {name} twice; drop one.")
        if "caption" not in header or not {"video", "file"} & set(header):
            shown = plain(", ".join(header))[:200] or "nothing"
            raise SureshotError(
                f"{file}, line 1 must name the columns video and caption; it has {shown}."
            )
        for values in lines:
            yield lines.line_num, values
    except csv.Error as error:
        open_to_the_end = "unexpected end" in str(error)
        reason = "a quotation mark is never closed" if open_to_the_end else error
        # The number is that of the last row that was read.
        raise SureshotError(f"{file}, line {lines.line_num + 1}: {reason}.") from None


def _json(text: io.StringIO, file: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text, start=1):
        if line.strip():
            try:
                yield number, parse_json(line, float)
            except ValueError as error:
                reason = plain(str(error))
                raise SureshotError(f"{file}, line {number}: it is not JSON: {reason}.") from None


def _checked(values: Any) -> _Row:
    if not isinstance(values, dict):
        raise ValueError(f"it must be a JSON object with video and caption, not {values!r:.80}")
    if None in values:
        raise ValueError("it has more fields than the first line; put the caption in quotes")
    for name in values:
        if (meant := name.strip().lower()) in _COLUMNS and meant != name:
            raise ValueError(f"it has {name!r:.80}; write {meant}")
    video = _text(values, "video" if "video" in values else "file")
    if "\n" in video:
        raise ValueError(f"the video {video!r:.80} has a line break; close the quotation marks")
    caption = _text(values, "caption")
    split = ""
    if "split" in values:
        split = _text(values, "split")
        if split not in SPLITS:
            raise ValueError(f"the split is {split[:80]}; it must be {', '.join(SPLITS)}")
    start, end = _seconds(values, "start"), _seconds(values, "end")
    # From 0 on and from the beginning on are one part, not two that look the same.
    start = start or (None if end is None else 0.0)
    if end is not None and end <= (start or 0.0):
        raise ValueError(f"it ends at {end} s, which is not after its start at {start or 0.0} s")
    return _Row(video=video, caption=caption, split=split, start=start, end=end)


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"the {name} is {value!r:.80}; it must be text")
    if value is None or not value.strip():
        raise ValueError(f"the {name} is empty")
    # JSON can spell half characters; as names of files they stand for bytes that are not UTF-8.
    whole = value if name != "caption" else value.encode("utf-8", "replace").decode("utf-8")
    return whole.strip()


def _seconds(values: dict[str, Any], name: str) -> float | None:
    value = values.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"the {name} is {value!r:.80}; it must be seconds from 0 on")
    return seconds
