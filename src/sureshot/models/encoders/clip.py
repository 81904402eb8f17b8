"""CLIP, SigLIP and SigLIP2: the dual encoders of transformers, from the hub or from a folder.

A checkpoint is three plain files and a config, and nothing in it can run: weights come from
safetensors only, and texts are cut by ``tokenizer.json``. Frames are prepared by `Preprocessing`:
without torchvision the image processors of transformers resize by Pillow, which takes seven times
as long for an HD frame, and pixels of ours are within two of 256 levels of theirs (LOG.md). NaFlex
checkpoints (model type ``siglip2``) read frames of any shape and are refused; the SigLIP2
checkpoints of a fixed size have the model type ``siglip`` and work.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import tokenizers
from jaxtyping import Bool, Float, Float32, Int64, UInt8
from safetensors import SafetensorError, safe_open

from sureshot.errors import ModelError, first_line
from sureshot.files import file_digest
from sureshot.media.signature import FrameSize
from sureshot.models import huggingface
from sureshot.models.encoders.base import (
    FrameFeatures,
    Images,
    TextFeatures,
    Vocabulary,
    padded,
    read_in_batches,
    token_words,
)
from sureshot.models.huggingface import INDEX, WEIGHTS
from sureshot.paths import expand, is_folder_at
from sureshot.settings import read_json
from sureshot.text import encodable, listed

if TYPE_CHECKING:
    import torch

CONFIG, IMAGES, PROCESSOR, TOKENIZER, TOKENIZER_SETTINGS = huggingface.SETTINGS
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_LONGEST = 200  # characters of a name that a message repeats
_AGAIN = "Copy or download the folder again, whole."
_OTHER = "Give a CLIP, SigLIP or fixed-size SigLIP2, such as google/siglip2-base-patch16-224."
_MATCH = f"Put the {TOKENIZER} of the same checkpoint next to its weights."

_VERSION = "clip-2"  # part of every fingerprint; change it when the vectors of a checkpoint change
_FRAMES, _TEXTS = 32, 128  # a batch
MULTILINGUAL = 100_000  # tokens: English networks know up to 50,000, the others from 250,000 on
_NO_END = 2  # CLIP's config before 2023 names this end token; the largest is then taken for the end

Family = Literal["clip", "siglip"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The folder of one version of a model's files."""

    folder: Path

    def settings(self, name: str) -> dict[str, Any]:
        """The settings in a JSON file of the folder; none where it is absent."""
        try:
            found = read_json(self.folder / name)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self.refuse(f"{name} cannot be read ({first_line(error)})", _AGAIN) from None
        if not isinstance(found, dict):
            raise self.refuse(f"{name} holds no settings", _AGAIN)
        return found

    def require(self, name: str, fix: str) -> Path:
        """Path of a file that must be there."""
        path = self.folder / name
        if not path.is_file():
            raise self.refuse(f"{name} is missing", fix)
        return path

    def weights(self) -> list[Path]:
        """The safetensors files, each with a sound header and of the length it announces."""
        files = [self.folder / name for name in self._weight_names()]
        if not files:
            if any(any(self.folder.glob(pattern)) for pattern in _PICKLES):
                reason = "its weights are pickled, and a pickle can run code"
                raise self.refuse(reason, huggingface.how_to_convert(self.folder))
            raise self.refuse(f"{WEIGHTS} is missing", _AGAIN)
        for file in files:
            try:
                with safe_open(file, framework="numpy"):
                    pass
            except (OSError, SafetensorError) as error:
                reason = f"{file.name} cannot be read ({first_line(error)})"
                raise self.refuse(reason, _AGAIN) from None
        return files

    def fingerprint(self, version: str) -> str:
        """Hex digest of weights, settings and the version of the code that reads them."""
        present = [self.folder / name for name in (*huggingface.SETTINGS, INDEX)]
        files = [path for path in present if path.is_file()] + self.weights()
        lines = [version, *(f"{path.name} {file_digest(path)}" for path in files)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def network(self, kind: Any, **options: Any) -> Any:
        """The network, of a class of transformers, with all its weights in single precision."""
        import torch

        from sureshot.models.weights import check_finite

        try:
            with silence():
                model, report = kind.from_pretrained(
                    self.folder,
                    dtype=torch.float32,  # the default is the file's own, often half precision
                    use_safetensors=True,
                    local_files_only=True,
                    output_loading_info=True,
                    ignore_mismatched_sizes=True,  # reported, and refused below with our own words
                    **options,
                )
        except (KeyError, OSError, RuntimeError, SafetensorError, ValueError) as error:
            raise self.refuse(f"it cannot be read ({first_line(error)})", _AGAIN) from None
        odd = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
        if odd:
            some = listed(odd, 2)
            reason = f"weights are missing or of another size than {CONFIG} says ({some})"
            raise self.refuse(reason, _AGAIN)
        check_finite(model, str(self.folder))
        return model.eval()

    def complete(self) -> bool:
        """Whether nothing is missing that a hub model has; a folder of one's own may have less."""
        needed = (CONFIG, TOKENIZER, *(self._weight_names() or [WEIGHTS]))
        present = all((self.folder / name).is_file() for name in needed)
        return present and any((self.folder / name).is_file() for name in (IMAGES, PROCESSOR))

    def refuse(self, reason: str, fix: str) -> ModelError:
        """The error that says why this folder cannot be used, and what to do."""
        return ModelError(f"Could not load the model in {self.folder}: {reason}. {fix}")

    def _weight_names(self) -> list[str]:
        if (self.folder / WEIGHTS).is_file():
            return [WEIGHTS]
        if not (self.folder / INDEX).is_file():
            return []
        shards = self.settings(INDEX).get("weight_map")
        if not isinstance(shards, dict):
            raise self.refuse(f"{INDEX} names no files", _AGAIN)
        return sorted({str(shard) for shard in shards.values()})


def find_snapshot(name: str) -> Snapshot:
    """The files behind a folder's path or a hub id, downloaded where they are nowhere yet."""
    path = expand(name)
    if is_folder_at(path):
        return Snapshot(path.absolute())
    if not huggingface.is_hub_name(name):
        raise ModelError(
            f"Could not load model '{name[:_LONGEST]}': it is neither a folder nor the name of "
            "a model on the hub, such as openai/clip-vit-base-patch32."
        )
    folder = huggingface.cached(name, lambda folder: Snapshot(folder).complete())
    return Snapshot(folder or huggingface.download(name))


_FILTERS: Mapping[object, Literal["bilinear", "bicubic"]] = {2: "bilinear", 3: "bicubic"}
_SLIVER = 32  # times as long as wide: more of a frame is not worth the memory
_FIX = "Give a checkpoint that resizes or crops every frame to the square its network reads."


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What happens to a frame before a network reads it.

    Frames larger than the square that comes out are cropped around its centre, smaller ones are
    surrounded by black.
    """

    side: int  # of the square, in pixels
    resize_to: int | tuple[int, int] | None  # the shorter side or (height, width), in pixels
    method: Literal["bilinear", "bicubic"]
    values: Float[np.ndarray, "3 256"]  # of each level of a byte, for red, green and blue

    @classmethod
    def read(cls, snapshot: Snapshot, family: Family, side: int) -> "Preprocessing":
        """What a model's folder asks for, with the defaults of its family where it says nothing."""
        nested = snapshot.settings(PROCESSOR).get("image_processor")
        given = nested if isinstance(nested, dict) else snapshot.settings(IMAGES)
        asked = _defaults(family, side) | {k: v for k, v in given.items() if v is not None}
        resize = _size(asked["size"]) if asked["do_resize"] else None
        if asked["do_resize"] and (resize is None or asked["resample"] not in _FILTERS):
            how = f"size {asked['size']} and resample {asked['resample']}"
            raise snapshot.refuse(f"its frames are resized in a way unknown here ({how})", _FIX)
        crop = _size(asked.get("crop_size")) if asked["do_center_crop"] else resize
        if crop not in (side, (side, side)) or (crop == side and not asked["do_center_crop"]):
            reason = f"its network reads squares of {side} pixels, its preprocessing gives {crop}"
            raise snapshot.refuse(reason, _FIX)
        try:
            values = _values(asked)
        except (TypeError, ValueError):
            reason = "its frames are normalised by something not a number"
            fix = f"Correct image_mean, image_std and rescale_factor in {IMAGES}."
            raise snapshot.refuse(reason, fix) from None
        method = _FILTERS.get(asked["resample"], "bicubic")
        return cls(side=side, resize_to=resize, method=method, values=values)

    def apply(self, frames: Images) -> Float[np.ndarray, "frames 3 side side"]:
        """Frames of one size as the network reads them."""
        frames = self._resized(frames)
        (top, to_top), (left, to_left) = (_window(n, self.side) for n in frames.shape[1:3])
        square = np.zeros((len(frames), 3, self.side, self.side), np.uint8)
        square[:, :, to_top, to_left] = frames[:, top, left].transpose(0, 3, 1, 2)
        return self.values[np.arange(3)[:, None, None], square]

    def resize(self, frame: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "height width 3"]:
        """The first step of `apply`; of a sliver only the middle is kept, as `apply` crops it."""
        most = _SLIVER * min(frame.shape[:2])
        if isinstance(self.resize_to, int) and max(frame.shape[:2]) > most:
            # As odd or even as before, so that the middle stays the middle.
            kept = (min(length, most - (length - most) % 2) for length in frame.shape[:2])
            rows, columns = map(_window, frame.shape[:2], kept)
            frame = frame[rows[0], columns[0]]
        return self._resized(frame[None])[0]

    def _resized(self, frames: UInt8[np.ndarray, "frames h w 3"]) -> Images:
        """Frames in the size that they have before they are cropped."""
        import torch

        size = target = frames.shape[1:3]
        if isinstance(self.resize_to, tuple):
            target = self.resize_to
        elif self.resize_to is not None:
            # The longer side is cut to whole pixels, never rounded up.
            target = tuple(self.resize_to * length // min(size) for length in size)
        if target == size:
            return frames
        # Torch warns about memory that cannot be written and refuses negative strides. The colours
        # of a pixel stay together, which is several times as fast as a plane for each.
        pixels = torch.from_numpy(np.require(frames, requirements=["C", "W"])).permute(0, 3, 1, 2)
        resized = torch.nn.functional.interpolate(
            pixels, size=target, mode=self.method, antialias=True, align_corners=False
        )
        return resized.permute(0, 2, 3, 1).numpy()


def _defaults(family: Family, side: int) -> dict[str, Any]:
    """What the image processor of a family does by default, at the size its network reads."""
    switches = {"do_resize": True, "do_rescale": True, "do_normalize": True}
    known: dict[str, Any] = switches | {"resample": 3, "rescale_factor": 1 / 255}
    if family == "siglip":
        square = {"size": {"height": side, "width": side}, "do_center_crop": False}
        return known | square | {"image_mean": 0.5, "image_std": 0.5}
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    crop = {"size": side, "do_center_crop": True, "crop_size": side}
    return known | crop | {"image_mean": mean, "image_std": std}


def _size(given: object) -> int | tuple[int, int] | None:
    """A shorter side or a (height, width); None where it is written in neither way."""
    match given:
        case int() if not isinstance(given, bool):
            return given
        case {"shortest_edge": int(short), **others} if not any(others.values()):
            return short
        case {"height": int(height), "width": int(width)}:
            return height, width
    return None


def _values(settings: Mapping[str, Any]) -> Float[np.ndarray, "3 256"]:
    """Rescaling and normalising of every level, in the precision and order of the library."""
    levels = np.arange(256, dtype=np.float64)
    if settings["do_rescale"]:
        levels = levels * float(settings["rescale_factor"])
    values = np.tile(levels.astype(np.float32), (3, 1))
    if settings["do_normalize"]:
        given = (np.asarray(settings[name], np.float32) for name in ("image_mean", "image_std"))
        mean, std = (np.broadcast_to(numbers, 3)[:, None] for numbers in given)
        values = (values - mean) / std
    return values


def _window(length: int, side: int) -> tuple[slice, slice]:
    """Which pixels of a line to keep, and where they go in a line of ``side`` pixels."""
    start, kept = (length - side) // 2, min(length, side)
    source, target = max(start, 0), max(-start, 0)
    return slice(source, source + kept), slice(target, target + kept)


class TokenIds(NamedTuple):
    """Texts as rows of token ids; special tokens are real, padding is not."""

    ids: Int64[np.ndarray, "texts words"]
    mask: Bool[np.ndarray, "texts words"]
    truncated: Bool[np.ndarray, " texts"]


class Tokenizer:
    """Texts to token ids, by the ``tokenizer.json`` of a model's folder.

    Args:
        longest: tokens the network reads at most, special tokens included.
        fill: pad every text to ``longest``, for networks that read the padding too.
        end: token that must close every text, because the network looks for it.

    Differs:
        Where the settings ask for lower case and the tokenizer does not see to it, it is done here.
        SigLIP2 was trained on lower case; transformers 5 lowers it for the NaFlex checkpoints only.
        Its AutoTokenizer is not used, since it reads a SigLIP with sentencepiece alone.
    """

    def __init__(
        self, snapshot: Snapshot, *, longest: int, vocabulary: int, fill: bool, end: int | None
    ) -> None:
        write = (
            'Write it once: python -c "from transformers import AutoTokenizer as T; '
            f"T.from_pretrained('{snapshot.folder}').save_pretrained('{snapshot.folder}')\""
        )
        path = snapshot.require(TOKENIZER, write)
        settings = snapshot.settings(TOKENIZER_SETTINGS)
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises no narrower one
            reason = f"{TOKENIZER} cannot be read ({first_line(error)})"
            raise snapshot.refuse(reason, _MATCH) from None
        normal = tokenizer.normalizer
        if settings.get("do_lower_case") and (not normal or "A" in normal.normalize_str("A")):
            lower = tokenizers.normalizers.Lowercase()
            steps = [lower, normal] if normal else [lower]
            tokenizer.normalizer = tokenizers.normalizers.Sequence(steps)
        padding = settings.get("pad_token")
        padding = padding.get("content") if isinstance(padding, dict) else padding
        pad = tokenizer.token_to_id(padding) if isinstance(padding, str) else None
        if pad is None and fill:
            fix = f"Add the pad_token the model was trained with to {TOKENIZER_SETTINGS}."
            raise snapshot.refuse("its padding is unknown, and the network reads it", fix)
        self._pad, self._fill = pad or 0, fill
        self._side = "left" if settings.get("padding_side") == "left" else "right"
        self._tokenizer, self._snapshot = tokenizer, snapshot
        self._vocabulary, self._end = vocabulary, end
        allowed = settings.get("model_max_length")
        self._longest = longest
        self.limit(int(allowed) if isinstance(allowed, int | float) else longest)

    def limit(self, longest: int) -> None:
        """Read no more than so many tokens of a text from now on, special ones included.

        The fingerprint of the encoder stays, so nothing that is encoded after this may be kept
        under it.
        """
        self._longest = min(self._longest, longest)
        self._tokenizer.enable_truncation(self._longest)
        length = self._longest if self._fill else None
        self._tokenizer.enable_padding(direction=self._side, pad_id=self._pad, length=length)

    def encode(self, texts: Sequence[str]) -> TokenIds:
        """Ids of the tokens of texts; at least one text."""
        found = self._tokenizer.encode_batch([*map(encodable, texts)])
        ids = np.array([text.ids for text in found], np.int64)
        if ids.max() >= self._vocabulary:
            reason = f"{TOKENIZER} gives token {ids.max()}, the network knows {self._vocabulary}"
            raise self._snapshot.refuse(reason, _MATCH)
        if self._end is not None and not (ids == self._end).any(axis=1).all():
            reason = f"{TOKENIZER} does not end a text with token {self._end}"
            raise self._snapshot.refuse(reason, _MATCH)
        return TokenIds(
            ids=ids,
            mask=np.array([text.attention_mask for text in found], bool),
            truncated=np.array([bool(text.overflowing) for text in found]),
        )

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each token that is not padding."""
        words = []
        tokens = self._tokenizer.encode_batch([*map(encodable, texts)])
        for text, found in zip(texts, tokens, strict=True):
            words.append(tuple(compress(token_words(text, found), found.attention_mask)))
        return words


class ClipEncoder:
    """Any CLIP, SigLIP or fixed-size SigLIP2 checkpoint; use `load`.

    The folder is checked when the encoder is made; its weights are read at the first text or frame.
    """

    def __init__(self, snapshot: Snapshot, name: str, device: str | None = None) -> None:
        from sureshot.models.weights import device_for

        self.name = name
        self.snapshot = snapshot
        self._family: Family = _family(snapshot)
        snapshot.weights()
        text, vision, shared = _sizes(snapshot, self._family)
        self.dim: int = shared
        self.channels: int = vision.hidden_size
        how = Preprocessing.read(snapshot, self._family, vision.image_size)
        self._preprocessing, self.side = how, how.side
        self.frame_size: FrameSize = how.resize
        self.resizing = f"{how.side} {how.resize_to} {how.method}"  # tells frames of others apart
        self.latin_only: bool = text.vocab_size < MULTILINGUAL
        self.vocabulary: Vocabulary | None = None
        end = text.eos_token_id
        searched = self._family == "clip" and isinstance(end, int) and end != _NO_END
        self.tokenizer = Tokenizer(
            snapshot,
            longest=text.max_position_embeddings,
            vocabulary=text.vocab_size,
            fill=self._family == "siglip",
            end=end if searched else None,
        )
        self.words_of = self.tokenizer.words_of
        self.device = device_for(device)

    @classmethod
    def load(cls, name: str, device: str | None = None) -> "ClipEncoder":
        """The encoder in a local folder or behind a hub id, which is downloaded the first time."""
        snapshot = find_snapshot(name)
        is_folder = is_folder_at(expand(name))
        return cls(snapshot, str(snapshot.folder) if is_folder else name, device)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of weights, config, tokenizer and preprocessing; moving the folder keeps it."""
        return self.snapshot.fingerprint(_VERSION)

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts; tokens after the 77th (SigLIP: 64th) are dropped and marked as truncated.

        ``sentence`` is the library's ``get_text_features`` at unit length. ``words`` are the final
        states of all real tokens, special ones included, through the same projection.
        """
        import torch

        cut = self.tokenizer.encode(texts)
        found, states = read_in_batches(self.read_texts, _TEXTS, self.device, cut.ids)
        words, mask = padded([s[real] for s, real in zip(states, cut.mask, strict=True)])
        sentences = torch.from_numpy(found)
        return TextFeatures(
            sentence=torch.nn.functional.normalize(sentences, dim=-1).numpy(),
            words=words,
            mask=mask,
            truncated=cut.truncated,
            length=sentences.norm(dim=-1).numpy(),
        )

    def prepare(self, frames: Images) -> Float32[np.ndarray, "frames 3 side side"]:
        """Resize, crop and normalise as the checkpoint asks; does not need the weights."""
        return self._preprocessing.apply(frames)

    def encode_frames(self, prepared: Float32[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        """Encode prepared frames, 32 at a time; none gives none.

        ``frames`` is the library's ``get_image_features`` as it comes, not at unit length. With
        CLIP, ``patches`` are the patch tokens through the same norm and projection, and
        ``backbone`` is what was projected. SigLIP pools by attention and projects nothing:
        ``patches`` are its normed patch tokens, and ``backbone`` equals ``frames``.
        """
        count = len(prepared)
        if not count:  # the networks of transformers cannot count in an empty batch
            prepared = np.zeros((1, 3, self.side, self.side), np.float32)
        batch = np.require(prepared, requirements=["C", "W"])
        read = read_in_batches(self.read_frames, _FRAMES, self.device, batch)
        return FrameFeatures(*(part[:count] for part in read))

    def text_weights(self) -> "dict[str, torch.Tensor]":
        """Weights of CLIP's text network by their names within it; none of a SigLIP."""
        return {} if self._family == "siglip" else dict(self.network.text_model.state_dict())

    def read_texts(self, ids: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
        """Sentence and word vectors. No attention mask: CLIP looks back only, SigLIP has none."""
        model = self.network
        out = model.text_model(input_ids=ids)
        if self._family == "siglip":
            return out.pooler_output, model.text_model.head(out.last_hidden_state)
        project = model.text_projection
        return project(out.pooler_output), project(out.last_hidden_state)

    def read_frames(
        self, batch: "torch.Tensor"
    ) -> tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]:
        """Frame, patch and backbone vectors."""
        model = self.network
        out = model.vision_model(pixel_values=batch)
        pooled = out.pooler_output
        if self._family == "siglip":
            return pooled, out.last_hidden_state, pooled
        cells = model.vision_model.post_layernorm(out.last_hidden_state[:, 1:])
        return model.visual_projection(pooled), model.visual_projection(cells), pooled

    @cached_property
    def network(self) -> Any:
        """The model of transformers, on its device."""
        from transformers import CLIPModel, SiglipModel

        kind = CLIPModel if self._family == "clip" else SiglipModel
        return self.snapshot.network(kind).to(self.device)


def _family(snapshot: Snapshot) -> Family:
    """Which network the folder holds, by its own word."""
    snapshot.require(CONFIG, _OTHER)
    match snapshot.settings(CONFIG).get("model_type"):
        case "clip" | "siglip" as family:
            return family
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


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keep the progress bar and load report of transformers off the terminal."""
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
