"""Pairs whose videos are decoded while they are trained on, for an encoder that is trained too."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Shaped, UInt8

from sureshot.datasets import Item, Split
from sureshot.errors import SureshotError, VideoError
from sureshot.media.ahead import Ahead
from sureshot.models.tokens import TextTokens, VideoTokens
from sureshot.research.training.tuning import TunedClip

Frames = UInt8[np.ndarray, "frames height width 3"]


class PixelPairs:
    """Pairs of one or more splits, through an encoder with a graph; a context manager.

    Videos wanted soon are decoded by threads meanwhile, and those of a step are kept until it ends,
    since gradient caching looks at them twice.

    Args:
        splits: the sets; all of their videos can be read.
        encoder: makes tokens of them.
        read: RGB frames of a video, sampled.
        workers: threads.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        encoder: TunedClip,
        read: Callable[[Item], Frames],
        workers: int = 4,
    ) -> None:
        video_of: list[int] = []
        self._items: list[Item] = []
        self._texts: list[str] = []
        for split in splits:
            first = len(self._items)
            video_of += [first + caption.video for caption in split.captions]
            self._texts += split.texts()
            self._items += split.items
        self.video_of: Sequence[int] = video_of
        self._encoder = encoder
        self._read = read
        self._decoded = Ahead(self._prepare, workers)

    def name(self, row: int) -> str:
        """Id of the video and the caption."""
        return f"{self._items[self.video_of[row]].id} {self._texts[row]!r}"

    def hold(self, rows: Sequence[int]) -> None:
        """Have these videos ready from now on, and let all others go."""
        self._decoded.want(self.video_of[row] for row in rows)

    def texts(self, rows: Sequence[int]) -> TextTokens:
        """The captions of these pairs, with a graph."""
        return self._encoder.texts([self._texts[row] for row in rows])

    def videos(self, rows: Sequence[int]) -> VideoTokens:
        """The videos of these pairs, with a graph.

        Raises:
            SureshotError: one cannot be read.
        """
        return self._encoder.videos([self._decoded.get(self.video_of[row]) for row in rows])

    def _prepare(self, video: int) -> Shaped[np.ndarray, "frames 3 side side"]:
        item = self._items[video]
        try:
            return self._encoder.encoder.prepare(self._read(item))
        except (VideoError, OSError) as error:
            raise SureshotError(
                f"The video {item.id} ({item.path}) cannot be read: {error}. Leave it out."
            ) from None

    def __enter__(self) -> "PixelPairs":
        return self

    def __exit__(self, *_error: object) -> None:
        self._decoded.close()
