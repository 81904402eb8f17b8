"""Which frames a text finds: how well each frame, and each learned token, fits its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sureshot.datasets.split import Item
from sureshot.errors import SureshotError
from sureshot.media.sampling_rule import Sampling
from sureshot.research.figures.canvas import number
from sureshot.research.figures.strip import Cell, Strip, draw_strips
from sureshot.research.figures.subject import Subject
from sureshot.settings import to_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PICTURES = 6  # frames a row; of a longer video those at even distances


@dataclass(frozen=True)
class Read:
    """A text against a video.

    Attributes:
        text: what it says.
        right: whether it describes the video.
        score: similarity of the pair.
        frames: cosine of each real frame with the word that fits it best.
        learned: the same of each learned token.
    """

    text: str
    right: bool
    score: float
    frames: tuple[float, ...]
    learned: tuple[float, ...]


@dataclass(frozen=True)
class Tokens:
    """Videos, each under its own text and under the best of another video.

    Attributes:
        title: model and split.
        videos: the item, its own text, then the other.
        sampled: frames that videos were sampled at.
        sampling: which frames those were.
    """

    title: str
    videos: Sequence[tuple[Item, tuple[Read, ...]]]
    sampled: int
    sampling: Sampling

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        videos = [{"video": item.id, "texts": to_values(reads)} for item, reads in self.videos]
        return {"videos": videos}

    def draw(self) -> "Figure":
        """Bars below frames, from the worst to the best match of the figure."""
        every = [v for _, reads in self.videos for r in reads for v in (*r.frames, *r.learned)]
        low, high = min(every), max(every)
        spread = (high - low) or 1.0
        strips = []
        for item, reads in self.videos:
            for read in reads:
                chosen = thinned(len(read.frames), _PICTURES)
                cells = [
                    Cell(
                        item=item,
                        lines=[f"frame {at + 1}  {number(read.frames[at])}"],
                        frame=at,
                        frames=self.sampled,
                        sampling=self.sampling,
                        shade=(read.frames[at] - low) / spread,
                    )
                    for at in chosen
                ]
                learned = ", ".join(number(value) for value in read.learned)
                label = f"{item.id}, score {number(read.score)}"
                label += f"; learned tokens: {learned}" if learned else ""
                tick = "✓ " if read.right else ""
                strips.append(Strip(heading=f"{tick}“{read.text}”", cells=cells, label=label))
        title = (
            f"{self.title}. Cosine of each frame with the word that fits it best; bars from "
            f"{number(low)} to {number(high)}; ✓: the video's own text"
        )
        return draw_strips(title, strips, _PICTURES)


def tokens(subject: Subject, count: int) -> Tokens:
    """Videos drawn by the seed under two texts each.

    Raises:
        SureshotError: the system does not compare words with frames.
    """
    videos = []
    for query in subject.pairs(count):
        column = int(subject.owner[query])
        order = np.argsort(-subject.scores[:, column], kind="stable")
        other = [int(row) for row in order if subject.owner[row] != column][:1]
        videos.append((subject.items[column], _reads(subject, [query, *other], column)))
    seen = subject.features
    return Tokens(title=subject.title, videos=videos, sampled=seen.frames, sampling=seen.sampling)


def _reads(subject: Subject, queries: list[int], column: int) -> tuple[Read, ...]:
    """How texts read one video; its own text is the first."""
    texts, videos = subject.text_codes(queries), subject.video_codes([column])
    if not {"words", "mask"} <= texts.keys() or not {"frames", "mask"} <= videos.keys():
        raise SureshotError(
            f"{subject.scorer.system} does not compare words with frames; UATVR does."
        )
    found = best_words(texts["words"], videos["frames"][0], texts["mask"])
    own = len(subject.features.videos[column].frames)
    longest = subject.features.video_batch([column]).mask.shape[1]
    return tuple(
        Read(
            text=subject.text(query),
            right=place == 0,
            score=float(subject.scores[query, column]),
            frames=tuple(values[:own]),
            learned=tuple(values[longest:]),
        )
        for place, (query, values) in enumerate(zip(queries, found.tolist(), strict=True))
    )


def best_words(
    words: Float[Tensor, "texts words dim"],
    frames: Float[Tensor, "frames dim"],
    mask: Bool[Tensor, "texts words"],
) -> Float[Tensor, "texts frames"]:
    """For each frame the largest inner product with a real word of each text."""
    products = torch.einsum("twd,fd->twf", words, frames)
    return products.masked_fill(~mask[..., None], -torch.inf).amax(1)


def thinned(count: int, most: int) -> list[int]:
    """Places at even distances, the first and the last among them.

    Examples:
        >>> thinned(5, 6), thinned(12, 4)
        ([0, 1, 2, 3, 4], [0, 4, 7, 11])
    """
    if count <= most:
        return list(range(count))
    return [int(place) for place in np.linspace(0, count - 1, most).round()]
