"""Frames of a video as an encoder is trained on them: sampled, changed by chance, kept."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from sureshot.datasets import Item
from sureshot.errors import SureshotError, VideoError
from sureshot.media.filmstrip import read_filmstrip, write_filmstrip
from sureshot.media.sampling_rule import Sampling
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.small import SmallEncoder
from sureshot.research.features import item_key, sampled_frames
from sureshot.research.training.augment import Augment, augmented

TrainedEncoder = ClipEncoder | SmallEncoder  # those whose weights can be trained too


@dataclass(frozen=True, slots=True)
class TrainingFrames:
    """Reads the frames of a video for one epoch.

    Attributes:
        encoder: says how large frames are.
        frames: most frames of a video.
        sampling: rule that picks the frames of a video.
        augment: how they are changed.
        seed: number that all draws of the run come from.
        kept: folder where frames are kept from epoch to epoch; None decodes each time.
    """

    encoder: TrainedEncoder
    frames: int
    sampling: Sampling
    augment: Augment = "none"
    seed: int = 0
    kept: Path | None = None

    @property
    def steady(self) -> bool:
        """Whether frames are the same in all epochs, and not those of JPEGs."""
        drawn = self.sampling.is_drawn or self.augment != "none"
        return not drawn and self.kept is None

    def __call__(
        self, item: Item, video: int, epoch: int
    ) -> UInt8[np.ndarray, "frames height width 3"]:
        """RGB frames.

        Args:
            item: the video.
            video: its number among all videos that are trained on.
            epoch: number of the epoch, from 0.

        Raises:
            VideoError: the video cannot be read.
            OSError: likewise.
            SureshotError: its frames cannot be kept.
        """
        if self.kept is None:
            return self._decoded(item, np.random.default_rng((self.seed, epoch, video)))
        rule = (self.frames, self.sampling.kind, self.sampling.fps, self.encoder.side)
        key = hashlib.sha256(f"{item_key(item)} {rule}".encode()).hexdigest()
        path = self.kept / key[:2] / f"{key[2:]}.jpg"
        try:
            return read_filmstrip(path)
        except VideoError:  # not kept yet, or damaged
            frames = self._decoded(item, np.random.default_rng(self.seed))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_filmstrip(path, frames)
        except (OSError, ValueError) as error:
            raise SureshotError(
                f"The frames of {item.id} cannot be kept in {self.kept}: {error}. Free some space, "
                "or set training.keep_frames to false."
            ) from None
        return read_filmstrip(path)  # as all later epochs see them

    def _decoded(
        self, item: Item, draw: np.random.Generator
    ) -> UInt8[np.ndarray, "frames height width 3"]:
        size = augmented(self.augment, self.encoder.frame_size, self.encoder.side, draw)
        return sampled_frames(item, self.frames, size, self.sampling, draw)
