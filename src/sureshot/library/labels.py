"""Files of judged queries: what somebody looked for, and which videos show it.

Two forms. A table (CSV, TSV) with the columns ``query`` and ``video``, a row for each video that a
query is right about, and an empty video where nothing in the library is; with ``start`` and ``end``
a row is about that moment. Such a list is complete: a video that is not named is wrong. Or a JSON
object a line, with what was looked at::

    {"query": "a goal", "moments": [{"video": "a.mp4", "right": true, "start": 3, "end": 9}]}

Without times a moment is the video as a whole. ``"absent": true`` says that the library has nothing
right, ``"complete": true`` that what is not named is wrong. A query of which nothing is right, and
of which neither is said, was not found among what was looked at. Rows of one query are taken
together; where they say different things of one moment, the last one holds.

A video is named by its absolute path, by one from the folder of the file, or by the end of its path
(``goal.mp4``, ``2024/goal.mp4``, both also without the suffix) if only one in the index ends so.
What is judged in an index notes the ``digest`` of each video's content too, and so finds a video
that was moved, and of a hit by words their ``source``, as the percentages of pictures learn nothing
from it.
"""

import contextlib
import csv
import difflib
import io
import itertools
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sureshot.errors import SureshotError, option, reason_of
from sureshot.files import append_line, write_text
from sureshot.library.query_checks import parse_time, phrase_of
from sureshot.media.lines import SOURCES, Source
from sureshot.paths import expand, index_folder
from sureshot.s3 import ObjectPath, object_path
from sureshot.settings import LABELS, parse_json, read_text
from sureshot.text import counted, plain

_SHOWN = 5  # unknown videos that are named
_FILE, _GIVEN = "judged.jsonl", "labelled.jsonl"

State = Literal["present", "absent", "not found"]


@dataclass(frozen=True, slots=True)
class JudgedMoment:
    """Whether a stretch of a video is right for a query; times in seconds.

    Without an end it is about the video as a whole, whose best moment is meant. Where ``right`` is
    None, earlier judgements of it are taken back.

    Attributes:
        digest: digest of the video's content, by which it is found when it was moved; else empty.
        source: what spoke for the hit: its ``frames``, or where its words were read.
    """

    video: Path
    right: bool | None
    start: float = 0.0
    end: float = math.inf
    digest: str = ""
    source: Literal["frames"] | Source = "frames"

    @property
    def is_timed(self) -> bool:
        """Whether it is about a stretch of the video."""
        return self.end < math.inf

    def meets(self, start: float, end: float) -> bool:
        """Whether another stretch of the same video has some time in common with it."""
        return bool(start < self.end and self.start < end)


@dataclass(frozen=True, slots=True)
class Label:
    """What is known of one query."""

    query: str  # in one line, without spaces around it
    moments: tuple[JudgedMoment, ...] = ()  # what was looked at, the later judgement last
    absent: bool = False  # whether somebody said that the library has no right video
    complete: bool = False  # whether every video that is not named is wrong

    @property
    def relevant(self) -> tuple[Path, ...]:
        """The right videos."""
        return tuple(dict.fromkeys(moment.video for moment in self.moments if moment.right))

    @property
    def state(self) -> State:
        """Whether a right video is there, is not, or was not found among those looked at."""
        if self.relevant:
            return "present"
        return "absent" if self.absent or self.complete else "not found"

    def verdict(self, video: Path, start: float, end: float) -> bool | None:
        """Whether a hit, from second to second, is right; None where it was not looked at."""
        known = [moment for moment in self.moments if moment.video == video]
        known = [moment for moment in known if moment.is_timed] or known
        if not known:
            return False if self.complete else None
        met = [moment.right for moment in known if moment.meets(start, end)]
        return any(met) if met else None

    def of_frames(self) -> "Label":
        """What it says of pictures; nothing where words were what was looked for."""
        frames = tuple(moment for moment in self.moments if moment.source == "frames")
        by_words = self.relevant and not any(moment.right for moment in frames)
        if by_words or (phrase_of(self.query) and not (frames or self.complete)):
            return Label(self.query)
        return replace(self, moments=frames)

    @property
    def is_of_words(self) -> bool:
        """Whether the percentages of pictures learn nothing from it."""
        return self.of_frames() == Label(self.query)

    def updated(self, new: "Label") -> "Label":
        """Both of this query; the later one holds where they speak of the same moment.

        A right video outweighs the word that there is none, unless the later one takes it back.
        """
        kept = [m for m in self.moments if not any(_overrules(later, m) for later in new.moments)]
        said = [m for m in new.moments if m.right is not None]
        label = Label(
            query=self.query,
            moments=tuple(dict.fromkeys((*kept, *said))),
            complete=self.complete or new.complete,
        )
        still_absent = self.state == "absent" and len(said) == len(new.moments)
        is_absent = still_absent or new.state == "absent"
        return replace(label, absent=is_absent and not label.relevant)

    def to_line(self) -> str:
        """The JSON of one line of a file, in ASCII, with the newline at its end."""
        # Undecodable bytes of a path are lone surrogates, which ASCII JSON carries both ways.
        value: dict[str, Any] = {"query": self.query, "moments": []}
        for m in self.moments:
            times = {"start": m.start, "end": m.end} if m.is_timed else {}
            more = {"digest": m.digest} if m.digest else {}
            more |= {} if m.source == "frames" else {"source": m.source}
            video = {"video": os.fspath(m.video), "right": m.right}
            value["moments"].append(video | times | more)
        said = {name: True for name in ("absent", "complete") if getattr(self, name)}
        return json.dumps(value | said) + "\n"


