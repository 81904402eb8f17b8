"""A synthetic dataset is read back from its file, with the truth in the order of what is read."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sureshot.datasets import load_split, synthetic
from sureshot.datasets.synthetic import (
    FACTS,
    FILE,
    PER_SCENE,
    SIDE,
    VIDEOS,
    SyntheticCaption,
    SyntheticOptions,
    SyntheticSplit,
    SyntheticVideo,
    frames_of,
    generate,
    read_part,
    read_truth,
    sentence,
    truth_of,
    written,
)
from sureshot.errors import SureshotError
from tests.datasets.files import put

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


def test_the_file_gives_the_world_back_and_tells_other_programs_how_many_fit(root):
    assert [read_part(root, part.name) for part in PARTS] == list(PARTS)
    held = json.loads((root / FILE).read_text())
    test = next(one for one in held["splits"] if one["name"] == "test")
    assert {one["video"] for one in test["captions"]} == {one["id"] for one in test["videos"]}
    assert [c["videos_that_fit"] for c in test["captions"]] == [*truth_of(PARTS[2]).videos_that_fit]
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
    with pytest.raises(SureshotError, match=r"The variable \$AWAY is not set"):
        load_split("synthetic", "test", tmp_path / "$AWAY")
    (root / FILE).write_text('{"splits": []}')
    with pytest.raises(SureshotError, match="not as expected"):
        load_split("synthetic", "test", root)
    video = next(Path(root / VIDEOS).iterdir())
    own = load_split("pairs", "test", put(root / "mine.csv", f"video,caption\n{video},red\n"))
    with pytest.raises(SureshotError, match="does not say which videos a caption fits"):
        read_truth(own)


WHOLE = {
    "colour": "purple",
    "shape": "ring",
    "size": "large",
    "place": "top left",
    "direction": "up",
}


def draws(parts, count=200):
    draw = np.random.default_rng(0)
    return [sentence(parts, draw) for _ in range(count)]


@pytest.mark.parametrize("fact", FACTS)
def test_each_named_fact_is_said_and_no_other(fact):
    texts = draws([{fact: WHOLE[fact]}])
    for text in texts:
        said = {
            (other, value)
            for other, values in FACTS.items()
            for value, words in values.items()
            if any(word in text for word in words)
        }
        # "upper left corner" holds no word of a direction; "moves left" none of a place.
        assert said == {(fact, WHOLE[fact])}
    assert all(any(word in text for text in texts) for word in FACTS[fact][WHOLE[fact]])


def test_scenes_are_told_in_their_order_with_their_articles():
    texts = draws([{"colour": "blue", "place": "top left"}, {"colour": "green"}])
    for text in texts:
        first = max(text.find("blue"), text.find("azure"))
        second = max(text.find("green"), text.find("emerald"))
        assert 0 <= first < second
        assert "a azure" not in text and "a emerald" not in text
    assert any("an emerald" in text for text in texts)
    assert any(text.startswith(("at the", "in the")) for text in texts)
    assert any(text.startswith(("a ", "an ")) for text in texts)


SCENE = {
    "colour": "red",
    "shape": "square",
    "size": "large",
    "place": "top left",
    "direction": "right",
}


def shown(seed=0, **facts):
    return frames_of([{**SCENE, **facts}], np.random.default_rng(seed)).astype(int)


def covered(frame):
    """Where a frame is red, without the trail."""
    return (frame[..., 0] > 200) & (frame[..., 1] < 80)


def centre(frame):
    return np.argwhere(covered(frame)).mean(0)


def test_a_video_has_frames_of_each_scene():
    frames = frames_of([SCENE, {**SCENE, "place": "bottom right"}], np.random.default_rng(0))
    assert frames.shape == (2 * PER_SCENE, SIDE, SIDE, 3)
    assert centre(frames[0].astype(int)).max() < SIDE / 2 < centre(frames[-1].astype(int)).min()


@pytest.mark.parametrize(
    ("direction", "axis", "sign"), [("left", 1, -1), ("right", 1, 1), ("up", 0, -1), ("down", 0, 1)]
)
def test_the_shape_moves_and_leaves_its_trail_behind(direction, axis, sign):
    frames = shown(direction=direction)
    moved = centre(frames[-1]) - centre(frames[0])
    assert moved[axis] * sign > 4
    assert abs(moved[1 - axis]) < 1
    redder = (frames[2][..., 0] - frames[2][..., 1] > 25) & ~covered(frames[2])
    trail = np.argwhere(redder).mean(0)
    assert (centre(frames[2]) - trail)[axis] * sign > 5


def test_every_value_of_a_fact_looks_different_and_the_rest_is_drawn():
    for fact, values in FACTS.items():
        seen = [shown(**{fact: value})[1] for value in values]
        for first, one in enumerate(seen):
            for other in seen[:first]:
                assert (abs(one - other).max(-1) > 60).sum() > 20
    assert (shown(0) == shown(0)).all()
    assert abs(shown(0)[0, -1, -1] - shown(1)[0, -1, -1]).max() > 0


def fits(caption, video):
    """Whether what a caption was to name is so in a video, fact by fact."""
    if caption.scene is None:
        return len(caption.meant) == len(video.scenes) and all(
            meant.items() <= scene.items()
            for meant, scene in zip(caption.meant, video.scenes, strict=True)
        )
    return any(caption.meant[0].items() <= scene.items() for scene in video.scenes)


@pytest.mark.parametrize(
    "options", [{}, {"whole": 0.5, "common": 0.8}, {"noise": 0.5, "whole": 0.2}]
)
def test_a_caption_fits_where_its_facts_are_so(options):
    for part in generate(SyntheticOptions(train=40, val=20, test=30, **options))[1:]:
        truth = truth_of(part)
        slow = [[fits(caption, video) for video in part.videos] for caption in part.captions]
        assert (truth.fits == slow).all()
        assert (truth.videos_that_fit == np.sum(slow, 1)).all()
        own = [caption.video for caption in part.captions]
        assert truth.fits[np.arange(len(own)), own].all()


def counted(options, videos, draws):
    """How often each way of naming facts is drawn for each video."""
    draw = np.random.default_rng(3)
    found = {}
    for number, video in enumerate(videos):
        for _ in range(draws):
            caption = synthetic._caption(video, number, options, draw)
            key = (caption.scene is None, tuple(tuple(sorted(s.items())) for s in caption.said))
            found.setdefault(key, (caption, Counter()))[1][number] += 1
    return found


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_bayes_scores_are_how_likely_captions_are_written(noise):
    options = SyntheticOptions(train=2, val=2, test=4, noise=noise, common=0.9, ambiguity=1.0)
    videos = generate(options)[2].videos
    found = [one for one in counted(options, videos, 300).values() if one[1].total() > 60]
    assert len(found) > 4
    captions = tuple(caption for caption, _ in found)
    truth = truth_of(SyntheticSplit(name="test", options=options, videos=videos, captions=captions))
    for row, (_, counts) in zip(truth.posterior(), found, strict=True):
        shares = np.array([counts[number] for number in range(len(videos))]) / counts.total()
        assert row == pytest.approx(shares, abs=0.15)
    assert len({tuple(row.round(2)) for row in truth.posterior()}) > 2


def test_a_scene_among_few_is_likelier_to_be_the_one_that_is_told():
    scene = {"colour": "red", "shape": "ring", "size": "small"}
    scene |= {"place": "top left", "direction": "up"}
    other = {**scene, "colour": "blue"}
    videos = (
        SyntheticVideo(id="two", scenes=(scene, other), pixels=0),
        SyntheticVideo(id="four", scenes=(scene, other, other, other), pixels=0),
        SyntheticVideo(id="twice", scenes=(scene, other, other, scene), pixels=0),
    )
    said = ({"colour": "red"},)
    caption = SyntheticCaption(text="a red thing", video=0, scene=0, meant=said, said=said)
    part = SyntheticSplit(
        name="test", options=SyntheticOptions(), videos=videos, captions=(caption,)
    )
    assert truth_of(part).posterior()[0] == pytest.approx([0.4, 0.2, 0.4])


FEW = {"train": 150, "val": 20, "test": 30, "captions": 3}


def world(**options):
    return generate(SyntheticOptions(**{**FEW, **options}))


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


def test_captions_name_facts_of_their_scene():
    for ambiguity, facts in ((0.0, 5), (1.0, 1), (0.5, 3)):
        part = world(ambiguity=ambiguity)[0]
        named = [len(said) for caption in part.captions for said in caption.said]
        assert np.mean(named) == pytest.approx(facts, abs=0.2)
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


def test_options_out_of_range_and_datasets_that_are_too_large_are_refused():
    with pytest.raises(SureshotError, match=r"options.ambiguity is 2.*between 0 and 1"):
        SyntheticOptions(ambiguity=2.0)
    with pytest.raises(SureshotError, match="more scenes than the most"):
        SyntheticOptions(fewest=3, most=2)
    with pytest.raises(SureshotError, match="No further video differs"):
        world(fewest=1, most=1, train=1000)
