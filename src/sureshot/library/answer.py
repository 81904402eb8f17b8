"""What a search returns: frozen values that print as a table, in a terminal and in a notebook."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from sureshot.errors import option
from sureshot.places import video_id
from sureshot.text import counted, percent, plain, printable, time_range, timecode

JSON_SCHEMA = 2  # docs/json.md describes it; raised whenever a field changes its meaning
# How sure an answer is, from the best to the worst that can be said.
Status = Literal["confident", "several plausible", "probably not here", "not calibrated"]
NOT_CALIBRATED = "Not calibrated", ": scores give the order only; even the first may be far off."


def reasons(paths: Sequence[tuple[Path, str]]) -> list[dict[str, str]]:
    """Paths with what was wrong with each, for JSON."""
    return [{"path": printable(path), "reason": printable(reason)} for path, reason in paths]


WEAK = 0.2  # probability below which a hit is called weak


@dataclass(frozen=True, slots=True)
class FrameScore:
    """One sampled frame of a hit: its time in seconds and its own similarity to the query."""

    time: float
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A moment of one video.

    Attributes:
        rank: 1 is the best.
        path: the video.
        start: seconds.
        end: seconds.
        score: similarity of the moment's best window to the query, in [-1, 1]; higher is better.
            It orders moments of one answer. It is not a probability, and 0.3 for one query
            says nothing about 0.3 for another.
        frames: the sampled frames of the moment in the order of time.
        copies: other videos that show the same pictures, folded under this one.
        relevant: probability that the moment is a right answer, if one is there at all; None where
            nothing was calibrated, and where probably none is there.
        plausible: whether the moment is in the set that holds a right answer with the coverage
            asked for; None where there is no such set, and where probably no right answer is.
        missing: whether the file is gone from where it was indexed.
    """

    rank: int
    path: Path
    start: float
    end: float
    score: float
    frames: tuple[FrameScore, ...]
    copies: tuple[Path, ...] = ()
    relevant: float | None = None
    plausible: bool | None = None
    missing: bool = False

    @property
    def mark(self) -> str:
        """What stands behind a path whose file is gone; empty behind others."""
        return " (gone)" if self.missing else ""

    @property
    def peak(self) -> float:
        """Seconds of the frame that fits the query best, where a player should start."""
        return max(self.frames, key=lambda f: f.score).time

    @property
    def weak(self) -> bool:
        """Whether the probability is below 20 %."""
        return self.relevant is not None and self.relevant < WEAK

    @property
    def percentage(self) -> str:
        """The probability as people read it; empty where there is none."""
        return "" if self.relevant is None else percent(self.relevant)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return {
            "rank": self.rank,
            "id": video_id(self.path),
            "path": printable(self.path),
            "missing": self.missing,
            "start": round(self.start, 3),
            "end": round(self.end, 3),
            "peak": round(self.peak, 3),
            "score": round(self.score, 6),
            "relevant": self.relevant if self.relevant is None else round(self.relevant, 4),
            "plausible": self.plausible,
            "weak": self.weak,
            "said": {
                "peak": timecode(self.peak),
                "range": time_range(self.start, self.end),
                "relevant": self.percentage,
            },
            "copies": [printable(path) for path in self.copies],
            "frames": [{"time": round(f.time, 3), "score": round(f.score, 6)} for f in self.frames],
        }


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure an answer is, as a calibration on labelled queries has it.

    Attributes:
        right: probability that the best moment is a right answer, if one is there at all.
        present: how ordinary the best hit is among queries that the library did answer: the share
            of them whose best hit stood out no more. Small means: probably not here.
        coverage: share of queries whose set of plausible moments holds a right answer.
        plausible: how many moments that set has; None if the labels were too few to promise one.
        valid_for: what the labels were of, in words.
        yours: whether the labels were of the library itself, not of other videos.
    """

    right: float
    present: float
    coverage: float
    plausible: int | None
    valid_for: str
    yours: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return {
            "right": round(self.right, 4),
            "present": round(self.present, 4),
            "coverage": self.coverage,
            "plausible": self.plausible,
            "valid_for": self.valid_for,
            "yours": self.yours,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The ranked moments for one query: a sequence of hits that prints as a table.

    Attributes:
        query: the sentence, or the video that more like it was asked for.
        hits: best first; empty where nothing is indexed.
        status: how sure the answer is. Until a confidence has been calibrated on labelled queries
            this is "not calibrated": scores then only order the hits, and even a query that nothing
            answers has a best hit. Hits of an answer that is "probably not here" are the nearest
            there are.
        model: the encoder.
        searched: windows in the index, or of it at or below the path that was named.
        seconds: time the search took.
        warnings: what the user should know about this answer.
        confidence: the numbers behind the status; None where nothing was calibrated.
    """

    query: str
    hits: tuple[Hit, ...]
    status: Status
    model: str
    searched: int
    seconds: float
    warnings: tuple[str, ...] = ()
    confidence: Confidence | None = None

    @property
    def has_percentages(self) -> bool:
        """Whether a percentage stands beside the hits."""
        return any(hit.relevant is not None for hit in self.hits)

    @property
    def verdict(self) -> tuple[str, str]:
        """How sure the answer is, in a sentence: its beginning, which says it all, and its rest."""
        known = self.confidence
        if known is None:
            return NOT_CALIBRATED
        right = percent(known.right)
        if self.status == "probably not here":
            few = f"Only {round(100 * known.present)}" if known.present >= 0.01 else "Fewer than 1"
            rest = f" {few} in 100 searches for something that is there look this weak. Closest:"
            return "Probably not in your videos.", rest
        if self.status == "confident":
            sure = f"{right[0].upper()}{right[1:]} sure"
            return f"{sure}, if it is here at all", ": the first one is right."
        if known.right < WEAK:
            return "Weak", f": {right} for the first one."
        look = ""
        if known.plausible is not None and known.plausible > 1:
            look = f" Look through the first {known.plausible} for {_chance(known.coverage)}."
        return "Unsure", f": {right} for the first one, if it is here at all.{look}"

    @property
    def worth(self) -> str:
        """What the percentages or the scores of the hits are worth; empty where there are none."""
        if self.confidence is None:
            return "".join(NOT_CALIBRATED) if self.hits else ""
        if not self.has_percentages:
            return ""
        whose = (
            "with judgements of your own."
            if self.confidence.yours
            else f"on other people's videos. Ten judged searches (`{option('judge', True)}`) move "
            "them towards yours."
        )
        told = "Percentages: how often such a hit is right if what you look for is here; learned "
        return told + whose

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return {
            "schema": JSON_SCHEMA,
            "query": self.query,
            "status": self.status,
            "verdict": "".join(self.verdict) if self.hits else "",
            "worth": self.worth,
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "model": self.model,
            "searched": self.searched,
            "seconds": round(self.seconds, 4),
            "warnings": list(self.warnings),
            "hits": [hit.to_dict() for hit in self.hits],
        }

    def __repr__(self) -> str:
        hits = counted(len(self), "hit")
        head = f"{self.query!r}: {hits} in {counted(self.searched, 'window')} ({self.status})"
        known = self.has_percentages
        rows = [
            f"{h.rank:>4}  {timecode(h.peak):>7}  {f'{h.percentage:>9}  ' if known else ''}"
            f"{time_range(h.start, h.end):>15}  {h.score:z6.3f}  {plain(h.path)}{h.mark}"
            for h in self.hits
        ]
        said = [] if self.confidence is None else ["".join(self.verdict)]
        return "\n".join([head, *said, *rows, *(f"note: {plain(w)}" for w in self.warnings)])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head = f"{html.escape(plain(self.query))}</b> · {counted(self.searched, 'window')}"
        known = self.has_percentages
        rows = [
            (
                str(h.rank),
                timecode(h.peak),
                *([h.percentage] if known else []),
                time_range(h.start, h.end),
                f"{h.score:z.3f}",
                _named(h),
            )
            for h in self.hits
        ]
        columns = ("", "best at", *(["right"] if known else []), "time", "score", "video")
        said = self.status if self.confidence is None else html.escape("".join(self.verdict))
        return _html(f"{head} · {said}", columns, rows, self.warnings)


