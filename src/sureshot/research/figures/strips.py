"""Rows of pictures: a query, and frames of the videos that were found for it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, assert_never

import numpy as np
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from sureshot.datasets.split import Item
from sureshot.errors import SureshotError, VideoError, option
from sureshot.media.sampling_rule import Sampling
from sureshot.metrics.hubs import (
    dual_softmax,
    inverted_softmax,
    nearest_neighbour_normalised,
    querybank_norm,
)
from sureshot.metrics.ranks import text_ranks
from sureshot.models.encoders.base import HasWords
from sureshot.research.features import sampled_frames
from sureshot.research.figures.canvas import (
    BLUE,
    INK,
    MUTED,
    NORMAL,
    PALE,
    SMALL,
    WIDTH,
    Style,
    new_figure,
    number,
    quantity,
    words,
)
from sureshot.research.figures.subject import Subject, tell_apart
from sureshot.settings import to_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SIDE = 120  # pixels of the shorter side of a frame
_LINE = 0.135  # inches a line
_LEFT, _GAP, _TOP = 0.08, 0.1, 0.42  # inches: margins, between pictures, for the title
_SHAPE = 0.72  # height of a picture by its width
_BOLD = 1.15  # how much wider bold letters are


@dataclass(frozen=True)
class RankedVideo:
    """A video or a text that was found.

    Attributes:
        name: name of the video, or the text itself.
        rank: among all candidates, 1 the best; ties share their mean.
        right: whether it is what was sought.
        values: what is said of the pair, by name, the score first.
    """

    name: str
    rank: float
    right: bool
    values: Mapping[str, float]


@dataclass(frozen=True)
class Cell:
    """A picture and what stands below it.

    Attributes:
        item: the video.
        lines: words below the picture.
        right: drawn with a thick frame and a tick.
        frame: which of ``frames``, from 0.
        frames: number of frames sampled from the video; 1 is the middle.
        sampling: which frames those are.
        shade: how much of the bar below it is filled, in [0, 1]; None is no bar.
    """

    item: Item | None
    lines: Sequence[str] = ()
    right: bool = False
    frame: int = 0
    frames: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    shade: float | None = None


@dataclass(frozen=True)
class Strip:
    """A row of pictures.

    Attributes:
        heading: words above the strip, in bold.
        cells: the pictures.
        label: small, above the pictures.
        notes: lines beside the pictures, the first words of each in bold if it is right.
    """

    heading: str
    cells: Sequence[Cell]
    label: str = ""
    notes: Sequence[tuple[str, bool]] = field(default=())


def draw_strips(title: str, strips: Sequence[Strip], columns: int) -> "Figure":
    """All rows below each other; ``columns`` pictures would fill the width."""
    cell = (WIDTH - 2 * _LEFT - (columns - 1) * _GAP) / columns
    headings = [words(strip.heading, WIDTH - 0.2, _BOLD * (NORMAL + 1), 2) for strip in strips]
    heights = [
        _height(strip, heading, cell) for strip, heading in zip(strips, headings, strict=True)
    ]
    titles = words(title, WIDTH - 0.2, NORMAL, 4)
    height = _TOP + (len(titles) - 1) * _LINE + sum(heights)
    figure = new_figure(height, constrained=False)
    sheet = figure.add_axes((0, 0, 1, 1))
    sheet.set(xlim=(0, WIDTH), ylim=(height, 0))
    sheet.set_axis_off()
    style: Style = {"fontsize": NORMAL, "color": MUTED, "va": "top", "parse_math": False}
    sheet.text(_LEFT, 0.1, "\n".join(titles), **style)
    seen: dict[tuple[Item, int, Sampling], UInt8[np.ndarray, "frames rows columns 3"] | None] = {}
    top = _TOP + (len(titles) - 1) * _LINE
    for strip, heading, tall in zip(strips, headings, heights, strict=True):
        at = top
        if strip.heading:
            bold: Style = {"fontsize": NORMAL + 1, "color": INK, "va": "top", "parse_math": False}
            sheet.text(_LEFT, at, "\n".join(heading), fontweight="bold", **bold)
            at += len(heading) * _LINE * 1.15 + 0.04
        if strip.label:
            label = _label(strip)
            _line(sheet, _LEFT, at, "\n".join(label), colour=INK)
            at += len(label) * _LINE + 0.02
        for place, one in enumerate(strip.cells):
            left = _LEFT + place * (cell + _GAP)
            _draw_cell(sheet, one, left, at, cell, seen)
        beside = _LEFT + len(strip.cells) * (cell + _GAP) + 0.08
        for note, right in strip.notes:
            lines = words(note, WIDTH - beside - 0.1, _BOLD * SMALL)
            _line(sheet, beside, at, "\n".join(lines), colour=BLUE if right else INK, bold=right)
            at += len(lines) * _LINE + 0.05
        top += tall
    return figure


def _frames(
    item: Item, frames: int, sampling: Sampling
) -> UInt8[np.ndarray, "frames rows columns 3"] | None:
    try:
        return sampled_frames(item, frames, _SIDE, sampling)
    except (VideoError, OSError):
        return None


def _label(strip: Strip) -> list[str]:
    return words(strip.label, WIDTH - 2 * _LEFT, SMALL)


def _height(strip: Strip, heading: Sequence[str], cell: float) -> float:
    tall = len(heading) * _LINE * 1.15 + 0.04 if strip.heading else 0.0
    tall += len(_label(strip)) * _LINE + 0.02 if strip.label else 0.0
    lines = max((len(one.lines) for one in strip.cells), default=0)
    bars = 0.1 if any(one.shade is not None for one in strip.cells) else 0.0
    pictures = cell * _SHAPE + bars + lines * _LINE + 0.06
    beside = WIDTH - _LEFT - len(strip.cells) * (cell + _GAP) - 0.18
    notes = sum(len(words(note, beside, _BOLD * SMALL)) * _LINE + 0.05 for note, _ in strip.notes)
    return tall + max(pictures if strip.cells else 0.0, notes) + 0.12


def _draw_cell(
    sheet: "Axes",
    one: Cell,
    left: float,
    top: float,
    cell: float,
    seen: dict[tuple[Item, int, Sampling], UInt8[np.ndarray, "frames rows columns 3"] | None],
) -> None:
    from matplotlib.patches import Rectangle

    high = cell * _SHAPE
    picture = None
    if one.item is not None:
        key = (one.item, one.frames, one.sampling)
        if key not in seen:
            seen[key] = _frames(*key)
        shown = seen[key]
        picture = None if shown is None else shown[min(one.frame, len(shown) - 1)]
    if picture is None:
        sheet.add_patch(Rectangle((left, top), cell, high, color="0.92", linewidth=0))
        if one.item is not None:
            _line(sheet, left + 0.05, top + 0.05, "cannot be read", colour=MUTED)
    else:
        box = (left, left + cell, top + high, top)
        sheet.imshow(_cut(picture), extent=box, aspect="auto", interpolation="bilinear", zorder=1)
    rim: Style = {"edgecolor": PALE, "linewidth": 0.6}
    if one.right:
        rim = {"edgecolor": BLUE, "linewidth": 2.6}
    sheet.add_patch(Rectangle((left, top), cell, high, facecolor="none", zorder=2, **rim))
    if one.right:
        badge: Style = {"boxstyle": "round,pad=0.2", "facecolor": BLUE, "edgecolor": "white"}
        style: Style = {"color": "white", "fontsize": SMALL, "ha": "right", "va": "top"}
        sheet.text(left + cell - 0.07, top + 0.07, "✓ right", bbox=badge, zorder=3, **style)
    at = top + high + 0.04
    if one.shade is not None:
        sheet.add_patch(Rectangle((left, at), cell, 0.07, facecolor="0.9", linewidth=0))
        filled = cell * min(max(one.shade, 0.0), 1.0)
        sheet.add_patch(Rectangle((left, at), filled, 0.07, facecolor=INK, linewidth=0))
        at += 0.1
    for line in one.lines:
        _line(sheet, left, at, words(line, cell, SMALL, 1)[0], colour=BLUE if one.right else INK)
        at += _LINE


def _line(
    sheet: "Axes", left: float, top: float, text: str, *, colour: str, bold: bool = False
) -> None:
    weight = "bold" if bold else "normal"
    sheet.text(
        left, top, text, fontsize=SMALL, color=colour, fontweight=weight, va="top", parse_math=False
    )


def _cut(
    picture: UInt8[np.ndarray, "rows columns 3"],
) -> UInt8[np.ndarray, "some_rows some_columns 3"]:
    """The middle of a picture, in the shape of a cell."""
    rows, columns = picture.shape[:2]
    wide = min(columns, round(rows / _SHAPE))
    high = min(rows, round(wide * _SHAPE))
    top, left = (rows - high) // 2, (columns - wide) // 2
    return picture[top : top + high, left : left + wide]


def ranked(
    names: Sequence[str],
    chosen: Sequence[int],
    sought: Collection[int],
    scores: Float[np.ndarray, " candidates"],
    others: Mapping[str, Float[np.ndarray, " candidates"]] | None = None,
) -> tuple[RankedVideo, ...]:
    """Some candidates of a query, with their ranks among all.

    Args:
        names: names of all candidates.
        chosen: candidates to tell of.
        sought: candidates that are right.
        scores: scores of all candidates.
        others: what else is said of them, by name.
    """
    values = {"score": scores, **(others or {})}
    return tuple(
        RankedVideo(
            name=names[one],
            rank=rank_of(scores, one),
            right=one in sought,
            values={name: float(row[one]) for name, row in values.items()},
        )
        for one in chosen
    )


def hit_cells(
    hits: Sequence[RankedVideo],
    items: Mapping[str, Item],
    lines: Callable[[RankedVideo], Sequence[str]],
) -> list[Cell]:
    """A picture of each video that was found.

    Args:
        hits: the videos.
        items: all videos by name.
        lines: what is written below a picture.
    """
    return [Cell(item=items[hit.name], lines=lines(hit), right=hit.right) for hit in hits]


def rank_of(scores: Float[np.ndarray, " candidates"], candidate: int) -> float:
    """Rank of a candidate, 1 the best; ties share their mean.

    Examples:
        >>> rank_of(np.array([0.5, 0.9, 0.5]), 0)
        2.5
    """
    own = scores[candidate]
    return float(1 + (scores > own).sum() + ((scores == own).sum() - 1) / 2)


def best(scores: Float[np.ndarray, " candidates"], count: int) -> list[int]:
    """The best candidates, the best first; of equal ones the earlier.

    Examples:
        >>> best(np.array([0.5, 0.9, 0.5]), 2)
        [1, 0]
    """
    return [int(at) for at in np.argsort(-scores, kind="stable")[:count]]


def told(hit: RankedVideo) -> list[str]:
    """What stands below a picture: rank and name, then each value."""
    rank = f"{hit.rank:g}"
    return [f"{rank}. {hit.name}", *(f"{n} {number(v)}" for n, v in hit.values.items())]


_RESULTS_TOP = 3  # as DVTR draws
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
        chosen = best(scores, _RESULTS_TOP)
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
        chosen = best(scores, _RESULTS_TOP)
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


_ABOVE = 4


@dataclass(frozen=True)
class Failure:
    """A query that failed.

    Attributes:
        query: the text.
        right: the video that was sought.
        above: the best of those that scored higher, or the same.
    """

    query: str
    right: RankedVideo
    above: tuple[RankedVideo, ...]


@dataclass(frozen=True)
class Failures:
    """Failed queries drawn by the seed, so neither the best nor the worst of them.

    Attributes:
        title: model and split.
        items: all videos by name.
        failed: how many queries have another video first.
        queries: how many there are.
        shown: some of them.
    """

    title: str
    items: Mapping[str, Item]
    failed: int
    queries: int
    shown: Sequence[Failure]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {"failed": self.failed, "queries": self.queries, "shown": to_values(self.shown)}

    def draw(self) -> "Figure":
        """The right video first, then what was found before it."""
        strips = [
            Strip(
                heading=f"“{one.query}”",
                cells=hit_cells([one.right, *one.above], self.items, _told),
            )
            for one in self.shown
        ]
        title = (
            f"{self.title}. {self.failed} of {self.queries} texts do not find their video first; "
            f"some of those, drawn at random. Left: the right video"
        )
        return draw_strips(title, strips, 1 + _ABOVE)


def failures(subject: Subject, count: int) -> Failures:
    """Failed queries, each of another video.

    Raises:
        SureshotError: no query failed.
    """
    ranks = text_ranks(subject.scores, subject.owner)
    lost = ranks > 1
    if not lost.any():
        raise SureshotError(f"No query of {subject.features.split.title()} failed.")
    chosen = [query for query in subject.pairs(len(subject.owner)) if lost[query]]
    draw = np.random.default_rng([subject.seed, 2])
    some = sorted(draw.permutation(chosen)[:count])
    shown = [_failure(subject, int(query)) for query in some]
    return Failures(
        title=subject.title,
        items=subject.by_name,
        failed=int(lost.sum()),
        queries=len(lost),
        shown=shown,
    )


def _failure(subject: Subject, query: int) -> Failure:
    scores, own = subject.scores[query], int(subject.owner[query])
    first = best(scores, _ABOVE + 1)
    above = [video for video in first if video != own and scores[video] >= scores[own]][:_ABOVE]
    right, *others = ranked(subject.names, [own, *above], [own], scores)
    return Failure(subject.text(query), right, tuple(others))


def _told(hit: RankedVideo) -> list[str]:
    return [f"rank {hit.rank:g}, score {number(hit.values['score'])}", hit.name]


After = Literal["score", "printed", "dsl", "inverted_softmax", "qb_norm", "nnn"]
_RANK_CHANGES_TOP = 4
_PLAIN, _PRINTED = "similarity", "printed score"


@dataclass(frozen=True)
class Change:
    """A query whose right video moved.

    Attributes:
        query: the text.
        ranks: rank of the right video before and after.
        before: the best videos under the plain score.
        after: the best videos under the corrected one.
    """

    query: str
    ranks: tuple[float, float]
    before: tuple[RankedVideo, ...]
    after: tuple[RankedVideo, ...]


@dataclass(frozen=True)
class RankChanges:
    """All queries under two scores, and some that moved, up and down by turns.

    Attributes:
        title: model and split.
        items: all videos by name.
        names: what the two scores are called.
        rose: queries whose right video came nearer to the top.
        fell: queries whose right video went away from it.
        stayed: all others.
        r1: R@1 before and after, percent.
        shown: half of them rose the most, half fell the most.
    """

    title: str
    items: Mapping[str, Item]
    names: tuple[str, str]
    rose: int
    fell: int
    stayed: int
    r1: tuple[float, float]
    shown: Sequence[Change]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        counts = {"rose": self.rose, "fell": self.fell, "stayed": self.stayed}
        shown = to_values(self.shown)
        return {"scores": list(self.names), **counts, "r1": list(self.r1), "shown": shown}

    def draw(self) -> "Figure":
        """Two rows of frames a query, the right video marked."""
        strips: list[Strip] = []
        for change in self.shown:
            for place, found in enumerate((change.before, change.after)):
                label = f"{self.names[place]}: right video at rank {change.ranks[place]:g}"
                heading = "" if place else f"“{change.query}”"
                cells = hit_cells(found, self.items, _rank_changes_told)
                strips.append(Strip(heading=heading, cells=cells, label=label))
        title = (
            f"{self.title}. From {self.names[0]} to {self.names[1]}: {self.rose} queries rise, "
            f"{self.fell} fall, {self.stayed} stay; R@1 {self.r1[0]:.1f} to {self.r1[1]:.1f} %. "
            f"Shown: the largest rises and falls among the first places."
        )
        return draw_strips(title, strips, _RANK_CHANGES_TOP)


def rank_changes(
    subject: Subject,
    count: int,
    after: After | None = None,
    bank: Float[np.ndarray, "captions videos"] | None = None,
) -> RankChanges:
    """Queries under two scores.

    Args:
        subject: the model and the split.
        count: queries to show.
        after: the second score. ``score`` is the system's own against its plain similarity,
            ``printed`` the re-ranked one as printed against the same; the others correct the
            system's own score for hubs. None is ``score``.
        bank: scores of training captions with the videos, for ``qb_norm`` and ``nnn``.

    Raises:
        SureshotError: the system has no such scores.
    """
    matrices = subject.matrices(range(len(subject.owner)))
    names, pair = _scores(subject, matrices, after or "score", bank)
    ranks = [text_ranks(scores, subject.owner) for scores in pair]
    moved = ranks[0] - ranks[1]
    shown = [_change(subject, query, pair, ranks) for query in _chosen(ranks, count)]
    return RankChanges(
        title=subject.title,
        items=subject.by_name,
        names=names,
        rose=int((moved > 0).sum()),
        fell=int((moved < 0).sum()),
        stayed=int((moved == 0).sum()),
        r1=(100 * float((ranks[0] <= 1).mean()), 100 * float((ranks[1] <= 1).mean())),
        shown=shown,
    )


def _scores(
    subject: Subject,
    matrices: dict[str, Float[np.ndarray, "queries videos"]],
    after: After,
    bank: Float[np.ndarray, "captions videos"] | None,
) -> tuple[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Names and matrices of both scores."""
    own = matrices["score"]
    match after:
        case "score" | "printed":
            second = "score" if after == "score" else _PRINTED
            if _PLAIN not in matrices or second not in matrices:
                raise SureshotError(
                    f"{subject.scorer.system} does not re-rank by itself, as DUQ does. Correct its "
                    f"scores for hubs: {option('after')} nnn, qb_norm, inverted_softmax or dsl."
                )
            return (_PLAIN, second), (matrices[_PLAIN], matrices[second])
        case "dsl":
            corrected = dual_softmax(own)
        case "inverted_softmax":
            corrected = inverted_softmax(own)
        case "qb_norm" | "nnn":
            if bank is None:
                raise SureshotError(f"{after} looks at training captions; give their scores.")
            correct = querybank_norm if after == "qb_norm" else nearest_neighbour_normalised
            corrected = correct(own, bank)
        case _:
            assert_never(after)
    return ("score", after), (own, corrected)


