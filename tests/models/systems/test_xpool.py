"""X-Pool: the frames as each text sees them."""

import pytest
import torch
from torch.nn.functional import cosine_similarity

from sureshot.models.layers.pooling import mean_of_units, scores_direct
from sureshot.models.systems.xpool import PooledSimilarity, Pooling, XPool, XPoolConfig
from tests.models.layers.weights import shake
from tests.models.systems.every import WIDTH, texts, videos


def test_a_score_is_that_of_its_pooling() -> None:
    torch.manual_seed(0)
    made, words, films = XPool(XPoolConfig(), WIDTH).eval(), texts(3), videos(4)
    shake(made.pooled, size=0.1)
    found = made.similarity(made.texts(words), made.videos(films))
    expected = scores_direct(made.pooled.pool, words.sentence, films.frames, films.mask)
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)


def test_a_text_sees_its_own_pooling_of_its_video() -> None:
    torch.manual_seed(0)
    made, words, films = XPool(XPoolConfig(), WIDTH).eval(), texts(3), videos(3)
    shake(made.pooled, size=0.1)
    codes = made.texts(words), made.videos(films)
    scores = (made.text_vectors(codes[0]) * made.seen_vectors(*codes)).sum(-1)
    found = made.similarity(*codes).diagonal()
    torch.testing.assert_close(scores, found, atol=2e-5, rtol=0)
    assert not torch.allclose(made.seen_vectors(*codes), made.video_vectors(codes[1]), atol=0.01)


def pooled(pooling: Pooling, dropout: float = 0.3) -> PooledSimilarity:
    torch.manual_seed(0)
    made = PooledSimilarity(pooling, WIDTH, dropout=dropout)
    shake(made, size=0.1)
    return made


@pytest.mark.parametrize("pooling", ["mean", "mlp", "self_attention"])
def test_a_score_is_the_cosine_with_the_pooled_video(pooling: Pooling) -> None:
    made, words, films = pooled(pooling), texts(3).sentence, videos(4)
    vectors = (
        mean_of_units(films.frames, films.mask)
        if made.pool is None
        else made.pool(films.frames, films.mask)
    )
    found = made(words, made.videos(films))
    for i in range(3):
        for j in range(4):
            torch.testing.assert_close(found[i, j], cosine_similarity(words[i], vectors[j], dim=0))
