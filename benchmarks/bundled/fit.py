r"""Training of the bundled model: contrast between captions and pictures.

Each step takes a batch of items with one frame and one caption each, and InfoNCE in both
directions. Videos are drawn twice in an epoch, having several frames and many captions. One caption
in five is cut to a phrase of one to three words, since people search so, and every other frame is
mirrored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from benchmarks.bundled.items import Item
from benchmarks.bundled.network import Network
from benchmarks.bundled.states import State
from benchmarks.relevance import LISTED
from sureshot.files import replace_file
from sureshot.models.losses.contrastive import info_nce

_PHRASE = 3  # words of a phrase at most


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the training; all were chosen on validation galleries (LOG.md)."""

    epochs: int = 12
    batch: int = 256
    maps_rate: float = 5e-4
    text_rate: float = 2e-4
    image_rate: float = 4e-4
    weight_decay: float = 0.1
    phrases: float = 0.2
    mirrored: float = 0.5
    videos: int = 2  # times that a video is drawn in an epoch
    seed: int = 0


def fit(
    network: Network,
    items: Sequence[Item],
    states: Sequence[list[State]],
    settings: Settings,
    folder: Path,
    stop: int | None = None,
) -> None:
    """Train a network; its state is kept after each epoch, and a stopped run goes on from there.

    Args:
        network: what is trained, in place.
        items: what is trained on.
        states: frames of each.
        settings: numbers of the training.
        folder: where the state is kept.
        stop: epoch to stop after, with the schedule of all of them; None goes to the end.
    """
    videos = [row for row, item in enumerate(items) if item.family == "msrvtt"]
    drawn = np.array([*range(len(items)), *videos * (settings.videos - 1)])
    steps = settings.epochs * (len(drawn) // settings.batch)
    optimizer, schedule = _optimizer(network, settings, steps)
    path, first = folder / f"seed-{settings.seed}-of-{settings.epochs}.pt", 0
    if path.exists():
        kept = torch.load(path, weights_only=True)
        network.load_state_dict(kept["network"])
        optimizer.load_state_dict(kept["optimizer"])
        schedule.load_state_dict(kept["schedule"])
        first = kept["epochs"]
    for epoch in range(first, settings.epochs if stop is None else stop):
        draw = np.random.default_rng([settings.seed, epoch])
        torch.manual_seed(1000 * settings.seed + epoch)
        batches = list(_batches(drawn, settings.batch, draw))
        network.train()
        total = 0.0
        for rows in track(batches, f"epoch {epoch + 1} of {settings.epochs}"):
            loss = _loss(network, *_drawn(items, states, rows, settings, draw))
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            total += loss.item() / len(batches)
        print(f"epoch {epoch + 1}: loss {total:.3f}", flush=True)
        state = {
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "epochs": epoch + 1,
        }
        with replace_file(path) as fresh:
            torch.save(state, fresh)


def _optimizer(
    network: Network, settings: Settings, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with a rate a part, rising for a tenth of the steps, then falling as a cosine."""
    tuned = network.tuned()
    text, image = tuned[:-2], tuned[-2:]
    parts = [
        (network.maps(), settings.maps_rate),
        (text, settings.text_rate),
        (image, settings.image_rate),
    ]
    groups = [
        {"params": [weight for module in modules for weight in module.parameters()], "lr": rate}
        for modules, rate in parts
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


def _drawn(
    items: Sequence[Item],
    states: Sequence[list[State]],
    rows: np.ndarray,
    settings: Settings,
    draw: np.random.Generator,
) -> tuple[list[str], list[State]]:
    """One caption, maybe cut to a phrase, and one frame of each item, maybe mirrored."""
    texts = [str(draw.choice(items[row].captions)) for row in rows]
    texts = [phrase(text, draw) if draw.random() < settings.phrases else text for text in texts]
    frames = [states[row][draw.integers(len(states[row]))] for row in rows]
    turned = draw.random(len(frames)) < settings.mirrored
    return texts, [state[:, ::-1] if t else state for state, t in zip(frames, turned, strict=True)]


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


def _loss(network: Network, texts: list[str], states: list[State]) -> Tensor:
    similarity = network.texts(texts) @ network.frames(states).T
    return info_nce(similarity, network.log_scale.exp())
