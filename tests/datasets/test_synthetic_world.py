"""A synthetic dataset follows its options and its seed, and its splits share no video."""

from collections import Counter

import numpy as np
import pytest

from sureshot.datasets.synthetic import SyntheticOptions, generate
from sureshot.errors import SureshotError

FEW = {"train": 150, "val": 20, "test": 30, "captions": 3}


def world(**options):
    return generate(SyntheticOptions(**{**FEW, **options}))


def named(part):
    return np.mean([len(said) for caption in part.captions for said in caption.said])


def test_the_seed_decides_everything():
    assert world() == world()
    assert world(seed=1) != world()


def test_the_splits_are_as_large_as_asked_and_share_no_video():
    parts = world(common=1.0)
    assert [len(part.videos) for part in parts] == [150, 20, 30]
    assert [len(part.captions) for part in parts] == [450, 60, 90]
    shown = [tuple(tuple(s.values()) for s in v.scenes) for part in parts for v in part.videos]
    assert len(set(shown)) == len(shown) == len({v.id for part in parts for v in part.videos})
    assert {len(scenes) for scenes in shown} == {2, 3, 4}
    assert all(len(v.scenes) == 4 for part in world(fewest=4) for v in part.videos)


@pytest.mark.slow
def test_the_dial_of_ambiguity_says_how_much_captions_name():
    assert named(world(ambiguity=0.0)[0]) == 5
    assert named(world(ambiguity=1.0)[0]) == 1
    assert named(world(ambiguity=0.5)[0]) == pytest.approx(3, abs=0.2)


def test_captions_name_facts_of_their_scene():
    train = world(whole=0.5, ambiguity=0.5)[0]
    whole = [caption for caption in train.captions if caption.scene is None]
    assert len(whole) / len(train.captions) == pytest.approx(0.5, abs=0.1)
    for caption in train.captions:
        scenes = train.videos[caption.video].scenes
        about = scenes if caption.scene is None else [scenes[caption.scene]]
        assert caption.said == caption.meant
        assert len(caption.said) == len(about)
        for said, scene in zip(caption.said, about, strict=True):
            assert said.items() <= scene.items()


def test_noise_gets_one_fact_wrong():
    train = world(noise=0.4, whole=0.3)[0]
    wrong = [
        sum(
            said[fact] != meant[fact]
            for said, meant in zip(c.said, c.meant, strict=True)
            for fact in meant
        )
        for c in train.captions
    ]
    assert set(wrong) == {0, 1}
    assert np.mean(wrong) == pytest.approx(0.4, abs=0.08)


def test_common_scenes_are_shared_but_each_video_has_one_of_its_own():
    train = world(common=1.0)[0]
    counts = Counter(tuple(s.values()) for v in train.videos for s in v.scenes)
    often = {scene for scene, count in counts.items() if count > 10}
    assert len(often) == 8
    own = [sum(tuple(s.values()) not in often for s in v.scenes) for v in train.videos]
    assert np.mean([count == 1 for count in own]) > 0.9


def test_dials_out_of_range_and_worlds_that_are_too_large_are_refused():
    with pytest.raises(SureshotError, match=r"options.ambiguity is 2.*between 0 and 1"):
        SyntheticOptions(ambiguity=2.0)
    with pytest.raises(SureshotError, match="more scenes than the most"):
        SyntheticOptions(fewest=3, most=2)
    with pytest.raises(SureshotError, match="none left unlike all others"):
        world(fewest=1, most=1, train=1000)
