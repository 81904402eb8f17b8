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
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from sureshot.errors import SureshotError
from sureshot.models import systems
from sureshot.models.encoders.base import TextFeatures, VideoFeatures
from sureshot.models.encoders.experts import ExpertSizes
from sureshot.models.layers.gaussian import Gaussian
from sureshot.models.losses.contrastive import Eta, info_nce
from sureshot.settings import Ranged, Within, build


class TextTokens(NamedTuple):
    """Texts: a sentence vector each, padded word tokens, and a mask, True where one is real.

    Sentences are as long as the encoder gives them; only where it does not say, at unit length.
    """

    sentence: Float[Tensor, "texts dim"]
    words: Float[Tensor, "texts words dim"]
    mask: Bool[Tensor, "texts words"]


class _Videos(NamedTuple):
    frames: Float[Tensor, "videos frames dim"]
    patches: Float[Tensor, "videos frames patches dim"]
    backbone: Float[Tensor, "videos frames channels"]
    mask: Bool[Tensor, "videos frames"]
    experts: Float[Tensor, "videos rows size"]
    which: Bool[Tensor, "videos rows experts"]


class VideoTokens(_Videos):
    """Videos: padded frame tokens, their cells and backbone features, and a mask of real frames.

    Experts that were extracted beforehand come as rows below each other, whichever expert they are
    of, as `sureshot.models.encoders.experts.pack` has them: ``which`` is True where a row is real
    and of that expert. Left out, there are none.
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
        """Tokens of these tensors, whose shapes are those of the fields."""
        if experts is None or which is None:
            experts, which = frames.new_zeros(len(frames), 0, 0), mask.new_zeros(len(mask), 0, 0)
        return super().__new__(cls, frames, patches, backbone, mask, experts, which)


class Sizes(NamedTuple):
    """What the features of videos are like.

    Attributes:
        dim: size of the space shared with texts.
        channels: size of the backbone features.
        experts: the experts extracted beforehand, in the order of their tokens.
        cells: whether frames come with their cells.
    """

    dim: int
    channels: int
    experts: ExpertSizes = ()
    cells: bool = True


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
    experts, which = features.experts, features.which
    return VideoTokens(
        torch.from_numpy(features.frames).float().to(device),
        torch.from_numpy(features.patches).float().to(device),
        torch.from_numpy(features.backbone).float().to(device),
        torch.from_numpy(features.mask).to(device),
        None if experts is None else torch.from_numpy(experts).float().to(device),
        None if which is None else torch.from_numpy(which).to(device),
    )


def without_first(mask: Bool[Tensor, "texts words"]) -> Bool[Tensor, "texts words"]:
    """A mask without the first word, an encoder's start of a sentence; of one word, with it."""
    first = torch.zeros(1, dtype=torch.long, device=mask.device)
    rest = mask.index_fill(1, first, False)
    return rest | (mask & ~rest.any(1, keepdim=True))


def require_words(tokens: TextTokens, system: str) -> None:
    """Refuse texts whose words a stem left out."""
    if tokens.words.shape[-1] != tokens.sentence.shape[-1]:
        raise SureshotError(f"{system} reads the words of a text; set stem.words to true.")


V = TypeVar("V")
Codes = dict[str, Tensor]  # rows are texts or videos, in every tensor
Frozen = Literal["nothing", "patches", "embeddings"]
_LARGEST_SCALE = 100.0  # CLIP's limit
# First value of the logit scale; None is CLIP's own where a CLIP is trained too, and 100 otherwise.
Scale = Annotated[float | None, Within(0.01, 100)]


class SystemConfig(Ranged):
    """Settings of a system, the table ``[system]`` of a recipe."""

    __slots__ = ()
    at = "system"


