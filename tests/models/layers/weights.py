"""Reference weights into layers, and layers whose weights are not the ones they start with."""

import torch
from torch import nn


def tensor(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def load(module: nn.Module, weights: dict, names: dict[str, str]) -> None:
    """Fill all of a module, in double precision and evaluation mode.

    ``names`` maps a prefix of the module's own names to one of the reference's.
    """
    state = {}
    for own in module.state_dict():
        prefix = max((p for p in names if own == p or own.startswith(f"{p}.")), key=len)
        state[own] = tensor(weights[names[prefix] + own[len(prefix) :]])
    module.double().load_state_dict(state)
    module.eval()


def blocks(own: str, theirs: str) -> dict[str, str]:
    """Names of a transformer block's weights in CLIP's code."""
    return {
        f"{own}.norm_attention": f"{theirs}.ln_1",
        f"{own}.queries_keys_values.weight": f"{theirs}.attn.in_proj_weight",
        f"{own}.queries_keys_values.bias": f"{theirs}.attn.in_proj_bias",
        f"{own}.out": f"{theirs}.attn.out_proj",
        f"{own}.norm_mlp": f"{theirs}.ln_2",
        f"{own}.widen": f"{theirs}.mlp.c_fc",
        f"{own}.narrow": f"{theirs}.mlp.c_proj",
    }


def shake(module: nn.Module, seed: int = 0, size: float = 0.3) -> None:
    """Move every weight, also those of norms, away from where it starts."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight += size * torch.randn(weight.shape, generator=draw, dtype=weight.dtype)


def sample(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
