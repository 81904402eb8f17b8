"""DUQ's equations as plain loops over lists."""

import math

import torch

from sureshot.models.layers.gaussian import draw_noise
from sureshot.models.systems.base import Codes
from tests.models.systems.every import WIDTH

SAMPLES = 3
Rows = list[list[float]]


def crossed(matrix: Rows) -> Rows:
    return [list(row) for row in zip(*matrix, strict=True)]


def cosine(one: list[float], two: list[float]) -> float:
    inner = math.fsum(a * b for a, b in zip(one, two, strict=True))
    return inner / (math.hypot(*one) * math.hypot(*two))


def picking(matrix: Rows, scale: float) -> float:
    """Mean logarithm of each row's softmax at its own column, and of each column's at its row."""
    total = 0.0
    for lines in (matrix, crossed(matrix)):
        for i, line in enumerate(lines):
            top = max(line)
            total += scale * (line[i] - top)
            total -= math.log(math.fsum(math.exp(scale * (x - top)) for x in line))
    return total / (2 * len(matrix))


def squared_errors(matrix: Rows, labels: Rows) -> float:
    """Expected squared errors of the Dirichlet distributions of all rows and of all columns."""
    total = 0.0
    for lines, wanted in ((matrix, labels), (crossed(matrix), crossed(labels))):
        for line, y in zip(lines, wanted, strict=True):
            alpha = [max(x, 0.0) + 1 for x in line]
            strength = sum(alpha)
            for a, label in zip(alpha, y, strict=True):
                p = a / strength
                total += (label - p) ** 2 + p * (1 - p) / (strength + 1)
    return total / len(matrix)


def samples(codes: Codes, draw: torch.Generator) -> list[Rows]:
    noise = draw_noise((len(codes["mean"]), SAMPLES, WIDTH), draw)
    return [
        [
            [m + math.exp(s / 2) * e for m, s, e in zip(mean, spread, one, strict=True)]
            for one in several
        ]
        for mean, spread, several in zip(
            codes["mean"].tolist(), codes["log_var"].tolist(), noise.tolist(), strict=True
        )
    ]


def divergence(codes: Codes, prior: float) -> float:
    """Mean over the items of the divergence from the normal distribution of this variance."""
    pairs = zip(codes["mean"].flatten().tolist(), codes["log_var"].flatten().tolist(), strict=True)
    terms = ((math.exp(s) + m * m) / prior - 1 - s + math.log(prior) for m, s in pairs)
    return 0.5 * math.fsum(terms) / len(codes["mean"])
