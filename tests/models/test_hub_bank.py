"""The hub correction of a model: its file, and what it takes off."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sureshot.errors import ModelError
from sureshot.library.confidence import find_card
from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.hub_bank import BUNDLED, Bank, bank_of
from sureshot.models.huggingface import BANK
from sureshot.research.training.hub_correction import encode_captions

MASK = np.array([[True, True], [True, False]] * 3)
CAPTIONS = ("red", "a green wall", "blue and yellow", "a dog", "white")


@pytest.fixture(params=[True, False], ids=["words", "no words"])
def bank(request):
    texts = encode_captions(TinyEncoder(), CAPTIONS, request.param)
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(6, 2, TinyEncoder.dim)).astype(np.float16).astype(np.float32)
    corrections = rng.random(6).astype(np.float32)
    return Bank(texts, 2, 0.5, frames, MASK, corrections, "abc", "captions of a test")


def test_it_is_read_as_it_was_written(bank, tmp_path):
    path = bank.save(tmp_path)
    assert path == tmp_path / BANK
    read = Bank.load(tmp_path, "abc")
    assert read is not None
    for name in ("sentence", "words", "mask", "truncated"):
        np.testing.assert_array_equal(getattr(read.texts, name), getattr(bank.texts, name))
    for name in ("frames", "mask", "corrections"):
        np.testing.assert_array_equal(getattr(read, name), getattr(bank, name))
    assert (read.k, read.weight, read.source) == (2, 0.5, "captions of a test")
    assert read.title == bank.title
    assert bank.title == "hub correction (k=2, weight 0.5; 5 captions of captions of a test)"
    assert read.digest == bank.digest
    assert [file.name for file in tmp_path.iterdir()] == [BANK]


def test_another_bank_has_another_digest(bank):
    texts = encode_captions(TinyEncoder(), (*CAPTIONS[1:], "black"), True)
    others = [
        replace(bank, k=3),
        replace(bank, weight=0.25),
        replace(bank, model="abd"),
        replace(bank, texts=texts),
        replace(bank, corrections=bank.corrections + 1),
    ]
    assert len({other.digest for other in [bank, *others]}) == 6


def test_what_is_taken_off_is_the_mean_of_the_best_captions(bank):
    scores = np.array([[0.1, 0.9], [0.5, 0.3], [0.3, 0.2]])
    np.testing.assert_allclose(bank.offsets(scores), [0.5 * 0.4, 0.5 * 0.6])


def test_elsewhere_is_the_mean_of_the_four_best_videos_less_what_hubs_lose(bank):
    corrections = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], np.float32)
    scores = np.array([[0.1, 0.2, 1.25, 0.3, 0.4, -0.5], [0, 0, 0, 0, 0, 0.4]])
    found = replace(bank, corrections=corrections).background(scores)
    np.testing.assert_allclose(found, [(0.2 + 0.25 + 0.3 + 0.4) / 4, 0.1])
    two = replace(bank, corrections=corrections[:2], frames=bank.frames[:2], mask=bank.mask[:2])
    few = two.background(scores[:, :2])
    np.testing.assert_allclose(few, [0.15, 0])


def test_a_model_without_one_has_none(tmp_path):
    assert Bank.load(tmp_path, "abc") is None
    assert bank_of("tiny", TinyEncoder().fingerprint) is None


def test_one_of_another_model_or_a_damaged_one_is_refused(bank, tmp_path):
    path = bank.save(tmp_path)
    with pytest.raises(ModelError, match=f"{path} was made for another model"):
        Bank.load(tmp_path, "abd")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ModelError, match=f"{path} cannot be read"):
        Bank.load(tmp_path, "abc")
    bank.save(tmp_path)
    save_file(load_file(path), path)  # without what is noted beside the arrays
    with pytest.raises(ModelError, match="delete it"):
        Bank.load(tmp_path, "abc")


def test_a_folder_that_cannot_be_written_is_named(bank, tmp_path):
    with pytest.raises(ModelError, match=f"{tmp_path / 'nowhere' / BANK} cannot be written"):
        bank.save(tmp_path / "nowhere")


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_model_comes_with_one_and_with_a_calibration_card_of_it(name):
    # Made again whenever the head changes: its digest is part of the fingerprint.
    encoder = load_encoder(name)
    bank = bank_of(name, encoder.fingerprint)
    assert bank is not None
    assert bank.texts.sentence.shape == (510, encoder.dim)
    np.testing.assert_allclose(np.linalg.norm(bank.texts.sentence, axis=1), 1, atol=2e-3)
    assert "train" in bank.source
    assert bank.frames.shape == (510, 1, encoder.dim) and bank.mask.all()
    card, wrong = find_card(None, name, encoder.fingerprint, bank)
    assert card is not None and not wrong