@dataclass(frozen=True, slots=True)
class Description:
    """One sentence and how well it fits a video, in [-1, 1]."""

    rank: int
    text: str
    score: float


@dataclass(frozen=True, slots=True, repr=False)
class Descriptions:
    """Sentences ranked by how well they fit one video.

    Attributes:
        video: what was asked about.
        at: seconds; None for the whole of it.
        ranked: best first.
        status: how sure the order is, see `Answer`.
        model: the encoder.
        warnings: what the user should know.
    """

    video: Path
    at: float | None
    ranked: tuple[Description, ...]
    status: Status
    model: str
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Description]:
        return iter(self.ranked)

    def __len__(self) -> int:
        return len(self.ranked)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        texts = [{"rank": d.rank, "text": d.text, "score": round(d.score, 6)} for d in self.ranked]
        return {
            "schema": JSON_SCHEMA,
            "video": printable(self.video),
            "at": self.at if self.at is None else round(self.at, 3),
            "status": self.status,
            "model": self.model,
            "warnings": list(self.warnings),
            "texts": texts,
        }

    def __repr__(self) -> str:
        head = f"{plain(self.video)}: {counted(len(self), 'sentence')} ({self.status})"
        rows = [f"{d.rank:>4}  {d.score:z6.3f}  {plain(d.text)}" for d in self.ranked]
        return "\n".join([head, *rows, *(f"note: {plain(w)}" for w in self.warnings)])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head = f"{html.escape(plain(self.video))}</b> · {self.status}"
        rows = [(str(d.rank), f"{d.score:z.3f}", html.escape(plain(d.text))) for d in self.ranked]
        return _html(head, ("", "score", "sentence"), rows, self.warnings)


def _chance(coverage: float) -> str:
    """A chance as people say it.

    Examples:
        >>> _chance(0.9), _chance(0.8), _chance(0.95)
        ('a 9-in-10 chance', 'an 8-in-10 chance', 'a 95 % chance')
    """
    tenths = round(10 * coverage, 6)
    said = f"{tenths:.0f}-in-10" if tenths.is_integer() else percent(coverage)
    return f"a{'n' if said.startswith('8') else ''} {said} chance"


def _named(hit: Hit) -> str:
    """The file name of a hit, its path on hovering."""
    copies = f" <small>+{counted(len(hit.copies), 'copy', 'copies')}</small>" if hit.copies else ""
    full, name = html.escape(plain(hit.path)), html.escape(plain(hit.path.name))
    return f"<span title='{full}'>{name}</span>{hit.mark}{copies}"


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
    below = "".join(f"<p>{html.escape(plain(note))}</p>" for note in notes)
    return f"<p><b>{title}</p><table><tr>{head}</tr>{body}</table>{below}"
