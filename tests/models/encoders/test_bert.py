"""Texts by a BERT from a folder, against MiniLM in numpy; videos by experts alone next to it."""

import json
import shutil

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel

from sureshot import research
from sureshot.errors import ModelError, SureshotError
from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.bundled import text_folder
from sureshot.models.encoders.minilm import MiniLM
from sureshot.models.load import load
from tests.walls import walls

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "a",
    "red",
    "blue",
    "green",
    "wall",
    "##s",
    "the",
    "of",
]


def bert(folder, longest=8):
    """A small BERT of random weights."""
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    pieces = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"pad_token": "[PAD]", "model_max_length": longest}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return bert(tmp_path_factory.mktemp("bert") / "small")


def test_minilm_read_as_a_bert_gives_the_vectors_of_the_bundled_one(tmp_path):
    """Another implementation of the same network, on the same weights."""
    for name in ("model.safetensors", "tokenizer.json"):
        shutil.copy(text_folder() / name, tmp_path / name)
    config = BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    config.save_pretrained(tmp_path)
    texts = ["a man plays the guitar", "two dogs", "an elephant walks slowly towards the water"]
    found = load_encoder(str(tmp_path), "cpu").encode_texts(texts)
    known = MiniLM(text_folder()).encode(texts)
    np.testing.assert_array_equal(found.mask, known.mask)
    np.testing.assert_allclose(found.sentence, known.sentence, atol=1e-5)
    np.testing.assert_allclose(found.words, known.words, atol=1e-4)
    assert not found.truncated.any()


def test_a_sentence_is_the_mean_of_its_own_tokens_whatever_it_is_encoded_with(small):
    encoder = load_encoder(str(small), "cpu")
    texts = ["a red wall", "the blue walls of the green wall of the wall", "red"]
    together = encoder.encode_texts(texts)
    assert together.truncated.tolist() == [False, True, False]
    assert together.mask.sum(1).tolist() == [5, 8, 3]
    for row, text in enumerate(texts):
        alone = encoder.encode_texts([text])
        count = alone.mask.sum()
        np.testing.assert_allclose(together.words[row, :count], alone.words[0], atol=1e-5)
        mean = alone.words[0].mean(0)
        np.testing.assert_allclose(together.sentence[row] * together.length[row], mean, atol=1e-5)
    assert not together.words[~together.mask].any()
    assert encoder.words_of(texts[:1]) == [("", "a", "red", "wall", "")]


def test_the_fingerprint_is_that_of_the_files(small, tmp_path):
    shutil.copytree(small, tmp_path / "moved")
    first, moved = (load_encoder(str(one)).fingerprint for one in (small, tmp_path / "moved"))
    shorter = bert(tmp_path / "shorter", longest=6)
    assert first == moved != load_encoder(str(shorter)).fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(hidden_size=24), "weights are missing or of another size"),
        (lambda config: config.update(hidden_size="many"), "hidden_size in config.json is 'many'"),
        (lambda config: config.update(num_hidden_layers=3), "weights are missing"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(tmp_path, change, message):
    folder = bert(tmp_path / "bert")
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=message):
        load_encoder(str(folder), "cpu").encode_texts(["a wall"])


def test_it_is_no_model_of_videos(small):
    with pytest.raises(ModelError, match="reads texts alone"):
        load(str(small))


@pytest.fixture(scope="module")
def described(small, tmp_path_factory):
    """Recipes of videos with two experts each, whose files hold no video at all."""
    folder = walls(tmp_path_factory.mktemp("described"))
    draw = np.random.default_rng(0)
    for video in (folder / "videos").iterdir():
        video.write_bytes(b"no video")
        for name, size in (("audio", 5), ("motion", 7)):
            place = folder / "experts" / name / "videos" / f"{video.stem}.npy"
            place.parent.mkdir(parents=True, exist_ok=True)
            np.save(place, draw.normal(size=(3, size)))
    text = (folder / "recipe.toml").read_text().replace('name = "tiny"', f'name = "{small}"')
    text = text.replace('root = "pairs.csv"', 'root = "pairs.csv"\nexperts = "experts"')
    (folder / "recipe.toml").write_text(text)
    return folder


@pytest.mark.parametrize("stem", ["none", "linear"])
@pytest.mark.parametrize(
    "system",
    [
        'name = "ce"',
        'name = "hit"\nexperts = ["audio", "motion"]\nlayers = 2\nbank = 4',
        'name = "pcme"\nexperts = ["motion"]',
        'name = "dvtr"\n[system.base]\nname = "hit"\nexperts = ["motion"]\nbank = 0',
    ],
    ids=["ce", "hit", "pcme", "dvtr"],
)
def test_systems_of_experts_train_and_are_tested_next_to_it(described, tmp_path, stem, system):
    """No video is opened."""
    own = 'name = "xpool"\ndropout = 0.0\nscale = 20.0\n'
    text = (described / "recipe.toml").read_text()
    assert own in text
    path = described / f"{tmp_path.name}.toml"
    path.write_text(text.replace(own, f"{system}\n").replace('"linear"', f'"{stem}"'))
    made = research.train(path, to=tmp_path / "run", cache=tmp_path / "cache")
    report = research.evaluate(
        made.folder,
        "pairs",
        described / "pairs.csv",
        experts=described / "experts",
        cache=tmp_path / "cache",
    )
    assert report.report.raw[0].recall.n == 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('experts = "experts"', "", "reads texts alone, and xpool reads frames"),
        ('name = "xpool"\ndropout = 0.0\nscale = 20.0', 'name = "ce"\nexperts = ["frames"]',
         "names 'frames', which is not there; there are: audio, motion"),
    ],
)  # fmt: skip
def test_frames_are_not_to_be_had_of_it(described, tmp_path, old, new, message):
    path = described / f"{tmp_path.name}.toml"
    path.write_text((described / "recipe.toml").read_text().replace(old, new))
    with pytest.raises(SureshotError, match=message):
        research.train(path, to=tmp_path / "run", cache=tmp_path / "cache")
