"""Sentences ranked for a video, with an index and without."""

import pytest
from PIL import Image

from sureshot.errors import QueryError, StoreError
from sureshot.library import describe

TEXTS = ["a green wall", "a red wall", "a blue wall"]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A user without an index."""
    monkeypatch.setenv("SURESHOT_DB", str(tmp_path / "none"))


def best(*args, **options):
    return describe(*args, TEXTS, **options).ranked[0].text


def test_no_index_is_needed(nowhere, library):
    video = library.videos / "scenes.mp4"
    assert best(video, at=5.0, model="tiny") == "a green wall"
    assert best(video, at=9.5, model="tiny") == "a blue wall"


def test_a_photo_is_described_as_a_video_is(nowhere, tmp_path):
    Image.new("RGB", (64, 48), (255, 0, 0)).save(tmp_path / "photo.jpg")
    assert best(tmp_path / "photo.jpg", model="tiny") == "a red wall"


def test_the_index_of_the_user_says_which_model(library, monkeypatch):
    monkeypatch.setenv("SURESHOT_DB", library.db)
    described = describe(library.videos / "red.mp4", TEXTS)
    assert (described.model, described.ranked[0].text) == ("tiny", "a red wall")


def test_an_index_that_is_named_must_be_there(library, tmp_path):
    with pytest.raises(StoreError, match="There is no index"):
        best(library.videos / "red.mp4", db=tmp_path / "none", model="tiny")


def test_a_sentence_at_least_is_needed(nowhere, library):
    with pytest.raises(QueryError, match="at least one"):
        describe(library.videos / "red.mp4", [], model="tiny")
