"""What DVTR learns the uncertainty of a pair from, which weighs it as a negative.

The weights themselves are in `sureshot.models.losses.contrastive`. An *oracle* reads the truth of a
batch instead, which only a synthetic dataset has, as two more codes of texts: if even that moves no
measure, that the learned mechanism moves none says nothing.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from sureshot.errors import SureshotError
from sureshot.models.layers.gaussian import Gaussian, kl_between, wasserstein2
from sureshot.models.losses.contrastive import matched_pairs
from sureshot.models.losses.uncertainty import mean_of_others
from sureshot.models.scoring import wasserstein_distance
from sureshot.models.shapes import Samples, Scalar, Square

Divergence = Literal["wasserstein", "kl"]

_FAR = 2.0  # squared distance of orthogonal unit means, at which unmatched pairs are left alone


def alignment_as_printed(
    texts: Gaussian,
    videos: Gaussian,
    text_samples: Samples,
    video_samples: Float[Tensor, "items m dim"],
    divergence: Divergence = "wasserstein",
) -> Scalar:
    r"""Pulls the Gaussians of matched pairs together, by their samples and as distributions.

    .. math:: L_U = -\frac{1}{K^2} \sum_{i,j} v_i^\top t_j + W(z_t, z_v)

    The mean over samples of an inner product is the inner product of the sample means, and in
    expectation that of the Gaussians' means: K changes how noisy the term is and nothing else.
    In place of W there may be KL(texts || videos).

    References:
        DVTR eq. 8, from eq. 7, with W of DVTR eq. 9 in its place.

    Differs:
        The logarithm of the inner product, which the derivation has and its last line drops, is not
        a number for half of all random pairs.
    """
    together = (text_samples.mean(1) * video_samples.mean(1)).sum(-1)
    return (_divergence(texts, videos, divergence) - together).mean()


def alignment(texts: Gaussian, videos: Gaussian, divergence: Divergence = "wasserstein") -> Scalar:
    r"""Pulls the Gaussians of matched pairs together and holds the others apart.

    .. math:: L_U = \frac1B \sum_i \big(W_{ii} - \mu_i^\top \mu'_i\big)
        + \frac{1}{B (B - 1)} \sum_{i \ne j} [2 - W_{ij}]_+

    with unit means, of which orthogonal ones are 2 apart. In place of the first W there may be
    KL(texts || videos).

    Differs:
        In print the positives are alone, so that equal Gaussians for all items are best; samples
        stand for the means, see `alignment_as_printed`.
    """
    together = (texts.mean * videos.mean).sum(-1)
    near = (_FAR - wasserstein_distance(texts, videos)).clamp(min=0)
    return (_divergence(texts, videos, divergence) - together).mean() + mean_of_others(near)


def matching_cost_as_printed(eta: Float[Tensor, " items"]) -> Scalar:
    """Minus the mean eta of the matched pairs, a sigmoid of minus a linear function of W.

    References:
        DVTR eq. 11; eta is that of DVTR eq. 10.

    Differs:
        Nothing here knows a negative: the least cost is at eta = 1 for *every* distance, where the
        debiased losses are the ordinary ones. `matching_cost` is what can be learned from.
    """
    return -eta.mean()


def matching_cost(logit: Square, smoothing: float = 0.1) -> Scalar:
    r"""Cross-entropy of telling matched pairs (eta = 0) from the others of a batch (eta = 1).

    The mean over matched pairs plus that over the others, which a batch of one does not have:
    neither the batch size nor the many negatives set the scale.

    Args:
        smoothing: share s of doubt in the labels, which are s / 2 and 1 - s / 2: among the pairs
            called negative there are the soft positives that eta is to find, so none of them may
            be sure.
    """
    label = torch.where(matched_pairs(logit), smoothing / 2, 1 - smoothing / 2).to(logit)
    cost = functional.binary_cross_entropy_with_logits(logit, label, reduction="none")
    return cost.diagonal().mean() + mean_of_others(cost)


def shuffled(eta: Square, generator: torch.Generator) -> Square:
    """The same numbers off the diagonal, dealt to other pairs: the control of what they know."""
    items, others = len(eta), ~matched_pairs(eta)
    order = torch.randperm(items * (items - 1), generator=generator).to(eta.device)
    return eta.masked_scatter(others, eta[others][order])


def _divergence(texts: Gaussian, videos: Gaussian, kind: Divergence) -> Float[Tensor, " items"]:
    return wasserstein2(texts, videos) if kind == "wasserstein" else kl_between(texts, videos)


FITS, AMBIGUITY = "known fits", "known ambiguity"  # codes of texts, in training only
_LEAST = 0.02  # total variance of an item that is not ambiguous; compare a mean of length 1
_SPREAD = 2.0  # of a text that fits every video


def known_eta(texts: dict[str, Tensor]) -> Square:
    """How much each pair of a batch counts as a negative: 0 where the caption fits, else 1."""
    return 1 - _known(texts, FITS).float()


def known_spreads(
    texts: dict[str, Tensor], text: Gaussian, video: Gaussian
) -> tuple[Gaussian, Gaussian]:
    """Gaussians of texts and videos with the spread that is known in place of the learned one.

    The total variance of a text goes with its ambiguity: the logarithm of the number of videos that
    fit, over that of all videos. A video is not ambiguous.
    """
    width = text.mean.shape[-1]
    total = (_SPREAD * _known(texts, AMBIGUITY)).clamp(min=_LEAST)
    log_var = (total / width).log()[:, None].expand_as(text.mean)
    still = torch.full_like(video.mean, math.log(_LEAST / width))
    return text._replace(log_var=log_var), video._replace(log_var=still)


def _known(texts: dict[str, Tensor], name: str) -> Tensor:
    if name not in texts:
        raise SureshotError(
            'An oracle reads the truth while it trains, and only dataset = "synthetic" has it; '
            "train on a synthetic dataset in one process and without training.micro_batch."
        )
    return texts[name]
