"""A device is what was asked for, or what is there."""

import pytest
import torch

from sureshot.errors import ModelError
from sureshot.models.weights import device_for


def test_the_named_device_is_taken():
    assert device_for("cpu") == "cpu"


@pytest.mark.parametrize(("there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_without_a_name_a_gpu_is_taken_where_there_is_one(monkeypatch, there, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert device_for(None) == expected


@pytest.mark.parametrize("given", ["nonsense", "", "cuda:99", "cpu gpu"])
def test_a_device_that_is_not_there_is_named(given):
    with pytest.raises(ModelError, match=rf"Cannot compute on device '{given}'\. Use cpu"):
        device_for(given)
