"""What `sureshot.load` gives: texts and videos embedded, and scored as by hand."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sureshot.errors import ModelError, SureshotError, VideoError
from sureshot.media.sampling import sample_frames
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders.base import VideoFeatures, stack
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.models.hub_bank import Bank
from sureshot.models.load import load
from sureshot.models.systems.base import text_tokens, video_tokens
from tests.clips import coloured
from tests.models.encoders.test_clip import clip
from tests.trained import FRAMES, SYSTEMS, checkpoint, saved

TINY = TinyEncoder()
TEXTS = ("red", "a green wall", "blue and yellow")
ALL = (*SYSTEMS, "uatvr", "pcme", "tmass", "clip2video", "dvtr")


@pytest.fixture(scope="module")
def videos(tmp_path_factory) -> list[Path]:
    """Two files, a folder of frames and a photo."""
    folder = tmp_path_factory.mktemp("videos")
    coloured(folder / "red.mp4", ["red"], seconds=1.0, rate=4)
    coloured(folder / "two.mp4", ["green", "blue"], rate=5)
    (folder / "frames").mkdir()
    for number, colour in enumerate(("yellow", "yellow", "magenta")):
        Image.new("RGB", (32, 24), COLOURS[colour]).save(folder / "frames" / f"{number}.png")
    Image.new("RGB", (32, 24), COLOURS["white"]).save(folder / "white.png")
    return [folder / name for name in ("red.mp4", "two.mp4", "frames", "white.png")]


def seen(path: Path, frames: int) -> VideoFeatures:
    """One video as the tiny encoder sees it."""
    images = sample_frames(path, frames, TINY.frame_size)
    return stack([TINY.encode_frames(TINY.prepare(images))])


def by_hand(folder: Path, videos: list[Path]) -> np.ndarray:
    """The score of each text and each video alone, from the checkpoint."""
    model = Checkpoint.from_pretrained(folder).model
    scores = np.zeros((len(TEXTS), len(videos)))
    with torch.no_grad():
        for row, text in enumerate(TEXTS):
            asked = model.texts(text_tokens(TINY.encode_texts([text])))
            for column, path in enumerate(videos):
                shown = model.videos(video_tokens(seen(path, FRAMES)))
                scores[row, column] = model.system.similarity(asked, shown).item()
    return scores


def test_an_encoder_alone_scores_by_the_mean_of_frames(videos):
    model = load("tiny")
    texts, embedded = model.embed_texts(TEXTS), model.embed_videos(videos)
    assert (len(texts), len(embedded)) == (3, 4)
    found = model.similarity(texts, embedded)
    for column, path in enumerate(videos):
        mean = seen(path, 12).frames[0].mean(0)
        expected = TINY.encode_texts(TEXTS).sentence @ mean / np.linalg.norm(mean)
        np.testing.assert_allclose(found[:, column], expected, atol=1e-5)
    np.testing.assert_allclose(texts.vectors @ embedded.vectors.T, found, atol=1e-6)
    assert found[0].argmax() == 0 and found[1].argmax() == 1


@pytest.mark.parametrize("system", ALL)
def test_a_checkpoint_scores_all_pairs_as_it_scores_one(tmp_path, videos, system):
    folder = saved(tmp_path / "model", system, "linear")
    model = load(folder, "cpu")
    texts, embedded = model.embed_texts(TEXTS), model.embed_videos(videos)
    found, expected = model.similarity(texts, embedded), by_hand(folder, videos)
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-5)
    assert expected.std() > 1e-3
    for side in (texts, embedded):
        np.testing.assert_allclose(np.linalg.norm(side.vectors, axis=1), 1, atol=1e-5)


def test_how_many_are_coded_at_once_does_not_count(tmp_path, videos, monkeypatch):
    model = load(saved(tmp_path / "model", "uatvr", "linear"), "cpu")
    whole = model.similarity(model.embed_texts(TEXTS), model.embed_videos(videos))
    monkeypatch.setattr("sureshot.models.load._TEXTS", 1)
    monkeypatch.setattr("sureshot.models.load._VIDEOS", 3)
    parts = model.similarity(model.embed_texts(TEXTS), model.embed_videos(videos))
    np.testing.assert_allclose(parts, whole, atol=1e-5)


def test_a_folder_of_a_clip(tmp_path, videos):
    model = load(clip(tmp_path / "clip").folder, "cpu")
    found = model.similarity(model.embed_texts(TEXTS), model.embed_videos(videos))
    assert found.shape == (3, 4) and np.isfinite(found).all() and found.std() > 1e-4


@pytest.mark.parametrize("name", ["tiny", "xpool"])
def test_scores_are_those_of_a_search_unless_told_otherwise(tmp_path, videos, name):
    folder = saved(tmp_path / "model", name, "linear") if name != "tiny" else Path("tiny")
    plain = load(str(folder), "cpu")
    stored = plain.searchable
    known = stored.encode_texts(["white", "a magenta wall", "black"])
    frames, mask = np.ones((2, 1, stored.dim), np.float32), np.ones((2, 1), bool)
    bank = Bank(
        texts=known,
        k=2,
        weight=0.5,
        frames=frames,
        mask=mask,
        corrections=np.zeros(2, np.float32),
        model=stored.fingerprint,
        source="a test",
    )
    if name == "tiny":
        model = dataclasses.replace(plain, bank=bank)
    else:
        bank.save(folder)
        model = load(folder, "cpu")
    texts, embedded = model.embed_texts(TEXTS), model.embed_videos(videos)
    raw = plain.similarity(plain.embed_texts(TEXTS), plain.embed_videos(videos))
    uncorrected = model.similarity(texts, embedded, corrected=False)
    np.testing.assert_allclose(uncorrected, raw, atol=1e-5)
    captions = plain.embed_texts(["white", "a magenta wall", "black"])
    hubs = plain.similarity(captions, plain.embed_videos(videos))
    expected = raw - 0.5 * np.sort(hubs, axis=0)[-2:].mean(0)
    np.testing.assert_allclose(model.similarity(texts, embedded), expected, atol=1e-3)  # 16 bits
    assert np.abs(expected - raw).max() > 1e-2


# --- experts --------------------------------------------------------------------------------------


@pytest.fixture
def ce(tmp_path) -> Path:
    folder = tmp_path / "ce"
    checkpoint("ce", "linear", experts={"audio": 5}).save_pretrained(folder)
    return folder


def test_a_model_of_experts_reads_them_from_a_folder(ce, tmp_path, videos):
    (tmp_path / "experts" / "audio").mkdir(parents=True)
    draw = np.random.default_rng(0)
    for path in videos[:3]:  # the last one has none
        rows = draw.normal(size=(2, 5)).astype(np.float32)
        np.save(tmp_path / "experts" / "audio" / f"{path.stem}.npy", rows)
    model = load(ce, "cpu")
    assert model.experts == ("audio",) and model.searchable is None
    embedded = model.embed_videos(videos, experts=tmp_path / "experts")
    found = model.similarity(model.embed_texts(TEXTS), embedded)
    assert found.shape == (3, 4) and np.isfinite(found).all() and found.std() > 1e-3


def test_a_model_of_experts_asks_for_them(ce, tmp_path, videos):
    model = load(ce, "cpu")
    with pytest.raises(ModelError, match="was trained on the experts audio; name the folder"):
        model.embed_videos(videos)
    with pytest.raises(SureshotError, match="There is no folder of experts"):
        model.embed_videos(videos, experts=tmp_path / "none")


# --- what cannot be read --------------------------------------------------------------------------


def test_a_video_that_cannot_be_read_is_named(videos, tmp_path):
    model = load("tiny")
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"nothing")
    with pytest.raises(VideoError, match=rf"{broken} is not a video, or is damaged"):
        model.embed_videos([videos[0], broken])
    with pytest.raises(VideoError, match=rf"There is no video at {tmp_path}/gone.mp4\."):
        model.embed_videos([str(tmp_path / "gone.mp4")])


# --- what is known of a model ---------------------------------------------------------------------


def test_the_sets_it_was_trained_on_are_named_once_each(tmp_path):
    recipe = {"train": [{"dataset": name} for name in ("msrvtt", "pairs", "msrvtt")]}
    checkpoint("xpool", "none", recipe=recipe).save_pretrained(tmp_path / "model")
    assert load(tmp_path / "model").trained_on == "msrvtt + pairs"


def test_the_experts_it_was_trained_on_are_those_of_its_model(ce, tmp_path):
    assert load("tiny").experts == ()
    assert load(ce, "cpu").experts == ("audio",)
    checkpoint("ce", "none").save_pretrained(tmp_path / "none")
    assert load(tmp_path / "none", "cpu").experts == ()


def test_a_scorer_stays_as_it_is():
    with pytest.raises(dataclasses.FrozenInstanceError):
        load("tiny").name = "other"


def test_a_fingerprint_is_that_of_an_index_of_the_model(tmp_path):
    scorer = load(saved(tmp_path / "model", "xpool", "linear"), "cpu")
    assert scorer.fingerprint == scorer.searchable.fingerprint != scorer.encoder.fingerprint
    assert load("tiny").fingerprint == TINY.fingerprint


def test_the_scale_is_the_learned_one(tmp_path):
    folder = saved(tmp_path / "model", "clip4clip", "linear")
    learned = Checkpoint.from_pretrained(folder).model.system.log_scale.item()
    assert load(folder, "cpu").scale == pytest.approx(np.exp(learned))
    assert load("tiny").scale is None
