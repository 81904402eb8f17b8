"""The small encoder while it is trained end to end with a system."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from sureshot.models.encoders.small import SmallEncoder, SmallNetwork
from sureshot.models.tokens import TextTokens, VideoTokens


class TunedSmall(nn.Module):
    """Tokens with a graph, from texts and prepared frames.

    The encoder goes on to share the weights. One that was trained before goes on from where it
    was; the untrained one begins from weights of this run's seed. Its logit scale is the system's.

    Args:
        encoder: whose weights are trained.
        seed: number that first weights are drawn from.
    """

    def __init__(self, encoder: SmallEncoder, seed: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        if encoder.name == "small":
            encoder.network.load_state_dict(SmallNetwork(seed).state_dict())
        self.network: nn.Module = encoder.network

    def texts(self, texts: Sequence[str]) -> TextTokens:
        """Texts, at least one; sentences at their own length."""
        ids, mask = self.encoder.word_numbers(texts)
        real = torch.from_numpy(mask).to(self.encoder.device)
        sentence, words = self.encoder.network.read_words(
            torch.from_numpy(ids).to(self.encoder.device), real
        )
        return TextTokens(sentence, words, real)

    def videos(self, prepared: Sequence[Shaped[np.ndarray, "_frames 3 side side"]]) -> VideoTokens:
        """Videos of frames that `SmallEncoder.prepare` made; each has at least one."""
        lengths = [len(frames) for frames in prepared]
        batch = torch.from_numpy(np.concatenate(prepared)).to(self.encoder.device)
        padded = [
            pad_sequence(list(torch.split(part, lengths)), batch_first=True)
            for part in self.encoder.network.read_frames(batch)
        ]
        real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        return VideoTokens(padded[0], padded[1], padded[2], real.to(self.encoder.device))

    def save(self, folder: Path) -> None:
        """Write a folder that `SmallEncoder.load` reads.

        Raises:
            ModelError: it cannot be written.
        """
        self.encoder.save(folder)
