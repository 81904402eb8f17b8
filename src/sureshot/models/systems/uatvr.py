r"""UATVR, Uncertainty-Adaptive Text-Video Retrieval (Fang et al., ICCV 2023).

A text is its words, a video its frames, and every token looks for its best counterpart on the other
side. *Dynamic semantic adaptation* appends a few learned tokens to both, which take part in that
search and may stand for more than one word or frame. *Distribution-based uncertainty adaptation*
makes a Gaussian of each item and lets samples of matched items find each other. Training minimises

.. math:: L = L_{DSA} + \alpha L_{DUA} + \beta L_{KL}

The score is that of the tokens alone: the Gaussians shape them in training and then only tell how
wide an item is.

``mode = "paper"`` follows the print, ``mode = "released"`` the released code. ``mode =
"well_posed"``, the default, replaces what cannot work.

Differs:
    In all modes an item's codes come from its own real tokens, and learned tokens are parameters of
    their own. The released code multiplies the similarities of padding by zero, which then beats
    negative ones; lets its heads attend to padding; and takes the learned tokens from the rows of
    the position table that follow the padded length. Without padding ``released`` is that code.

    In all modes the heads are those of the released code, which attend to the tokens, and tokens
    are weighed in the score as there. The print has one linear layer each, which would be 1.1
    million parameters for both sides, and a plain mean; its own table 2 counts 2.1 million more
    with the heads, and 0.5 in the interaction, as the code has them.

    ``paper`` adds the contrastive losses of both directions, as equation 6 does; the released code
    and ``well_posed`` have their mean, next to which alpha and beta count double.

    ``released`` averages the matching over all positives, and takes its Gaussians' spreads for
    deviations where it samples and for variances in the divergence, with the mean of the samples as
    their mean. As in ``paper`` the divergence is summed over the batch, whose size beta then goes
    with; ``well_posed`` has its mean.

    ``well_posed`` compares samples by their cosine at a learned scale, starts from noise no longer
    than the mean and keeps the prior at that size. As printed there is no scale, so that between
    cosines the loss of a batch of 64 cannot fall below 2.25; and a sample of 512 dimensions is 23
    long where its mean is one. The soft contrastive loss likewise gets samples at unit length, or
    as they are; in all modes it is the balanced one of `sureshot.models.losses.uncertainty`.

References:
    UATVR eq. 13, its similarity loss that of UATVR eq. 6; the Gaussians are those of UATVR eq. 9
    and their samples those of UATVR eq. 10.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sureshot.models.layers.gaussian import (
    Gaussian,
    PieGaussianHead,
    draw_samples,
    gaussian_of,
    kl_to_prior,
)
from sureshot.models.layers.pooling import mean_of_units, token_shares, unit
from sureshot.models.layers.transformer import (
    SequentialTransformer,
    Transformer,
    linear,
    places_from_clip,
    start_from_clip,
)
from sureshot.models.losses.contrastive import Average, Eta, info_nce, mil_nce
from sureshot.models.losses.debiased import known_spreads
from sureshot.models.losses.uncertainty import soft_contrastive
from sureshot.models.scoring import sample_cosines, token_interaction
from sureshot.models.shapes import Losses, Mask, Rng, Samples, Scalar, Scores, Tokens
from sureshot.models.systems.base import Codes, Scale, System, SystemConfig, TextTokens, VideoTokens
from sureshot.settings import Within

Matching = Literal["none", "mil_nce", "mil_nce_averaged", "soft_contrastive", "means"]
_SCALE = 1 / 0.07  # first scale of the samples' cosines, as CLIP's own training began
_LARGEST_SCALE = 100.0
_START = 5.0  # first steepness and shift of the soft contrastive loss, as in the released code


@dataclass(frozen=True, slots=True)
class UatvrConfig(SystemConfig):
    """Settings of UATVR.

    Attributes:
        adaptation: whether learned tokens are appended (DSA). Without them the transformer over the
            tokens stays, as in the paper's baseline.
        video_tokens: C_v, learned tokens of a video; None is 2 in ``released`` and 3 otherwise.
        layers: blocks of the transformer that texts and videos share.
        interaction: ``mean`` of the tokens' best similarities as in equation 8, or ``weighted`` by
            a small network as in the released code and in the parameters that table 2 counts.
        include_special: whether the first word token, an encoder's start of a sentence, takes part
            in the score. The mean of a text's Gaussian never counts it.
        matching: the loss of the samples (DUA): ``mil_nce``, the same ``mil_nce_averaged`` over the
            positives as in the released code, ``soft_contrastive`` as in PCME, ``none``, or
            ``means``: no samples and no spreads, the means of matched items find each other. That
            is the control that tells what a second loss is worth from what uncertainty is. None is
            ``mil_nce_averaged`` in ``released`` and ``mil_nce`` otherwise.
        spread: how wide items are: as ``learned``, or as an ``oracle`` reads them, see
            `sureshot.models.losses.debiased`. The control that must help if spreads can.
        frames: frames of a video in training. A CLIP's text positions after so many are what the
            learned tokens of a video start from, as in the released code.
        longest: most words and frames the transformer can place.
    """

    mode: Literal["well_posed", "paper", "released"] = "well_posed"
    adaptation: bool = True
    video_tokens: Annotated[int | None, Within(0, 1000)] = None
    text_tokens: Annotated[int, Within(0, 1000)] = 2  # C_t, learned tokens of a text
    layers: Annotated[int, Within(1, 100)] = 4
    heads: int = 8
    interaction: Literal["mean", "weighted"] = "weighted"
    include_special: bool = True
    matching: Matching | None = None
    divergence: bool = True  # whether Gaussians that are matched are also held near a prior (KL)
    spread: Literal["learned", "oracle"] = "learned"
    samples: Annotated[int, Within(1, 100)] = 7  # K, embeddings drawn of each item in training
    alpha: Annotated[float, Within(0, 1000)] = 1e-2
    beta: Annotated[float, Within(0, 1000)] = 1e-4
    frames: Annotated[int, Within(1, 100_000)] = 12
    longest: Annotated[int, Within(1, 100_000)] = 77
    scale: Scale = None

    @property
    def learned(self) -> tuple[int, int]:
        """Learned tokens of a text and of a video."""
        if not self.adaptation:
            return 0, 0
        own = 2 if self.mode == "released" else 3
        return self.text_tokens, own if self.video_tokens is None else self.video_tokens

    @property
    def matched_by(self) -> Matching:
        """The loss of the samples."""
        return self.matching or ("mil_nce_averaged" if self.mode == "released" else "mil_nce")

    @property
    def branch(self) -> bool:
        """Whether Gaussians are trained; a divergence alone would hold nothing but noise."""
        return self.matched_by != "none"

    @property
    def trains_spread(self) -> bool:
        """Whether the spreads of Gaussians are trained, and not their means alone."""
        return self.matched_by not in ("none", "means") and self.spread == "learned"


class Uatvr(System):
    """UATVR."""

    Config = UatvrConfig

    frozen = "embeddings"
    vector_code = "whole"  # of words or frames, without the first and without learned tokens

    def __init__(self, config: UatvrConfig, width: int) -> None:
        super().__init__(config.scale)
        self.config = config
        self.trains_spread = config.trains_spread
        self.printed_mode = config.mode != "well_posed"
        self.weights = {
            "similarity": 1.0,
            "matching": config.alpha,
            "divergence": config.beta,
        }
        blocks = Transformer(width, config.layers, config.heads, eps=1e-12)
        self.words, self.frames = (
            SequentialTransformer(blocks, width, config.longest, extra=extra)
            for extra in config.learned
        )
        # Only the frames' side owns the blocks: a file of weights holds no tensor twice.
        del self.words.transformer
        object.__setattr__(self.words, "transformer", blocks)
        self.word_worth, self.frame_worth = _worth(width), _worth(width)
        self.prior = 0.0 if self.printed_mode else -math.log(width)
        self.text_head, self.video_head = (
            PieGaussianHead(width, init_log_var=self.prior, xavier=False) for _ in range(2)
        )
        self.log_match_scale = nn.Parameter(torch.tensor(math.log(_SCALE)))
        self.match = nn.Parameter(torch.tensor([_START, _START]))
        self.reads_truth = config.spread == "oracle"
        soft, means = config.matched_by == "soft_contrastive", config.matched_by == "means"
        for worth in (self.word_worth, self.frame_worth):
            worth.requires_grad_(config.interaction == "weighted")
        for head in (self.text_head, self.video_head):
            head.requires_grad_(config.branch)
            head.deviation.requires_grad_(config.trains_spread)
        self.match.requires_grad_(soft)
        self.log_match_scale.requires_grad_(
            config.branch and not soft and (means or not self.printed_mode)
        )

    def start_from_clip(self, text: Mapping[str, Tensor]) -> None:
        """Start the blocks, and the places of frames and learned tokens of videos, from CLIP."""
        start_from_clip(self.frames, text)
        if self.frames.extra is not None:
            places_from_clip(self.frames.extra, text, first=self.config.frames)

    def after_step(self) -> None:
        """Hold both scales at 100 or below."""
        super().after_step()
        with torch.no_grad():
            self.log_match_scale.clamp_(max=math.log(_LARGEST_SCALE))

    def texts(self, tokens: TextTokens) -> Codes:
        """Unit words and learned tokens, their weights, and the mean and Gaussian of the words."""
        tokens.require_words("UATVR")
        rest = tokens.without_first
        seen = unit(self.words(tokens.words, tokens.mask))
        mask = self.words.cover(tokens.mask if self.config.include_special else rest)
        own = seen[:, : rest.shape[1]]
        codes = {"words": seen, "mask": mask, "whole": mean_of_units(own, rest)}
        if self.config.branch:
            codes |= self.text_head(codes["whole"], own, tokens.mask)._asdict()
        return codes | self._weights(self.word_worth, seen, mask)

    def videos(self, tokens: VideoTokens) -> Codes:
        """Frames and learned tokens at unit length, their weights; mean and Gaussian of frames."""
        seen = unit(self.frames(tokens.frames, tokens.mask))
        mask = self.frames.cover(tokens.mask)
        own = seen[:, : tokens.mask.shape[1]]
        codes = {"frames": seen, "mask": mask, "whole": mean_of_units(own, tokens.mask)}
        if self.config.branch:
            codes |= self.video_head(codes["whole"], own, tokens.mask)._asdict()
        return codes | self._weights(self.frame_worth, seen, mask)

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """How well tokens find each other, in [-1, 1]."""
        sides = texts["words"], videos["frames"], texts["mask"], videos["mask"]
        return token_interaction(*sides, texts.get("weights"), videos.get("weights"))

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The loss of the tokens' similarities and, where they are on, of samples and Gaussians."""
        directions = 2 if self.config.mode == "paper" else 1  # eq. 6 is their sum
        similarity = info_nce(self.similarity(texts, videos), self.scale, eta=eta)
        found = {"similarity": directions * similarity}
        if not self.config.branch:
            return found
        one, other = gaussian_of(texts), gaussian_of(videos)
        if self.config.matched_by == "means":
            cosines = one.mean @ other.mean.T
            return found | {"matching": info_nce(cosines, self.log_match_scale.exp(), eta=eta)}
        if self.reads_truth:
            one, other = known_spreads(texts, one, other)
        count = self.config.samples
        drawn = draw_samples(one, count, generator), draw_samples(other, count, generator)
        found["matching"] = self._matching(*drawn, eta)
        if self.config.divergence and self.trains_spread:
            far = self._divergence(one, drawn[0]) + self._divergence(other, drawn[1])
            found["divergence"] = far.sum() if self.printed_mode else far.mean()
        return found

    def measures(self, texts: Codes, videos: Codes) -> dict[str, Float[Tensor, "*rows"]]:
        """Deviation of each text and video, the geometric mean over dimensions (figure 3)."""
        if not self.trains_spread:
            return {}
        sides = ("text", texts), ("video", videos)
        return {f"{side} deviation": (c["log_var"].mean(-1) / 2).exp() for side, c in sides}

    def _weights(self, scorer: nn.Module, tokens: Tokens, mask: Mask) -> Codes:
        """What each token counts in the score, with sum 1 over an item, if they differ."""
        weighted = self.config.interaction == "weighted"
        return {"weights": token_shares(scorer, tokens, mask)} if weighted else {}

    def _matching(
        self, texts: Samples, videos: Float[Tensor, "items m dim"], eta: Eta = None
    ) -> Scalar:
        if self.config.matched_by == "soft_contrastive":
            sides = (texts, videos) if self.printed_mode else (unit(texts), unit(videos))
            return soft_contrastive(*sides, self.match[0].clamp(min=1e-3), self.match[1], eta=eta)
        average: Average = "inside" if self.config.matched_by == "mil_nce" else "outside"
        if self.printed_mode:
            return mil_nce(torch.einsum("ikd,jld->ikjl", texts, videos), 1.0, average, eta)
        return mil_nce(sample_cosines(texts, videos), self.log_match_scale.exp(), average, eta)

    def _divergence(self, gaussian: Gaussian, drawn: Samples) -> Float[Tensor, " items"]:
        """How far each Gaussian is from the prior."""
        if self.config.mode == "released":  # the deviation's logarithm for that of the variance
            gaussian = Gaussian(drawn.mean(1), gaussian.log_var / 2)
        return kl_to_prior(gaussian, self.prior)


def _worth(width: int) -> nn.Sequential:
    """Says what a token counts."""
    return nn.Sequential(linear(width, width), nn.ReLU(), linear(width, 1))
