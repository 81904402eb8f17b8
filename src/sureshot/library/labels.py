"""Files of judged queries: what somebody looked for, and which videos show it.

Two forms. A table (CSV, TSV) with the columns ``query`` and ``video``, a row for each video that a
query is right about, and an empty video where nothing in the library is. Or a JSON object a line::

    {"query": "a goal", "relevant": ["a.mp4"], "judged": ["a.mp4", "b.mp4"], "absent": false}

``relevant`` are the right videos. ``judged``, if given, are all that were looked at, the right ones
among them: a video outside of it may still be right. A query without a right video is absent, which
means that the library has none; with ``judged`` it is absent only if it says so, else it was merely
not found among those. Rows of one query are taken together; where they say different things of one
moment, the last one holds.

A moment may be named as well, with the times it lasts from and to. In a table that is a row with
the columns ``start`` and ``end``, whose moment is right; in JSON a list, right and wrong ones::

    {"query": "a goal", ..., "moments": [{"video": "a.mp4", "start": 3, "end": 9, "right": true}]}

A video is named by its absolute path, by one from the folder of the file, or by the end of its path
(``goal.mp4``, ``2024/goal.mp4``, both also without the suffix) if only one in the index ends so.
"""

import csv
import difflib
import io
import itertools
import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sureshot.errors import SureshotError, option, reason_of
from sureshot.files import append_line
from sureshot.library.query_checks import parse_time
from sureshot.paths import expand, index_folder
from sureshot.s3 import ObjectPath, object_path
from sureshot.settings import LABELS, parse_json, read_text
from sureshot.text import counted, plain

State = Literal["present", "absent", "not found"]


@dataclass(frozen=True, slots=True)
class JudgedMoment:
    """Whether a stretch of one video is right for a query; times in seconds."""

    video: Path
    start: float
    end: float
    right: bool

    def meets(self, start: float, end: float) -> bool:
        """Whether another stretch of the same video has some time in common with it."""
        return bool(start < self.end and self.start < end)


@dataclass(frozen=True, slots=True)
class Label:
    """What is known of one query.

    Attributes:
        query: text in one line, without spaces around it.
        relevant: the right videos.
        judged: all that were looked at, the right ones among them; None where nobody says.
        absent: whether somebody said that the library has no right one.
        moments: stretches of these videos that were looked at; of a video without any the best
            moment is meant.
    """

    query: str
    relevant: tuple[Path, ...]
    judged: tuple[Path, ...] | None = None
    absent: bool = False
    moments: tuple[JudgedMoment, ...] = ()

    @property
    def state(self) -> State:
        """Whether a right video is there, is not, or was not found among those looked at."""
        if self.relevant:
            return "present"
        return "absent" if self.absent or self.judged is None else "not found"

    def verdict(self, video: Path, start: float, end: float) -> bool | None:
        """Whether a hit is right; None where nobody looked at it.

        Args:
            video: video of the hit, the best of that video's.
            start: where the hit begins, in seconds.
            end: where it ends, in seconds.
        """
        timed = [moment for moment in self.moments if moment.video == video]
        if timed:
            met = [moment.right for moment in timed if moment.meets(start, end)]
            return any(met) if met else None
        if video in self.relevant:
            return True
        return False if self.judged is None or video in self.judged else None

    def to_line(self) -> str:
        """The JSON of one line of a file, in ASCII, with the newline at its end."""
        # Undecodable bytes of a path are lone surrogates, which ASCII JSON carries both ways.
        value: dict[str, Any] = {"query": self.query, "relevant": _texts(self.relevant)}
        if self.judged is not None:
            value |= {"judged": _texts(self.judged), "absent": self.absent}
        if self.moments:
            value["moments"] = [
                {"video": os.fspath(m.video), "start": m.start, "end": m.end, "right": m.right}
                for m in self.moments
            ]
        return json.dumps(value) + "\n"


