"""EfficientNet-Lite2 as a torch network: what trains it, and what computes it on a GPU."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from sureshot.models.encoders.efficientnet import (
    BLOCKS,
    CHANNELS,
    CLASSES,
    HEAD,
    STEM,
    Block,
    Convolution,
    Weights,
)


class SameConv(nn.Module):
    """A `Convolution` with its weights."""

    def __init__(self, layer: Convolution) -> None:
        super().__init__()
        # At stride 1 the padding is even on all sides, and the convolution adds it without a copy.
        own = (layer.kernel - 1) // 2 if layer.stride == 1 else 0
        sizes = layer.inputs, layer.outputs, layer.kernel, layer.stride, own
        self.conv = nn.Conv2d(*sizes, groups=layer.groups)

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n k i j"]:
        """Convolve; the output has ceil(size / stride) rows and columns."""
        kernel, stride = self.conv.kernel_size[0], self.conv.stride[0]
        if stride > 1:
            rows, columns = (
                max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in x.shape[-2:]
            )
            padding = (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)
            x = functional.pad(x, padding)
        return self.conv(x)


class InvertedBottleneck(nn.Module):
    """A `Block` with its weights.

    What a convolution gives is changed in place: a fifth less time on a processor (LOG.md).
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.expand = SameConv(block.expand) if block.expand else None
        self.filter, self.project = SameConv(block.filter), SameConv(block.project)
        self.residual = block.residual

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n k i j"]:
        """Apply the block."""
        y = x if self.expand is None else functional.relu6(self.expand(x), inplace=True)
        y = self.project(functional.relu6(self.filter(y), inplace=True))
        return y.add_(x) if self.residual else y


class EfficientNetLite2(nn.Module):
    """Images in, the last feature map out; `classify` turns features into ImageNet logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = SameConv(STEM)
        self.blocks = nn.Sequential(*(InvertedBottleneck(block) for block in BLOCKS))
        self.head = SameConv(HEAD)
        self.classify = nn.Linear(CHANNELS, CLASSES)

    def forward(self, x: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n 1280 i j"]:
        """Feature map, values in [0, 6], of RGB scaled by (pixel - 127) / 128."""
        return self.upper(self.lower(x, 0), 0)

    def lower(self, x: Float[Tensor, "n 3 h w"], block: int) -> Float[Tensor, "n c i j"]:
        """What enters a block."""
        x = functional.relu6(self.stem(x), inplace=True)
        return self.blocks[:block](x)

    def upper(self, x: Float[Tensor, "n c h w"], block: int) -> Float[Tensor, "n 1280 i j"]:
        """Last feature map, values in [0, 6], of what enters a block: the rest of the network."""
        return functional.relu6(self.head(self.blocks[block:](x)), inplace=True)

    @classmethod
    def of(cls, weights: Weights) -> "EfficientNetLite2":
        """The network with these weights, which it shares."""
        with torch.device("meta"):
            net = cls().eval()
        net.load_state_dict({n: torch.from_numpy(w) for n, w in weights.items()}, assign=True)
        # Channels last costs 1.6 times less processor time here (LOG.md); torch's stubs lack it.
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net.requires_grad_(False)
