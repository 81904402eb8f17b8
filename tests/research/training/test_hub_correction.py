"""Whether a model gets a hub correction, and which."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.metrics.intervals import Interval
from sureshot.models.encoders.base import VideoFeatures
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.hub_bank import Bank
from sureshot.models.huggingface import BANK
from sureshot.models.load import load, load_searchable
from sureshot.models.similarity import similarity_for
from sureshot.research.features import extract
from sureshot.research.scores import background, bank_similarity, ranking, similarity
from sureshot.research.training import hub_correction
from sureshot.research.training.hub_correction import (
    CAPTIONS,
    WEIGHTS,
    K,
    choose_weight,
    draw_captions,
    encode_captions,
    fit_hub_bank,
    save,
)
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import train
from tests.trained import SYSTEMS, saved
from tests.walls import walls


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return walls(tmp_path_factory.mktemp("walls"))


def split(place, name):
    return load_split("pairs", name, place / "pairs.csv")


@pytest.fixture(scope="module")
def val(place):
    return extract(split(place, "val"), TinyEncoder(), frames=3, cache=place / "cache")


def hubs(strength, seed=0):
    """Scores of 300 captions and of a bank with 100 videos, each lifted by what its video has."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(100), 3)
    lift = strength * rng.exponential(size=100)
    raw = rng.normal(size=(300, 100)) + 2.5 * (owner[:, None] == np.arange(100)) + lift
    return raw, rng.normal(size=(200, 100)) + lift, owner


def test_a_correction_is_chosen_where_there_are_hubs():
    raw, known, owner = hubs(1.5)
    weight, gain = choose_weight([(raw, known, owner)], np.random.default_rng(0))
    assert weight == 1.0
    assert gain.low > 20
    # The gain is that of the corrected scores, counted by hand.
    off = np.sort(known, axis=0)[-K:].mean(0)
    sums = []
    for scores in (raw, raw - off):
        own = scores[np.arange(300), owner][:, None]
        ranks = 1 + (scores > own).sum(1)
        sums.append(sum(100 * (ranks <= k).mean() for k in (1, 5, 10)))
    assert gain.value == pytest.approx(sums[1] - sums[0])


def test_none_is_chosen_where_it_would_help_by_chance_only():
    kept = [choose_weight([hubs(0.0, seed)], np.random.default_rng(0))[0] for seed in range(10)]
    assert kept.count(None) >= 9


def test_captions_are_of_as_many_videos(place, monkeypatch):
    parts = [split(place, "train"), split(place, "test")]
    texts = draw_captions(parts, np.random.default_rng(0))
    every = {
        caption.text: (part.name, caption.video) for part in parts for caption in part.captions
    }
    assert len({every[text] for text in texts}) == len(texts) == 9
    assert texts == draw_captions(parts, np.random.default_rng(0))
    assert texts != draw_captions(parts, np.random.default_rng(1))
    monkeypatch.setattr(hub_correction, "CAPTIONS", 4)
    assert len(draw_captions(parts, np.random.default_rng(0))) == 4
    assert CAPTIONS >= K


@pytest.mark.parametrize("words", [True, False])
def test_captions_are_padded_to_the_longest_of_all(words):
    texts = ["red", "a green wall and a blue wall", "a dog"] * 40
    found = encode_captions(TinyEncoder(), texts, words)
    alone = TinyEncoder().encode_texts(texts)
    np.testing.assert_allclose(found.sentence, alone.sentence, atol=1e-3)
    if words:
        np.testing.assert_array_equal(found.mask, alone.mask)
        np.testing.assert_allclose(found.words, alone.words, atol=1e-2)
    else:
        assert found.words.shape == (120, 0, TinyEncoder.dim) and found.mask.shape == (120, 0)


def sure(weight, value=1.0):
    """Instead of three validation videos, which cannot say: this weight."""
    return lambda *_: (weight, Interval(value, value, value))


@pytest.mark.parametrize("system", [*SYSTEMS, "uatvr", "pcme", "tmass", "clip2video", "dvtr"])
@pytest.mark.parametrize("kind", ["none", "linear"])
def test_a_checkpoint_ranks_by_it(place, val, tmp_path, monkeypatch, system, kind):
    folder = saved(tmp_path / "model", system, kind)
    raw = ranking(load(folder, "cpu"), val)
    monkeypatch.setattr(hub_correction, "choose_weight", sure(0.5))
    told = save(folder, [split(place, "train")], val)
    assert told.startswith("hub correction (k=16, weight 0.5; 6 captions of pairs pairs.csv train")
    assert "+1.0 of R@1" in told
    scorer = load(str(folder), "cpu")
    np.testing.assert_array_equal(similarity(scorer.raw, val), raw)
    # By hand: each caption of the bank as a query of its own, with what an index would keep.
    encoder = load_searchable(str(folder), "cpu")
    texts = draw_captions([split(place, "train")], np.random.default_rng(0))
    captions = encoder.encode_texts(texts)
    known = bank_similarity(scorer, captions, val)
    np.testing.assert_allclose(ranking(scorer, val), raw - 0.5 * known.mean(0), atol=5e-3)
    assert np.abs(known.mean(0)).max() > 0.03


