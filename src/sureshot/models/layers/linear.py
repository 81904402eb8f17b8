"""Linear layers with the starting weights that this family of models uses."""

from torch import nn

_SPREAD = 0.02  # standard deviation of new weights in CLIP and in everything built on it


def linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer with weights from N(0, 0.02²) and biases of zero.

    The draw is torch's own: ``torch.manual_seed`` before a model is built makes it repeatable.
    """
    layer = nn.Linear(inputs, outputs, bias=bias)
    draw_linear(layer)
    return layer


def xavier(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer with Glorot's uniform weights and biases of zero, as in PVSE and PCME."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def draw_linear(module: nn.Module) -> None:
    """Draw all linear layers within a module anew: weights from N(0, 0.02²), biases of zero."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=_SPREAD)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def draw_as_torch(module: nn.Module) -> None:
    """Draw all linear layers within a module as torch does by default; those of attentions too.

    An attention of torch has queries, keys and values by Glorot's rule, and biases of zero.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
            if name.endswith("queries_keys_values"):
                nn.init.xavier_uniform_(layer.weight)
            if name.endswith(("queries_keys_values", "block.out")):
                nn.init.zeros_(layer.bias)


def identity(dim: int) -> nn.Linear:
    """A linear layer that starts by passing its input on unchanged."""
    layer = nn.Linear(dim, dim)
    nn.init.eye_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def embedding(rows: int, dim: int) -> nn.Embedding:
    """A table of learned vectors drawn from N(0, 0.02²)."""
    table = nn.Embedding(rows, dim)
    nn.init.normal_(table.weight, std=_SPREAD)
    return table
