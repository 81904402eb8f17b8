"""The split a model is measured on, read and encoded; tests/cli/test_evaluate.py has the words."""

import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.models.load import load
from sureshot.progress import Notes, Silent
from sureshot.research.evaluation import (
    encode,
    read_source,
    source_of,
    training_captions,
    training_splits,
    warn_of_shared,
)
from tests.trained import checkpoint
from tests.walls import walls, write


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Videos, and a model that says it was trained on those of the training set."""
    folder = walls(tmp_path_factory.mktemp("walls"))
    train = [{"dataset": "pairs", "root": str(folder / "pairs.csv")}]
    recipe = {"train": train, "system": {"name": "xpool"}}
    checkpoint("xpool", "linear", recipe=recipe).save_pretrained(folder / "model")
    return folder


@pytest.fixture(scope="module")
def scorer(place):
    return load(str(place / "model"), "cpu")


def test_a_split_is_read_then_encoded_and_both_are_told(place, scorer):
    (place / "videos" / "none.mp4").write_bytes(b"")
    write(place / "holes.csv", [[f"videos/{n}.mp4", "wall", "test"] for n in (0, "none", 77)])
    notes = Notes(Silent())
    read = read_source(source_of("pairs", place / "holes.csv", "test"), notes)
    features = encode(read, scorer, notes, frames=2, cache=place / "cache")
    assert notes.lines[0].endswith("2 captions; 1 not on disk, such as videos/77.mp4")
    assert notes.lines[1].startswith("left out: videos/none.mp4 ")
    assert (len(features.videos), features.frames, dict(features.experts)) == (1, 2, {})


def test_what_was_trained_on_is_known_and_told_where_it_is_tested(place, scorer):
    (split,) = training_splits(scorer)
    notes = Notes(Silent())
    warn_of_shared(scorer, split, notes)
    assert len(notes.lines) == 1 and "share 6 videos" in notes.lines[0]
    test = read_source(source_of("pairs", place / "pairs.csv", "test"), Silent()).split
    warn_of_shared(scorer, test, notes)
    assert len(notes.lines) == 1
    texts = training_captions(scorer, test, 5).texts()
    assert len(texts) == 5 and set(texts) < set(split.texts())
    with pytest.raises(SureshotError, match="all those of"):
        training_captions(scorer, split, 5)


def test_a_model_that_knows_no_training_data_has_none_to_warn_of(place):
    alone = load("tiny", "cpu")
    test = read_source(source_of("pairs", place / "pairs.csv", "test"), Silent()).split
    notes = Notes(Silent())
    warn_of_shared(alone, test, notes)
    assert notes.lines == [] and training_splits(alone) == []
    with pytest.raises(ArgumentError, match="tiny does not know its own"):
        training_captions(alone, test, 5)


def test_training_data_that_have_gone_are_no_warning(place, tmp_path):
    recipe = {"train": [{"dataset": "pairs", "root": "/gone.csv"}], "system": {"name": "xpool"}}
    checkpoint("xpool", "linear", recipe=recipe).save_pretrained(tmp_path / "model")
    moved, notes = load(str(tmp_path / "model"), "cpu"), Notes(Silent())
    test = read_source(source_of("pairs", place / "pairs.csv", "test"), Silent()).split
    warn_of_shared(moved, test, notes)
    assert notes.lines == []
    with pytest.raises(SureshotError, match=r"/gone\.csv cannot be read"):
        training_captions(moved, test, 5)
