"""A positive control for spreads: where a known spread must help, do learned ones come near?

    python -m benchmarks.spread [--seeds 10] [--epochs 8]

Every video is a point z of N(0, I). Its frames scatter about z, those of every second video widely,
so that the mean of its frames is off by 0.3 or by 1.5 in each dimension; texts are off by 0.5. How
wide a video scatters can be read from its frames. The scorer that knows everything but z is the
likelihood of the text; with one spread for all videos it is wrong about half of them.

Rows of the first table learn nothing. In the second, systems are trained, and their cosine is then
corrected by the spread u of each candidate, standardised: cos (1 + a u) + b u with a and b chosen
on validation videos, once with the spread that is known and once with the one that was learned.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from sureshot.models.systems.base import (
    Sizes,
    System,
    TextTokens,
    VideoTokens,
    load_system,
    objective,
)

DIM, FRAMES, WORDS = 32, 8, 4
NARROW, WIDE, OF_TEXT = 0.3, 1.5, 0.5
GRID = np.linspace(-0.4, 0.4, 17)
_DUQ: dict[str, Any] = {"name": "duq", "dropout": 0.0, "scale": 20.0}
_UATVR: dict[str, Any] = {"name": "uatvr", "layers": 1, "scale": 20.0}
SYSTEMS: dict[str, dict[str, Any]] = {
    "DUQ": _DUQ,
    "DUQ, means only": {
        **_DUQ,
        "similarity_evidence": False,
        "distance_evidence": False,
        "distance": "means",
    },
    "UATVR": _UATVR,
    "UATVR, means only": {**_UATVR, "matching": "means", "divergence": False},
}


@dataclass(frozen=True, slots=True)
class World:
    """Pairs of a text and a video, and how far the frames' mean of each video is off."""

    texts: TextTokens
    videos: VideoTokens
    off: np.ndarray

    def rows(self, chosen: torch.Tensor) -> tuple[TextTokens, VideoTokens]:
        """Some pairs."""
        return (
            TextTokens(*(part[chosen] for part in self.texts)),
            VideoTokens(*(part[chosen] for part in self.videos)),
        )


def world(count: int, seed: int) -> World:
    """So many pairs."""
    draw = np.random.default_rng(seed)
    points = draw.normal(size=(count, 1, DIM))
    off = np.where(draw.random(count) < 0.5, NARROW, WIDE)
    noise = draw.normal(size=(count, FRAMES, DIM)) * np.sqrt(FRAMES)
    frames = torch.from_numpy(points + off[:, None, None] * noise).float()
    noise = draw.normal(size=(count, WORDS, DIM)) * np.sqrt(WORDS)
    words = torch.from_numpy(points + OF_TEXT * noise).float()
    none = torch.zeros(count, FRAMES, 0)
    return World(
        TextTokens(words.mean(1), words, torch.ones(count, WORDS).bool()),
        VideoTokens(
            frames, torch.zeros(count, FRAMES, 0, DIM), none, torch.ones(count, FRAMES).bool()
        ),
        off,
    )


def first(scores: np.ndarray) -> float:
    """R@1, text to video, in percent."""
    return float(100 * (scores.argmax(1) == np.arange(len(scores))).mean())


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of every row with every row."""
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (one, other)]
    return np.asarray(unit[0] @ unit[1].T)


def without_learning(test: World) -> dict[str, float]:
    """R@1 of scorers that know the spread, one for all, or none."""
    texts, seen = test.texts.sentence.numpy(), test.videos.frames.mean(1).numpy()

    def likelihood(off: np.ndarray) -> np.ndarray:
        mean = seen / (1 + off**2)[:, None]
        wide = off**2 / (1 + off**2) + OF_TEXT**2
        apart = ((texts**2).sum(1)[:, None] - 2 * texts @ mean.T) + (mean**2).sum(1)
        return np.asarray(-apart / (2 * wide) - DIM / 2 * np.log(wide))

    mean = seen / (1 + test.off**2)[:, None]
    length = np.sqrt((mean**2).sum(1) + DIM * test.off**2 / (1 + test.off**2))
    plain = cosines(texts, seen)
    shrunk = texts / np.linalg.norm(texts, axis=1, keepdims=True) @ (mean / length[:, None]).T
    one_for_all = np.full_like(test.off, np.sqrt((test.off**2).mean()))
    return {
        "likelihood, known spread": first(likelihood(test.off)),
        "likelihood, one spread for all": first(likelihood(one_for_all)),
        "cosine": first(plain),
        "DUQ's expected distance, known spread": first(shrunk),
        "DUQ's score, s + (1 - d) / 2, known spread": first(plain + 0.5 * shrunk),
    }


def trained(settings: Mapping[str, Any], train: World, epochs: int, seed: int) -> System:
    """A system after so many epochs of batches of 128."""
    torch.manual_seed(seed)
    system = load_system(settings, Sizes(DIM, 0)).train()
    optimiser = torch.optim.AdamW(system.parameters(), lr=1e-3)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(train.off), generator=draw), 128):
            texts, videos = train.rows(rows)
            losses = system.losses(system.texts(texts), system.videos(videos), draw)
            optimiser.zero_grad()
            torch.autograd.backward(objective(losses, system.weights))
            optimiser.step()
            system.after_step()
    return system.eval()


def corrected(scores: np.ndarray, spread: np.ndarray, a: float, b: float) -> np.ndarray:
    """Scores by the standardised spread of each candidate."""
    u = (spread - spread.mean()) / spread.std()
    return np.asarray(scores * (1 + a * u) + b * u)


def with_spread(val: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]) -> float:
    """R@1 on test of scores and spreads, with what does best on validation."""
    best = max(((a, b) for a in GRID for b in GRID), key=lambda ab: first(corrected(*val, *ab)))
    return first(corrected(*test, *best))


def measured(system: System, val: World, test: World) -> dict[str, float]:
    """What a trained system scores, and what spreads of its candidates add."""
    found: dict[str, Any] = {}
    with torch.no_grad():
        codes = {
            name: (system.texts(w.texts), system.videos(w.videos))
            for name, w in (("val", val), ("test", test))
        }
        scores = {name: system.similarity(*pair).numpy() for name, pair in codes.items()}
    found["R@1"] = first(scores["test"])
    known = [(scores[name], np.log(w.off)) for name, w in (("val", val), ("test", test))]
    found["with the known spread"] = with_spread(*known)
    learned = {name: system.gaussian(videos) for name, (_, videos) in codes.items()}
    if None not in learned.values():
        spread = {n: one.log_var.mean(1).numpy() for n, one in learned.items() if one}
        found["with the learned spread"] = with_spread(
            (scores["val"], spread["val"]), (scores["test"], spread["test"])
        )
        found["rank correlation of both"] = 100 * float(spearmanr(spread["test"], test.off)[0])
    return found


def main() -> None:
    """Measure and print mean and deviation over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(options.seeds):
        train, val, test = (world(n, 1000 * seed + k) for k, n in enumerate((3000, 500, 500)))
        rows = {"without learning": without_learning(test)}
        for name, settings in SYSTEMS.items():
            rows[name] = measured(trained(settings, train, options.epochs, seed), val, test)
        for row, values in rows.items():
            for name, value in values.items():
                found.setdefault(row, {}).setdefault(name, []).append(value)
    for row, columns in found.items():
        print(row)
        for name, scores in columns.items():
            print(f"  {name:45}{np.mean(scores):6.1f} ± {np.std(scores, ddof=1):.1f}")


if __name__ == "__main__":
    main()
