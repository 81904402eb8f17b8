r"""DUQ, Dual Uncertainty Quantification (Liu et al., IJCAI 2025).

Two branches compare a text and a video. The *feature* branch gives the cosine s of X-Pool and asks
of the whole matrix of a batch that its evidence be the identity. The *distribution* branch makes a
Gaussian of each item from its tokens and compares samples of both, giving a distance d. Training
minimises

.. math:: L = L_S + L_S^U + \alpha (L_D + L_D^U) + \beta L_{KL}

``mode = "paper"`` follows the print; ``"well_posed"``, the default, corrects what cannot work so.

Differs:
    In both modes a score never sees a label. The paper's distance takes the minimum over samples
    for matched pairs and the maximum for others; at test that is unknown, and random features
    would be retrieved perfectly. ``paper`` therefore uses it in the training loss only, and scores
    by the expected distance, as :math:`(1 - d/2)\,s`. The printed :math:`(1 - d)\,s` turns a
    ranking round where a model puts all pairs further apart than 1, and nothing in the printed
    losses keeps it from that: one of ten seeds did (results/limits.md). `Duq.printed` has it.

    In both modes the score of a pair does not depend on the rest of the gallery: `Duq.similarity`
    leaves out the factors of `rerank_as_printed`, `Duq.printed` has them.

    In both modes a video's Gaussian is made of its own frames, not pooled by the text at the same
    place of the block as in the first released code, and nothing is drawn but in training.

    ``well_posed`` scores by the sum :math:`s + w\,(1 - d)` instead of the product, in which two
    rejections make an acceptance; trains on one rule of distance for all pairs, on a logarithm with
    its minus, on labels whose sum fits the evidence, on evidence of scaled similarities, on noise
    no longer than the mean, and keeps the prior at that size.

    The released code is another model, without any of the paper's distance losses: see
    `sureshot.models.systems.duq_released`.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sureshot.models.layers.gaussian import (
    Aggregation,
    Branch,
    Gaussian,
    draw_samples,
    gaussian_of,
    kl_to_prior,
    shrunk_mean,
)
from sureshot.models.layers.pooling import masked_mean, unit
from sureshot.models.layers.transformer import draw_as_torch
from sureshot.models.losses.contrastive import Eta, info_nce, matched_pairs, mil_nce, weigh
from sureshot.models.losses.debiased import known_spreads
from sureshot.models.losses.uncertainty import (
    EvidenceKind,
    Labels,
    distance_loss,
    distance_loss_as_printed,
    evidence,
    evidential,
    evidential_distance,
    mil_margin,
    opinion,
    soft_contrastive,
    uniformity,
)
from sureshot.models.scoring import (
    kl_distance,
    labelled_distance,
    rerank_as_printed,
    sample_cosines,
    sample_distance,
    wasserstein_distance,
)
from sureshot.models.shapes import Losses, Rng, Samples, Scalar, Scores, Square
from sureshot.models.systems.base import Codes, Scale, SystemConfig, TextTokens, VideoTokens
from sureshot.models.systems.xpool import PooledSimilarity, PooledSystem, Pooling
from sureshot.settings import Within

Distance = Literal[
    "boundary",
    "mean",
    "min",
    "means",
    "monte_carlo",
    "mil",
    "uniformity",
    "kl",
    "wasserstein",
    "uda",
]
_CLOSED = ("means", "kl", "wasserstein")  # distances that need no samples
_UNIFORMITY = 10.0  # weight of the uniformity loss next to the distance's own, as in PCME
_PRINTED_SCALE = 100.0  # lambda of the printed distance loss, and CLIP's scale
_START = 5.0  # first steepness and shift of the soft contrastive loss, as in UATVR's code


@dataclass(frozen=True, slots=True)
class DuqConfig(SystemConfig):
    """Settings of DUQ.

    Attributes:
        pooling: how the feature branch pools frames (supplement, table 3).
        dropout: share of the cross-attention pooling's last layer that training drops.
        distance: how Gaussians are compared in training (supplement, table 6); None is the
            mode's own, ``mean`` over all pairs of samples in well-posed mode and ``boundary`` as
            printed. ``means`` compares means only and leaves spreads alone, in training and in the
            score: with ``distance_evidence`` off, a control with as many parameters.
        spread: how wide items are: as ``learned``, or in training as an ``oracle`` reads them, see
            `sureshot.models.losses.debiased`; its score compares means.
        aggregation: ``attention`` over the tokens, or ``pie`` as in the first released code.
    """

    mode: Literal["well_posed", "paper"] = "well_posed"
    pooling: Pooling = "cross_attention"
    dropout: Annotated[float, Within(0, 0.99)] = 0.3
    similarity_evidence: bool = True  # whether L_S^U is on
    distance: Distance | None = None
    distance_loss: bool = True  # whether L_D is on
    distance_evidence: bool = True  # whether L_D^U is on
    spread: Literal["learned", "oracle"] = "learned"
    samples: Annotated[int, Within(1, 100)] = 7  # K, embeddings drawn of each item in training
    evidence: EvidenceKind = "relu"  # function from similarity to evidence (supplement, table 4)
    kappa: Annotated[float | None, Within(1e-6, 1e6)] = None
    aggregation: Aggregation = "attention"
    alpha: Annotated[float, Within(0, 1000)] = 0.1
    beta: Annotated[float, Within(0, 1000)] = 1e-4
    closeness: Annotated[float, Within(0, 1000)] = 0.5  # w, weight of 1 - d in a well-posed score
    gamma: Annotated[float, Within(0, 1000)] = 0.1  # both gammas of the printed re-ranking
    scale: Scale = None

    @property
    def branch(self) -> bool:
        """Whether the distribution branch is trained, and so takes part in the score."""
        return self.distance_loss or self.distance_evidence

    @property
    def trains_spread(self) -> bool:
        """Whether spreads are trained, and so take part in the score."""
        return self.branch and self.distance != "means" and self.spread == "learned"


class Duq(PooledSystem):
    """DUQ."""

    Config = DuqConfig

    frozen = "patches"

    def __init__(self, config: DuqConfig, width: int) -> None:
        super().__init__(config.scale)
        self.config = config
        self.trains_spread = config.trains_spread
        self.printed_mode = config.mode == "paper"
        own: Distance = "boundary" if self.printed_mode else "mean"
        self.distance: Distance = config.distance or own
        self.kappa = config.kappa or (1.0 if self.printed_mode else config.scale or _PRINTED_SCALE)
        self.weights = {
            "similarity": 1.0,
            "similarity_evidence": 1.0,
            "distance": config.alpha,
            "distance_evidence": config.alpha,
            "divergence": config.beta,
        }
        self.pooled = PooledSimilarity(config.pooling, width, dropout=config.dropout)
        self.offset = nn.Parameter(torch.zeros(2))
        self.match = nn.Parameter(torch.tensor([_START, _START]))
        self.reads_truth = config.spread == "oracle"
        self.prior = 0.0 if self.printed_mode else -math.log(width)
        self.text_branch, self.video_branch = (
            Branch(width, config.aggregation, literal=self.printed_mode) for _ in range(2)
        )
        for branch in (self.text_branch, self.video_branch):
            if self.printed_mode:  # as the released code leaves its heads
                draw_as_torch(branch)
            branch.requires_grad_(config.branch)
            branch.head.spread.requires_grad_(config.trains_spread)
        self.match.requires_grad_(self.distance == "monte_carlo" and config.distance_loss)
        self.offset.requires_grad_(
            not self.printed_mode and (config.similarity_evidence or config.distance_evidence)
        )

    def texts(self, tokens: TextTokens) -> Codes:
        """The sentence and, with a branch, the Gaussian of the sentence and its words."""
        if not self.config.branch:
            return {"sentence": tokens.sentence}
        gaussian = self.text_branch(tokens.sentence, tokens.words, tokens.mask)
        return {"sentence": tokens.sentence, **gaussian._asdict()}

    def videos(self, tokens: VideoTokens) -> Codes:
        """The frames and, with a branch, the Gaussian of the frames and their mean."""
        codes = self.pooled.videos(tokens)
        if not self.config.branch:
            return codes
        # As long as frames are, not at unit length; so is a sentence next to its words.
        whole = masked_mean(tokens.frames, tokens.mask)
        return codes | self.video_branch(whole, tokens.frames, tokens.mask)._asdict()

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Score of every pair: s + w (1 - d), in paper mode (1 - d/2) s, without a branch s."""
        feature = self.feature(texts, videos)
        if not self.config.branch:
            return feature
        distance = self.expected(texts, videos)
        if self.printed_mode:
            return (1 - distance / 2) * feature
        return feature + self.config.closeness * (1 - distance)

    def feature(self, texts: Codes, videos: Codes) -> Scores:
        """s, the cosine of the feature branch, in [-1, 1]."""
        return self.pooled(texts["sentence"], videos)

    def expected(self, texts: Codes, videos: Codes) -> Scores:
        r"""Distance at test: that of the samples in expectation, without drawing any.

        .. math:: d = 1 - \frac{\mu_t^\top \mu_v}
            {\sqrt{\lVert\mu_t\rVert^2 + \mathrm{tr}\,\Sigma_t}
             \sqrt{\lVert\mu_v\rVert^2 + \mathrm{tr}\,\Sigma_v}}

        The samples' inner product has just this mean, and in hundreds of dimensions their lengths
        hardly vary; so an uncertain item is at distance 1 from everything. With ``means`` spreads
        are not trained, and count as none.
        """
        if self.distance == "means" or self.config.spread == "oracle":
            return 1 - unit(texts["mean"]) @ unit(videos["mean"]).T
        return 1 - shrunk_mean(gaussian_of(texts)) @ shrunk_mean(gaussian_of(videos)).T

    def printed(self, texts: Codes, videos: Codes, gamma: float | None = None) -> Scores:
        """The re-ranked score as printed, its uncertainties taken over all ``videos``."""
        feature = self.feature(texts, videos)
        gamma = self.config.gamma if gamma is None else gamma
        seen = opinion(self._clues(feature)).vacuity
        distance, apart = torch.zeros_like(feature), torch.zeros_like(seen)
        if self.config.branch:
            distance = self.expected(texts, videos)
            apart = opinion(self._far_clues(distance)).vacuity
        return rerank_as_printed(feature, distance, seen, apart, gamma)

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The losses of the similarities and, where they are on, of evidence and distances."""
        config = self.config
        feature = self.feature(texts, videos)
        found = {"similarity": info_nce(feature, self.scale, eta=eta)}
        total: Literal["sum", "mean"] = "sum" if self.printed_mode else "mean"
        if config.similarity_evidence:
            found["similarity_evidence"] = evidential(weigh(self._clues(feature), eta), total=total)
        if not config.branch:
            return found
        one, other = gaussian_of(texts), gaussian_of(videos)
        if self.reads_truth:
            one, other = known_spreads(texts, one, other)
        drawn = self._drawn(one, generator), self._drawn(other, generator)
        apart = self._distances(one, other, *drawn)
        if config.distance_loss:
            found["distance"] = self._distance_loss(apart, *drawn, eta)
        if config.distance_evidence:
            labels: Labels = "unmatched_sum" if self.printed_mode else "matched"
            how = config.evidence, self.kappa, self.offset[1]
            found["distance_evidence"] = evidential_distance(apart, labels, *how, total, eta)
        if self.trains_spread:
            divergence = kl_to_prior(one, self.prior) + kl_to_prior(other, self.prior)
            found["divergence"] = divergence.mean()
        return found

    def matrices(self, texts: Codes, videos: Codes) -> dict[str, Scores]:
        """Cosine s, belief in each match among ``videos``, distance, and the score as printed."""
        feature = self.feature(texts, videos)
        found = {"similarity": feature, "belief": opinion(self._clues(feature)).belief}
        if self.config.branch:
            found["distance"] = self.expected(texts, videos)
        return found | {"printed score": self.printed(texts, videos)}

    def measures(self, texts: Codes, videos: Codes) -> dict[str, Float[Tensor, "*rows"]]:
        """Vacuities of texts and of videos over each other, and the log of each total variance."""
        clues = self._clues(self.feature(texts, videos))
        found = {"text vacuity": opinion(clues).vacuity, "video vacuity": opinion(clues.T).vacuity}
        if self.config.branch:
            apart = self._far_clues(self.expected(texts, videos))
            found["text distance vacuity"] = opinion(apart).vacuity
            found["video distance vacuity"] = opinion(apart.T).vacuity
        if self.trains_spread:
            found["text spread"] = texts["log_var"].logsumexp(-1)
            found["video spread"] = videos["log_var"].logsumexp(-1)
        return found

    def _clues(self, feature: Scores) -> Scores:
        """Evidence of a match, from the similarities."""
        return evidence(feature, self.config.evidence, self.kappa, self.offset[0])

    def _far_clues(self, distance: Scores) -> Scores:
        """Evidence from the distances: that a pair does not match as printed, else that it does."""
        clue = distance if self.printed_mode else 1 - distance
        return evidence(clue, self.config.evidence, self.kappa, self.offset[1])

    def _drawn(self, gaussian: Gaussian, generator: Rng) -> Samples:
        """K samples of each item; of a distance in closed form, the mean alone."""
        if self.distance in _CLOSED:
            return gaussian.mean[:, None]
        return draw_samples(gaussian, self.config.samples, generator)

    def _distances(
        self, text: Gaussian, video: Gaussian, texts: Samples, videos: Samples
    ) -> Square:
        """The distances of a batch by the rule that is trained."""
        match self.distance:
            case "boundary":
                return labelled_distance(texts, videos, matched_pairs(texts))
            case "mean" | "monte_carlo" | "uniformity" | "uda":
                return sample_distance(texts, videos, "mean")
            case "min" | "mil":
                return sample_distance(texts, videos, "min")
            case "means":
                return 1 - unit(text.mean) @ unit(video.mean).T
            # Scaled so that lambda means what it does for cosines: two Gaussians as wide as the
            # prior, whose means are orthogonal unit vectors, are 1 apart.
            case "kl":
                return kl_distance(text, video) / text.mean.shape[1]
            case "wasserstein":
                return wasserstein_distance(text, video) / 2

    def _distance_loss(self, apart: Square, texts: Samples, videos: Samples, eta: Eta) -> Scalar:
        match self.distance:
            case "monte_carlo":
                match = self.match[0].clamp(min=1e-3), self.match[1]
                return soft_contrastive(unit(texts), unit(videos), *match, eta=eta)
            case "mil":
                return mil_margin(apart, eta=eta)
            case "uda":
                return mil_nce(sample_cosines(texts, videos), self.scale.detach(), eta=eta)
        if self.printed_mode:
            loss = distance_loss_as_printed(apart, _PRINTED_SCALE, eta)
        else:
            loss = distance_loss(apart, self.scale, eta)
        if self.distance == "uniformity":
            every = unit(torch.cat([texts.flatten(0, 1), videos.flatten(0, 1)]))
            loss = loss + _UNIFORMITY * uniformity(every)
        return loss
