"""What a search returns: frozen values that print as a table, in a terminal and in a notebook."""

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from sureshot.errors import ArgumentError, SureshotError, option, pip_install
from sureshot.media.discover import is_away, is_gone
from sureshot.media.lines import Source
from sureshot.paths import absolute, video_id
from sureshot.text import counted, listed, percent, plain, printable, time_range, timecode

if TYPE_CHECKING:
    import pandas
    from PIL import Image

JSON_SCHEMA = 4  # docs/json.md describes it; raised whenever a field changes its meaning
# How sure an answer is, from the best to the worst that can be said.
Status = Literal["confident", "several plausible", "probably not here", "not calibrated"]
Answerable = Literal["yes", "no", "unknown"]
_COLUMNS = (  # of a table of hits
    *("rank", "path", "start", "end", "peak", "probability", "score"),
    *("source", "date", "date_from", "missing"),
)
CONFIDENT = 0.795  # printed as 80 %, from which a first hit is called sure, or its video here
NOT_CALIBRATED = "Not calibrated", ": the best match comes first, but even that may be wrong."


def looked_for(path: Path) -> dict[str, Any]:
    """Whether the file at a path is gone, and whether it may come back with its folder or disk."""
    gone = is_gone(path)
    return {"missing": gone, "away": gone and is_away(path)}


def absence(*, missing: bool, away: bool) -> str:
    """What follows the path of a file that is not there; empty for others."""
    return " (not there now)" if away else " (gone)" if missing else ""


# Digits after the point that numbers of a name have in JSON; others have all.
_DIGITS = {
    **dict.fromkeys(("start", "end", "peak", "time", "at", "seconds", "elapsed", "unread"), 3),
    **dict.fromkeys(("probability", "present", "right", "prior", "expected", "absent_below"), 4),
    "score": 6,
}


def json_values(result: Any, **more: Any) -> dict[str, Any]:
    """Plain values for JSON: ``more``, and the fields of a result that are not among them."""
    names = [one.name for one in fields(result) if one.name not in more]
    return more | {name: plain_value(name, getattr(result, name)) for name in names}


def plain_value(name: str, value: Any) -> Any:
    """What a field holds, as JSON has it: paths are texts, and pairs with reasons are objects."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return json_values(value)
    if isinstance(value, dict):
        return {key: plain_value(name, one) for key, one in value.items()}
    match value:
        case (Path() as path, str() as reason):
            return {"path": printable(path), "reason": printable(reason)}
        case list() | tuple():
            return [plain_value(name, one) for one in value]
    if isinstance(value, str | Path):
        return printable(value)
    return round(value, _DIGITS[name]) if name in _DIGITS and value is not None else value


_PIECES = 3  # of a scene that are named
_MANY = 2.5  # right moments among the first ten, on average, from which many are said to be right
WEAK = 0.2  # probability below which a hit is called weak


@dataclass(frozen=True, slots=True)
class FrameScore:
    """One sampled frame of a hit: its time and its own similarity to the query.

    Attributes:
        time: seconds from the start of the video.
    """

    time: float
    score: float


@dataclass(frozen=True, slots=True)
class Copy:
    """The moment of another video that shows the same pictures as a hit.

    Attributes:
        path: the file.
        start, end: seconds from the start of the video.
        missing: whether the file is gone, where that was looked for: of the first eight on disks.
        away: whether its whole folder or disk is not there, so that it may come back.
    """

    path: Path
    start: float
    end: float
    missing: bool = False
    away: bool = False

    @property
    def mark(self) -> str:
        """What follows a path whose file is not there; empty for others."""
        return absence(missing=self.missing, away=self.away)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return json_values(self, id=video_id(self.path), text=time_range(self.start, self.end))


_SAID = {"subtitles": "said in the subtitles", "picture": "text in the picture", "speech": "said"}


@dataclass(frozen=True, slots=True)
class LineMatch:
    """Words at a moment that a query may mean.

    Attributes:
        source: where they were read: ``subtitles``, ``picture`` or ``speech``.
        start, end: seconds from the start of the video.
        language: a tag such as ``en``; empty where nothing says.
        words: those of them that the query has, as they are written there.
    """

    source: Source
    text: str
    start: float
    end: float
    language: str = ""
    words: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The evidence in words, with nothing in it that steers a terminal.

        Examples:
            >>> LineMatch("picture", "HAPPY BIRTHDAY ANNA", 42.0, 45.0).said
            '0:42, text in the picture: "HAPPY BIRTHDAY ANNA"'
        """
        return f'{timecode(self.start)}, {_SAID[self.source]}: "{plain(self.text)}"'

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return json_values(self, said=self.said)