def _chosen(ranks: Sequence[Float[np.ndarray, " queries"]], count: int) -> list[int]:
    """Rises and falls by turns, those between the first places before all others.

    A move counts by the ratio of its ranks: from 3 to 1 is more than from 300 to 200.
    """
    moved = np.log(ranks[0]) - np.log(ranks[1])
    rises = [int(at) for at in np.argsort(-moved, kind="stable") if moved[at] > 0]
    falls = [int(at) for at in np.argsort(moved, kind="stable") if moved[at] < 0]
    near = np.minimum(ranks[0], ranks[1]) <= _RANK_CHANGES_TOP  # shown in one of the rows at least
    rises, falls = ([*filter(near.__getitem__, some)] for some in (rises, falls))
    up = min(len(rises), max(count - count // 2, count - len(falls)))
    return rises[:up] + falls[: count - up]


def _change(
    subject: Subject,
    query: int,
    pair: tuple[np.ndarray, np.ndarray],
    ranks: Sequence[Float[np.ndarray, " queries"]],
) -> Change:
    own = int(subject.owner[query])
    before, after = (
        ranked(subject.names, best(scores[query], _RANK_CHANGES_TOP), [own], scores[query])
        for scores in pair
    )
    moved = float(ranks[0][query]), float(ranks[1][query])
    return Change(query=subject.text(query), ranks=moved, before=before, after=after)


def _rank_changes_told(hit: RankedVideo) -> list[str]:
    return [f"{hit.rank:g}. {hit.name}   {number(hit.values['score'])}"]


_PICTURES = 6  # frames a row; of a longer video those at even distances


@dataclass(frozen=True)
class BestWord:
    """The word of a text that fits a frame best, by one of its tokens.

    Attributes:
        word: the word as the text writes it.
        cosine: cosine of the token and the frame, in [-1, 1].
    """

    word: str
    cosine: float


@dataclass(frozen=True)
class Reading:
    """A text against a video, as a model reads both.

    Attributes:
        text: what it says.
        right: whether it describes the video.
        score: similarity of the pair.
        frames: cosine of each real frame with the token of the text that fits it best, learned
            tokens among them.
        learned: the same of each learned token of the video.
        words: the word that fits each frame best; None where the encoder cannot say its words.
        learned_words: the same of each learned token of the video.
    """

    text: str
    right: bool
    score: float
    frames: tuple[float, ...]
    learned: tuple[float, ...]
    words: tuple[BestWord | None, ...]
    learned_words: tuple[BestWord | None, ...]


@dataclass(frozen=True)
class ReadVideo:
    """A video under a text.

    Attributes:
        model: the model that reads them, in words.
        item: the video.
        reading: the text against it.
        sampled: frames that the video was sampled at.
        sampling: which frames those were.
    """

    model: str
    item: Item
    reading: Reading
    sampled: int
    sampling: Sampling

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        values: dict[str, Any] = to_values(self.reading)
        return {"model": self.model, "video": self.item.id} | values


@dataclass(frozen=True)
class Tokens:
    """Videos, each under its own text and under the best of another video.

    Attributes:
        title: model and split.
        rows: two rows a video, its own text first.
    """

    title: str
    rows: Sequence[ReadVideo]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        texts = [to_values(row.reading) for row in self.rows]
        videos = [
            {"video": row.item.id, "texts": texts[at : at + 2]}
            for at, row in enumerate(self.rows)
            if row.reading.right
        ]
        return {"videos": videos}

    def draw(self) -> "Figure":
        """Bars below frames, from the worst to the best match of the figure."""
        headings = []
        for row in self.rows:
            tick = "✓ " if row.reading.right else ""
            headings.append((f"{tick}“{row.reading.text}”", row.item.id))
        return _draw(f"{self.title}. ✓: the video's own text", self.rows, headings)


@dataclass(frozen=True)
class TokensOfBoth:
    """Texts, each above the best video of one model and of another.

    Attributes:
        title: both models and the split.
        rows: two rows a text, in the order of the models.
        first_alone: texts whose video the first model alone finds first.
        second_alone: texts whose video the second model alone finds first.
        queries: all texts.
    """

    title: str
    rows: Sequence[ReadVideo]
    first_alone: int
    second_alone: int
    queries: int

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {
            "queries": self.queries,
            "first_alone": self.first_alone,
            "second_alone": self.second_alone,
            "rows": [row.to_dict() for row in self.rows],
        }

    def draw(self) -> "Figure":
        """Two rows of frames a text, a model each, their bars on one scale."""
        headings = []
        for place, row in enumerate(self.rows):
            found = "✓ the right video" if row.reading.right else "✗ a wrong video"
            text = "" if place % 2 else f"“{row.reading.text}”"
            headings.append((text, f"{row.model}: {found}, {row.item.id}"))
        title = (
            f"{self.title}. The best video of each model; of {self.queries} texts the first alone "
            f"finds {self.first_alone} first, the second alone {self.second_alone}"
        )
        return _draw(title, self.rows, headings)


def tokens(subject: Subject, count: int, beside: Subject | None = None) -> Tokens | TokensOfBoth:
    """Videos drawn by the seed under two texts each, or texts above the best video of two models.

    Args:
        subject: the model and the split.
        count: videos or texts to show.
        beside: another model with the same split. Texts are then drawn, by the seed, from those
            whose video one of the two alone finds first; from all where there is none.

    Raises:
        SureshotError: a system does not compare words with frames.
    """
    if beside is not None:
        return _of_both(subject, beside, count)
    rows = []
    for query in subject.pairs(count):
        column = int(subject.owner[query])
        order = best(subject.scores[:, column], len(subject.owner))
        other = [row for row in order if subject.owner[row] != column][:1]
        rows += [_row(subject, one, column, subject.model) for one in (query, *other)]
    return Tokens(title=subject.title, rows=rows)


def _of_both(subject: Subject, beside: Subject, count: int) -> TokensOfBoth:
    names, both = tell_apart(subject, beside), (subject, beside)
    tops = [one.scores.argmax(1) for one in both]
    alone = [
        (top == subject.owner) & (other != subject.owner)
        for top, other in ((tops[0], tops[1]), (tops[1], tops[0]))
    ]
    drawn = subject.pairs(len(subject.owner))
    differing = [query for query in drawn if alone[0][query] or alone[1][query]] or drawn
    order = np.random.default_rng([subject.seed, 3]).permutation(len(differing))[:count]
    return TokensOfBoth(
        title=f"{names[0]} beside {names[1]}, {subject.features.split.title()}",
        rows=[
            _row(one, differing[at], int(top[differing[at]]), name)
            for at in sorted(order.tolist())
            for one, top, name in zip(both, tops, names, strict=True)
        ],
        first_alone=int(alone[0].sum()),
        second_alone=int(alone[1].sum()),
        queries=len(subject.owner),
    )


def _row(subject: Subject, query: int, column: int, model: str) -> ReadVideo:
    """A video under a text, as a model reads both."""
    texts, videos = subject.text_codes([query]), subject.video_codes([column])
    if not {"words", "mask"} <= texts.keys() or not {"frames", "mask"} <= videos.keys():
        raise SureshotError(
            f"{subject.scorer.system} does not compare words with frames; UATVR does."
        )
    words, mask, frames = texts["words"][0], texts["mask"][0], videos["frames"][0]
    cosines = best_tokens(words, frames, mask).tolist()
    names = _named(subject, query)
    fits = best_words(words, frames, mask, names) if names else [None] * len(frames)
    own = len(subject.features.videos[column].frames)
    seen = subject.features
    return ReadVideo(
        model=model,
        item=subject.items[column],
        reading=Reading(
            text=subject.text(query),
            right=bool(subject.owner[query] == column),
            score=float(subject.scores[query, column]),
            frames=tuple(cosines[:own]),
            learned=tuple(cosines[own:]),
            words=tuple(fits[:own]),
            learned_words=tuple(fits[own:]),
        ),
        sampled=seen.frames,
        sampling=seen.sampling,
    )


def _named(subject: Subject, query: int) -> tuple[str, ...]:
    """The word of each token of a text; none where the encoder cannot say, or says other tokens."""
    encoder = subject.scorer.encoder
    if not isinstance(encoder, HasWords):
        return ()
    (names,) = encoder.words_of([subject.text(query)])
    tokens = subject.features.texts[int(subject.captions[query])][1]
    return names if len(names) == len(tokens) else ()


def best_tokens(
    words: Float[Tensor, "words dim"],
    frames: Float[Tensor, "frames dim"],
    mask: Bool[Tensor, " words"],
) -> Float[Tensor, " frames"]:
    """For each frame the largest inner product with a real token of a text."""
    return (words[mask] @ frames.T).amax(0)


def best_words(
    words: Float[Tensor, "words dim"],
    frames: Float[Tensor, "frames dim"],
    mask: Bool[Tensor, " words"],
    names: Sequence[str],
) -> list[BestWord | None]:
    """For each frame the word with a token that fits it best.

    Args:
        words: tokens of a text, learned ones behind those that have names.
        frames: tokens of a video.
        mask: which tokens count.
        names: the word of each token from the first on; an empty one is no word.
    """
    held = [place for place, name in enumerate(names) if name and mask[place]]
    if not held:
        return [None] * len(frames)
    cosines, which = (words[held] @ frames.T).max(0)
    found = zip(which.tolist(), cosines.tolist(), strict=True)
    return [BestWord(names[held[place]], cosine) for place, cosine in found]


def _draw(title: str, rows: Sequence[ReadVideo], headings: Sequence[tuple[str, str]]) -> "Figure":
    """A strip a row; headings are what stands above it, in bold and small."""
    every = [v for row in rows for v in (*row.reading.frames, *row.reading.learned)]
    low, high = min(every), max(every)
    spread = (high - low) or 1.0
    strips = []
    for row, (heading, label) in zip(rows, headings, strict=True):
        reading = row.reading
        cells = [
            Cell(
                item=row.item,
                lines=[f"frame {at + 1}  {number(reading.frames[at])}", _said(reading.words[at])],
                frame=at,
                frames=row.sampled,
                sampling=row.sampling,
                shade=(reading.frames[at] - low) / spread,
            )
            for at in thinned(len(reading.frames), _PICTURES)
        ]
        both = zip(reading.learned, reading.learned_words, strict=True)
        learned = ", ".join(
            number(value) + ("" if word is None else f" ({_said(word)})") for value, word in both
        )
        label += f", score {number(reading.score)}"
        label += f"; learned tokens: {learned}" if learned else ""
        strips.append(Strip(heading=heading, cells=cells, label=label))
    title = (
        f"{title}. Bar and number: cosine of the frame with the token of the text that fits it "
        f"best, learned tokens among them, from {number(low)} to {number(high)}; below: the word "
        f"that fits it best"
    )
    return draw_strips(title, strips, _PICTURES)


def _said(word: BestWord | None) -> str:
    return "" if word is None else f"“{word.word}” {number(word.cosine)}"


def thinned(count: int, most: int) -> list[int]:
    """Places at even distances, the first and the last among them.

    Examples:
        >>> thinned(5, 6), thinned(12, 4)
        ([0, 1, 2, 3, 4], [0, 4, 7, 11])
    """
    if count <= most:
        return list(range(count))
    return [int(place) for place in np.linspace(0, count - 1, most).round()]
