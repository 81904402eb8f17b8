"""How texts are compared with videos: by search, by evaluation and by `sureshot.load`.

Each side is coded by itself, once; then every text is scored with every video. An encoder alone
compares by `MeanFrames`, a trained model by `ModelSimilarity`; a model with a bank compares by
`HubCorrected`, which takes its hub correction off the scores of either.

Nothing here imports torch before a trained model codes something.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from sureshot.models.encoders.base import (
    Encoder,
    TextFeatures,
    VideoFeatures,
    mean_pool,
    unit_vectors,
)
from sureshot.models.encoders.experts import ExpertSizes
from sureshot.models.hub_bank import Bank

if TYPE_CHECKING:
    from sureshot.models.model import Model
    from sureshot.models.systems.base import Codes, System

_VIDEOS = 512  # coded at once


class Similarity(ABC):
    """A way to compare texts with videos. What it codes of either side is its own affair."""

    experts: ExpertSizes = ()  # that it reads of videos
    hub_corrected = False  # scores are products of vectors and mean frames minus a hub correction

    @abstractmethod
    def texts(self, texts: TextFeatures) -> Any:
        """Codes of texts, at least one."""

    @abstractmethod
    def videos(self, videos: VideoFeatures) -> Any:
        """Codes of videos or windows of videos."""

    @abstractmethod
    def join(self, parts: Sequence[Any]) -> Any:
        """Codes of several batches of texts, or of videos, as one; at least one batch."""

    @abstractmethod
    def similarity(self, texts: Any, videos: Any) -> Float[np.ndarray, "texts videos"]:
        """The score of every coded text with every coded video, higher is better."""

    @abstractmethod
    def text_vectors(self, texts: Any) -> Float[np.ndarray, "texts dim"]:
        """Unit vectors of coded texts; their products with pooled frames choose candidates."""

    @abstractmethod
    def video_vectors(self, videos: Any) -> Float[np.ndarray, "videos dim"]:
        """Unit vectors of coded videos, worked out without any text."""

    def background(self, texts: Any) -> Float[np.ndarray, " texts"] | None:
        """What each coded text scores with the videos of the model's bank; None without any."""
        return None


class MeanFrames(Similarity):
    """An encoder alone: the cosine of a sentence and of the mean of a video's frames."""

    def texts(self, texts: TextFeatures) -> Float[np.ndarray, "texts dim"]:
        """Sentences at unit length, even where they were kept in 16 bits."""
        return unit_vectors(texts.sentence)

    def videos(self, videos: VideoFeatures) -> Float[np.ndarray, "videos dim"]:
        """The mean frames."""
        return mean_pool(videos.frames, videos.mask)

    def join(self, parts: Sequence[Float[np.ndarray, "_ dim"]]) -> Float[np.ndarray, "items dim"]:
        """All rows."""
        return np.concatenate(parts)

    def similarity(
        self, texts: Float[np.ndarray, "texts dim"], videos: Float[np.ndarray, "videos dim"]
    ) -> Float[np.ndarray, "texts videos"]:
        """Cosines, in [-1, 1]."""
        return texts @ videos.T

    def text_vectors(self, texts: Float[np.ndarray, "texts dim"]) -> Float[np.ndarray, "texts dim"]:
        """The sentences."""
        return texts

    def video_vectors(
        self, videos: Float[np.ndarray, "videos dim"]
    ) -> Float[np.ndarray, "videos dim"]:
        """The mean frames."""
        return videos


