"""Tokens to one vector per item, by itself or, in `CrossAttentionPooling`, as a text sees it."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.layers.transformer import Block, identity, linear, xavier
from sureshot.models.shapes import FrameMask, Frames, Mask, Scores, Texts, Tokens, Vectors, Videos


def mean_of_units(frames: Frames, mask: FrameMask) -> Videos:
    r"""Unit vector along the mean of each video's frames, every frame brought to unit length first.

    .. math:: v = \frac{m}{\lVert m \rVert}, \qquad
        m = \frac{1}{|F|} \sum_{f \in F} \frac{x_f}{\lVert x_f \rVert}

    Zero for a video whose frames cancel out, or without a real frame, where the released code of
    CLIP4Clip gives NaN.

    References:
        CLIP4Clip, Luo et al. 2021, section 3.3 (mean pooling).

    Examples:
        >>> frames = torch.tensor([[[3.0, 0.0], [0.0, 5.0], [9.0, 9.0]]])
        >>> mean_of_units(frames, torch.tensor([[True, True, False]]))
        tensor([[0.7071, 0.7071]])
    """
    units = functional.normalize(frames.masked_fill(~mask[..., None], 0), dim=-1)
    return functional.normalize(masked_mean(units, mask), dim=-1)


def unit(x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """Vectors at unit length; a zero vector stays zero."""
    return functional.normalize(x, dim=-1)


def standard(x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """Vectors with the mean 0 and the variance 1: a layer norm without weights."""
    return functional.layer_norm(x, x.shape[-1:])


def masked_mean(tokens: Tokens, mask: Mask) -> Vectors:
    """Mean of each item's real tokens; zero where there is none."""
    total = tokens.masked_fill(~mask[..., None], 0).sum(1)
    return total / mask.sum(1, keepdim=True).clamp(min=1)


class WeightedPooling(nn.Module):
    r"""Mean of tokens weighted by what an MLP thinks of each.

    .. math:: v = \sum_f a_f x_f, \qquad
        a = \mathrm{softmax}_f\big(w_2^\top \mathrm{ReLU}(W_1 x_f + b_1) + b_2\big)

    References:
        DUQ, supplement, figure 1 (MLP). The paper gives no sizes; these are the released code's.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.worth = nn.Sequential(linear(dim, 2 * dim), nn.ReLU(), linear(2 * dim, 1))

    def forward(self, tokens: Tokens, mask: Mask) -> Vectors:
        """Pooled vectors, not normalised."""
        tokens = tokens.masked_fill(~mask[..., None], 0)
        return torch.einsum("bn,bnd->bd", token_shares(self.worth, tokens, mask), tokens)


class TanhPooling(WeightedPooling):
    r"""Mean of tokens with weights :math:`\mathrm{softmax}_n(w_2^\top \tanh(W_1 x_n))`."""

    def __init__(self, dim: int, hidden: int) -> None:
        nn.Module.__init__(self)
        self.worth = nn.Sequential(
            xavier(dim, hidden, bias=False), nn.Tanh(), xavier(hidden, 1, bias=False)
        )


def token_shares(scorer: nn.Module, tokens: Tokens, mask: Mask) -> Float[Tensor, "items tokens"]:
    """What each real token of an item counts, with sum 1: the softmax of what it is worth."""
    return scorer(tokens).squeeze(-1).masked_fill(~mask, -torch.inf).softmax(-1)


class SelfAttentionPooling(nn.Module):
    """One transformer block over the frames, then their mean.

    References:
        DUQ, supplement, figure 1 (SA).
    """

    def __init__(self, dim: int, heads: int = 8) -> None:
        super().__init__()
        self.block = Block(dim, heads)

    def forward(self, frames: Frames, mask: FrameMask) -> Videos:
        """Pooled vectors, not normalised."""
        return masked_mean(self.block(frames.masked_fill(~mask[..., None], 0), mask), mask)


class CrossAttentionPooling(nn.Module):
    r"""Frames pooled for every text by itself, with weights from the text's attention to them.

    .. math::
        a = \mathrm{softmax}_f\Big(\frac{q^\top k_f}{\sqrt{d}}\Big), \quad
        r = \mathrm{LN}_2\Big(W_o \sum_f a_f v_f + b_o\Big), \quad
        y = \mathrm{LN}_3\big(r + W r + b\big)

    where q is a projection of LN₁(t), k and v are projections of LN₁(x), the same LN₁ for texts and
    frames. All projections start as the identity, so an untrained pooling is an attention in
    CLIP's own space.

    A call holds a vector for every pair of a text and a video; `fast_scores` does not.

    Args:
        dropout: share of ``W r + b`` dropped in training.
        separate_norms: give the texts a layer norm of their own.

    References:
        X-Pool, Gorti et al. 2022, section 4.2. DUQ takes it over as it is; ``separate_norms`` is
        the variant in its released code.

    Differs:
        Frames have a mask. X-Pool has none: it fills short videos by repeating their last frame.
    """

    def __init__(self, dim: int, dropout: float = 0.3, *, separate_norms: bool = False) -> None:
        super().__init__()
        self.norm_inputs = nn.LayerNorm(dim)
        self.norm_texts = nn.LayerNorm(dim) if separate_norms else None
        self.queries, self.keys, self.values = identity(dim), identity(dim), identity(dim)
        self.out = identity(dim)
        self.norm_pooled = nn.LayerNorm(dim)
        self.linear = identity(dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_out = nn.LayerNorm(dim)

    def forward(
        self, texts: Texts, frames: Frames, mask: FrameMask
    ) -> Float[Tensor, "videos texts dim"]:
        """Every video as every text sees it; neither it nor texts and frames are normalised."""
        keys, values = self.answer(frames, mask)
        logits = torch.einsum("td,vfd->vtf", self.ask(texts), keys)
        weights = logits.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
        return self._finish(torch.einsum("vtf,vfd->vtd", weights, values))

    def paired(
        self,
        texts: Float[Tensor, "pairs dim"],
        frames: Float[Tensor, "pairs frames dim"],
        mask: Bool[Tensor, "pairs frames"],
    ) -> Float[Tensor, "pairs dim"]:
        """Video i as text i sees it, without all the other pairs."""
        keys, values = self.answer(frames, mask)
        logits = torch.einsum("nd,nfd->nf", self.ask(texts), keys)
        weights = logits.masked_fill(~mask, -torch.inf).softmax(-1)
        return self._finish(torch.einsum("nf,nfd->nd", weights, values))

    def _finish(self, mixed: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows dim"]:
        pooled = self.norm_pooled(self.out(mixed))
        return self.norm_out(pooled + self.dropout(self.linear(pooled)))

    def ask(self, texts: Texts) -> Texts:
        """Queries, scaled so that their inner products with keys are the attention's logits."""
        norm = self.norm_inputs if self.norm_texts is None else self.norm_texts
        return self.queries(norm(texts)) / texts.shape[-1] ** 0.5

    def answer(self, frames: Frames, mask: FrameMask) -> tuple[Frames, Frames]:
        """Keys and values of the frames."""
        frames = self.norm_inputs(frames.masked_fill(~mask[..., None], 0))
        return self.keys(frames), self.values(frames)


