"""The distances that DUQ compares itself with, each as a loop over its samples or its Gaussians."""

import math
from statistics import mean

import pytest
import torch

from sureshot.models.systems.duq import Duq, DuqConfig
from tests.models.systems.every import WIDTH, texts, videos
from tests.models.systems.loops import SAMPLES, Rows, cosine, crossed, picking, samples

FEW = 4


class Case:
    """A batch, its loss, its samples, and the same at unit length."""

    def __init__(self, rule: str) -> None:
        torch.manual_seed(0)
        config = DuqConfig(distance=rule, pooling="mean", samples=SAMPLES, scale=20.0)
        made = Duq(config, WIDTH)
        self.texts, self.videos = made.texts(texts(FEW)), made.videos(videos(FEW))
        draw = torch.Generator().manual_seed(5)
        losses = made.losses(self.texts, self.videos, draw)
        self.loss = losses["distance"].item()
        draw = torch.Generator().manual_seed(5)
        self.drawn = samples(self.texts, draw), samples(self.videos, draw)
        self.unit = tuple(
            [[[x / math.hypot(*z) for x in z] for z in item] for item in side]
            for side in self.drawn
        )

    def reduced(self, how) -> Rows:
        """One distance a pair from those of its samples."""
        return [
            [how(1 - cosine(a, b) for a in text for b in video) for video in self.drawn[1]]
            for text in self.drawn[0]
        ]


def chosen(d: Rows) -> float:
    """What picking the closest costs."""
    return -picking([[-x for x in row] for row in d], 20.0)


@pytest.mark.parametrize("rule", ["means", "kl", "wasserstein"])
def test_distances_in_closed_form(rule: str) -> None:
    case = Case(rule)
    means = case.texts["mean"].tolist(), case.videos["mean"].tolist()
    spreads = case.texts["log_var"].exp().tolist(), case.videos["log_var"].exp().tolist()

    def apart(i: int, j: int) -> float:
        one, other, v, w = means[0][i], means[1][j], spreads[0][i], spreads[1][j]
        if rule == "means":
            return 1 - cosine(one, other)
        if rule == "kl":
            both = zip(one, other, v, w, strict=True)
            terms = ((a - b) ** 2 * (1 / x + 1 / y) + x / y + y / x - 2 for a, b, x, y in both)
            return math.fsum(terms) / 4 / WIDTH
        spread = math.dist([x**0.5 for x in v], [y**0.5 for y in w])
        return (math.dist(one, other) ** 2 + spread**2) / 2

    d = [[apart(i, j) for j in range(FEW)] for i in range(FEW)]
    assert case.loss == pytest.approx(chosen(d), rel=1e-3)


def test_the_closest_samples() -> None:
    case = Case("min")
    assert case.loss == pytest.approx(chosen(case.reduced(min)), rel=1e-3)


def test_a_margin_between_the_closest_samples() -> None:
    case = Case("mil")
    d = case.reduced(min)
    lines = [(m, i, j) for m in (d, crossed(d)) for i in range(FEW) for j in range(FEW)]
    total = math.fsum(max(0.2 + m[i][i] - m[i][j], 0) for m, i, j in lines if i != j)
    assert case.loss == pytest.approx(total / (2 * FEW), rel=1e-3)


@pytest.mark.parametrize("mode", ["well_posed", "paper"])
def test_uniformity_stands_beside_the_distance(mode: str) -> None:
    case = Case("uniformity")
    every = [z for side in case.unit for item in side for z in item]
    pairs = [(a, b) for i, a in enumerate(every) for b in every[:i]]
    crowded = 10 * math.log(mean(math.exp(-2 * math.dist(a, b) ** 2) for a, b in pairs))
    d = case.reduced(lambda costs: mean(list(costs)))
    if mode == "well_posed":
        assert case.loss == pytest.approx(chosen(d) + crowded, rel=1e-3)
        return
    torch.manual_seed(0)
    made = Duq(DuqConfig(mode, "mean", distance="uniformity", samples=SAMPLES), WIDTH)
    draw = torch.Generator().manual_seed(5)
    loss = made.losses(case.texts, case.videos, draw)["distance"].item()
    assert loss == pytest.approx(picking(d, 100.0) + crowded, rel=1e-3)


def test_any_sample_of_the_partner() -> None:
    case, costs = Case("uda"), []
    for ours, theirs in (case.unit, case.unit[::-1]):
        for i, item in enumerate(ours):
            for z in item:
                by = [sum(math.exp(20 * cosine(z, x)) for x in other) for other in theirs]
                costs.append(-math.log(by[i] / sum(by)))
    assert case.loss == pytest.approx(mean(costs), rel=1e-3)


def test_a_chance_of_matching_averaged_over_samples() -> None:
    case = Case("monte_carlo")
    costs: dict[bool, list[float]] = {True: [], False: []}
    for i, text in enumerate(case.unit[0]):
        for j, video in enumerate(case.unit[1]):
            far = [math.sqrt(math.dist(a, b) ** 2 + 1e-6) for a in text for b in video]
            chance = mean(1 / (1 + math.exp(5 * x - 5)) for x in far)
            costs[i == j].append(-math.log(chance if i == j else 1 - chance))
    assert case.loss == pytest.approx(mean(costs[True]) + mean(costs[False]), rel=1e-3)
