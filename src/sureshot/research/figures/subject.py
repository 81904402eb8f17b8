"""What a figure looks at: a trained model, a split, and what the model says of its pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Integer

from sureshot.datasets.split import Item
from sureshot.errors import SureshotError
from sureshot.models.layers.gaussian import Gaussian
from sureshot.models.load import Scorer
from sureshot.models.systems.base import Codes, System
from sureshot.research.features import SplitFeatures
from sureshot.research.scores import code_texts, code_videos, similarity
from sureshot.settings import to_values

Numbers = dict[str, Any]  # of a figure, as plain values for JSON

_SETTINGS = 50  # letters of the settings that tell a model from another, at most
MOST = 2000  # queries looked at; of a larger split some are drawn
SMALL_IS_NEAR = frozenset({"distance", "eta", "wasserstein"})  # in all others a match is large


@dataclass(frozen=True)
class Subject:
    """A model, or an encoder alone, and a split; queries are at most `MOST` of its captions."""

    scorer: Scorer
    features: SplitFeatures
    seed: int = 0

    @property
    def model(self) -> str:
        """Its system and its encoder, in words."""
        encoder = self.scorer.encoder_name
        return encoder if self.scorer.model is None else f"{self.scorer.system} on {encoder}"

    @property
    def title(self) -> str:
        """Model and split in words, and how many captions are looked at where not all are."""
        count, every = len(self.captions), len(self.features.texts)
        drawn = f", {count} captions drawn of {every}" if count < every else ""
        return f"{self.model}, {self.features.split.title()}{drawn}"

    @property
    def items(self) -> Sequence[Item]:
        """The videos, the columns of every matrix."""
        return self.features.split.items

    @property
    def system(self) -> System | None:
        """That of the model; None of an encoder alone."""
        return None if self.scorer.model is None else self.scorer.model.system

    @cached_property
    def names(self) -> Sequence[str]:
        """The name of each video."""
        return [item.id for item in self.items]

    @property
    def by_name(self) -> Mapping[str, Item]:
        """The videos by name."""
        return dict(zip(self.names, self.items, strict=True))

    @cached_property
    def captions(self) -> Integer[np.ndarray, " queries"]:
        """The captions that are the queries, by their row in the split, ascending."""
        count = len(self.features.texts)
        drawn = np.random.default_rng(self.seed).permutation(count)[:MOST]
        return np.sort(drawn)

    @cached_property
    def owner(self) -> Integer[np.ndarray, " queries"]:
        """The video of each query."""
        return self.features.split.owner()[self.captions]

    def text(self, query: int) -> str:
        """What a query says."""
        return self.features.split.captions[self.captions[query]].text

    def pairs(self, count: int) -> list[int]:
        """Queries drawn by the seed, ascending, each of another video; fewer if there are fewer."""
        order = np.random.default_rng([self.seed, 1]).permutation(len(self.owner))
        _, first = np.unique(self.owner[order], return_index=True)
        return sorted(order[np.sort(first)[:count]].tolist())

    @cached_property
    def scores(self) -> Float[np.ndarray, "queries videos"]:
        """Raw scores of every query with every video."""
        return similarity(self.scorer.raw, self.features, captions=self.captions.tolist())

    def matrices(self, queries: Sequence[int]) -> dict[str, Float[np.ndarray, "chosen videos"]]:
        """The score, and all other values that the system gives a pair, by name."""
        found = {"score": self.scores[list(queries)]}
        if self.system is not None:
            with torch.no_grad():
                more = self.system.matrices(self.text_codes(queries), self._videos)
            found |= {name: matrix.cpu().numpy() for name, matrix in more.items()}
        return found

    @cached_property
    def measures(self) -> dict[str, Float[np.ndarray, " items"]]:
        """Measures of each query or video; their names begin with ``text`` or ``video``."""
        if self.system is None:
            return {}
        every = range(len(self.captions))
        with torch.no_grad():
            found = self.system.measures(self.text_codes(every), self._videos)
        return {name: values.cpu().numpy() for name, values in found.items()}

    def text_codes(self, queries: Sequence[int]) -> Codes:
        """Codes of some queries; none of an encoder alone."""
        chosen = self.captions[list(queries)].tolist()
        return code_texts(self.scorer.raw, self.features, chosen) if self.system else {}

    def video_codes(self, videos: Sequence[int]) -> Codes:
        """Codes of some videos; none of an encoder alone."""
        return code_videos(self.scorer.raw, self.features, videos) if self.system else {}

    def gaussians(self, queries: Sequence[int]) -> tuple[Gaussian, Gaussian]:
        """The Gaussians of some queries and of their videos."""
        own = self.owner[list(queries)].tolist()
        sides = self.text_codes(queries), self.video_codes(own)
        texts, videos = (self.system.gaussian(one) if self.system else None for one in sides)
        if texts is None or videos is None:
            raise SureshotError(
                f"{self.scorer.name} has no Gaussians to draw: {self.scorer.system} as it was "
                f"trained makes none. DUQ, UATVR and DVTR do."
            )
        return Gaussian(*(one.cpu() for one in texts)), Gaussian(*(one.cpu() for one in videos))

    @cached_property
    def _videos(self) -> Codes:
        return self.video_codes(range(len(self.items)))


def tell_apart(first: Subject, second: Subject) -> tuple[str, str]:
    """Different names for two models of one split."""
    if first.features.split != second.features.split:
        raise SureshotError(
            "The two models do not have the same videos and captions; show both the same split."
        )
    if first.model != second.model:
        return first.model, second.model
    if first.scorer.name == second.scorer.name:
        raise SureshotError(f"{first.scorer.name} is compared with itself; name another model.")
    names = _unlike_settings(first, second)
    if not names[0] or max(map(len, names)) > _SETTINGS:
        names = _unlike_parts(Path(first.scorer.name).parts, Path(second.scorer.name).parts)
    return f"{first.model} ({names[0]})", f"{second.model} ({names[1]})"


def _unlike_settings(first: Subject, second: Subject) -> tuple[str, str]:
    """Settings in which two models of one system differ, with the values of each."""
    configs = [getattr(subject.system, "config", None) for subject in (first, second)]
    both = [{} if config is None else to_values(config) for config in configs]
    names = [name for name in both[0] if both[0][name] != both[1].get(name)]

    def written(value: object) -> str:
        return "default" if value is None else str(value).lower()

    ours, theirs = (", ".join(f"{n} {written(values.get(n))}" for n in names) for values in both)
    return ours, theirs


def _unlike_parts(first: Sequence[str], second: Sequence[str]) -> tuple[str, str]:
    """Two paths without the folders that both begin and end with."""
    for end in (0, -1):
        while min(len(first), len(second)) > 1 and first[end] == second[end]:
            kept = slice(1, None) if end == 0 else slice(-1)
            first, second = first[kept], second[kept]
    return "/".join(first), "/".join(second)


def nearest(
    matrix: Float[np.ndarray, "rows columns"], name: str
) -> Float[np.ndarray, "rows columns"]:
    """The matrix of this name, turned so that higher is nearer.

    Examples:
        >>> nearest(np.array([[0.5, 2.0]]), "distance")
        array([[-0.5, -2. ]])
    """
    return -matrix if name in SMALL_IS_NEAR else matrix
