r"""T-MASS, text is modelled as a stochastic embedding (Wang et al., CVPR 2024).

A sentence says less than a video shows, so a text is a mass around its vector rather than a point.
How far the mass reaches depends on how similar the text is to the frames of the video it is
compared with; a video is pooled by the text itself, as in X-Pool:

.. math:: t_s = t + R \odot \epsilon, \qquad
    R = \exp\big(W\, [\cos(t, f_1) \dots \cos(t, f_F)] + b\big), \qquad
    s = \cos(t_s, v_{|t})

Training draws one vector of each mass, around its own video, and has a second contrastive loss for
the point of the mass that lies towards that video:

.. math:: t_{sup} = t + R \odot \frac{v - t}{\lVert v - t \rVert}, \qquad
    L = L(t_s) + \lambda\, L(t_{sup})

At test nothing is drawn. The default, ``trials = 0``, scores by the text itself, the middle of the
mass: it favours no pair, and is X-Pool's score at X-Pool's price. With ``trials`` above 0 the noise
was drawn once, belongs to the model, and is the same for all pairs; the ``mean`` of the trials'
cosines is one more estimate from the middle, while the ``best`` of them, the paper's choice, rises
with the radius: a maximum over noise favours pairs with wide masses, right or wrong.

Differs:
    Every video is pooled by the query. The released evaluation pools each by its own caption, the
    right answer, and ranks it against all queries: untrained weights then find the right one out
    of 128 in 23 to 27 percent of cases by that alone. Its printed results are not comparable.

    The radius reads F cosines, and videos have as many frames as they have: a video of n frames is
    stretched to F places in equal steps, place m showing frame ⌊m n / F⌋. A photo shows the same
    frame F times. With F frames this is the paper's radius; padding is never looked at.

    ``well_posed`` measures all in lengths of the text: both text and pooled video at unit length,
    noise of variance 1 / D in each dimension, so that a radius of one is a mass as wide as the text
    is long. In ``paper`` mode vectors are as the encoder gives them and noise has length
    :math:`R \sqrt D`, which drowns a unit vector; the support text then moves by R
    in all, not by R in each dimension.

    The paper draws normal noise; its released code draws from [0, 1) by default
    (``noise = "uniform"``), which moves every text in the same direction by half the radius.

    The support text points towards the video as its own text pools it. The released code takes the
    mean of the video as all texts of the batch pool it.

    ``released`` is that code in all but its evaluation, with lengths as in ``paper``.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sureshot.models.layers.gaussian import draw_noise
from sureshot.models.layers.pooling import CrossAttentionPooling, unit
from sureshot.models.losses.contrastive import Eta, info_nce
from sureshot.models.shapes import FrameMask, Frames, Losses, Rng, Scores, Texts
from sureshot.models.systems.base import Codes, Scale, SystemConfig
from sureshot.models.systems.xpool import PooledSimilarity, PooledSystem
from sureshot.settings import Within

Noise = Literal["normal", "uniform"]
TrialChoice = Literal["mean", "best"]
_SEED = 240317998  # of fixed noise, the paper's number; 0 may be that of weights or of data
_BLOCK = 2**22  # numbers in a vector for every pair, held at once by a score with trials


@dataclass(frozen=True, slots=True)
class TMassConfig(SystemConfig):
    """Settings of T-MASS.

    Attributes:
        noise: ``normal``, or ``uniform`` from 0 to 1; None is uniform in ``released``.
        deviation: factor on the noise; 0.003, of normal noise, on LSMDC in the released commands.
        support: lambda, weight of the loss of support texts; 0 on LSMDC and DiDeMo in the released
            commands.
        frames: F, places at which the radius looks at a video.
        trials: vectors of a mass that a score compares; 0 compares the text itself. 20 in the
            paper; None is 20 in ``released`` and 0 otherwise.
        choice: which cosine of the trials is the score: their ``mean``, or the ``best``; None is
            the best in ``released``.
        dropout: share of the layer behind the attention that training drops.
    """

    mode: Literal["well_posed", "paper", "released"] = "well_posed"
    noise: Noise | None = None
    deviation: Annotated[float, Within(0, 1000)] = 1.0
    support: Annotated[float, Within(0, 1000)] = 0.8
    frames: Annotated[int, Within(1, 100_000)] = 12
    trials: Annotated[int | None, Within(0, 1000)] = None
    choice: TrialChoice | None = None
    dropout: Annotated[float, Within(0, 0.99)] = 0.3
    scale: Scale = None


class Radius(nn.Module):
    """Logarithm of how far a text's mass reaches in each dimension, for every video (linear)."""

    def __init__(self, frames: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(frames, dim)
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, cosines: Float[Tensor, "*pairs places"]) -> Float[Tensor, "*pairs dim"]:
        """Of each pair, from the cosines of the text with the places that `show` gives."""
        return self.linear(cosines)

    def show(self, frames: Frames, mask: FrameMask) -> Float[Tensor, "videos places dim"]:
        """Videos stretched to F places, every frame at unit length."""
        count = self.linear.in_features
        steps = torch.arange(count, device=mask.device)
        places = steps * mask.sum(1, keepdim=True) // count
        return unit(frames.gather(1, places[..., None].expand(-1, -1, frames.shape[-1])))


