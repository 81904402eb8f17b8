"""Heads on features that stay as they are: what a trial trains, in seconds, and its recalls.

A head is that of the bundled model (`benchmarks.bundled.network` has the equation), or one with an
input more. Whatever a trial does unlike the model's training is a field of `Trial`.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from sureshot.metrics.ranks import text_ranks
from sureshot.models.encoders.bundled import DIM

DROPOUT, LOGIT_SCALE = 0.3, 20.0
_SENTENCE = 384
_RATE, _DECAY, _RISE = 1e-3, 0.1, 0.1
_SHARPNESS = 0.05  # temperature of the softmax over similar captions


@dataclass(frozen=True, slots=True)
class Data:
    """Features of a set; frames and texts stand by rising items, phrases behind captions.

    Attributes:
        frames: features of each frame by name, as they enter a head; ``cells`` has several rows.
        frame_item: item of each frame.
        texts: unit sentence vectors.
        alike: unit sentence vectors by which captions are compared with each other.
        text_item: item of each text.
        phrase: texts that are captions cut to a phrase.
        family: of each item.
    """

    frames: dict[str, Float[Tensor, "frames ..."]]
    frame_item: Int[np.ndarray, " frames"]
    texts: Float[Tensor, "texts 384"]
    alike: Float[Tensor, "texts 384"]
    text_item: Int[np.ndarray, " texts"]
    phrase: np.ndarray
    family: np.ndarray

    def part(self, items: Int[np.ndarray, " some"]) -> "Data":
        """Some of the items, by rising numbers."""
        number = np.full(len(self.family), -1)
        number[items] = np.arange(len(items))
        frames, texts = (number[of] >= 0 for of in (self.frame_item, self.text_item))
        return Data(
            frames={name: values[torch.from_numpy(frames)] for name, values in self.frames.items()},
            frame_item=number[self.frame_item[frames]],
            texts=self.texts[torch.from_numpy(texts)],
            alike=self.alike[torch.from_numpy(texts)],
            text_item=number[self.text_item[texts]],
            phrase=self.phrase[texts],
            family=self.family[items],
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial does unlike the bundled model's training; the defaults do nothing.

    Attributes:
        inputs: features of a frame that the head reads, each by a linear map.
        cells: weigh the cells of a frame by attention, and read their sum as well.
        hidden: width of a layer between the inputs and the vector, added to the linear map.
        whole: train on the mean of all frames of a video, not on one of them.
        captions: so many captions of an item in a batch, all of them right.
        same: captions of other items at least so similar are right as well; 1 is never.
        soft: share of the target that goes to items by the similarity of their captions.
        batch: items of a step.
        queue: steps before, whose vectors are wrong answers as well.
        queue_from: share of the steps before the queue is used.
        weights: how often an item of a family is drawn, others once an epoch.
        mean_of: last share of the steps whose weights are averaged.
        epochs: times that each item is drawn.
        phrases: share of texts that are phrases.
        rate: of learning, at its highest.
        dropout: share of inputs that are left out.
        dim: numbers of a vector.
    """

    inputs: tuple[str, ...] = ("looks", "names")
    cells: bool = False
    hidden: int = 0
    whole: bool = False
    captions: int = 1
    same: float = 1.0
    soft: float = 0.0
    batch: int = 256
    queue: int = 0
    queue_from: float = 0.0
    weights: tuple[tuple[str, float], ...] = ()
    mean_of: float = 0.0
    epochs: int = 24
    phrases: float = 0.2
    rate: float = _RATE
    dropout: float = DROPOUT
    dim: int = DIM


