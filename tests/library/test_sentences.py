"""Sentences encoded once, and those of the same instant together."""

import threading

import numpy as np
import pytest

from sureshot.library.sentences import Sentences
from sureshot.models.encoders.tiny import TinyEncoder


class Slow(TinyEncoder):
    """Encodes when it is told to, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.begun, self.free = threading.Event(), threading.Event()

    def encode_texts(self, texts):
        self.asked.append(list(texts))
        self.begun.set()
        self.free.wait()
        if "broken" in texts:
            raise ValueError("cannot be encoded")
        return super().encode_texts(texts)


def same(one, other) -> bool:
    names = ("sentence", "words", "mask", "truncated")
    return all(np.allclose(getattr(one, n), getattr(other, n), atol=1e-6) for n in names)


def test_a_sentence_is_encoded_once_and_the_oldest_is_forgotten() -> None:
    encoder = Slow()
    encoder.free.set()
    sentences = Sentences(encoder, kept=2)
    first = sentences.features("red")
    assert sentences.features("red") is first
    for text in ("green", "red", "blue", "red", "green"):  # red is asked for again and again
        sentences.features(text)
    assert encoder.asked == [["red"], ["green"], ["blue"], ["green"]]


def test_those_that_wait_are_encoded_together_as_each_alone(monkeypatch) -> None:
    encoder, texts = Slow(), ["a", "a red car on a street", "green", "blue and white", "green"]
    sentences, found = Sentences(encoder), {}

    def ask(text):
        found[text] = sentences.features(text)

    threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
    threads[0].start()
    encoder.begun.wait()
    for thread in threads[1:]:
        thread.start()
    while len(sentences._wanted) < 3:  # until all of them wait
        threads[1].join(0.01)
    encoder.free.set()
    for thread in threads:
        thread.join()
    assert encoder.asked[0] == ["a"] and sorted(encoder.asked[1]) == sorted(set(texts[1:]))
    assert len(encoder.asked) == 2
    for text in texts:
        assert same(found[text], TinyEncoder().encode_texts([text]))


def test_what_cannot_be_encoded_is_told_to_who_asked_and_kept_from_nobody_else() -> None:
    encoder = Slow()
    encoder.free.set()
    sentences = Sentences(encoder)
    with pytest.raises(ValueError, match="cannot be encoded"):
        sentences.features("broken")
    assert sentences.features("red").mask.any()
