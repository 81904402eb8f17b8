"""Losses on sets of samples that the probabilistic distances are compared with."""

import math
from typing import Literal, assert_never

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from sureshot.models.losses.negatives import Eta, weigh

Weighing = Literal["balanced", "sum"]
Hardness = Literal["all", "hardest"]

_SMALL = 1e-6  # under the root of a squared distance: the root has no gradient at 0


def match_cost(
    texts: Float[Tensor, "texts k dim"],
    videos: Float[Tensor, "videos m dim"],
    matched: Bool[Tensor, "texts videos"],
    steepness: float | Float[Tensor, ""],
    shift: float | Float[Tensor, ""],
    *,
    doubled: bool = False,
) -> Float[Tensor, "texts videos"]:
    r"""Negative log-likelihood of each pair's label, the probability averaged over the samples.

    .. math:: -\log \frac{1}{KM} \sum_{k,m} p_{km} \text{ if matched, else }
        -\log \frac{1}{KM} \sum_{k,m} (1 - p_{km}), \quad
        p_{km} = \sigma(-a \lVert z_t^k - z_v^m \rVert + b)

    Computed by logarithms throughout, so a probability near 0 or 1 keeps its digits.

    Args:
        texts: samples, used as they are.
        videos: samples.
        matched: the labels.
        steepness: a, above 0.
        shift: b; the probability is 1/2 at the distance b / a.
        doubled: :math:`\sigma(2x)` in place of :math:`\sigma(x)`.

    Returns:
        The cost of each pair, at least 0. The largest tensor on the way has texts x K x videos x M
        numbers.

    References:
        DUQ, supplement, eq. D; PCME, Chun et al. 2021, section 3.2.

    Differs:
        The released code of PCME writes the sigmoid as e^x / (e^x + e^-x), which is that of 2 x
        (``doubled=True``), and overflows for large x. As there, 1e-6 stands under the root.
    """
    flat = texts.flatten(0, 1), videos.flatten(0, 1)
    # Not by a matrix product: it loses the digits of small distances, which matter most.
    apart = torch.cdist(*flat, compute_mode="donot_use_mm_for_euclid_dist")
    logit = shift - steepness * (apart.square() + _SMALL).sqrt()
    logit = (2 * logit if doubled else logit).reshape(*texts.shape[:2], *videos.shape[:2])
    signed = torch.where(matched[:, None, :, None], logit, -logit)
    return math.log(texts.shape[1] * videos.shape[1]) - logsigmoid(signed).logsumexp((1, 3))


def soft_contrastive(
    texts: Float[Tensor, "items k dim"],
    videos: Float[Tensor, "items m dim"],
    steepness: float | Float[Tensor, ""],
    shift: float | Float[Tensor, ""],
    *,
    doubled: bool = False,
    weighing: Weighing = "balanced",
    eta: Eta = None,
) -> Float[Tensor, ""]:
    """Total of `match_cost` over the batch, matched on the diagonal.

    Args:
        texts: samples, used as they are.
        videos: samples.
        steepness: a, above 0.
        shift: b.
        doubled: whether the sigmoid is that of 2 x, see `match_cost`.
        weighing: ``balanced``, the mean over matched pairs plus the mean over the others, so that
            neither the batch size nor the many negatives set the scale (a batch of one has no
            negatives, which then cost 0); or the ``sum`` of all pairs.
        eta: how much each pair counts as a negative, see `sureshot.models.losses.negatives`.

    Differs:
        The released code of PCME sums, ignoring its own setting, and counts every pair twice, as
        text to video and as video to text, which are equal: twice the ``sum`` here.
    """
    items = len(texts)
    matched = torch.eye(items, dtype=torch.bool, device=texts.device)
    cost = weigh(match_cost(texts, videos, matched, steepness, shift, doubled=doubled), eta)
    match weighing:
        case "balanced":
            return cost.diagonal().mean() + mean_of_others(cost)
        case "sum":
            return cost.sum()
        case _:
            assert_never(weighing)


