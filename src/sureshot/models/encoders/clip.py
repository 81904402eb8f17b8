"""CLIP, SigLIP and SigLIP2: the dual encoders of transformers, from the hub or from a folder.

Weights come from safetensors only, texts are cut by ``tokenizer.json`` and frames prepared by our
own `Preprocessing`: a checkpoint is three plain files and a config, and nothing in it can run.
NaFlex checkpoints (model type ``siglip2``) read frames of any shape and are refused; the SigLIP2
checkpoints of a fixed size have the model type ``siglip`` and are welcome.
"""

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32, UInt8
from safetensors import SafetensorError

from sureshot.media.size import FrameSize
from sureshot.models.encoders.pixels import Family, Preprocessing
from sureshot.models.encoders.protocol import FrameFeatures, TextFeatures
from sureshot.models.encoders.snapshot import CONFIG, Snapshot, find_snapshot, first_line
from sureshot.models.encoders.subwords import Cutter
from sureshot.places import expand, is_folder_at

if TYPE_CHECKING:
    import torch

# Part of every fingerprint; change it when the vectors of a checkpoint change. The first version
# looked at frames that an area filter had shrunk before, up to 24 grey levels from CLIP's own.
_VERSION, _FIRST_VERSION = "clip-2", "clip-1"
_FRAMES, _TEXTS = 32, 128  # a batch
_OTHER = "Give a CLIP, SigLIP or fixed-size SigLIP2, such as google/siglip2-base-patch16-224."
_WHOLE = "Copy or download the folder again, whole."
_MULTILINGUAL = 100_000  # tokens: English networks know up to 50,000, the others from 250,000 on
_NO_END = 2  # CLIP's config before 2023 names this end token; the largest is then taken for the end


