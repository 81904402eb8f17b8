"""A small system of our own, and pairs for it: what the engine needs of a real one."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from sureshot.models.layers.pooling import unit
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import Codes, Sizes, System, TextTokens, VideoTokens

DIM, CHANNELS, WIDTH = 6, 5, 4


class Toy(System):
    """Words meet frames; a drawn noise and a bool mask go along."""

    weights: Mapping[str, float] = {"contrast": 1.0, "noise": 0.1}

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__(5.0)
        self.dropout = nn.Dropout(dropout)
        self.line = nn.Linear(width, width)
        self.unused = nn.Linear(2, 2)

    def texts(self, tokens: TextTokens) -> Codes:
        words = unit(self.dropout(self.line(tokens.words)))
        return {"sentence": unit(tokens.sentence), "words": words, "mask": tokens.mask}

    def videos(self, tokens: VideoTokens) -> Codes:
        frames = self.dropout(tokens.frames)
        length = frames.square().sum((1, 2)).add(1).log()  # a code without a second axis
        return {"frames": unit(frames), "mask": tokens.mask, "length": length}

    def similarity(self, texts: Codes, videos: Codes) -> torch.Tensor:
        pairs = torch.einsum("twd,vfd->tvwf", texts["words"], videos["frames"])
        real = texts["mask"][:, None, :, None] & videos["mask"][None, :, None, :]
        best = torch.where(real, pairs, -9.0).amax((2, 3))
        mean = videos["frames"].sum(1) / videos["mask"].sum(1, keepdim=True)
        return best + texts["sentence"] @ mean.T + 0.1 * videos["length"]

    def losses(
        self, texts: Codes, videos: Codes, generator: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        logits = self.scale * self.similarity(texts, videos)
        noise = torch.randn(len(logits), generator=generator)
        right = torch.arange(len(logits))
        return {
            "contrast": (cross_entropy(logits, right) + cross_entropy(logits.T, right)) / 2,
            "noise": (noise * logits.diagonal()).mean(),
        }

    def video_vectors(self, videos: Codes) -> torch.Tensor:
        return unit(videos["frames"].sum(1))


class Pairs:
    """Captions with one to four words, videos with one to five frames; caption i shows itself."""

    def __init__(self, videos: int = 12, captions: int = 2, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.held: list[int] = []
        self.unreadable: dict[str, str] = {}
        self.lost: set[int] = set()  # rows whose video cannot be read
        self.video_of = [video for video in range(videos) for _ in range(captions)]
        topics = random.normal(size=(videos, DIM))
        self.frames = [
            topics[v] + random.normal(size=(random.integers(1, 6), DIM)) for v in range(videos)
        ]
        self.words = [
            topics[v] + random.normal(size=(random.integers(1, 5), DIM)) for v in self.video_of
        ]

    def name(self, row: int) -> str:
        return f"video{self.video_of[row]} 'caption {row}'"

    def begin_epoch(self, number: int) -> None:
        self.epoch = number

    def readable(self, rows: Sequence[int]) -> list[int]:
        return [row for row in rows if row not in self.lost]

    def hold(self, rows: Sequence[int]) -> None:
        self.held = list(rows)

    def texts(self, rows: Sequence[int]) -> TextTokens:
        words, mask = padded([self.words[row] for row in rows])
        sentence = torch.stack([part.mean(0) for part in map(torch.tensor, self._of(rows))])
        return TextTokens(unit(sentence.float()), words, mask)

    def _of(self, rows: Sequence[int]) -> list[np.ndarray]:
        return [self.words[row] for row in rows]

    def videos(self, rows: Sequence[int]) -> VideoTokens:
        frames, mask = padded([self.frames[self.video_of[row]] for row in rows])
        backbone = frames[..., :CHANNELS] ** 2
        return VideoTokens(frames, frames.new_zeros(*mask.shape, 0, DIM), backbone, mask)


def padded(parts: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = [torch.tensor(part, dtype=torch.float32) for part in parts]
    mask = [torch.ones(len(part), dtype=torch.bool) for part in tensors]
    pad = nn.utils.rnn.pad_sequence
    return pad(tensors, batch_first=True), pad(mask, batch_first=True)


def model(dropout: float = 0.0, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    config = StemConfig("linear", WIDTH, dropout)
    return Model(Stem(config, Sizes(DIM, CHANNELS)), Toy(WIDTH, dropout))
