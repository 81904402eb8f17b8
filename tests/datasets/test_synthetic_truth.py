"""The truth is held against slow loops, and the Bayes scores against captions drawn and counted."""

from collections import Counter

import numpy as np
import pytest

from sureshot.datasets import synthetic
from sureshot.datasets.synthetic import (
    SyntheticCaption,
    SyntheticOptions,
    SyntheticSplit,
    SyntheticVideo,
    generate,
    truth_of,
)


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


def test_what_cannot_have_been_written_scores_least():
    part = generate(SyntheticOptions(train=2, val=2, test=30, ambiguity=0.0))[2]
    truth = truth_of(part)
    assert (truth.fits == (truth.bayes > -100)).all()
    assert np.isfinite(truth.bayes).all()


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
