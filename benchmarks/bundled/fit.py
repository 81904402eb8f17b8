r"""Training of the bundled model: contrast between captions and pictures.

Each step takes a batch of items, of each one frame and two captions that are both right, and
InfoNCE in both directions. Videos are drawn twice in an epoch, having several frames and many
captions. One caption in five is cut to a phrase of one to three words, since people search so.
Every other frame is mirrored, and of every other one only a part is seen. Several runs begin with
the same weights, and the weights that they end with are averaged. What comes out are weights on the
line from the first ones to these (Wortsman et al. 2022, both): a little short of the end they are
nearly as good on what is like the training, and better on other pictures.

The whole network is tuned after its ends, and sees frames anew in each epoch: cropped, in other
colours, and some as phones take them badly (`benchmarks.bundled.views`).
"""

import hashlib
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.bundled.items import Item, digest_of
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from benchmarks.bundled.views import view
from sureshot.files import replace_file
from sureshot.research.queries import LISTED

_PHRASE = 3  # words of a phrase at most
_SMALLEST, _LARGEST = 0.65, 0.95  # side of a square that is cropped, of that of a whole frame
_ENDS, _OF_LOWER = 16, 0.5  # first block of the ends, and the rate of those before it
LEG = 24  # steps between two times that a run is kept


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the training; all were chosen on validation galleries (LOG.md)."""

    runs: int = 4
    epochs: int = 8  # of each run
    layers: int = 3  # of the text network's six the upper ones are tuned
    block: int = 16  # of the image network's 21 the first that is tuned
    batch: int = 256
    maps_rate: float = 5e-4
    text_rate: float = 2e-4
    image_rate: float = 4e-4
    weight_decay: float = 0.1
    phrases: float = 0.2
    captions: int = 2  # of an item in a step
    frames: int = 1  # of an item in a step
    mirrored: float = 0.5
    cropped: float = 0.5
    videos: int = 2  # times that a video is drawn in an epoch
    alike: float = 0.0  # share of batches whose items are all of one family
    agree: float = 0.0  # weight of the contrast of an item's captions with each other
    spoiled: float = 0.0  # share of frames as phones take them; of the whole network only


# How the whole network is tuned, after its ends.
WHOLE = Settings(
    runs=1, epochs=3, block=0, maps_rate=1e-4, text_rate=5e-5, image_rate=1e-4, spoiled=0.25
)


class Run(NamedTuple):
    """The mean loss of each epoch, and how long it took."""

    losses: list[float]
    seconds: float


def train(
    network: Network,
    items: Sequence[Item],
    states: Sequence[list[State]],
    settings: Settings,
    run: int,
    folder: Path,
    leg: int = LEG,
) -> Run:
    """Train a network in one run; a stopped run goes on where it was last kept.

    Every step draws numbers of its own, so that a run ends with the same weights however often it
    was stopped.

    Args:
        network: what is trained, in place.
        items: what is trained on.
        states: frames of each.
        settings: numbers of the training.
        run: its number, by which it differs from others.
        folder: where it is kept.
        leg: steps between two times that it is kept.
    """
    videos = [row for row, item in enumerate(items) if item.family == "msrvtt"]
    an_epoch = np.array([*range(len(items)), *videos * (settings.videos - 1)])
    families = np.unique([item.family for item in items], return_inverse=True)[1]
    per_epoch = len(an_epoch) // settings.batch
    steps = settings.epochs * per_epoch
    optimizer, schedule = _optimizer(network, settings, steps)
    path = folder / f"run-{run}-{_digest(items, settings, network)}.pt"
    first, losses, seconds = 0, [0.0] * settings.epochs, 0.0
    if path.exists():
        state = torch.load(path, weights_only=True, map_location=network.device)
        network.load_state_dict(state["trained"], strict=False)
        first, losses, seconds = state["step"], state["losses"], state["seconds"]
        if first < steps:
            optimizer.load_state_dict(state["optimizer"])
            schedule.load_state_dict(state["schedule"])
    network.train()
    began = time.monotonic() - seconds

    def batch(step: int) -> tuple[np.ndarray, list[str], list[State]]:
        epoch, place = divmod(step, per_epoch)
        order = _order(an_epoch, families, settings, np.random.default_rng([0, run, epoch]))
        rows = order[place * settings.batch :][: settings.batch]
        draw = np.random.default_rng([1, run, step])
        return rows, *drawn(items, states, rows, settings, draw)

    pool = ThreadPoolExecutor(1)
    coming = pool.submit(batch, first)
    for step in range(first, steps):
        epoch, place = divmod(step, per_epoch)
        rows, texts, frames = coming.result()
        coming = pool.submit(batch, min(step + 1, steps - 1))
        torch.manual_seed(1_000_000 * (run + 1) + step)
        loss = _loss(network, rows, texts, frames, settings)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        losses[epoch] += loss.item() / per_epoch
        if (step + 1) % leg and step + 1 < steps:
            continue
        seconds = time.monotonic() - began
        state = {"step": step + 1, "losses": losses, "seconds": seconds}
        state["trained"] = network.trained()
        if step + 1 < steps:
            state |= {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        with replace_file(path) as fresh:
            torch.save(state, fresh)
        print(
            f"run {run + 1}, step {step + 1} of {steps}, epoch {epoch + 1}: "
            f"loss {losses[epoch] * per_epoch / (place + 1):.3f}, "
            f"{seconds / (step + 1):.1f} s a step",
            flush=True,
        )
    return Run(losses, seconds)


def _order(
    rows: np.ndarray, families: np.ndarray, settings: Settings, draw: np.random.Generator
) -> np.ndarray:
    """Rows of an epoch, so that a share of its batches is of one family each."""
    order = draw.permutation(rows)
    batches = len(rows) // settings.batch
    grouped = round(settings.alike * batches) * settings.batch
    alike = order[:grouped][np.argsort(families[order[:grouped]], kind="stable")]
    parts = [
        *alike.reshape(-1, settings.batch),
        *order[grouped : batches * settings.batch].reshape(-1, settings.batch),
    ]
    return np.concatenate([parts[place] for place in draw.permutation(len(parts))])


def contrast(logits: Float[Tensor, "a b"], right: Float[Tensor, "a b"]) -> Tensor:
    """InfoNCE whose right answers may be several."""
    log = logits - logits.logsumexp(1, keepdim=True)
    return -(right / right.sum(1, keepdim=True) * log).sum(1).mean()


def _digest(items: Sequence[Item], settings: Settings, network: Network) -> str:
    """A name for what is trained, on what and how, so that no run goes on from another's state."""
    what = (digest_of(items), replace(settings, runs=1))
    digest = hashlib.sha256(repr(what).encode())
    for weight in (weight for part in network.maps() for weight in part.parameters()):
        digest.update(weight.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:12]