@pytest.mark.parametrize("name", ["tiny", *SYSTEMS])
def test_videos_of_several_data_sets_are_kept(place, val, tmp_path, monkeypatch, name):
    sets = [
        extract(split(place, part), TinyEncoder(), frames=3, cache=place / "cache")
        for part in ("train", "test")
    ]
    if name != "tiny":
        name = str(saved(tmp_path / "model", name, "linear"))
    scorer, splits = load(name, "cpu"), [part.split for part in sets]
    monkeypatch.setattr(hub_correction, "choose_weight", sure(0.5))
    alone, _ = fit_hub_bank(scorer, splits[:1], [val], sets[:1])
    assert alone.frames.shape == (0, 1, alone.texts.sentence.shape[1])
    monkeypatch.setattr(hub_correction, "VIDEOS", 4)
    bank, _ = fit_hub_bank(scorer, splits, [val], sets)
    assert len(bank.frames) == len(bank.mask) == len(bank.corrections) == 4
    # What is kept scores as the videos themselves do: two of each set, found by their scores.
    asked = scorer.searchable.encode_texts([caption.text for caption in val.split.captions])
    how = similarity_for(scorer.searchable)
    videos = how.videos(VideoFeatures.of_frames(bank.frames, bank.mask))
    kept = how.similarity(how.texts(asked), videos)
    for columns, part in ((kept[:, :2], sets[0]), (kept[:, 2:], sets[1])):
        every = similarity(scorer.raw, part, bank=val)
        gaps = np.abs(columns[:, :, None] - every[:, None]).max(0)
        assert (gaps.min(1) < 5e-3).all() and len(set(gaps.argmin(1))) == 2
    if name != "tiny":
        bank.save(name)
        expected = bank.background(kept)
        np.testing.assert_allclose(background(load(name, "cpu"), val), expected, atol=5e-3)
        assert background(scorer, val) is None
        # Without a sure gain the videos are kept all the same, and nothing is corrected.
        monkeypatch.setattr(hub_correction, "choose_weight", sure(None))
        told = save(Path(name), splits, val, sets)
        assert told.startswith("no hub correction") and told.endswith("; 4 videos are kept")
        again = load(name, "cpu")
        np.testing.assert_array_equal(ranking(again, val), similarity(scorer.raw, val))
        assert again.bank.title == "" and background(again, val).shape == expected.shape


def test_a_system_that_cannot_be_searched_with_gets_none(place, val, tmp_path):
    folder = saved(tmp_path / "model", "ce", "none")
    assert save(folder, [split(place, "train")], val) == ""
    assert not (folder / BANK).exists() and load(str(folder), "cpu").bank is None


def test_a_training_on_two_data_sets_keeps_videos_of_both(place, tmp_path):
    walls(tmp_path / "away")
    text = (place / "recipe.toml").read_text()
    more = f'[[train]]\ndataset = "pairs"\nroot = "{tmp_path}/away/pairs.csv"\n\n[val]'
    (place / "two.toml").write_text(text.replace("[val]", more, 1))
    recipe = Recipe.load(place / "two.toml", ["training.epochs=1"])
    done = train(recipe, to=tmp_path / "run", cache=place / "cache")
    assert "hub correction" in done.notes[-1]
    bank = Bank.load(done.folder, load_searchable(str(done.folder)).fingerprint)
    assert bank is not None and len(bank.frames) == 12
    assert load(str(done.folder), "cpu").bank.digest == bank.digest


def test_a_training_tells_what_it_found_and_replaces_what_was_there(place, tmp_path, monkeypatch):
    recipe = Recipe.load(place / "recipe.toml", [])

    def run(found):
        monkeypatch.setattr(hub_correction, "choose_weight", found)
        return train(recipe, to=tmp_path / "run", resume=True, cache=place / "cache")

    done = run(sure(WEIGHTS[0]))
    assert done.notes[-1].startswith("hub correction (k=16, weight 0.25; 6 captions of")
    assert Bank.load(done.folder, load_searchable(str(done.folder)).fingerprint) is not None
    done = run(sure(None))
    assert done.notes[-1].startswith("no hub correction")
    assert not (done.folder / BANK).exists()
