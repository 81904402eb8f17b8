"""A synthetic dataset is read back from its file, with the truth in the order of what is read."""

import json
from pathlib import Path

import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.datasets.synthetic import (
    FILE,
    VIDEOS,
    SyntheticOptions,
    generate,
    read_part,
    read_truth,
    truth_of,
    written,
)
from sureshot.errors import SureshotError

PARTS = generate(SyntheticOptions(train=12, val=5, test=9, captions=2, whole=0.3, noise=0.2))


@pytest.fixture
def root(tmp_path):
    """A world whose videos are empty files: a reader opens none."""
    (tmp_path / VIDEOS).mkdir()
    for part in PARTS:
        for video in part.videos:
            (tmp_path / VIDEOS / f"{video.id}.mp4").touch()
    (tmp_path / FILE).write_text(json.dumps(written(PARTS)))
    return tmp_path


def test_the_file_gives_the_world_back(root):
    assert [read_part(root, part.name) for part in PARTS] == list(PARTS)


def test_other_programs_find_captions_videos_and_how_many_fit(root):
    held = json.loads((root / FILE).read_text())
    test = next(one for one in held["splits"] if one["name"] == "test")
    assert {one["video"] for one in test["captions"]} == {one["id"] for one in test["videos"]}
    assert [c["videos_that_fit"] for c in test["captions"]] == [*truth_of(PARTS[2]).videos_that_fit]
    assert held["options"]["train"] == 12
    assert held["facts"]["size"] == ["small", "large"]


def test_a_split_has_all_captions_and_knows_where_its_truth_is(root):
    test = load_split("synthetic", "test", root)
    assert test.title() == "Synthetic all test, 9 videos, 18 captions"
    assert test.texts() == [caption.text for caption in PARTS[2].captions]
    truth, whole = read_truth(test), truth_of(PARTS[2])
    assert (truth.fits == whole.fits).all()
    assert (truth.bayes == whole.bayes).all()


def test_the_truth_of_a_part_counts_its_own_videos(root, tmp_path):
    test = load_split("synthetic", "test", root)
    part = test.part([test.items[n].id for n in (6, 1, 4)])
    truth, whole = read_truth(part), truth_of(PARTS[2])
    rows = [row for video in (1, 4, 6) for row in (2 * video, 2 * video + 1)]
    assert (truth.fits == whole.fits[np.ix_(rows, [1, 4, 6])]).all()
    assert (truth.videos_that_fit == truth.fits.sum(1)).all()


def test_no_world_or_another_data_set_is_refused(root, tmp_path):
    with pytest.raises(
        SureshotError, match=r"no synthetic dataset\. Write one: sureshot synthetic --to"
    ):
        load_split("synthetic", "test", tmp_path / "nowhere")
    (root / FILE).write_text('{"splits": []}')
    with pytest.raises(SureshotError, match="not as expected"):
        load_split("synthetic", "test", root)


def test_only_a_synthetic_dataset_knows_the_truth(root):
    listing = root / "mine.csv"
    video = next(Path(root / VIDEOS).iterdir())
    listing.write_text(f"video,caption\n{video},a red thing\n")
    own = load_split("pairs", "test", listing)
    with pytest.raises(SureshotError, match="nobody knows which videos a caption fits"):
        read_truth(own)