class ClipEncoder:
    """Any CLIP, SigLIP or fixed-size SigLIP2 checkpoint; use `load`.

    The folder is checked when the encoder is made; its weights are read at the first text or frame.

    Args:
        snapshot: the folder.
        name: what a user types to get this encoder again.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        version: way of preparing frames; see `earlier`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        name: str,
        device: str | None = None,
        *,
        version: str = _VERSION,
    ) -> None:
        from sureshot.models.encoders.device import device_for

        self.name = name
        self._snapshot = snapshot
        self._family: Family = _family(snapshot)
        snapshot.weights()
        text, vision, shared = _sizes(snapshot, self._family)
        self.dim: int = shared
        self.channels: int = vision.hidden_size
        self._preprocessing = Preprocessing.read(snapshot, self._family, vision.image_size)
        self.side: int = self._preprocessing.side
        self._version = version
        self.frame_size: FrameSize = self._preprocessing.resize
        if version == _FIRST_VERSION:
            self.frame_size = self._preprocessing.shorter
        self.latin_only: bool = text.vocab_size < _MULTILINGUAL
        self.vocabulary: frozenset[str] | None = None
        end = text.eos_token_id
        searched = self._family == "clip" and isinstance(end, int) and end != _NO_END
        self._cutter = Cutter(
            snapshot,
            longest=text.max_position_embeddings,
            vocabulary=text.vocab_size,
            fill=self._family == "siglip",
            end=end if searched else None,
        )
        self.device = device_for(device)

    @classmethod
    def load(cls, name: str, device: str | None = None) -> "ClipEncoder":
        """The encoder in a local folder or behind a hub id, which is downloaded the first time.

        Args:
            name: path of a folder, or an id such as ``openai/clip-vit-base-patch32``.
            device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

        Raises:
            ModelError: no such model, the hub cannot be reached, the folder is damaged or holds
                something else, or the device cannot be used; one sentence and what to do.
        """
        snapshot = find_snapshot(name)
        is_folder = is_folder_at(expand(name))
        return cls(snapshot, str(snapshot.folder) if is_folder else name, device)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of weights, config, tokenizer and preprocessing; moving the folder keeps it."""
        return self._snapshot.fingerprint(self._version)

    def earlier(self) -> "ClipEncoder":
        """The same network with frames as before, for the models that were trained on those."""
        return ClipEncoder(self._snapshot, self.name, self.device, version=_FIRST_VERSION)

    def limit_words(self, longest: int) -> None:
        """Read no more than so many tokens of a text from now on, special ones included.

        The fingerprint stays as it is, so nothing that is encoded after this may be kept under it.
        """
        self._cutter.limit(longest)

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; what lies beyond the 77 (SigLIP: 64) tokens it reads is dropped and told.

        ``sentence`` is the library's ``get_text_features`` at unit length. ``words`` are the final
        states of all real tokens, special ones included, through the same projection.

        Raises:
            ModelError: the weights do not fit the config, or the tokenizer the network.
        """
        import torch

        cut = self._cutter.cut(texts)
        sentences, states, lengths = [], [], []
        with torch.inference_mode():
            for first in range(0, len(texts), _TEXTS):
                ids = torch.from_numpy(cut.ids[first : first + _TEXTS]).to(self.device)
                sentence, state = self._read_texts(ids)
                sentences.append(torch.nn.functional.normalize(sentence, dim=-1).cpu())
                states.append(state.cpu())
                lengths.append(sentence.norm(dim=-1).cpu())
        counts = cut.mask.sum(1)
        mask = np.arange(counts.max()) < counts[:, None]
        words = np.zeros((*mask.shape, self.dim), np.float32)
        words[mask] = torch.cat(states).numpy()[cut.mask]
        return TextFeatures(
            sentence=torch.cat(sentences).numpy(),
            words=words,
            mask=mask,
            truncated=cut.truncated,
            length=torch.cat(lengths).numpy(),
        )

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each word token, see `sureshot.models.encoders.token_words`."""
        return self._cutter.words_of(texts)

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> Float32[np.ndarray, "frames 3 side side"]:
        """Resize, crop and normalise as the checkpoint asks; does not need the weights."""
        return self._preprocessing.apply(frames)

    def encode_frames(self, prepared: Float32[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        """Encode prepared frames, 32 at a time; none gives none.

        ``frames`` is the library's ``get_image_features`` as it comes, not at unit length. With
        CLIP, ``patches`` are the patch tokens through the same norm and projection, and
        ``backbone`` is what was projected. SigLIP pools by attention and projects nothing:
        ``patches`` are its normed patch tokens, and ``backbone`` equals ``frames``.

        Raises:
            ModelError: the weights do not fit the config.
        """
        import torch

        parts: list[tuple[torch.Tensor, ...]] = []
        with torch.inference_mode():
            for first in range(0, max(len(prepared), 1), _FRAMES):
                batch = np.require(prepared[first : first + _FRAMES], requirements=["C", "W"])
                if not len(batch):  # the networks of transformers cannot count in an empty batch
                    side = self._preprocessing.side
                    batch = np.zeros((1, 3, side, side), np.float32)
                read = self._read_frames(torch.from_numpy(batch).to(self.device))
                parts.append(tuple(part[: len(prepared)].cpu() for part in read))
        frames, patches, backbone = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
        return FrameFeatures(frames=frames, patches=patches, backbone=backbone)

    def text_weights(self) -> "dict[str, torch.Tensor]":
        """Weights of CLIP's text network by their names within it; none of a SigLIP."""
        if self._family == "siglip":
            return {}
        weights: dict[str, torch.Tensor] = self._model.text_model.state_dict()
        return weights

    def _read_texts(self, ids: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
        """Sentence and word vectors. No attention mask: CLIP looks back only, SigLIP has none."""
        model = self._model
        out = model.text_model(input_ids=ids)
        if self._family == "siglip":
            return out.pooler_output, model.text_model.head(out.last_hidden_state)
        project = model.text_projection
        return project(out.pooler_output), project(out.last_hidden_state)

    def _read_frames(
        self, batch: "torch.Tensor"
    ) -> tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]:
        """Frame, patch and backbone vectors."""
        model = self._model
        out = model.vision_model(pixel_values=batch)
        pooled = out.pooler_output
        if self._family == "siglip":
            return pooled, out.last_hidden_state, pooled
        cells = model.vision_model.post_layernorm(out.last_hidden_state[:, 1:])
        return model.visual_projection(pooled), model.visual_projection(cells), pooled

    @cached_property
    def _model(self) -> Any:
        return _read_model(self._snapshot, self._family).to(self.device)


def _family(snapshot: Snapshot) -> Family:
    """Which network the folder holds, by its own word."""
    snapshot.require(CONFIG, _OTHER)
    match snapshot.settings(CONFIG).get("model_type"):
        case "clip":
            return "clip"
        case "siglip":
            return "siglip"
        case "siglip2":
            reason = "it is a NaFlex SigLIP2 (model type siglip2), which reads frames of any shape"
        case other:
            reason = f"its model type is {other}, not one of texts and images"
    raise snapshot.refuse(reason, _OTHER)


def _sizes(snapshot: Snapshot, family: Family) -> tuple[Any, Any, int]:
    """Settings of the text and the vision network, and the size of the space they share."""
    from huggingface_hub.errors import StrictDataclassError
    from transformers import CLIPConfig, SiglipConfig

    kind = CLIPConfig if family == "clip" else SiglipConfig
    fix = f"Restore the {CONFIG} the model came with."
    try:
        config = kind.from_pretrained(snapshot.folder, local_files_only=True)
    except (AttributeError, OSError, StrictDataclassError, TypeError, ValueError) as error:
        reason = f"{CONFIG} is not sound ({' '.join(str(error).split())})"
        raise snapshot.refuse(reason, fix) from None
    text, vision = config.text_config, config.vision_config
    if not isinstance(vision.image_size, int):
        raise snapshot.refuse(f"its frames are not square ({vision.image_size})", _OTHER)
    if family == "clip":
        return text, vision, config.projection_dim
    if not vision.vision_use_head or text.projection_size != vision.hidden_size:
        raise snapshot.refuse("its texts and frames share no space", _OTHER)
    return text, vision, text.projection_size


def _read_model(snapshot: Snapshot, family: Family) -> Any:
    """The network with all of its weights, in single precision, ready to read."""
    import torch
    from transformers import CLIPModel, SiglipModel

    from sureshot.models.weights import check_finite

    kind = CLIPModel if family == "clip" else SiglipModel
    try:
        with _silence():
            model, report = kind.from_pretrained(
                snapshot.folder,
                dtype=torch.float32,  # the default is the file's own, often half precision
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported, and refused below with our own words
            )
    except (KeyError, OSError, RuntimeError, SafetensorError, ValueError) as error:
        raise snapshot.refuse(f"it cannot be read ({first_line(error)})", _WHOLE) from None
    odd = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if odd:
        reason = f"weights are missing or of another size than {CONFIG} says ({_some(odd)})"
        raise snapshot.refuse(reason, _WHOLE)
    check_finite(model, str(snapshot.folder))
    return model.eval()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the progress bar and load report of transformers off the user's terminal."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more
