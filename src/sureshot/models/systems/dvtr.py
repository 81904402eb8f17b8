r"""DVTR, Debiased Video-Text Retrieval (TCSVT 2023): any other system, on cleaner negatives.

A batch takes every caption of another video for a wrong one, and some are right: *soft
positives*. DVTR makes a Gaussian of each text and video of the system it is put on, learns from
their distance W how unsure it is that a pair matches, :math:`\eta = \sigma(a W - b)`, and trains
the system with each negative weighed by eta. Two passes through the data make an epoch: in the
first the Gaussians and eta learn, in the second the system does. A search is that of the system
alone.

Differs:
    As printed, :math:`\eta = \sigma(-\mathrm{MLP}(W))` falls with the distance if the MLP rises
    with it, so that matched pairs would weigh the most, and its loss sees positives alone.
    ``well_posed`` has an eta that rises with W, learned from
    the negatives of the batch too, whose labels are smoothed so that soft positives survive, and
    at least ``floor``, so that no negative is ever quite forgotten.

    As printed the first pass trains the system as well, by a loss that equal Gaussians for all
    items make smallest, and eta passes gradients on in the second. In ``well_posed`` the Gaussians
    read the system and leave it alone, and eta is a number. Its triplet loss has eta as a factor of
    the hinge. In print it is a factor of the similarity within: a negative similarity then costs
    the *more* the smaller eta is: at s = -0.6, where there is nothing to push, 0.08 with eta = 0.2
    against 0 with eta = 1.

    Every loss of the system that tells pairs apart takes the weights, its samples, distances and
    evidence included; one direction is printed, here both count. Three things count in full: keys
    of HiT's memory banks, of which no Gaussian is kept; the uniformity of samples in DUQ and PCME,
    and the agreement of DUQ's released branches, which know no pairs.

    Both read the tokens of an item at unit length, as its global vector is. Frames and words of a
    CLIP are about ten times as long, and next to those the global vector would hardly move a
    variance.

    Both divide the W of means that are :math:`\sqrt D` long by D, or sigmoids would be 0 or 1.

    The temperature of the paper is fixed at 0.07. Without one of its own, ``well_posed`` leaves
    the logit scale of the system to be learned, as the system alone would.

References:
    DVTR, sections IV-C to IV-E and algorithm 1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from sureshot.models.layers.gaussian import Gaussian, HierarchicalGaussianHead, draw_samples
from sureshot.models.layers.pooling import unit
from sureshot.models.losses.contrastive import Eta, info_nce, weigh
from sureshot.models.losses.debiased import (
    Divergence,
    alignment,
    alignment_as_printed,
    known_eta,
    matching_cost,
    matching_cost_as_printed,
    shuffled,
)
from sureshot.models.losses.uncertainty import max_margin, mil_margin, soft_contrastive
from sureshot.models.scoring import expected_distance, wasserstein_distance
from sureshot.models.shapes import Losses, Mask, Rng, Scalar, Scores, Square, Texts, Tokens, Videos
from sureshot.models.systems.base import (
    Codes,
    Sizes,
    System,
    SystemConfig,
    TextTokens,
    VideoTokens,
    load_system,
    merged,
)
from sureshot.settings import Within, build

Uncertainty = Literal["wasserstein", "pcme", "shuffled", "none", "oracle"]
_STEEP, _MIDDLE = 5.0, 1.0  # first slope of eta, and the distance at which it is one half
_PRINTED_TEMPERATURE = 0.07
_START = 5.0  # first steepness of PCME's match probability
_OWN = ("uncertain mean", "uncertain log_var")  # codes of our own, next to those of the system
_LOSSES = ("dvtr_alignment", "dvtr_matching")  # of our own


@dataclass(frozen=True, slots=True)
class DvtrConfig(SystemConfig):
    """Settings of DVTR.

    Attributes:
        base: the system it is put on: its ``name`` and its own settings.
        loss: ``own``, the losses of the system as they are, their negatives weighed; or what takes
            the place of those that contrast pairs, see `System.contrasts`: the ``contrastive`` loss
            of its score, or the ``triplet`` loss. Others stay, weighed.
        uncertainty: what eta is: that of the ``wasserstein`` distance; ``pcme``, the probability
            that samples do not match, as PCME learns it; and three controls: ``none``, eta = 1
            and a single pass; ``shuffled``, the etas of a batch dealt to other negatives; and
            ``oracle``, a single pass with 0 for the captions that do fit, known for synthetic data.
        divergence: distance of matched Gaussians while they learn: ``wasserstein`` or ``kl``.
        samples: K, drawn of each item in ``paper`` mode and by ``pcme``.
        temperature: tau of the contrastive loss; None is 0.07 as printed and the system's own,
            learned scale in ``well_posed``.
        negatives: whether the triplet loss takes the ``mean`` of its negatives or the ``hardest``.
        smoothing: share of doubt in the labels that eta learns from in ``well_posed``.
    """

    base: Mapping[str, Any] = field(default_factory=lambda: {"name": "clip4clip"})
    mode: Literal["well_posed", "paper"] = "well_posed"
    loss: Literal["own", "contrastive", "triplet"] = "own"
    uncertainty: Uncertainty = "wasserstein"
    divergence: Divergence = "wasserstein"
    samples: Annotated[int, Within(1, 100)] = 7
    margin: Annotated[float, Within(0, 10)] = 0.5  # lambda of the triplet loss
    temperature: Annotated[float | None, Within(0.01, 100)] = None
    negatives: Literal["mean", "hardest"] = "mean"
    floor: Annotated[float, Within(0, 1)] = 0.05  # least eta in ``well_posed``
    smoothing: Annotated[float, Within(0, 1)] = 0.1
    alternate: bool = True  # whether the two parts learn in two passes; else in every step


class Dvtr(System):
    """DVTR on a system, whose score it keeps."""

    Config = DvtrConfig

    @classmethod
    def from_settings(
        cls, values: Mapping[str, object], sizes: Sizes, key: str = "system"
    ) -> "Dvtr":
        """As `System.from_settings`; the base is built from its own."""
        config = build(DvtrConfig, values, key)
        return cls(config, load_system(config.base, sizes, f"{key}.base"), sizes.dim)

    def __init__(self, config: DvtrConfig, base: System, width: int) -> None:
        nn.Module.__init__(self)  # the logit scale is that of the base
        self.config, self.base = config, base
        self.printed_mode = config.mode == "paper"
        self._dropped = frozenset() if config.loss == "own" else base.contrasts
        self.learns = config.uncertainty not in ("none", "oracle")
        self.reads_truth = base.reads_truth or config.uncertainty == "oracle"
        self.passes = 2 if self.learns and config.alternate else 1
        kept = {name: w for name, w in base.weights.items() if name not in self._dropped}
        kept |= {"similarity": 1.0} if self._dropped else {}
        self.weights = merged(kept, dict.fromkeys(_LOSSES, 1.0))
        literal, pcme = self.printed_mode, config.uncertainty == "pcme"
        whole = base.vector_width or width
        # PCME's means have unit length in print, too.
        self.text_head, self.video_head = (
            HierarchicalGaussianHead(width, whole, literal=literal and not pcme) for _ in range(2)
        )
        # In print a linear layer of one number, of any sign; here softplus of it keeps eta rising.
        slope, shift = (1.0, 0.0) if literal else (math.log(math.expm1(_STEEP)), _STEEP * _MIDDLE)
        self.eta_slope = nn.Parameter(torch.tensor(slope))
        self.eta_shift = nn.Parameter(torch.tensor(shift))
        # Samples of one item are 1.4 apart at first, those of unlike ones 2.
        self.match = nn.Parameter(torch.tensor([_START, 1.7 * _START]))
        self.reads_experts, self.searches = base.reads_experts, base.searches
        self.vector_width = base.vector_width
        self.frozen, self.cells = base.frozen, base.cells
        temperature = config.temperature or (_PRINTED_TEMPERATURE if literal else None)
        own_losses = config.loss == "own" or len(base.weights) > 1
        self.has_scale = config.loss == "contrastive" or (base.has_scale and own_losses)
        if self.has_scale and (temperature is not None or not base.has_scale):
            base.log_scale.data.fill_(-math.log(temperature or _PRINTED_TEMPERATURE))
        # Without a softmax anywhere there is nothing that a logit scale could learn from.
        if self.has_scale or base.has_scale:
            base.log_scale.requires_grad_(self.has_scale and temperature is None)
        self.shares_scale = base.shares_scale and base.log_scale.requires_grad
        for part in (self.text_head, self.video_head):
            part.requires_grad_(self.learns)
        self.match.requires_grad_(pcme)
        for weight in (self.eta_slope, self.eta_shift):
            weight.requires_grad_(self.learns and not pcme)
        own = (weight for name, weight in self.named_parameters() if not name.startswith("base."))
        self._estimators = [weight for weight in own if weight.requires_grad]
        self._trained = [weight for weight in base.parameters() if weight.requires_grad]
        self._number: int | None = None  # of the pass; None trains both parts at once

    def advice(self, videos: int) -> str:
        """That about the base."""
        return self.base.advice(videos)

    def start_from_clip(self, text: Mapping[str, Tensor]) -> None:
        """What the base does."""
        self.base.start_from_clip(text)

    def start_scale(self, log_scale: float) -> nn.Parameter:
        """That of the base."""
        return self.base.start_scale(log_scale)

    @property
    def scale(self) -> Scalar:
        """The logit scale of the base."""
        return self.base.scale

    def estimators(self) -> nn.Module:
        """The heads of the Gaussians, and what makes eta of their distance."""
        alone = nn.ParameterList([self.eta_slope, self.eta_shift, self.match])
        return nn.ModuleList([self.text_head, self.video_head, alone])

    def begin_pass(self, number: int) -> None:
        """Let the Gaussians and eta learn in the first pass, the base in the second."""
        if self.passes == 1:
            return
        self._number = number
        for weight in self._estimators:
            weight.requires_grad_(number == 0)
        for weight in self._trained:
            weight.requires_grad_(number == 1 or self.printed_mode)

    def after_step(self) -> None:
        """What the base does."""
        if self._number != 0 or self.printed_mode:
            self.base.after_step()

    def texts(self, tokens: TextTokens) -> Codes:
        """Codes of the base, and the Gaussian of each text."""
        codes = self.base.texts(tokens)
        whole, local = self.base.text_vectors(codes), self.base.text_tokens(tokens, codes)
        return merged(codes, self._gaussians(self.text_head, whole, *local))

    def videos(self, tokens: VideoTokens) -> Codes:
        """Codes of the base, and the Gaussian of each video."""
        codes = self.base.videos(tokens)
        whole, local = self.base.video_vectors(codes), self.base.video_tokens(tokens, codes)
        return merged(codes, self._gaussians(self.video_head, whole, *local))

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Score of the base."""
        return self.base.similarity(texts, videos)

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """In the first pass those of the Gaussians and of eta, in the second those of the base.

        The base's come with its negatives weighed, by ``eta`` too where it is given.
        """
        estimation: Losses = {}
        if self._number != 1 and self.learns:
            estimation = self._estimation(texts, videos, generator)
        if self._number == 0:
            return estimation
        if self.config.uncertainty != "none":
            own = self._eta_in_training(texts, videos, generator)
            eta = own if eta is None else own * eta
        losses = self.base.losses(texts, videos, generator, eta)
        if self._dropped:
            losses = {name: loss for name, loss in losses.items() if name not in self._dropped}
            losses["similarity"] = self._debiased(self.base.similarity(texts, videos), eta)
        return merged(estimation, losses)

    def seen_vectors(self, texts: Codes, videos: Codes) -> Videos:
        """Those of the base."""
        return self.base.seen_vectors(texts, videos)

    def text_vectors(self, texts: Codes) -> Texts:
        """Those of the base."""
        return self.base.text_vectors(texts)

    def video_vectors(self, videos: Codes) -> Videos:
        """Those of the base."""
        return self.base.video_vectors(videos)

    def gaussian(self, codes: Codes) -> Gaussian | None:
        """The Gaussians that eta comes from; None if it comes from nothing."""
        return _own(codes) if self.learns else None

    def matrices(self, texts: Codes, videos: Codes) -> dict[str, Scores]:
        """Those of the base, and ``eta``: near 0 a match, near 1 surely none; ``wasserstein``."""
        found = self.base.matrices(texts, videos)
        if not self.learns:
            return found
        pairs = _own(texts), _own(videos)
        return found | {"eta": self.eta(*pairs), "wasserstein": wasserstein_distance(*pairs)}

    def measures(self, texts: Codes, videos: Codes) -> dict[str, Float[Tensor, "*rows"]]:
        """Those of the base, the deviation of each item, and its least eta over the other side."""
        measures = self.base.measures(texts, videos)
        if not self.learns:
            return measures
        one, other = _own(texts), _own(videos)
        eta = self.eta(one, other)
        return measures | {
            "text least eta": eta.amin(1),
            "video least eta": eta.amin(0),
            "text eta deviation": (one.log_var.mean(-1) / 2).exp(),
            "video eta deviation": (other.log_var.mean(-1) / 2).exp(),
        }

    def eta(self, texts: Gaussian, videos: Gaussian) -> Scores:
        r"""Uncertainty of each pair, without drawing anything.

        .. math:: \eta = \max(\sigma(a W - b), \mathrm{floor})

        As printed, the sigmoid of minus a linear function of W. With ``pcme``, the probability
        that two samples do not match, at the root of their mean squared distance.
        """
        if self.config.uncertainty == "pcme":
            apart = (expected_distance(texts, videos) + 1e-6).sqrt()
            eta = torch.sigmoid(self.match[0].clamp(min=1e-3) * apart - self.match[1])
        else:
            eta = torch.sigmoid(self._logit(texts, videos))
        return eta if self.printed_mode else eta.clamp(min=self.config.floor)

    def _gaussians(
        self, head: nn.Module, whole: Float[Tensor, "items whole"], local: Tokens, mask: Mask
    ) -> Codes:
        """Our own codes; none where eta comes from nothing."""
        if not self.learns:
            return {}
        local = unit(local)  # as long as the global vector, which would count for little otherwise
        if not self.printed_mode:
            # The Gaussians read the base and must not bend it to their wishes.
            whole, local = whole.detach(), local.detach()
        gaussian = head(whole, local, mask)
        return dict(zip(_OWN, (gaussian.mean, gaussian.log_var), strict=True))

    def _estimation(self, texts: Codes, videos: Codes, generator: Rng) -> Losses:
        """Losses of the Gaussians and of eta."""
        pairs, config = (_own(texts), _own(videos)), self.config
        if config.uncertainty != "pcme" and not self.printed_mode:
            return {
                _LOSSES[0]: alignment(*pairs, config.divergence),
                _LOSSES[1]: matching_cost(self._logit(*pairs), config.smoothing),
            }
        one, other = (draw_samples(side, config.samples, generator) for side in pairs)
        if config.uncertainty == "pcme":
            steepness = self.match[0].clamp(min=1e-3)
            return {_LOSSES[0]: soft_contrastive(one, other, steepness, self.match[1])}
        return {
            _LOSSES[0]: alignment_as_printed(*pairs, one, other, config.divergence),
            _LOSSES[1]: matching_cost_as_printed(self.eta(*pairs).diagonal()),
        }

    def _eta_in_training(self, texts: Codes, videos: Codes, generator: Rng) -> Square:
        """What negatives are weighed by."""
        if not self.learns:
            return known_eta(texts)
        eta = self.eta(_own(texts), _own(videos))
        if self.config.uncertainty == "shuffled":
            eta = shuffled(eta, generator or torch.default_generator)
        return eta if self.printed_mode else eta.detach()

    def _debiased(self, similarity: Square, eta: Eta) -> Scalar:
        if self.config.loss == "contrastive":
            return info_nce(similarity, self.base.scale, eta=eta)
        if self.printed_mode:  # within the hinge
            similarity, eta = weigh(similarity, eta), None
        if self.config.negatives == "mean":
            return max_margin(similarity, self.config.margin, eta)
        return mil_margin(-similarity, self.config.margin, "hardest", eta)

    def _logit(self, texts: Gaussian, videos: Gaussian) -> Scores:
        """Of eta, before the floor."""
        distance = wasserstein_distance(texts, videos)
        if self.printed_mode:
            return -(self.eta_slope * distance / texts.mean.shape[1] + self.eta_shift)
        return softplus(self.eta_slope) * distance - self.eta_shift


def _own(codes: Codes) -> Gaussian:
    """The Gaussians of DVTR, apart from those the base may have."""
    return Gaussian(codes[_OWN[0]], codes[_OWN[1]])
