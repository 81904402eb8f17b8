"""Failed queries only, with what was found before the right video."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.strips import failures
from tests.research.figures.pictures import shown


def perfect(subject, score=1.0):
    """A subject whose every query finds its video, as far as scores say."""
    made = replace(subject)
    scores = np.zeros((len(made.owner), len(made.items)), np.float32)
    scores[np.arange(len(made.owner)), made.owner] = score
    made.__dict__["scores"] = scores
    return made


@pytest.mark.parametrize("system", ["duq", "xpool"])
def test_each_has_its_right_video_below_others(subject, system):
    of = subject(system)
    ranks = text_ranks(of.scores, of.owner)
    found = failures(of, 100)
    assert (found.failed, found.queries) == ((ranks > 1).sum(), 12)
    texts = [of.text(query) for query in range(12)]
    assert 0 < len(found.shown) <= found.failed
    for one in found.shown:
        query = texts.index(one.query)
        scores, own = of.scores[query], of.owner[query]
        assert one.right.rank == ranks[query] > 1
        assert (one.right.name, one.right.right) == (of.names[own], True)
        order = [v for v in np.argsort(-scores, kind="stable") if scores[v] >= scores[own]]
        assert [hit.name for hit in one.above] == [of.names[v] for v in order if v != own][:4]
        assert not any(hit.right for hit in one.above)
        for hit in (*one.above, one.right):
            assert hit.values == {"score": scores[of.names.index(hit.name)]}
    assert len({one.right.name for one in found.shown}) == len(found.shown)


def test_some_are_drawn_by_the_seed(subject):
    several = [failures(subject("duq", seed), 2).to_dict() for seed in (0, 0, 1, 2, 3)]
    assert several[0] == several[1]
    assert any(one != several[0] for one in several[2:])
    assert len(several[0]["shown"]) == 2


def test_where_none_failed_there_is_nothing_to_draw(subject):
    with pytest.raises(SureshotError, match=r"No query of pairs .* failed"):
        failures(perfect(subject("duq")), 3)


def test_a_tie_is_a_failure_and_is_shown(subject):
    found = failures(perfect(subject("duq"), score=0.0), 1)
    (one,) = found.shown
    assert one.right.rank == 3.5 and len(one.above) == 4


def test_the_right_video_comes_first_and_numbers_are_told(subject):
    found = failures(subject("duq"), 3)
    figure = found.draw()
    text = shown(figure)
    assert f"{found.failed} of 12 texts do not find their video first" in " ".join(text.split())
    assert len(figure.axes[0].images) == sum(1 + len(one.above) for one in found.shown)
    assert text.count("✓") == len(found.shown)
    for one in found.shown:
        assert f"rank {one.right.rank:g}, score" in text
