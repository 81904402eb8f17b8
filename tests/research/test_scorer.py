"""What is evaluated: a checkpoint or an encoder, with the scores they give by hand."""

import dataclasses

import numpy as np
import pytest
import torch

from sureshot.datasets import load_split
from sureshot.errors import ModelError
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders.tiny import TinyEncoder
from sureshot.models.retriever import Retriever
from sureshot.models.tokens import TextTokens, VideoTokens
from sureshot.research.features import caption_features, extract
from sureshot.research.scorer import Scorer
from tests.trained import FRAMES, SYSTEMS, checkpoint, saved
from tests.walls import walls


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return walls(tmp_path_factory.mktemp("walls"))


@pytest.fixture(scope="module")
def features(place):
    split = load_split("pairs", "test", place / "pairs.csv")
    return extract(split, TinyEncoder(), frames=3, cache=place / "cache")


def by_hand(folder, texts, videos):
    """The score of each caption and each video alone, from the checkpoint."""
    model = Checkpoint.from_pretrained(folder).model
    scores = np.zeros((len(texts), len(videos)))
    with torch.no_grad():
        for i, (sentence, words) in enumerate(texts):
            real = torch.ones(1, len(words), dtype=torch.bool)
            asked = model.texts(TextTokens(tensor(sentence), tensor(words), real))
            for j, video in enumerate(videos):
                real = torch.ones(1, len(video.frames), dtype=torch.bool)
                parts = map(tensor, (video.frames, video.patches, video.backbone))
                shown = model.videos(VideoTokens(*parts, real))
                scores[i, j] = model.system.similarity(asked, shown).item()
    return scores


def tensor(array):
    return torch.from_numpy(array.astype(np.float32))[None]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_checkpoint_scores_all_pairs_as_it_scores_one(tmp_path, features, system):
    folder = saved(tmp_path / "model", system, "linear")
    scorer = Scorer.load(str(folder), "cpu")
    assert (scorer.system, scorer.frames, scorer.encoder_name) == (system, FRAMES, "tiny")
    found = scorer.similarity(features)
    assert found.shape == (6, 3)
    expected = by_hand(folder, features.texts, features.videos)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert expected.std() > 1e-3


@pytest.mark.parametrize("trained", [True, False])
def test_captions_of_a_bank_are_scored_with_the_videos_of_the_split(
    place, tmp_path, features, trained
):
    train = load_split("pairs", "train", place / "pairs.csv")
    bank = caption_features(train, TinyEncoder(), cache=place / "cache")
    folder = saved(tmp_path / "model", "xpool", "linear")
    scorer = Scorer.load(str(folder) if trained else "tiny", "cpu")
    found = scorer.similarity(features, bank)
    assert found.shape == (12, 3)
    if trained:
        expected = by_hand(folder, bank.texts, features.videos)
        np.testing.assert_allclose(found, expected, atol=2e-5)


def test_an_encoder_alone_scores_by_cosines_of_mean_frames(features):
    scorer = Scorer.load("tiny")
    assert (scorer.model, scorer.system, scorer.encoder_name) == (None, "encoder", "tiny")
    assert (scorer.frames, scorer.trained_on, dict(scorer.recipe)) == (12, "", {})
    found = scorer.similarity(features)
    for i, (sentence, _) in enumerate(features.texts):
        for j, video in enumerate(features.videos):
            mean = video.frames.astype(np.float64).mean(0)
            cosine = mean @ sentence / np.linalg.norm(mean) / np.linalg.norm(sentence.astype(float))
            assert found[i, j] == pytest.approx(cosine, abs=1e-5)


def test_the_sets_it_was_trained_on_are_named_once_each(tmp_path):
    recipe = {"train": [{"dataset": name} for name in ("msrvtt", "pairs", "msrvtt")]}
    checkpoint("xpool", "none", recipe=recipe).save_pretrained(tmp_path / "model")
    assert Scorer.load(str(tmp_path / "model")).trained_on == "msrvtt + pairs"


def test_the_experts_it_was_trained_on_are_those_of_its_model(tmp_path):
    assert Scorer.load("tiny", "cpu").experts == ()
    folder = tmp_path / "model"
    checkpoint("ce", "linear", experts={"audio": 5, "motion": 7}).save_pretrained(folder)
    assert Scorer.load(str(folder), "cpu").experts == ("audio", "motion")
    checkpoint("ce", "none").save_pretrained(folder)
    assert Scorer.load(str(folder), "cpu").experts == ()


def test_another_version_of_the_encoder_is_refused_as_when_searching(tmp_path, monkeypatch):
    folder = str(saved(tmp_path / "model", "duq", "none"))
    monkeypatch.setattr(TinyEncoder, "fingerprint", "0" * 64)
    said = []
    for load in (Scorer.load, Retriever.load):
        with pytest.raises(ModelError, match="another version of the encoder 'tiny'") as refused:
            load(folder)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_it_computes_where_a_search_computes(tmp_path):
    folder = str(saved(tmp_path / "model", "duq", "none"))
    scorer = Scorer.load(folder)
    assert scorer.device == Retriever.load(folder).device
    assert next(scorer.model.parameters()).device.type == scorer.device.split(":")[0]
    assert Scorer.load(folder, "cpu").device == "cpu"
    with pytest.raises(ModelError, match="Cannot compute on device 'nonsense'"):
        Scorer.load(folder, "nonsense")


def test_what_is_neither_is_refused(tmp_path):
    with pytest.raises(ModelError, match="neither a folder nor the name"):
        Scorer.load(str(tmp_path / "gone"))


def test_a_scorer_stays_as_it_is(tmp_path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        Scorer.load("tiny").name = "other"


def test_a_fingerprint_is_that_of_an_index_of_the_model(tmp_path):
    folder = saved(tmp_path / "model", "xpool", "linear")
    scorer = Scorer.load(str(folder), "cpu")
    assert scorer.fingerprint == Retriever.load(folder, "cpu").fingerprint
    assert scorer.fingerprint != scorer.encoder.fingerprint
    assert Scorer.load("tiny").fingerprint == TinyEncoder().fingerprint


def test_the_scale_is_the_learned_one(tmp_path):
    folder = saved(tmp_path / "model", "clip4clip", "linear")
    learned = Checkpoint.from_pretrained(folder).model.system.log_scale.item()
    assert Scorer.load(str(folder), "cpu").scale == pytest.approx(np.exp(learned))
    assert Scorer.load("tiny").scale is None


def test_measures_are_those_of_the_paper_about_captions(tmp_path, features):
    scorer = Scorer.load(str(saved(tmp_path / "model", "duq", "linear")), "cpu")
    found = scorer.measures(features)
    assert set(found) == {"vacuity", "distance vacuity", "spread"}
    assert all(values.shape == (6,) for values in found.values())
    plain = Scorer.load(str(saved(tmp_path / "plain", "xpool", "linear")), "cpu")
    assert plain.measures(features) == {} == Scorer.load("tiny").measures(features)