class Dropout(nn.Module):
    """Dropout by random bytes: torch's takes a third of a step here."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.least, self.draw = round(256 * share), np.random.default_rng(0)

    def forward(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """Leave out a share of the numbers and raise the others, while training."""
        if not self.training or not self.least:
            return x
        drawn = self.draw.integers(0, 256, tuple(x.shape), np.uint8)
        return x * (torch.from_numpy(drawn) >= self.least) * (256 / (256 - self.least))


class Head(nn.Module):
    """Features in, unit vectors out; its first weights are drawn by torch's seed."""

    def __init__(self, trial: Trial, data: Data) -> None:
        super().__init__()
        self.trial, self.dropout = trial, Dropout(trial.dropout)
        widths = [data.frames[name].shape[-1] for name in trial.inputs]
        cell = data.frames["cells"].shape[-1] if trial.cells else 0
        self.text = nn.Linear(_SENTENCE, trial.dim)
        self.maps = nn.ModuleList(
            nn.Linear(width, trial.dim, bias=not k) for k, width in enumerate(widths)
        )
        self.attend = nn.Linear(cell, 1) if trial.cells else None
        self.of_cells = nn.Linear(cell, trial.dim) if trial.cells else None
        self.deep = _deep(sum(widths), trial) if trial.hidden else None
        self.deep_text = _deep(_SENTENCE, trial) if trial.hidden else None
        self.log_scale = nn.Parameter(torch.tensor(LOGIT_SCALE).log())

    def read(self, vectors: Float[Tensor, "n 384"]) -> Float[Tensor, "n dim"]:
        """Vectors of sentences."""
        inputs = self.dropout(vectors * _SENTENCE**0.5)
        found = self.text(inputs)
        if self.deep_text is not None:
            found = found + self.deep_text(inputs)
        return functional.normalize(found, dim=-1)

    def see(self, frames: dict[str, Tensor], rows: Tensor) -> Float[Tensor, "n dim"]:
        """Vectors of some frames."""
        parts = [self.dropout(frames[name][rows]) for name in self.trial.inputs]
        found = torch.stack([m(part) for m, part in zip(self.maps, parts, strict=True)]).sum(0)
        if self.attend is not None and self.of_cells is not None:
            cells = frames["cells"][rows].float()
            cells = functional.layer_norm(cells, cells.shape[-1:])
            found = found + self.of_cells(
                self.dropout((self.attend(cells).softmax(1) * cells).sum(1))
            )
        if self.deep is not None:
            found = found + self.deep(torch.cat(parts, -1))
        return functional.normalize(found, dim=-1)


def _deep(width: int, trial: Trial) -> nn.Sequential:
    """Two layers, of which the last starts at zero: the head begins as a linear one."""
    last = nn.Linear(trial.hidden, trial.dim)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(width, trial.hidden), nn.GELU(), nn.Dropout(trial.dropout), last)


