"""What every retrieval system is: codes for texts, codes for videos, a score, named losses.

Training, evaluation and search go through the same three steps, so that what is trained is what is
searched. Codes are computed once a text or video and never look at the other side or at the rest of
a batch; only `System.similarity` brings the two together.
"""

import importlib
import inspect
import math
import pkgutil
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sureshot.errors import SureshotError
from sureshot.models import systems
from sureshot.models.encoders.base import Cells, TextFeatures, VideoFeatures
from sureshot.models.encoders.experts import ExpertSizes
from sureshot.models.layers.gaussian import Gaussian, gaussian_of
from sureshot.models.layers.pooling import unit
from sureshot.models.losses.contrastive import Eta, info_nce
from sureshot.models.shapes import (
    FrameMask,
    Frames,
    Losses,
    Mask,
    Rng,
    Scalar,
    Scores,
    Texts,
    Tokens,
    Videos,
    WordMask,
    Words,
)
from sureshot.settings import Ranged, Within, build


class TextTokens(NamedTuple):
    """Texts: a sentence vector each, padded word tokens, and a mask, True where one is real.

    Sentences are as long as the encoder gives them; only where it does not say, at unit length.
    """

    sentence: Texts
    words: Words
    mask: WordMask

    @property
    def without_first(self) -> WordMask:
        """The mask without the first word, an encoder's start of a sentence; an only one stays."""
        rest = self.mask & (torch.arange(self.mask.shape[1], device=self.mask.device) > 0)
        return rest | (self.mask & ~rest.any(1, keepdim=True))

    def require_words(self, system: str) -> None:
        """Refuse texts whose words a stem left out."""
        if self.words.shape[-1] != self.sentence.shape[-1]:
            raise SureshotError(f"{system} reads the words of a text; set stem.words to true.")


class _Videos(NamedTuple):
    frames: Frames
    patches: Float[Tensor, "videos frames patches dim"]
    backbone: Float[Tensor, "videos frames channels"]
    mask: FrameMask
    experts: Float[Tensor, "videos rows size"]
    which: Bool[Tensor, "videos rows experts"]


class VideoTokens(_Videos):
    """Videos: padded frame tokens, their cells and backbone features, and a mask of real frames.

    ``experts`` and ``which`` are what `sureshot.models.encoders.experts.pack` gives; maybe of none.
    """

    __slots__ = ()

    def __new__(
        cls,
        frames: Tensor,
        patches: Tensor,
        backbone: Tensor,
        mask: Tensor,
        experts: Tensor | None = None,
        which: Tensor | None = None,
    ) -> "VideoTokens":
        """Fill in no experts where none are given."""
        if experts is None or which is None:
            experts, which = frames.new_zeros(len(frames), 0, 0), mask.new_zeros(len(mask), 0, 0)
        return super().__new__(cls, frames, patches, backbone, mask, experts, which)


class Sizes(NamedTuple):
    """What the features of videos are like."""

    dim: int  # of the space shared with texts
    channels: int  # of the backbone features; 0 where the encoder reads texts alone
    experts: ExpertSizes = ()
    cells: bool = True  # whether frames come with their cells


def text_tokens(features: TextFeatures, device: str | torch.device = "cpu") -> TextTokens:
    """Features of texts as 32-bit tensors on a device."""
    sentence = torch.from_numpy(features.sentence).float()
    if features.length is not None:
        sentence = sentence * torch.from_numpy(features.length).float()[:, None]
    return TextTokens(
        sentence.to(device),
        torch.from_numpy(features.words).float().to(device),
        torch.from_numpy(features.mask).to(device),
    )


def video_tokens(features: VideoFeatures, device: str | torch.device = "cpu") -> VideoTokens:
    """Features of videos as 32-bit tensors on a device."""
    arrays = {field.name: getattr(features, field.name) for field in fields(features)}
    tensors = {n: torch.from_numpy(a).to(device) for n, a in arrays.items() if a is not None}
    return VideoTokens(**{n: t if t.dtype == torch.bool else t.float() for n, t in tensors.items()})


