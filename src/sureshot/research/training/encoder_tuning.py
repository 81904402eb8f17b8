"""Encoders that are trained end to end with a system; `tuned` makes one.

The networks of a CLIP or SigLIP, and the way texts and frames go through them, are those of
`sureshot.models.encoders.clip.ClipEncoder`, so that what is trained is what is searched. Weights
stay 32-bit whatever precision the pass through the network has.

The logit scale is CLIP's own where the system has it so: one parameter, which starts with CLIP's
value and is trained at CLIP's rate.

Differs:
    The codes of CLIP4Clip, UATVR and DUQ keep CLIP's weights in half precision and update them in
    place. At their learning rate of 1e-7 nearly all updates are smaller than the distance of two
    such numbers and are lost; with 32-bit weights none is.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Float16, Shaped
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from sureshot.errors import ModelError, SureshotError
from sureshot.files import write_json
from sureshot.models.encoders import Encoder
from sureshot.models.encoders.backbone import GRID, SIDE
from sureshot.models.encoders.base import (
    Cells,
    FrameFeatures,
    Images,
    TextFeatures,
    chosen_cells,
)
from sureshot.models.encoders.bundled import (
    CONFIG,
    DIM,
    KIND,
    TEMPERATURE,
    WEIGHTS,
    BundledEncoder,
    text_folder,
)
from sureshot.models.encoders.clip import (
    IMAGES,
    PROCESSOR,
    TOKENIZER,
    TOKENIZER_SETTINGS,
    ClipEncoder,
    silence,
)
from sureshot.models.encoders.efficientnet import CHANNELS
from sureshot.models.encoders.efficientnet_torch import EfficientNetLite2, InvertedBottleneck
from sureshot.models.encoders.minilm import DIM as SENTENCE
from sureshot.models.encoders.minilm import HEADS, LAYERS
from sureshot.models.encoders.small import SmallEncoder, SmallNetwork
from sureshot.models.systems.base import Frozen, System, TextTokens, VideoTokens

if TYPE_CHECKING:
    from transformers import BertModel


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


FIRST_BLOCK = 19  # of the image network's 21
FIRST_LAYER = 3  # of the text network's 6
_TOGETHER = (64, 16, 4, 1)  # frames of one shape at once
_PARTS = 4  # a batch of texts is cut by length, so that little is computed on padding
_ROOM = 2**28  # bytes of what enters the trained layers of texts

# What enters the trained blocks for the frames of a video: channels last, 16-bit.
States = Float16[np.ndarray, "frames i j c"]


class TunedBundled(nn.Module):
    """The bundled encoder: the upper ends of its two networks, which has weights of its own.

    Trained are the last two blocks of the image network and its last convolution, the last three
    layers of the text network, and the map from each into the joint space. What is below them
    stays, and what enters them is computed once per video and once per caption (`prepare`): a step
    costs a tenth of one through the whole networks. The names of the classes stay as well.
    """

    latin_only = True
    dim, channels, side = DIM, CHANNELS, SIDE
    frame_size = SIDE
    resizing = str(SIDE)
    labels: Tensor

    def __init__(self, encoder: BundledEncoder) -> None:
        super().__init__()
        self.origin, self.name, self.device = encoder, encoder.name, encoder.device
        self.fingerprint, self.vocabulary = encoder.fingerprint, encoder.vocabulary
        copied = {name: weight.copy() for name, weight in encoder.backbone.weights.items()}
        self.image = EfficientNetLite2.of(copied)
        read = load_file(text_folder() / "model.safetensors") | encoder.head("text.network.")
        self.bert = new_minilm(read)
        self.text, self.frame = nn.Linear(SENTENCE, DIM), nn.Linear(CHANNELS, DIM)
        for name, part in (("text.", self.text), ("frame.", self.frame)):
            head = encoder.head(name)
            part.load_state_dict({n: torch.from_numpy(head[n]) for n in ("weight", "bias")})
        labels = torch.from_numpy(encoder.head("frame.")["labels"])
        self.register_buffer("labels", labels, persistent=False)
        self.requires_grad_(False)
        blocks = list(self.image.blocks)
        layers = [*list(self.bert.encoder.layer)[FIRST_LAYER:], *blocks[FIRST_BLOCK:]]
        for part in (*layers, self.image.head, self.text, self.frame):
            part.requires_grad_(True)
        for block in blocks:
            assert isinstance(block, InvertedBottleneck)
            # Learning filters of single channels costs more than all else together (LOG.md).
            block.filter.requires_grad_(False)
        self.to(self.device)
        self._begun: dict[str, Tensor] = {}
        self._room = _ROOM

    @property
    def encoder(self) -> "TunedBundled":
        """What encodes with the weights as they are."""
        return self

    @property
    def network(self) -> nn.Module:
        """What has the weights."""
        return self

    @cached_property
    def prepared_by(self) -> str:
        """Digest of the weights that frames go through before those that are trained."""
        digest = hashlib.sha256(f"{SIDE} {FIRST_BLOCK}".encode())
        for part in (self.image.stem, *list(self.image.blocks)[:FIRST_BLOCK]):
            for weight in part.state_dict().values():
                digest.update(weight.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def prepare(self, frames: Images) -> States:
        """What enters the trained blocks."""
        states = self.origin.backbone.lower(self.origin.prepare(frames), FIRST_BLOCK)
        return states.astype(np.float16)

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Texts as `BundledEncoder.encode_texts` has them."""
        with torch.no_grad():
            found = self.texts(texts)
        sentence, words, mask = (part.cpu().numpy() for part in found)
        cut = self.origin.token_numbers(texts)[1]
        return TextFeatures(sentence=sentence, words=words, mask=mask, truncated=cut)

    def encode_frames(self, prepared: States) -> FrameFeatures:
        """Frames as `BundledEncoder.encode_frames` has them."""
        with torch.no_grad():
            frames, patches, backbone = (p.cpu().numpy() for p in self._frames([*prepared]))
        return FrameFeatures(frames=frames, patches=patches, backbone=backbone)

    def texts(self, texts: Sequence[str]) -> TextTokens:
        """Texts, at least one, with a graph."""
        begun = [states.float() for states in self._entering(texts)]
        layers = list(self.bert.encoder.layer[FIRST_LAYER:])
        words = _through(layers, begun, -(-len(begun) // _PARTS))
        padded = pad_sequence([states.float() for states in words], batch_first=True)
        lengths = torch.tensor([len(one) for one in begun])
        mask = (torch.arange(padded.shape[1]) < lengths[:, None]).to(self.device)
        joined = self._joined_texts(padded) * mask[..., None]
        return TextTokens(self._joined_texts(padded.sum(1)), joined, mask)

    def videos(self, prepared: Sequence[States]) -> VideoTokens:
        """Videos of frames that `prepare` made, with a graph; each has at least one."""
        seen = self._frames([states for video in prepared for states in video])
        return padded_videos(seen, [len(video) for video in prepared])

    def save(self, folder: Path) -> None:
        """Write a folder that `BundledEncoder` reads."""
        kept = {n: torch.from_numpy(w.copy()) for n, w in self.origin.head("").items()}
        for name, weight in self.named_parameters():
            if weight.requires_grad:
                renamed = name.replace("bert.", "text.network.").replace("image.", "frame.network.")
                kept[renamed] = weight.detach().cpu().contiguous()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            save_file(kept, folder / WEIGHTS)
            write_json(folder / CONFIG, {"model_type": KIND})
        except OSError as error:
            raise ModelError(f"The encoder cannot be written to {folder}: {error}.") from None

    def _entering(self, texts: Sequence[str]) -> list[Float16[Tensor, "tokens size"]]:
        """What enters the first trained layer for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._begun]
        found = {text: self._begun[text] for text in texts if text in self._begun}
        if new:
            ids = [torch.tensor(one).to(self.device) for one in self.origin.token_numbers(new)[0]]
            layers = list(self.bert.encoder.layer[:FIRST_LAYER])
            with torch.no_grad():
                states = _through(layers, ids, 64, self.bert.embeddings)
            for text, one in zip(new, states, strict=True):
                found[text] = one.half().clone()
                if found[text].nbytes <= self._room:
                    self._room -= found[text].nbytes
                    self._begun[text] = found[text]
        return [found[text] for text in texts]

    def _frames(
        self, states: Sequence[Float16[np.ndarray, "_i _j c"]]
    ) -> tuple[
        Float[Tensor, "frames dim"], Float[Tensor, "frames cells dim"], Float[Tensor, "frames c"]
    ]:
        """Vectors, cells and backbone features of frames, those of one shape together.

        They come in groups of few sizes: for every number of frames that it has not seen, oneDNN
        prepares each convolution again, which takes longer than to compute it.
        """
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for row, state in enumerate(states):
            by_shape.setdefault(state.shape, []).append(row)
        order: list[int] = []
        pooled, cells = [], []
        for rows in by_shape.values():
            order += rows
            while rows:
                size = next(size for size in _TOGETHER if size <= len(rows))
                some, rows = rows[:size], rows[size:]
                batch = torch.from_numpy(np.stack([states[row] for row in some])).to(self.device)
                # Seen as channels first, in memory still last.
                maps = self.image.upper(batch.float().permute(0, 3, 1, 2), FIRST_BLOCK).float()
                pooled.append(maps.mean((-2, -1)))
                grid = functional.adaptive_avg_pool2d(maps, GRID)
                cells.append(grid.flatten(2).transpose(1, 2))
        back = torch.tensor(order).argsort().to(self.device)
        features = torch.cat(pooled)[back]
        return self._joined_frames(features), self._joined_frames(torch.cat(cells)[back]), features

    def _joined_texts(self, states: Float[Tensor, "*n size"]) -> Float[Tensor, "*n dim"]:
        units = functional.normalize(states, dim=-1)
        return functional.normalize(self.text(units * SENTENCE**0.5).float(), dim=-1)

    def _joined_frames(self, features: Float[Tensor, "*n channels"]) -> Float[Tensor, "*n dim"]:
        believed = torch.softmax(self.image.classify(features).float() / TEMPERATURE, dim=-1)
        looks = self.frame(functional.layer_norm(features, features.shape[-1:]))
        return functional.normalize((looks + believed @ self.labels.T).float(), dim=-1)


def _through(
    layers: Sequence[nn.Module],
    rows: Sequence[Tensor],
    size: int,
    embed: Callable[[Tensor], Tensor] = lambda states: states,
) -> list[Tensor]:
    """What comes out of layers of the text network, in batches of rows of like length."""
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    done: dict[int, Tensor] = {}
    for part in (order[first : first + size] for first in range(0, len(order), size)):
        padded, hidden = pad([rows[row] for row in part])
        states = embed(padded)
        for layer in layers:
            states = layer(states, hidden)
        done |= {row: s[: len(rows[row])] for row, s in zip(part, states, strict=True)}
    return [done[row] for row in range(len(rows))]


def padded_videos(parts: Sequence[Tensor], lengths: list[int]) -> VideoTokens:
    """Vectors, cells and backbone features of all frames as videos, padded to the longest."""
    split = (torch.split(part, lengths) for part in parts)
    frames, patches, backbone = (pad_sequence(list(one), batch_first=True) for one in split)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return VideoTokens(frames, patches, backbone, real.to(frames.device))


def pad(rows: Sequence[Tensor]) -> tuple[Tensor, Float[Tensor, "n 1 1 tokens"]]:
    """Rows in one tensor, and what attention adds so that none looks at the padding."""
    zeros = [torch.zeros(len(row), device=row.device) for row in rows]
    hidden = pad_sequence(zeros, batch_first=True, padding_value=-1e4)
    return pad_sequence(list(rows), batch_first=True), hidden[:, None, None]


def new_minilm(weights: Mapping[str, np.ndarray], dropout: float = 0.0) -> "BertModel":
    """The text network with these weights, without the pooler that no sentence vector needs."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=30522,
        hidden_size=SENTENCE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * SENTENCE,
        hidden_dropout_prob=dropout,
        # Torch draws numbers one by one, which takes a tenth of a step; and its faster attention
        # is slower on the way back.
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    network = BertModel(config, add_pooling_layer=False)
    own = {n: torch.from_numpy(w) for n, w in weights.items() if not n.startswith("pooler.")}
    network.load_state_dict(own, strict=False)
    return network


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
