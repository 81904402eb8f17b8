"""Before and after: the counts, the moves shown, and the corrections themselves."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.hubs import dual_softmax, nearest_neighbour_normalised, querybank_norm
from sureshot.metrics.ranks import text_ranks
from sureshot.research.figures.strips import _chosen, rank_changes
from tests.research.figures.pictures import shown


@pytest.mark.parametrize(
    ("after", "name"), [(None, "score"), ("score", "score"), ("printed", "printed score")]
)
def test_duq_is_compared_with_its_plain_similarity(subject, after, name):
    of = subject("duq")
    matrices = of.matrices(range(12))
    found = rank_changes(of, 4, after)
    assert found.names == ("similarity", name)
    before, later = (text_ranks(matrices[key], of.owner) for key in found.names)
    assert (found.rose, found.fell) == ((before > later).sum(), (before < later).sum())
    assert found.rose + found.fell + found.stayed == 12
    assert found.r1 == pytest.approx((100 * (before <= 1).mean(), 100 * (later <= 1).mean()))
    texts = [of.text(query) for query in range(12)]
    for change in found.shown:
        query = texts.index(change.query)
        assert change.ranks == (before[query], later[query]) and change.ranks[0] != change.ranks[1]
        for key, hits in zip(found.names, (change.before, change.after), strict=True):
            row = matrices[key][query]
            order = np.argsort(-row, kind="stable")[:4]
            assert [hit.name for hit in hits] == [of.names[video] for video in order]
            assert [hit.right for hit in hits] == list(order == of.owner[query])
            assert [hit.values["score"] for hit in hits] == pytest.approx(sorted(row)[::-1][:4])


@pytest.mark.parametrize("after", ["dsl", "inverted_softmax", "qb_norm", "nnn"])
def test_any_system_can_be_corrected_for_hubs(subject, after):
    of = subject("xpool")
    bank = np.random.default_rng(0).random((20, 6)).astype(np.float32)
    found = rank_changes(of, 3, after, bank)
    assert found.names == ("score", after)
    by_hand = {
        "dsl": lambda: dual_softmax(of.scores),
        "qb_norm": lambda: querybank_norm(of.scores, bank),
        "nnn": lambda: nearest_neighbour_normalised(of.scores, bank),
    }
    if after in by_hand:
        later = text_ranks(by_hand[after](), of.owner)
        assert found.r1[1] == pytest.approx(100 * (later <= 1).mean())
        assert found.rose == (text_ranks(of.scores, of.owner) > later).sum()


def test_what_cannot_be_done_is_said(subject):
    with pytest.raises(SureshotError, match="xpool does not re-rank by itself"):
        rank_changes(subject("xpool"), 3)
    with pytest.raises(SureshotError, match="encoder does not re-rank by itself"):
        rank_changes(subject("tiny"), 3, "printed")
    with pytest.raises(SureshotError, match="nnn looks at training captions"):
        rank_changes(subject("xpool"), 3, "nnn")


def test_the_largest_moves_are_shown_half_up_half_down():
    before = np.array([9.0, 2.0, 1.0, 5.0, 1.0, 400.0, 7.0, 1.0])
    after = np.array([1.0, 1.0, 3.0, 5.0, 2.0, 300.0, 9.0, 8.0])
    # Rises by ratio: 0 (9), 1 (2); falls: 7 (8), 2 (3), 4 (2). 5 and 6 never reach the first four.
    assert _chosen([before, after], 4) == [0, 1, 7, 2]
    assert _chosen([before, after], 3) == [0, 1, 7]
    assert _chosen([before, after], 1) == [0]
    assert _chosen([before, after], 99) == [0, 1, 7, 2, 4]
    assert _chosen([after, before], 3) == [7, 2, 0]
    assert _chosen([before, before], 4) == []
    only_falls = [np.ones(3), np.array([2.0, 3.0, 4.0])]
    assert _chosen(only_falls, 2) == [2, 1]


def test_both_rows_are_drawn_with_the_ranks(subject):
    found = rank_changes(subject("duq"), 2)
    assert found.shown
    figure = found.draw()
    text = shown(figure)
    assert len(figure.axes[0].images) == 8 * len(found.shown)
    for change in found.shown:
        assert f"similarity: right video at rank {change.ranks[0]:g}" in text
        assert f"score: right video at rank {change.ranks[1]:g}" in text
        assert text.count(f"“{change.query}”") == 1
    assert f"{found.rose} queries rise" in " ".join(text.split())
