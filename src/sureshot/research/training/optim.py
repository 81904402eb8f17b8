"""The optimiser of a run: AdamW of today, or one of those that the papers' codes carry along."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

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
        step: from 0 to ``total`` - 1, in the whole run; the share is 0 past them.
        warmup: share of all steps, from 0 to 1.
        kind: the optimiser, whose code has a schedule of its own. ``hugging_face`` rounds w down.
            ``bert_adam`` begins the cosine at step 0 beneath the warm-up,
            :math:`\tfrac12 (1 + \cos \pi s / n)`: with a tenth of warm-up the rate falls from 1 to
            0.976 where that ends.

    Differs:
        DUQ's code counts the steps of five epochs whatever the run has, so that its rate climbs
        back to the full in a run of ten.

    Examples:
        >>> [round(multiplier(step, 5, 0.4), 2) for step in range(5)]
        [0.5, 1.0, 1.0, 0.75, 0.25]
        >>> [round(multiplier(step, 5, 0.4, "bert_adam"), 2) for step in range(5)]
        [0.0, 0.5, 0.65, 0.35, 0.1]
    """
    if step >= total:
        return 0.0
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
            bias = "bias" in name
            spared = {"matrices": weight.ndim < 2, "all_but_biases": bias, "all": False}
            parts[0.0 if spared[decayed] else weight_decay].append(weight)
        made += [
            {"params": chosen, "lr": rate, "rate": rate, "weight_decay": decay}
            for decay, chosen in parts.items()
            if chosen
        ]
    return made


_EPS = 1e-6


class BertAdam(torch.optim.Optimizer):
    r"""Adam as the first BERT in PyTorch had it, and AdamW as its successor had it.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
        w \leftarrow w - r \Big(c\,\frac{m}{\sqrt v + \epsilon} + \delta w\Big)

    with rate r and weight decay :math:`\delta`. Without ``corrected`` c is 1: the first steps are
    then shorter than those of Adam. With it c is :math:`\sqrt{1 - \beta_2^t} / (1 - \beta_1^t)`;
    epsilon is added to the root that is not corrected, where it weighs more than in
    ``torch.optim.AdamW``.

    Args:
        betas: shares of the old averages of gradients and of their squares.
        longest: gradient of a single tensor, beyond which it is shortened; None leaves all.

    References:
        ``BertAdam`` in CLIP4Clip, UATVR and DUQ; with ``corrected`` the ``AdamW`` of transformers
        before version 5 in X-Pool and T-MASS, which decays a weight after its step. At the rates
        of CLIP a weight moves by few spacings of its numbers, so that the order shows.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        betas: tuple[float, float],
        *,
        corrected: bool,
        longest: float | None,
    ) -> None:
        settings = {"betas": betas, "corrected": corrected, "longest": longest}
        super().__init__(groups, {"lr": 0.0, "weight_decay": 0.0, **settings})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Change all weights that have a gradient; the closure is not called."""
        del closure
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._change(weight, weight.grad, group)

    def _change(self, weight: Tensor, grad: Tensor, group: Mapping[str, Any]) -> None:
        memory = self.state[weight]
        if not memory:
            memory["step"] = torch.tensor(0.0)
            memory["mean"], memory["square"] = torch.zeros_like(weight), torch.zeros_like(weight)
        if group["longest"] is not None:
            grad = grad * (group["longest"] / (grad.norm() + 1e-6)).clamp(max=1.0)
        first, second = group["betas"]
        memory["step"] += 1
        memory["mean"].lerp_(grad, 1 - first)
        memory["square"].mul_(second).addcmul_(grad, grad, value=1 - second)
        root = memory["square"].sqrt().add_(_EPS)
        rate, decay = group["lr"], group["weight_decay"]
        if group["corrected"]:
            steps = memory["step"].item()
            longer = (1 - second**steps) ** 0.5 / (1 - first**steps)
            weight.addcdiv_(memory["mean"], root, value=-rate * longer)
            weight.add_(weight, alpha=-rate * decay)
        else:
            change = (memory["mean"] / root).add_(weight, alpha=decay)
            weight.sub_(change, alpha=rate)


def new_optimiser(
    kind: Optimizer, modules: Sequence[tuple[nn.Module, float]], weight_decay: float
) -> torch.optim.Optimizer:
    """An optimiser of these modules' weights.

    Args:
        kind: ``adamw``; ``bert_adam`` as in CLIP4Clip, UATVR and DUQ; ``hugging_face`` as in X-Pool
            and T-MASS. It also decides what is decayed, see `groups`.
    """
    if kind == "bert_adam":
        parts = groups(modules, weight_decay, "all_but_biases")
        return BertAdam(parts, (0.9, 0.98), corrected=False, longest=1.0)
    if kind == "hugging_face":
        parts = groups(modules, weight_decay, "all")
        return BertAdam(parts, (0.9, 0.999), corrected=True, longest=None)
    return torch.optim.AdamW(groups(modules, weight_decay), betas=(0.9, 0.98), eps=_EPS)
