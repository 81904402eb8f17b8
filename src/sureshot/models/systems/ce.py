r"""CE, Collaborative Experts (Liu et al., BMVC 2019).

A video is what several *experts* say of it, each in a space of its own. An expert's tokens are
pooled and mapped to one width; then each expert's vector is gated by what the others say (the
collaborative gating). The text is mapped once for every expert, and says how much each expert
counts for it. With x_e the pooled expert, a projection P, MLPs g and h, and a norm n,

.. math::
    \psi_e = \frac{P_e\,x_e}{\lVert \cdot \rVert}, \qquad
    v_e = \frac{\psi_e \circ \sigma(n(h(m_e)) + n(W_e \psi_e))}{\lVert \cdot \rVert}, \qquad
    m_e = \frac{1}{E - 1} \sum_{f \ne e} g([\psi_e, \psi_f]), \qquad
    s(t, v) = \sum_e w_e(t, v)\, t_e^\top v_e

with t_e a gated embedding unit of the sentence for each expert and w the softmax, over the experts
the video has, of a linear map of the sentence. Training minimises the bidirectional max-margin
loss of s.

The experts are parts of the encoder, ``frames``, ``backbone`` and ``cells``, and whatever was
extracted of the videos beforehand, see `sureshot.models.encoders.experts`. An expert that a video
lacks takes no part: neither in its gates nor in its weights, which add up to 1 without it. A video
that has none at all scores 0 with every text.

Differs:
    All experts are gated at once. The released code gates them one after the other, each by what
    the ones before it have become.

    The text is the encoder's sentence; the paper pools word vectors by NetVLAD. Tokens are pooled
    by their mean, or by NetVLAD (``aggregation``), for all experts alike; the paper's is NetVLAD
    for sounds, speech and words and the mean for the rest. An expert's tokens are normalised before
    they are pooled and again before they are mapped, whatever the size of its numbers.

    Where the released gates have batch norms there are layer norms, and the gated embedding units
    have none: with batch norms the code of an item knows its batch while it trains.

    The print has neither :math:`W_e \psi_e` nor norms, and sums where the code takes the mean over
    the experts that are there; ``gate = "printed"`` is so.

    An index keeps no experts but frames, and the space of a text's vectors is not that of frames:
    this system is evaluated, not searched with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from sureshot.errors import SureshotError
from sureshot.models.layers.pooling import masked_mean, standard, unit
from sureshot.models.losses.contrastive import Eta
from sureshot.models.losses.uncertainty import max_margin
from sureshot.models.shapes import Losses, Mask, Rng, Scores, Texts, Tokens, Vectors, Videos
from sureshot.models.systems.base import Codes, Sizes, System, SystemConfig, TextTokens, VideoTokens
from sureshot.settings import Within, build


class NetVlad(nn.Module):
    r"""Sums of differences to learned centres, over the tokens that lean to each.

    .. math:: V_k = \sum_n a_{nk}\,(x_n - c_k), \qquad a_n = \mathrm{softmax}_k(W x_n + b)

    each V_k at unit length, then all K of them together.

    References:
        Arandjelović et al. 2016, section 3.1; the aggregation of CE, Liu et al. 2019, section 3.1.

    Differs:
        Both codes normalise a batch's assignments over the batch while they train, which lets the
        items of a batch see each other; here there is no such layer.
    """

    def __init__(self, dim: int, clusters: int) -> None:
        super().__init__()
        self.assign = nn.Linear(dim, clusters)
        self.centres = nn.Parameter(torch.randn(clusters, dim) / dim**0.5)

    def forward(self, tokens: Tokens, mask: Mask) -> Float[Tensor, "items out"]:
        """One vector of K times ``dim`` numbers an item, at unit length."""
        padding = ~mask[..., None]
        tokens = tokens.masked_fill(padding, 0)
        shares = self.assign(tokens).softmax(-1).masked_fill(padding, 0)
        sums = torch.einsum("bnk,bnd->bkd", shares, tokens)
        sums = sums - shares.sum(1)[..., None] * self.centres
        return normalize(normalize(sums, dim=-1).flatten(1), dim=-1)


OWN = ("frames", "backbone", "cells")  # experts that are parts of the encoder


@dataclass(frozen=True, slots=True)
class CeConfig(SystemConfig):
    """Settings of CE.

    Attributes:
        experts: names of those that take part; None are all there are: the parts of the encoder
            that the stem passes on and what was extracted beforehand.
        aggregation: how an expert's tokens become one vector: their ``mean``, or ``netvlad``.
        gate: how they do: as ``released`` or as ``printed``.
        weighting: whether the text says how much each expert counts; all count the same otherwise.
        margin: how far the loss wants the score of a matched pair above that of any other.
    """

    experts: tuple[str, ...] | None = None
    width: Annotated[int | None, Within(1, 100_000)] = None
    aggregation: Literal["mean", "netvlad"] = "mean"
    clusters: Annotated[int, Within(1, 10_000)] = 8  # centres of NetVLAD
    gating: bool = True  # whether experts gate each other
    gate: Literal["released", "printed"] = "released"
    weighting: bool = True
    margin: Annotated[float, Within(0, 2)] = 0.2

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        SystemConfig.__post_init__(self)
        if self.experts is not None and not 0 < len(set(self.experts)) == len(self.experts):
            raise SureshotError(
                f"Setting system.experts is {list(self.experts)}; name each expert once, or leave "
                "it out to take all."
            )


class Ce(System):
    """CE."""

    Config = CeConfig

    has_scale = shares_scale = False  # the loss has a margin

    weights: Mapping[str, float] = {"similarity": 1.0}
    reads_words = False
    reads_experts = True
    searches = False

    @classmethod
    def from_settings(cls, values: Mapping[str, object], sizes: Sizes, key: str = "system") -> "Ce":
        """As `System.from_settings`; the sizes are those of all experts."""
        return cls(build(CeConfig, values, key), sizes)

    def __init__(self, config: CeConfig, sizes: Sizes) -> None:
        super().__init__(1.0)
        self.log_scale.requires_grad_(False)
        self.config = config
        known = _known(sizes)
        self.names = tuple(known) if config.experts is None else config.experts  # as in the codes
        for name in self.names:
            if name not in known:
                raise SureshotError(
                    f"Setting system.experts names {name!r}, which is not there; there are: "
                    f"{', '.join(known) or 'none'}. A linear stem drops the cells, and others come "
                    "from the folder named by train.experts."
                )
        self.cells = "coarse" if "cells" in self.names else "none"
        self._given = {name: (row, size) for row, (name, size) in enumerate(sizes.experts)}
        width = config.width or sizes.dim
        count = len(self.names)
        self.vector_width = count * width
        netvlad = config.aggregation == "netvlad"
        self.pools = nn.ModuleList(
            NetVlad(known[name], config.clusters) for name in self.names if netvlad
        )
        rows = config.clusters if netvlad else 1
        self.projections = nn.ModuleList(nn.Linear(rows * known[n], width) for n in self.names)
        self.released = config.gate == "released"
        self.gate = None
        if config.gating and count > 1:
            self.gate = Gate(width, count if self.released else 0)
        self.embeddings = nn.ModuleList(Embedding(sizes.dim, width) for _ in self.names)
        self.worth = nn.Linear(sizes.dim, count) if config.weighting and count > 1 else None

    def texts(self, tokens: TextTokens) -> Codes:
        """A unit vector for each expert, and the logits of their weights."""
        sentence = unit(tokens.sentence) * tokens.sentence.shape[-1] ** 0.5
        vectors = torch.stack([embed(sentence) for embed in self.embeddings], 1)
        logits = torch.zeros_like(vectors[..., 0]) if self.worth is None else self.worth(sentence)
        return {"vectors": unit(vectors), "logits": logits}

    def videos(self, tokens: VideoTokens) -> Codes:
        """A unit vector of each expert, zero where the video lacks it, and which it has."""
        parts = [self._expert(name, tokens) for name in self.names]
        present = torch.stack([mask.any(1) for _, mask in parts], 1)
        pools: Any = self.pools or [masked_mean] * len(parts)
        mapped = [
            project(standard(pool(standard(rows), mask)))
            for project, pool, (rows, mask) in zip(self.projections, pools, parts, strict=True)
        ]
        experts = torch.stack(mapped, 1)
        if self.gate is not None:
            experts = self.gate(unit(experts) if self.released else experts, present)
        vectors = unit(experts).masked_fill(~present[..., None], 0)
        return {"vectors": vectors, "present": present}

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Weighted mean of the experts' cosines, in [-1, 1]."""
        cosines = torch.einsum("ted,ved->tve", texts["vectors"], videos["vectors"])
        present = videos["present"]
        # Where there is no expert at all, all of their cosines are 0, however they are weighted.
        present = present | ~present.any(1, keepdim=True)
        logits = texts["logits"][:, None].masked_fill(~present, -torch.inf)
        return (logits.softmax(-1) * cosines).sum(-1)

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The bidirectional max-margin loss."""
        return {"similarity": max_margin(self.similarity(texts, videos), self.config.margin, eta)}

    def text_vectors(self, texts: Codes) -> Texts:
        """All experts' vectors one after another, as the text weighs them."""
        weights = texts["logits"].softmax(-1)
        return unit((weights[..., None] * texts["vectors"]).flatten(1))

    def video_vectors(self, videos: Codes) -> Videos:
        """All experts' vectors one after another; zero for a video that has none."""
        return unit(videos["vectors"].flatten(1))

    def _expert(
        self, name: str, tokens: VideoTokens
    ) -> tuple[Float[Tensor, "videos tokens size"], Mask]:
        """The tokens of an expert, and which of them are real."""
        match name:
            case "frames":
                return tokens.frames, tokens.mask
            case "backbone":
                return tokens.backbone, tokens.mask
            case "cells":
                mask = tokens.mask[..., None].expand(tokens.patches.shape[:3])
                return tokens.patches.flatten(1, 2), mask.flatten(1)
        place, size = self._given[name]
        return tokens.experts[..., :size], tokens.which[..., place : place + 1].any(-1)


