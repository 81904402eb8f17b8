"""The learning rate over the steps of a run, and which weights it and the decay apply to."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from torch import nn

Optimizer = Literal["adamw", "bert_adam", "hugging_face"]
Decayed = Literal["matrices", "all_but_biases", "all"]


def multiplier(step: int, total: int, warmup: float, kind: Optimizer = "adamw") -> float:
    r"""Share of the learning rate at a step: up in a line, then down along half a cosine.

    .. math::
        m = \frac{s + 1}{w} \;\text{for}\; s < w, \qquad
        m = \tfrac{1}{2} \Bigl(1 + \cos \pi \frac{s - w}{n - w}\Bigr) \;\text{after}

    with n steps in all, of which w = round(warmup n) are warm-up. The codes of the papers start one
    step lower, :math:`s / w`, so that their first step changes nothing.

    Args:
        step: number of the step, 0 to ``total`` - 1.
        total: steps of the whole run, all epochs.
        warmup: share of them that is warm-up, from 0 to 1.
        kind: the optimiser, whose code has a schedule of its own. ``hugging_face`` rounds w down.
            ``bert_adam`` begins the cosine at step 0 beneath the warm-up,
            :math:`\tfrac12 (1 + \cos \pi s / n)`: with a tenth of warm-up the rate falls from 1 to
            0.976 where that ends.

    Returns:
        Factor on the learning rate, 0 to 1.

    Differs:
        DUQ's code counts the steps of five epochs whatever the run has, so that its rate climbs
        back to the full in a run of ten.

    Examples:
        >>> [round(multiplier(step, 5, 0.4), 2) for step in range(5)]
        [0.5, 1.0, 1.0, 0.75, 0.25]
        >>> [round(multiplier(step, 5, 0.4, "bert_adam"), 2) for step in range(5)]
        [0.0, 0.5, 0.65, 0.35, 0.1]
    """
    if kind == "bert_adam":
        done = step / total
        return done / warmup if done < warmup else 0.5 * (1 + math.cos(math.pi * done))
    first = 1 if kind == "adamw" else 0
    rising = round(warmup * total) if first else int(warmup * total)
    if step < rising:
        return (step + first) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / (total - rising)))


def groups(
    modules: Sequence[tuple[nn.Module, float]], weight_decay: float, decayed: Decayed = "matrices"
) -> list[dict[str, Any]]:
    """Parameter groups of an optimiser, each at the rate of its module; frozen weights in none.

    Args:
        modules: what is trained, each with its learning rate. A weight that two of them share
            belongs to the first.
        weight_decay: decay of what is decayed.
        decayed: ``matrices`` leaves out weights with fewer than two axes (biases, those of norms,
            the logit scale), since small is not simple there; ``all_but_biases`` leaves out what
            is called a bias, as CLIP4Clip and its kin do; ``all`` nothing, as X-Pool does.
    """
    made, taken = [], set()
    for module, rate in modules:
        parts: dict[float, list[nn.Parameter]] = {weight_decay: [], 0.0: []}
        for name, weight in module.named_parameters():
            if not weight.requires_grad or weight in taken:
                continue
            taken.add(weight)
            spared = {
                "matrices": weight.ndim < 2,
                "all_but_biases": "bias" in name,
                "all": False,
            }[decayed]
            parts[0.0 if spared else weight_decay].append(weight)
        made += [
            {"params": chosen, "lr": rate, "rate": rate, "weight_decay": decay}
            for decay, chosen in parts.items()
            if chosen
        ]
    return made
