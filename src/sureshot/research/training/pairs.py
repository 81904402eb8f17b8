"""What is trained on: captions and the videos they describe, as tokens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from sureshot.errors import SureshotError
from sureshot.models.encoders.experts import Experts, expert_sizes, pack
from sureshot.models.encoders.protocol import FrameFeatures, stack
from sureshot.models.tokens import Sizes, TextTokens, VideoTokens, text_tokens, video_tokens
from sureshot.research.features import SplitFeatures, Text, padded_texts


@runtime_checkable
class Pairs(Protocol):
    """Pairs of a caption and its video, counted by the captions of all training sets.

    Attributes:
        video_of: number of the video of each pair.
    """

    video_of: Sequence[int]

    def name(self, row: int) -> str:
        """What an error calls a pair."""
        ...

    def begin_epoch(self, number: int) -> None:
        """Hear which epoch comes now, from 0."""
        ...

    def readable(self, rows: Sequence[int]) -> list[int]:
        """Those of these pairs whose video can be read, the same in all processes."""
        ...

    def hold(self, rows: Sequence[int]) -> None:
        """Hear which pairs this step and the next will ask for; others may be let go."""
        ...

    def texts(self, rows: Sequence[int]) -> TextTokens:
        """The captions of these pairs."""
        ...

    def videos(self, rows: Sequence[int]) -> VideoTokens:
        """The videos of these pairs, one each."""
        ...


class FeaturePairs:
    """Pairs of one or more sets, from the features of a frozen encoder.

    Args:
        sets: features of one encoder; a photo is a video of one frame.
        device: where tokens go.
        patches: whether the cells of frames go along. They are the larger part of a batch, and a
            stem that maps frames drops them.

    Raises:
        SureshotError: there is no set, the sets come from different encoders, or a feature is not
            finite.
    """

    def __init__(
        self,
        sets: Sequence[SplitFeatures],
        device: str | torch.device = "cpu",
        *,
        patches: bool = True,
    ) -> None:
        if len({part.fingerprint for part in sets}) != 1:
            names = ", ".join(part.encoder for part in sets) or "none"
            raise SureshotError(f"Training sets must share one encoder; they have {names}.")
        self.device = device
        video_of: list[int] = []
        self._names: list[str] = []
        self._videos: list[FrameFeatures] = []
        self._experts: list[Experts] = []
        self._texts: list[Text] = []
        for part in sets:
            first = len(self._videos)
            video_of += [first + caption.video for caption in part.split.captions]
            self._names += [caption_name(part, row) for row in range(len(part.split.captions))]
            self._videos += part.videos if patches else map(_without_patches, part.videos)
            self._experts += [part.experts.get(item.id, {}) for item in part.split.items]
            self._texts += part.texts
            _check_finite(part)
        self.video_of: Sequence[int] = video_of
        some = self._videos[0]
        experts = expert_sizes(part.experts for part in sets)
        self.sizes = Sizes(
            dim=some.frames.shape[1], channels=some.backbone.shape[1], experts=experts
        )

    def name(self, row: int) -> str:
        """Id of the video and the caption."""
        return self._names[row]

    def begin_epoch(self, number: int) -> None:
        """Nothing: features are the same in all epochs."""

    def readable(self, rows: Sequence[int]) -> list[int]:
        """All of them: what cannot be read has no features."""
        return list(rows)

    def hold(self, rows: Sequence[int]) -> None:
        """Nothing: all features are at hand."""

    def texts(self, rows: Sequence[int]) -> TextTokens:
        """The captions of these pairs, padded to the longest."""
        return text_tokens(padded_texts([self._texts[row] for row in rows]), self.device)

    def videos(self, rows: Sequence[int]) -> VideoTokens:
        """The videos of these pairs, padded to the longest."""
        chosen = [self.video_of[row] for row in rows]
        experts, which = pack([self._experts[video] for video in chosen], self.sizes.experts)
        seen = stack([self._videos[video] for video in chosen])
        return video_tokens(replace(seen, experts=experts, which=which), self.device)


def caption_name(part: SplitFeatures, row: int) -> str:
    """Id of the video and the text of a caption of a set."""
    caption = part.split.captions[row]
    return f"{part.split.items[caption.video].id} {caption.text!r}"


def _without_patches(video: FrameFeatures) -> FrameFeatures:
    return FrameFeatures(video.frames, video.patches[:, :0], video.backbone)


def _check_finite(part: SplitFeatures) -> None:
    for item, video in zip(part.split.items, part.videos, strict=True):
        if not all(np.isfinite(a).all() for a in (video.frames, video.patches, video.backbone)):
            _refuse(f"the video {item.id}", part)
    for row, arrays in enumerate(part.texts):
        if not all(np.isfinite(array).all() for array in arrays):
            _refuse(f"the caption of {caption_name(part, row)}", part)


def _refuse(what: str, part: SplitFeatures) -> None:
    raise SureshotError(
        f"The features of {what} hold a number that is not finite; encode {part.split.title()} "
        "again, or leave it out."
    )