class Gate(nn.Module):
    r"""Collaborative gating: each expert is let through as far as the others bear it out.

    .. math:: y_e = x_e \circ \sigma\big(n(h(m_e)) + n(W_e x_e)\big)

    with the mean m of g([x_e, x_f]) over the other experts f that are there; as printed, without
    ``experts`` of their own weights and norms, :math:`x_e \circ \sigma(h(m_e))` with their sum.

    References:
        CE, Liu et al. 2019, section 3.2, "collaborative gating"; g and h have one hidden layer.
    """

    def __init__(self, width: int, experts: int = 0) -> None:
        super().__init__()
        self.pair = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width))
        self.open = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.projection_norms, self.pooled_norms = (
            nn.ModuleList(nn.LayerNorm(width) for _ in range(experts)) for _ in range(2)
        )

    def forward(
        self, experts: Float[Tensor, "videos experts dim"], present: Bool[Tensor, "videos experts"]
    ) -> Float[Tensor, "videos experts dim"]:
        """The experts, gated; an expert that is not there has no say about the others."""
        count = experts.shape[1]
        one = experts[:, :, None].expand(-1, -1, count, -1)
        other = experts[:, None].expand(-1, count, -1, -1)
        pairs = torch.cat([one, other], -1)
        itself = torch.eye(count, dtype=torch.bool, device=experts.device)
        others = ~itself & present[:, None]
        pooled = self.pair(pairs).masked_fill(~others[..., None], 0).sum(2)
        if not self.projections:
            return experts * self.open(pooled).sigmoid()
        pooled = self.open(pooled / others.sum(-1, keepdim=True).clamp(min=1))
        layers = zip(self.projections, self.projection_norms, self.pooled_norms, strict=True)
        logits = [
            pooled_norm(pooled[:, row]) + projection_norm(project(experts[:, row]))
            for row, (project, projection_norm, pooled_norm) in enumerate(layers)
        ]
        return experts * torch.stack(logits, 1).sigmoid()


class Embedding(nn.Module):
    r"""Gated embedding unit: :math:`y = z \circ \sigma(W_2 z + b_2)` with :math:`z = W_1 x + b_1`.

    References:
        MoEE, Miech et al. 2018, section 3.1, taken over by CE.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(inputs, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "items inputs"]) -> Vectors:
        """Vectors, not normalised."""
        z = self.map(x)
        return z * self.gate(z).sigmoid()


def _known(sizes: Sizes) -> dict[str, int]:
    """Names of the experts that there are, and the sizes of their tokens."""
    frames = sizes.dim if sizes.channels else 0  # an encoder of texts alone has none
    own = dict(zip(OWN, (frames, sizes.channels, frames * sizes.cells), strict=True))
    for name, _ in sizes.experts:
        if name in own:
            raise SureshotError(
                f"An expert is called {name!r}, as a part of the encoder is; rename it."
            )
    return {name: size for name, size in own.items() if size} | dict(sizes.experts)
