"""Scores and distances of all pairs as plain functions: rows texts, columns videos."""

from collections.abc import Iterator
from typing import Literal, assert_never

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from sureshot.models.layers.gaussian import Gaussian

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
        The paper takes the minimum for matched pairs and the maximum for the others, which
        takes knowing the answer (see `labelled_distance`).

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

    One divergence is `kl_between` of `layers.gaussian`. Two matrix products of 2 D columns take
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
    """Squared 2-Wasserstein distance of all pairs, as `wasserstein2` of `layers.gaussian`.

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


_LOW = -4.0  # below any cosine, which half precision may round to a little beyond -1


def token_interaction(
    words: Float[Tensor, "texts words dim"],
    frames: Float[Tensor, "videos frames dim"],
    word_mask: Bool[Tensor, "texts words"],
    frame_mask: Bool[Tensor, "videos frames"],
    *,
    block: int = 32,
) -> Float[Tensor, "texts videos"]:
    r"""How well, on average, a token finds its best counterpart on the other side.

    .. math:: s = \frac12 \Big( \frac1N \sum_n \max_m \cos(w_n, f_m)
        + \frac1M \sum_m \max_n \cos(w_n, f_m) \Big)

    Args:
        block: texts compared at once, those of about as many words together. The largest tensor
            has block x words x videos x frames numbers; gradients do not keep it. The result is
            the same for every block up to rounding.

    Returns:
        Rows texts, columns videos, higher is better, in [-1, 1]. What stands at padding has no
        influence. An item without a real token scores ``-inf`` with everything.

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
    return weighted_token_interaction(
        words,
        frames,
        _equal_weights(word_mask, words),
        _equal_weights(frame_mask, frames),
        word_mask,
        frame_mask,
        block=block,
    )


def weighted_token_interaction(
    words: Float[Tensor, "texts words dim"],
    frames: Float[Tensor, "videos frames dim"],
    word_weights: Float[Tensor, "texts words"],
    frame_weights: Float[Tensor, "videos frames"],
    word_mask: Bool[Tensor, "texts words"],
    frame_mask: Bool[Tensor, "videos frames"],
    *,
    block: int = 32,
) -> Float[Tensor, "texts videos"]:
    r"""As `token_interaction`, with a weight for each token in place of the mean.

    .. math:: s = \frac12 \Big( \sum_n a_n \max_m \cos(w_n, f_m)
        + \sum_m b_m \max_n \cos(w_n, f_m) \Big)

    Args:
        word_weights: a, with sum 1 over the real words of each text; those of padding do not count.
        frame_weights: b, likewise for the frames of each video.
    """
    # Padding is set to zero first: a NaN there must not come back through the gradient.
    words = _units(words.masked_fill(~word_mask[..., None], 0))
    frames = _units(frames.masked_fill(~frame_mask[..., None], 0))
    word_weights = word_weights.masked_fill(~word_mask, 0)
    frame_weights = frame_weights.masked_fill(~frame_mask, 0)
    real = word_mask.any(1)[:, None] & frame_mask.any(1)
    # A caption has half as many words as the longest of its batch: padding is left out.
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
        few, theirs = words[rows][:, :longest], word_weights[rows][:, :longest]
        parts.append(_block(few, frames, theirs, frame_weights))
    return torch.cat(parts)[order.argsort()].masked_fill(~real, -torch.inf)


def _block(
    words: Float[Tensor, "texts words dim"],
    frames: Float[Tensor, "videos frames dim"],
    word_weights: Float[Tensor, "texts words"],
    frame_weights: Float[Tensor, "videos frames"],
) -> Float[Tensor, "texts videos"]:
    # t texts, w words, v videos, f frames
    cosine = torch.einsum("twd,vfd->twvf", words, frames)
    # `max` over one dimension keeps indices for the gradient; `amax` would keep the large tensor.
    from_words = torch.einsum("twv,tw->tv", cosine.max(-1).values, word_weights)
    from_frames = torch.einsum("tvf,vf->tv", cosine.max(1).values, frame_weights)
    return 0.5 * (from_words + from_frames)


def _counts(mask: Bool[Tensor, "batch tokens"]) -> list[int]:
    """How many tokens of each item are real; all where only shapes are computed with."""
    counts: list[int] = [mask.shape[1]] * len(mask) if mask.is_meta else mask.sum(1).tolist()
    return counts


def _real_first(
    tokens: Float[Tensor, "batch tokens dim"],
    weights: Float[Tensor, "batch tokens"],
    mask: Bool[Tensor, "batch tokens"],
) -> tuple[
    Float[Tensor, "batch most dim"], Float[Tensor, "batch most"], Bool[Tensor, "batch most"]
]:
    """The same with what is padding in all items cut off, and each item's padding at its end."""
    most = max([1, *_counts(mask)])
    places = (~mask).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    chosen = places[..., None].expand(-1, -1, tokens.shape[-1])
    return tokens.gather(1, chosen), weights.gather(1, places), mask.gather(1, places)


