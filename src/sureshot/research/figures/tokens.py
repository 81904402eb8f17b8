"""Which frames a text finds, and by which of its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from sureshot.datasets.split import Item
from sureshot.errors import SureshotError
from sureshot.media.sampling_rule import Sampling
from sureshot.models.encoders.token_words import Worded
from sureshot.research.figures.canvas import number
from sureshot.research.figures.strip import Cell, Strip, best, draw_strips
from sureshot.research.figures.subject import Subject, tell_apart
from sureshot.settings import to_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    if not isinstance(encoder, Worded):
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
