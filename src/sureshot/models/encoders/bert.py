"""BERT from a folder: texts alone, for systems that read extracted features of videos.

HiT and CE compare a text with features of experts (`sureshot.models.encoders.experts`); next to
them the papers read texts by a BERT. The folder holds what transformers writes: ``config.json``
with ``model_type = "bert"``, ``model.safetensors`` and ``tokenizer.json``. Sentence encoders built
on BERT, such as all-MiniLM-L6-v2, are read the same way.

Frames are nothing to it: the vectors that stand for them are zero, it has no backbone
(``channels`` is 0), and no video is decoded for it.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from sureshot.models.encoders.base import (
    FrameFeatures,
    Images,
    TextFeatures,
    Vocabulary,
    padded,
    read_in_batches,
)
from sureshot.models.encoders.clip import CONFIG, MULTILINGUAL, Snapshot, Tokenizer
from sureshot.paths import expand

if TYPE_CHECKING:
    import torch

_VERSION = "bert-1"  # part of every fingerprint; change it when the vectors of a folder change
_TEXTS = 128  # a batch
_AGAIN = "Copy the folder again, whole."


class BertEncoder:
    """Texts by a BERT, frozen; use `load`. Its weights are read at the first text."""

    channels = 0  # reads no frames
    frame_size = 1
    vocabulary: Vocabulary | None = None

    def __init__(self, snapshot: Snapshot, device: str | None = None) -> None:
        from sureshot.models.weights import device_for

        self.name = str(snapshot.folder)
        self.snapshot = snapshot
        snapshot.weights()
        config = snapshot.settings(CONFIG)
        names = ("hidden_size", "vocab_size", "max_position_embeddings")
        for name in names:
            if not isinstance(config.get(name), int) or config[name] < 1:
                reason = f"{name} in {CONFIG} is {config.get(name)!r:.40}, no size"
                raise snapshot.refuse(reason, _AGAIN)
        sizes: list[int] = [config[name] for name in names]
        self.dim, words, longest = sizes
        self.latin_only = words < MULTILINGUAL
        self.tokenizer = Tokenizer(
            snapshot, longest=longest, vocabulary=words, fill=False, end=None
        )
        self.words_of = self.tokenizer.words_of
        self.device = device_for(device)

    @classmethod
    def load(cls, folder: str, device: str | None = None) -> "BertEncoder":
        """The encoder in a local folder."""
        return cls(Snapshot(expand(folder).absolute()), device)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of weights, config and tokenizer; moving the folder keeps it."""
        return self.snapshot.fingerprint(_VERSION)

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Last states of all tokens, [CLS] and [SEP] included; the sentence is their mean.

        Tokens after ``model_max_length`` of ``tokenizer_config.json`` are dropped and marked as
        truncated.

        Differs:
            CE and HiT do not say how a sentence vector is made of BERT's states, and tune it; here
            it stays as it is, and the mean of its states is worth more then than its first one.
        """
        cut = self.tokenizer.encode(texts)
        (states,) = read_in_batches(self._read, _TEXTS, self.device, cut.ids, cut.mask)
        words, mask = padded([s[real] for s, real in zip(states, cut.mask, strict=True)])
        sentence = words.sum(1) / mask.sum(1, keepdims=True)
        length = np.linalg.norm(sentence, axis=1)
        return TextFeatures(
            sentence=sentence / np.maximum(length, 1e-12)[:, None],
            words=words,
            mask=mask,
            truncated=cut.truncated,
            length=length,
        )

    def prepare(self, frames: Images) -> UInt8[np.ndarray, "frames 3 1 1"]:
        """Nothing of frames."""
        return np.zeros((len(frames), 3, 1, 1), np.uint8)

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 1 1"]) -> FrameFeatures:
        """Zeros, as many as frames."""
        count = len(prepared)
        return FrameFeatures(
            frames=np.zeros((count, self.dim), np.float32),
            patches=np.zeros((count, 0, self.dim), np.float32),
            backbone=np.zeros((count, 0), np.float32),
        )

    def _read(self, ids: "torch.Tensor", mask: "torch.Tensor") -> list["torch.Tensor"]:
        """Last states of a batch of tokens."""
        return [self.network(input_ids=ids, attention_mask=mask.long())[0]]

    @cached_property
    def network(self) -> Any:
        """The model of transformers, on its device."""
        from transformers import BertModel

        return self.snapshot.network(BertModel, add_pooling_layer=False).to(self.device)