@dataclass(frozen=True, slots=True)
class Piece:
    """Another moment of the scene that a hit is of, in the same video.

    Attributes:
        start, end: seconds from the start of the video.
    """

    start: float
    end: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return json_values(self, text=time_range(self.start, self.end))


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """A moment of one video.

    Attributes:
        rank: 1 is the best.
        path: the file; where it is gone, one of its copies that is there takes its place.
        start, end: seconds from the start of the video.
        score: similarity of the moment's best window to the query, in [-1, 1]; higher is better.
            It orders moments of one answer. It is not a probability, and 0.3 for one query
            says nothing about 0.3 for another. Of words alone it is that of the two sentences.
        frames: the sampled frames of the moment in the order of time; none of words alone.
        copies: moments of other videos that show the same pictures, folded under this one.
        pieces: other moments of the same scene, such as a shot that is resumed, in the order of
            time; they look the same, and need not show all that was asked for.
        probability: probability that the moment is a right answer, 0 to 1. That nothing in the
            library is right is counted in, unless `present` says that it is there. None where
            nothing was calibrated.
        plausible: whether the moment is in the set that holds a right answer with the coverage
            asked for, if there is one; None where there is no such set.
        missing: whether the file is gone from where it was indexed.
        away: whether its whole folder or disk is not there, so that it may come back.
        source: what speaks most for the moment: its ``frames``, or the source of its first line.
        lines: words at this moment that match, the best first.
        date: when the video was recorded, as ISO 8601 writes it; empty where nothing says so.
        date_from: what says so: ``quicktime``, ``creation_time``, ``exif``, ``name`` of the file,
            or ``file``, whose last change it is then.
        frame_rate: frames a second where the video is a folder of frames; videos have their own.
    """

    rank: int
    path: Path
    start: float
    end: float
    score: float
    frames: tuple[FrameScore, ...] = ()
    copies: tuple[Copy, ...] = ()
    pieces: tuple[Piece, ...] = ()
    probability: float | None = None
    plausible: bool | None = None
    missing: bool = False
    away: bool = False
    source: Literal["frames"] | Source = "frames"
    lines: tuple[LineMatch, ...] = ()
    date: str = ""
    date_from: str = ""
    frame_rate: float = 1.0

    @property
    def mark(self) -> str:
        """What follows a path whose file is not there; empty for others."""
        return absence(missing=self.missing, away=self.away)

    def __repr__(self) -> str:
        right = f", {self.percentage}" if self.percentage else ""
        where = f"{plain(self.path.name)} {time_range(self.start, self.end)}"
        return f"<Hit {self.rank}: {where}{right}, score {self.score:z.3f}>"

    def frame(self, at: float | str | None = None, *, side: int = 720) -> "Image.Image":
        """What the video shows at one time, as an image of Pillow.

        Args:
            at: seconds, or a clock time; None is `peak`. After the end it is the last frame.
            side: shorter side in pixels, at most.

        Raises:
            SureshotError: no such time or side; or the file is gone or cannot be read.
        """
        from PIL import Image

        from sureshot.library.clips import shown
        from sureshot.library.query_checks import seconds

        given = seconds(at, "at")
        time = self.peak if given is None else given
        if side < 1:
            raise ArgumentError(f"side is {side}; give 1 pixel or more.")
        return Image.fromarray(shown(self.path, time, side, self.frame_rate))

    def clip(self, to: str | Path, *, pad: float | str = 0.0, overwrite: bool = False) -> Path:
        """Cut the moment into an mp4, exact to the frame; where it is.

        Args:
            to: a file named ``.mp4`` in an existing folder. It appears only when it is complete.
            pad: seconds added before and after.
            overwrite: replace a file that is there.
        """
        from sureshot.library.query_checks import seconds
        from sureshot.media.excerpt import cut

        more = seconds(pad, "pad") or 0.0
        span = self.start - more, self.end + more
        target = absolute(to)
        return cut(self.path, *span, target, frame_rate=self.frame_rate, overwrite=overwrite)

    @property
    def peak(self) -> float:
        """Seconds of the frame or line that fits the query best, where a player should start."""
        if self.source == "frames":
            return max(self.frames, key=lambda f: f.score).time
        return self.lines[0].start

    @property
    def weak(self) -> bool:
        """Whether the probability is below 20 %."""
        return self.probability is not None and self.probability < WEAK

    @property
    def scene(self) -> str:
        """The first other pieces of the scene, for a line below the hit; empty without any."""
        if not self.pieces:
            return ""
        pieces = [time_range(piece.start, piece.end) for piece in self.pieces]
        return f"same scene: {listed(pieces, _PIECES)}"

    @property
    def percentage(self) -> str:
        """The probability as people read it; empty where there is none."""
        return "" if self.probability is None else percent(self.probability)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        text = {
            "peak": timecode(self.peak),
            "range": time_range(self.start, self.end),
            "probability": self.percentage,
            "scene": self.scene,
        }
        peak, weak = round(self.peak, 3), self.weak
        return json_values(self, id=video_id(self.path), peak=peak, weak=weak, text=text)


