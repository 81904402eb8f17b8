r"""CLIP2Video (Fang et al. 2021): motion between frames, and centres that frames and words share.

The *temporal difference block* (TDB) puts a token of the change between any two neighbouring frames
among the frames of a video, for a transformer over all of them; the video is the mean of its
frames, as in CLIP4Clip. The *temporal alignment block* (TAB) describes frames and words alike by
what they add to K centres that both share. To the frames it adds every second one, seen through the
same difference block: motion at half the rate. Loss and score are the mean of both:

.. math:: s = (1 - w)\, s_{global} + w\, s_{TAB}, \qquad
    L = (1 - w)\, L_{global} + w\, L_{TAB}, \qquad w = \tfrac12

Differs:
    A change is one between two real frames. The released code gives the change of frame n the mask
    of frame n, so that the step from the last frame to the padding counts as motion; a photo has
    one as well. It also lays out its masks by heads and reads them by items, so that with more than
    one head a video is masked as another of its batch. Both show on padded videos only; without
    padding scores are those of the code.

    The text side of the alignment leaves out the first word, an encoder's start of a sentence, as
    in the code. A text of one word keeps it; there the code divides by zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sureshot.models.layers.pooling import mean_of_units, unit
from sureshot.models.layers.transformer import (
    Block,
    Transformer,
    block_from_clip,
    blocks_from_clip,
    embedding,
    places,
    places_from_clip,
)
from sureshot.models.losses.contrastive import Eta, info_nce
from sureshot.models.shapes import FrameMask, Frames, Losses, Mask, Rng, Scores, Tokens, Vectors
from sureshot.models.systems.base import Codes, Scale, System, SystemConfig, TextTokens, VideoTokens
from sureshot.settings import Within

_EPS = 1e-12  # of the layer norms in transformers, as in CLIP4Clip
_SPREAD = 1 / 8  # standard deviation of new centres


@dataclass(frozen=True, slots=True)
class Clip2VideoConfig(SystemConfig):
    """Settings of CLIP2Video.

    Attributes:
        difference: whether changes stand between the frames (TDB). Without them the transformers
            see the frames alone, as those of CLIP4Clip do.
        alignment: whether words and frames meet at shared centres (TAB). Without it score and loss
            are the global ones.
        share: w, what the alignment counts in loss and score.
        layers: blocks of the transformer over frames and changes. The transformers over the changes
            alone and within the alignment have one block.
    """

    difference: bool = True
    alignment: bool = True
    share: Annotated[float, Within(0.01, 0.99)] = 0.5
    centres: Annotated[int, Within(1, 1000)] = 5
    layers: Annotated[int, Within(1, 100)] = 4
    heads: Annotated[int, Within(1, 1000)] = 8
    longest: Annotated[int, Within(1, 100_000)] = 77  # most frames the transformers can place
    scale: Scale = None


class Difference(nn.Module):
    r"""Changes between neighbouring frames, laid between these.

    .. math:: d_n = 2\,\sigma\Big(\mathrm{LN}\big(\mathrm{Block}(x_{n+1} - x_n + p_{n+1})\big)\Big)
        - 1

    Frame n and change n then get the position p_n and a type of their own.

    References:
        CLIP2Video, Fang et al. 2021, section 3.2 (difference-level attention).
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.block = Block(dim, heads, eps=_EPS)
        self.norm = nn.LayerNorm(dim)
        self.types = embedding(2, dim)  # of a change, of a frame

    def forward(
        self, frames: Frames, mask: FrameMask, positions: Float[Tensor, "frames dim"]
    ) -> tuple[Tokens, Mask]:
        """Frame, change, frame, change and so on; the last change of all is never real."""
        following = nn.functional.pad(frames[:, 1:], (0, 0, 0, 1))
        real = mask & nn.functional.pad(mask[:, 1:], (0, 1))
        later = nn.functional.pad(positions[1:], (0, 0, 0, 1))
        # A photo has no change; its attention is given something to look at, which no one will see.
        seen = self.block(following - frames + later, real | ~real.any(1, keepdim=True))
        change = 2 * torch.sigmoid(self.norm(seen)) - 1
        of_change, of_frame = self.types.weight
        tokens = torch.stack([frames + positions + of_frame, change + positions + of_change], 2)
        return tokens.flatten(1, 2), torch.stack([mask, real], 2).flatten(1, 2)


