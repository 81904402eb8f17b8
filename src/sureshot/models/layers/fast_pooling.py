r"""The scores of text-conditioned pooling without a vector for every pair: exact, and fast.

What lies between the attention weights of a pair and its score is linear but for two layer norms,
and all that a layer norm needs of a weighted sum is its mean and its variance: linear and quadratic
in the weights. So everything of length ``dim`` is worked out once a video, and a pair costs the
inner products with its frames and a few quadratic forms in as many weights as there are frames.

Let a be the weights of a pair, over ``units``: the frames, or with several heads every frame of
every head. With :math:`u_n` what unit n adds to the projected sum and a prime for "minus its own
mean over the dimensions":

.. math::
    \mathrm{LN}_2 = r_2\, g_2 \odot \textstyle\sum_n a_n u'_n + b_2, \qquad
    r_2 = (a^\top G_2 a + \epsilon)^{-1/2}, \quad G_2 = U' U'^\top / D

    z_n = (I + W)(g_2 \odot u'_n), \qquad d = (I + W) b_2 + c

    \mathrm{LN}_3 = r_3\, g_3 \odot \big(r_2 \textstyle\sum_n a_n z'_n + d'\big) + b_3, \qquad
    r_3^{-2} = \tfrac{1}{D} \big\lVert r_2 \textstyle\sum_n a_n z'_n + d' \big\rVert^2 + \epsilon

The last norm, the length of the outcome and its inner product with the text are all of the form
"quadratic plus linear plus constant" in :math:`r_2 a`. All of it can be differentiated, so a
pooling without dropout trains at this price too.

References:
    The pooling is X-Pool's (Gorti et al. 2022, section 4.2), which DUQ uses. This way of computing
    it is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from sureshot.errors import SureshotError
from sureshot.models.layers.cross_attention import CrossAttentionPooling

_SHORTEST = 1e-12  # a pooled vector shorter than this scores 0, as in torch's own normalisation


@dataclass(frozen=True, slots=True, eq=False)
class PooledVideos:
    r"""What text-conditioned pooling needs to know of each video; float32, one row a video.

    Holds for the pooling it was made with, as long as that is not trained on.

    Attributes:
        keys: keys of the attention.
        absent: 0 where a frame is real, -inf at padding.
        rows: what each unit adds to the outcome, :math:`g_3 \odot z'_n`.
        spread: :math:`G_2`, covariance of the units before the first norm of the outcome.
        spread_out: covariance of the units before the second.
        inner: inner products of ``rows``.
        lines: three numbers for each unit: its covariance with :math:`d'`, and the inner products
            of its row with :math:`g_3 \odot d'` and with :math:`b_3`.
    """

    keys: Float[Tensor, "videos heads frames head_dim"]
    absent: Float[Tensor, "videos frames"]
    rows: Float[Tensor, "videos units dim"]
    spread: Float[Tensor, "videos units units"]
    spread_out: Float[Tensor, "videos units units"]
    inner: Float[Tensor, "videos units units"]
    lines: Float[Tensor, "videos 3 units"]

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, part: slice) -> "PooledVideos":
        """Some of the videos, in their order."""
        return PooledVideos(
            **{field.name: getattr(self, field.name)[part] for field in fields(self)}
        )

    @classmethod
    def joined(cls, parts: Sequence["PooledVideos"]) -> "PooledVideos":
        """The videos of all parts, in their order.

        Raises:
            SureshotError: no parts, or parts of different numbers of frames.
        """
        counts = sorted({part.absent.shape[1] for part in parts})
        if len(counts) != 1:
            raise SureshotError(
                f"Pooled videos of {counts} frames cannot be joined; give at least one part, and "
                "pad all frames to one number before pooling."
            )
        names = [field.name for field in fields(cls)]
        return cls(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


def precompute(
    pooling: CrossAttentionPooling,
    frames: Float[Tensor, "videos frames dim"],
    mask: Bool[Tensor, "videos frames"],
    *,
    block: int = 256,
) -> PooledVideos:
    """Work out once what every text will ask of these videos.

    Args:
        pooling: pooling of the frames, in evaluation mode.
        frames: not normalised; what stands at padding has no influence.
        mask: True where a frame is real; every video has at least one.
        block: videos worked on at a time; bounds the memory and changes the result by rounding at
            most.

    Raises:
        SureshotError: the pooling is training with dropout.
    """
    _refuse_dropout(pooling)
    offset = _offset(pooling)
    parts = [slice(at, at + block) for at in range(0, max(len(frames), 1), block)]
    return PooledVideos.joined([_precompute(pooling, frames[p], mask[p], offset) for p in parts])


def _precompute(
    pooling: CrossAttentionPooling,
    frames: Float[Tensor, "videos frames dim"],
    mask: Bool[Tensor, "videos frames"],
    offset: Float[Tensor, " dim"],
) -> PooledVideos:
    keys, values = pooling.answer(frames, mask)
    out = pooling.out.weight.reshape(frames.shape[-1], pooling.heads, -1)
    # The weights of each head sum to one, so every unit carries its share of the bias.
    units = torch.einsum("vhfd,ohd->vhfo", values, out) + pooling.out.bias / pooling.heads
    before = _centred(units.flatten(1, 2))
    scaled = pooling.norm_pooled.weight * before
    after = _centred(scaled + scaled @ pooling.linear.weight.T)
    rows = pooling.norm_out.weight * after
    lines = [
        after @ offset / offset.numel(),
        rows @ (pooling.norm_out.weight * offset),
        rows @ pooling.norm_out.bias,
    ]
    return PooledVideos(
        keys=keys.float(),
        absent=torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, -torch.inf),
        rows=rows.float(),
        spread=(before @ before.mT / offset.numel()).float(),
        spread_out=(after @ after.mT / offset.numel()).float(),
        inner=(rows @ rows.mT).float(),
        lines=torch.stack(lines, dim=1).float(),
    )


def fast_scores(
    pooling: CrossAttentionPooling,
    texts: Float[Tensor, "texts dim"],
    videos: PooledVideos,
    *,
    block: int = 256,
) -> Float[Tensor, "texts videos"]:
    """Cosine of each text with each video as that text sees it; rows texts, columns videos.

    What `scores_direct` computes in evaluation mode, to about 1e-6. Higher is better, in [-1, 1].

    Args:
        pooling: the one the videos were precomputed with, in evaluation mode.
        texts: not normalised.
        videos: what was precomputed of the videos, on the device of the texts.
        block: texts and videos worked on at a time; bounds the memory. Another value changes the
            scores by rounding at most, less than 1e-6.

    Raises:
        SureshotError: the pooling is training with dropout.
    """
    _refuse_dropout(pooling)
    shared = _Shared.of(pooling)
    queries = pooling.ask(texts).float()
    units = functional.normalize(texts.float(), dim=-1)
    scores = units.new_empty(len(texts), len(videos))
    for row in range(0, len(texts), block):
        asked, own = queries[row : row + block], units[row : row + block]
        for column in range(0, len(videos), block):
            part = videos[column : column + block]
            scores[row : row + block, column : column + block] = _scores(asked, own, part, shared).T
    return scores


@dataclass(frozen=True, slots=True)
class _Shared:
    """What no video and no text has a part in."""

    row: Float[Tensor, " dim"]  # g3 * d'
    bias: Float[Tensor, " dim"]  # b3
    variance: Float[Tensor, ""]  # of d
    eps: float  # of the first norm of the outcome
    eps_out: float  # of the second

    @classmethod
    def of(cls, pooling: CrossAttentionPooling) -> "_Shared":
        offset = _offset(pooling)
        return cls(
            row=(pooling.norm_out.weight * offset).float(),
            bias=pooling.norm_out.bias.float(),
            variance=offset.square().mean().float(),
            eps=pooling.norm_pooled.eps,
            eps_out=pooling.norm_out.eps,
        )


def _scores(
    queries: Float[Tensor, "texts heads head_dim"],
    texts: Float[Tensor, "texts dim"],
    videos: PooledVideos,
    shared: _Shared,
) -> Float[Tensor, "videos texts"]:
    # Texts come last throughout: the small quadratic forms are then products with long rows.
    logits = torch.einsum("vhfd,thd->vhft", videos.keys, queries)
    weights = (logits + videos.absent[:, None, :, None]).softmax(2).flatten(1, 2)
    scale = (_quadratic(videos.spread, weights) + shared.eps).rsqrt()
    weights = scale[:, None] * weights
    to_offset, to_row, to_bias = torch.bmm(videos.lines, weights).unbind(1)
    variance = _quadratic(videos.spread_out, weights) + 2 * to_offset + shared.variance
    scale = (variance.clamp(min=0) + shared.eps_out).rsqrt()
    square = _quadratic(videos.inner, weights) + 2 * to_row + shared.row.square().sum()
    cross = 2 * scale * (to_bias + shared.row @ shared.bias)
    length = (scale.square() * square + cross + shared.bias.square().sum()).clamp(min=0).sqrt()
    towards = (weights * torch.einsum("vud,td->vut", videos.rows, texts)).sum(1)
    inner = scale * (towards + texts @ shared.row) + texts @ shared.bias
    return inner / length.clamp(min=_SHORTEST)


def _quadratic(
    forms: Float[Tensor, "videos units units"], weights: Float[Tensor, "videos units texts"]
) -> Float[Tensor, "videos texts"]:
    """Value of w' G w for positive semidefinite G, which rounding alone could take below zero."""
    return (weights * torch.bmm(forms, weights)).sum(1).clamp(min=0)


def _offset(pooling: CrossAttentionPooling) -> Float[Tensor, " dim"]:
    """d': what the bias of the first norm becomes on its way to the second."""
    bias = pooling.norm_pooled.bias
    return _centred(bias + pooling.linear(bias))


def _centred(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    return values - values.mean(-1, keepdim=True)


def _refuse_dropout(pooling: CrossAttentionPooling) -> None:
    if pooling.training and pooling.dropout.p > 0:
        raise SureshotError(
            "Fast pooling has no dropout, and this pooling is training with it; call its eval() "
            "first, or score with scores_direct."
        )
