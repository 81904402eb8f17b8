"""The learning rate over the steps of a run, and which weights it and the decay apply to."""

import math
from collections.abc import Sequence
from typing import Any

from torch import nn


def multiplier(step: int, total: int, warmup: float) -> float:
    r"""Share of the learning rate at a step: up in a line, then down along half a cosine.

    .. math::
        m = \frac{s + 1}{w} \;\text{for}\; s < w, \qquad
        m = \tfrac{1}{2} \Bigl(1 + \cos \pi \frac{s - w}{n - w}\Bigr) \;\text{after}

    with n steps in all, of which w = round(warmup n) are warm-up.

    Args:
        step: from 0 to ``total`` - 1.
        total: steps of the whole run, all epochs.
        warmup: share of them that is warm-up, from 0 to 1.

    Returns:
        Above 0 and up to 1, which it reaches at the end of the warm-up.

    Differs:
        The codes of CLIP4Clip and its kin begin the cosine at step 0 beneath the warm-up, so that
        the rate jumps down where the warm-up ends, and DUQ's counts the steps of five epochs
        whatever the run has, so that its rate climbs back to the full in a run of ten.

    Examples:
        >>> [round(multiplier(step, 5, 0.4), 2) for step in range(5)]
        [0.5, 1.0, 1.0, 0.75, 0.25]
    """
    rising = round(warmup * total)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / (total - rising)))


def groups(modules: Sequence[tuple[nn.Module, float]], weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups of an optimiser: each module at its own rate, matrices decayed.

    Weights with fewer than two axes (biases, those of norms, the logit scale) are not decayed:
    small is not simple there. Frozen weights are left out.

    Args:
        modules: with the learning rate of each.
        weight_decay: of what is decayed.
    """
    made = []
    for module, rate in modules:
        free = [weight for weight in module.parameters() if weight.requires_grad]
        for decay, chosen in (
            (weight_decay, [weight for weight in free if weight.ndim >= 2]),
            (0.0, [weight for weight in free if weight.ndim < 2]),
        ):
            if chosen:
                made.append({"params": chosen, "lr": rate, "rate": rate, "weight_decay": decay})
    return made
