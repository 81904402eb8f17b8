"""What is said of texts that a model does not read as they are meant."""

import pytest

from sureshot.library.query_checks import is_foreign, text_warnings
from sureshot.models.encoders.toy import TinyEncoder


def warned(*texts, encoder=None):
    encoder = encoder or TinyEncoder()
    return text_warnings(encoder, texts, encoder.encode_texts(texts))


def test_english_of_usual_length_needs_no_warning():
    assert warned("a red car", "a dog") == ()


@pytest.mark.parametrize(
    "text, said", [("красная машина", "guesswork"), ("ein Hund", "in English")]
)
def test_one_text_in_another_language_is_enough(text, said):
    (warning,) = warned("a red car", text)
    assert said in warning and "'tiny' knows English only" in warning


def test_a_multilingual_model_is_asked_in_any_language():
    encoder = TinyEncoder()
    encoder.latin_only = False
    assert warned("красная машина", "ein Hund", encoder=encoder) == ()


def test_a_text_that_is_cut_off_is_told_of():
    assert ["first 32 tokens" in text for text in warned("word " * 100)] == [True]


def test_words_that_no_caption_had_are_named():
    encoder = TinyEncoder()
    encoder.vocabulary = frozenset({"red", "car", "dog"})
    assert warned("a red car", "the dogs", encoder=encoder) == ()
    (warning,) = warned("a red Zonda", "a dog, a quokka, a zzzz, a vvvv", encoder=encoder)
    assert "“Zonda”, “quokka”, “zzzz” or 1 more; check the spelling" in warning


@pytest.mark.parametrize(
    "text, foreign",
    [("a red Zonda", False), ("Zonda", True), ("красная машина", True), ("ein Hund", True)],
)
def test_a_text_of_which_nothing_is_known_is_foreign(text, foreign):
    encoder = TinyEncoder()
    encoder.vocabulary = frozenset({"red", "car", "dog"})
    assert is_foreign(encoder, text) == foreign


def test_a_model_whose_captions_are_not_known_finds_no_word_foreign():
    assert not is_foreign(TinyEncoder(), "zzzz")
