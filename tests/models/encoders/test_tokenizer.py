"""Texts to token ids, against the tokenizers of transformers."""

import json

import numpy as np
import pytest
import tokenizers
from tokenizers import normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, WordLevel
from transformers import CLIPTokenizer, PreTrainedTokenizerFast, Siglip2Tokenizer

from sureshot.errors import ModelError
from sureshot.models.encoders.clip import Snapshot, Tokenizer

LONGEST = 12
TEXTS = ["a dog", "A DOG catches\na  frisbee!", "", "é ß 日本 🙂 'S", "word " * 40, "x" * 50]


def clip_tokenizer(folder):
    letters = [*pre_tokenizers.ByteLevel.alphabet()]
    pieces = ["<|startoftext|>", *letters, *(f"{c}</w>" for c in letters), "do", "dog</w>"]
    vocab = {piece: i for i, piece in enumerate([*sorted(set(pieces)), "<|endoftext|>"])}
    tokenizer = CLIPTokenizer(vocab=vocab, merges=[("d", "o"), ("do", "g</w>")])
    tokenizer.save_pretrained(folder)
    return tokenizer, len(vocab)


def siglip_tokenizer(folder, *, lower=True, **settings):
    """As SigLIP's: words and `</s>`, which is the padding too."""
    words = ["</s>", "<unk>", "a", "dog", "catches", "frisbee!", "word", "A", "DOG"]
    inner = tokenizers.Tokenizer(
        WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>")
    )
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 0)]
    )
    if lower:
        inner.normalizer = normalizers.Lowercase()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="</s>", pad_token="</s>", unk_token="<unk>", **settings
    )
    tokenizer.save_pretrained(folder)
    return tokenizer, len(words)


def cutter(folder, vocabulary=1000, *, fill=False, longest=LONGEST, end=None):
    snapshot = Snapshot(folder)
    return Tokenizer(snapshot, longest=longest, vocabulary=vocabulary, fill=fill, end=end)


def change(folder, **settings):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def assert_equal(found, expected):
    np.testing.assert_array_equal(found.mask, np.asarray(expected["attention_mask"], bool))
    np.testing.assert_array_equal(found.ids, expected["input_ids"])
    assert found.ids.dtype == np.int64


def test_clip_equals_the_library(tmp_path):
    library, size = clip_tokenizer(tmp_path)
    found = cutter(tmp_path, size).encode(TEXTS)
    assert_equal(found, library(TEXTS, padding=True, truncation=True, max_length=LONGEST))


@pytest.mark.parametrize("side", ["right", "left"])
def test_siglip_equals_the_library(tmp_path, side):
    library, size = siglip_tokenizer(tmp_path, padding_side=side)
    found = cutter(tmp_path, size, fill=True).encode(TEXTS)
    expected = library(TEXTS, padding="max_length", truncation=True, max_length=LONGEST)
    assert_equal(found, expected)
    assert found.ids.shape == (len(TEXTS), LONGEST)


def test_lower_case_is_seen_to_where_the_settings_ask(tmp_path):
    siglip_tokenizer(tmp_path, lower=False, do_lower_case=True)
    lowered = cutter(tmp_path).encode(["A DOG"])
    np.testing.assert_array_equal(lowered.ids, cutter(tmp_path).encode(["a dog"]).ids)
    change(tmp_path, do_lower_case=False)
    assert (cutter(tmp_path).encode(["A DOG"]).ids != lowered.ids).any()


def test_the_lower_case_of_siglip2_equals_the_library(tmp_path):
    letters = {c: i for i, c in enumerate(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *"▁adgo"])}
    library = Siglip2Tokenizer(vocab=letters, merges=[], padding_side="right")
    library.save_pretrained(tmp_path)
    found = cutter(tmp_path, fill=True).encode(["a dog", "A DOG"])
    expected = library(["a dog", "A DOG"], padding="max_length", max_length=LONGEST)
    assert_equal(found, expected)
    # The same checkpoint as the hub has it at a fixed size: a tokenizer that keeps the case.
    inner = tokenizers.Tokenizer(BPE(letters, [], unk_token="<unk>"))
    inner.normalizer = normalizers.Replace(" ", "▁")
    inner.save(str(tmp_path / "tokenizer.json"))
    change(tmp_path, do_lower_case=True)
    np.testing.assert_array_equal(
        cutter(tmp_path, fill=True).encode(["a dog", "A DOG"]).ids, found.ids
    )


def test_only_a_text_that_lost_its_end_is_truncated(tmp_path):
    _, size = clip_tokenizer(tmp_path)
    fits, too_long = "x " * (LONGEST - 2), "x " * (LONGEST - 1)  # start and end take two
    found = cutter(tmp_path, size).encode([fits, too_long, "x"])
    np.testing.assert_array_equal(found.truncated, [False, True, False])
    np.testing.assert_array_equal(found.ids[0], found.ids[1])


def test_state_saved_with_the_tokenizer_is_ignored(tmp_path):
    library, size = clip_tokenizer(tmp_path)
    inner = library.backend_tokenizer
    inner.enable_padding(length=50)
    inner.enable_truncation(3)
    inner.save(str(tmp_path / "tokenizer.json"))
    assert cutter(tmp_path, size).encode(["x x x"]).mask.sum() == 5


def test_padding_is_needed_only_by_a_network_that_reads_it(tmp_path):
    siglip_tokenizer(tmp_path)
    change(tmp_path, pad_token=None)
    cutter(tmp_path).encode(["a", "a dog"])
    with pytest.raises(ModelError, match="pad_token"):
        cutter(tmp_path, fill=True)


def test_a_damaged_tokenizer_is_refused(tmp_path):
    siglip_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read") as caught:
        cutter(tmp_path)
    assert caught.value.__suppress_context__


def test_a_tokenizer_of_another_network_is_refused(tmp_path):
    siglip_tokenizer(tmp_path)
    with pytest.raises(ModelError, match="gives token 4, the network knows 4"):
        cutter(tmp_path, 4).encode(["catches"])


def test_a_text_without_the_end_the_network_looks_for_is_refused(tmp_path):
    siglip_tokenizer(tmp_path)
    cutter(tmp_path, end=0).encode(["a", "dog"])
    with pytest.raises(ModelError, match="token 3"):
        cutter(tmp_path, end=3).encode(["a", "dog"])
