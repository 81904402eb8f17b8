"""Oracles are told the truth about the very pairs of a batch, and train on it."""

import pytest

from sureshot.datasets import load_split
from sureshot.datasets.synthetic import read_truth
from sureshot.errors import SureshotError
from sureshot.models.losses.debiased import AMBIGUITY, FITS
from sureshot.research.training.run import ground_truth, train
from tests.synthetic import small_dataset, synthetic_recipe

ORACLES = [
    {"name": "dvtr", "base": {"name": "clip4clip"}, "uncertainty": "oracle"},
    {"name": "uatvr", "layers": 1, "spread": "oracle"},
    {"name": "duq", "spread": "oracle", "dropout": 0.0},
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("synthetic") / "world", ambiguity=0.7)


def test_rows_and_columns_are_those_of_the_pairs(root):
    split = load_split("synthetic", "train", root)
    truth, rows = read_truth(split), [40, 3, 11]
    told = ground_truth([split])(rows)
    videos = [split.captions[row].video for row in rows]
    assert told[FITS].tolist() == [[bool(truth.fits[r, v]) for v in videos] for r in rows]
    assert told[FITS].diagonal().all()
    assert told[AMBIGUITY].argmax() == truth.videos_that_fit[rows].argmax()
    assert ((told[AMBIGUITY] >= 0) & (told[AMBIGUITY] <= 1)).all()


@pytest.mark.parametrize("system", ORACLES, ids=lambda system: system["name"])
def test_an_oracle_trains_on_a_synthetic_dataset(system, root, tmp_path):
    fitted = train(synthetic_recipe(root, system), to=tmp_path / "run")
    assert fitted.score is not None


def test_an_oracle_wants_one_synthetic_dataset_and_whole_batches(root, tmp_path):
    split = load_split("synthetic", "train", root)
    with pytest.raises(SureshotError, match="there are 2 sets"):
        ground_truth([split, split])
    recipe = synthetic_recipe(root, ORACLES[0], micro_batch=4)
    with pytest.raises(SureshotError, match="about a whole batch"):
        train(recipe, to=tmp_path / "run")
