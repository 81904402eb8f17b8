"""What figures look at is what the system says, whichever queries are asked for."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.systems.base import rows
from sureshot.research.figures import subject as module
from sureshot.research.figures.subject import tell_apart


def test_scores_and_matrices_are_those_of_the_system(subject):
    duq = subject("duq")
    whole = duq.matrices(range(12))
    assert list(whole) == ["score", "similarity", "belief", "distance", "printed score"]
    system = duq.scorer.model.system
    texts, videos = duq.text_codes(range(12)), duq.video_codes(range(6))
    with torch.no_grad():
        for row in range(12):
            for column in range(6):
                one = rows(texts, [row]), rows(videos, [column])
                score = system.similarity(*one).item()
                assert whole["score"][row, column] == pytest.approx(score, abs=1e-5)
                distance = system.expected(*one).item()
                assert whole["distance"][row, column] == pytest.approx(distance, abs=1e-5)
    some = duq.matrices([7, 2])
    for name, matrix in some.items():
        np.testing.assert_allclose(matrix, whole[name][[7, 2]], atol=1e-5)


def test_measures_are_of_queries_and_of_videos(subject):
    found = subject("uatvr").measures
    assert {name: values.shape for name, values in found.items()} == {
        "text deviation": (12,),
        "video deviation": (6,),
    }
    log_var = subject("uatvr").text_codes([4])["log_var"]
    assert found["text deviation"][4] == pytest.approx((log_var / 2).mean().exp().item())


def test_pairs_are_of_different_videos_and_follow_the_seed(subject):
    first, again, other = (subject("duq", seed).pairs(4) for seed in (0, 0, 1))
    assert first == again and first != other
    for pairs in (first, other):
        owners = subject("duq").owner[pairs]
        assert len(set(owners)) == len(pairs) == 4 and pairs == sorted(pairs)
    assert len(subject("duq").pairs(100)) == 6


def test_of_a_large_split_some_queries_are_drawn(subject, monkeypatch):
    whole = subject("xpool")
    assert len(whole.captions) == len(whole.scores) == 12
    monkeypatch.setattr(module, "MOST", 5)
    part = subject("xpool", 3)
    assert len(part.captions) == 5 and list(part.captions) == sorted(set(part.captions))
    np.testing.assert_allclose(part.scores, whole.scores[part.captions], atol=1e-5)
    assert [part.text(query) for query in range(5)] == [
        whole.text(int(caption)) for caption in part.captions
    ]
    assert (part.owner == whole.owner[part.captions]).all()
    assert part.title == f"{whole.title}, 5 captions drawn of 12"  # recalls are of these alone


def test_two_models_are_told_apart_by_system_or_by_folder(subject):
    one, other = subject("duq"), subject("xpool")
    assert tell_apart(one, other) == ("duq on tiny", "xpool on tiny")
    for system in ("duq", "xpool"):
        names = tell_apart(subject(system), subject(system, weights=1))
        assert names == (f"{system} on tiny ({system}-0)", f"{system} on tiny ({system}-1)")
    with pytest.raises(SureshotError, match="is compared with itself; name another model"):
        tell_apart(one, one)
    fewer = one.features.split.part({one.names[0]})
    part = replace(other, features=replace(other.features, split=fewer))
    with pytest.raises(SureshotError, match="do not have the same videos and captions"):
        tell_apart(one, part)


def test_models_of_one_system_are_told_apart_by_their_settings(subject):
    one = subject("uatvr")
    other = replace(one, scorer=replace(copy.deepcopy(one.scorer), name="later/model"))
    system = other.scorer.model.system
    system.config = replace(system.config, adaptation=False, samples=3)
    assert tell_apart(one, other) == (
        "uatvr on tiny (adaptation true, samples 7)",
        "uatvr on tiny (adaptation false, samples 3)",
    )
    system.config = replace(system.config, layers=2, text_tokens=1, longest=50, beta=0.5)
    assert tell_apart(one, other)[1] == "uatvr on tiny (later/model)"  # too many settings differ
