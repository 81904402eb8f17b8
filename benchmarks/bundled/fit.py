r"""Training of the bundled model: contrast between captions and pictures.

Each step takes a batch of items, of each one frame and two captions that are both right, and
InfoNCE in both directions. Videos are drawn twice in an epoch, having several frames and many
captions. One caption in five is cut to a phrase of one to three words, since people search so.
Every other frame is mirrored, and of every other one only a part is seen. Several runs begin with
the same weights, and the weights that they end with are averaged. What comes out are weights on the
line from the first ones to these (Wortsman et al. 2022, both): a little short of the end they are
nearly as good on what is like the training, and better on other pictures.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from benchmarks.bundled.heads import contrast
from benchmarks.bundled.items import Item, digest_of
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from sureshot.files import replace_file
from sureshot.models.encoders.bundled import TUNED_BLOCK, TUNED_LAYERS
from sureshot.research.queries import LISTED

_PHRASE = 3  # words of a phrase at most
_LEAST, _MOST = 7, 9  # side of a square that is cropped, where a whole frame has some 10 x 10


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the training; all were chosen on validation galleries (LOG.md)."""

    epochs: tuple[int, ...] = (10, 6)  # of each run
    batch: int = 256
    maps_rate: float = 5e-4
    text_rate: float = 2e-4
    image_rate: float = 4e-4
    weight_decay: float = 0.1
    phrases: float = 0.2
    captions: int = 2  # of an item in a step
    mirrored: float = 0.5
    cropped: float = 0.5
    share: float = 0.9  # of the way from the first weights to the last
    videos: int = 2  # times that a video is drawn in an epoch
    seed: int = 0  # the runs of another one have other numbers


def fit(
    network: Network,
    items: Sequence[Item],
    states: Sequence[list[State]],
    settings: Settings,
    folder: Path,
    stop: int | None = None,
) -> None:
    """Train a network; its state is kept after each epoch, and a stopped run goes on from there.

    At the end its weights are ``(1 - share) first + share mean(last of each run)``.

    Args:
        network: what is trained, in place.
        items: what is trained on.
        states: frames of each.
        settings: numbers of the training.
        folder: where the states of the runs are kept.
        stop: epoch of each run to stop after, with the schedule of all of them; None goes to the
            end. What is left is what the last run had then.
    """
    begun = {name: weight.clone() for name, weight in network.state_dict().items()}
    ended = {name: torch.zeros_like(weight) for name, weight in begun.items()}
    for run in range(len(settings.epochs)):
        network.load_state_dict(begun)
        _run(network, items, states, settings, run, folder, stop)
        for name, weight in network.state_dict().items():
            ended[name] += weight / len(settings.epochs)
    if stop is None:
        network.load_state_dict(
            {name: begun[name].lerp(ended[name], settings.share) for name in ended}
        )