V = TypeVar("V")
Codes = dict[str, Tensor]  # rows are texts or videos, in every tensor
Frozen = Literal["nothing", "patches", "embeddings"]
_LARGEST_SCALE = 100.0  # CLIP's limit
# First value of the logit scale; None is CLIP's own where a CLIP is trained too, and 100 otherwise.
Scale = Annotated[float | None, Within(0.01, 100)]


class SystemConfig(Ranged):
    """Settings of a system, the table ``[system]`` of a recipe."""

    __slots__ = ()
    key = "system"


class System(nn.Module):
    """A retrieval system; one paper each in this package.

    Attributes:
        searches: whether an index can be searched with it: it reads frames alone of a video, and
            its vectors are in their space.
        frozen: what stays as it is of a CLIP that is trained with the system, as in the released
            code: ``nothing``, the map of ``patches``, or all ``embeddings`` of words, patches and
            places with the layer norm behind them.
    """

    Config: ClassVar[type[Any]]  # dataclass of its settings, the table ``[system]`` of a recipe
    weights: Mapping[str, float] = {"similarity": 1.0}  # of each named loss in the objective
    # Losses that tell right pairs from wrong ones, with which DVTR may do away.
    contrasts: frozenset[str] = frozenset({"similarity"})
    reads_words = True  # which a stem may leave out
    passes = 1  # through the data in an epoch
    vector_width: int | None = None  # of `text_vectors`, `video_vectors`; None is that of tokens
    vector_code: str | None = None  # their name among codes; None is ``sentence`` and ``video``
    reads_experts = False  # features that were extracted beforehand
    searches = True
    frozen: Frozen = "nothing"
    cells: Cells = "none"  # that it reads, where the stem leaves any
    has_scale = True  # whether there is a softmax of its scores, with a logit scale
    shares_scale = True  # whether the logit scale is CLIP's, and trained at CLIP's rate
    reads_truth = False  # whether it is an oracle, see `sureshot.models.losses.debiased`
    trains_spread = True  # the spreads of its Gaussians, and not their means alone

    @classmethod
    def from_settings(
        cls, values: Mapping[str, object], sizes: Sizes, key: str = "system"
    ) -> "System":
        """A system with fresh weights, from some fields of its ``Config``."""
        made: System = cls(build(cls.Config, values, key), sizes.dim)  # type: ignore[call-arg]
        return made

    def __init__(self, scale: float | None) -> None:
        super().__init__()
        self._chosen_scale = scale
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale or _LARGEST_SCALE)))

    def start_from_clip(self, text: Mapping[str, Tensor]) -> None:
        """Take over the weights that the paper starts from CLIP's text network; here none."""

    def start_scale(self, log_scale: float) -> nn.Parameter:
        """The parameter of the logit scale, at CLIP's value, at most 100, unless one was set."""
        if self._chosen_scale is None:
            self.log_scale.data.fill_(min(log_scale, math.log(_LARGEST_SCALE)))
        return self.log_scale

    def advice(self, videos: int) -> str:
        """What to know before training on so many videos; empty where nothing is amiss."""
        return ""

    @property
    def scale(self) -> Scalar:
        """The logit scale."""
        return self.log_scale.exp()

    def estimators(self) -> nn.Module | None:
        """What learns the uncertainty of pairs next to the system; None where nothing does."""
        return None

    def begin_pass(self, number: int) -> None:
        """What changes between passes through the data, counted from 0 in each epoch."""

    def after_step(self) -> None:
        """What follows each step of the optimiser: hold the scale at 100 or below."""
        with torch.no_grad():
            self.log_scale.clamp_(max=math.log(_LARGEST_SCALE))

    def texts(self, tokens: TextTokens) -> Codes:
        """Codes of texts."""
        raise NotImplementedError

    def videos(self, tokens: VideoTokens) -> Codes:
        """Codes of videos."""
        raise NotImplementedError

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Score of every pair, higher is better; the same whatever else is in a block."""
        raise NotImplementedError

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """Named, unweighted losses of a batch in which text i describes video i.

        By default the symmetric contrastive loss of the scores. For ``eta`` see
        `sureshot.models.losses.contrastive`.
        """
        return {"similarity": info_nce(self.similarity(texts, videos), self.scale, eta=eta)}

    def text_vectors(self, texts: Codes) -> Texts:
        """Unit vectors whose inner products with `video_vectors` choose candidates for a search."""
        return texts[self.vector_code] if self.vector_code else unit(texts["sentence"])

    def video_vectors(self, videos: Codes) -> Videos:
        """Unit vectors of videos, computed without any text."""
        return videos[self.vector_code or "video"]

    def seen_vectors(self, texts: Codes, videos: Codes) -> Float[Tensor, "pairs dim"]:
        """Unit vector of video i as text i sees it; where texts have no say, as no text does."""
        return self.video_vectors(videos)

    def text_tokens(self, tokens: TextTokens, codes: Codes) -> tuple[Tokens, Mask]:
        """What a text consists of for a system that builds on this one: its words."""
        return tokens.words, tokens.mask

    def video_tokens(self, tokens: VideoTokens, codes: Codes) -> tuple[Tokens, Mask]:
        """What a video consists of for a system that builds on this one: its frames."""
        return tokens.frames, tokens.mask

    def gaussian(self, codes: Codes) -> Gaussian | None:
        """The Gaussians of coded texts or videos; None where the system trains none."""
        return gaussian_of(codes) if self.trains_spread and "mean" in codes else None

    def matrices(self, texts: Codes, videos: Codes) -> dict[str, Scores]:
        """What the paper defines of a pair besides its score, by name; for figures and research."""
        return {}

    def measures(self, texts: Codes, videos: Codes) -> dict[str, Float[Tensor, "*rows"]]:
        """Uncertainties the paper defines, for research; none where it defines none."""
        return {}


def objective(losses: Mapping[str, Scalar], weights: Mapping[str, float]) -> Scalar:
    """Weighted sum of named losses."""
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()


def merged(*parts: Mapping[str, V]) -> dict[str, V]:
    """Named values of a system and of one that it is put on, together."""
    together: dict[str, V] = {}
    for part in parts:
        if twice := together.keys() & part.keys():
            raise SureshotError(
                f"Two systems that are put together both have {', '.join(sorted(twice))}; a system "
                "is not put on one of its own kind."
            )
        together |= part
    return together


def rows(codes: Codes, chosen: Any) -> Codes:
    """Some of the coded items: a slice, or indices."""
    return {name: tensor[chosen] for name, tensor in codes.items()}


def joined(parts: list[Codes]) -> Codes:
    """Codes of several batches as one; token axes are padded to the longest with zeros."""
    together = {}
    for name in parts[0]:
        tensors = [part[name] for part in parts]
        longest = [max(sizes) for sizes in zip(*(t.shape[1:] for t in tensors), strict=True)]
        together[name] = torch.cat([grown(t, [len(t), *longest]) for t in tensors])
    return together


def grown(tensor: Tensor, sizes: list[int]) -> Tensor:
    """A tensor grown at its end to these sizes of its axes; False or 0 is new."""
    missing = [size - now for size, now in zip(sizes, tensor.shape, strict=True)]
    widths = [width for gap in reversed(missing) for width in (0, gap)]
    return nn.functional.pad(tensor, widths) if any(missing) else tensor


def find_system(name: str) -> type[System] | None:
    """The class of the system of this name; None if there is none. No other system is imported."""
    if name not in _modules():
        return None
    module = importlib.import_module(f"{systems.__name__}.{name}")
    for kind in vars(module).values():
        defined_here = inspect.isclass(kind) and kind.__module__ == module.__name__
        if defined_here and issubclass(kind, System) and hasattr(kind, "Config"):
            return kind
    return None


def known_systems() -> dict[str, type[System]]:
    """Class of every system by its name; all of them are imported."""
    classes = ((name, find_system(name)) for name in _modules())
    return {name: system for name, system in classes if system is not None}


def load_system(settings: Mapping[str, Any], sizes: Sizes, key: str = "system") -> System:
    """The system of the table ``[system]`` of a recipe, its weights fresh."""
    values = dict(settings)
    name = values.pop("name", None)
    system = find_system(name) if isinstance(name, str) else None
    if system is None:
        raise SureshotError(f"{key}.name is {name!r:.80}; known: {', '.join(known_systems())}.")
    return system.from_settings(values, sizes, key)


def _modules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(systems.__path__)]
