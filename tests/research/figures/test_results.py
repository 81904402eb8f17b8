"""What was found for texts and for videos, with every number of each pair."""

import numpy as np
import pytest

from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.strips import captions, results
from tests.research.figures.pictures import pixels, share, shown


@pytest.mark.parametrize("system", ["duq", "dvtr", "tiny"])
def test_the_best_three_and_the_right_one_are_told_of(subject, system):
    of = subject(system)
    found = results(of, 6)
    queries = of.pairs(6)
    every = of.matrices(range(12))
    ranks = text_ranks(of.scores, of.owner)
    assert [answer.query for answer in found.answers] == [of.text(query) for query in queries]
    for query, answer in zip(queries, found.answers, strict=True):
        order = np.argsort(-of.scores[query], kind="stable")
        own = of.owner[query]
        expected = list(order[:3]) + ([] if own in order[:3] else [own])
        assert [hit.name for hit in answer.hits] == [of.items[video].id for video in expected]
        (right,) = [hit for hit in answer.hits if hit.right]
        assert (right.name, right.rank) == (of.items[own].id, ranks[query])
        for video, hit in zip(expected, answer.hits, strict=True):
            assert list(hit.values) == list(every)
            for name, value in hit.values.items():
                assert value == pytest.approx(every[name][query, video], abs=1e-5)
        assert answer.measures == {
            name: values[query] for name, values in of.measures.items() if name.startswith("text")
        }
    assert found.to_dict()["queries"][0]["hits"][0]["rank"] >= 1


@pytest.mark.parametrize("system", ["duq", "xpool"])
def test_of_a_video_the_texts_are_ranked(subject, system):
    of = subject(system)
    found = captions(of, 4)
    every = of.matrices(range(12))
    for query, answer in zip(of.pairs(4), found.answers, strict=True):
        video = of.owner[query]
        column = of.scores[:, video]
        order = np.argsort(-column, kind="stable").tolist()
        own = [row for row in order if of.owner[row] == video]
        expected = order[:3] + ([] if set(own) & set(order[:3]) else own[:1])
        assert [hit.name for hit in answer.hits] == [of.text(row) for row in expected]
        assert [hit.right for hit in answer.hits] == [row in own for row in expected]
        assert answer.query == of.items[video].id
        for row, hit in zip(expected, answer.hits, strict=True):
            assert hit.rank == 1 + (column > column[row]).sum()
            for name, value in hit.values.items():
                assert value == pytest.approx(every[name][row, video], abs=1e-5)
        assert all(name.startswith("video") for name in answer.measures)


def test_frames_and_numbers_are_drawn(subject):
    found = results(subject("duq"), 3)
    figure = found.draw()
    text = " ".join(shown(figure).split())
    assert len(figure.axes[0].images) == sum(len(answer.hits) for answer in found.answers)
    for answer in found.answers:
        assert f"“{answer.query}”" in text and answer.said() in text
    assert "belief: belief that the pair belongs together" in text
    assert text.count("belief 0.") == len(figure.axes[0].images)
    assert "vacuity of the text (lack of evidence, 0 to 1) = " in text
    assert text.count("✓") == 3 and share(pixels(figure), "#0072b2") > 0.005


def test_of_videos_one_picture_and_its_texts_are_drawn(subject):
    found = captions(subject("duq"), 3)
    figure = found.draw()
    text = " ".join(shown(figure).split())
    assert len(figure.axes[0].images) == 3
    for answer in found.answers:
        for hit in answer.hits:
            assert f"{hit.rank:g}. {hit.name} (score" in text
    assert text.count("✓") == sum(hit.right for answer in found.answers for hit in answer.hits)