class TMass(PooledSystem):
    """T-MASS."""

    Config = TMassConfig

    reads_words = False
    trial_noise: Tensor

    def __init__(self, config: TMassConfig, width: int) -> None:
        super().__init__(config.scale)
        self.config = config
        self.printed_mode, released = config.mode != "well_posed", config.mode == "released"
        self.noise: Noise = config.noise or ("uniform" if released else "normal")
        self.choice: TrialChoice = config.choice or ("best" if released else "mean")
        self.trials = (20 if released else 0) if config.trials is None else config.trials
        self.weights = {"similarity": 1.0, "support": config.support}
        self.pooled = PooledSimilarity("cross_attention", width, dropout=config.dropout)
        self.radius = Radius(config.frames, width)
        if self.trials:
            noise = self._noise((self.trials, width), torch.Generator().manual_seed(_SEED))
            self.register_buffer("trial_noise", noise)

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Cosine of each text, or of its trials, with each video as that text pools it."""
        sentences = texts["sentence"]
        if not self.trials:
            return self.pooled(sentences, videos)
        size = max(1, _BLOCK // max(videos["video"].numel(), 1))
        return torch.cat([self._tried(part, videos) for part in torch.split(sentences, size)])

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The contrastive losses of one vector of each mass and of the support texts."""
        sentences = texts["sentence"]
        pooled = self._pool(sentences, videos)
        middle = self._measured(sentences)
        shown = self.radius.show(videos["frames"], videos["mask"])
        reach = self.radius(torch.einsum("td,tmd->tm", unit(sentences), shown)).exp()
        # Drawn on the processor, so that a seed gives the same noise on any device.
        noise = self._noise(tuple(middle.shape), generator or torch.default_generator)
        target = pooled.mean(1) if self.config.mode == "released" else pooled.diagonal().T
        ahead = unit(self._measured(target) - middle)
        drawn, support = (middle + reach * step for step in (noise.to(middle), ahead))
        return {
            "similarity": info_nce(_cosines(drawn, pooled), self.scale, eta=eta),
            "support": info_nce(_cosines(support, pooled), self.scale, eta=eta),
        }

    def matrices(self, texts: Codes, videos: Codes) -> dict[str, Scores]:
        """Logarithm of the radius of each pair, the mean over dimensions."""
        linear = self.radius.linear
        seen = self._seen(texts["sentence"], videos)
        return {"log radius": seen @ linear.weight.mean(0) + linear.bias.mean()}

    def _seen(self, sentences: Texts, videos: Codes) -> Float[Tensor, "texts videos places"]:
        """Cosine of every text with every place of every video."""
        shown = self.radius.show(videos["frames"], videos["mask"])
        return torch.einsum("td,vmd->tvm", unit(sentences), shown)

    def _pool(self, sentences: Texts, videos: Codes) -> Float[Tensor, "videos texts dim"]:
        """Every video as every text sees it."""
        pool = cast(CrossAttentionPooling, self.pooled.pool)
        return pool(sentences, videos["frames"], videos["mask"])

    def _tried(self, sentences: Texts, videos: Codes) -> Scores:
        """Mean or best cosine of the trials."""
        pooled = unit(self._pool(sentences, videos)).transpose(0, 1)
        reach = self.radius(self._seen(sentences, videos)).exp()
        middle = self._measured(sentences)[:, None]
        tried = (unit(middle + reach * noise) for noise in self.trial_noise)
        cosines = torch.stack([(text * pooled).sum(-1) for text in tried])
        return cosines.amax(0) if self.choice == "best" else cosines.mean(0)

    def _measured(self, vectors: Float[Tensor, "*n dim"]) -> Float[Tensor, "*n dim"]:
        """Vectors in the lengths in which masses are measured."""
        return vectors if self.printed_mode else unit(vectors)

    def _noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "*n dim"]:
        """Noise of this shape, of variance 1 / D in ``well_posed``."""
        if self.noise == "uniform":
            noise = torch.rand(shape, generator=generator, device=generator.device)
        else:
            noise = draw_noise(shape, generator)
        noise = self.config.deviation * noise
        return noise if self.printed_mode else noise / shape[-1] ** 0.5


def _cosines(texts: Texts, pooled: Float[Tensor, "videos texts dim"]) -> Scores:
    """Cosine of each text with each video as that text sees it."""
    return torch.einsum("td,vtd->tv", unit(texts), unit(pooled))