def _run(
    network: Network,
    items: Sequence[Item],
    states: Sequence[list[State]],
    settings: Settings,
    run: int,
    folder: Path,
    stop: int | None,
) -> None:
    """One run over its epochs, from where it was stopped."""
    seed, epochs = settings.seed * len(settings.epochs) + run, settings.epochs[run]
    videos = [row for row, item in enumerate(items) if item.family == "msrvtt"]
    an_epoch = np.array([*range(len(items)), *videos * (settings.videos - 1)])
    optimizer, schedule = _optimizer(network, settings, epochs * (len(an_epoch) // settings.batch))
    path, first = folder / f"tuning-{seed}-{_digest(items, settings, epochs)}.pt", 0
    if path.exists():
        kept = torch.load(path, weights_only=True)
        network.load_state_dict(kept["network"])
        optimizer.load_state_dict(kept["optimizer"])
        schedule.load_state_dict(kept["schedule"])
        first = kept["epochs"]
    for epoch in range(first, epochs if stop is None else min(stop, epochs)):
        draw = np.random.default_rng([seed, epoch])
        torch.manual_seed(1000 * seed + epoch)
        batches = list(_batches(an_epoch, settings.batch, draw))
        network.train()
        total = 0.0
        for rows in track(batches, f"run {run + 1}, epoch {epoch + 1} of {epochs}"):
            loss = _loss(network, rows, *drawn(items, states, rows, settings, draw))
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            total += loss.item() / len(batches)
        print(f"run {run + 1}, epoch {epoch + 1}: loss {total:.3f}", flush=True)
        state = {
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "epochs": epoch + 1,
        }
        with replace_file(path) as fresh:
            torch.save(state, fresh)


def _digest(items: Sequence[Item], settings: Settings, epochs: int) -> str:
    """A name for what is trained, on what and how, so that no run goes on from another's state."""
    # Share and mean are taken of what was trained: others need no other training. The seed counts:
    # the maps that a run begins with are of it.
    own = replace(settings, share=1.0, epochs=(epochs,))
    what = (digest_of(items), own, TUNED_BLOCK, TUNED_LAYERS)
    return hashlib.sha256(repr(what).encode()).hexdigest()[:12]


def _optimizer(
    network: Network, settings: Settings, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with a rate a part, rising for a tenth of the steps, then falling as a cosine."""
    parts = [
        (network.maps(), settings.maps_rate),
        (network.tuned_text(), settings.text_rate),
        (network.tuned_image(), settings.image_rate),
    ]
    groups = [
        {"params": [w for part in modules for w in part.parameters() if w.requires_grad], "lr": r}
        for modules, r in parts
    ]
    scale = {"params": [network.log_scale], "lr": settings.maps_rate, "weight_decay": 0.0}
    optimizer = torch.optim.AdamW([*groups, scale], weight_decay=settings.weight_decay)
    rates = [group["lr"] for group in optimizer.param_groups]
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rates, total_steps=steps + 1, pct_start=0.1
    )
    return optimizer, schedule


def _batches(rows: np.ndarray, size: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    order = draw.permutation(rows)
    for first in range(0, len(order) - size + 1, size):
        yield order[first : first + size]


def drawn(
    items: Sequence[Item],
    states: Sequence[list[State]],
    rows: np.ndarray,
    settings: Settings,
    draw: np.random.Generator,
) -> tuple[list[str], list[State]]:
    """What a step reads and sees of the items in some rows.

    Returns:
        ``settings.captions`` captions of each item, one item's after another's, some cut to
        phrases; one frame of each item, some mirrored, some cropped to a square.
    """
    texts = [str(draw.choice(items[row].captions)) for row in np.repeat(rows, settings.captions)]
    texts = [phrase(text, draw) if draw.random() < settings.phrases else text for text in texts]
    frames = [states[row][draw.integers(len(states[row]))] for row in rows]
    turned = draw.random(len(frames)) < settings.mirrored
    frames = [state[:, ::-1] if t else state for state, t in zip(frames, turned, strict=True)]
    cropped = draw.random(len(frames)) < settings.cropped
    # All to one size in a step, see `benchmarks.bundled.states.grouped`.
    side = int(draw.integers(_LEAST, _MOST + 1))
    for row in np.flatnonzero(cropped):
        left = np.array(frames[row].shape[:2]) - side
        if left.min() >= 0:
            top, first = draw.integers(left + 1)
            frames[row] = frames[row][top : top + side, first : first + side]
    return texts, frames


def phrase(text: str, draw: np.random.Generator) -> str:
    """One to three words that stand side by side in a caption; the caption where it has no such."""
    runs: list[list[str]] = []
    run: list[str] = []
    for word in [*re.findall(r"[a-z][a-z'-]*", text.lower()), ""]:
        if word and word not in LISTED:
            run.append(word)
        elif run:
            runs, run = [*runs, run], []
    if not runs:
        return text
    chosen = runs[draw.integers(len(runs))]
    length = int(draw.integers(1, min(_PHRASE, len(chosen)) + 1))
    first = int(draw.integers(len(chosen) - length + 1))
    return " ".join(chosen[first : first + length])


def _loss(network: Network, rows: np.ndarray, texts: list[str], states: list[State]) -> Tensor:
    logits = network.log_scale.exp() * network.texts(texts) @ network.frames(states).T
    # An item may be in a step twice.
    owner = np.repeat(rows, len(texts) // len(rows))
    right = torch.from_numpy(owner[:, None] == rows).float()
    return (contrast(logits, right) + contrast(logits.T, right.T)) / 2