def scores_direct(
    pooling: CrossAttentionPooling, texts: Texts, frames: Frames, mask: FrameMask
) -> Scores:
    """Cosine of each text with each video as that text sees it, in [-1, 1].

    For the square block of a training batch: it holds several vectors for every pair at once.
    """
    pooled = functional.normalize(pooling(texts, frames, mask), dim=-1)
    return torch.einsum("td,vtd->tv", functional.normalize(texts, dim=-1), pooled)


_SHORTEST = 1e-12  # a pooled vector shorter than this scores 0, as in torch's own normalisation


class _Pooled(NamedTuple):
    """What the scores of some videos need, one row per video; see `fast_scores`."""

    keys: Frames
    absent: Float[Tensor, "videos frames"]  # 0 where a frame is real, -inf at padding
    rows: Frames  # g3 * z'_n
    spread: Float[Tensor, "videos frames frames"]  # G_2
    spread_out: Float[Tensor, "videos frames frames"]  # covariance of the z'
    inner: Float[Tensor, "videos frames frames"]  # inner products of the rows
    lines: Float[Tensor, "videos 3 frames"]  # z'_n with d' / D, rows with g3 * d' and with b3


def fast_scores(
    pooling: CrossAttentionPooling, texts: Texts, frames: Frames, mask: FrameMask, block: int = 256
) -> Scores:
    r"""What `scores_direct` computes without dropout, to about 1e-6, for a fraction of the work.

    Between the attention weights of a pair and its score all is linear but two layer norms, and
    these need of a weighted sum only its mean and variance: linear and quadratic in the weights. So
    everything of length D = ``dim`` is computed once per video, and a pair costs a few quadratic
    forms in as many weights as there are frames. With a the weights of a pair, :math:`u_n` what
    frame n adds to the projected sum and a prime for "minus its own mean over the dimensions":

    .. math::
        \mathrm{LN}_2 = r_2\, g_2 \odot \textstyle\sum_n a_n u'_n + b_2, \qquad
        r_2 = (a^\top G_2 a + \epsilon)^{-1/2}, \quad G_2 = U' U'^\top / D

        z_n = (I + W)(g_2 \odot u'_n), \qquad d = (I + W) b_2 + c

        \mathrm{LN}_3 = r_3\, g_3 \odot \big(r_2 \textstyle\sum_n a_n z'_n + d'\big) + b_3,
        \qquad
        r_3^{-2} = \tfrac{1}{D} \big\lVert r_2 \textstyle\sum_n a_n z'_n + d' \big\rVert^2
        + \epsilon

    Args:
        block: texts and videos worked on at a time; bounds the memory. Another value changes the
            scores by rounding at most, less than 1e-6.
    """
    columns = [slice(at, at + block) for at in range(0, len(frames), block)]
    videos = [_pooled(pooling, frames[part], mask[part]) for part in columns]
    offset = _offset(pooling)
    queries = pooling.ask(texts).float()
    units = functional.normalize(texts.float(), dim=-1)
    scores = units.new_empty(len(texts), len(frames))
    for at in range(0, len(texts), block):
        rows = slice(at, at + block)
        for part, pooled in zip(columns, videos, strict=True):
            scores[rows, part] = _scores(pooling, queries[rows], units[rows], pooled, offset).T
    return scores