def read_labels(file: str | Path) -> list[Label]:
    """The queries of a file, in the order in which they first come, videos as they are written.

    Raises:
        SureshotError: the file cannot be read, is empty, or a line of it is at fault.
    """
    file = expand(file)
    try:
        text = read_text(file, LABELS)
    except OSError as error:
        raise SureshotError(
            f"The labels {plain(file)} cannot be read: {reason_of(error)}."
        ) from None
    except ValueError as error:
        raise SureshotError(
            f"The labels {plain(file)} cannot be read: {error}. Save them as UTF-8."
        ) from None
    rows = _objects(text) if text.lstrip()[:1] in ("{", "[") else _table(text, file)
    merged: dict[str, Label] = {}
    for line, values in rows:
        try:
            label = _label(values)
        except ValueError as error:
            raise SureshotError(f"{plain(file)}, line {line}: {error}.") from None
        old = merged.get(label.query)
        merged[label.query] = label if old is None else taken_together(old, label)
    if not merged:
        raise SureshotError(
            f"The labels {plain(file)} are empty; write a query and its video into each line, or "
            f"judge hits with `sureshot judge`."
        )
    return list(merged.values())


def append(file: Path, label: Label) -> None:
    """Write one more line, which is on the disk when this returns."""
    try:
        append_line(file, label.to_line())
    except OSError as error:
        raise SureshotError(
            f"Judgements cannot be written to {plain(file)}: {reason_of(error)}. "
            "Mend that, then try again."
        ) from None


def mend(file: Path) -> bool:
    """Drop half a line from the end of a file, which a loss of power can leave there.

    Returns:
        Whether there was one.
    """
    if isinstance(file, ObjectPath):
        return False  # written whole or not at all
    try:
        with file.open("r+b") as opened:
            data = opened.read()
            whole, newline, last = data.rpartition(b"\n")
            if not last.strip():
                return False
            if last.rstrip().endswith(b"}"):
                opened.write(b"\n")  # only its end was lost
                return False
            opened.truncate(len(whole + newline))
            return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SureshotError(
            f"Judgements cannot be written to {plain(file)}: {reason_of(error)}. "
            "Mend that, then try again."
        ) from None


def _objects(text: str) -> Iterator[tuple[int, Any]]:
    """Each line that is not empty with its number; what cannot be read as the error it gives."""
    for number, line in enumerate(io.StringIO(text), 1):  # other breaks may stand in a query
        if line.strip():
            try:
                yield number, parse_json(line)
            except json.JSONDecodeError:
                yield number, ValueError("is not JSON; write one object a line")
            except ValueError as error:
                yield number, error


def _table(text: str, file: Path) -> Iterator[tuple[int, Any]]:
    """Each row with its line, as the object it stands for."""
    first = next((line for line in io.StringIO(text) if line.strip()), "")
    if not first:
        return
    marks = sorted(",;\t", key=first.count, reverse=True)
    reader = csv.reader(io.StringIO(text), delimiter=marks[0], skipinitialspace=True)
    columns: list[str] | None = None
    try:
        for row in reader:
            if not any(field.strip() for field in row):
                continue
            if columns is None:
                columns = [name.strip().lower() for name in row]
                if not {"query", "video"} <= set(columns):
                    raise SureshotError(
                        f"{plain(file)}, line {reader.line_num} must name the columns query and "
                        f"video; it has {plain(', '.join(columns))[:200]}."
                    )
                continue
            yield reader.line_num, _row(dict(zip(columns, row, strict=False)), len(columns), row)
    except csv.Error as error:
        raise SureshotError(f"{plain(file)}, line {reader.line_num}: {error}.") from None


def _row(values: dict[str, str], columns: int, row: list[str]) -> Any:
    if len(row) > columns:
        return ValueError("has more fields than the first line; put the query in quotes")
    video = values.get("video", "").strip()
    told: dict[str, Any] = {
        "query": values.get("query", ""),
        "relevant": [video] if video else [],
    }
    times = [values.get(name, "").strip() for name in ("start", "end")]
    if video and any(times):
        try:
            start, end = (parse_time(time) for time in times)
        except SureshotError:
            return ValueError("start and end are no times; write both, as 75 or 1:15, or neither")
        told["moments"] = [{"video": video, "start": start, "end": end, "right": True}]
    return told


