"""Trials of heads, on made features of which captions and frames share a few causes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.bundled.heads import (
    Data,
    Head,
    Trial,
    contrast,
    fit,
    merged,
    recalls,
    scores,
    softened,
    taught,
)
from benchmarks.bundled.trials import TRIALS, row, tried
from torch import nn

ITEMS, WIDTH, CAUSES = 32, 16, 6
SMALL = Trial(inputs=("looks",), batch=16, epochs=12, phrases=0.0, rate=3e-3, dim=64)


def made(seed: int) -> Data:
    """Two frames and four captions of each item, one of these a phrase; two families."""
    ways = torch.Generator().manual_seed(0)
    looks, words = (torch.randn(CAUSES, w, generator=ways) for w in (WIDTH, 384))
    draw = torch.Generator().manual_seed(seed)
    causes = torch.randn(ITEMS, CAUSES, generator=draw)
    frame_item, text_item = (np.repeat(np.arange(ITEMS), count) for count in (2, 4))
    frames = causes[frame_item] @ looks + 0.3 * torch.randn(2 * ITEMS, WIDTH, generator=draw)
    texts = causes[text_item] @ words + 0.3 * torch.randn(4 * ITEMS, 384, generator=draw)
    texts = nn.functional.normalize(texts, dim=-1)
    return Data(
        frames={"looks": frames, "low": frames[:, :7], "cells": frames[:, None].repeat(1, 9, 1)},
        frame_item=frame_item,
        texts=texts,
        alike=texts,
        text_item=text_item,
        phrase=np.tile([False, False, False, True], ITEMS),
        family=np.array(["a", "b"]).repeat(ITEMS // 2),
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"inputs": ("looks", "low")},
        {"cells": True},
        {"hidden": 16},
        {"whole": True, "captions": 3, "same": 0.95},
        {"soft": 0.3, "queue": 2, "mean_of": 0.3},
        {"weights": (("a", 2.5), ("b", 0.5)), "phrases": 0.5},
    ],
    ids=str,
)
def test_every_trial_learns(change: dict[str, object]) -> None:
    data = made(0)
    trained = fit(replace(SMALL, **change), data, 0)  # type: ignore[arg-type]
    one, _, ten = recalls(scores([trained], data), data)
    assert one > 3 * 100 / ITEMS and ten > 60


@pytest.fixture(scope="module")
def pair() -> list[Head]:
    return [fit(SMALL, made(0), seed) for seed in (1, 2)]


def test_a_seed_gives_the_same_head_and_another_seed_another(pair: list[Head]) -> None:
    data = made(0)
    again, first, other = (scores([head], data) for head in (fit(SMALL, data, 1), *pair))
    np.testing.assert_allclose(first, again, atol=1e-5)
    assert not np.allclose(first, other, atol=1e-2)


def test_a_student_of_teachers_alone_learns_what_they_say_not_what_is_right() -> None:
    data = made(0)
    contrary = replace(data, frames={"looks": -data.frames["looks"]})
    teachers = [fit(SMALL, contrary, seed) for seed in (1, 2)]
    told = scores(teachers, data).ravel()
    alone, student = (scores([fit(SMALL, data, 0, some, 1.0)], data) for some in ((), teachers))
    assert np.corrcoef(student.ravel(), told)[0, 1] > 0.5
    assert np.corrcoef(alone.ravel(), told)[0, 1] < 0


def test_one_merged_head_scores_as_its_heads_together(pair: list[Head]) -> None:
    data = made(0)
    alone = scores(pair[:1], data).ravel()
    together, one = scores(pair, data).ravel(), scores([merged(pair, data)], data).ravel()
    assert np.corrcoef(one, together)[0, 1] > np.corrcoef(alone, together)[0, 1]


def test_a_trial_of_one_step_ends() -> None:
    fit(replace(SMALL, epochs=1, batch=ITEMS), made(0), 0)


def test_captions_that_say_the_same_are_right() -> None:
    alike = torch.eye(3)[[0, 0, 1, 1, 0, 2]]  # two captions of each of three items
    right = torch.eye(3)[[0, 0, 1, 1, 2, 2]]
    found = softened(right, alike, replace(SMALL, captions=2, same=0.9))
    # The first captions say 0, 1 and 0.
    expected = [[1, 0, 1], [1, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1]]
    assert found.tolist() == expected


def test_soft_targets_are_shares_and_keep_most_for_the_own_item() -> None:
    alike = nn.functional.normalize(torch.randn(6, 5), dim=-1)
    found = softened(torch.eye(6), alike, replace(SMALL, soft=0.3))
    torch.testing.assert_close(found.sum(1), torch.ones(6))
    torch.testing.assert_close(found.diag(), torch.full((6,), 0.7), atol=1e-4, rtol=0)


def test_contrast_with_one_right_answer_is_cross_entropy() -> None:
    logits, beside = torch.randn(4, 4), torch.randn(4, 3)
    expected = nn.functional.cross_entropy(torch.cat([logits, beside], 1), torch.arange(4))
    torch.testing.assert_close(contrast(logits, torch.eye(4), [beside]), expected)


def test_nothing_is_to_be_learned_from_teachers_who_say_the_same() -> None:
    logits = torch.randn(5, 5, requires_grad=True)
    torch.autograd.backward(taught(logits, logits.detach()))
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.zeros(5, 5), atol=1e-6, rtol=0)


def test_weights_of_one_head_are_that_head(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = replace(SMALL, epochs=2)
    monkeypatch.setitem(TRIALS, "as it is", brief)
    data = made(0)
    mean, first = tried(data, "weights of 1", 0, 2, {}), fit(brief, data, 100, first=0)
    np.testing.assert_allclose(scores(mean, data), scores([first], data), atol=1e-6)
    assert len(tried(data, "scores of 2", 0, 2, {})) == 2


def test_a_row_has_recalls_and_their_sums() -> None:
    found = np.array([[[1.0, 2.0, 3.0]], [[3.0, 4.0, 5.0]]])
    assert row("x", found) == "| x | 2.0 / 3.0 / 4.0 | 9.0±4.2 9.0±4.2 |"


def test_a_part_keeps_what_belongs_to_its_items() -> None:
    data = made(0)
    part = data.part(np.array([5, 7, 30]))
    assert part.family.tolist() == ["a", "a", "b"]
    assert part.text_item.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    first = part.texts[torch.from_numpy(part.text_item == 0)]
    torch.testing.assert_close(first, data.texts[20:24])
