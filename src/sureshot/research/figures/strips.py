"""Figures of frames: rows of pictures, each row a query and the videos that were found for it.

As in `sureshot.research.figures.plots` one function gives the numbers of a figure, another draws.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8

from sureshot.datasets.split import Item
from sureshot.datasets.synthetic import PER_SCENE, frames_of, read_part, truth_of
from sureshot.errors import SureshotError, VideoError, option
from sureshot.media.sampling_rule import Sampling
from sureshot.metrics.ranks import text_ranks
from sureshot.metrics.report import CORRECTIONS, hub_corrected
from sureshot.models.encoders.base import HasWords
from sureshot.research.canvas import (
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
from sureshot.research.features import sampled_frames
from sureshot.research.figures.subject import Numbers, Subject, tell_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Picture = UInt8[np.ndarray, "rows columns 3"]

_SIDE = 120  # pixels of the shorter side of a frame
_LINE = 0.135  # inches a line
_LEFT, _GAP, _TOP = 0.08, 0.1, 0.42  # inches: margins, between pictures, for the title
_SHAPE = 0.72  # height of a picture by its width
_AROUND = 235  # grey of what a picture of another shape leaves of its cell
_BOLD = 1.15  # how much wider bold letters are


@dataclass(frozen=True)
class Cell:
    """A frame of a video, or a picture itself, and lines below it; with a thick rim if right."""

    item: Item | Picture
    lines: Sequence[str] = ()
    right: bool = False
    frame: int = 0  # of the ``frames`` that are sampled; the one of 1 is the middle
    frames: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    shade: float | None = None  # how much of a bar below it is filled, in [0, 1]


@dataclass(frozen=True)
class Strip:
    """A row of pictures; notes are to the right of them, each in bold blue where it is right."""

    heading: str
    cells: Sequence[Cell]
    label: str = ""
    notes: Sequence[tuple[str, bool]] = ()


def draw_strips(title: str, strips: Sequence[Strip], columns: int) -> "Figure":
    """All rows below each other; ``columns`` pictures would fill the width."""
    _frames.cache_clear()  # the files may have changed since the last figure
    wide = (WIDTH - 2 * _LEFT - (columns - 1) * _GAP) / columns
    figure = new_figure(1.0, constrained=False)
    sheet = figure.add_axes((0, 0, 1, 1))
    sheet.set_axis_off()
    titles = words(title, WIDTH - 0.2, NORMAL, 4)
    _write(sheet, _LEFT, 0.1, titles, size=NORMAL, colour=MUTED)
    height = _TOP + (len(titles) - 1) * _LINE
    for strip in strips:
        height = _draw_strip(sheet, strip, height, wide)
    sheet.set(xlim=(0, WIDTH), ylim=(height, 0))
    figure.set_size_inches(WIDTH, height)
    return figure


def _draw_strip(sheet: "Axes", strip: Strip, at: float, wide: float) -> float:
    """Draw a strip from a height on; where the next one begins."""
    if strip.heading:
        lines = words(strip.heading, WIDTH - 0.2, _BOLD * (NORMAL + 1), 2)
        _write(sheet, _LEFT, at, lines, size=NORMAL + 1, bold=True)
        at += len(lines) * _LINE * 1.15 + 0.04
    if strip.label:
        lines = words(strip.label, WIDTH - 2 * _LEFT, SMALL)
        _write(sheet, _LEFT, at, lines)
        at += len(lines) * _LINE + 0.02
    bottom = at
    for place, cell in enumerate(strip.cells):
        end = _draw_cell(sheet, cell, _LEFT + place * (wide + _GAP), at, wide)
        bottom = max(bottom, end + 0.02)
    left = _LEFT + len(strip.cells) * (wide + _GAP) + 0.08
    for note, right in strip.notes:
        lines = words(note, WIDTH - left - 0.1, _BOLD * SMALL)
        _write(sheet, left, at, lines, colour=BLUE if right else INK, bold=right)
        at += len(lines) * _LINE + 0.05
    return max(bottom, at) + 0.12


def _draw_cell(sheet: "Axes", cell: Cell, left: float, top: float, wide: float) -> float:
    """Draw a cell; where it ends."""
    from matplotlib.patches import Rectangle

    high = wide * _SHAPE
    pictures: Sequence[Picture] = (cell.item,) if isinstance(cell.item, np.ndarray) else ()
    if isinstance(cell.item, Item):
        pictures = _frames(cell.item, cell.frames, cell.sampling)
    if pictures:
        box = (left, left + wide, top + high, top)
        picture = _letterboxed(pictures[min(cell.frame, len(pictures) - 1)])
        sheet.imshow(picture, extent=box, aspect="auto", interpolation="bilinear", zorder=1)
    else:
        sheet.add_patch(Rectangle((left, top), wide, high, color="0.92", linewidth=0))
        _write(sheet, left + 0.05, top + 0.05, ["cannot be read"], colour=MUTED)
    rim: Style = {"edgecolor": PALE, "linewidth": 0.6}
    if cell.right:
        rim = {"edgecolor": BLUE, "linewidth": 2.6}
        badge: Style = {"boxstyle": "round,pad=0.2", "facecolor": BLUE, "edgecolor": "white"}
        style: Style = {"color": "white", "fontsize": SMALL, "ha": "right", "va": "top"}
        sheet.text(left + wide - 0.07, top + 0.07, "✓ right", bbox=badge, zorder=3, **style)
    sheet.add_patch(Rectangle((left, top), wide, high, facecolor="none", zorder=2, **rim))
    at = top + high + 0.04
    if cell.shade is not None:
        filled = wide * min(max(cell.shade, 0.0), 1.0)
        sheet.add_patch(Rectangle((left, at), wide, 0.07, facecolor="0.9", linewidth=0))
        sheet.add_patch(Rectangle((left, at), filled, 0.07, facecolor=INK, linewidth=0))
        at += 0.1
    for line in cell.lines:
        _write(sheet, left, at, words(line, wide, SMALL, 1), colour=BLUE if cell.right else INK)
        at += _LINE
    return at


def _write(
    sheet: "Axes",
    left: float,
    top: float,
    lines: Sequence[str],
    *,
    size: float = SMALL,
    colour: str = INK,
    bold: bool = False,
) -> None:
    weight = "bold" if bold else "normal"
    style: Style = {"va": "top", "parse_math": False, "color": colour, "fontweight": weight}
    sheet.text(left, top, "\n".join(lines), fontsize=size, **style)


@functools.lru_cache(maxsize=64)
def _frames(item: Item, frames: int, sampling: Sampling) -> Sequence[Picture]:
    try:
        return list(sampled_frames(item, frames, _SIDE, sampling))
    except (VideoError, OSError):
        return ()


def _letterboxed(picture: Picture) -> Picture:
    """The whole picture in the middle of a cell, light around it."""
    rows, columns = picture.shape[:2]
    high, wide = max(rows, round(columns * _SHAPE)), max(columns, round(rows / _SHAPE))
    top, left = (high - rows) // 2, (wide - columns) // 2
    around = (top, high - rows - top), (left, wide - columns - left), (0, 0)
    return np.pad(picture, around, constant_values=_AROUND)


# --- a synthetic dataset --------------------------------------------------------------------------

_EXAMPLES, _CAPTIONS, _SCENES = 8, 3, 4  # videos, captions of each, and most scenes of one


def draw_examples(root: Path) -> "Figure":
    """The first test videos of a synthetic dataset: a frame of each scene, and some captions."""
    part = read_part(root, "test")
    fits, strips = truth_of(part).videos_that_fit, []
    for column, video in enumerate(part.videos[:_EXAMPLES]):
        frames = frames_of(video.scenes, np.random.default_rng(video.pixels))
        middles = range(PER_SCENE // 2, PER_SCENE * len(video.scenes), PER_SCENE)
        own = [row for row, caption in enumerate(part.captions) if caption.video == column]
        notes = []
        for row in own[:_CAPTIONS]:
            caption = part.captions[row]
            about = "all scenes" if caption.scene is None else f"scene {caption.scene + 1}"
            fit = f"{about}; fits {fits[row]} of {len(part.videos)} videos"
            notes.append((f"{caption.text} ({fit})", False))
        strips.append(Strip("", [Cell(frames[middle]) for middle in middles], notes=notes))
    title = f"Some {part.name} videos: a frame of each scene, and captions"
    return draw_strips(title, strips, 2 * _SCENES)


# --- candidates of a query ------------------------------------------------------------------------


def best(scores: Float[np.ndarray, " candidates"], count: int) -> list[int]:
    """The best candidates, the best first; of equal ones the earlier."""
    return np.argsort(-scores, kind="stable")[:count].tolist()


def hits_of(
    name_of: Callable[[int], str],
    chosen: Sequence[int],
    sought: Collection[int],
    scores: Float[np.ndarray, " candidates"],
    values: Mapping[str, Float[np.ndarray, " chosen"]] | None = None,
) -> list[Numbers]:
    """Candidates of a query: name, rank among all, whether right, and values, else their scores."""
    values = values or {"score": scores[list(chosen)]}
    ranks = text_ranks(np.tile(scores, (len(chosen), 1)), np.array(chosen))
    return [
        {
            "name": name_of(one),
            "rank": float(ranks[at]),
            "right": one in sought,
            "values": {name: float(row[at]) for name, row in values.items()},
        }
        for at, one in enumerate(chosen)
    ]


def _measures(subject: Subject, side: str, row: int) -> dict[str, float]:
    found = subject.measures.items()
    return {name: float(values[row]) for name, values in found if name.startswith(side)}


def _as_sentence(measures: Mapping[str, float]) -> str:
    return ", ".join(f"{quantity(name)} = {number(value)}" for name, value in measures.items())


# --- results and captions -------------------------------------------------------------------------

_SHOWN = 3  # as DVTR draws
_VIDEOS = 4  # pictures a row: those, and the right one where it is not among them


def results(subjects: Sequence[Subject], count: int) -> Numbers:
    """The best three videos of texts drawn by the seed, and the right one."""
    subject = subjects[0]
    queries = subject.pairs(count)
    matrices = subject.matrices(queries)
    found = []
    for row, query in enumerate(queries):
        scores, own = matrices["score"][row], int(subject.owner[query])
        chosen = best(scores, _SHOWN)
        chosen += [] if own in chosen else [own]
        values = {name: matrix[row, chosen] for name, matrix in matrices.items()}
        hits = hits_of(subject.names.__getitem__, chosen, [own], scores, values)
        measures = _measures(subject, "text", query)
        found.append({"query": subject.text(query), "measures": measures, "hits": hits})
    return {"queries": found}


def draw_results(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """Frames of the videos that were found, with every number of each pair."""
    items = subjects[0].by_name

    def lines(hit: Numbers) -> list[str]:
        values = [f"{name} {number(value)}" for name, value in hit["values"].items()]
        return [f"{hit['rank']:g}. {hit['name']}", *values]

    strips = [
        Strip(
            heading=f"“{answer['query']}”",
            cells=[Cell(items[hit["name"]], lines(hit), hit["right"]) for hit in answer["hits"]],
            label=_as_sentence(answer["measures"]),
        )
        for answer in numbers["queries"]
    ]
    return draw_strips(f"{subjects[0].title}; text to video{_terms(numbers)}", strips, _VIDEOS)


def captions(subjects: Sequence[Subject], count: int) -> Numbers:
    """The best three texts of videos drawn by the seed, and the best of their own."""
    subject = subjects[0]
    found = []
    for pair in subject.pairs(count):
        video = int(subject.owner[pair])
        scores = subject.scores[:, video]
        own = np.flatnonzero(subject.owner == video).tolist()
        chosen = best(scores, _SHOWN)
        if not set(own) & set(chosen):
            chosen.append(max(own, key=lambda row: scores[row]))
        # Beliefs are those of the text among all videos, so whole rows are computed.
        values = {name: matrix[:, video] for name, matrix in subject.matrices(chosen).items()}
        hits = hits_of(subject.text, chosen, own, scores, values)
        measures = _measures(subject, "video", video)
        found.append({"query": subject.names[video], "measures": measures, "hits": hits})
    return {"queries": found}


def draw_captions(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """A frame of each video, and its texts to the right."""
    items = subjects[0].by_name

    def note(hit: Numbers) -> tuple[str, bool]:
        values = ", ".join(f"{name} {number(value)}" for name, value in hit["values"].items())
        tick = "✓ " if hit["right"] else ""
        return f"{tick}{hit['rank']:g}. {hit['name']} ({values})", hit["right"]

    strips = [
        Strip(
            heading="",
            cells=[Cell(items[answer["query"]], [answer["query"]])],
            label=_as_sentence(answer["measures"]),
            notes=[note(hit) for hit in answer["hits"]],
        )
        for answer in numbers["queries"]
    ]
    return draw_strips(f"{subjects[0].title}; video to text{_terms(numbers)}", strips, _VIDEOS)


def _terms(numbers: Numbers) -> str:
    """What the short names of the values mean, where that is more than the name."""
    hits = [hit for answer in numbers["queries"] for hit in answer["hits"]]
    names = dict.fromkeys(name for hit in hits for name in hit["values"])
    terms = [f"{n}: {quantity(n)}" for n in names if n not in ("score", quantity(n))]
    return f". {'; '.join(terms)}" if terms else ""


# --- failures -------------------------------------------------------------------------------------

_ABOVE = 4


def failures(subjects: Sequence[Subject], count: int) -> Numbers:
    """Failed queries drawn by the seed, each of another video, and what scored at least as high."""
    subject = subjects[0]
    lost = text_ranks(subject.scores, subject.owner) > 1
    if not lost.any():
        raise SureshotError(f"No query of {subject.features.split.title()} failed.")
    candidates = [query for query in subject.pairs(len(subject.owner)) if lost[query]]
    drawn = np.random.default_rng([subject.seed, 2]).permutation(candidates)[:count]
    shown = []
    for query in sorted(drawn.tolist()):
        scores, own = subject.scores[query], int(subject.owner[query])
        first = best(scores, _ABOVE + 1)
        above = [video for video in first if video != own and scores[video] >= scores[own]]
        right, *others = hits_of(subject.names.__getitem__, [own, *above[:_ABOVE]], [own], scores)
        shown.append({"query": subject.text(query), "right": right, "above": others})
    return {"failed": int(lost.sum()), "queries": len(lost), "shown": shown}


def draw_failures(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """The right video first, then what was found before it."""
    items = subjects[0].by_name

    def cell(hit: Numbers) -> Cell:
        score = f"rank {hit['rank']:g}, score {number(hit['values']['score'])}"
        return Cell(items[hit["name"]], [score, hit["name"]], hit["right"])

    strips = [
        Strip(f"“{one['query']}”", [cell(hit) for hit in (one["right"], *one["above"])])
        for one in numbers["shown"]
    ]
    title = (
        f"{subjects[0].title}. {numbers['failed']} of {numbers['queries']} texts do not find their "
        "video first; some of those, drawn at random. Left: the right video"
    )
    return draw_strips(title, strips, 1 + _ABOVE)


# --- re-ranking -----------------------------------------------------------------------------------

_TOP_RANKS = 4
_PLAIN = "similarity"
_OWN = {"score": "score", "printed": "printed score"}  # of DUQ, against its plain similarity
AFTER = (*_OWN, *CORRECTIONS)  # second scores


def rank_changes(
    subjects: Sequence[Subject],
    count: int,
    after: str = "score",
    bank: Float[np.ndarray, "captions videos"] | None = None,
) -> Numbers:
    """All queries under two scores, and some whose right video moved.

    Of `AFTER`, ``score`` is the system's own against its plain similarity, ``printed`` the
    re-ranked one as printed against the same; the others correct the system's own score for hubs.
    ``bank`` has scores of training captions with the videos, for ``qb_norm`` and ``nnn``.
    """
    subject = subjects[0]
    names, pair = _two_scores(subject, after, bank)
    ranks = [text_ranks(scores, subject.owner) for scores in pair]
    shown = []
    for query in largest_moves(ranks, count):
        change = {"query": subject.text(query), "ranks": [float(one[query]) for one in ranks]}
        for key, scores in zip(("before", "after"), pair, strict=True):
            own, row = [int(subject.owner[query])], scores[query]
            change[key] = hits_of(subject.names.__getitem__, best(row, _TOP_RANKS), own, row)
        shown.append(change)
    moves = ranks[0] - ranks[1]
    return {
        "scores": list(names),
        "rose": int((moves > 0).sum()),
        "fell": int((moves < 0).sum()),
        "stayed": int((moves == 0).sum()),
        "r1": [100 * float((some <= 1).mean()) for some in ranks],
        "shown": shown,
    }


def draw_rank_changes(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """Two rows of frames per query, before and after."""
    items = subjects[0].by_name

    def cell(hit: Numbers) -> Cell:
        line = f"{hit['rank']:g}. {hit['name']}   {number(hit['values']['score'])}"
        return Cell(items[hit["name"]], [line], hit["right"])

    names = numbers["scores"]
    strips = [
        Strip(
            heading="" if place else f"“{change['query']}”",
            cells=[cell(hit) for hit in change[row]],
            label=f"{names[place]}: right video at rank {change['ranks'][place]:g}",
        )
        for change in numbers["shown"]
        for place, row in enumerate(("before", "after"))
    ]
    first, second = numbers["r1"]
    title = (
        f"{subjects[0].title}. From {names[0]} to {names[1]}: {numbers['rose']} queries rise, "
        f"{numbers['fell']} fall, {numbers['stayed']} stay; R@1 {first:.1f} to {second:.1f} %. "
        f"Shown: the largest rises and falls among the first places."
    )
    return draw_strips(title, strips, _TOP_RANKS)


def _two_scores(
    subject: Subject, after: str, bank: Float[np.ndarray, "captions videos"] | None
) -> tuple[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Names and matrices of both scores."""
    matrices = subject.matrices(range(len(subject.owner)))
    if after in _OWN:
        second = _OWN[after]
        if _PLAIN not in matrices or second not in matrices:
            raise SureshotError(
                f"{subject.scorer.system} does not re-rank by itself, as DUQ does. Correct its "
                f"scores for hubs: {option('after')} nnn, qb_norm, inverted_softmax or dsl."
            )
        return (_PLAIN, second), (matrices[_PLAIN], matrices[second])
    plain, scale = matrices["score"], subject.scorer.scale
    return ("score", after), (plain, hub_corrected(after, plain, bank, scale)[0].scores)