def _optimizer(
    network: Network, settings: Settings, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with a rate a part, rising for a tenth of the steps, then falling as a cosine."""
    image = network.tuned_image()
    lower = max(0, _ENDS - settings.block)
    parts = [
        (network.maps(), settings.maps_rate),
        (network.tuned_text(), settings.text_rate),
        (image[lower:], settings.image_rate),
        (image[:lower], settings.image_rate * _OF_LOWER),
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
        phrases; ``settings.frames`` frames of each, some mirrored, some cropped to a square, or,
        for the whole network, views of them.
    """
    texts = [str(draw.choice(items[row].captions)) for row in np.repeat(rows, settings.captions)]
    texts = [phrase(text, draw) if draw.random() < settings.phrases else text for text in texts]
    frames = [
        states[row][place]
        for row in rows
        for place in draw.permutation(len(states[row]))[
            np.arange(settings.frames) % len(states[row])
        ]
    ]
    if settings.block == 0:
        return texts, [view(frame, draw, settings.spoiled) for frame in frames]
    turned = draw.random(len(frames)) < settings.mirrored
    frames = [state[:, ::-1] if t else state for state, t in zip(frames, turned, strict=True)]
    cropped = draw.random(len(frames)) < settings.cropped
    # All to one size in a step, see `benchmarks.bundled.states.grouped`.
    whole = np.mean([(frame.shape[0] * frame.shape[1]) ** 0.5 for frame in frames])
    side = round(whole * draw.uniform(_SMALLEST, _LARGEST))
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


def _loss(
    network: Network,
    rows: np.ndarray,
    texts: list[str],
    states: list[State],
    settings: Settings,
) -> Tensor:
    read, scale = network.texts(texts), network.log_scale.exp()
    logits = scale * read @ network.frames(states).T
    # An item may be in a step twice.
    owner = np.repeat(rows, settings.captions)
    right = torch.from_numpy(owner[:, None] == np.repeat(rows, settings.frames)).to(logits)
    loss = (contrast(logits, right) + contrast(logits.T, right.T)) / 2
    if settings.agree and settings.captions > 1:
        one, other = read[:: settings.captions], read[1 :: settings.captions]
        right = torch.from_numpy(rows[:, None] == rows).to(logits)
        loss = loss + settings.agree * contrast(scale * one @ other.T, right)
    return loss
