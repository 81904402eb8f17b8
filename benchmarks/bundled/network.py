r"""What of the bundled model is trained, as torch modules.

.. math:: t = n(W_t \sqrt{384}\, s + b_t), \qquad f = n(W_f\, l(b) + L\, p + b_f),
   \qquad p = \mathrm{softmax}(C b / T), \qquad L = 380\, W_l E

with s the unit sentence vector of MiniLM, its upper layers tuned; b the mean of the last feature
map of EfficientNet-Lite2, its blocks and head tuned; C its classifier, E the sentence vectors of
the names of the 1000 classes less their mean, both left as they are; l a layer norm without weights
and n unit length. So a frame begins near the sentences that name what the classifier
believes to see; 380 brings that to the size of l(b). A video is the mean of its frames.
`sureshot.models.encoders.bundled` is the same in numpy.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Float16
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.bundled.states import State, grouped
from sureshot.models.encoders.bundled import (
    DIM,
    TEMPERATURE,
    BridgeEncoder,
    Head,
    image_network,
    text_folder,
)
from sureshot.models.encoders.efficientnet import CHANNELS, MIDDLE, SCALE
from sureshot.models.encoders.efficientnet_torch import EfficientNetLite2, InvertedBottleneck
from sureshot.models.encoders.minilm import DIM as SENTENCE
from sureshot.models.encoders.minilm import LAYERS
from sureshot.research.training.encoder_tuning import new_minilm, pad

_SCALE = 380.0
_DROPOUT, _LOGIT_SCALE = 0.3, 20.0
_TUNED_SCALE = 24.5  # about what trainings end with; it does not ship
_DROPOUT_OF_STATES = 0.1  # in the layers of the text network
_TOKENS = 48  # of a caption that is trained on
_PARTS = 4  # a batch of texts is cut by length, so that little is computed on padding
_CPU = Path("/proc/cpuinfo")
# Without such numbers in the processor they take three times as long as those of 32 bits.
HALF = _CPU.exists() and "avx512_bf16" in _CPU.read_text(encoding="utf-8")


class Network(nn.Module):
    """Texts and frames in, unit vectors of one space out.

    Args:
        layers: of the text network the upper ones are tuned, so many of six.
        block: of the image network the first that is tuned, of 21; 0 reads frames.
    """

    named: Tensor

    def __init__(self, layers: int, block: int) -> None:
        super().__init__()
        self._block, self._below = block, LAYERS - layers
        self.bert = new_minilm(load_file(text_folder() / "model.safetensors"), _DROPOUT_OF_STATES)
        self.image = EfficientNetLite2.of(image_network())
        self.text, self.frame = nn.Linear(SENTENCE, DIM), nn.Linear(CHANNELS, DIM)
        self.label = nn.Linear(SENTENCE, DIM, bias=False)
        self.register_buffer("named", class_inputs(), persistent=False)
        self.log_scale = nn.Parameter(torch.tensor(_LOGIT_SCALE).log())
        self.dropout = nn.Dropout(_DROPOUT)
        self.requires_grad_(False)
        for part in (*self.maps(), *self.tuned()):
            part.requires_grad_(True)
        # Learning filters of single channels costs more than all else of a step together.
        for part in self.image.blocks:
            assert isinstance(part, InvertedBottleneck)
            part.filter.requires_grad_(False)
        self.log_scale.requires_grad_(True)
        self._tokenizer = Tokenizer.from_file(str(text_folder() / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_TOKENS)
        self._begun: dict[str, Tensor] = {}

    def train(self, mode: bool = True) -> "Network":
        """Train what is tuned; layers below it are never in training, so that nothing drops out."""
        super().train(mode)
        self.bert.embeddings.eval()
        for layer in self.bert.encoder.layer[: self._below]:
            layer.eval()
        return self

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.log_scale.device

    def load(self, head: Head) -> None:
        """Take what ships, or was kept in that form."""
        classes = torch.linalg.pinv(self.named.double().cpu())
        own = {"label.weight": torch.from_numpy(head["frame.labels"]).double() @ classes.T}
        for name, weight in head.items():
            if name != "frame.labels":
                renamed = name.replace("text.network.", "bert.").replace("frame.network.", "image.")
                own[renamed] = torch.from_numpy(weight)
        unknown = self.load_state_dict(own, strict=False).unexpected_keys
        assert not unknown, unknown
        with torch.no_grad():
            self.log_scale.fill_(_TUNED_SCALE).log_()

    def trained(self) -> dict[str, Tensor]:
        """All weights that are trained, by name."""
        return {n: w.detach() for n, w in self.named_parameters() if w.requires_grad}

    def restart_maps(self, seed: int) -> None:
        """Draw the maps anew."""
        torch.manual_seed(seed)
        for part in (self.text, self.frame, self.label):
            part.reset_parameters()
        with torch.no_grad():
            self.log_scale.fill_(_LOGIT_SCALE).log_()

    def maps(self) -> list[nn.Module]:
        """The linear maps, which start at random."""
        return [self.text, self.frame, self.label]

    def tuned(self) -> list[nn.Module]:
        """What starts from the packages: layers of the text network, then of the image network."""
        return [*self.tuned_text(), *self.tuned_image()]

    def tuned_text(self) -> list[nn.Module]:
        """The tuned layers of the text network."""
        return [*self.bert.encoder.layer[self._below :]]

    def tuned_image(self) -> list[nn.Module]:
        """The tuned blocks of the image network and its last convolution."""
        return [*list(self.image.blocks)[self._block :], self.image.head]

    def texts(self, texts: Sequence[str]) -> Float[Tensor, "n dim"]:
        """Vectors of texts."""
        return self.read(self.sentences(texts))

    def read(self, sentences: Float[Tensor, "n 384"]) -> Float[Tensor, "n dim"]:
        """Unit sentence vectors in the joint space."""
        inputs = self.dropout(sentences * SENTENCE**0.5)
        return functional.normalize(self.text(inputs), dim=-1)

    def sentences(self, texts: Sequence[str]) -> Float[Tensor, "n 384"]:
        """Unit sentence vectors, which the map of texts reads."""
        with self._halved():
            begun = self.begun(texts)
            parts = _by_length(begun)
            found = torch.cat([self._sentences([begun[row] for row in part]) for part in parts])
        return found[torch.tensor([row for part in parts for row in part]).argsort()]

    def tokens(self, texts: Sequence[str]) -> list[Tensor]:
        """Numbers of the tokens of each text."""
        found = self._tokenizer.encode_batch(list(texts))
        return [torch.tensor(one.ids, device=self.device) for one in found]

    def begun(self, texts: Sequence[str]) -> list[Float16[Tensor, "tokens 384"]]:
        """What enters the first tuned layer for each text; computed once for each, and kept."""
        new = [text for text in dict.fromkeys(texts) if text not in self._begun]
        ids = self.tokens(new)
        with torch.no_grad():
            for part in _by_length(ids):
                states, mask = pad([ids[row] for row in part])
                states = self.bert.embeddings(states)
                for layer in self.bert.encoder.layer[: self._below]:
                    states = layer(states, mask)
                for row, state in zip(part, states, strict=True):
                    self._begun[new[row]] = state[: len(ids[row])].half().clone()
        return [self._begun[text] for text in texts]

    def forget(self) -> None:
        """Drop what was kept of texts, which grows with every one."""
        self._begun.clear()

    def _sentences(self, begun: list[Float16[Tensor, "tokens 384"]]) -> Float[Tensor, "n 384"]:
        states, mask = pad(begun)
        states = states.float()
        for layer in self.bert.encoder.layer[self._below :]:
            states = layer(states, mask)
        # A mean over the words but for its length, which the unit length takes away.
        return functional.normalize(
            (states.float() * (mask[:, 0, 0] == 0)[..., None]).sum(1), dim=-1
        )

    def frames(self, states: Sequence[State]) -> Float[Tensor, "n dim"]:
        """Vectors of frames, from what enters the first tuned block."""
        return self.see(*self.inputs(states))

    def see(
        self, looks: Float[Tensor, "n 1280"], names: Float[Tensor, "n 384"]
    ) -> Float[Tensor, "n dim"]:
        """What `inputs` gives, in the joint space."""
        found = self.frame(self.dropout(looks)) + self.label(self.dropout(names))
        return functional.normalize(found, dim=-1)

    def inputs(
        self, states: Sequence[State]
    ) -> tuple[Float[Tensor, "n 1280"], Float[Tensor, "n 384"]]:
        """What the maps of frames read: how they look, and the names of what is believed there."""
        rows, pooled = [], []
        # Around all groups, so that weights are made half once.
        with self._halved():
            for same, batch in grouped(states):
                batch = batch.to(self.device).contiguous(memory_format=torch.channels_last)
                if self._block == 0:
                    batch = self.image.lower((batch - MIDDLE) * SCALE, 0)
                rows += same
                pooled.append(self.image.upper(batch, self._block).float().mean((-2, -1)))
        features = torch.cat(pooled)[torch.tensor(rows).argsort()]
        believed = torch.softmax(self.image.classify(features) / TEMPERATURE, dim=-1)
        return functional.layer_norm(features, features.shape[-1:]), believed @ self.named

    def _halved(self) -> torch.autocast:
        """Numbers of 16 bits in training, where they are faster."""
        kind = self.device.type
        return torch.autocast(kind, torch.bfloat16, self.training and (HALF or kind != "cpu"))

    def labels(self) -> Float[Tensor, "dim classes"]:
        """The L of the equation, which ships in place of its factors."""
        return self.label.weight @ self.named.T


def _by_length(rows: Sequence[Tensor]) -> list[list[int]]:
    """Row numbers in a few parts of like length."""
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    size = max(1, -(-len(order) // _PARTS))
    return [order[i : i + size] for i in range(0, len(order), size)]


def class_inputs() -> Float[Tensor, "classes 384"]:
    """What the belief in each class adds, before its map: its name's vector, centred, times 380."""
    vectors = torch.from_numpy(BridgeEncoder().class_vectors)
    return _SCALE * (vectors - vectors.mean(0))