def _overrules(new: JudgedMoment, old: JudgedMoment) -> bool:
    """Whether a later judgement is of the same moment; a right video keeps its right moments."""
    if new.video != old.video or (new.right and old.right and not new.is_timed):
        return False
    return new.meets(old.start, old.end)


def together(labels: Iterable[Label]) -> list[Label]:
    """Labels with those of one query as one, in the order in which queries first come.

    A query of which all was taken back is none.
    """
    merged: dict[str, Label] = {}
    for label in labels:
        takes_back = any(moment.right is None for moment in label.moments)
        old = merged.get(label.query, Label(label.query) if takes_back else None)
        known = merged[label.query] = label if old is None else old.updated(label)
        if takes_back and not (known.moments or known.absent or known.complete):
            del merged[label.query]
    return list(merged.values())


def read_labels(file: str | Path, *, growing: bool = False) -> list[Label]:
    """The queries of a file, in the order in which they first come, videos as they are written.

    One that is ``growing`` may be empty, and end with half a line, which is passed over.
    """
    file = expand(file)
    try:
        text = read_text(file, LABELS)
    except (OSError, ValueError) as error:
        why = f"{error}. Save them as UTF-8" if isinstance(error, ValueError) else reason_of(error)
        raise SureshotError(f"The labels {plain(file)} cannot be read: {why}.") from None
    last = text.rpartition("\n")[2]
    if growing and not last.rstrip().endswith("}"):
        text = text.removesuffix(last)
    labels = []
    for line, row in _lines(text) if text.lstrip()[:1] in ("{", "[") else _rows(text, file):
        try:
            labels.append(_of_line(row) if isinstance(row, str) else _of_row(row))
        except ValueError as error:
            raise SureshotError(f"{plain(file)}, line {line}: {error}.") from None
    if not labels and not growing:
        raise SureshotError(
            f"The labels {plain(file)} are empty; write a query and its video into each line, or "
            f"judge hits with `sureshot judge`."
        )
    return together(labels)


def append(file: Path, label: Label) -> None:
    """Write one more line, which is on the disk when this returns."""
    with _writing(file):
        append_line(file, label.to_line())


def write(file: Path, labels: Iterable[Label]) -> None:
    """Write a file of labels, whole or not at all; an older one is replaced."""
    with _writing(file):
        write_text(file, "".join(label.to_line() for label in labels))


def drop_half_line(file: Path) -> bool:
    """Whether a file ended with half a line, as a loss of power can leave; then it is dropped."""
    if isinstance(file, ObjectPath):
        return False  # written whole or not at all
    with _writing(file), contextlib.suppress(FileNotFoundError), file.open("r+b") as opened:
        whole, newline, last = opened.read().rpartition(b"\n")
        if last.rstrip().endswith(b"}"):
            opened.write(b"\n")  # only its end was lost
        elif last.strip():
            opened.truncate(len(whole + newline))
            return True
    return False