@dataclass(frozen=True, slots=True)
class NameMatch:
    """A video or a folder whose name has the words of a query; its pictures need not show them.

    Attributes:
        path: the file, or the folder.
        videos: how many videos are in the folder; None for a video.
        missing: whether the file is gone from where it was indexed.
        away: whether its whole folder or disk is not there, so that it may come back.
    """

    path: Path
    videos: int | None = None
    missing: bool = False
    away: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return json_values(self, id=video_id(self.path) if self.videos is None else None)

    @property
    def mark(self) -> str:
        """What follows the path: how many videos are in a folder, or that a file is not there."""
        if self.videos is not None:
            return f"/ ({counted(self.videos, 'video')})"
        return absence(missing=self.missing, away=self.away)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure an answer is, as a calibration on labelled queries has it.

    Attributes:
        right: probability that the best moment is a right answer; of the hits the first has it.
        coverage: share of queries whose set of plausible moments holds a right answer, of those
            that have one.
        plausible: how many moments that set has; None where so many fit about as well that there is
            no list to look through, or where the labels were too few to promise one.
        prior: share of searches that are for what is here, as it was counted in; 1 where that is
            known.
        expected: how many of the ten best moments are right, on average.
        valid_for: what the labels were of, in words; empty for a quoted phrase, which needs none.
        personal: whether judgements of the library itself moved the numbers.
        reference: what other footage alone the numbers were learned on, such as "photographs"; then
            no answer is called sure. Else empty.
        absent_below: probability that it is here below which an answer is "probably not here".
    """

    right: float
    coverage: float
    plausible: int | None
    prior: float
    valid_for: str
    personal: bool = False
    reference: str = ""
    expected: float = 0.0
    absent_below: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return json_values(self)


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Sequence[Hit]):
    """The ranked moments for one query: a sequence of hits that prints as a table.

    Attributes:
        query: the sentence that was searched for, or the video that more like it was asked for.
        hits: best first; empty where nothing is indexed, and where only names were searched.
        status: how sure the answer is. Without a calibration, the model's own or yours, this is
            "not calibrated": scores then only order the hits, and even a query that nothing
            answers has a best hit. Hits of an answer that is "probably not here" are the nearest
            there are.
        present: probability that what was asked for is in the library, 0 to 1; None where nothing
            was calibrated.
        answerable: "yes" where that is 80 % or more, "no" where the answer is "probably not here",
            else "unknown", which it is too where nothing was calibrated.
        searched: windows in the index, or of it at or below the path that was named.
        seconds: time the search took.
        warnings: what the user should know about this answer.
        confidence: the numbers behind the status; None where nothing was calibrated.
        unrated: why there are no percentages for this query where others have some; else empty.
        typed: the sentence as it was given, where misspelt words of it were replaced; else empty.
        names: the first videos and folders whose names have all words of the query. They are no
            hits, and have no percentages.
        names_found: how many there are.
    """

    query: str
    hits: tuple[Hit, ...]
    status: Status
    model: str
    searched: int
    seconds: float
    warnings: tuple[str, ...] = ()
    present: float | None = None
    answerable: Answerable = "unknown"
    confidence: Confidence | None = None
    unrated: str = ""
    typed: str = ""
    names: tuple[NameMatch, ...] = ()
    names_found: int = 0

    def noted(self, *warnings: str) -> "Answer":
        """The same with more for the user to know."""
        return replace(self, warnings=(*self.warnings, *warnings))

    def name_rows(self, shown: Callable[[Path], str] = plain) -> list[str]:
        """The names that match, a line each, with their paths as ``shown`` makes them."""
        more = self.names_found - len(self.names)
        rows = [f"by name: {shown(name.path)}{name.mark}" for name in self.names]
        return [*rows, *([f"by name: {more} more"] if more > 0 else [])]

    @property
    def verdict(self) -> tuple[str, str]:
        """How sure the answer is, in a sentence: its beginning, which says it all, and its rest."""
        known = self.confidence
        if known is None or self.present is None:
            return ("No percentages", f": {self.unrated}") if self.unrated else NOT_CALIBRATED
        first, absent = round(100 * known.right), round(100 * (1 - self.present))
        later = 0 if known.right > 0.99 else max(0, 100 - first - absent)
        chances = [
            (known.right, first, f"that {self._first} is right"),
            (later / 100, later, f"that only {'a later' if self._is_ranked else 'another'} one is"),
            (1 - self.present, absent, "that it's not in your videos"),
        ]
        rest = [f"{percent(share)} {what}" for share, points, what in chances if points]
        if self.status == "probably not here":
            others = "".join(f", {one}" for one in rest[: -1 if absent else None])
            return "Probably not in your videos", f": {percent(1 - self.present)}{others}."
        if self.status == "confident":
            sure = percent(known.right)
            also = f"; {', '.join(rest[1:])}" if rest[1:] else ""
            many = f" {self._many}." if self._many else ""
            return f"{sure[0].upper()}{sure[1:]} sure", f" that {self._first} is right{also}.{many}"
        if self._many:
            return self._many, f": {', '.join(rest)}."
        return "Not sure", f": {', '.join(rest)}.{self._list}"

    @property
    def _is_ranked(self) -> bool:
        return all(one.rank < two.rank for one, two in pairwise(self.hits))

    @property
    def _first(self) -> str:
        first = self._is_ranked and (not self.hits or self.hits[0].rank == 1)
        return "the first result" if first else "result 1"

    @property
    def _many(self) -> str:
        """That many are or may be right, where they add up to that and may be here; else empty."""
        if not (known := self.confidence) or known.expected < _MANY or (self.present or 0) < 0.5:
            return ""
        several = len({hit.path for hit in self.hits}) > 1
        seem = "seem to" if (self.present or 0.0) >= CONFIDENT else "may"
        show = "show or say" if any(hit.lines for hit in self.hits) else "show"
        return f"Many {'of your videos' if several else 'moments'} {seem} {show} this"

    @property
    def _list(self) -> str:
        """How many results to look through, as a sentence after others."""
        known = self.confidence
        # Next to words, pictures may be without percentages, and so uncounted.
        unknown = any(hit.lines for hit in self.hits) and any(
            hit.probability is None for hit in self.hits
        )
        if known is None or known.plausible == 1 or (unknown and known.plausible is None):
            return ""
        if known.right >= known.coverage * (self.present or 1):  # if it's there, the first will do
            return ""
        if known.plausible is None:  # no list exceeds half of the library, and ten are shown
            return "" if self.searched < 20 else " Too many fit about as well for a short list."
        there = "It's" if known.prior == 1 else "If it's there, it's"
        chance = f"{100 * known.coverage:g}%"
        which = f"{'the first' if self._is_ranked else 'results 1 to'} {known.plausible}"
        return f" {there} among {which} in {chance} of searches."

    @property
    def note(self) -> str:
        """Where the percentages of the hits come from; empty where there are none."""
        if not self.hits or self.unrated or (self.confidence and not self.confidence.valid_for):
            return ""
        if self.confidence is None:
            return "".join(NOT_CALIBRATED)
        if self._is_of_words:
            return "Percentages of words are calibrated on captions and made-up dialogue."
        if self.confidence.reference:
            learned = self.confidence.reference
            return f"Percentages were learned on {learned}; on yours they are often too low."
        whose = "your own judgements" if self.confidence.personal else "other people's videos"
        return f"Percentages are calibrated on {whose}."

    @property
    def hint(self) -> str:
        """What makes the percentages truer; empty where nothing is to be done."""
        if self.confidence is None or not self.note:
            return ""
        rate = f"Rate a few searches with {option('judge', True)} to fit them to yours."
        told = f"If you know it's there, add {option('present', True)}."
        rated = self.confidence.personal or self._is_of_words
        return " ".join([rate] * (not rated) + [told] * (self.present != 1))

    @property
    def _is_of_words(self) -> bool:
        """Whether the percentages are those of words, from which judgements learn nothing."""
        return all(hit.source != "frames" for hit in self.hits if hit.probability is not None)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> "Answer": ...
    def __getitem__(self, index: "int | slice") -> "Hit | Answer":
        """A hit, or an answer with some of the hits; their ranks and percentages stay."""
        hits = self.hits[index]
        return hits if isinstance(hits, Hit) else replace(self, hits=hits)

    def to_pandas(self) -> "pandas.DataFrame":
        """A table with a row per hit, times in seconds; SureshotError without pandas."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise SureshotError(
                f"A table of hits needs pandas, which is not installed: {pip_install()} pandas"
            ) from None
        table = pandas.DataFrame([hit.to_dict() for hit in self.hits], columns=list(_COLUMNS))
        numbers = ("start", "end", "peak", "probability", "score")
        return table.astype(dict.fromkeys(numbers, "float64"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return json_values(
            self,
            schema=JSON_SCHEMA,
            verdict="".join(self.verdict) if self.hits else "",
            note=self.note,
            hint=self.hint,
            seconds=round(self.seconds, 4),
        )

    def __repr__(self) -> str:
        hits = counted(len(self), "hit")
        head = f"{self.query!r}: {hits} in {counted(self.searched, 'window')} ({self.status})"
        known = self.confidence is not None
        rows = [
            f"{h.rank:>4}  {timecode(h.peak):>7}  {f'{h.percentage:>9}  ' if known else ''}"
            f"{time_range(h.start, h.end):>15}  {h.score:z6.3f}  {plain(h.path)}{h.mark}"
            + "".join(f"\n      {line.said}" for line in h.lines)
            for h in self.hits
        ]
        said = [] if self.confidence is None else ["".join(self.verdict)]
        said += [f"note: {plain(w)}" for w in self.warnings]
        return "\n".join([head, *said, *self.name_rows(), *rows])

    def table(self, *, dated: bool = False) -> tuple[list[str], list[list[str]]]:
        """Names of columns, and the cells of each hit in them, for people; the video comes last."""
        known = self.confidence is not None
        dates = ["date", "date from"] if dated else []
        names = ["", "best at", *(["right"] if known else []), "time", "score", *dates]
        rows = [
            [
                str(hit.rank),
                timecode(hit.peak),
                *([hit.percentage] if known else []),
                time_range(hit.start, hit.end),
                f"{hit.score:z.3f}",
                *([hit.date[:10], hit.date_from] if dated else []),
            ]
            for hit in self.hits
        ]
        return names, rows

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head = f"{html.escape(plain(self.query))}</b> · {counted(self.searched, 'window')}"
        names, cells = self.table()
        rows = [[*row, _named(hit)] for row, hit in zip(cells, self.hits, strict=True)]
        said = self.status if self.confidence is None else html.escape("".join(self.verdict))
        notes = [*self.warnings, *self.name_rows()]
        return _html(f"{head} · {said}", [*names, "video"], rows, notes)


@dataclass(frozen=True, slots=True)
class Description:
    """One sentence and how well it fits a video, in [-1, 1].

    Attributes:
        text: the sentence.
        lines: words of the video that say it, where it is indexed; such a sentence comes first.
    """

    rank: int
    text: str
    score: float
    lines: tuple[LineMatch, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Descriptions(Sequence[Description]):
    """Sentences ranked by how well they fit one video.

    Attributes:
        video: what was asked about.
        at: seconds; None for the whole of it.
        ranked: best first.
        status: how sure the order is, see `Answer`.
        warnings: what the user should know.
    """

    video: Path
    at: float | None
    ranked: tuple[Description, ...]
    status: Status
    model: str
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ranked)

    @overload
    def __getitem__(self, index: int) -> Description: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Description, ...]: ...
    def __getitem__(self, index: "int | slice") -> "Description | tuple[Description, ...]":
        return self.ranked[index]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        values = json_values(self, schema=JSON_SCHEMA)
        values["texts"] = values.pop("ranked")
        return values

    def __repr__(self) -> str:
        head = f"{plain(self.video)}: {counted(len(self), 'sentence')} ({self.status})"
        rows = [
            f"{d.rank:>4}  {d.score:z6.3f}  {plain(d.text)}"
            + "".join(f"\n              {line.said}" for line in d.lines)
            for d in self.ranked
        ]
        return "\n".join([head, *(f"note: {plain(w)}" for w in self.warnings), *rows])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head = f"{html.escape(plain(self.video))}</b> · {self.status}"
        rows = [(str(d.rank), f"{d.score:z.3f}", html.escape(plain(d.text))) for d in self.ranked]
        return _html(head, ("", "score", "sentence"), rows, self.warnings)


def _named(hit: Hit) -> str:
    """The file name of a hit, its path on hovering."""
    copies = f" <small>+{counted(len(hit.copies), 'copy', 'copies')}</small>" if hit.copies else ""
    copies += f" <small>{hit.scene}</small>" if hit.pieces else ""
    full, name = html.escape(plain(hit.path)), html.escape(plain(hit.path.name))
    said = "".join(f"<br><small>{html.escape(line.said)}</small>" for line in hit.lines)
    return f"<span title='{full}'>{name}</span>{hit.mark}{copies}{said}"


def _html(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> str:
    """A table under its bold title, all cells but the last of each row aligned to the right."""
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + f"<td style='text-align:left'>{last}</td></tr>"
        for *cells, last in rows
    )
    above = "".join(f"<p>{html.escape(plain(note))}</p>" for note in notes)
    return f"<p><b>{title}</p>{above}<table><tr>{head}</tr>{body}</table>"


def json_text(values: dict[str, Any], *, ascii_only: bool = False) -> str:
    """A JSON document with its schema on one line, without characters that steer a terminal."""
    text = json.dumps({"schema": JSON_SCHEMA, **values}, ensure_ascii=ascii_only)
    if text.isprintable():
        return text
    # json.dumps escapes one character as its \u sequence, which every reader undoes.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
