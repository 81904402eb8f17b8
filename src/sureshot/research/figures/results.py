"""What was found for some queries, with all that the system says of each pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sureshot.datasets.split import Item
from sureshot.research.figures.canvas import number
from sureshot.research.figures.quantities import quantity
from sureshot.research.figures.strip import (
    Cell,
    RankedVideo,
    Strip,
    best,
    draw_strips,
    hit_cells,
    rank_of,
    ranked,
    told,
)
from sureshot.research.figures.subject import Subject
from sureshot.settings import to_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOP = 3  # as DVTR draws
_VIDEOS = 4  # pictures a row: those, and the right one where it is not among them


@dataclass(frozen=True)
class Answered:
    """A query and what was found.

    Attributes:
        query: the text, or the name of the video.
        measures: uncertainties of the query, by name.
        hits: the best three, and the right one if it is none of them.
    """

    query: str
    measures: Mapping[str, float]
    hits: tuple[RankedVideo, ...]

    def said(self) -> str:
        """What the system says of the query, in a line."""
        parts = [f"{quantity(name)} = {number(value)}" for name, value in self.measures.items()]
        return ", ".join(parts)


@dataclass(frozen=True)
class Results:
    """Queries drawn by the seed, and what was found.

    Attributes:
        title: model and split.
        items: all videos by name.
        answers: one a query.
        by_video: whether videos were the queries, and texts were found.
    """

    title: str
    items: Mapping[str, Item]
    answers: Sequence[Answered]
    by_video: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {"queries": to_values(self.answers)}

    def draw(self) -> "Figure":
        """Frames of what was found, or the frames of the video beside its texts."""
        if self.by_video:
            strips = [self._of_video(answer) for answer in self.answers]
            return draw_strips(f"{self.title}; video to text{self._terms()}", strips, _VIDEOS)
        strips = [
            Strip(
                heading=f"“{answer.query}”",
                cells=hit_cells(answer.hits, self.items, told),
                label=answer.said(),
            )
            for answer in self.answers
        ]
        return draw_strips(f"{self.title}; text to video{self._terms()}", strips, _VIDEOS)

    def _terms(self) -> str:
        """What the short names of the values of a pair mean, where that is more than the name."""
        names = dict.fromkeys(
            name for one in self.answers for hit in one.hits for name in hit.values
        )
        terms = [f"{n}: {quantity(n)}" for n in names if n not in ("score", quantity(n))]
        return f". {'; '.join(terms)}" if terms else ""

    def _of_video(self, answer: Answered) -> Strip:
        notes: list[tuple[str, bool]] = []
        for hit in answer.hits:
            values = ", ".join(f"{n} {number(v)}" for n, v in hit.values.items())
            tick = "✓ " if hit.right else ""
            notes.append((f"{tick}{hit.rank:g}. {hit.name} ({values})", hit.right))
        return Strip(
            heading="",
            cells=[Cell(item=self.items[answer.query], lines=[answer.query])],
            label=answer.said(),
            notes=notes,
        )


def results(subject: Subject, count: int) -> Results:
    """The best three videos of texts drawn by the seed."""
    queries = subject.pairs(count)
    matrices = subject.matrices(queries)
    answers = []
    for row, query in enumerate(queries):
        scores, own = matrices["score"][row], int(subject.owner[query])
        chosen = best(scores, _TOP)
        chosen += [] if own in chosen else [own]
        values = {name: matrix[row] for name, matrix in matrices.items()}
        found = ranked(subject.names, chosen, [own], scores, values)
        measures = _measures(subject, "text", query)
        answers.append(Answered(subject.text(query), measures, found))
    return Results(title=subject.title, items=subject.by_name, answers=answers)


def captions(subject: Subject, count: int) -> Results:
    """The best three texts of videos drawn by the seed, and the best of their own."""
    answers = []
    for pair in subject.pairs(count):
        video = int(subject.owner[pair])
        scores = subject.scores[:, video]
        own = [int(row) for row in (subject.owner == video).nonzero()[0]]
        chosen = best(scores, _TOP)
        if not set(own) & set(chosen):
            chosen.append(max(own, key=lambda row: scores[row]))
        # Beliefs are those of the text among all videos, so whole rows are worked out.
        matrices = subject.matrices(chosen)
        found = tuple(
            RankedVideo(
                name=subject.text(row),
                rank=rank_of(scores, row),
                right=row in own,
                values={name: float(matrix[place, video]) for name, matrix in matrices.items()},
            )
            for place, row in enumerate(chosen)
        )
        measures = _measures(subject, "video", video)
        answers.append(Answered(subject.names[video], measures, found))
    return Results(title=subject.title, items=subject.by_name, answers=answers, by_video=True)


def _measures(subject: Subject, side: str, at: int) -> dict[str, float]:
    return {
        name: float(values[at])
        for name, values in subject.measures.items()
        if name.startswith(side)
    }
