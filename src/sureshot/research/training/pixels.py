"""Pairs whose videos are decoded while they are trained on, for an encoder that is trained too."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Shaped, UInt8

from sureshot.datasets import Item, Split
from sureshot.errors import SureshotError, VideoError
from sureshot.media.ahead import Ahead
from sureshot.media.video import unreadable
from sureshot.models.tokens import TextTokens, VideoTokens
from sureshot.research.frame_memory import FrameMemory
from sureshot.research.training.gather import rank, told_by_all, world
from sureshot.research.training.tuning import Tuned

# Frames of an item, which is the n-th of all videos, in an epoch.
ReadFrames = Callable[[Item, int, int], UInt8[np.ndarray, "frames height width 3"]]


class PixelPairs:
    """Pairs of one or more splits, through an encoder with a graph; a context manager.

    Videos wanted soon are decoded by threads meanwhile, and those of a step are kept until it ends,
    since gradient caching looks at them twice.

    Attributes:
        unreadable: id and reason of each video that could not be read so far.

    Args:
        splits: the sets.
        encoder: makes tokens of them.
        read: RGB frames of a video, sampled.
        workers: threads.
        memory: where frames that are the same in all epochs are kept; None decodes each time.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        encoder: Tuned,
        read: ReadFrames,
        workers: int = 4,
        *,
        memory: FrameMemory | None = None,
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
        self.unreadable: dict[str, str] = {}
        self._encoder = encoder
        self._read = read
        self._epoch = 0
        self._memory = memory or FrameMemory(0)
        self._decoded = Ahead(self._prepare, workers)

    def name(self, row: int) -> str:
        """Id of the video and the caption."""
        return f"{self._items[self.video_of[row]].id} {self._texts[row]!r}"

    def begin_epoch(self, number: int) -> None:
        """Take the frames of this epoch from now on."""
        self._epoch = number

    def hold(self, rows: Sequence[int]) -> None:
        """Have these videos ready from now on, and let all others go."""
        self._decoded.want((self._epoch, self.video_of[row]) for row in rows)

    def readable(self, rows: Sequence[int]) -> list[int]:
        """Those of these pairs whose video can be read; each process looks at its share.

        Raises:
            SureshotError: frames that were read cannot be kept.
        """
        videos = {self.video_of[row] for row in rows[rank() :: world()]}
        odd = [
            (video, reason)
            for video in sorted(videos)
            if isinstance(reason := self._decoded.get((self._epoch, video)), str)
        ]
        left_out = dict(told_by_all(odd))
        self.unreadable |= {self._items[video].id: why for video, why in left_out.items()}
        return [row for row in rows if self.video_of[row] not in left_out]

    def texts(self, rows: Sequence[int]) -> TextTokens:
        """The captions of these pairs, with a graph."""
        return self._encoder.texts([self._texts[row] for row in rows])

    def videos(self, rows: Sequence[int]) -> VideoTokens:
        """The videos of these pairs, with a graph.

        Raises:
            SureshotError: one cannot be read.
        """
        return self._encoder.videos([self._frames(row) for row in rows])

    def _frames(self, row: int) -> Shaped[np.ndarray, "frames 3 side side"]:
        found = self._decoded.get((self._epoch, self.video_of[row]))
        if isinstance(found, str):
            item = self._items[self.video_of[row]]
            raise SureshotError(
                f"The video {item.id} ({item.path}) cannot be read: {found}. Leave it out."
            )
        return found

    def _prepare(self, key: tuple[int, int]) -> Shaped[np.ndarray, "frames 3 side side"] | str:
        """Prepared frames, or why there are none."""
        epoch, video = key
        item = self._items[video]
        known = self._memory.get(item)
        if known is not None:
            return known
        try:
            seen = self._encoder.encoder.prepare(self._read(item, video, epoch))
        except VideoError as error:
            return str(error)
        except OSError as error:
            return str(unreadable(error))
        self._memory.put(item, seen)
        return seen

    def __enter__(self) -> "PixelPairs":
        return self

    def __exit__(self, *_error: object) -> None:
        self._decoded.close()
