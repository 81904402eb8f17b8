"""Weights that are not those of their network are refused before memory is asked for."""

import os
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from sureshot.errors import ModelError
from sureshot.models.load import load_searchable
from sureshot.models.weights import check_finite, device_for, with_weights


def network(width: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))


def written(folder: Path, **changes: torch.Tensor | None) -> Path:
    """A file of the weights of a network, some of them changed or left out."""
    known = {**network().state_dict(), **{k.replace("__", "."): v for k, v in changes.items()}}
    save_file({k: v for k, v in known.items() if v is not None}, folder / "model.safetensors")
    return folder / "model.safetensors"


def test_weights_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, **{"0__bias": torch.tensor([1.0, 2.0, 3.0])})
    assert with_weights(network, path, "config.json")[0].bias.tolist() == [1, 2, 3]
    halves = written(tmp_path, **{"0__bias": torch.ones(3, dtype=torch.float16)})
    assert with_weights(network, halves, "config.json")[0].bias.dtype == torch.float32


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"0__bias": None}, r"0\.bias is missing"),
        ({"0__bias": torch.ones(4)}, r"0\.bias has the shape \[4\], not \[3\]"),
        ({"0__bias": torch.ones(3, dtype=torch.int64)}, r"0\.bias is of the type I64"),
        ({"1__num_batches_tracked": torch.tensor(1.0)}, "num_batches_tracked is of the type F32"),
        ({"other": torch.ones(1)}, "other is of no layer"),
        ({"0__bias": torch.tensor([1, float("nan"), 1])}, r"the layer 0\.bias holds NaN"),
        ({"0__bias": torch.tensor([1, float("inf"), 1])}, r"the layer 0\.bias holds infinity"),
    ],
)
def test_weights_of_another_network_are_refused(tmp_path: Path, changes, said: str) -> None:
    with pytest.raises(ModelError, match=rf"The weights of .*{said}.*opy or train it again"):
        with_weights(network, written(tmp_path, **changes), "config.json")


@pytest.mark.parametrize("width", [10**9, 10**15, -5])
def test_sizes_are_compared_before_memory_is_asked_for(tmp_path: Path, width: int) -> None:
    path = written(tmp_path)
    with pytest.raises(ModelError, match=r"not those of its config\.json|No network can be built"):
        with_weights(lambda: network(width), path, "config.json")


def _file(folder: Path, header: bytes, data: bytes = b"") -> Path:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


@pytest.mark.parametrize(
    ("header", "data"),
    [
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', b""),  # beyond the file
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', b"1234"),  # too short
        (
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
            b'"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
            b"1234",
        ),
        (b'{"a":{"dtype":"F32","shape":[1e9],"data_offsets":[0,4]}}', b"1234"),
        (b'{"a":{"dtype":"X1","shape":[1],"data_offsets":[0,4]}}', b"1234"),
        (b"[" * 100_000, b""),
        (b"{}", b"1234"),
    ],
)
def test_a_header_that_is_not_of_its_file_is_refused(tmp_path: Path, header, data) -> None:
    with pytest.raises(ModelError, match=r"The weights of .* cannot be read"):
        with_weights(network, _file(tmp_path, header, data), "config.json")


def test_a_header_of_another_length_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for length in (0, 2**62, 2**64 - 1):
        path.write_bytes(struct.pack("<Q", length) + b"{}")
        with pytest.raises(ModelError, match="cannot be read"):
            with_weights(network, path, "config.json")


def test_a_pipe_in_the_place_of_weights_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"cannot be read \(is a pipe\)"):
        with_weights(network, tmp_path / "model.safetensors", "config.json")


def test_large_numbers_are_no_infinity() -> None:
    made = network()
    with torch.no_grad():
        made[0].weight.fill_(3e38)
    check_finite(made, "here")


@pytest.mark.parametrize(("there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_without_a_name_a_gpu_is_taken_where_there_is_one(monkeypatch, there, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert device_for(None) == expected


@pytest.mark.parametrize("given", ["nonsense", "", "cuda:99", "cpu gpu"])
def test_a_device_that_is_not_there_is_named(given):
    with pytest.raises(ModelError, match=rf"Cannot compute on device '{given}'\. Use cpu"):
        device_for(given)
    with pytest.raises(ModelError, match=rf"Cannot compute on device '{given}'\. Use cpu"):
        load_searchable("bundled", given)  # not only when the first frame is there
