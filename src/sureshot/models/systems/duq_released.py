r"""DUQ as its code was released, which is another model than the one its paper prints.

Three branches compare a text and a video, and the score is their mean. The *sentence* meets the
frames, weighed by a small network; the *words* meet cells of frames, merged by clustering to an
eighth of their number; and samples of two Gaussians, made of all tokens of either side, meet each
other. Training minimises

.. math:: L = L_{sf} + L_{wp} + L_{tv} + \alpha\,(L^U_{sf} + L^U_{wp} + L^U_{tv})
    + \beta L_{KL} + L_{agree}

with a contrastive and an evidential loss of each branch, the divergence of the Gaussians from
N(0, I), and one that makes the branches agree. None of the distance losses of the print is there;
`sureshot.models.systems.duq` has them.

Differs:
    Attention runs over the tokens of one item. The released code hands its tokens to an attention
    that takes the first axis for the sequence, so that items of a batch look at each other.

    Padding takes no part. The released code has no masks: padded words are weighed, attended to and
    matched.

    Scores are given as they are, and the noise of a test was drawn once and belongs to the model.
    The released code draws it again for every block, and its evaluation divides the scores of a
    video by their softmax over all texts of the test set.

    The head for the sentence that the released code has and never uses is left out.

References:
    github.com/OPA067/DUQ, commit ef0afad, both merge conflicts resolved to the older side.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import kl_div

from sureshot.models.layers.gaussian import (
    Gaussian,
    LocalAggregation,
    draw_noise,
    gaussian_of,
    kl_to_prior,
    sample,
)
from sureshot.models.layers.pooling import WeightedPooling, mean_of_units, token_shares, unit
from sureshot.models.layers.transformer import (
    SequentialTransformer,
    Transformer,
    dividing,
    draw_as_torch,
    start_from_clip,
)
from sureshot.models.losses.contrastive import Eta, info_nce, weigh
from sureshot.models.losses.uncertainty import evidence, evidential
from sureshot.models.scoring import token_interaction
from sureshot.models.shapes import Losses, Mask, Rng, Samples, Scalar, Scores, Tokens, Vectors
from sureshot.models.systems.base import Codes, Scale, System, SystemConfig, TextTokens, VideoTokens
from sureshot.settings import Within

_NEIGHBOURS = 3  # that tell how crowded the place of a token is
_SPREAD = 0.02  # standard deviation of new weights in the attention, cut at a hundred of it
_NOTHING = 1e-6  # added to the weights of a cluster, as in the released code


class TokenMerging(nn.Module):
    r"""Half as many tokens, each the weighted mean of a cluster, after a look at all.

    .. math::
        x' = \mathrm{LN}(x + \mathrm{Conv}(x)), \quad e = w^\top x' + b, \quad
        y_c = \frac{\sum_{n \in c} e^{e_n} x'_n}{\sum_{n \in c} e^{e_n}}, \quad
        z = y + W_o\, \mathrm{softmax}\Big(\frac{q k^\top}{\sqrt d} + e\Big) v

    with clusters by `cluster`, a convolution over three neighbouring tokens, queries of
    :math:`\mathrm{LN}(y)`, and keys and values of :math:`\mathrm{LN}(x')`.

    References:
        TCFormer, Zeng et al. 2022, section 3.2 (clustering-based token merging), as the released
        code of DUQ has it.

    Differs:
        The released code breaks ties between tokens by a random draw, so that scores of videos
        with equal tokens differ from one run to the next; here the earlier token wins. It has no
        mask; here padding takes no part, and its length does not change the number of clusters.
    """

    def __init__(self, dim: int, heads: int = 8) -> None:
        super().__init__()
        self.heads = dividing(dim, heads)
        self.conv = nn.Conv1d(dim, dim, kernel_size=3, padding=1, bias=False)
        self.norm = nn.LayerNorm(dim)
        self.score = nn.Linear(dim, 1)
        self.norm_attention = nn.LayerNorm(dim)
        self.queries = nn.Linear(dim, dim)
        self.keys_values = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        for layer in (self.queries, self.keys_values, self.out):
            nn.init.trunc_normal_(layer.weight, std=_SPREAD)
            nn.init.zeros_(layer.bias)

    def forward(
        self, tokens: Tokens, mask: Mask
    ) -> tuple[Float[Tensor, "items clusters dim"], Bool[Tensor, "items clusters"]]:
        """Merged tokens and which of them are real: half of an item's own, rounded up."""
        tokens = tokens.masked_fill(~mask[..., None], 0)
        tokens = self.norm(tokens + self.conv(tokens.transpose(1, 2)).transpose(1, 2))
        logits = self.score(tokens).squeeze(-1)
        place, real = cluster(tokens.detach(), mask)
        weights = logits.exp().masked_fill(~mask, 0)
        member = functional.one_hot(place, real.shape[1]).to(tokens.dtype) * weights[..., None]
        shares = member / (member.sum(1, keepdim=True) + _NOTHING)
        merged = torch.einsum("bnc,bnd->bcd", shares, tokens)
        keys, values = self.keys_values(self.norm_attention(tokens)).chunk(2, dim=-1)
        bias = logits.masked_fill(~mask, -torch.inf)[:, None, None]
        seen = functional.scaled_dot_product_attention(
            self._by_head(self.queries(self.norm_attention(merged))),
            self._by_head(keys),
            self._by_head(values),
            attn_mask=bias.expand(-1, -1, merged.shape[1], -1),
        )
        return merged + self.out(seen.transpose(1, 2).flatten(-2)), real

    def _by_head(self, rows: Tokens) -> Float[Tensor, "..."]:
        return torch.unflatten(rows, -1, (self.heads, -1)).transpose(1, 2)


@torch.no_grad()
def cluster(
    tokens: Tokens, mask: Mask
) -> tuple[Int64[Tensor, "items tokens"], Bool[Tensor, "items clusters"]]:
    r"""The cluster of each token, by density peaks among nearest neighbours.

    Centres are tokens in crowded places that are far from any more crowded one: the half of an
    item's tokens, rounded up, with the largest :math:`\rho_n \delta_n`, where

    .. math:: \rho_n = \exp\Big(-\frac13 \sum_{m \in \mathrm{NN}(n)} d_{nm}^2\Big), \qquad
        \delta_n = \min_{m: \rho_m > \rho_n} d_{nm}

    and NN are the three nearest tokens, itself among them. The other tokens join the nearest
    centre.

    The numbers of clusters mean nothing at padding; the first clusters of each item are real.

    References:
        DPC-KNN, Du et al. 2016.
    """
    count = mask.sum(1)
    distance = torch.cdist(tokens, tokens) / tokens.shape[2] ** 0.5
    both = mask[:, None] & mask[..., None]
    farthest = distance.masked_fill(~both, 0).amax((1, 2))[:, None, None]
    distance = distance.masked_fill(~both, torch.inf)
    near = distance.topk(min(_NEIGHBOURS, tokens.shape[1]), largest=False).values
    near = near.masked_fill(near.isinf(), 0)
    density = (-near.square().sum(-1) / count.clamp(max=_NEIGHBOURS)[:, None]).exp()
    density = density.masked_fill(~mask, -1)
    # More crowded: denser, or as dense and earlier.
    earlier = torch.ones_like(both[0]).tril(-1)
    denser = density[:, None] > density[..., None]
    denser |= (density[:, None] == density[..., None]) & earlier
    apart = torch.where(denser, distance, farthest).amin(-1)
    score = (apart * density).masked_fill(~mask, -torch.inf)
    clusters = math.ceil(int(count.max()) / 2)
    centres = score.topk(clusters).indices
    real = torch.arange(clusters, device=mask.device) < ((count + 1) // 2)[:, None]
    to_centres = distance.gather(1, centres[..., None].expand(-1, -1, tokens.shape[1]))
    place = to_centres.masked_fill(~real[..., None], torch.inf).argmin(1)
    # A centre belongs to itself, even where another is at the same place.
    own = torch.arange(clusters, device=mask.device).expand_as(centres)
    own = torch.where(real, own, place.gather(1, centres))
    return place.scatter(1, centres, own), real


_BRANCHES = ("sentence frame", "word patch", "distribution")
_LOSSES = ("similarity", "word_patch", "distribution")  # of the branches
_SEED = 250609077  # of the noise of a test; 0 may be that of weights or of data
_MERGINGS = 3  # each halves the number of cells


@dataclass(frozen=True, slots=True)
class DuqReleasedConfig(SystemConfig):
    """Settings of DUQ as released.

    Attributes:
        heads: attention heads of the transformer; CLIP's text network has one for 64 numbers.
    """

    layers: Annotated[int, Within(1, 100)] = 4
    heads: Annotated[int, Within(1, 1000)] = 8
    samples: Annotated[int, Within(1, 100)] = 10  # K, embeddings of each item
    alpha: Annotated[float, Within(0, 1000)] = 0.1
    beta: Annotated[float, Within(0, 1000)] = 1e-4
    longest: Annotated[int, Within(1, 100_000)] = 77  # most frames the transformer can place
    scale: Scale = None


class Side(nn.Module):
    """What either side has: the Gaussian of an item's tokens, and what a sample is worth."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mean = LocalAggregation(width)
        self.deviation = LocalAggregation(width)
        self.sample_worth = WeightedPooling(width).worth

    def forward(self, first: Vectors, rest: Tokens, mask: Mask) -> Gaussian:
        """The Gaussian of the first token and the rest, with a unit mean."""
        return Gaussian(unit(self.mean(first, rest, mask)), 2 * self.deviation(first, rest, mask))

    def samples(
        self, gaussian: Gaussian, noise: Float[Tensor, "*items k dim"]
    ) -> tuple[Samples, Bool[Tensor, "items k"], Float[Tensor, "items k"]]:
        """Samples of items, by their own noise or one for all; all are real; what each counts."""
        vectors = sample(gaussian, noise.expand(len(gaussian.mean), *noise.shape[-2:]))
        real = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        return vectors, real, token_shares(self.sample_worth, vectors, real)


class DuqReleased(System):
    """DUQ as released."""

    Config = DuqReleasedConfig

    frozen = "patches"
    cells = "whole"
    searches = False
    text_noise: Tensor
    video_noise: Tensor

    def __init__(self, config: DuqReleasedConfig, width: int) -> None:
        super().__init__(config.scale)
        self.config = config
        self.weights = {
            **dict.fromkeys(_LOSSES, 1.0),
            **{f"{name}_evidence": config.alpha for name in _LOSSES},
            "divergence": config.beta,
            "agreement": 1.0,
        }
        blocks = Transformer(width, config.layers, config.heads, eps=1e-12)
        self.temporal = SequentialTransformer(blocks, width, config.longest)
        worths = [WeightedPooling(width).worth for _ in range(3)]
        self.word_worth, self.frame_worth, self.patch_worth = worths
        self.mergings = nn.ModuleList(TokenMerging(width) for _ in range(_MERGINGS))
        self.text_side, self.video_side = Side(width), Side(width)
        for made in (*worths, self.text_side, self.video_side):
            draw_as_torch(made)
        draw = torch.Generator().manual_seed(_SEED)
        for side in ("text", "video"):
            self.register_buffer(f"{side}_noise", draw_noise((config.samples, width), draw))

    def start_from_clip(self, text: Mapping[str, Tensor]) -> None:
        """Start the transformer over frames from CLIP's first text blocks and places."""
        start_from_clip(self.temporal, text)

    def texts(self, tokens: TextTokens) -> Codes:
        """The sentence, the words and their weights, and the Gaussian of all of them."""
        tokens.require_words("DUQ")
        words, mask = tokens.words, tokens.mask
        gaussian = self.text_side(tokens.sentence, words, mask)
        return {
            "sentence": tokens.sentence,
            "words": words,
            "mask": mask,
            "worth": token_shares(self.word_worth, words, mask),
            **gaussian._asdict(),
        }

    def videos(self, tokens: VideoTokens) -> Codes:
        """The frames as the sentence meets them, merged cells, and the Gaussian of both."""
        frames = self.temporal(tokens.frames, tokens.mask)
        seen = torch.einsum(
            "vf,vfd->vd", token_shares(self.frame_worth, frames, tokens.mask), unit(frames)
        )
        cells, real = _cells(tokens)
        for merge in self.mergings:
            cells, real = merge(cells, real)
        rest = torch.cat([frames[:, 1:], cells], 1)
        gaussian = self.video_side(frames[:, 0], rest, torch.cat([tokens.mask[:, 1:], real], 1))
        return {
            "video": mean_of_units(frames, tokens.mask),
            "framed": seen,
            "cells": cells,
            "mask": real,
            "worth": token_shares(self.patch_worth, cells, real),
            **gaussian._asdict(),
        }

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Mean of the three branches, in [-1, 1]."""
        return torch.stack(self._branches(texts, videos, self.text_noise, self.video_noise)).mean(0)

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """A contrastive and an evidential loss of each branch, the divergence, the agreement."""
        source = generator or torch.default_generator
        shape = (len(texts["mean"]), self.config.samples, texts["mean"].shape[1])
        # Drawn on the processor, so that a seed gives the same noise on any device.
        noise = [draw_noise(shape, source).to(texts["mean"]) for _ in range(2)]
        branches = self._branches(texts, videos, *noise)
        found = {}
        for name, scores in zip(_LOSSES, branches, strict=True):
            found[name] = info_nce(scores, self.scale, eta=eta)
            found[f"{name}_evidence"] = evidential(weigh(evidence(scores), eta), total="mean")
        sides = zip((gaussian_of(texts), gaussian_of(videos)), noise, strict=True)
        # As in the released code: the samples' mean, and the deviation's logarithm as the
        # variance's, summed over the batch.
        as_released = [Gaussian(sample(g, drawn).mean(1), g.log_var / 2) for g, drawn in sides]
        found["divergence"] = torch.stack([kl_to_prior(g).sum() for g in as_released]).sum()
        apart = [_disagreement(*pair) for pair in combinations(branches, 2)]
        found["agreement"] = torch.stack(apart).mean()
        return found

    def matrices(self, texts: Codes, videos: Codes) -> dict[str, Scores]:
        """The scores of the three branches."""
        branches = self._branches(texts, videos, self.text_noise, self.video_noise)
        return dict(zip(_BRANCHES, branches, strict=True))

    def _branches(
        self, texts: Codes, videos: Codes, text_noise: Tensor, video_noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of the three branches, each in [-1, 1]."""
        sides = texts["words"], videos["cells"], texts["mask"], videos["mask"]
        words = token_interaction(*sides, texts["worth"], videos["worth"])
        one, *of_one = self.text_side.samples(gaussian_of(texts), text_noise)
        other, *of_other = self.video_side.samples(gaussian_of(videos), video_noise)
        masks, worth = zip(of_one, of_other, strict=True)
        samples = token_interaction(one, other, *masks, *worth)
        return unit(texts["sentence"]) @ videos["framed"].T, words, samples


def _cells(tokens: VideoTokens) -> tuple[Tokens, Mask]:
    """Of each frame its own vector and its cells, if it has any, frame after frame."""
    each = tokens.frames[:, :, None]
    if tokens.patches.shape[2]:
        each = torch.cat([each, tokens.patches], 2)
    mask = tokens.mask[..., None].expand(each.shape[:3])
    return each.flatten(1, 2), mask.flatten(1, 2)


def _disagreement(first: Scores, second: Scores) -> Scalar:
    """Divergence of two score matrices row by row and column by column, over all their entries."""
    both = ((first, second), (first.T, second.T))
    found = [kl_div(a.log_softmax(-1), b.softmax(-1), reduction="sum") for a, b in both]
    return torch.stack(found).mean() / first.numel()
