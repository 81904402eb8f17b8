"""Similarity of texts and videos token by token: words look for frames, frames for words."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

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
        words: word tokens of any length.
        frames: frame tokens of any length.
        word_mask: True where a word is real.
        frame_mask: True where a frame is real.
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
        words: word tokens of any length.
        frames: frame tokens of any length.
        word_weights: a, with sum 1 over the real words of each text; those of padding do not count.
        frame_weights: b, likewise for the frames of each video.
        word_mask: True where a word is real.
        frame_mask: True where a frame is real.
        block: texts compared at once, see `token_interaction`.

    Returns:
        Scores like those of `token_interaction`.
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
