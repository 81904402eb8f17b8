"""Scores and distances of all pairs as plain functions: rows texts, columns videos."""

from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from sureshot.models.layers.gaussian import Gaussian
from sureshot.models.shapes import (
    FrameMask,
    Frames,
    Mask,
    Matched,
    Scores,
    Texts,
    TextSamples,
    Tokens,
    Videos,
    VideoSamples,
    WordMask,
    Words,
)

Reduction = Literal["mean", "min"]


def sample_cosines(texts: TextSamples, videos: VideoSamples) -> Float[Tensor, "texts k videos m"]:
    """Cosine of every sample of every text with every sample of every video, in [-1, 1]."""
    return torch.einsum("tkd,vmd->tkvm", normalize(texts, dim=-1), normalize(videos, dim=-1))


def sample_distance(
    texts: TextSamples, videos: VideoSamples, reduction: Reduction = "mean", *, block: int = 64
) -> Scores:
    r"""Cosine distance between sets of samples, in [0, 2], by one rule for all pairs.

    .. math:: d(z_t^m, z_v^n) = 1 - \cos(z_t^m, z_v^n)

    Args:
        reduction: what becomes of the distances of all pairs of samples. ``mean`` ranks best where
            the samples are noisy and needs no tensor of all pairs; ``min`` takes the two closest.
        block: texts compared at once by ``min``, whose largest tensor has block x videos x K x K
            numbers.

    References:
        DUQ eq. 10.

    Differs:
        The paper's rule takes knowing the answer, see `labelled_distance`.

    Examples:
        >>> text, video = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [0.0, 3.0]]])
        >>> [sample_distance(text, video, how).item() for how in ("mean", "min")]
        [0.5, 0.0]
    """
    if reduction == "mean":
        # The mean of all inner products is the inner product of the means.
        middle = normalize(texts, dim=-1).mean(1), normalize(videos, dim=-1).mean(1)
        return 1 - middle[0] @ middle[1].T
    return 1 - torch.cat([cosines.max(-1).values for cosines in _blocks(texts, videos, block)])


def labelled_distance(
    texts: TextSamples, videos: VideoSamples, matched: Matched, *, block: int = 64
) -> Scores:
    r"""Cosine distance of the closest samples for matched pairs, of the farthest for all others.

    .. math:: d(z_t^i, z_v^j) = \begin{cases}
        \min_{m,n} d(z_t^{i,m}, z_v^{j,n}) & i = j \\
        \max_{m,n} d(z_t^{i,m}, z_v^{j,n}) & i \ne j \end{cases}

    For a training loss only. The rule reads the label, so the result tells it: samples of pure
    noise are ranked without a single error. Even as a loss it shows the model a matrix that the
    selection has already sorted.

    References:
        DUQ eq. 11.
    """
    both = [(c.max(-1).values, c.min(-1).values) for c in _blocks(texts, videos, block)]
    closest, farthest = (torch.cat(part) for part in zip(*both, strict=True))
    return 1 - torch.where(matched, closest, farthest)


def kl_distance(texts: Gaussian, videos: Gaussian) -> Scores:
    """Mean of both Kullback-Leibler divergences of all pairs, in nats, at least 0.

    One divergence is `kl_between` of `layers.gaussian`. Two matrix products of 2 D columns take
    the place of a tensor of texts x videos x D. In 32 bits that loses digits: the error is about
    1e-7 of the largest term that cancels, the squared means and variances divided by the variances.
    """
    text_weight, video_weight = (-texts.log_var).exp(), (-videos.log_var).exp()
    text_square = texts.log_var.exp() + texts.mean.square()
    video_square = videos.log_var.exp() + videos.mean.square()
    # With precision p = 1 / variance: the sum over d of (variance + mean^2) of the one times p of
    # the other, and the rest of (mean - mean')^2 (p + p').
    of_videos = torch.cat([video_weight, video_square], -1)
    squares = torch.cat([text_square, text_weight], -1) @ of_videos.T
    of_videos = torch.cat([videos.mean, videos.mean * video_weight], -1)
    crossed = torch.cat([texts.mean * text_weight, texts.mean], -1) @ of_videos.T
    own = (texts.mean.square() * text_weight).sum(-1)[:, None]
    theirs = (videos.mean.square() * video_weight).sum(-1)
    total = squares - 2 * crossed + own + theirs - 2 * texts.mean.shape[-1]
    return (0.25 * total).clamp(min=0)


