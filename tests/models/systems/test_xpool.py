"""X-Pool: the frames as each text sees them."""

from typing import get_args

import pytest
import torch
from torch.nn.functional import cosine_similarity

from sureshot.models.layers.pooling import mean_of_units, scores_direct
from sureshot.models.losses.contrastive import info_nce
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


def test_its_loss_is_contrastive_at_its_scale() -> None:
    made = XPool(XPoolConfig(dropout=0.0, scale=10.0), WIDTH)
    codes = made.texts(texts(4)), made.videos(videos(4))
    losses = made.losses(*codes)
    assert losses.keys() == {"similarity"}
    torch.testing.assert_close(losses["similarity"], info_nce(made.similarity(*codes), 10.0))


POOLINGS = get_args(Pooling)


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


def test_cross_attention_drops_out_in_training_alone() -> None:
    words, films = texts(3).sentence, videos(4)
    made = pooled("cross_attention", dropout=0.5)
    codes = made.videos(films)
    assert not torch.equal(made(words, codes), made(words, codes))
    made.eval()
    assert torch.equal(made(words, codes), made(words, codes))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling_has_a_video_without_any_text(pooling: Pooling) -> None:
    codes = pooled(pooling).videos(videos(5))
    torch.testing.assert_close(codes["video"].norm(dim=1), torch.ones(5))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_video_of_one_frame_is_that_frame(pooling: Pooling) -> None:
    """Whatever weighs frames has nothing to weigh."""
    torch.manual_seed(0)
    made, words, films = PooledSimilarity(pooling, WIDTH).eval(), texts(3).sentence, videos(4)
    films = films._replace(mask=films.mask & (torch.arange(4) < 1))
    frame = films.frames[:, 0]
    found = made(words, made.videos(films))
    expected = cosine_similarity(words[:, None], frame, dim=-1)
    if pooling in ("mean", "mlp"):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    alone = films._replace(
        frames=films.frames[:, :1],
        patches=films.patches[:, :1],
        backbone=films.backbone[:, :1],
        mask=films.mask[:, :1],
    )
    torch.testing.assert_close(found, made(words, made.videos(alone)), atol=1e-5, rtol=0)