def mean_of_others(cost: Float[Tensor, "items items"]) -> Float[Tensor, ""]:
    """Mean over all pairs that are not matched; 0 for a batch of one, which has none.

    Args:
        cost: cost of each pair, matched on the diagonal.
    """
    items = len(cost)
    own = torch.eye(items, dtype=torch.bool, device=cost.device)
    return cost.masked_fill(own, 0).sum() / max(items * (items - 1), 1)


def mil_margin(
    distance: Float[Tensor, "items items"],
    margin: float = 0.2,
    negatives: Hardness = "all",
    eta: Eta = None,
) -> Float[Tensor, ""]:
    r"""Hinge that wants each matched pair closer than the others by a margin, in both directions.

    .. math:: L = \frac{1}{2B} \sum_i \sum_{j \ne i}
        [\rho + d_{ii} - d_{ij}]_+ + [\rho + d_{ii} - d_{ji}]_+

    Args:
        distance: distance of the closest samples of each pair, as
            `sureshot.models.scoring.embeddings` gives it with ``min``; matched on the diagonal.
        margin: rho, at least 0. The paper gives no value.
        negatives: count ``all`` j, or only the ``hardest`` of each i.
        eta: how much each pair counts as a negative, see `sureshot.models.losses.negatives`.

    Returns:
        The loss, at least 0; 0 for a batch of one.

    References:
        DUQ, supplement, eq. E; PVSE, Song and Soleymani 2019. With ``eta`` DVTR eq. 12, and with
        eta = 1 DVTR eq. 1.

    Differs:
        In print the matched term is a minimum over two vectors, without a distance; here it is the
        distance of the matched pair, as in PVSE.
    """
    own = torch.eye(len(distance), dtype=torch.bool, device=distance.device)
    matched = distance.diagonal()
    of_texts, of_videos = (
        weigh((margin + one - distance).clamp(min=0).masked_fill(own, 0), eta)
        for one in (matched[:, None], matched)
    )
    match negatives:
        case "all":
            return 0.5 * (of_texts.sum(1).mean() + of_videos.sum(0).mean())
        case "hardest":
            return 0.5 * (of_texts.amax(1).mean() + of_videos.amax(0).mean())
        case _:
            assert_never(negatives)


def max_margin(
    similarity: Float[Tensor, "items items"], margin: float = 0.2, eta: Eta = None
) -> Float[Tensor, ""]:
    r"""Bidirectional max-margin loss: `mil_margin` of similarities, averaged over all wrong pairs.

    .. math:: L = \frac{1}{2B(B-1)} \sum_i \sum_{j \ne i}
        [m + s_{ij} - s_{ii}]_+ + [m + s_{ji} - s_{ii}]_+

    Args:
        similarity: higher is better; matched on the diagonal.
        margin: m, at least 0.
        eta: how much each pair counts as a negative, see `sureshot.models.losses.negatives`.

    Returns:
        The loss, at least 0; 0 for a batch of one.

    References:
        CE, Liu et al. 2019, section 3.3; its released code divides in this way too.
    """
    return mil_margin(-similarity, margin, eta=eta) / max(len(similarity) - 1, 1)


def uniformity(samples: Float[Tensor, "samples dim"], steepness: float = 2.0) -> Float[Tensor, ""]:
    r"""How crowded vectors are: a regulariser that spreads them, in place of no loss at all.

    .. math:: \log \frac{2}{N (N-1)} \sum_{a < b} e^{-t \lVert z_a - z_b \rVert^2}

    Args:
        samples: vectors of all items of both sides together, commonly of unit length.
        steepness: t.

    Returns:
        The loss, at most 0, which means that all are equal; 0 for fewer than two samples.

    References:
        DUQ, supplement, eq. F; PCME, Chun et al. 2021, which gives it the weight 10.

    Differs:
        In print the sum runs over pairs of a text and a video, the matched ones included, and
        nothing else would hold those together. Here it runs over all pairs of samples.
    """
    count = len(samples)
    if count < 2:
        return samples.sum() * 0
    apart = torch.pdist(samples).square()
    return (-steepness * apart).logsumexp(0) - math.log(count * (count - 1) / 2)
