"""A model that scores videos by how well texts fit them: what `sureshot.load` gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from sureshot.errors import ModelError, VideoError
from sureshot.media.sampling_rule import Sampling
from sureshot.models.bank import Bank
from sureshot.models.comparing import Comparing, Corrected, MeanFrames, Trained, comparing
from sureshot.models.encoders.experts import Experts, pack, read_experts
from sureshot.models.encoders.protocol import Encoder, FrameFeatures, VideoFeatures, stack
from sureshot.models.mean_frames import pool_grid
from sureshot.places import expand

if TYPE_CHECKING:
    from sureshot.models.model import Model

_FRAMES = 12  # sampled from a video for an encoder alone
_TEXTS, _VIDEOS = 256, 64  # coded at once


@dataclass(frozen=True, slots=True)
class Embedded:
    """Texts or videos as a model compares them; `Scorer.similarity` takes one of each.

    Attributes:
        vectors: unit vectors. The product of a text's and a video's is their score where the model
            pools frames to one vector, as an encoder alone does; other models choose by it what
            their own similarity is worth being worked out for.
        codes: what the model's own similarity compares.
    """

    vectors: Float[np.ndarray, "items dim"]
    codes: Any

    def __len__(self) -> int:
        """How many texts or videos there are."""
        return len(self.vectors)


@dataclass(frozen=True)
class Scorer:
    """An encoder alone, or a trained model on top of one.

    Attributes:
        name: what was asked for.
        encoder: what turns frames and texts into features.
        encoder_name: the encoder as people know it; where it was trained too, what it began as.
        model: what scores the features; None is the cosine of a sentence and the mean frame.
        system: name of the system, or ``encoder``.
        frames: frames sampled from each video.
        sampling: which frames of a whole video; an index cuts windows and samples those uniformly.
        recipe: what the model was trained by; empty without a recipe.
        device: torch device of the model.
        searchable: what an index is made with; None where the system reads more than one keeps.
        bank: captions and videos that scores are corrected by; None for a model without any.

    Examples:
        >>> from sureshot.models.loading import load
        >>> model = load("tiny")  # knows eight colours; for tests
        >>> texts = model.embed_texts(["a red wall", "the blue sky"])
        >>> texts.vectors.shape
        (2, 24)

        ``model.similarity(texts, model.embed_videos(["a.mp4", "b.mp4"]))`` is then a matrix of two
        rows, the texts, and two columns, the videos.
    """

    name: str
    encoder: Encoder
    encoder_name: str
    model: "Model | None" = None
    system: str = "encoder"
    frames: int = _FRAMES
    sampling: Sampling = field(default_factory=Sampling)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    searchable: Encoder | None = None
    bank: Bank | None = None

    @property
    def trained_on(self) -> str:
        """Data sets it was trained on, joined by " + "; empty if that is not known."""
        return " + ".join(dict.fromkeys(part["dataset"] for part in self.recipe.get("train", ())))

    @property
    def experts(self) -> tuple[str, ...]:
        """The experts extracted beforehand that it was trained on."""
        return tuple(name for name, _ in self.raw.experts)

    @property
    def scale(self) -> float | None:
        """The learned factor on scores within the system's softmax; an encoder alone has none."""
        return None if self.model is None else float(self.model.system.scale.detach())

    @property
    def fingerprint(self) -> str:
        """What an index of this model, and a calibration card, know it by.

        Raises:
            ModelError: no index can be made with it, or its weights have gone.
        """
        return self.require_searchable().fingerprint

    @cached_property
    def raw(self) -> Comparing:
        """How it compares what its encoder gives, without a hub correction."""
        return MeanFrames() if self.model is None else Trained(self.model, self.device)

    @cached_property
    def comparing(self) -> Comparing:
        """How it compares what its encoder gives, as a search ranks."""
        return self.raw if self.bank is None else Corrected(self.raw, self.bank, self.stored)

    @property
    def stored(self) -> Comparing:
        """How it compares what an index or a bank keeps, without a hub correction.

        Raises:
            ModelError: no index can be made with it.
        """
        return comparing(self.require_searchable())

    def embed_texts(self, texts: Sequence[str]) -> Embedded:
        """Texts as the model compares them.

        Args:
            texts: sentences or single words, at least one.
        """
        how = self.comparing
        parts = [texts[first : first + _TEXTS] for first in range(0, len(texts), _TEXTS)]
        codes = how.join([how.texts(self.encoder.encode_texts(part)) for part in parts])
        return Embedded(how.text_vectors(codes), codes)

    def embed_videos(
        self, videos: Sequence[str | Path], *, experts: str | Path | None = None
    ) -> Embedded:
        """Videos as the model compares them, each decoded and sampled as a whole.

        An index cuts long videos into windows first; a search finds the best window.

        Args:
            videos: video files, folders of numbered frames or photos, at least one.
            experts: folder of features extracted beforehand, for a model that was trained on some
                (see `sureshot.models.encoders.experts`).

        Raises:
            VideoError: one of the videos cannot be read; the message names it.
            ModelError: the model was trained on experts, and no folder of experts is named.
        """
        if self.experts and experts is None:
            raise ModelError(
                f"{self.name} was trained on the experts {', '.join(self.experts)}; name the "
                "folder that has them as experts."
            )
        paths = [expand(video) for video in videos]
        parts = [paths[first : first + _VIDEOS] for first in range(0, len(paths), _VIDEOS)]
        how = self.comparing
        codes = how.join([how.videos(self._features(part, experts)) for part in parts])
        return Embedded(how.video_vectors(codes), codes)

    def similarity(
        self, texts: Embedded, videos: Embedded, *, corrected: bool = True
    ) -> Float[np.ndarray, "texts videos"]:
        """The score of every text with every video, higher is better.

        Args:
            texts: what `embed_texts` of this model gave.
            videos: what `embed_videos` of this model gave.
            corrected: whether scores are less the hub correction of the model's bank, as those that
                a search ranks by; makes no difference to a model without one.
        """
        if corrected or self.bank is None:
            return self.comparing.similarity(texts.codes, videos.codes)
        return self.raw.similarity(texts.codes, videos.codes.codes)

    def require_searchable(self) -> Encoder:
        """What an index is made with.

        Raises:
            ModelError: none can be made.
        """
        if self.searchable is None:
            raise ModelError(
                f"{self.name} is a model of the system {self.system}, which compares more of a "
                f"video than the frames that an index keeps. It can be evaluated, but it can have "
                f"no index and no calibration; index with another system."
            )
        return self.searchable

    def _features(self, paths: Sequence[Path], folder: str | Path | None) -> VideoFeatures:
        """What the encoder sees of some videos, patches pooled as those in training are."""
        encoded = [self._frames(path) for path in paths]
        features = stack([replace(one, patches=pool_grid(one.patches)) for one in encoded])
        if folder is None:
            return features
        by_name = read_experts(expand(folder), [path.name for path in paths])
        own: list[Experts] = [by_name[path.name] for path in paths]
        rows, which = pack(own, self.raw.experts)
        return replace(features, experts=rows, which=which)

    def _frames(self, path: Path) -> FrameFeatures:
        from sureshot.media.sampling import sample_frames
        from sureshot.media.video import unreadable

        if not path.exists():
            raise VideoError(f"There is no video at {path}.")
        try:
            images = sample_frames(
                path, self.frames, self.encoder.frame_size, sampling=self.sampling
            )
        except VideoError as error:
            raise VideoError(f"{path} {error}.", transient=error.transient) from None
        except OSError as error:
            raise VideoError(f"{path} {unreadable(error)}.") from None
        return self.encoder.encode_frames(self.encoder.prepare(images))
