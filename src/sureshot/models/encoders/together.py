"""Frames of several videos through an encoder: those of one shape in one batch."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from jaxtyping import Shaped

from sureshot.models.encoders.protocol import Encoder, FrameFeatures

# Frames of one video as `Encoder.prepare` gives them: any number of frames, rows and columns.
Prepared = Shaped[np.ndarray, "_ 3 _ _"]


def encode_together(encoder: Encoder, videos: Sequence[Prepared]) -> list[FrameFeatures]:
    """Features of each video, in the order of the videos.

    Args:
        encoder: what encodes them.
        videos: prepared frames, at least one a video; shapes may differ between videos.
    """
    by_shape: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for row, video in enumerate(videos):
        by_shape[video.shape[1:]].append(row)
    found: dict[int, FrameFeatures] = {}
    for rows in by_shape.values():
        features = encoder.encode_frames(np.concatenate([videos[row] for row in rows]))
        ends = np.cumsum([len(videos[row]) for row in rows])
        for row, first, last in zip(rows, [0, *ends], ends, strict=False):
            parts = {f.name: getattr(features, f.name)[first:last] for f in fields(features)}
            found[row] = FrameFeatures(**parts)
    return [found[row] for row in range(len(videos))]
