"""Sentences encoded once, and those of one call together."""

import numpy as np
import pytest

from sureshot.library.search import Sentences
from sureshot.models.encoders.toy import TinyEncoder


class Noting(TinyEncoder):
    """Notes what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def encode_texts(self, texts):
        self.asked.append(list(texts))
        if "broken" in texts:
            raise ValueError("cannot be encoded")
        return super().encode_texts(texts)


def test_a_sentence_is_encoded_once_and_the_oldest_is_forgotten() -> None:
    encoder = Noting()
    sentences = Sentences(encoder, kept=2)
    (first,) = sentences.features(["red"])
    assert sentences.features(["red"])[0] is first
    for text in ("green", "red", "blue", "red", "green"):  # red is asked for again and again
        sentences.features([text])
    assert encoder.asked == [["red"], ["green"], ["blue"], ["green"]]


def test_those_of_one_call_are_encoded_together_as_each_alone() -> None:
    encoder, texts = Noting(), ["a", "a red car on a street", "green", "blue and white", "green"]
    found = Sentences(encoder, kept=2).features(texts)  # more than are remembered
    assert encoder.asked == [texts[:4]]
    for one, text in zip(found, texts, strict=True):
        alone = TinyEncoder().encode_texts([text])
        for name in ("sentence", "words", "mask", "truncated"):
            assert np.allclose(getattr(one, name), getattr(alone, name), atol=1e-6)


def test_what_cannot_be_encoded_keeps_nothing_else_from_being_encoded() -> None:
    sentences = Sentences(Noting())
    with pytest.raises(ValueError, match="cannot be encoded"):
        sentences.features(["broken"])
    assert sentences.features(["red"])[0].mask.any()
