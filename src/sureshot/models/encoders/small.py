r"""A small encoder that is trained from nothing: on shapes, on a laptop, in minutes.

Frames of 32 x 32 pixels go through three convolutions and one linear layer; words are vectors that
one transformer block lets look at each other. Both ends have 64 dimensions, and fewer than 400,000
weights together. Untrained it understands nothing: train it with a system (``encoder.tuned``).

There is no list of words. A word is the sum of two rows of a table, chosen by digests of its
letters, so that two words are hardly ever the same.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from PIL import Image
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.functional import normalize

from sureshot.errors import ModelError
from sureshot.files import write_json
from sureshot.models.encoders.base import (
    FrameFeatures,
    Images,
    TextFeatures,
    Vocabulary,
    read_in_batches,
)
from sureshot.models.layers.transformer import Block
from sureshot.models.weights import device_for, save_weights, with_weights

_VERSION = "small-1"
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_KIND = "sureshot-small"  # model_type in the config of a folder
_DIM, _CHANNELS, _CELLS = 64, 48, 16
_ROWS, _LONGEST, _HEADS = 4096, 48, 4
_SIDE, _BATCH = 32, 512
_GREY = 64.0  # levels of a pixel that become 1


class SmallNetwork(nn.Module):
    """The weights of the encoder, drawn from a seed."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(seed)
            self.image = nn.Sequential(
                nn.Conv2d(3, 12, 4, 2, 1),
                nn.ReLU(),
                nn.Conv2d(12, 24, 3, 2, 1),
                nn.ReLU(),
                nn.Conv2d(24, _CHANNELS, 3, 2, 1),
                nn.ReLU(),
            )
            self.frame = nn.Linear(_CHANNELS * _CELLS, _DIM)
            self.cell = nn.Linear(_CHANNELS, _DIM)
            self.place = nn.Parameter(torch.randn(_CELLS, _DIM) * 0.1)
            self.table = nn.Embedding(_ROWS, _DIM)
            self.order = nn.Parameter(torch.randn(_LONGEST, _DIM) * 0.1)
            self.block = Block(_DIM, _HEADS)
            self.norm = nn.LayerNorm(_DIM)
            self.word = nn.Linear(_DIM, _DIM)

    def read_frames(
        self, pixels: UInt8[Tensor, "frames 3 side side"]
    ) -> tuple[
        Float[Tensor, "frames dim"], Float[Tensor, "frames cells dim"], Float[Tensor, "frames c"]
    ]:
        """Frame, cell and backbone vectors."""
        shown = pixels.float() / _GREY
        shown = shown - shown.mean((2, 3), keepdim=True)  # how bright the ground is tells nothing
        # Channels last: a third less time on a processor.
        seen = self.image(shown.contiguous(memory_format=torch.channels_last))
        cells = self.cell(seen.flatten(2).transpose(1, 2)) + self.place
        return self.frame(seen.flatten(1)), cells, seen.mean((2, 3))

    def read_words(
        self, ids: Int[Tensor, "texts words pair"], mask: Bool[Tensor, "texts words"]
    ) -> tuple[Float[Tensor, "texts dim"], Float[Tensor, "texts words dim"]]:
        """Sentence and word vectors; padding is zero."""
        words = self.table(ids).sum(2) + self.order[: ids.shape[1]]
        words = self.word(self.norm(self.block(words, mask))) * mask[..., None]
        return words.sum(1) / mask.sum(1, keepdim=True), words


class SmallEncoder:
    """The encoder, with the weights of seed 0 unless others are given."""

    latin_only = False
    vocabulary: Vocabulary | None = None
    dim, channels = _DIM, _CHANNELS
    frame_size = side = _SIDE
    resizing = str(_SIDE)

    def __init__(
        self, network: SmallNetwork | None = None, name: str = "small", device: str | None = None
    ) -> None:
        self.name = name
        self.device = device_for(device)
        self.network = (network or SmallNetwork()).to(self.device).eval()

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> "SmallEncoder":
        """The encoder in a folder that `save` wrote."""
        network = with_weights(SmallNetwork, Path(folder) / _WEIGHTS, _CONFIG)
        return cls(network, str(folder), device)

    def save(self, folder: Path) -> None:
        """Write a folder that `load` reads."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            save_weights(self.network, folder / _WEIGHTS)
            write_json(folder / _CONFIG, {"model_type": _KIND})
        except (OSError, SafetensorError) as error:
            raise ModelError(f"The encoder cannot be written to {folder}: {error}.") from None

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the weights, as they are when it is first asked for."""
        digest = hashlib.sha256(_VERSION.encode())
        for name, weight in sorted(self.network.state_dict().items()):
            digest.update(name.encode() + weight.detach().cpu().numpy().tobytes())
        return digest.hexdigest()

    def word_numbers(
        self, texts: Sequence[str]
    ) -> tuple[Int[np.ndarray, "texts words pair"], Bool[np.ndarray, "texts words"]]:
        """Rows of the table for each word, and which words are real."""
        words = [text.lower().split()[:_LONGEST] or [""] for text in texts]
        longest = max(len(one) for one in words)
        ids = np.zeros((len(texts), longest, 2), np.int64)
        for row, one in zip(ids, words, strict=True):
            row[: len(one)] = [_rows_of(word.strip(".,;:!?\"'")) for word in one]
        return ids, np.arange(longest) < np.array([len(one) for one in words])[:, None]

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; words after the 48th are dropped with a warning."""
        ids, mask = self.word_numbers(texts)
        read = self.network.read_words
        found, words = read_in_batches(read, len(texts), self.device, ids, mask)
        sentences = torch.from_numpy(found)
        return TextFeatures(
            sentence=normalize(sentences, dim=-1).numpy(),
            words=words,
            mask=mask,
            truncated=np.array([len(text.split()) > _LONGEST for text in texts]),
            length=sentences.norm(dim=-1).numpy(),
        )

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The words of each text, as it writes them."""
        return [tuple(text.split()[:_LONGEST] or ("",)) for text in texts]

    def prepare(self, frames: Images) -> UInt8[np.ndarray, "frames 3 32 32"]:
        """Resize to 32 x 32 pixels."""
        if frames.shape[1:3] != (_SIDE, _SIDE):
            small = [Image.fromarray(frame).resize((_SIDE, _SIDE)) for frame in frames]
            frames = np.stack([np.asarray(frame) for frame in small])
        return np.ascontiguousarray(frames.transpose(0, 3, 1, 2))

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 32 32"]) -> FrameFeatures:
        """Encode prepared frames, 512 at a time."""
        return FrameFeatures(
            *read_in_batches(self.network.read_frames, _BATCH, self.device, prepared)
        )


def _rows_of(word: str) -> list[int]:
    """The two rows of the table that a word is the sum of."""
    digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
    return [int.from_bytes(digest[at : at + 4], "big") % _ROWS for at in (0, 4)]
