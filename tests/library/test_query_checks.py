"""What is said of texts that a model does not read as they are meant."""

import csv
import json

import pytest

from sureshot.library.query_checks import is_foreign, looks_foreign, text_warnings, unknown_words
from sureshot.models.encoders.toy import TinyEncoder
from tests.paths import DATA


def warned(*texts, encoder=None):
    encoder = encoder or TinyEncoder()
    return text_warnings(encoder, texts, encoder.encode_texts(texts))


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


KNOWN = {"dog", "dogs", "run", "kitchen", "bicycle", "cake"}


@pytest.mark.parametrize(
    "text, unknown, all_of_it",
    [
        ("a dog in the kitchen", (), False),
        ("Bicycles", (), False),  # another ending is the same word
        ("kitchens after the dog", (), False),
        ("zzzz", ("zzzz",), True),
        ("the zzzz, after the Zzzz", ("zzzz", "Zzzz"), True),
        ("zzzz zzzz", ("zzzz",), True),
        ("a dog at Berghain", ("Berghain",), False),
        ("and after", (), True),  # says nothing of a picture
        ("3 x 4!", (), True),
    ],
)
def test_words_without_a_caption_are_named(text, unknown, all_of_it):
    assert unknown_words(text, KNOWN) == (unknown, all_of_it)


FOREIGN = [
    "ein rotes Auto fährt durch die Stadt",
    "Kinder spielen im Garten",
    "un chien sur la plage",
    "quelqu'un ouvre un cadeau",
    "EL GATO DUERME EN EL SOFÁ",
    "bailamos en una boda",
    "un cane sulla spiaggia",
    "qualcuno apre un regalo",
    "um cachorro na praia",
    "pessoas andando na chuva",
    "een rode auto rijdt door de stad",
    "iemand opent een cadeau",
    "śnieg w górach",
    "ktoś otwiera prezent",
    "en hund på stranden",
    "någon öppnar en present",
    "Hund",
]
ENGLISH = [
    "a man in a car",
    "dog",
    "Die Hard on the beach",
    "a café in Paris",
    "crème brûlée",
    "a man eats a jalapeño",
    "Robert de Niro talks to a man",
    "rubik s cube",
    "do I like to be in the pan",
    "",
    "123",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_another_language_is_told(text):
    assert looks_foreign(text)


@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_left_alone(text):
    assert not looks_foreign(text)


def test_hardly_any_english_caption_is_taken_for_another_language():
    source = DATA / "msrvtt" / "MSRVTT_data.json"
    photos = DATA / "flickr8k" / "captions.csv"
    if not (source.exists() and photos.exists()):
        pytest.skip("SURESHOT_DATA names no folder with msrvtt/ and flickr8k/")
    captions = {row["caption"] for row in json.loads(source.read_text("utf-8"))["sentences"]}
    with photos.open(encoding="utf-8", newline="") as file:
        captions |= {row[-1] for row in csv.reader(file)}
    sample = sorted(captions)[::20]
    assert len(sample) > 1000
    assert sum(map(looks_foreign, sample)) < len(sample) / 1000
