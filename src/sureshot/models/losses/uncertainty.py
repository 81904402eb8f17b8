r"""Losses of uncertainty: evidence of matches, distances of distributions, sets of samples.

Evidence :math:`e \ge 0` for each of B candidates makes a Dirichlet distribution with parameters
:math:`\alpha = e + 1`. Its mean is the belief of a match, its lack of evidence the vacuity.
"""

import math
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import logsigmoid

from sureshot.models.losses.contrastive import Eta, info_nce, matched_pairs, weigh
from sureshot.models.shapes import (
    Matched,
    Number,
    Samples,
    Scalar,
    Scores,
    Square,
    TextSamples,
    VideoSamples,
)

EvidenceKind = Literal["relu", "softplus", "exp"]
Total = Literal["sum", "mean"]

TAU = 5.0  # temperature of evidence by an exponential
_LARGEST = 30.0  # exponents beyond this are cut: e^30 is certainty, e^89 no number of 32 bits


class Opinion(NamedTuple):
    """What evidence amounts to. Vacuity and beliefs of a row have the sum 1."""

    belief: Float[Tensor, "*rows candidates"]  # mass on each candidate, in [0, 1)
    vacuity: Float[Tensor, "*rows"]  # mass on none, in (0, 1]; 1 without any evidence


def evidence(
    similarity: Float[Tensor, "*rows candidates"],
    kind: EvidenceKind = "relu",
    kappa: Number = 1.0,
    offset: Number = 0.0,
) -> Float[Tensor, "*rows candidates"]:
    r"""Evidence of similarities: a function of :math:`x = \kappa (s - m)`.

    ``relu`` is max(x, 0), without a gradient below 0; ``softplus`` is :math:`\log(1 + e^x)`;
    ``exp`` is :math:`e^{x / \tau}`, near 1 for every cosine at the paper's tau of 5.

    With cosines and :math:`\kappa = 1`, as printed, evidence hardly exceeds 1 and one match cannot
    stand out against B candidates: for B = 32 the vacuity of the *ideal* matrix is 32/33, that of
    one in which everything matches everything 1/2. Vacuity is then high for distinctive queries and
    low for ambiguous ones, and the loss moves by no more than 6 % between none and perfect. With
    :math:`\kappa = 100` the ideal matrix has the vacuity 0.24.

    Args:
        kappa: steepness, above 0.
        offset: m, the similarity at which evidence begins.

    References:
        DUQ, supplement, eq. A, B and C.

    Differs:
        Exponents are cut at 30, beyond which the sum of a row would overflow; no cosine comes near.
    """
    scaled = kappa * (similarity - offset)
    match kind:
        case "relu":
            return functional.relu(scaled)
        case "softplus":
            return functional.softplus(scaled)
        case "exp":
            return (scaled / TAU).clamp(max=_LARGEST).exp()


def opinion(evidence: Float[Tensor, "*rows candidates"]) -> Opinion:
    r"""Beliefs and vacuity from the evidence for each of B candidates.

    .. math:: b_j = e_j / S, \quad u = B / S, \quad S = \sum_j (e_j + 1), \quad u + \sum_j b_j = 1

    Vacuity depends on the number of candidates: those of two galleries compare only if these are of
    one size.

    References:
        DUQ eq. 2 and DUQ eq. 3.

    Differs:
        The released module returns 1 - u under the name of the uncertainty.

    Examples:
        >>> opinion(torch.tensor([2.0, 0.0]))
        Opinion(belief=tensor([0.5000, 0.0000]), vacuity=tensor(0.5000))
    """
    candidates = evidence.shape[-1]
    strength = evidence.sum(-1) + candidates
    return Opinion(evidence / strength[..., None], candidates / strength)


def evidential_rows(
    evidence: Float[Tensor, "rows candidates"], labels: Float[Tensor, "rows candidates"]
) -> Float[Tensor, " rows"]:
    r"""Expected squared error of each row's Dirichlet distribution: that of the mean, and variance.

    .. math:: L_i = \sum_j (y_{ij} - \hat p_{ij})^2
        + \frac{\hat p_{ij} (1 - \hat p_{ij})}{S_i + 1}, \quad
        \hat p_{ij} = \frac{e_{ij} + 1}{S_i}

    At least 0; for labels y of sum 1 at most 2. The p of a row have the sum 1, so labels with
    another sum leave a cost that no evidence can remove.

    References:
        DUQ eq. 6, the closed form of eq. 4 and 5.
    """
    alpha = evidence + 1
    strength = alpha.sum(-1, keepdim=True)
    mean = alpha / strength
    return ((labels - mean).square() + mean * (1 - mean) / (strength + 1)).sum(-1)


