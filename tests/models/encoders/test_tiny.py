"""The tiny encoder finds colours by their names, and nothing else."""

import numpy as np
import pytest

from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.base import Encoder
from sureshot.models.encoders.toy import COLOURS, TinyEncoder

ENCODER = TinyEncoder()


def flat(*names, size=(40, 30)):
    return np.stack([np.full((size[1], size[0], 3), COLOURS[name], np.uint8) for name in names])


def encode(frames):
    return ENCODER.encode_frames(ENCODER.prepare(frames))


def test_it_is_an_encoder_under_its_name():
    assert isinstance(ENCODER, Encoder)
    assert isinstance(load_encoder("tiny"), TinyEncoder)
    assert TinyEncoder("cpu").fingerprint == ENCODER.fingerprint and len(ENCODER.fingerprint) == 64


def test_each_colour_finds_its_own_frame():
    texts = ENCODER.encode_texts([f"A {name.upper()} wall." for name in COLOURS]).sentence
    frames = encode(flat(*COLOURS)).frames
    assert ((texts @ frames.T).argmax(1) == np.arange(len(COLOURS))).all()


def test_a_word_that_is_no_colour_finds_nothing():
    scores = ENCODER.encode_texts(["elephant"]).sentence @ encode(flat(*COLOURS)).frames.T
    assert (scores == 0).all()


def test_sentences_have_unit_length_and_words_lie_under_their_mask():
    texts = ENCODER.encode_texts(["red", "a blue, blue sky", ""])
    assert texts.words.shape == (3, 4, ENCODER.dim)
    assert texts.mask.sum(1).tolist() == [1, 4, 1]
    assert (texts.words[~texts.mask] == 0).all() and texts.words[texts.mask].any(-1).all()
    assert np.linalg.norm(texts.sentence, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert not texts.truncated.any()


def test_a_long_text_is_cut_and_says_so():
    texts = ENCODER.encode_texts(["word " * 32, "word " * 33])
    assert texts.truncated.tolist() == [False, True] and texts.mask.shape == (2, 32)


def test_a_text_means_the_same_in_any_company():
    alone = ENCODER.encode_texts(["red car"])
    among = ENCODER.encode_texts(["a much longer text than that", "red car"])
    assert np.array_equal(alone.sentence[0], among.sentence[1])
    assert np.array_equal(alone.words[0], among.words[1][among.mask[1]])


def test_frames_of_any_size_are_prepared_to_one():
    for size in [(1, 1), (16, 16), (300, 7)]:
        prepared = ENCODER.prepare(flat("red", size=size))
        assert prepared.shape == (1, 3, 16, 16) and prepared.dtype == np.uint8


def test_patches_are_the_quarters_from_the_top_left():
    frame = flat("red", size=(32, 32))
    frame[0, :16, 16:], frame[0, 16:, :16] = COLOURS["green"], COLOURS["blue"]
    frame[0, 16:, 16:] = COLOURS["white"]
    features = encode(frame)
    names = list(COLOURS)
    assert [names[i] for i in features.patches[0].argmax(-1)] == ["red", "green", "blue", "white"]
    assert features.frames[0] == pytest.approx(features.patches[0].mean(0), abs=1e-6)


def test_no_frames_give_no_features():
    features = ENCODER.encode_frames(np.zeros((0, 3, 16, 16), np.uint8))
    assert features.frames.shape == (0, ENCODER.dim)
    assert features.patches.shape == (0, 4, ENCODER.dim)
    assert features.backbone.shape == (0, ENCODER.channels)


def test_a_frame_is_the_same_in_any_batch():
    batch = encode(flat("red", "blue", "green"))
    alone = encode(flat("blue"))
    assert np.array_equal(batch.frames[1], alone.frames[0])
    assert np.array_equal(batch.backbone[1], alone.backbone[0])
    assert batch.frames.dtype == batch.patches.dtype == batch.backbone.dtype == np.float32