@contextlib.contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SureshotError(
            f"Judgements cannot be written to {plain(file)}: {reason_of(error)}. "
            "Fix that, then try again."
        ) from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line that is not empty, with its number."""
    lines = enumerate(io.StringIO(text), 1)  # other breaks may stand in a query
    return ((number, line) for number, line in lines if line.strip())


def _rows(text: str, file: Path) -> Iterator[tuple[int, dict[str | None, Any]]]:
    """Each row of a table by its columns, with the number of its line."""
    if not text.strip():
        return
    skipped, first = next(_lines(text))
    mark = max(",;\t", key=first.count)
    lines = itertools.islice(io.StringIO(text), skipped - 1, None)
    rows = csv.DictReader(lines, delimiter=mark, skipinitialspace=True)
    try:
        rows.fieldnames = [name.strip().lower() for name in rows.fieldnames or ()]
        if not {"query", "video"} <= set(rows.fieldnames):
            raise SureshotError(
                f"{plain(file)}, line {skipped} must name the columns query and video; it has "
                f"{plain(', '.join(rows.fieldnames))[:200]}."
            )
        for row in rows:
            if any(isinstance(field, list) or (field or "").strip() for field in row.values()):
                yield skipped - 1 + rows.line_num, row
    except csv.Error as error:
        line = skipped - 1 + rows.reader.line_num  # that of the last row would be one too few
        raise SureshotError(f"{plain(file)}, line {line}: {error}.") from None


def _of_row(row: dict[str | None, Any]) -> Label:
    if None in row:
        raise ValueError("has more fields than the first line; put the query in quotes")
    query, video, start, end = (
        (row.get(name) or "").strip() for name in ("query", "video", "start", "end")
    )
    if not video:
        return Label(_query(query), complete=True)
    times = 0.0, math.inf
    if start or end:
        try:
            times = parse_time(start), parse_time(end)
        except SureshotError:
            raise ValueError(
                "start and end are no times; write both, as 75 or 1:15, or neither"
            ) from None
        if not times[0] < times[1]:
            raise ValueError(f"the moment ends at {end}, before it starts at {start}")
    moment = JudgedMoment(object_path(video) or Path(video), True, *times)
    return Label(_query(query), (moment,), complete=True)


def _of_line(line: str) -> Label:
    try:
        values = parse_json(line)
    except json.JSONDecodeError:
        raise ValueError("is not JSON; write one object a line") from None
    if not isinstance(values, dict):
        raise ValueError("is not an object with query and moments; write one object a line")
    query = _query(values.get("query"))
    moments = values.get("moments")
    if not isinstance(moments, list):
        raise ValueError(f"moments is {plain(repr(moments))[:80]}; it must be a list")
    read = tuple(dict.fromkeys(_moment(value) for value in moments))
    absent, complete = (values.get(name, False) for name in ("absent", "complete"))
    for name, value in (("absent", absent), ("complete", complete)):
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {plain(repr(value))[:80]}; it must be true or false")
    if absent and any(moment.right for moment in read):
        raise ValueError("absent is true, but a moment is right; it can only be one of them")
    return Label(query=query, moments=read, absent=absent, complete=complete)


def _query(query: object) -> str:
    if not isinstance(query, str):
        raise ValueError(f"the query is {plain(repr(query))[:80]}; it must be text")
    query = " ".join(query.split())
    if not any(c.isprintable() for c in query):
        raise ValueError("the query is empty; describe what was looked for")
    return query


def _moment(value: Any) -> JudgedMoment:
    try:
        video, right, digest = value["video"], value["right"], value.get("digest", "")
        source = value.get("source", "frames")
        start, end = value.get("start", 0.0), value.get("end", math.inf)
        kinds = isinstance(video, str) and isinstance(right, bool | None)
        kinds = kinds and source in ("frames", *SOURCES)
        whole = {"start", "end"}.isdisjoint(value) or {"start", "end"} <= value.keys()
        if kinds and video.strip() and isinstance(digest, str) and whole and 0 <= start < end:
            return JudgedMoment(
                video=object_path(video) or Path(video),
                right=right,
                start=float(start),
                end=float(end),
                digest=digest,
                source=source,
            )
    except (TypeError, KeyError, AttributeError):
        pass
    raise ValueError(
        f"a moment is {plain(repr(value))[:80]}; it needs video and right, and start with a later "
        "end or neither"
    )


def labels_of_index(location: str) -> Path:
    """File of what was judged of an index, in its folder, where no reset takes it."""
    place = index_folder(location)
    if place is None:
        raise SureshotError(
            f"The index {location} is in a storage that cannot hold judgements. Name a file for "
            "them."
        )
    return place / _FILE


def given_labels_of_index(location: str) -> Path:
    """File of the labels from elsewhere that the card of an index was learned from."""
    return labels_of_index(location).with_name(_GIVEN)


def located(
    labels: Sequence[Label],
    file: str | Path,
    videos: Mapping[Path, str],
    *,
    skip_unknown: bool = False,
) -> tuple[list[Label], int]:
    """Queries with the paths of the index for the names of their videos; how many are left out.

    Args:
        file: place of the file they are from; names may start from its folder.
        videos: absolute paths of those in the index, with digests of their content.
        skip_unknown: leave out queries with a right video that is not in the index.
    """
    # Not Path.resolve: the index keeps links as they are.
    names = Names(Path(os.path.abspath(file)).parent, videos)  # noqa: PTH100
    kept: list[Label] = []
    unknown: dict[Path, None] = {}
    for label in labels:
        missing = [m.video for m in label.moments if m.right and names.find(m) is None]
        unknown |= dict.fromkeys(missing)
        if not missing:
            kept.append(names.located(label))
    if unknown and not skip_unknown:
        shown = [plain(name) + names.hint(name) for name in list(unknown)[:_SHOWN]]
        if len(unknown) > _SHOWN:
            shown.append(f"and {len(unknown) - _SHOWN} more")
        verb = "is" if len(unknown) == 1 else "are"
        raise SureshotError(
            f"{plain(file)} names {counted(len(unknown), 'video')} that {verb} not in the index: "
            f"{'; '.join(shown)}. Index what is missing, fix the names, or leave these queries out "
            f"with {option('skip_unknown', True)}."
        )
    if not kept:
        raise SureshotError(
            f"Every query of {plain(file)} names a video that is not in the index; are they about "
            f"another one? Name it with {option('db')}."
        )
    return kept, len(labels) - len(kept)


class Names:
    """The videos of an index by every name that a file of labels may give them."""

    def __init__(self, folder: Path, videos: Mapping[Path, str]) -> None:
        self._folder = folder
        self._digests = videos
        self._whole = {os.fspath(path): path for path in videos}
        self._ends: defaultdict[str, list[Path]] = defaultdict(list)
        self._with: defaultdict[str, list[Path]] = defaultdict(list)  # by content
        for path, digest in videos.items():
            self._with[digest].append(path)
            for name in {path.name, path.stem}:
                self._ends[name].append(path)

    def find(self, moment: JudgedMoment) -> Path | None:
        """The video of a moment, wherever it is now; None if it is not in the index."""
        name = moment.video
        if moment.digest and (same := self._with.get(moment.digest)):
            return name if name in same else min(same)
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

    def hint(self, name: Path) -> str:
        """What to ask about a name that is unknown: the video whose name looks most like it."""
        close = difflib.get_close_matches(name.name, self._ends, n=1)
        close = close or difflib.get_close_matches(name.stem, self._ends, n=1)
        return f" (did you mean {plain(self._ends[close[0]][0])}?)" if close else ""

    def located(self, label: Label, *, keep_gone: bool = False) -> Label:
        """A label with the paths of the index; what is not in it stays as it is, or goes."""
        moments: dict[JudgedMoment, Path] = {}
        for moment in label.moments:
            if (path := self.find(moment)) is None:
                moments |= {moment: moment.video} if keep_gone else {}
                continue
            now = replace(moment, video=path, digest=moment.digest or self._digests[path])
            # What was said of the same video by another name, as before it was moved.
            for old, name in list(moments.items()):
                if name != moment.video and _overrules(now, old):
                    del moments[old]
            moments[now] = moment.video
        return replace(label, moments=tuple(moments))
