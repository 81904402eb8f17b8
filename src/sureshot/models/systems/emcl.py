r"""EMCL-Net, Expectation-Maximization Contrastive Learning (Jin et al., NeurIPS 2022).

A text weighs the frames of a video by how they agree with it. Then texts and videos are made
*compact*: the D numbers of their vectors are clustered into K subspaces, as they rise and fall
together over the items of a batch, and what the subspaces say of an item is added to it. With
items :math:`x_n` as the rows of X, T rounds of expectation and maximisation find the shares Z,

.. math:: Z = \mathrm{softmax}_k(X^\top M / \sigma), \qquad
    M = \frac{X \tilde Z}{\lVert \cdot \rVert}, \qquad
    \tilde Z_{dk} = \frac{Z_{dk}}{\sum_d Z_{dk}}, \qquad
    x'_n = x_n + \beta\,(M Z^\top)_n,

the norm being that of each column. The score is the cosine of x' of a text and of the video as that
text sees it, the loss InfoNCE.

The module follows the released code (jpthu17/EMCL@8e759f5, ``Emcl`` and ``get_logits``); the
paper's own numbering of these steps was not at hand, so there is no ``paper`` mode.

Differs:
    The released code looks for subspaces among whatever is scored together, at test too, so that a
    score depends on its block. Here only training does:
    :math:`M Z^\top = X P` with :math:`P = \tilde Z \,\mathrm{diag}(1 / l) Z^\top` and l the
    lengths of the columns. A running mean of P over the batches of training belongs to the model,
    and a score has :math:`x' = x + \beta x P`.

    ``released``: M begins as one row for all items, whose entries are 1 or -1 but for a millionth.
    Subspaces of one sign are then alike and stay so: two are left of the K. As columns of M have
    length one, what is added shrinks with the number of items, which are the pairs of the batch.
    Nothing passes a gradient through it.

    ``well_posed`` begins each batch with the shares of the batches before, which are drawn at
    first, compares columns of X and M by their cosine, and adds :math:`X \tilde Z Z^\top`, the mean
    of each number's subspace, whatever the batch. Gradients pass through X, not through Z. Frames
    are weighed by cosines.

    Padded frames take part in the softmax of the released weights and are then set to zero; here
    they take no part.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from sureshot.models.layers.pooling import mean_of_units, unit
from sureshot.models.losses.contrastive import Eta, info_nce
from sureshot.models.shapes import FrameMask, Frames, Losses, Rng, Scores, Texts
from sureshot.models.systems.base import Codes, Scale, SystemConfig, TextTokens, VideoTokens
from sureshot.models.systems.clip4clip import TemporalSystem
from sureshot.settings import Within

_SEED = 221111427  # of the first shares, the paper's number; 0 may be that of weights or of data
_LEAST = 1e-6  # added to what is divided by, as in the released code

Square = Float[Tensor, "dim dim"]
Shares = Float[Tensor, "dim subspaces"]


@dataclass(frozen=True, slots=True)
class EmclConfig(SystemConfig):
    """Settings of EMCL-Net.

    Attributes:
        temporal: what frames pass through first: a ``transformer`` as CLIP4Clip's, or nothing
            (``mean``).
        sharpness: sigma; None is 1 in ``released`` and 0.1, of cosines, in ``well_posed``.
        beta: weight of what the subspaces say; None is 3 in ``released`` and 1 otherwise.
        momentum: share of what earlier batches found that is kept at each step.
        temperature: what agreements of a text with frames are divided by; None is 3, of inner
            products, in ``released``, and 0.03, of cosines, in ``well_posed``.
    """

    mode: Literal["well_posed", "released"] = "well_posed"
    temporal: Literal["mean", "transformer"] = "transformer"
    subspaces: Annotated[int, Within(1, 10_000)] = 32  # K
    rounds: Annotated[int, Within(1, 1000)] = 9  # T, of expectation and maximisation in each batch
    sharpness: Annotated[float | None, Within(1e-3, 1e6)] = None
    beta: Annotated[float | None, Within(0, 1000)] = None
    momentum: Annotated[float, Within(0, 1)] = 0.9
    temperature: Annotated[float | None, Within(1e-3, 1e6)] = None
    layers: Annotated[int, Within(1, 100)] = 4
    heads: Annotated[int, Within(1, 1000)] = 8
    longest: Annotated[int, Within(1, 100_000)] = 77  # most frames the transformer can place
    scale: Scale = None


class Emcl(TemporalSystem):
    """EMCL-Net."""

    Config = EmclConfig

    config: EmclConfig
    start: Tensor  # where a batch begins: the row of M in ``released``, the shares otherwise
    projector: Tensor  # P over the batches so far
    batches: Tensor  # how many there were

    def __init__(self, config: EmclConfig, width: int) -> None:
        super().__init__(config, width)
        self.released = config.mode == "released"
        usual = (1.0, 3.0, 3.0) if self.released else (0.1, 1.0, 0.03)
        given = (config.sharpness, config.beta, config.temperature)
        self._sharpness, self._beta, self._temperature = (
            other if own is None else own for own, other in zip(given, usual, strict=True)
        )
        draw = torch.Generator().manual_seed(_SEED)
        if self.released:
            drawn = torch.randn(config.subspaces, generator=draw)
            start = drawn / (_LEAST + drawn.abs())
        else:
            start = torch.randn(width, config.subspaces, generator=draw).softmax(1)
        self.register_buffer("start", start)
        self.register_buffer("projector", torch.zeros(width, width))
        self.register_buffer("batches", torch.tensor(0))
        self._found: tuple[Tensor, Square] | None = None  # of the batch, until its step is taken

    def after_step(self) -> None:
        """Keep what the batch found, so that a batch whose step is not taken leaves no trace."""
        super().after_step()
        if self._found is None:
            return
        start, projector = self._found
        kept = self.config.momentum
        self.start.lerp_(start, 1 - kept)
        self.projector.lerp_(projector, 1 - kept if int(self.batches) else 1.0)
        self.batches += 1
        self._found = None

    def texts(self, tokens: TextTokens) -> Codes:
        """The sentence as it is, and at unit length after what the subspaces add."""
        return {"sentence": tokens.sentence, "compact": unit(self._compact(tokens.sentence))}

    def videos(self, tokens: VideoTokens) -> Codes:
        """The frames, and the mean of those that the subspaces were added to."""
        frames = self.frames(tokens)
        video = mean_of_units(self._compact(frames), tokens.mask)
        return {"frames": frames, "mask": tokens.mask, "video": video}

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Cosine of each text and each video as that text sees it, with what the subspaces add."""
        shares = self._frame_shares(texts["sentence"], videos["frames"], videos["mask"])
        compact = self._compact(videos["frames"])
        agreement = torch.einsum("td,vfd,tvf->tv", texts["compact"], compact, shares)
        # The length of a weighted mean of frames, from the inner products of frames alone.
        gram = torch.einsum("vfd,vgd->vfg", compact, compact)
        length = torch.einsum("tvf,vfg,tvg->tv", shares, gram, shares).clamp(min=0).sqrt()
        return agreement / length.clamp(min=1e-12)

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The contrastive loss of texts and videos with what the subspaces of this batch add."""
        sentences = texts["sentence"]
        seen = self._seen(sentences, videos["frames"], videos["mask"])
        items = torch.cat([seen.flatten(0, 1), sentences])
        items = items + self._beta * self._added(items)
        videos_seen = unit(items[: -len(sentences)]).view_as(seen)
        similarity = torch.einsum("td,tvd->tv", unit(items[-len(sentences) :]), videos_seen)
        return {"similarity": info_nce(similarity, self.scale, eta=eta)}

    def text_vectors(self, texts: Codes) -> Texts:
        """The sentence with what the subspaces add."""
        return texts["compact"]

    def seen_vectors(self, texts: Codes, videos: Codes) -> Float[Tensor, "pairs dim"]:
        """Video i as text i sees it, with what the subspaces add."""
        parts = zip(texts["sentence"], videos["frames"], videos["mask"], strict=True)
        each = [self._seen(*(part[None] for part in one))[0, 0] for one in parts]
        return unit(self._compact(torch.stack(each)))

    def _compact(self, x: Float[Tensor, "*n dim"]) -> Float[Tensor, "*n dim"]:
        """Vectors with what the subspaces of training add."""
        return x + self._beta * (x @ self.projector)

    def _frame_shares(
        self, sentences: Texts, frames: Frames, mask: FrameMask
    ) -> Float[Tensor, "texts videos frames"]:
        """How much each text looks at each frame; nothing of a video without any."""
        if not self.released:
            sentences, frames = unit(sentences), unit(frames)
        logits = torch.einsum("td,vfd->tvf", sentences, frames) / self._temperature
        least = torch.finfo(logits.dtype).min
        return logits.masked_fill(~mask, least).softmax(-1).masked_fill(~mask, 0)

    def _seen(
        self, sentences: Texts, frames: Frames, mask: FrameMask
    ) -> Float[Tensor, "texts videos dim"]:
        """Every video as every text sees it."""
        shares = self._frame_shares(sentences, frames, mask)
        return torch.einsum("tvf,vfd->tvd", shares, frames.masked_fill(~mask[..., None], 0))

    def _added(self, items: Float[Tensor, "items dim"]) -> Float[Tensor, "items dim"]:
        """What the subspaces of these items say of each."""
        found = self._released if self.released else self._well_posed
        with torch.no_grad():
            start, projector = found(items.detach())
        if self.training:
            self._found = start, projector
        return items.detach() @ projector if self.released else items @ projector

    def _released(self, items: Float[Tensor, "items dim"]) -> tuple[Tensor, Square]:
        """The next start, and P."""
        bases = self.start.expand(len(items), -1)
        shares = even = lengths = items.new_zeros(0)
        for _ in range(self.config.rounds):
            shares = (items.T @ bases / self._sharpness).softmax(1)
            even = _even(shares)
            bases = items @ even
            lengths = _LEAST + bases.norm(dim=0)
            bases = bases / lengths
        return bases.mean(0), (even / lengths) @ shares.T

    def _well_posed(self, items: Float[Tensor, "items dim"]) -> tuple[Shares, Square]:
        """The shares that were found, and P."""
        shares, columns = self.start, unit(items.T)
        for _ in range(self.config.rounds):
            bases = unit((items @ _even(shares)).T)
            shares = (columns @ bases.T / self._sharpness).softmax(1)
        return shares, _even(shares) @ shares.T


def _even(shares: Shares) -> Shares:
    """Shares of each subspace that add up to one."""
    return shares / (_LEAST + shares.sum(0))
