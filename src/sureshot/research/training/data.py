"""What is trained on: captions and the videos they describe, as tokens, in batches."""

import hashlib
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int

from sureshot.datasets import Item, Split
from sureshot.errors import SureshotError, VideoError
from sureshot.files import replace_file
from sureshot.media.sampling_rule import Sampling
from sureshot.media.workers import Prefetcher
from sureshot.models.encoders.base import Images, Prepared
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.experts import expert_sizes
from sureshot.models.encoders.small import SmallEncoder
from sureshot.models.systems.base import TextTokens, VideoTokens, text_tokens, video_tokens
from sureshot.research.features import (
    FrameMemory,
    SplitFeatures,
    item_key,
    padded_texts,
    padded_videos,
    sampled_frames,
)
from sureshot.research.training.augment import SHORTEST_CROP, Augment, augmented
from sureshot.research.training.distributed import rank, union, world
from sureshot.research.training.encoder_tuning import Tuned, TunedBundled


class Pairs(AbstractContextManager["Pairs"]):
    """Pairs of a caption and its video, counted by the captions of all training sets.

    A context manager, at whose end threads that decode videos end. ``unreadable`` has the id and
    reason of each video that could not be read so far.
    """

    def __init__(self, splits: Sequence[Split]) -> None:
        self.unreadable: dict[str, str] = {}
        self.items: list[Item] = []
        self.captions: list[str] = []
        self.video_of: list[int] = []
        for split in splits:
            self.video_of += [len(self.items) + caption.video for caption in split.captions]
            self.captions += split.texts()
            self.items += split.items

    def name(self, row: int) -> str:
        """What an error calls a pair."""
        return f"{self.items[self.video_of[row]].id} {self.captions[row]!r}"

    @abstractmethod
    def texts(self, rows: Sequence[int]) -> TextTokens:
        """The captions of these pairs, padded to the longest."""

    @abstractmethod
    def videos(self, rows: Sequence[int]) -> VideoTokens:
        """The videos of these pairs, one each, padded to the longest."""

    def begin_epoch(self, number: int) -> None:
        """Take what belongs to this epoch from now on; epochs count from 0."""
        del number

    def readable(self, rows: Sequence[int]) -> list[int]:
        """Those of these pairs whose video can be read, the same in all processes."""
        return list(rows)

    def hold(self, rows: Sequence[int]) -> None:
        """Have the videos of these pairs ready from now on; all others may be let go."""
        del rows

    def __exit__(self, *_error: object) -> None:
        return None


class FeaturePairs(Pairs):
    """Pairs of one or more sets, from the features of one frozen encoder."""

    def __init__(self, sets: Sequence[SplitFeatures], device: str | torch.device = "cpu") -> None:
        super().__init__([part.split for part in sets])
        self.device = device
        self._videos = [video for part in sets for video in part.videos]
        self._texts = [text for part in sets for text in part.texts]
        self._own = [part.experts.get(item.id, {}) for part in sets for item in part.split.items]
        self.experts = expert_sizes(part.experts for part in sets)

    def texts(self, rows: Sequence[int]) -> TextTokens:
        """Their captions."""
        return text_tokens(padded_texts([self._texts[row] for row in rows]), self.device)

    def videos(self, rows: Sequence[int]) -> VideoTokens:
        """Their videos."""
        chosen = [self.video_of[row] for row in rows]
        own = [self._own[video] for video in chosen]
        seen = padded_videos([self._videos[video] for video in chosen], own, self.experts)
        return video_tokens(seen, self.device)


# Frames of an item, which is the n-th of all videos, in an epoch.
ReadFrames = Callable[[Item, int, int], Images]


