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
    assert TinyEncoder().fingerprint == ENCODER.fingerprint and len(ENCODER.fingerprint) == 64


def test_each_colour_finds_its_own_frame():
    texts = ENCODER.encode_texts([f"A {name.upper()} wall." for name in COLOURS]).sentence
    frames = encode(flat(*COLOURS)).frames
    assert ((texts @ frames.T).argmax(1) == np.arange(len(COLOURS))).all()


def test_sentences_have_unit_length_and_words_lie_under_their_mask():
    texts = ENCODER.encode_texts(["red", "a blue, blue sky", ""])
    assert texts.words.shape == (3, 4, ENCODER.dim)
    assert texts.mask.sum(1).tolist() == [1, 4, 1]
    assert (texts.words[~texts.mask] == 0).all() and texts.words[texts.mask].any(-1).all()
    assert np.linalg.norm(texts.sentence, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert not texts.truncated.any()


def test_patches_are_the_quarters_from_the_top_left():
    frame = flat("red", size=(32, 32))
    frame[0, :16, 16:], frame[0, 16:, :16] = COLOURS["green"], COLOURS["blue"]
    frame[0, 16:, 16:] = COLOURS["white"]
    features = encode(frame)
    names = list(COLOURS)
    assert [names[i] for i in features.patches[0].argmax(-1)] == ["red", "green", "blue", "white"]
    assert features.frames[0] == pytest.approx(features.patches[0].mean(0), abs=1e-6)