class System(nn.Module):
    """A retrieval system; one paper each in this package.

    Args:
        scale: factor on similarities within a softmax, learned from here on, at most 100; None is
            that of a CLIP trained with the system, and 100 otherwise.

    Attributes:
        Config: dataclass of its settings, the table ``[system]`` of a recipe.
        weights: factor of each named loss in the objective.
        reads_words: whether it reads word tokens, which a stem may leave out.
        passes: how often training goes through the data in an epoch.
        vector_width: length of `text_vectors` and `video_vectors`; None is that of the tokens.
        reads_experts: whether it reads features that were extracted beforehand.
        searches: whether an index can be searched with it: it reads of a video what an index keeps,
            its frames, and its vectors lie in their space.
        frozen: what stays as it is of a CLIP that is trained with the system, as in the released
            code: ``nothing``, the map of ``patches``, or all ``embeddings`` of words, patches and
            places with the layer norm behind them.
        whole_grid: whether it reads all cells of a frame rather than those of the coarse grid that
            features are pooled to.
        shares_scale: whether the logit scale is CLIP's, and trained at the rate of a CLIP that is
            trained with the system.
        reads_truth: whether it is an oracle, given in training what only a synthetic dataset
            knows; see `sureshot.models.losses.debiased`.
    """

    Config: ClassVar[type[Any]]
    weights: Mapping[str, float] = {"similarity": 1.0}
    reads_words = True
    passes = 1
    vector_width: int | None = None
    reads_experts = False
    searches = True
    frozen: Frozen = "nothing"
    whole_grid = False
    shares_scale = True
    reads_truth = False

    @classmethod
    def from_settings(
        cls, values: Mapping[str, object], sizes: Sizes, at: str = "system"
    ) -> "System":
        """A system with fresh weights.

        Args:
            values: fields of ``Config``; what is left out takes its default.
        """
        made: System = cls(build(cls.Config, values, at), sizes.dim)  # type: ignore[call-arg]
        return made

    def __init__(self, scale: float | None) -> None:
        super().__init__()
        self._chosen_scale = scale
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale or _LARGEST_SCALE)))

    def start_from_clip(self, text: Mapping[str, Tensor]) -> None:
        """Take over the weights that the paper starts from CLIP; here none.

        Args:
            text: weights of CLIP's text network, see `sureshot.models.layers.transformer`. Its
                vectors are as long as those that the system reads.
        """

    def start_scale(self, log_scale: float) -> nn.Parameter:
        """The parameter of the logit scale, at CLIP's value unless another was asked for.

        Args:
            log_scale: logarithm of CLIP's scale, which is cut at 100.
        """
        if self._chosen_scale is None:
            self.log_scale.data.fill_(min(log_scale, math.log(_LARGEST_SCALE)))
        return self.log_scale

    @property
    def scale(self) -> Float[Tensor, ""]:
        """The logit scale, exp of the learned parameter."""
        return self.log_scale.exp()

    def begin_pass(self, number: int) -> None:
        """What changes from one pass through the data to the next, counted from 0 in each epoch."""

    def after_step(self) -> None:
        """What is due after each step of the optimiser: hold the scale at 100 or below."""
        with torch.no_grad():
            self.log_scale.clamp_(max=math.log(_LARGEST_SCALE))

    def texts(self, tokens: TextTokens) -> Codes:
        """Codes of texts."""
        raise NotImplementedError

    def videos(self, tokens: VideoTokens) -> Codes:
        """Codes of videos."""
        raise NotImplementedError

    def similarity(self, texts: Codes, videos: Codes) -> Float[Tensor, "texts videos"]:
        """Score of every pair, higher is better; the same whatever else is in a block."""
        raise NotImplementedError

    def losses(
        self,
        texts: Codes,
        videos: Codes,
        generator: torch.Generator | None = None,
        eta: Eta = None,
    ) -> dict[str, Float[Tensor, ""]]:
        """Named, unweighted losses of a batch in which text i describes video i.

        Those of a system that says nothing else are the symmetric contrastive loss of its scores.

        Args:
            eta: how much each pair counts as a negative, wherever pairs are told apart; see
                `sureshot.models.losses.contrastive`.
        """
        del generator
        return {"similarity": info_nce(self.similarity(texts, videos), self.scale, eta=eta)}

    def text_vectors(self, texts: Codes) -> Float[Tensor, "texts width"]:
        """Unit vectors whose inner products with `video_vectors` choose candidates for a search."""
        return unit(texts["sentence"])

    def video_vectors(self, videos: Codes) -> Float[Tensor, "videos width"]:
        """Unit vectors of videos, computed without any text."""
        return videos["video"]

    def seen_vectors(self, texts: Codes, videos: Codes) -> Float[Tensor, "pairs width"]:
        """Unit vector of video i as text i sees it; where texts have no say, as no text does."""
        del texts
        return self.video_vectors(videos)

    def text_tokens(
        self, tokens: TextTokens, codes: Codes
    ) -> tuple[Float[Tensor, "texts tokens width"], Bool[Tensor, "texts tokens"]]:
        """What a text consists of as this system sees it, for one that builds on it: its words."""
        del codes
        return tokens.words, tokens.mask

    def video_tokens(
        self, tokens: VideoTokens, codes: Codes
    ) -> tuple[Float[Tensor, "videos tokens width"], Bool[Tensor, "videos tokens"]]:
        """What a video consists of as this system sees it, for one that builds on it: its frames.

        `text_vectors` and `video_vectors` are the global features that go with these local ones.
        """
        del codes
        return tokens.frames, tokens.mask

    def gaussian(self, codes: Codes) -> Gaussian | None:
        """The Gaussians of coded texts or videos; None where the system trains none."""
        return gaussian_of(codes) if "mean" in codes else None

    def matrices(self, texts: Codes, videos: Codes) -> dict[str, Float[Tensor, "texts videos"]]:
        """What the paper defines of a pair besides its score, by name; for figures and research."""
        del texts, videos
        return {}

    def measures(self, texts: Codes, videos: Codes) -> dict[str, Float[Tensor, "*rows"]]:
        """Uncertainties the paper defines, for research; none where it defines none."""
        del texts, videos
        return {}


