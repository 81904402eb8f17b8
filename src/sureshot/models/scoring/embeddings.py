"""Distances between texts and videos that are sets of vectors or distributions, for all pairs.

All functions give rows texts, columns videos. These are distances, lower is better; a score is 1
minus the cosine distance, or minus one of the others.
"""

from collections.abc import Iterator
from typing import Literal, assert_never

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from sureshot.models.gaussian import Gaussian

Reduction = Literal["mean", "min", "max"]


def sample_cosines(
    texts: Float[Tensor, "texts k dim"], videos: Float[Tensor, "videos m dim"]
) -> Float[Tensor, "texts k videos m"]:
    """Cosine of every sample of every text with every sample of every video, in [-1, 1].

    A zero vector has cosine 0 with everything.
    """
    return torch.einsum("tkd,vmd->tkvm", normalize(texts, dim=-1), normalize(videos, dim=-1))


def sample_distance(
    texts: Float[Tensor, "texts k dim"],
    videos: Float[Tensor, "videos m dim"],
    reduction: Reduction = "mean",
    *,
    block: int = 64,
) -> Float[Tensor, "texts videos"]:
    r"""Cosine distance between sets of samples, by one rule for all pairs.

    .. math:: d(z_t^m, z_v^n) = 1 - \cos(z_t^m, z_v^n)

    Args:
        texts: samples of any length.
        videos: samples of any length; not necessarily as many.
        reduction: what becomes of the distances of all pairs of samples. ``mean`` ranks best where
            the samples are noisy and needs no tensor of all pairs; ``min`` and ``max`` look at the
            two closest and the two farthest.
        block: texts compared at once by ``min`` and ``max``, whose largest tensor has
            block x videos x K x K numbers.

    Returns:
        Distances in [0, 2], lower is better.

    References:
        DUQ eq. 10.

    Differs:
        The paper takes the minimum for matched pairs and the maximum for the others, which nobody
        can do without knowing the answer (see `labelled_distance`).

    Examples:
        >>> text, video = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [0.0, 3.0]]])
        >>> [sample_distance(text, video, how).item() for how in ("mean", "min", "max")]
        [0.5, 0.0, 1.0]
    """
    match reduction:
        case "mean":
            # The mean of all inner products is the inner product of the means.
            middle = normalize(texts, dim=-1).mean(1), normalize(videos, dim=-1).mean(1)
            return 1 - middle[0] @ middle[1].T
        case "min":
            parts = [1 - cosines.max(-1).values for cosines in _blocks(texts, videos, block)]
        case "max":
            parts = [1 - cosines.min(-1).values for cosines in _blocks(texts, videos, block)]
        case _:
            assert_never(reduction)
    return torch.cat(parts)


def labelled_distance(
    texts: Float[Tensor, "texts k dim"],
    videos: Float[Tensor, "videos m dim"],
    matched: Bool[Tensor, "texts videos"],
    *,
    block: int = 64,
) -> Float[Tensor, "texts videos"]:
    r"""Cosine distance of the closest samples for matched pairs, of the farthest for all others.

    .. math:: d(z_t^i, z_v^j) = \begin{cases}
        \min_{m,n} d(z_t^{i,m}, z_v^{j,n}) & i = j \\
        \max_{m,n} d(z_t^{i,m}, z_v^{j,n}) & i \ne j \end{cases}

    For a training loss only. The rule reads the label, so the result tells it: samples of pure
    noise are ranked without a single error. A test score made with it measures nothing, and where
    the label is not known it is undefined. Even as a loss it shows the model a matrix that the
    selection has already sorted; `sample_distance` trains and tests by the same rule.

    Args:
        texts: samples of any length.
        videos: samples of any length.
        matched: the labels, True where text and video belong together.
        block: texts compared at once; the largest tensor has block x videos x K x K numbers.

    References:
        DUQ eq. 11.
    """
    parts = [
        (cosines.max(-1).values, cosines.min(-1).values)
        for cosines in _blocks(texts, videos, block)
    ]
    closest, farthest = (torch.cat(part) for part in zip(*parts, strict=True))
    return 1 - torch.where(matched, closest, farthest)


