"""How texts are compared with videos: by loops over pairs, with a bank and without."""

import numpy as np
import pytest

from sureshot.models.encoders.base import TextFeatures, VideoFeatures, cosine, mean_pool
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.hub_bank import Bank
from sureshot.models.load import load_searchable
from sureshot.models.similarity import (
    HubCorrected,
    MeanFrames,
    ModelSimilarity,
    similarity_for,
)
from tests.trained import checkpoint, saved

TINY = TinyEncoder()


def drawn(count: int, width: int, seed: int = 3) -> VideoFeatures:
    """Videos of one to four frames."""
    draw = np.random.default_rng(seed)
    frames = draw.normal(size=(count, 4, width)).astype(np.float32)
    mask = np.arange(4) < draw.integers(1, 5, (count, 1))
    return VideoFeatures.of_frames(frames, mask)


def rows(videos: VideoFeatures, *chosen: int) -> VideoFeatures:
    return VideoFeatures.of_frames(videos.frames[list(chosen)], videos.mask[list(chosen)])


def banked(texts: TextFeatures, videos: VideoFeatures, weight: float = 0.5) -> Bank:
    corrections = np.linspace(0, 0.2, len(videos.mask), dtype=np.float32)
    return Bank(
        texts=texts,
        k=2,
        weight=weight,
        frames=videos.frames,
        mask=videos.mask,
        corrections=corrections,
        model="m" * 64,
        source="a test",
    )


@pytest.fixture(scope="module", params=["tiny", "duq", "xpool"])
def encoder(request, tmp_path_factory):
    if request.param == "tiny":
        return TINY
    folder = tmp_path_factory.mktemp("model")
    return load_searchable(saved(folder / request.param, request.param, "linear"), "cpu")


def test_an_encoder_alone_scores_by_the_mean_of_frames():
    how, videos = similarity_for(TINY), drawn(3, TINY.dim)
    assert isinstance(how, MeanFrames)
    texts = TINY.encode_texts(["red", "green"])
    codes = how.texts(texts)
    expected = cosine(texts.sentence, mean_pool(videos.frames, videos.mask))
    np.testing.assert_allclose(how.similarity(codes, how.videos(videos)), expected, atol=1e-6)
    np.testing.assert_allclose(how.text_vectors(codes), texts.sentence, atol=1e-6)
    assert how.experts == () and how.background(codes) is None


def test_what_is_scored_beside_a_pair_does_not_count(encoder, monkeypatch):
    how, videos = similarity_for(encoder), drawn(7, encoder.dim)
    codes = how.texts(encoder.encode_texts(["red", "a green wall"]))
    whole = how.similarity(codes, how.videos(videos))
    for row in range(7):
        alone = how.similarity(codes, how.videos(rows(videos, row)))
        np.testing.assert_allclose(alone[:, 0], whole[:, row], atol=1e-5)
    parts = [how.videos(rows(videos, 0, 1, 2)), how.videos(rows(videos, 3, 4, 5, 6))]
    np.testing.assert_allclose(how.similarity(codes, how.join(parts)), whole, atol=1e-5)
    asked = [how.texts(encoder.encode_texts([text])) for text in ("red", "a green wall")]
    np.testing.assert_allclose(
        how.similarity(how.join(asked), how.videos(videos)), whole, atol=1e-5
    )
    monkeypatch.setattr("sureshot.models.similarity._VIDEOS", 3)
    np.testing.assert_allclose(how.similarity(codes, how.videos(videos)), whole, atol=1e-5)


def test_a_model_is_left_in_the_mode_it_was_in():
    model = checkpoint("xpool", "none").model.train()
    how, texts = ModelSimilarity(model), TINY.encode_texts(["red"])
    videos = drawn(2, TINY.dim)
    first, again = (how.similarity(how.texts(texts), how.videos(videos)) for _ in range(2))
    np.testing.assert_array_equal(first, again)  # dropout would make them differ
    assert model.training and model.system.training


# --- with a bank ----------------------------------------------------------------------------------


def test_a_correction_is_one_number_a_video(encoder):
    raw, videos = similarity_for(encoder), drawn(5, encoder.dim)
    known = encoder.encode_texts(["blue", "a white wall", "zebra"])
    how = similarity_for(encoder, banked(known, drawn(2, encoder.dim, seed=4)))
    assert isinstance(how, HubCorrected)
    texts = encoder.encode_texts(["red", "a green wall"])
    plain = raw.similarity(raw.texts(texts), raw.videos(videos))
    captions = raw.similarity(raw.texts(known), raw.videos(videos))
    expected = plain - 0.5 * np.sort(captions, axis=0)[-2:].mean(0)
    codes = how.texts(texts)
    found = how.similarity(codes, how.videos(videos))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == plain.dtype
    parts = [how.videos(rows(videos, 0, 1)), how.videos(rows(videos, 2, 3, 4))]
    np.testing.assert_allclose(how.similarity(codes, how.join(parts)), expected, atol=1e-5)
    np.testing.assert_allclose(how.text_vectors(codes), raw.text_vectors(codes))
    np.testing.assert_allclose(
        how.video_vectors(how.videos(videos)), raw.video_vectors(raw.videos(videos))
    )


def test_the_videos_of_a_bank_are_scored_for_themselves(encoder):
    raw, others = similarity_for(encoder), drawn(6, encoder.dim, seed=5)
    known = encoder.encode_texts(["blue", "white"])
    bank = banked(known, others)
    codes = raw.texts(encoder.encode_texts(["red", "a green wall"]))
    scores = raw.similarity(codes, raw.videos(others)) - bank.corrections
    expected = np.sort(scores, axis=1)[:, -4:].mean(1)
    np.testing.assert_allclose(similarity_for(encoder, bank).background(codes), expected, atol=1e-5)
    without = banked(known, others.part(slice(0, 0)))
    assert similarity_for(encoder, without).background(codes) is None


def test_a_bank_of_no_weight_corrects_nothing(encoder):
    raw, videos = similarity_for(encoder), drawn(4, encoder.dim)
    known = encoder.encode_texts(["blue", "white"])
    how = similarity_for(encoder, banked(known, videos, weight=0.0))
    codes = raw.texts(known)
    np.testing.assert_array_equal(
        how.similarity(codes, how.videos(videos)), raw.similarity(codes, raw.videos(videos))
    )
    assert how.background(codes) is not None