def _units(tokens: Float[Tensor, "batch tokens dim"]) -> Float[Tensor, "batch tokens dim"]:
    """Tokens at unit length; those of zeros stay, also where 1e-12 is 0 in half precision."""
    return normalize(tokens, dim=-1, eps=max(1e-12, torch.finfo(tokens.dtype).tiny))


def _low(
    mask: Bool[Tensor, "batch tokens"], like: Float[Tensor, "batch tokens dim"]
) -> Float[Tensor, "batch tokens 1"]:
    """What padding gets and a real token does not: less than any cosine."""
    return (~mask)[..., None].to(like.dtype) * _LOW


def _equal_weights(
    mask: Bool[Tensor, "batch tokens"], like: Float[Tensor, "batch tokens dim"]
) -> Float[Tensor, "batch tokens"]:
    count = mask.sum(1, keepdim=True).clamp(min=1)
    return mask.to(like.dtype) / count


def rerank_as_printed(
    similarity: Float[Tensor, "queries candidates"],
    distance: Float[Tensor, "queries candidates"],
    similarity_vacuity: Float[Tensor, " queries"],
    distance_vacuity: Float[Tensor, " queries"],
    *,
    gamma_distance: float = 0.1,
    gamma_similarity: float = 0.1,
) -> Float[Tensor, "queries candidates"]:
    r"""The paper's product of similarity, closeness and the query's certainty.

    .. math:: s'_{ij} = e^{-\gamma_1 u^d_i} (1 - d_{ij}) \cdot e^{-\gamma_2 u^s_i} s_{ij}

    Two things to know before using it. Both u belong to the row: they multiply all candidates of a
    query by the same positive number, so **the ranking of a query cannot depend on them**, whatever
    the gammas. (What changes is the ranking of texts for a video, if it is read off the columns of
    the same matrix.) And the product of two negative factors is positive: a candidate that both
    branches reject (-0.3 and -0.3) beats one that both accept a little (0.28 and 0.28).
    `rerank` does neither.

    Args:
        similarity: cosines, in [-1, 1].
        distance: cosine distances, in [0, 2], for all pairs by one rule.
        similarity_vacuity: uncertainty of each query from its similarities, in (0, 1].
        distance_vacuity: the same from its distances.
        gamma_distance: 0.1 in the paper.
        gamma_similarity: 0.1 in the paper.

    Returns:
        Scores, higher is better, in [-2, 2].

    References:
        DUQ eq. 16, with the closing bracket that is missing in print.
    """
    factor = (-gamma_distance * distance_vacuity - gamma_similarity * similarity_vacuity).exp()
    return factor[:, None] * (1 - distance) * similarity


def candidate_bonus(
    vacuity: Float[Tensor, " candidates"], bank: Float[Tensor, "bank candidates"]
) -> Float[Tensor, " candidates"]:
    r"""What a candidate's uncertainty is worth, in units of the scores.

    .. math:: b_j = \mathrm{sd}(S^{bank}) \cdot \frac{u_j - \mathrm{mean}(u)}{\mathrm{sd}(u)}

    A hub, a video near to all queries, collects evidence from all of them and has a low vacuity.
    With evidence from cosines a **high** vacuity therefore marks a distinctive candidate, and the
    bonus is positive for it. Check that on validation data before turning to another evidence.

    Args:
        vacuity: uncertainty of each candidate over the bank, in (0, 1]: the vacuity of the
            transposed evidence of bank x candidates.
        bank: scores of a bank of queries, for instance the training texts. Never the queries under
            test: a score must not depend on what else is asked.

    Returns:
        Mean 0; all 0 where the candidates do not differ, or there is only one.

    Differs:
        The paper lowers the scores of uncertain items. For candidates that promotes the hubs.
    """
    spread = vacuity.std(correction=0)
    centred = vacuity - vacuity.mean()
    # Equal candidates leave a spread of rounding errors, which must not be blown up.
    alike = spread <= 8 * torch.finfo(vacuity.dtype).eps * vacuity.abs().amax()
    standard = torch.where(alike, 0, centred / torch.where(alike, 1, spread))
    return bank.std(correction=0) * standard


def rerank(
    scores: Float[Tensor, "queries candidates"],
    bonus: Float[Tensor, " candidates"],
    weight: float = 0.1,
) -> Float[Tensor, "queries candidates"]:
    """Scores with a share of each candidate's bonus added; weight 0 leaves them as they are.

    Args:
        bonus: what `candidate_bonus` gives for a bank of the same kind of scores.
        weight: share of the bonus, to be chosen on validation data; 0.1 to 0.3 are gentle.

    Examples:
        >>> rerank(torch.tensor([[0.5, 0.5]]), torch.tensor([-1.0, 1.0]))
        tensor([[0.4000, 0.6000]])
    """
    return scores + weight * bonus