def kl_distance(texts: Gaussian, videos: Gaussian) -> Float[Tensor, "texts videos"]:
    """Mean of both Kullback-Leibler divergences of all pairs, in nats, at least 0.

    One divergence is `sureshot.models.gaussian.kl_between`. Two matrix products of 2 D columns take
    the place of a tensor of texts x videos x D. In 32 bits that loses digits: the error is about
    1e-7 of the largest term that cancels, the squared means and variances divided by the variances.
    """
    text_weight, video_weight = (-texts.log_var).exp(), (-videos.log_var).exp()
    text_square = texts.log_var.exp() + texts.mean.square()
    video_square = videos.log_var.exp() + videos.mean.square()
    # With precision p = 1 / variance: the sum over d of (variance + mean^2) of the one times p of
    # the other, and the rest of (mean - mean')^2 (p + p').
    squares = torch.cat([text_square, text_weight], -1) @ _stacked(video_weight, video_square)
    crossed = torch.cat([texts.mean * text_weight, texts.mean], -1) @ _stacked(
        videos.mean, videos.mean * video_weight
    )
    own = (texts.mean.square() * text_weight).sum(-1)[:, None]
    theirs = (videos.mean.square() * video_weight).sum(-1)
    total = squares - 2 * crossed + own + theirs - 2 * texts.mean.shape[-1]
    return (0.25 * total).clamp(min=0)


def wasserstein_distance(texts: Gaussian, videos: Gaussian) -> Float[Tensor, "texts videos"]:
    """Squared 2-Wasserstein distance of all pairs, as `sureshot.models.gaussian.wasserstein2`.

    It is the squared distance of the vectors that hold means and deviations, so one matrix product
    of 2 D columns does; in 32 bits its error is about 1e-7 of their squared lengths.
    """
    return _squared_distance(
        torch.cat([texts.mean, (0.5 * texts.log_var).exp()], -1),
        torch.cat([videos.mean, (0.5 * videos.log_var).exp()], -1),
    )


def expected_distance(texts: Gaussian, videos: Gaussian) -> Float[Tensor, "texts videos"]:
    r"""Mean squared distance between a sample of each text and one of each video.

    .. math:: \mathbb{E} \lVert z - z' \rVert^2
        = \lVert \mu - \mu' \rVert^2 + \sum_d \sigma_d^2 + \sigma'^2_d

    One matrix product of D columns. Unlike the other distances it is above 0 for two equal items,
    the more the wider they are.

    References:
        PCME++, Chun 2024 (closed-form sampled distance).
    """
    spread = texts.log_var.exp().sum(-1)[:, None] + videos.log_var.exp().sum(-1)
    return _squared_distance(texts.mean, videos.mean) + spread


def _blocks(
    texts: Float[Tensor, "texts k dim"], videos: Float[Tensor, "videos m dim"], block: int
) -> Iterator[Float[Tensor, "block videos km"]]:
    """Cosines of all pairs of samples, the pairs in the last dimension, some texts at a time."""
    texts, videos = normalize(texts, dim=-1), normalize(videos, dim=-1)
    for start in range(0, max(len(texts), 1), block):
        cosines = torch.einsum("tkd,vmd->tvkm", texts[start : start + block], videos)
        # Of this tensor `max` over one dimension keeps indices for the gradient; `amax` keeps all.
        yield cosines.flatten(2)


def _stacked(
    upper: Float[Tensor, "videos dim"], lower: Float[Tensor, "videos dim"]
) -> Float[Tensor, "dim2 videos"]:
    return torch.cat([upper, lower], -1).T


def _squared_distance(
    texts: Float[Tensor, "texts dim"], videos: Float[Tensor, "videos dim"]
) -> Float[Tensor, "texts videos"]:
    lengths = texts.square().sum(-1)[:, None] + videos.square().sum(-1)
    # Rounding can leave a small negative number where the two are equal.
    return (lengths - 2 * texts @ videos.T).clamp(min=0)
