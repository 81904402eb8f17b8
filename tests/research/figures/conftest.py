"""Small models that were never trained, on six videos with two captions each."""

from dataclasses import replace

import pytest

from sureshot.datasets import load_split
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.load import load
from sureshot.research.features import extract
from sureshot.research.figures.subject import Subject
from tests.trained import saved
from tests.walls import walls


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return walls(tmp_path_factory.mktemp("walls"))


@pytest.fixture(scope="session")
def subject(place, tmp_path_factory):
    """The subject of a system's name, or of the encoder alone."""
    split = load_split("pairs", "train", place / "pairs.csv")
    features = extract(split, TinyEncoder(), frames=3, cache=place / "cache")
    folders = tmp_path_factory.mktemp("models")

    def make(system, seed=0, weights=0, encoder=None):
        if system == "tiny":
            return Subject(load("tiny"), features, seed)
        folder = folders / f"{system}-{weights}"
        if not folder.exists():
            saved(folder, system, "linear", seed=weights)
        scorer = load(str(folder), "cpu")
        return Subject(replace(scorer, encoder=encoder or scorer.encoder), features, seed)

    return make