def wasserstein_distance(texts: Gaussian, videos: Gaussian) -> Scores:
    """Squared 2-Wasserstein distance of all pairs, as `wasserstein2` of `layers.gaussian`.

    It is the squared distance of the vectors that hold means and deviations, so one matrix product
    of 2 D columns does; in 32 bits its error is about 1e-7 of their squared lengths.
    """
    return _squared_distance(
        torch.cat([texts.mean, (0.5 * texts.log_var).exp()], -1),
        torch.cat([videos.mean, (0.5 * videos.log_var).exp()], -1),
    )


def expected_distance(texts: Gaussian, videos: Gaussian) -> Scores:
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
    texts: TextSamples, videos: VideoSamples, block: int
) -> Iterator[Float[Tensor, "block videos km"]]:
    """Cosines of all pairs of samples, the pairs in the last dimension, some texts at a time."""
    texts, videos = normalize(texts, dim=-1), normalize(videos, dim=-1)
    for part in torch.split(texts, block):
        # Of this tensor `max` over one dimension keeps indices for the gradient; `amax` keeps all.
        yield torch.einsum("tkd,vmd->tvkm", part, videos).flatten(2)


def _squared_distance(texts: Texts, videos: Videos) -> Scores:
    lengths = texts.square().sum(-1)[:, None] + videos.square().sum(-1)
    # Rounding can leave a small negative number where the two are equal.
    return (lengths - 2 * texts @ videos.T).clamp(min=0)


_LOW = -4.0  # below any cosine, which half precision may round to a little beyond -1


def token_interaction(
    words: Words,
    frames: Frames,
    word_mask: WordMask,
    frame_mask: FrameMask,
    word_weights: Float[Tensor, "texts words"] | None = None,
    frame_weights: Float[Tensor, "videos frames"] | None = None,
    *,
    block: int = 32,
) -> Scores:
    r"""How well, on average, a token finds its best counterpart on the other side.

    .. math:: s = \frac12 \Big( \sum_n a_n \max_m \cos(w_n, f_m)
        + \sum_m b_m \max_n \cos(w_n, f_m) \Big)

    In [-1, 1]. An item without a real token scores ``-inf`` with everything.

    Args:
        word_weights: a, with sum 1 over the real words of each text; None is 1 / N each.
        frame_weights: b, likewise; None is 1 / M each.
        block: texts compared at once, those of about as many words together. The largest tensor
            has block x words x videos x frames numbers; gradients do not keep it. The result is
            the same for every block up to rounding.

    References:
        UATVR eq. 7, with the average that the sentence after it asks for; eq. 8 is the same sum
        over more tokens.

    Differs:
        The released code multiplies padded pairs by 0 before the maximum, so padding wins wherever
        all real similarities are negative. Here it can never win.

    Examples:
        >>> words, frames = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([[[0.6, 0.8]]])
        >>> token_interaction(words, frames, torch.ones(1, 2).bool(), torch.ones(1, 1).bool())
        tensor([[0.7500]])
    """
    real = word_mask.any(1)[:, None] & frame_mask.any(1)
    words, word_weights, word_mask = _real_first(words, word_weights, word_mask)
    frames, frame_weights, frame_mask = _real_first(frames, frame_weights, frame_mask)
    # Two more dimensions take _LOW from a pair for each of its sides that is padding, so that the
    # product itself says what may win, and no mask goes over all pairs of tokens.
    words = torch.cat([words, _low(word_mask, words), torch.ones_like(words[..., :1])], dim=-1)
    frames = torch.cat([frames, torch.ones_like(frames[..., :1]), _low(frame_mask, frames)], dim=-1)
    order, most = word_mask.sum(1).argsort(stable=True), sorted(_counts(word_mask))
    parts = []
    for start in range(0, max(len(words), 1), block):
        rows, longest = order[start : start + block], max([1, *most[start : start + block]])
        # t texts, w words, v videos, f frames
        cosine = torch.einsum("twd,vfd->twvf", words[rows][:, :longest], frames)
        # `max` over one dimension keeps indices for the gradient; `amax` would keep all of it.
        best, weights = cosine.max(-1).values, word_weights[rows][:, :longest]
        from_words = torch.einsum("twv,tw->tv", best, weights)
        from_frames = torch.einsum("tvf,vf->tv", cosine.max(1).values, frame_weights)
        parts.append(0.5 * (from_words + from_frames))
    return torch.cat(parts)[order.argsort()].masked_fill(~real, -torch.inf)