class Alignment(nn.Module):
    r"""An item as what its tokens add to centres, which all items share, words and frames alike.

    .. math:: a_{nk} = \mathrm{softmax}_k(x_n^\top w_k), \qquad
        r_k = \sum_n a_{nk} (x_n - c_k), \qquad
        y = \frac{m}{\lVert m \rVert}, \quad
        m = \frac1K \sum_k \frac{r_k}{\lVert r_k \rVert}

    References:
        CLIP2Video, Fang et al. 2021, section 3.3; NetVLAD, Arandjelovic et al. 2016.
    """

    def __init__(self, dim: int, centres: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(_SPREAD * torch.randn(centres, dim))
        self.centres = nn.Parameter(_SPREAD * torch.randn(centres, dim))

    def forward(self, tokens: Tokens, mask: Mask) -> Vectors:
        """Unit vectors."""
        tokens = tokens.masked_fill(~mask[..., None], 0)
        assigned = (tokens @ self.weights.T).softmax(-1).masked_fill(~mask[..., None], 0)
        gathered = torch.einsum("bnk,bnd->bkd", assigned, tokens)
        left = gathered - assigned.sum(1)[..., None] * self.centres
        return unit(unit(left).mean(1))


class Clip2Video(System):
    """CLIP2Video."""

    Config = Clip2VideoConfig

    def __init__(self, config: Clip2VideoConfig, width: int) -> None:
        super().__init__(config.scale)
        self.config = config
        self.reads_words = config.alignment
        self.share = config.share if config.alignment else 0.0
        self.contrasts = frozenset({"similarity", "alignment"})
        self.weights = {"similarity": 1 - self.share, "alignment": self.share}
        self.positions = embedding(config.longest, width)
        self.transformer = Transformer(width, config.layers, config.heads, eps=_EPS)
        self.difference = Difference(width, config.heads) if config.difference else None
        self.alignment, self.sparse = None, None
        if config.alignment:
            self.alignment = Alignment(width, config.centres)
            self.sparse = Transformer(width, 1, config.heads, eps=_EPS)

    def start_from_clip(self, text: Mapping[str, Tensor]) -> None:
        """Start places and blocks from CLIP's, the two lone blocks from its first one.

        The types of changes and of frames start as CLIP's first two places.
        """
        places_from_clip(self.positions, text)
        blocks_from_clip(self.transformer, text)
        if self.difference is not None:
            block_from_clip(self.difference.block, text)
            places_from_clip(self.difference.types, text)
        if self.sparse is not None:
            blocks_from_clip(self.sparse, text)

    def texts(self, tokens: TextTokens) -> Codes:
        """The sentence at unit length, and the words at the shared centres."""
        codes = {"sentence": unit(tokens.sentence)}
        if self.alignment is None:
            return codes
        tokens.require_words("The alignment of CLIP2Video")
        return codes | {"aligned": self.alignment(tokens.words, tokens.without_first)}

    def videos(self, tokens: VideoTokens) -> Codes:
        """The frames after the transformer, their mean, and the frames at the shared centres."""
        frames, mask = tokens.frames.masked_fill(~tokens.mask[..., None], 0), tokens.mask
        seen = self._seen(self.transformer, frames, mask)
        codes = {"frames": seen, "mask": mask, "video": mean_of_units(seen, mask)}
        if self.alignment is None or self.sparse is None:
            return codes
        some, of_some = frames[:, ::2], mask[:, ::2]
        both = torch.cat([frames, self._seen(self.sparse, some, of_some)], 1)
        return codes | {"aligned": self.alignment(both, torch.cat([mask, of_some], 1))}

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Mean of the global cosine and that of the alignment, in [-1, 1]."""
        whole = texts["sentence"] @ videos["video"].T
        if self.alignment is None:
            return whole
        return (1 - self.share) * whole + self.share * (texts["aligned"] @ videos["aligned"].T)

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The symmetric contrastive loss of the global cosines and of those of the alignment."""
        found = {"similarity": info_nce(texts["sentence"] @ videos["video"].T, self.scale, eta=eta)}
        if self.alignment is not None:
            aligned = texts["aligned"] @ videos["aligned"].T
            found["alignment"] = info_nce(aligned, self.scale, eta=eta)
        return found

    def video_tokens(self, tokens: VideoTokens, codes: Codes) -> tuple[Tokens, Mask]:
        """The frames after the transformer, which have seen the changes around them."""
        return codes["frames"], codes["mask"]

    def _seen(self, transformer: Transformer, frames: Frames, mask: FrameMask) -> Frames:
        """Frames plus what a transformer makes of them and of the changes between; 0 at padding."""
        positions = places(self.positions, frames.shape[1])
        if self.difference is None:
            seen = transformer(frames + positions, mask)
        else:
            seen = transformer(*self.difference(frames, mask, positions))[:, ::2]
        return (frames + seen).masked_fill(~mask[..., None], 0)