def _pooled(pooling: CrossAttentionPooling, frames: Frames, mask: FrameMask) -> _Pooled:
    offset = _offset(pooling)
    keys, values = pooling.answer(frames, mask)
    # The weights of a pair sum to one, so every frame carries the bias.
    before = _centred(pooling.out(values))
    scaled = pooling.norm_pooled.weight * before
    after = _centred(scaled + scaled @ pooling.linear.weight.T)
    rows = pooling.norm_out.weight * after
    lines = [
        after @ offset / offset.numel(),
        rows @ (pooling.norm_out.weight * offset),
        rows @ pooling.norm_out.bias,
    ]
    return _Pooled(
        keys=keys.float(),
        absent=torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, -torch.inf),
        rows=rows.float(),
        spread=(before @ before.mT / offset.numel()).float(),
        spread_out=(after @ after.mT / offset.numel()).float(),
        inner=(rows @ rows.mT).float(),
        lines=torch.stack(lines, dim=1).float(),
    )


def _scores(
    pooling: CrossAttentionPooling,
    queries: Texts,
    texts: Texts,
    videos: _Pooled,
    offset: Float[Tensor, " dim"],
) -> Float[Tensor, "videos texts"]:
    shared_row = (pooling.norm_out.weight * offset).float()
    bias = pooling.norm_out.bias.float()
    # Texts come last throughout: the small quadratic forms are then products with long rows.
    logits = torch.einsum("vfd,td->vft", videos.keys, queries)
    weights = (logits + videos.absent[..., None]).softmax(1)
    scale = (_quadratic(videos.spread, weights) + pooling.norm_pooled.eps).rsqrt()
    weights = scale[:, None] * weights
    to_offset, to_row, to_bias = torch.bmm(videos.lines, weights).unbind(1)
    spread = _quadratic(videos.spread_out, weights)
    variance = spread + 2 * to_offset + offset.square().mean().float()
    scale = (variance.clamp(min=0) + pooling.norm_out.eps).rsqrt()
    square = _quadratic(videos.inner, weights) + 2 * to_row + shared_row.square().sum()
    cross = 2 * scale * (to_bias + shared_row @ bias)
    length = (scale.square() * square + cross + bias.square().sum()).clamp(min=0).sqrt()
    towards = (weights * torch.einsum("vfd,td->vft", videos.rows, texts)).sum(1)
    inner = scale * (towards + texts @ shared_row) + texts @ bias
    return inner / length.clamp(min=_SHORTEST)


def _offset(pooling: CrossAttentionPooling) -> Float[Tensor, " dim"]:
    """d': what the bias of the first norm becomes on its way to the second."""
    bias = pooling.norm_pooled.bias
    return _centred(bias + pooling.linear(bias))


def _quadratic(
    forms: Float[Tensor, "videos frames frames"], weights: Float[Tensor, "videos frames texts"]
) -> Float[Tensor, "videos texts"]:
    """Value of w' G w for positive semidefinite G, which rounding alone could take below zero."""
    return (weights * torch.bmm(forms, weights)).sum(1).clamp(min=0)


def _centred(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    return values - values.mean(-1, keepdim=True)
