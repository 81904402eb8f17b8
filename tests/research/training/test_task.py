"""A task is fitted, its score chooses, and what it writes is kept; test_run.py has real tasks."""

from dataclasses import replace

import pytest

from sureshot.errors import SureshotError
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.systems.base import Sizes
from sureshot.research.features import extract
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import fit_features, fit_pixels, retrieval_task
from tests.heard import Heard
from tests.walls import walls


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return walls(tmp_path_factory.mktemp("walls"))


@pytest.fixture
def task(place):
    """A small task that writes what it is given instead of a checkpoint."""
    recipe = Recipe.load(place / "recipe.toml", ["training.epochs=3"])
    encoder = TinyEncoder()
    made = retrieval_task(recipe, encoder, Sizes(encoder.dim, encoder.channels), [])

    def write(folder, scores, encoder):
        (folder / "scores").write_text(f"{scores} {encoder}")

    return replace(made, metric="luck", write=write)


@pytest.fixture
def sets(place):
    """Features of the training and of the validation set."""
    recipe = Recipe.load(place / "recipe.toml")
    (train,), val = recipe.splits()
    return [extract(part, TinyEncoder(), frames=3, cache=place / "cache") for part in (train, val)]


def test_the_checkpoint_with_the_best_score_is_kept_under_its_name(task, sets, tmp_path):
    scores = iter([10.0, 30.0, 20.0])
    heard, given = Heard(), []

    def score(features):
        given.append(features)
        return next(scores)

    chosen = replace(task, score=score)
    fitted = fit_features(chosen, sets[:1], sets[1], tmp_path / "run", heard)
    assert (fitted.epoch, fitted.score, fitted.metric) == (2, 30.0, "luck")
    kept = (fitted.folder / "scores").read_text()
    assert kept == "{'epoch': 2.0, 'luck': 30.0} None"
    assert given == [sets[1]] * 3 and heard.steps == list(range(1, 7))


def test_without_a_validation_set_there_is_no_score(task, sets, tmp_path):
    fitted = fit_features(task, sets[:1], None, tmp_path / "run", Heard())
    assert (fitted.epoch, fitted.score) == (3, None)
    assert (fitted.folder / "scores").read_text() == "{'epoch': 3.0} None"


def test_what_is_fixed_stays_as_it_is(task, sets, tmp_path):
    fit_features(task, sets[:1], None, tmp_path / "run", Heard())
    other = replace(task, fixed={**task.fixed, "colour": "red"})
    with pytest.raises(SureshotError, match="colour was None and is red now"):
        fit_features(other, sets[:1], None, tmp_path / "run", Heard(), resume=True)


def test_an_encoder_that_cannot_be_trained_is_refused(task, sets, tmp_path):
    with pytest.raises(SureshotError, match=r"encoder\.tuned is true, and the encoder 'tiny'"):
        fit_pixels(task, [sets[0].split], None, tmp_path / "run", Heard())
    assert not (tmp_path / "run").exists()
