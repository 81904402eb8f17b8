"""Tokens that are parts of a word are that word, and signs and marks are none."""

import pytest
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel, WordPiece

from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.base import HasWords, token_words
from sureshot.models.encoders.clip import ClipEncoder
from tests.models.encoders.test_clip import clip, siglip

TEXT = "A skateboarder's Dog, doing kickflips!"


def wordpiece():
    pieces = [
        "[CLS]",
        "[SEP]",
        "[UNK]",
        "a",
        "dog",
        "sk",
        "##ate",
        "##board",
        "##er",
        "'",
        "s",
        ",",
    ]
    made = Tokenizer(WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    return made


def test_pieces_are_joined_to_words_and_marks_have_no_name():
    found = token_words(TEXT, wordpiece().encode(TEXT))
    word = "skateboarder's"
    assert found == ("", "A", *[word] * 6, "Dog", "", "doing", "kickflips", "", "")


def test_tokens_that_begin_with_a_space_are_the_word_behind_it():
    made = Tokenizer(WordLevel({"▁red": 0, "▁wall": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    text = "red  wall"
    assert [word for word in token_words(text, made.encode(text)) if word] == ["red", "wall"]


@pytest.mark.parametrize("name", ["tiny", "bridge", "bundled"])
def test_there_is_a_name_for_every_token_of_an_encoder(name):
    encoder = load_encoder(name, "cpu")
    assert isinstance(encoder, HasWords)
    texts = [TEXT, "dogs", "two words " * 100]
    counts = encoder.encode_texts(texts).mask.sum(1).tolist()
    words = encoder.words_of(texts)
    assert [len(one) for one in words] == counts
    assert "doing" in words[0] and "dogs" in words[1] and set(words[2]) <= {"two", "words", ""}


@pytest.mark.parametrize("make", [clip, siglip])
def test_there_is_a_name_for_every_token_of_a_clip(tmp_path, make):
    make(tmp_path)
    encoder = ClipEncoder.load(str(tmp_path), "cpu")
    assert isinstance(encoder, HasWords)
    texts = ["a red dog", "two cars, a blue bus and a red bus", "a"]
    counts = encoder.encode_texts(texts).mask.sum(1).tolist()
    words = encoder.words_of(texts)
    assert [len(one) for one in words] == counts
    assert [word for word in dict.fromkeys(words[0]) if word] == ["a", "red", "dog"]
