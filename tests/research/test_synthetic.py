"""A synthetic dataset on disk is ordinary videos, written once."""

from itertools import combinations

import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.datasets.synthetic import SyntheticOptions, frames_of, read_part, read_truth
from sureshot.errors import SureshotError
from sureshot.research.features import sampled_frames
from sureshot.research.synthetic import best_recall, write_dataset

OPTIONS = SyntheticOptions(train=6, val=2, test=4, captions=2)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("synthetic") / "world", OPTIONS)


def test_the_videos_show_the_facts(world):
    test = load_split("synthetic", "test", world.folder)
    assert (world.videos, world.captions, test.missing) == (12, 24, ())
    video = read_part(world.folder, "test").videos[0]
    drawn = frames_of(video.scenes, np.random.default_rng(video.pixels))
    seen = sampled_frames(test.items[0], len(drawn), 64)
    assert seen.shape == drawn.shape
    assert abs(seen.astype(int) - drawn).mean() < 6


@pytest.mark.parametrize("batch", [64, 3])
def test_a_batch_has_no_video_twice(world, monkeypatch, batch):
    """All six are in a batch of at most 64; of three, any two are as likely next to a caption's."""
    monkeypatch.setattr("sureshot.research.synthetic._BATCH", batch)
    train = load_split("synthetic", "train", world.folder)
    shares = []
    for fits, own in zip(read_truth(train).fits, train.owner(), strict=True):
        others = np.delete(fits, own)
        drawn = combinations(others, min(batch - 1, len(others)))
        shares.append(np.mean([any(some) for some in drawn]))
    found = write_dataset(world.folder, OPTIONS).false_negatives
    assert found == pytest.approx(np.mean(shares)) and found > 0


def test_the_same_world_is_written_once_and_nothing_over_anything_else(world, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in world.folder.rglob("*")}
    assert write_dataset(world.folder, OPTIONS) == world
    assert {path: path.stat().st_mtime_ns for path in world.folder.rglob("*")} == before
    with pytest.raises(SureshotError, match="other options"):
        write_dataset(world.folder, SyntheticOptions())
    (tmp_path / "letter.txt").touch()
    with pytest.raises(SureshotError, match="holds something else"):
        write_dataset(tmp_path, OPTIONS)


def test_a_video_that_was_deleted_is_made_again(tmp_path):
    folder = write_dataset(tmp_path / "world", OPTIONS).folder
    lost, kept, *_ = sorted((folder / "videos").iterdir())
    lost.unlink()
    before = kept.stat().st_mtime_ns
    write_dataset(folder, OPTIONS)
    assert len(load_split("synthetic", "train", folder).items) == 6
    assert lost.is_file() and kept.stat().st_mtime_ns == before


def test_the_best_scorer_guesses_where_several_fit_alike():
    from sureshot.datasets.synthetic import SyntheticCaption, SyntheticSplit, SyntheticVideo

    scene = {"colour": "red", "shape": "ring", "size": "small"}
    scene |= {"place": "top left", "direction": "up"}
    videos = tuple(
        SyntheticVideo(id=name, scenes=(scene, {**scene, "colour": colour}), pixels=0)
        for name, colour in (("a", "blue"), ("b", "green"))
    )
    said = ({"colour": "red"},)
    caption = SyntheticCaption(text="a red thing", video=0, scene=0, meant=said, said=said)
    part = SyntheticSplit(name="test", options=OPTIONS, videos=videos, captions=(caption,))
    assert best_recall(part) == 50
