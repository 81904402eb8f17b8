"""The small encoder has weights of its own, reads any word, and comes back from a folder."""

import numpy as np
import pytest

from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.small import SmallEncoder, SmallNetwork

FRAMES = np.random.default_rng(0).integers(0, 255, (3, 48, 40, 3), np.uint8)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("small", "cpu")


def test_it_is_small_and_its_weights_follow_from_the_seed(encoder):
    assert sum(weight.numel() for weight in encoder.network.parameters()) < 400_000
    assert encoder.fingerprint == SmallEncoder(device="cpu").fingerprint
    other = SmallEncoder(SmallNetwork(1), device="cpu")
    assert encoder.fingerprint != other.fingerprint


def test_texts_are_read_alone_as_among_others(encoder):
    texts = ["A red circle.", "a red circle moves left and a long way after that"]
    both, alone = encoder.encode_texts(texts), encoder.encode_texts(texts[:1])
    assert both.sentence.shape == (2, encoder.dim)
    assert np.linalg.norm(both.sentence, axis=1) == pytest.approx(1, abs=1e-5)
    assert both.sentence[0] == pytest.approx(alone.sentence[0], abs=1e-5)
    assert both.words[0, :3] == pytest.approx(alone.words[0], abs=1e-5)
    assert (both.words[0, 3:] == 0).all()
    assert both.mask.sum(1).tolist() == [3, 11]


def test_words_differ_and_so_does_their_order(encoder):
    read = encoder.encode_texts(["red ring", "Red, ring!", "ring red", "red hoop"]).sentence
    assert read[0] == pytest.approx(read[1], abs=1e-6)
    assert abs(read[0] - read[2]).max() > 1e-3
    assert abs(read[0] - read[3]).max() > 1e-3


def test_a_long_text_is_cut_and_told(encoder):
    read = encoder.encode_texts([" ".join(["red"] * 60), "red"])
    assert read.truncated.tolist() == [True, False]
    assert read.mask[0].sum() == 48


def test_frames_of_any_shape_become_vectors_and_cells(encoder):
    prepared = encoder.prepare(FRAMES)
    assert prepared.shape == (3, 3, 32, 32)
    seen = encoder.encode_frames(prepared)
    assert seen.frames.shape == (3, encoder.dim)
    assert seen.patches.shape == (3, 16, encoder.dim)
    assert seen.backbone.shape == (3, encoder.channels)
    alone = encoder.encode_frames(prepared[1:2])
    assert seen.frames[1] == pytest.approx(alone.frames[0], abs=1e-5)
    assert encoder.encode_frames(prepared[:0]).frames.shape == (0, encoder.dim)


def test_what_was_saved_is_loaded_by_the_name_of_its_folder(tmp_path):
    made = SmallEncoder(SmallNetwork(4), device="cpu")
    made.save(tmp_path / "encoder")
    again = load_encoder(str(tmp_path / "encoder"), "cpu")
    assert again.fingerprint == made.fingerprint
    assert again.name == str(tmp_path / "encoder")