def evidential(evidence: Scores, labels: Scores | None = None, *, total: Total = "sum") -> Scalar:
    r"""The loss of `evidential_rows` for the texts, and for the videos on the transpose.

    .. math:: L = \frac1B \Big( \sum_i L_i + \sum_j L_j \Big)

    Args:
        labels: y of the texts; their transpose holds for the videos. Without them, the identity.
        total: ``sum`` of both directions as printed, or their ``mean`` as in the released code.

    References:
        DUQ eq. 7.
    """
    if labels is None:
        labels = torch.eye(*evidence.shape, dtype=evidence.dtype, device=evidence.device)
    both = evidential_rows(evidence, labels).mean() + evidential_rows(evidence.T, labels.T).mean()
    return both if total == "sum" else 0.5 * both


Labels = Literal["matched", "unmatched_sum"]


def distance_loss(distance: Square, scale: Number, eta: Eta = None) -> Scalar:
    r"""Symmetric cross-entropy of picking the closest partner.

    .. math:: L = -\frac{1}{2B} \sum_i
        \log \frac{e^{-\lambda d_{ii}}}{\sum_j e^{-\lambda d_{ij}}}
        + \log \frac{e^{-\lambda d_{ii}}}{\sum_j e^{-\lambda d_{ji}}}

    At least 0, and satisfied once the matched pairs are closer by several times 1 / lambda. A batch
    of one pair costs 0.

    Args:
        scale: lambda. A learned one gets no gradient from here: it belongs to the similarities.

    Differs:
        See `distance_loss_as_printed`, whose sign it puts right.
    """
    fixed = scale.detach() if isinstance(scale, Tensor) else scale
    return info_nce(-distance, fixed, eta=eta)


def distance_loss_as_printed(distance: Square, scale: float, eta: Eta = None) -> Scalar:
    r"""The paper's loss, whose logarithm has no minus and whose exponent none either.

    .. math:: L = \frac{1}{2B} \sum_i
        \log \frac{e^{\lambda d_{ii}}}{\sum_j e^{\lambda d_{ij}}}
        + \log \frac{e^{\lambda d_{ii}}}{\sum_j e^{\lambda d_{ji}}}

    Minimising it does bring matched pairs closer than others, but it is never satisfied: at most 0,
    it falls without end as they part, and its gradient is *largest* where they are parted already.
    A learned scale would run away for the same reason, so it is a fixed number here.

    References:
        DUQ eq. 12.
    """
    return -info_nce(distance, scale, eta=eta)


def evidential_distance(
    distance: Square,
    labels: Labels = "matched",
    kind: EvidenceKind = "relu",
    kappa: Number = 1.0,
    offset: Number = 0.0,
    total: Total = "sum",
    eta: Eta = None,
) -> Scalar:
    r"""The evidential loss of a matrix of cosine distances. A batch of one gives a finite number.

    Args:
        distance: cosine distances, in [0, 2]; matched on the diagonal.
        labels: what is evidence, and of what. ``unmatched_sum``, as printed: distance is evidence
            that a pair does *not* match, with the labels :math:`1 - I`. They have the sum B - 1
            while the mean of a Dirichlet distribution has the sum 1, so no matrix costs less than
            :math:`(B-2)^2 / (B-1)` in a direction: for B = 32 that is 29.03, where distances of 0
            cost 29.12 and the ideal ones 29.08. ``matched``: closeness :math:`1 - d` is evidence
            of a match, with the labels I, which trains the vacuity that a search reads.
        eta: how much of the evidence of each pair that is not matched counts.

    References:
        DUQ eq. 13, with ``unmatched_sum``.
    """
    clue = 1 - distance if labels == "matched" else distance
    found = weigh(evidence(clue, kind, kappa, offset), eta)
    own = matched_pairs(distance).to(distance.dtype)
    return evidential(found, own if labels == "matched" else 1 - own, total=total)


Weighing = Literal["balanced", "sum"]
Hardness = Literal["all", "hardest"]

_SMALL = 1e-6  # under the root of a squared distance: the root has no gradient at 0