class PixelPairs(Pairs):
    """Pairs of one or more splits, through an encoder with a graph.

    Videos wanted soon are decoded by threads meanwhile, and those of a step are kept until it ends,
    since gradient caching looks at them twice.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        encoder: Tuned,
        read: ReadFrames,
        workers: int = 4,
        *,
        memory: FrameMemory | None = None,  # of frames that are the same in all epochs
    ) -> None:
        super().__init__(splits)
        self._encoder = encoder
        self._read = read
        self._epoch = 0
        self._memory = memory or FrameMemory(0)
        self._decoded = Prefetcher(self._prepare, workers)

    def begin_epoch(self, number: int) -> None:
        """Take the frames of this epoch."""
        self._epoch = number

    def hold(self, rows: Sequence[int]) -> None:
        """Decode these videos, and let all others go."""
        self._decoded.want((self._epoch, self.video_of[row]) for row in rows)

    def readable(self, rows: Sequence[int]) -> list[int]:
        """Those whose video can be read; each process looks at its share."""
        videos = sorted({self.video_of[row] for row in rows[rank() :: world()]})
        seen = {video: self._decoded.get((self._epoch, video)) for video in videos}
        left_out = dict(union((v, reason) for v, reason in seen.items() if isinstance(reason, str)))
        self.unreadable |= {self.items[video].id: why for video, why in left_out.items()}
        return [row for row in rows if self.video_of[row] not in left_out]

    def texts(self, rows: Sequence[int]) -> TextTokens:
        """Their captions, with a graph."""
        return self._encoder.texts([self.captions[row] for row in rows])

    def videos(self, rows: Sequence[int]) -> VideoTokens:
        """Their videos, with a graph."""
        return self._encoder.videos([self._frames(self.video_of[row]) for row in rows])

    def _frames(self, video: int) -> Prepared:
        found = self._decoded.get((self._epoch, video))
        if isinstance(found, str):
            item = self.items[video]
            raise SureshotError(
                f"The video {item.id} ({item.path}) cannot be read: {found}. Leave it out."
            )
        return found

    def _prepare(self, key: tuple[int, int]) -> Prepared | str:
        """Prepared frames, or why there are none."""
        epoch, video = key
        item = self.items[video]
        read = partial(self._read, item, video, epoch)
        found = self._memory.prepared(item, self._encoder.encoder, read)
        return str(found) if isinstance(found, VideoError) else found

    def __exit__(self, *_error: object) -> None:
        self._decoded.close()


Captions = Literal["one", "all"]


def plan(
    video_of: Sequence[int],
    *,
    batch: int,
    captions: Captions = "one",
    seed: int = 0,
    epoch: int = 0,
) -> list[Int[np.ndarray, " pairs"]]:
    """The batches of an epoch, a pure function of the arguments: a run can go on anywhere.

    No two captions of a batch belong to one video, since to a contrastive loss each would be a
    wrong answer to the other. Sizes differ by one at most, so that no short batch comes last. A
    batch of one pair, which teaches nothing, is left only where the numbers leave no choice. Videos
    with more captions than batches make the batches smaller.

    Args:
        captions: ``one`` random caption of each video per epoch, or ``all`` of them.

    Returns:
        Indices into ``video_of``, one array for each of `count` batches.

    Examples:
        >>> [len(part) for part in plan(range(33), batch=32)]
        [17, 16]
    """
    total = count(video_of, batch=batch, captions=captions)
    random = np.random.default_rng((seed, epoch))
    numbers = np.asarray(video_of, np.int64)
    order = np.argsort(numbers, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)  # captions of each video
    random.shuffle(groups)
    one = captions == "one"
    groups = [g[random.integers(len(g), size=1)] if one else random.permutation(g) for g in groups]
    ordered = np.concatenate(groups)
    places = _deal([len(group) for group in groups], total, random)
    order = np.argsort(places, kind="stable")
    return np.split(ordered[order], np.cumsum(np.bincount(places, minlength=total))[:-1])


def count(video_of: Sequence[int], *, batch: int, captions: Captions = "one") -> int:
    """How many batches an epoch has."""
    sizes = np.unique(np.asarray(video_of, np.int64), return_counts=True)[1]
    if len(sizes) < 2:
        raise SureshotError(
            f"Training needs at least two videos with a caption; there is {len(sizes)}."
        )
    if captions == "one":
        return -(-len(sizes) // batch)
    return int(max(-(-sizes.sum() // batch), sizes.max()))


def _deal(
    sizes: Sequence[int], total: int, random: np.random.Generator
) -> Int[np.ndarray, " captions"]:
    """The batch of each caption: dealt like cards, never one batch twice to a video.

    The deck is one shuffled round of all batches after another. Where a video's captions reach into
    the next round, the batches it already has are put back further down.
    """
    deck: list[int] = []
    dealt: list[int] = []
    for size in sizes:
        if len(deck) < size:
            left = set(deck)
            fresh = [at for at in random.permutation(total).tolist() if at not in left]
            needed = size - len(deck)
            later = np.array(fresh[needed:] + deck, np.int64)
            deck += fresh[:needed] + random.permutation(later).tolist()
        dealt += deck[:size]
        deck = deck[size:]
    return np.array(dealt, np.int64)


def write_filmstrip(path: Path, frames: Images) -> None:
    """Write frames below each other into one JPEG; a ValueError if they are too many for one."""
    from PIL import Image

    count, height, width, _ = frames.shape
    if count * height > 65_500:  # as high as a JPEG can be
        raise ValueError(f"{count} frames of {height} lines are more than a JPEG can hold")
    strip = Image.fromarray(frames.reshape(count * height, width, 3))
    with replace_file(path) as fresh:
        comment = f"{count} frames".encode()
        strip.save(fresh, "JPEG", quality=95, subsampling=0, comment=comment)


def read_filmstrip(path: Path) -> Images:
    """The frames of such a file, a few grey levels from what was written."""
    from PIL import Image

    try:
        with Image.open(path, formats=("JPEG",)) as strip:
            count = re.fullmatch(rb"(\d+) frames", strip.info.get("comment", b""))
            pixels = np.asarray(strip.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise VideoError(f"the kept frames in {path.name} cannot be read: {error}") from None
    if count is None or len(pixels) % int(count.group(1)):
        raise VideoError(f"{path.name} holds no kept frames")
    return pixels.reshape(int(count.group(1)), -1, *pixels.shape[1:])


@dataclass(frozen=True, slots=True)
class TrainingFrames:
    """Reads the frames of a video for one epoch.

    They are ``kept`` in a folder as they are before a change by chance, so that each video is
    decoded once, or once per epoch where chance decides which frames; None decodes each time.
    """

    encoder: ClipEncoder | SmallEncoder | TunedBundled
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

    def __call__(self, item: Item, video: int, epoch: int) -> Images:
        """RGB frames of an item, the n-th of all videos, in an epoch."""
        drawn = (self.seed, epoch, video)
        draw = np.random.default_rng(drawn)
        size = augmented(self.augment, self.encoder.frame_size, self.encoder.side, draw)
        if self.kept is None:
            return sampled_frames(item, self.frames, size, self.sampling, draw)
        # A crop is cut out of frames large enough that the smallest is not enlarged.
        large = math.ceil(self.encoder.side / SHORTEST_CROP)
        unchanged = large if self.augment == "crop_flip" else self.encoder.frame_size
        which = (*drawn, self.augment) if self.sampling.is_drawn else None
        rule = (self.frames, self.sampling.kind, self.sampling.fps, self.encoder.resizing)
        named = f"{item_key(item)} {rule} {self.augment == 'crop_flip'} {which}"
        key = hashlib.sha256(named.encode()).hexdigest()
        path = self.kept / key[:2] / f"{key[2:]}.jpg"
        try:
            frames = read_filmstrip(path)
        except VideoError:  # not kept yet, or damaged
            fresh = sampled_frames(item, self.frames, unchanged, self.sampling, draw)
            frames = self._keep(path, item, fresh)
        if self.augment == "none":
            return frames
        assert callable(size)
        return np.stack([size(frame) for frame in frames])

    def _keep(self, path: Path, item: Item, frames: Images) -> Images:
        """Write the frames of an item, and read them as all later epochs see them."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_filmstrip(path, frames)
        except (OSError, ValueError) as error:
            raise SureshotError(
                f"The frames of {item.id} cannot be kept in {self.kept}: {error}. Free some space, "
                "or set training.keep_frames to false."
            ) from None
        return read_filmstrip(path)
