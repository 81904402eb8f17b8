"""Texts in other languages than English, told by their words."""

import csv
import json

import pytest

from sureshot.library.query_checks import looks_foreign
from tests.paths import DATA

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
