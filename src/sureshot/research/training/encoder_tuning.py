"""A CLIP or SigLIP that is trained end to end with a system; `tuned` takes other encoders too.

The networks and the way texts and frames go through them are those of
`sureshot.models.encoders.clip.ClipEncoder`, so that what is trained is what is searched. Weights
stay 32-bit whatever precision the pass through the network has.

The logit scale is CLIP's own where the system has it so: one parameter, which starts with CLIP's
value and is trained at CLIP's rate.

Differs:
    The codes of CLIP4Clip, UATVR and DUQ keep CLIP's weights in half precision and update them in
    place. At their learning rate of 1e-7 nearly all updates are smaller than the distance of two
    such numbers and are lost; with 32-bit weights none is.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from sureshot.errors import ModelError, SureshotError
from sureshot.files import write_json
from sureshot.models.encoders import Encoder
from sureshot.models.encoders.base import Cells, chosen_cells
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.models.encoders.clip import (
    IMAGES,
    PROCESSOR,
    TOKENIZER,
    TOKENIZER_SETTINGS,
    ClipEncoder,
    silence,
)
from sureshot.models.encoders.small import SmallEncoder, SmallNetwork
from sureshot.models.systems.base import Frozen, System, TextTokens, VideoTokens
from sureshot.research.training.bundled_tuning import TunedBundled, padded_videos


class _TunedEncoder(nn.Module):
    """Tokens with a graph, from texts and prepared frames.

    The encoder goes on to share the weights: what it encodes is what has been learned so far.
    """

    def __init__(
        self,
        encoder: SmallEncoder | ClipEncoder,
        read: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]],
        system: System | None,
    ) -> None:
        super().__init__()
        self.network: nn.Module = encoder.network
        self._read, self._device = read, encoder.device
        self._cells: Cells = "coarse" if system is None else system.cells

    def videos(self, prepared: Sequence[Shaped[np.ndarray, "_frames 3 side side"]]) -> VideoTokens:
        """Videos of frames that the encoder prepared, each at least one; all go in one pass."""
        pixels = torch.from_numpy(np.concatenate(prepared)).to(self._device)
        frames, patches, backbone = self._read(pixels)
        patches = chosen_cells(patches, self._cells, torch.stack)
        return padded_videos((frames, patches, backbone), [len(frames) for frames in prepared])


class TunedSmall(_TunedEncoder):
    """The small encoder; its logit scale is the system's.

    One that was trained before goes on from where it was; the untrained one begins from weights of
    this run's seed.
    """

    def __init__(self, encoder: SmallEncoder, seed: int = 0, system: System | None = None) -> None:
        super().__init__(encoder, encoder.network.read_frames, system)
        self.encoder = encoder
        if encoder.name == "small":
            encoder.network.load_state_dict(SmallNetwork(seed).state_dict())

    def texts(self, texts: Sequence[str]) -> TextTokens:
        """Texts, at least one; sentences at their own length."""
        numbers = self.encoder.word_numbers(texts)
        ids, real = (torch.from_numpy(part).to(self.encoder.device) for part in numbers)
        return TextTokens(*self.encoder.network.read_words(ids, real), real)

    def save(self, folder: Path) -> None:
        """Write a folder that `SmallEncoder.load` reads."""
        self.encoder.save(folder)


_EMBEDDINGS = ("text_model.embeddings.", "vision_model.embeddings.", "vision_model.pre_layrnorm.")
_FROZEN: Mapping[Frozen, tuple[str, ...]] = {
    "nothing": (),
    "patches": ("vision_model.embeddings.patch_embedding.",),
    "embeddings": _EMBEDDINGS,
}


class TunedClip(_TunedEncoder):
    """A CLIP or SigLIP.

    The fingerprint of the encoder stays that of the folder it came from; `save` it and load the new
    folder before anything of it is kept.

    Args:
        system: on the same device. It says what stays as it is, whether its logit scale is the
            encoder's, and whether it wants all cells of a frame; None trains all but a logit scale.
        words: tokens of a text that are read, special ones included; None is all that it can.
    """

    def __init__(
        self, encoder: ClipEncoder, system: System | None = None, words: int | None = None
    ) -> None:
        super().__init__(encoder, encoder.read_frames, system)
        self.encoder = encoder
        self._words = words
        if words is not None:
            encoder.tokenizer.limit(words)
        stays = () if system is None else _FROZEN[system.frozen]
        for name, weight in self.network.named_parameters():
            # The networks' own logit scale takes no part in tokens: no gradient would reach it.
            weight.requires_grad_(not name.startswith(("logit_", *stays)))
        self.log_scale: nn.Parameter | None = None
        if system is not None and system.shares_scale:
            self.log_scale = system.start_scale(float(self._own_scale()))

    def texts(self, texts: Sequence[str]) -> TextTokens:
        """Texts as `ClipEncoder.encode_texts` has them, at least one; sentences at their length."""
        cut = self.encoder.tokenizer.encode(texts)
        ids, real = (torch.from_numpy(part).to(self.encoder.device) for part in (cut.ids, cut.mask))
        sentence, states = self.encoder.read_texts(ids)
        words = [state[mask] for state, mask in zip(states, real, strict=True)]
        mask = pad_sequence([mask[mask] for mask in real], batch_first=True)
        return TextTokens(sentence, pad_sequence(words, batch_first=True), mask)

    def save(self, folder: Path) -> None:
        """Write a folder that `ClipEncoder.load` reads, for the same texts and frames."""
        origin = self.encoder.snapshot.folder
        if self.log_scale is not None:
            self._own_scale().data.fill_(self.log_scale.item())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with silence():  # it would draw a bar of its own
                self.network.save_pretrained(folder)  # type: ignore[operator]
            for name in (IMAGES, PROCESSOR, TOKENIZER, TOKENIZER_SETTINGS):
                if (origin / name).is_file():
                    shutil.copyfile(origin / name, folder / name)
            if self._words is not None:
                settings = self.encoder.snapshot.settings(TOKENIZER_SETTINGS)
                most = {"model_max_length": self._words}
                write_json(folder / TOKENIZER_SETTINGS, {**settings, **most})
        except OSError as error:
            raise ModelError(f"The encoder cannot be written to {folder}: {error}.") from None

    def _own_scale(self) -> nn.Parameter:
        """The logarithm of the logit scale that the network came with."""
        return self.network.get_parameter("logit_scale")


Tuned = TunedClip | TunedSmall | TunedBundled


def tuned(
    encoder: Encoder, system: System | None = None, words: int | None = None, seed: int = 0
) -> Tuned:
    """An encoder that is trained with a system; see the classes of `Tuned`."""
    if isinstance(encoder, BundledEncoder):
        return TunedBundled(encoder)
    if isinstance(encoder, SmallEncoder):
        return TunedSmall(encoder, seed, system)
    if isinstance(encoder, ClipEncoder):
        return TunedClip(encoder, system, words)
    raise SureshotError(
        f"Setting encoder.tuned is true, and the encoder {encoder.name!r} cannot be trained; "
        'only "bundled", CLIP, SigLIP and "small" can. Name one, or set it to false.'
    )
