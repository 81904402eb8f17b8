"""Batches: every caption where it belongs, no video twice, the same again for the same seed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.errors import SureshotError
from sureshot.research.training.data import count, plan

owners = st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(lambda v: len(set(v)) > 1)


@given(owners, st.integers(2, 9), st.sampled_from(["one", "all"]), st.integers(0, 3))
def test_no_video_twice_in_a_batch_and_sizes_are_even(video_of, batch, captions, epoch):
    batches = plan(video_of, batch=batch, captions=captions, epoch=epoch)
    assert len(batches) == count(video_of, batch=batch, captions=captions)
    for rows in batches:
        shown = [video_of[row] for row in rows]
        assert len(set(shown)) == len(shown) <= batch
    sizes = [len(rows) for rows in batches]
    assert max(sizes) - min(sizes) <= 1
    seen = Counter(row for rows in batches for row in rows.tolist())
    assert set(seen.values()) == {1}
    if captions == "all":
        assert set(seen) == set(range(len(video_of)))
    else:
        assert Counter(video_of[row] for row in seen) == Counter(set(video_of))


@given(st.integers(2, 200), st.integers(3, 50))
def test_no_batch_is_left_with_a_single_pair(videos, batch):
    assert min(len(rows) for rows in plan(range(videos), batch=batch)) >= 2


def test_a_plan_depends_on_seed_and_epoch_alone():
    def flat(seed, epoch):
        return [rows.tolist() for rows in plan(range(40), batch=8, seed=seed, epoch=epoch)]

    assert flat(1, 2) == flat(1, 2)
    assert len({str(flat(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9


def test_one_caption_of_each_video_is_drawn_anew_each_epoch():
    video_of = [0] * 3 + [1] * 3
    drawn = Counter(
        row
        for epoch in range(300)
        for rows in plan(video_of, batch=2, epoch=epoch)
        for row in rows.tolist()
    )
    assert set(drawn) == set(range(6))
    assert all(60 < times < 140 for times in drawn.values())  # a hundred each, five sigma


def test_every_pair_of_videos_meets():
    met = Counter()
    for epoch in range(400):
        for rows in plan([0, 0, 1, 1, 2, 2, 3, 3], batch=2, captions="all", epoch=epoch):
            met[tuple(sorted({int(row) // 2 for row in rows}))] += 1
    assert len(met) == 6
    # Six pairs share 1600 batches; shares are even, as all videos are alike.
    assert max(met.values()) < 1.25 * min(met.values())


def test_a_video_with_many_captions_makes_more_batches_not_a_double():
    video_of = [0] * 10 + [1, 2]
    sizes = [len(rows) for rows in plan(video_of, batch=6, captions="all")]
    assert sorted(sizes) == [1] * 8 + [2, 2]


@pytest.mark.parametrize("video_of", [[], [0], [0, 0, 0]])
def test_fewer_than_two_videos_are_refused(video_of):
    with pytest.raises(SureshotError, match="at least two videos"):
        plan(video_of, batch=4)


def test_a_batch_of_one_is_refused():
    with pytest.raises(SureshotError, match=r"training\.batch is 1"):
        count([0, 1], batch=1)


def test_a_large_split_is_planned_in_a_moment():
    video_of = np.repeat(np.arange(5000), 10).tolist()
    batches = plan(video_of, batch=128, captions="all")
    assert len(batches) == 391
