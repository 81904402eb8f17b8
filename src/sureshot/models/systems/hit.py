r"""HiT, Hierarchical Transformer with momentum contrast (Liu et al., ICCV 2021).

A transformer reads the words of a text, another the frames of a video. What the first block makes
of them is the *feature* level, what the last one makes of them the *semantic* level; the mean over
the tokens of a level stands for the item there. Levels are compared with their like: each text with
the *keys* of videos and each video with those of texts. Keys come from a copy of the transformer
that follows it slowly, so that those of earlier batches, kept in a *memory bank*, still fit: there
is one bank for each level and each side. Training minimises, with InfoNCE losses,

.. math:: L = w_f\,(L_f^{t \to v} + L_f^{v \to t})/2 + w_s\,(L_s^{t \to v} + L_s^{v \to t})/2

and the score is a mean of the cosines of the two levels. Keys and banks serve training alone.

Differs:
    HiT published no code, so depth, momentum, size of the banks, weights, temperature and the way
    tokens are pooled are guesses; all but the last are settings. The paper's text transformer is a
    BERT, which stays as it is here (`sureshot.models.encoders.bert`), and its videos are features
    of several experts: with ``experts`` so they are here, each row mapped to the width of the texts
    by a layer of its expert, which also has a vector of its own as in MMT. Otherwise they are the
    frames of the encoder. Tokens enter at equal length, and the sentence stands before the words as
    BERT's first token does.

    The slow copies are those of the transformers. What is before them, a linear stem or an
    encoder that is tuned, has no copy: keys are made of its present tokens, without a gradient.

    A bank begins empty, and an empty slot is no wrong answer; MoCo begins with random keys.

    A bank does not know whose keys it holds. The key of another caption of the same video, or of
    the same pair an epoch ago, counts as a wrong answer as long as it is there. Keep ``bank`` well
    below the number of training videos: it then holds the last part of an epoch, in which a video
    comes once, and only the first batches of the next epoch can meet themselves.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from sureshot.errors import SureshotError
from sureshot.models.encoders.experts import ExpertSizes
from sureshot.models.layers.pooling import masked_mean, unit
from sureshot.models.layers.transformer import Transformer, embedding, linear, places
from sureshot.models.losses.contrastive import Eta, key_nce
from sureshot.models.shapes import Losses, Mask, Rng, Scores, Tokens
from sureshot.models.systems.base import (
    Codes,
    Sizes,
    System,
    SystemConfig,
    TextTokens,
    VideoTokens,
)
from sureshot.settings import Within, build

_LEVELS = ("feature", "semantic")
_LOSSES = ("feature_similarity", "similarity")  # of the levels
_TEXTS, _VIDEOS = 0, 1  # the sides, as banks are kept


@dataclass(frozen=True, slots=True)
class HitConfig(SystemConfig):
    """Settings of HiT; every default is a guess.

    Attributes:
        experts: names of extracted features that are read in place of the frames; none are the
            frames.
        layers: blocks of each transformer. With one, both levels are the same.
        longest: most words and frames, or rows of all experts, the transformers can place.
        momentum: share of its old weights that a slow copy keeps at each step.
        bank: keys that each memory bank holds; 0 has none, and keys of the batch alone count.
        feature_share: what the cosine of the feature level counts in the score, 0 to 1; that of
            the semantic level counts the rest.
        scale: first value of the logit scale; 1 / 0.07 as in MoCo.
    """

    experts: tuple[str, ...] = ()
    layers: Annotated[int, Within(1, 100)] = 4
    heads: int = 8
    longest: Annotated[int, Within(1, 100_000)] = 77
    momentum: Annotated[float, Within(0, 1)] = 0.995
    bank: Annotated[int, Within(0, 10_000_000)] = 4096
    feature_weight: Annotated[float, Within(0, 1000)] = 1.0  # w_f
    semantic_weight: Annotated[float, Within(0, 1000)] = 1.0  # w_s
    feature_share: Annotated[float, Within(0, 1)] = 0.5
    scale: Annotated[float, Within(0.01, 100)] = 1 / 0.07


class Levels(nn.Module):
    """A transformer over the tokens of one side that shows its first level and its last."""

    def __init__(self, width: int, layers: int, heads: int, positions: int) -> None:
        super().__init__()
        self.positions = embedding(positions, width)
        self.blocks = Transformer(width, layers, heads).blocks

    def feature(self, tokens: Tokens, mask: Mask) -> Tokens:
        """Tokens after the first block; those at padding mean nothing."""
        # All of one length, with components about as large as a layer norm gives them.
        even = unit(tokens.masked_fill(~mask[..., None], 0)) * tokens.shape[-1] ** 0.5
        placed: Tokens = self.blocks[0](even + places(self.positions, tokens.shape[1]), mask)
        return placed

    def forward(self, tokens: Tokens, mask: Mask) -> Codes:
        """The unit vector of each item at each level."""
        seen = self.feature(tokens, mask)
        codes = {"feature": unit(masked_mean(seen, mask))}
        for block in self.blocks[1:]:
            seen = block(seen, mask)
        return codes | {"semantic": unit(masked_mean(seen, mask))}


class ExpertTokens(nn.Module):
    """Rows of experts as tokens of one width, after one that stands for a video without any.

    Args:
        given: all experts of the videos, as `sureshot.models.encoders.experts.pack` orders them.
        names: those that are read.
    """

    def __init__(self, given: ExpertSizes, names: Sequence[str], width: int) -> None:
        super().__init__()
        known = dict(given)
        for name in names:
            if name not in known:
                raise SureshotError(
                    f"Setting system.experts names {name!r}, which is not there; there are: "
                    f"{', '.join(known) or 'none'}. They come from the folder named by "
                    "train.experts."
                )
        self._places = [[name for name, _ in given].index(name) for name in names]
        self.maps = nn.ModuleList(linear(known[name], width) for name in names)
        self.kinds = embedding(len(names) + 1, width)  # the last is that of none

    def forward(self, tokens: VideoTokens) -> tuple[Tokens, Mask]:
        """Tokens, and which of them are real: at least one of each video."""
        found = tokens.frames.new_zeros(*tokens.which.shape[:2], self.kinds.embedding_dim)
        mask = torch.zeros_like(tokens.which[..., :0]).any(-1)
        for number, (place, project) in enumerate(zip(self._places, self.maps, strict=True)):
            of_it = tokens.which[..., place]
            rows = project(tokens.experts[..., : project.in_features]) + self.kinds.weight[number]
            found = torch.where(of_it[..., None], rows, found)
            mask = mask | of_it
        none = self.kinds.weight[-1].expand(len(found), 1, -1)
        return torch.cat([none, found], 1), torch.cat([~mask.any(1, keepdim=True), mask], 1)


class ExpertSystem(System):
    """A system that reads frames, or in their place the rows of experts."""

    shares_scale = False

    @classmethod
    def from_settings(
        cls, values: Mapping[str, object], sizes: Sizes, key: str = "system"
    ) -> "ExpertSystem":
        """As `System.from_settings`; the sizes are those of all experts."""
        return cls(build(cls.Config, values, key), sizes.dim, sizes.experts)

    def __init__(self, config: Any, width: int, experts: ExpertSizes = ()) -> None:
        super().__init__(config.scale)
        self.config = config
        self.reads_experts = bool(config.experts)
        self.searches = not self.reads_experts  # an index keeps frames alone
        self.expert_tokens = None
        if config.experts:
            self.expert_tokens = ExpertTokens(experts, config.experts, width)

    def seen(self, tokens: VideoTokens) -> tuple[Tokens, Mask]:
        """What a video consists of: its frames, or the rows of its experts."""
        if self.expert_tokens is None:
            return tokens.frames, tokens.mask
        found: tuple[Tokens, Mask] = self.expert_tokens(tokens)
        return found


class HiT(ExpertSystem):
    """HiT."""

    Config = HitConfig

    vector_code = "semantic"

    banks: Float[Tensor, "levels sides bank dim"]  # keys; the first ``min(stored, bank)`` count
    stored: Tensor  # keys of either side so far; the next one's slot, modulo the size of a bank

    config: HitConfig

    def __init__(self, config: HitConfig, width: int, experts: ExpertSizes = ()) -> None:
        super().__init__(config, width, experts)
        self.contrasts = frozenset({"similarity", "feature_similarity"})
        self.weights = {
            "feature_similarity": config.feature_weight,
            "similarity": config.semantic_weight,
        }
        # The sentence takes a place before the words.
        self.text = Levels(width, config.layers, config.heads, config.longest + 1)
        self.video = Levels(width, config.layers, config.heads, config.longest)
        self.text_key = copy.deepcopy(self.text).requires_grad_(False)
        self.video_key = copy.deepcopy(self.video).requires_grad_(False)
        self.register_buffer("banks", torch.zeros(len(_LEVELS), 2, config.bank, width))
        self.register_buffer("stored", torch.tensor(0))
        self._fresh: Float[Tensor, "levels sides items dim"] | None = None

    def advice(self, videos: int) -> str:
        """Whether a bank holds keys of the very videos that are asked for."""
        if 2 * self.config.bank <= videos:
            return ""
        return (
            f"HiT's bank holds {self.config.bank} keys of {videos} training videos, so that a "
            f"video's own old key counts as wrong; set bank to at most {videos // 2}, or to 0."
        )

    def after_step(self) -> None:
        """Let the slow copies follow, and store the keys of the batch that the step was about."""
        super().after_step()
        with torch.no_grad():
            for key, query in ((self.text_key, self.text), (self.video_key, self.video)):
                for slow, fast in zip(key.parameters(), query.parameters(), strict=True):
                    slow.lerp_(fast, 1 - self.config.momentum)
        if self._fresh is not None:
            self._store(self._fresh)
        self._fresh = None

    def texts(self, tokens: TextTokens) -> Codes:
        """A unit vector of each level; in training also a key of each."""
        return self._codes(self.text, self.text_key, *_with_sentence(tokens))

    def videos(self, tokens: VideoTokens) -> Codes:
        """As of texts."""
        return self._codes(self.video, self.video_key, *self.seen(tokens))

    def similarity(self, texts: Codes, videos: Codes) -> Scores:
        """Mean of the cosines of both levels, in [-1, 1]."""
        share = self.config.feature_share
        feature, semantic = (texts[level] @ videos[level].T for level in _LEVELS)
        return share * feature + (1 - share) * semantic

    def losses(self, texts: Codes, videos: Codes, generator: Rng = None, eta: Eta = None) -> Losses:
        """The contrastive loss of each level against keys and banks.

        In training the keys wait for `after_step` to be stored, so that a batch whose step is not
        taken leaves no trace. Codes made outside of training have no keys and are their own.
        """
        found, fresh = {}, []
        turned = None if eta is None else eta.T
        for number, (level, name) in enumerate(zip(_LEVELS, _LOSSES, strict=True)):
            keys = [side.get(f"{level}_key", side[level]).detach() for side in (texts, videos)]
            memory = self.banks[number, :, : int(self.stored)]
            to_videos = key_nce(texts[level], keys[_VIDEOS], memory[_VIDEOS], self.scale, eta)
            to_texts = key_nce(videos[level], keys[_TEXTS], memory[_TEXTS], self.scale, turned)
            found[name] = (to_videos + to_texts) / 2
            fresh.append(torch.stack(keys))
        if self.training:
            self._fresh = torch.stack(fresh)
        return found

    def text_tokens(self, tokens: TextTokens, codes: Codes) -> tuple[Tokens, Mask]:
        """Sentence and words at the feature level, which is computed once more."""
        given, mask = _with_sentence(tokens)
        return self.text.feature(given, mask), mask

    def video_tokens(self, tokens: VideoTokens, codes: Codes) -> tuple[Tokens, Mask]:
        """Frames or rows of experts at the feature level, which is computed once more."""
        seen, mask = self.seen(tokens)
        return self.video.feature(seen, mask), mask

    def _codes(self, query: nn.Module, key: nn.Module, tokens: Tokens, mask: Mask) -> Codes:
        codes: Codes = query(tokens, mask)
        if not self.training:
            return codes
        with torch.no_grad():
            return codes | {f"{level}_key": code for level, code in key(tokens, mask).items()}

    def _store(self, fresh: Float[Tensor, "levels sides items dim"]) -> None:
        """Put keys into the banks, the oldest of which go; of too many keys only the last."""
        size, items = self.config.bank, fresh.shape[2]
        if size:
            kept = fresh[:, :, -size:]
            first = int(self.stored) + items - kept.shape[2]
            slots = torch.arange(first, first + kept.shape[2], device=self.banks.device) % size
            self.banks[:, :, slots] = kept.to(self.banks)
        self.stored += items


def _with_sentence(tokens: TextTokens) -> tuple[Tokens, Mask]:
    """The sentence, then the words."""
    tokens.require_words("HiT")
    given = torch.cat([tokens.sentence[:, None], tokens.words], 1)
    return given, pad(tokens.mask, (1, 0), value=True)
