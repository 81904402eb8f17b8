"""X-Pool: the frames as each text sees them."""

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.layers.pooling import scores_direct
from sureshot.models.losses.contrastive import info_nce
from sureshot.models.systems.xpool import XPool, XPoolConfig
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


def test_training_drops_out() -> None:
    made = XPool(XPoolConfig(dropout=0.5), WIDTH)
    codes = made.texts(texts(4)), made.videos(videos(4))
    assert made.losses(*codes)["similarity"] != made.losses(*codes)["similarity"]


def test_settings_out_of_range_are_refused() -> None:
    for scale in (0.0, 101.0):
        with pytest.raises(SureshotError, match=r"system\.scale is"):
            XPoolConfig(scale=scale)
    for dropout in (-0.1, 1.0):
        with pytest.raises(SureshotError, match=r"system\.dropout is"):
            XPoolConfig(dropout=dropout)
