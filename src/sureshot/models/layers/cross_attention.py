"""Pooling that a text conducts: each text sees its own summary of every video."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.layers.linear import identity
from sureshot.models.layers.transformer import dividing


class CrossAttentionPooling(nn.Module):
    r"""Frames pooled anew for every text, with weights from the text's attention to them.

    .. math::
        a = \mathrm{softmax}_f\Big(\frac{q^\top k_f}{\sqrt{d}}\Big), \quad
        r = \mathrm{LN}_2\Big(W_o \sum_f a_f v_f + b_o\Big), \quad
        y = \mathrm{LN}_3\big(r + W r + b\big)

    where q is a projection of LN₁(t), k and v are projections of LN₁(x), the same LN₁ for texts and
    frames. All projections start as the identity, so an untrained pooling is an attention in
    CLIP's own space.

    A direct call holds a vector for every pair of a text and a video. To score many, see
    `sureshot.models.layers.fast_pooling`, which gives the same scores for a fraction of the work.

    Args:
        dim: length of a text's and of a frame's vector.
        dropout: share of ``W r + b`` dropped in training.
        heads: attention heads; they divide ``dim``.
        separate_norms: give the texts a layer norm of their own.

    Raises:
        SureshotError: ``heads`` does not divide ``dim``.

    References:
        X-Pool, Gorti et al. 2022, section 4.2. DUQ takes it over as it is; ``separate_norms`` is
        the variant in its released code.

    Differs:
        Frames have a mask. X-Pool has none: it fills short videos by repeating their last frame.
    """

    def __init__(
        self, dim: int, dropout: float = 0.3, heads: int = 1, *, separate_norms: bool = False
    ) -> None:
        super().__init__()
        self.heads = dividing(dim, heads)
        self.norm_inputs = nn.LayerNorm(dim)
        self.norm_texts = nn.LayerNorm(dim) if separate_norms else None
        self.queries, self.keys, self.values = identity(dim), identity(dim), identity(dim)
        self.out = identity(dim)
        self.norm_pooled = nn.LayerNorm(dim)
        self.linear = identity(dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_out = nn.LayerNorm(dim)

    def forward(
        self,
        texts: Float[Tensor, "texts dim"],
        frames: Float[Tensor, "videos frames dim"],
        mask: Bool[Tensor, "videos frames"],
    ) -> Float[Tensor, "videos texts dim"]:
        """Every video as every text sees it, not normalised.

        Args:
            texts: vectors as the encoder gives them, not normalised.
            frames: vectors as the encoder gives them; what stands at padding has no influence.
            mask: True where a frame is real; every video has at least one.
        """
        queries = self.ask(texts)
        keys, values = self.answer(frames, mask)
        logits = torch.einsum("thd,vhfd->vhtf", queries, keys)
        weights = logits.masked_fill(~mask[:, None, None, :], -torch.inf).softmax(-1)
        return self._finish(torch.einsum("vhtf,vhfd->vthd", weights, values))

    def paired(
        self,
        texts: Float[Tensor, "pairs dim"],
        frames: Float[Tensor, "pairs frames dim"],
        mask: Bool[Tensor, "pairs frames"],
    ) -> Float[Tensor, "pairs dim"]:
        """Video i as text i sees it, arguments as in a call, without all the other pairs."""
        keys, values = self.answer(frames, mask)
        logits = torch.einsum("nhd,nhfd->nhf", self.ask(texts), keys)
        weights = logits.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
        return self._finish(torch.einsum("nhf,nhfd->nhd", weights, values))

    def _finish(self, mixed: Float[Tensor, "*rows heads head_dim"]) -> Float[Tensor, "*rows dim"]:
        pooled = self.norm_pooled(self.out(mixed.flatten(-2)))
        return self.norm_out(pooled + self.dropout(self.linear(pooled)))

    def ask(self, texts: Float[Tensor, "texts dim"]) -> Float[Tensor, "texts heads head_dim"]:
        """Queries, scaled so that their inner products with keys are the attention's logits."""
        norm = self.norm_inputs if self.norm_texts is None else self.norm_texts
        queries = self.queries(norm(texts)).unflatten(-1, (self.heads, -1))
        return queries / queries.shape[-1] ** 0.5

    def answer(
        self, frames: Float[Tensor, "videos frames dim"], mask: Bool[Tensor, "videos frames"]
    ) -> tuple[
        Float[Tensor, "videos heads frames head_dim"], Float[Tensor, "videos heads frames head_dim"]
    ]:
        """Keys and values of the frames, arguments as in a call."""
        frames = self.norm_inputs(frames.masked_fill(~mask[..., None], 0))
        keys, values = (
            project(frames).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project in (self.keys, self.values)
        )
        return keys, values


def scores_direct(
    pooling: CrossAttentionPooling,
    texts: Float[Tensor, "texts dim"],
    frames: Float[Tensor, "videos frames dim"],
    mask: Bool[Tensor, "videos frames"],
) -> Float[Tensor, "texts videos"]:
    """Cosine of each text with each video as that text sees it; rows texts, columns videos.

    Higher is better, in [-1, 1]. Holds several vectors for every pair at once: meant for the
    square block of a training batch.

    Args:
        pooling: pooling of the frames; in training mode its dropout takes part.
        texts: not normalised.
        frames: not normalised; what stands at padding has no influence.
        mask: True where a frame is real; every video has at least one.
    """
    pooled = functional.normalize(pooling(texts, frames, mask), dim=-1)
    return torch.einsum("td,vtd->tv", functional.normalize(texts, dim=-1), pooled)