def _label(values: Any) -> Label:
    """The label of one line."""
    if isinstance(values, ValueError):
        raise values
    if not isinstance(values, dict):
        raise ValueError("is not an object with query and relevant; write one object a line")
    query = values.get("query")
    if not isinstance(query, str):
        raise ValueError(f"the query is {plain(repr(query))[:80]}; it must be text")
    query = " ".join(query.split())
    if not any(c.isprintable() for c in query):
        raise ValueError("the query is empty; describe what was looked for")
    relevant = _paths(values, "relevant")
    judged = None if values.get("judged") is None else _paths(values, "judged")
    absent = values.get("absent", False)
    if not isinstance(absent, bool):
        raise ValueError(f"absent is {plain(repr(absent))[:80]}; it must be true or false")
    if absent and relevant:
        raise ValueError("absent is true, but relevant names a video; it can only be one of them")
    if judged is not None:
        judged = tuple(dict.fromkeys((*judged, *relevant)))
    return Label(
        query=query,
        relevant=relevant,
        judged=judged,
        absent=absent,
        moments=tuple(_moment(value) for value in _listed(values)),
    )


def _listed(values: dict[str, Any]) -> list[Any]:
    listed = values.get("moments", [])
    if not isinstance(listed, list):
        raise ValueError(f"moments is {plain(repr(listed))[:80]}; it must be a list")
    return listed


def _moment(value: Any) -> JudgedMoment:
    """One entry of the moments of a line."""
    wrong = ValueError(
        f"a moment is {plain(repr(value))[:80]}; it needs video, start, a later end, and right"
    )
    if not isinstance(value, dict):
        raise wrong
    video, right = value.get("video"), value.get("right")
    times = [value.get("start"), value.get("end")]
    real = all(isinstance(time, (int, float)) and not isinstance(time, bool) for time in times)
    if not (isinstance(video, str) and video.strip() and isinstance(right, bool) and real):
        raise wrong
    start, end = float(value["start"]), float(value["end"])
    if not 0 <= start < end < math.inf:
        raise wrong
    return JudgedMoment(video=Path(video), start=start, end=end, right=right)


def _paths(values: dict[str, Any], name: str) -> tuple[Path, ...]:
    given = values.get(name)
    if not isinstance(given, list) or not all(isinstance(v, str) and v.strip() for v in given):
        raise ValueError(f"{name} is {plain(repr(given))[:80]}; it must be a list of videos")
    return tuple(dict.fromkeys(Path(video) for video in given))


def taken_together(old: Label, new: Label) -> Label:
    """What two rows say of one query; the later one holds where both speak of the same moment.

    A right video outweighs the word that there is none, unless the later row takes it back.
    """
    again = {moment.video for moment in new.moments}
    moments = tuple(
        dict.fromkeys((*(m for m in old.moments if not _judged_again(m, new)), *new.moments))
    )
    right = {moment.video for moment in moments if moment.right}
    taken_back = set(new.judged or ()) - set(new.relevant)
    # A video is right by a moment of it that still is; one judged as a whole, until it is again.
    kept = [v for v in old.relevant if v not in taken_back or (v in again and v in right)]
    relevant = tuple(dict.fromkeys((*kept, *new.relevant)))
    judged = None
    if old.judged is not None and new.judged is not None:
        judged = tuple(dict.fromkeys((*old.judged, *new.judged)))
    return Label(
        query=old.query,
        relevant=relevant,
        judged=judged,
        absent=not relevant and "absent" in (old.state, new.state),
        moments=moments,
    )


def _judged_again(moment: JudgedMoment, new: Label) -> bool:
    """Whether a later row says of a moment, or of its whole video, anew whether it is right."""
    timed = [m for m in new.moments if m.video == moment.video]
    if timed:
        return any(m.meets(moment.start, moment.end) for m in timed)
    return moment.video in (new.judged or ())


def _texts(paths: Sequence[Path]) -> list[str]:
    return [os.fspath(path) for path in paths]


_SHOWN = 5  # unknown videos that are named
_FILE, _GIVEN = "judged.jsonl", "labelled.jsonl"


def labels_of_index(location: str) -> Path:
    """File of what was judged of an index, in its folder, where no other model or reset takes it.

    Args:
        location: place of the index.
    """
    place = index_folder(location)
    if place is None:
        raise SureshotError(
            f"The index {location} is in a storage where no judgements can lie. Name a file "
            "for them."
        )
    return place / _FILE


def given_labels_of_index(location: str) -> Path:
    """File of the labels from elsewhere that the card of an index was learned from, beside it.

    Args:
        location: place of the index.
    """
    return labels_of_index(location).with_name(_GIVEN)