class ModelSimilarity(Similarity):
    """A trained model: the similarity that its system was trained with.

    A `Model` codes what an encoder gives; a `System` alone codes what came through the model's
    stem, which is what an index keeps. Both give the same codes.
    """

    def __init__(self, model: "Model | System", device: str = "cpu") -> None:
        from sureshot.models.model import Model

        self.device, self._coder = device, model
        self._system = model.system if isinstance(model, Model) else model
        if isinstance(model, Model):
            self.experts = model.stem.sizes.experts

    def texts(self, texts: TextFeatures) -> "Codes":
        """The system's codes."""
        from sureshot.models.systems.base import text_tokens

        with self._frozen():
            return self._coder.texts(text_tokens(texts, self.device))

    def videos(self, videos: VideoFeatures) -> "Codes":
        """The system's codes."""
        from sureshot.models.systems.base import video_tokens

        firsts = range(0, max(len(videos.mask), 1), _VIDEOS)
        parts = (videos.part(slice(first, first + _VIDEOS)) for first in firsts)
        with self._frozen():
            return self.join([self._coder.videos(video_tokens(p, self.device)) for p in parts])

    def join(self, parts: Sequence["Codes"]) -> "Codes":
        """All codes; token axes are padded to the longest."""
        from sureshot.models.systems.base import joined

        return parts[0] if len(parts) == 1 else joined(list(parts))

    def similarity(self, texts: "Codes", videos: "Codes") -> Float[np.ndarray, "texts videos"]:
        """The similarity that was trained; its range is the system's own."""
        with self._frozen():
            return self._system.similarity(texts, videos).cpu().numpy()

    def text_vectors(self, texts: "Codes") -> Float[np.ndarray, "texts dim"]:
        """What the system compares with pooled frames."""
        with self._frozen():
            return self._system.text_vectors(texts).cpu().numpy()

    def video_vectors(self, videos: "Codes") -> Float[np.ndarray, "videos dim"]:
        """The system's vectors of videos."""
        with self._frozen():
            return self._system.video_vectors(videos).cpu().numpy()

    def _frozen(self) -> AbstractContextManager[None]:
        from sureshot.models.model import frozen

        return frozen(self._coder)


class CorrectedVideos(NamedTuple):
    """Codes of videos, and what the hub correction takes off the scores of each."""

    codes: Any
    offsets: Float[np.ndarray, " videos"]


class HubCorrected(Similarity):
    """Another similarity, minus the hub correction of a bank.

    Args:
        stored: what codes the bank's captions and videos, which are kept as they came through the
            model's stem; None is ``base``.
    """

    def __init__(self, base: Similarity, bank: Bank, stored: Similarity | None = None) -> None:
        self._base, self._bank, self._stored = base, bank, stored or base
        self.experts, self.hub_corrected = base.experts, isinstance(base, MeanFrames)

    def texts(self, texts: TextFeatures) -> Any:
        """Codes of the base."""
        return self._base.texts(texts)

    def videos(self, videos: VideoFeatures) -> CorrectedVideos:
        """Codes of the base, and the correction of each video."""
        codes, offsets = self._base.videos(videos), np.zeros(len(videos.mask), np.float32)
        if len(offsets) and self._bank.weight:
            offsets = self._bank.offsets(self._base.similarity(self._captions, codes))
        return CorrectedVideos(codes, offsets)

    def join(self, parts: Sequence[Any]) -> Any:
        """All codes; those of videos with their corrections."""
        if not isinstance(parts[0], CorrectedVideos):
            return self._base.join(parts)
        codes = self._base.join([part.codes for part in parts])
        return CorrectedVideos(codes, np.concatenate([part.offsets for part in parts]))

    def similarity(self, texts: Any, videos: CorrectedVideos) -> Float[np.ndarray, "texts videos"]:
        """Scores of the base, minus one number per video."""
        raw = self._base.similarity(texts, videos.codes)
        return (raw - videos.offsets).astype(raw.dtype)

    def text_vectors(self, texts: Any) -> Float[np.ndarray, "texts dim"]:
        """Those of the base, without the correction."""
        return self._base.text_vectors(texts)

    def video_vectors(self, videos: CorrectedVideos) -> Float[np.ndarray, "videos dim"]:
        """Those of the base."""
        return self._base.video_vectors(videos.codes)

    def background(self, texts: Any) -> Float[np.ndarray, " texts"] | None:
        """As `Bank.background`."""
        if not len(self._bank.frames):
            return None
        return self._bank.background(self._base.similarity(texts, self._videos))

    @cached_property
    def _captions(self) -> Any:
        return self._stored.texts(self._bank.texts)

    @cached_property
    def _videos(self) -> Any:
        return self._stored.videos(VideoFeatures.of_frames(self._bank.frames, self._bank.mask))


def similarity_for(encoder: Encoder, bank: Bank | None = None) -> Similarity:
    """How texts are compared with videos that an encoder, or a trained model as one, encoded."""
    base = encoder if isinstance(encoder, Similarity) else MeanFrames()
    return base if bank is None else HubCorrected(base, bank)
