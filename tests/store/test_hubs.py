"""Candidates are the windows that score best, hub correction included."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.models.encoders.base import VideoFeatures
from sureshot.models.encoders.bundled import BundledEncoder
from sureshot.models.hub_bank import bank_of
from sureshot.models.similarity import similarity_for
from sureshot.store.index import Store
from sureshot.store.rows import CHECKED, Header, IndexSettings, asking, with_hubs
from tests.encoded import pointing, record

HEADER = Header(settings=IndexSettings(model="tiny"), fingerprint="f", dim=24)


def vectors(count: int, dim: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.mark.parametrize(("dim", "width"), [(1, 8), (7, 8), (8, 16), (24, 32), (256, 264)])
def test_there_is_room_for_a_number_and_width_that_can_be_indexed(dim: int, width: int) -> None:
    assert Header(settings=HEADER.settings, fingerprint="f", dim=dim).width == width
    older = Header(settings=HEADER.settings, fingerprint="f", dim=dim, schema=CHECKED)
    assert older.width == dim


def test_without_a_bank_nothing_is_taken_off() -> None:
    pooled = vectors(3, 24)
    stored = with_hubs(pooled, HEADER)
    assert (stored[:, :24] == pooled).all()
    assert stored.shape == (3, 32) and not stored[:, 24:].any()


def test_a_product_is_the_score() -> None:
    encoder = BundledEncoder()
    bank = bank_of(encoder.name, encoder.fingerprint)
    assert bank is not None
    how = similarity_for(encoder, bank)
    assert how.hub_corrected and not similarity_for(encoder).hub_corrected
    header = Header(settings=IndexSettings(), fingerprint=encoder.fingerprint, dim=encoder.dim)
    pooled, queries = vectors(20, encoder.dim), vectors(4, encoder.dim, seed=1)
    stored = with_hubs(pooled, header)
    coded = how.videos(VideoFeatures.of_frames(pooled[:, None], np.ones((20, 1), bool)))
    asked = np.stack([asking(query, stored.shape[1], hub_corrected=True) for query in queries])
    np.testing.assert_allclose(asked @ stored.T, how.similarity(queries, coded), atol=1e-5)
    plain = np.stack([asking(query, stored.shape[1], hub_corrected=False) for query in queries])
    np.testing.assert_allclose(plain @ stored.T, queries @ pooled.T, atol=1e-5)


def test_a_format_without_room_is_asked_as_it_is() -> None:
    (query,) = vectors(1, 24)
    assert (asking(query, 24, hub_corrected=True) == query).all()


def test_a_search_takes_the_windows_that_score_best_as_candidates(tmp_path: Path) -> None:
    encoder = BundledEncoder()
    how = similarity_for(encoder, bank_of(encoder.name, encoder.fingerprint))
    store = Store.create(tmp_path, IndexSettings(), encoder.fingerprint, encoder.dim)
    query, *noise = vectors(401, encoder.dim)
    # Hubs lie nearer to the query, and to every caption of the bank as well.
    captions = how._captions.mean(0) / np.linalg.norm(how._captions.mean(0))
    pooled = np.stack(noise)
    pooled[:200] = 0.2 * pooled[:200] + 0.55 * query + 0.8 * captions
    pooled[200:] = 0.92 * pooled[200:] + 0.35 * query
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    store.write(record("/v.mp4"), pointing(pooled))
    coded = how.videos(VideoFeatures.of_frames(pooled[:, None], np.ones((400, 1), bool)))
    scores = how.similarity(query[None], coded)[0]
    best = set((10.0 * np.argsort(-scores)[:10]).tolist())
    assert best <= set(store.nearest(query, 12, hub_corrected=True).start.tolist())
    assert not best & set(store.nearest(query, 12).start.tolist())