def fit(
    trial: Trial,
    data: Data,
    seed: int,
    teachers: Sequence[Head] = (),
    share: float = 0.5,
    first: int | None = None,
) -> Head:
    """Train a head.

    Args:
        trial: how.
        data: what it is trained on.
        seed: of batches and dropout.
        teachers: heads whose mean similarities are learned as well.
        share: of the loss that is theirs.
        first: seed of the first weights; None takes ``seed``.
    """
    torch.manual_seed(seed if first is None else first)
    head = Head(trial, data)
    torch.manual_seed(seed)
    draw = head.dropout.draw = np.random.default_rng(seed)
    steps = max(trial.epochs * (len(data.family) // trial.batch), 1)
    optimizer = torch.optim.AdamW(head.parameters(), lr=trial.rate, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, trial.rate, total_steps=max(steps, round(2 / _RISE)) + 1, pct_start=_RISE
    )
    batches = _Batches(data, trial, draw)
    older: deque[tuple[Tensor, Tensor]] = deque(maxlen=trial.queue)
    averaged = round(trial.mean_of * steps)
    mean = [torch.zeros_like(weight) for weight in head.parameters()]
    for step in range(steps):
        texts, owner, frames, seen_by = batches.next()
        each = head.see(data.frames, frames)
        seen = functional.normalize(
            each.new_zeros(trial.batch, trial.dim).index_add(0, seen_by, each), dim=-1
        )
        read, scale = head.read(data.texts[texts]), head.log_scale.exp()
        right = functional.one_hot(owner, trial.batch).float()
        if trial.same < 1 or trial.soft:
            right = softened(right, data.alike[texts], trial)
        logits = scale * read @ seen.T
        beside = [scale * read @ v.T for _, v in older], [scale * seen @ t.T for t, _ in older]
        loss = (contrast(logits, right, beside[0]) + contrast(logits.T, right.T, beside[1])) / 2
        if trial.queue and step >= trial.queue_from * steps:
            older.append((read.detach(), seen.detach()))
        if teachers:
            told = _told(teachers, data, texts, frames, seen_by)
            loss = (1 - share) * loss + share * taught(logits, told)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        if step >= steps - averaged:
            for total, weight in zip(mean, head.parameters(), strict=True):
                total += weight.detach() / averaged
    if averaged:
        nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(mean), head.parameters())
    return head.eval()


class _Batches:
    """Draws items without end, each once an epoch or as often as its family weighs."""

    def __init__(self, data: Data, trial: Trial, draw: np.random.Generator) -> None:
        self._trial, self._draw, self._items = trial, draw, len(data.family)
        weights = np.ones(self._items)
        for family, weight in trial.weights:
            weights[data.family == family] = weight
        self._weights = weights
        every = np.arange(self._items)
        of_texts, of_frames = data.text_item, data.frame_item
        self._first_text, self._first_frame = (
            np.searchsorted(of, every) for of in (of_texts, of_frames)
        )
        self._frames = np.bincount(of_frames, minlength=self._items)
        # The phrases of an item stand behind its captions.
        self._phrases = np.bincount(of_texts, data.phrase, self._items).astype(int)
        self._captions = np.bincount(of_texts, minlength=self._items) - self._phrases
        self._waiting = np.zeros(0, int)

    def next(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows of texts and their places in the batch, rows of frames and theirs."""
        size, trial, draw = self._trial.batch, self._trial, self._draw
        while len(self._waiting) < size:
            times = np.floor(self._weights + draw.random(self._items)).astype(int)
            order = draw.permutation(np.repeat(np.arange(self._items), times))
            self._waiting = np.concatenate([self._waiting, order])
        items, self._waiting = self._waiting[:size], self._waiting[size:]
        owner = np.repeat(np.arange(size), trial.captions)
        asked = items[owner]
        cut = (draw.random(len(asked)) < trial.phrases) & (self._phrases[asked] > 0)
        count = np.where(cut, self._phrases[asked], self._captions[asked])
        place = np.where(cut, self._captions[asked], 0) + draw.integers(count)
        texts = self._first_text[asked] + place
        if trial.whole:
            seen_by = np.repeat(np.arange(size), self._frames[items])
            before = np.cumsum(self._frames[items]) - self._frames[items]
            frames = (self._first_frame[items] - before)[seen_by] + np.arange(len(seen_by))
        else:
            seen_by = np.arange(size)
            frames = self._first_frame[items] + draw.integers(self._frames[items])
        found = texts, owner, frames, seen_by
        return tuple(torch.from_numpy(part) for part in found)  # type: ignore[return-value]


def softened(
    right: Float[Tensor, "texts items"], alike: Float[Tensor, "texts 384"], trial: Trial
) -> Float[Tensor, "texts items"]:
    """Targets that know which captions say the same; an item's caption is its first here."""
    similar = alike @ alike[:: trial.captions].T
    if trial.same < 1:
        right = torch.maximum(right, (similar >= trial.same).float())
    if trial.soft:
        # An item is as right for a text as its caption is alike, its own not among them.
        others = similar.masked_fill(right > 0, -1.0)
        right = right / right.sum(1, keepdim=True)
        right = (1 - trial.soft) * right + trial.soft * (others / _SHARPNESS).softmax(1)
    return right


def contrast(
    logits: Float[Tensor, "a b"], right: Float[Tensor, "a b"], beside: Sequence[Tensor] = ()
) -> Tensor:
    """InfoNCE whose right answers may be several; ``beside`` holds columns of wrong ones."""
    log = logits - torch.cat([logits, *beside], 1).logsumexp(1, keepdim=True)
    return -(right / right.sum(1, keepdim=True) * log).sum(1).mean()


def taught(logits: Float[Tensor, "a b"], told: Float[Tensor, "a b"]) -> Tensor:
    """Cross entropy to the softmax of what teachers say, both ways."""
    ways = (logits, told), (logits.T, told.T)
    losses = [-(t.softmax(1) * ours.log_softmax(1)).sum(1).mean() for ours, t in ways]
    return (losses[0] + losses[1]) / 2


def _told(
    teachers: Sequence[Head], data: Data, texts: Tensor, frames: Tensor, seen_by: Tensor
) -> Tensor:
    """Mean similarities by teachers, times their mean scale."""
    total = torch.zeros(())
    with torch.no_grad():
        for head in teachers:
            each = head.see(data.frames, frames)
            seen = each.new_zeros(head.trial.batch, each.shape[1]).index_add(0, seen_by, each)
            read = head.log_scale.exp() * head.read(data.texts[texts])
            total = total + read @ functional.normalize(seen, dim=-1).T / len(teachers)
    return total


def map_of(head: Head, number: int) -> nn.Linear:
    """The map of one of the inputs."""
    layer = head.maps[number]
    assert isinstance(layer, nn.Linear)
    return layer


def scores(heads: Sequence[Head], data: Data) -> Float[np.ndarray, "texts items"]:
    """Mean similarities of heads; an item is the mean of its frames."""
    total = np.zeros((len(data.texts), len(data.family)), np.float32)
    owner = torch.from_numpy(data.frame_item)
    with torch.inference_mode():
        for head in heads:
            rows = torch.arange(len(owner))
            parts = [rows[first : first + 512] for first in range(0, len(rows), 512)]
            each = torch.cat([head.see(data.frames, some) for some in parts])
            items = each.new_zeros(len(data.family), each.shape[1]).index_add(0, owner, each)
            total += (head.read(data.texts) @ functional.normalize(items, dim=-1).T).numpy()
    return total / len(heads)


def recalls(found: Float[np.ndarray, "texts items"], data: Data) -> Float[np.ndarray, " 3"]:
    """R@1, R@5 and R@10 in percent."""
    ranks = text_ranks(found, data.text_item)
    return np.array([100 * (ranks <= k).mean() for k in (1, 5, 10)])