def objective(
    losses: Mapping[str, Float[Tensor, ""]], weights: Mapping[str, float]
) -> Float[Tensor, ""]:
    """Weighted sum of named losses."""
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()


def merged(*parts: Mapping[str, V]) -> dict[str, V]:
    """Named values of a system and of one that it is put on, together."""
    together: dict[str, V] = {}
    for part in parts:
        twice = together.keys() & part.keys()
        if twice:
            raise SureshotError(
                f"Two systems that are put together both have {', '.join(sorted(twice))}; a system "
                "is not put on one of its own kind."
            )
        together |= part
    return together


def unit(x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """Vectors at unit length; a zero vector stays zero."""
    return normalize(x, dim=-1)


def gaussian_of(codes: Codes) -> Gaussian:
    """The Gaussians among the codes of texts or videos, ``mean`` and ``log_var``."""
    return Gaussian(codes["mean"], codes["log_var"])


def rows(codes: Codes, chosen: Any) -> Codes:
    """Some of the coded items: a slice, or indices."""
    return {name: tensor[chosen] for name, tensor in codes.items()}


def joined(parts: list[Codes]) -> Codes:
    """Codes of several batches as one; token axes are padded to the longest with zeros."""
    longest = {
        name: [max(sizes) for sizes in zip(*(p[name].shape[1:] for p in parts), strict=True)]
        for name in parts[0]
    }
    return {
        name: torch.cat([grown(p[name], [len(p[name]), *longest[name]]) for p in parts])
        for name in parts[0]
    }


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
    for value in vars(module).values():
        defined_here = inspect.isclass(value) and value.__module__ == module.__name__
        if defined_here and issubclass(value, System) and hasattr(value, "Config"):
            return value
    return None


def known_systems() -> dict[str, type[System]]:
    """Class of every system by its name; all of them are imported."""
    classes = {name: find_system(name) for name in _modules()}
    return {name: system for name, system in classes.items() if system is not None}


def load_system(settings: Mapping[str, Any], sizes: Sizes, at: str = "system") -> System:
    """The system of these settings, its weights fresh.

    Args:
        settings: its ``name`` and its own settings, as in the table ``[system]`` of a recipe.
    """
    values = dict(settings)
    name = values.pop("name", None)
    system = find_system(name) if isinstance(name, str) else None
    if system is None:
        raise SureshotError(f"{at}.name is {name!r:.80}; known: {', '.join(known_systems())}.")
    return system.from_settings(values, sizes, at)


def _modules() -> list[str]:
    """Names of the modules of the package, without importing them."""
    return [module.name for module in pkgutil.iter_modules(systems.__path__)]