def located(
    labels: Iterable[Label], file: str | Path, videos: Sequence[Path], *, skip_unknown: bool = False
) -> tuple[list[Label], int]:
    """The same queries with the paths of the index in the place of the names of their videos.

    Args:
        labels: the queries that `read_labels` gives.
        file: place of the file they are from; names may start from its folder.
        videos: absolute paths of those in the index.
        skip_unknown: leave out queries with a right video that is not in the index.

    Returns:
        The labels, and how many queries were left out.
    """
    # Not Path.resolve: the index keeps links as they are.
    names = _Names(Path(os.path.abspath(file)).parent, videos)  # noqa: PTH100
    kept: list[Label] = []
    unknown: Counter[Path] = Counter()
    left_out = 0
    for label in labels:
        relevant = [names.find(name) for name in label.relevant]
        missing = [n for n, path in zip(label.relevant, relevant, strict=True) if path is None]
        if missing:
            unknown.update(missing)
            left_out += 1
            continue
        right = tuple(dict.fromkeys(path for path in relevant if path is not None))
        judged = None
        if label.judged is not None:
            # What is gone since was not right, and takes part in no search.
            looked_at = [names.find(name) for name in label.judged]
            judged = tuple(dict.fromkeys(path for path in looked_at if path is not None))
        there = ((moment, names.find(moment.video)) for moment in label.moments)
        moments = tuple(replace(m, video=path) for m, path in there if path is not None)
        kept.append(replace(label, relevant=right, judged=judged, moments=moments))
    if unknown and not skip_unknown:
        raise SureshotError(_unknown(file, list(unknown), names))
    if not kept:
        raise SureshotError(
            f"Every query of {plain(file)} names a video that is not in the index; are they about "
            f"another one? Name it with {option('db')}."
        )
    return kept, left_out


class _Names:
    """The videos of an index by every name that a file of labels may give them."""

    def __init__(self, folder: Path, videos: Sequence[Path]) -> None:
        self._folder = folder
        self._whole = {os.fspath(path): path for path in videos}
        self._ends: defaultdict[str, list[Path]] = defaultdict(list)
        for path in videos:
            self._ends[path.name].append(path)
            if path.stem != path.name:
                self._ends[path.stem].append(path)

    def find(self, name: Path) -> Path | None:
        """The video of a name; None if there is none."""
        if (there := object_path(name)) is not None:
            return self._whole.get(str(there))
        written = os.path.expanduser(name)  # noqa: PTH111
        path = os.path.normpath(os.path.join(self._folder, written))  # noqa: PTH118
        if path in self._whole:
            return self._whole[path]
        if os.path.isabs(written):  # noqa: PTH117
            return None
        parts = Path(os.path.normpath(written)).parts or (".",)
        ends = [p for p in self._ends.get(parts[-1], ()) if p.parts[-len(parts) : -1] == parts[:-1]]
        if len(ends) > 1:
            shown = ", ".join(plain(path) for path in ends[:3])
            raise SureshotError(
                f"{plain(name)} may be any of {len(ends)} videos of the index ({shown}); write "
                f"more of its path."
            )
        return ends[0] if ends else None

    def near(self, name: Path) -> Path | None:
        """The video whose name looks most like another."""
        for wanted in (name.name, name.stem):
            close = difflib.get_close_matches(wanted, self._ends, n=9, cutoff=0.6)
            if close:
                # Of those that are as like, the one that begins alike.
                return self._ends[max(close, key=partial(_likeness, wanted))][0]
        return None


def _likeness(wanted: str, name: str) -> tuple[float, int]:
    ratio = difflib.SequenceMatcher(a=name, b=wanted).ratio()
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(wanted, name, strict=False))
    return ratio, len(list(same))


def _unknown(file: str | Path, names: Sequence[Path], known: _Names) -> str:
    """What to say of videos that are not in the index."""
    shown = [plain(name) for name in names[:_SHOWN]]
    hints = [known.near(name) for name in names[:_SHOWN]]
    listed = "; ".join(
        name if hint is None else f"{name} (did you mean {plain(hint)}?)"
        for name, hint in zip(shown, hints, strict=True)
    )
    more = f"; and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{plain(file)} names {counted(len(names), 'video')} that {verb} not in the index: "
        f"{listed}{more}. Index what is missing, fix the names, or leave these queries out with "
        f"{option('skip_unknown', True)}."
    )
