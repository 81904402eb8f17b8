r"""PCME, Probabilistic Cross-Modal Embeddings (Chun et al., CVPR 2021).

A text and a video are Gaussians. A sample of the one and a sample of the other match with a
probability that falls with their distance, and a pair matches as often as its samples do:

.. math:: p(m \mid z_t, z_v) = \sigma(-a \lVert z_t - z_v \rVert + b), \qquad
    p(m \mid t, v) \approx \frac{1}{K^2} \sum_{k,k'} p(m \mid z_t^k, z_v^{k'})

Training asks of every pair of a batch whether it matches, and takes the logarithm of the answer's
probability; two regularisers keep the Gaussians near a prior and the samples apart.

Scores are drawn from nothing. The default, ``distance``, is
:math:`1 - \tfrac12 \mathbb{E} \lVert z_t - z_v \rVert^2`: in many dimensions the distance of two
samples hardly varies, and pairs are then ranked as by the match probability they were trained for,
spreads included. ``means`` is the cosine of the means, which is what the released code's own
evaluation, a sum over inner products of samples, comes to in expectation; it leaves spreads out.
``probability`` is the printed average over samples, from noise that was drawn once and belongs to
the model, so that it does not depend on what else is scored. It costs K² distances a pair.

Differs:
    ``well_posed`` begins with noise as long as the mean and keeps the prior at that size. In
    ``paper`` mode both are N(0, I), as printed: next to a mean of length one a sample of 512
    dimensions is then noise.

    Spreads mean the same in samples and divergence. The released code takes one tensor for the
    logarithm of the deviation in the one and of the variance in the other, and the samples' average
    for the mean.

    The steepness a is learned by its logarithm and cannot change sign.

    The tokens are those of a text and of a video's frames, or with ``experts`` rows that are mapped
    as HiT maps them; an image has cells in their place.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sureshot.models.encoders.experts import ExpertSizes
from sureshot.models.layers.gaussian import (
    Gaussian,
    PieGaussianHead,
    draw_noise,
    draw_samples,
    gaussian_of,
    kl_to_prior,
    sample,
)
from sureshot.models.layers.pooling import masked_mean
from sureshot.models.losses.contrastive import Eta
from sureshot.models.losses.uncertainty import Weighing, match_cost, soft_contrastive, uniformity
from sureshot.models.scoring import expected_distance
from sureshot.models.shapes import Losses, Mask, Rng, Scores, Tokens
from sureshot.models.systems.base import Codes, SystemConfig, TextTokens, VideoTokens
from sureshot.models.systems.hit import ExpertSystem
from sureshot.settings import Within

Score = Literal["distance", "means", "probability"]
_SEED = 210105068  # of fixed noise, the paper's number; 0 may be that of weights or of data
_BLOCK = 2**22  # distances of samples held at once by the match probability


@dataclass(frozen=True, slots=True)
class PcmeConfig(SystemConfig):
    """Settings of PCME.

    Attributes:
        mode: ``well_posed`` or ``paper``: how wide Gaussians begin, and their prior.
        score: ``distance``, ``means`` or ``probability``, all without drawing anything.
        samples: K, embeddings of an item; drawn in training, fixed in the match probability.
        experts: names of extracted features that are read in place of the frames; none are the
            frames.
        weighing: the ``sum`` of all pairs as in the released code, or ``balanced`` between matched
            pairs and others.
        uniformity: weight of the loss that spreads samples; 10 where the released code has it on.
            That goes with ``sum``; with ``balanced`` it is most of the loss.
        scale: first value of a, the steepness in the distance.
        shift: first value of b; a pair of samples matches with probability 1/2 at b / a.
    """

    mode: Literal["well_posed", "paper"] = "well_posed"
    score: Score = "distance"
    samples: Annotated[int, Within(1, 100)] = 7
    experts: tuple[str, ...] = ()
    doubled: bool = False  # the sigmoid of the released code, that of twice the logit
    weighing: Weighing = "sum"
    uniformity: Annotated[float, Within(0, 1000)] = 0.0
    beta: Annotated[float, Within(0, 1000)] = 1e-5  # weight of the divergence from the prior
    scale: Annotated[float, Within(0.01, 100)] = 15.0
    shift: Annotated[float, Within(-1000, 1000)] = 15.0


class Pcme(ExpertSystem):
    """PCME."""

    Config = PcmeConfig

    vector_code = "mean"
    has_scale = False  # a is a steepness, and no softmax is taken

    text_noise: Tensor
    video_noise: Tensor

    config: PcmeConfig

    def __init__(self, config: PcmeConfig, width: int, experts: ExpertSizes = ()) -> None:
        super().__init__(config, width, experts)
        self.weights = {
            "similarity": 1.0,
            "uniformity": config.uniformity,
            "divergence": config.beta,
        }
        self.prior = 0.0 if config.mode == "paper" else -math.log(width)
        self.text_head, self.video_head = (
            PieGaussianHead(width, init_log_var=self.prior) for _ in range(2)
        )
        self.shift = nn.Parameter(torch.tensor(config.shift))
        if config.score == "probability":
            draw = torch.Generator().manual_seed(_SEED)
            for side in ("text", "video"):
                noise = draw_noise((config.samples, width), draw)
                self.register_buffer(f"{side}_noise", _centred(noise))

    def texts(self, tokens: TextTokens) -> Codes:
        """The Gaussian of the sentence and its words."""
        tokens.require_words("PCME")
        return self.text_head(tokens.sentence, tokens.words, tokens.mask)._asdict()

    def videos(self, tokens: VideoTokens) -> Codes:
        """The Gaussian of the frames, or of the rows of experts, and their mean."""
        seen, mask = self.seen(tokens)
        return self.video_head(masked_mean(seen, mask), seen, mask)._asdict()

    def video_tokens(self, tokens: VideoTokens, codes: Codes) -> tuple[Tokens, Mask]:
        """Frames or rows of experts."""
        return self.seen(tokens)

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Score of every pair: at most 1, or the logarithm of the match probability, at most 0."""
        sides = gaussian_of(texts), gaussian_of(videos)
        match self.config.score:
            case "distance":
                return 1 - expected_distance(*sides) / 2
            case "means":
                return texts["mean"] @ videos["mean"].T
            case "probability":
                return self._log_probability(*sides)

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The soft contrastive loss of samples and, where they have weight, the regularisers."""
        sides, config = (gaussian_of(texts), gaussian_of(videos)), self.config
        drawn = tuple(draw_samples(side, config.samples, generator) for side in sides)
        match = self.scale, self.shift, config.doubled, config.weighing, eta
        found = {"similarity": soft_contrastive(drawn[0], drawn[1], *match)}
        if config.uniformity:
            found["uniformity"] = uniformity(torch.cat(drawn).flatten(0, 1))
        if config.beta:
            one, other = (kl_to_prior(side, self.prior) for side in sides)
            found["divergence"] = (one + other).mean()
        return found

    def measures(self, texts: Codes, videos: Codes) -> dict[str, Float[Tensor, "*rows"]]:
        """Of each item the geometric mean of its deviations, and the log of its total variance.

        The former is the uncertainty of the paper, section 4.4.
        """
        found = {}
        for side, codes in (("text", texts), ("video", videos)):
            found[f"{side} deviation"] = (codes["log_var"].mean(-1) / 2).exp()
            found[f"{side} spread"] = codes["log_var"].logsumexp(-1)
        return found

    def _log_probability(self, texts: Gaussian, videos: Gaussian) -> Scores:
        """Its logarithm, which tells apart pairs that are all but sure not to match."""
        one, other = (
            sample(gaussian, noise.expand(len(gaussian.mean), *noise.shape))
            for gaussian, noise in ((texts, self.text_noise), (videos, self.video_noise))
        )
        size = max(1, _BLOCK // (self.config.samples**2 * max(len(other), 1)))
        matched = torch.ones(len(one), len(other), dtype=torch.bool, device=one.device)
        how = self.scale, self.shift, self.config.doubled
        parts = zip(torch.split(one, size), torch.split(matched, size), strict=True)
        return torch.cat([-match_cost(part, other, alike, *how) for part, alike in parts])


def _centred(noise: Float[Tensor, "k dim"]) -> Float[Tensor, "k dim"]:
    """Noise whose average is zero, so that the samples of an item have its mean, widened for it."""
    count = len(noise)
    return (noise - noise.mean(0)) * math.sqrt(count / max(count - 1, 1))