def _counts(mask: Mask) -> list[int]:
    """How many tokens of each item are real; all where only shapes are computed with."""
    counts: list[int] = [mask.shape[1]] * len(mask) if mask.is_meta else mask.sum(1).tolist()
    return counts


def _real_first(
    tokens: Tokens, weights: Float[Tensor, "items tokens"] | None, mask: Mask
) -> tuple[
    Float[Tensor, "items most dim"], Float[Tensor, "items most"], Bool[Tensor, "items most"]
]:
    """Unit tokens, weights and mask without what is padding in all items, and padding at the end.

    A caption has half as many words as the longest of its batch.
    """
    # Padding is set to zero first: a NaN there must not come back through the gradient. 1e-12 is 0
    # in half precision, where tokens of zeros shall stay, too.
    tokens = tokens.masked_fill(~mask[..., None], 0)
    tokens = normalize(tokens, dim=-1, eps=max(1e-12, torch.finfo(tokens.dtype).tiny))
    if weights is None:
        weights = mask.to(tokens.dtype) / mask.sum(1, keepdim=True).clamp(min=1)
    weights = weights.masked_fill(~mask, 0)
    most = max([1, *_counts(mask)])
    places = (~mask).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    chosen = places[..., None].expand(-1, -1, tokens.shape[-1])
    return tokens.gather(1, chosen), weights.gather(1, places), mask.gather(1, places)


def _low(mask: Mask, like: Tokens) -> Float[Tensor, "items tokens 1"]:
    """What padding gets and a real token does not: less than any cosine."""
    return (~mask)[..., None].to(like.dtype) * _LOW


def rerank_as_printed(
    similarity: Float[Tensor, "queries candidates"],
    distance: Float[Tensor, "queries candidates"],
    similarity_vacuity: Float[Tensor, " queries"],
    distance_vacuity: Float[Tensor, " queries"],
    gamma: float = 0.1,
) -> Float[Tensor, "queries candidates"]:
    r"""The paper's product of similarity, closeness and the query's certainty.

    .. math:: s'_{ij} = e^{-\gamma_1 u^d_i} (1 - d_{ij}) \cdot e^{-\gamma_2 u^s_i} s_{ij}

    Both u belong to the row: they multiply all candidates of a query by the same positive number,
    so **the ranking of a query cannot depend on them**, whatever the gammas. (That of texts for a
    video can, if it is read off the columns of the same matrix.) And the product of two negative
    factors is positive: a candidate that both branches reject (-0.3 and -0.3) beats one that both
    accept a little (0.28 and 0.28).

    In [-2, 2], of cosines s, cosine distances d in [0, 2] and vacuities u in (0, 1]; both gammas
    are one number, as in the paper's settings.

    References:
        DUQ eq. 16, with the closing bracket that is missing in print.
    """
    factor = (-gamma * distance_vacuity - gamma * similarity_vacuity).exp()
    return factor[:, None] * (1 - distance) * similarity


def candidate_bonus(
    vacuity: Float[Tensor, " candidates"], bank: Float[Tensor, "bank candidates"]
) -> Float[Tensor, " candidates"]:
    r"""What a candidate's uncertainty is worth, in units of the scores.

    .. math:: b_j = \mathrm{sd}(S^{bank}) \cdot \frac{u_j - \mathrm{mean}(u)}{\mathrm{sd}(u)}

    A hub, a video near to all queries, collects evidence from all of them and has a low vacuity.
    With evidence from cosines a **high** vacuity therefore marks a distinctive candidate, and the
    bonus is positive for it. Check that on validation data before turning to another evidence.

    Mean 0; all 0 where the candidates do not differ, or there is only one.

    Args:
        vacuity: that of the transposed evidence of bank x candidates, in (0, 1].
        bank: scores of a bank of queries, for instance the training texts. Never the queries under
            test: a score must not depend on what else is asked.

    Differs:
        The paper lowers the scores of uncertain items. For candidates that promotes the hubs.
    """
    spread = vacuity.std(correction=0)
    centred = vacuity - vacuity.mean()
    # Equal candidates leave a spread of rounding errors, which must not be blown up.
    alike = spread <= 8 * torch.finfo(vacuity.dtype).eps * vacuity.abs().amax()
    standard = torch.where(alike, 0, centred / torch.where(alike, 1, spread))
    return bank.std(correction=0) * standard