def largest_moves(ranks: Sequence[Float[np.ndarray, " queries"]], count: int) -> list[int]:
    """Queries to show: half rises and half falls, the largest first, that reach the first places.

    A move counts by the ratio of its ranks: from 3 to 1 is more than from 300 to 200.
    """
    near = np.minimum(*ranks) <= _TOP_RANKS  # shown in one of the rows at least
    moved = np.where(near, np.log(ranks[0]) - np.log(ranks[1]), 0)
    rises, falls = best(moved, int((moved > 0).sum())), best(-moved, int((moved < 0).sum()))
    up = min(len(rises), max(count - count // 2, count - len(falls)))
    return rises[:up] + falls[: count - up]


# --- words against frames -------------------------------------------------------------------------

_PICTURES = 6  # frames a row; of a longer video those at even distances


def tokens(subjects: Sequence[Subject], count: int) -> Numbers:
    """Videos drawn by the seed under their own text and the best other one.

    Of two models: texts, drawn from those whose video one of the two alone finds first (from all
    where there is none), each above the best video of each model. Per frame and per learned token
    of the video: its cosine with the token of the text that fits it best, learned ones among them,
    and the word that fits it best; None where the encoder does not know its words.
    """
    if len(subjects) > 1:
        return _of_two_models(subjects, count)
    subject = subjects[0]
    found = []
    for query in subject.pairs(count):
        column = int(subject.owner[query])
        order = best(subject.scores[:, column], len(subject.owner))
        other = [row for row in order if subject.owner[row] != column][:1]
        texts = [_reading(subject, row, column) for row in (query, *other)]
        found.append({"video": subject.names[column], "texts": texts})
    return {"videos": found}


def _of_two_models(subjects: Sequence[Subject], count: int) -> Numbers:
    names, owner = tell_apart(*subjects), subjects[0].owner
    tops = [subject.scores.argmax(1) for subject in subjects]
    one, other = (top == owner for top in tops)  # who finds the video of each text
    drawn = subjects[0].pairs(len(owner))
    differing = [query for query in drawn if one[query] != other[query]] or drawn
    order = np.random.default_rng([subjects[0].seed, 3]).permutation(differing)[:count]
    rows = []
    for query in sorted(order.tolist()):
        for subject, top, name in zip(subjects, tops, names, strict=True):
            column = int(top[query])
            reading = _reading(subject, query, column)
            rows.append({"model": name, "video": subject.names[column], **reading})
    return {
        "queries": len(owner),
        "first_alone": int((one & ~other).sum()),
        "second_alone": int((other & ~one).sum()),
        "rows": rows,
    }


def _reading(subject: Subject, query: int, column: int) -> Numbers:
    """A text against a video, as a model reads both."""
    texts, videos = subject.text_codes([query]), subject.video_codes([column])
    if not {"words", "mask"} <= texts.keys() or not {"frames", "mask"} <= videos.keys():
        raise SureshotError(
            f"{subject.scorer.system} does not compare words with frames; UATVR does."
        )
    words, mask, frames = texts["words"][0], texts["mask"][0], videos["frames"][0]
    cosines = (words[mask] @ frames.T).amax(0).tolist()
    fits: list[Numbers | None] = [None] * len(frames)
    names: Sequence[str] = ()
    if isinstance(subject.scorer.encoder, HasWords):
        (names,) = subject.scorer.encoder.words_of([subject.text(query)])
    named = [place for place, name in enumerate(names) if name and mask[place]]
    # An encoder that says other tokens than it gave says none.
    if named and len(names) == len(subject.features.texts[int(subject.captions[query])][1]):
        values, which = (words[named] @ frames.T).max(0)
        found = zip(which.tolist(), values.tolist(), strict=True)
        fits = [{"word": names[named[place]], "cosine": value} for place, value in found]
    real = len(subject.features.videos[column].frames)
    return {
        "text": subject.text(query),
        "right": bool(subject.owner[query] == column),
        "score": float(subject.scores[query, column]),
        "frames": cosines[:real],
        "learned": cosines[real:],
        "words": fits[:real],
        "learned_words": fits[real:],
    }


def draw_tokens(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """Frames with bars on one scale, from the worst to the best match of the figure."""
    rows: list[tuple[Subject, Numbers, str, str]] = []  # with video; heading, label
    if len(subjects) == 1:
        title = f"{subjects[0].title}. ✓: the video's own text"
        for one in numbers["videos"]:
            for reading in one["texts"]:
                heading = f"{'✓ ' if reading['right'] else ''}“{reading['text']}”"
                row = {"video": one["video"], **reading}
                rows.append((subjects[0], row, heading, one["video"]))
    else:
        first, second = tell_apart(*subjects)
        title = (
            f"{first} compared with {second}, {subjects[0].features.split.title()}. The best video "
            f"of each model; of {numbers['queries']} texts the first alone finds "
            f"{numbers['first_alone']} first, the second alone {numbers['second_alone']}"
        )
        for place, row in enumerate(numbers["rows"]):
            heading = "" if place % 2 else f"“{row['text']}”"
            found = "✓ the right video" if row["right"] else "✗ a wrong video"
            label = f"{row['model']}: {found}, {row['video']}"
            rows.append((subjects[place % 2], row, heading, label))
    every = [value for _, row, *_ in rows for value in (*row["frames"], *row["learned"])]
    low, high = min(every), max(every)
    title += (
        ". Bar and number: cosine of the frame with the token of the text that fits it best, "
        f"learned tokens among them, from {number(low)} to {number(high)}; below: the word that "
        "fits it best"
    )
    strips = []
    for subject, row, heading, label in rows:
        last = len(row["frames"]) - 1
        shown = np.linspace(0, last, min(last + 1, _PICTURES)).round().astype(int)
        cells = [
            Cell(
                item=subject.by_name[row["video"]],
                lines=[f"frame {at + 1}  {number(row['frames'][at])}", _quoted(row["words"][at])],
                frame=at,
                frames=subject.features.frames,
                sampling=subject.features.sampling,
                shade=(row["frames"][at] - low) / ((high - low) or 1.0),
            )
            for at in shown.tolist()
        ]
        learned = ", ".join(
            number(value) + (f" ({_quoted(word)})" if word else "")
            for value, word in zip(row["learned"], row["learned_words"], strict=True)
        )
        label += f", score {number(row['score'])}"
        label += f"; learned tokens: {learned}" if learned else ""
        strips.append(Strip(heading=heading, cells=cells, label=label))
    return draw_strips(title, strips, _PICTURES)


def _quoted(word: Numbers | None) -> str:
    return "" if word is None else f"“{word['word']}” {number(word['cosine'])}"