def match_cost(
    texts: TextSamples,
    videos: VideoSamples,
    matched: Matched,
    steepness: Number,
    shift: Number,
    doubled: bool = False,
) -> Scores:
    r"""Negative log-likelihood of each pair's label, the probability averaged over the samples.

    .. math:: -\log \frac{1}{KM} \sum_{k,m} p_{km} \text{ if matched, else }
        -\log \frac{1}{KM} \sum_{k,m} (1 - p_{km}), \quad
        p_{km} = \sigma(-a \lVert z_t^k - z_v^m \rVert + b)

    At least 0. Computed by logarithms throughout, so a probability near 0 or 1 keeps its digits.
    The largest tensor on the way has texts x K x videos x M numbers.

    Args:
        shift: b; the probability is 1/2 at the distance b / a.
        doubled: :math:`\sigma(2x)` in place of :math:`\sigma(x)`.

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
    texts: Samples,
    videos: Float[Tensor, "items m dim"],
    steepness: Number,
    shift: Number,
    doubled: bool = False,
    weighing: Weighing = "balanced",
    eta: Eta = None,
) -> Scalar:
    """Total of `match_cost` over the batch, matched on the diagonal.

    Args:
        weighing: ``balanced``, the mean over matched pairs plus the mean over the others, so that
            neither the batch size nor the many negatives set the scale (a batch of one has no
            negatives, which then cost 0); or the ``sum`` of all pairs.

    Differs:
        The released code of PCME sums, ignoring its own setting, and counts every pair twice, as
        text to video and as video to text, which are equal: twice the ``sum`` here.
    """
    matched = matched_pairs(texts)
    cost = weigh(match_cost(texts, videos, matched, steepness, shift, doubled=doubled), eta)
    return cost.sum() if weighing == "sum" else cost.diagonal().mean() + mean_of_others(cost)


def mean_of_others(cost: Square) -> Scalar:
    """Mean over all pairs that are not matched; 0 for a batch of one, which has none."""
    items = len(cost)
    return cost.masked_fill(matched_pairs(cost), 0).sum() / max(items * (items - 1), 1)


def mil_margin(
    distance: Square, margin: float = 0.2, negatives: Hardness = "all", eta: Eta = None
) -> Scalar:
    r"""Hinge that wants each matched pair closer than the others by a margin, in both directions.

    .. math:: L = \frac{1}{2B} \sum_i \sum_{j \ne i}
        [\rho + d_{ii} - d_{ij}]_+ + [\rho + d_{ii} - d_{ji}]_+

    At least 0; 0 for a batch of one.

    Args:
        distance: that of the closest samples of each pair; matched on the diagonal.
        margin: rho. The paper gives no value.
        negatives: count ``all`` j, or only the ``hardest`` of each i.

    References:
        DUQ, supplement, eq. E; PVSE, Song and Soleymani 2019. With ``eta`` DVTR eq. 12, and with
        eta = 1 DVTR eq. 1.

    Differs:
        In print the matched term is a minimum over two vectors, without a distance; here it is the
        distance of the matched pair, as in PVSE.
    """
    own, matched = matched_pairs(distance), distance.diagonal()
    of_texts, of_videos = (
        weigh((margin + one - distance).clamp(min=0).masked_fill(own, 0), eta)
        for one in (matched[:, None], matched)
    )
    if negatives == "hardest":
        return 0.5 * (of_texts.amax(1).mean() + of_videos.amax(0).mean())
    return 0.5 * (of_texts.sum(1).mean() + of_videos.sum(0).mean())


def max_margin(similarity: Square, margin: float = 0.2, eta: Eta = None) -> Scalar:
    r"""Bidirectional max-margin loss: `mil_margin` of similarities, averaged over all wrong pairs.

    .. math:: L = \frac{1}{2B(B-1)} \sum_i \sum_{j \ne i}
        [m + s_{ij} - s_{ii}]_+ + [m + s_{ji} - s_{ii}]_+

    References:
        CE, Liu et al. 2019, section 3.3; its released code divides in this way too.
    """
    return mil_margin(-similarity, margin, eta=eta) / max(len(similarity) - 1, 1)


def uniformity(samples: Float[Tensor, "samples dim"], steepness: float = 2.0) -> Scalar:
    r"""How crowded vectors are: a regulariser that spreads them, in place of no loss at all.

    .. math:: \log \frac{2}{N (N-1)} \sum_{a < b} e^{-t \lVert z_a - z_b \rVert^2}

    At most 0, which means that all are equal. The samples are those of all items of both sides
    together, so two at least, commonly of unit length.

    References:
        DUQ, supplement, eq. F; PCME, Chun et al. 2021, which gives it the weight 10.

    Differs:
        In print the sum runs over pairs of a text and a video, the matched ones included, and
        nothing else would hold those together. Here it runs over all pairs of samples.
    """
    count = len(samples)
    apart = torch.pdist(samples).square()
    return (-steepness * apart).logsumexp(0) - math.log(count * (count - 1) / 2)
