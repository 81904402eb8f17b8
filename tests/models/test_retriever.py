"""A trained model in place of an encoder: the real commands, then scores by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from sureshot.cli.app import run
from sureshot.errors import ModelError, StoreError
from sureshot.library.search import open_index
from sureshot.models.checkpoint import CONFIG, Checkpoint
from sureshot.models.encoders.base import Encoder, FrameFeatures, VideoFeatures
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.hub_bank import FILE as BANK
from sureshot.models.hub_bank import Bank
from sureshot.models.load import load_searchable
from sureshot.models.systems.base import VideoTokens, text_tokens
from sureshot.research.training.hub_correction import encode_captions
from sureshot.store.index import Store
from tests.clips import coloured
from tests.trained import FRAMES, SYSTEMS, WIDTH, checkpoint, saved

TINY = TinyEncoder()
MODELS = [(system, kind) for system in SYSTEMS for kind in ("none", "linear")]
QUERIES = ("a red wall", "green", "blue and yellow", "a dog on a white beach")


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    coloured(folder / "red.mp4", ["red"], rate=5)
    coloured(folder / "scenes.mp4", ["green", "blue", "white"], rate=5)
    coloured(folder / "yellow.mp4", ["yellow", "magenta"], rate=5)
    return folder


@pytest.fixture(scope="module", params=MODELS, ids="-".join)
def indexed(
    request: pytest.FixtureRequest, videos: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """An index by each kind of model, and the folder of that model."""
    place = tmp_path_factory.mktemp("index")
    model = saved(place / "model", *request.param)
    index(place / "db", model, videos)
    return str(place / "db"), model


def index(db: Path, model: Path, *paths: Path, options: tuple[str, ...] = ()) -> None:
    command = ["index", *map(str, paths), "--db", str(db), "--model", str(model), *options]
    assert run([*command, "--workers", "1"]) == 0


def tokens(frames: np.ndarray) -> VideoTokens:
    """One video of these frames, as its stem gave them."""
    whole = torch.from_numpy(frames)[None].float()
    nothing = torch.zeros(1, len(frames), 0, frames.shape[1]), torch.zeros(1, len(frames), 0)
    return VideoTokens(whole, *nothing, torch.ones(1, len(frames), dtype=torch.bool))


def by_hand(model: Path, query: str, frames: np.ndarray) -> float:
    """The score of a sentence and one video, from the checkpoint alone."""
    read = Checkpoint.from_pretrained(model).model
    with torch.no_grad():
        texts = read.texts(text_tokens(TINY.encode_texts([query])))
        return read.system.similarity(texts, read.system.videos(tokens(frames))).item()


# --- through the commands -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", [QUERIES[0], *(pytest.param(query, marks=pytest.mark.slow) for query in QUERIES[1:])]
)
def test_the_ranking_is_that_of_the_similarity_on_the_stored_tokens(indexed, query):
    db, model = indexed
    store = Store.open(db)
    scored = []
    for record in store.videos():
        windows = store.windows_of(record.path)
        for row in range(len(windows.keys)):
            frames = windows.frames[row][windows.mask[row]]
            scored.append((by_hand(model, query, frames), record.path, windows.start[row]))
    scored.sort(reverse=True)
    assert len(scored) == 6
    assert scored[0][0] - scored[-1][0] > 1e-3
    found = open_index(db).search(query, per_video=9, fold=False)
    best = {}
    for score, path, start in scored:
        (hit,) = [h for h in found if h.path == path and h.start <= start < h.end]
        best.setdefault((hit.path, hit.start), score)
    expected = sorted(best.values(), reverse=True)
    assert [hit.score for hit in found] == pytest.approx(expected, abs=1e-5)
    own = [best[hit.path, hit.start] for hit in found]
    assert [hit.score for hit in found] == pytest.approx(own, abs=1e-5)


def test_a_model_with_a_hub_correction_is_searched_by_it(indexed):
    db, model = indexed
    plain = open_index(db).search("red", k=9, per_video=9, fold=False)
    encoder = load_searchable(str(model))
    needs = encoder._model.system.reads_words
    captions = encode_captions(encoder, ["a red wall", "green", "blue"], needs)
    store = Store.open(db)
    windows = [store.windows_of(record.path) for record in store.videos()]
    frames, mask = windows[1].frames[:2], windows[1].mask[:2]
    corrections = np.array([0.1, 0.0], np.float32)
    Bank(captions, 2, 0.5, frames, mask, corrections, encoder.fingerprint, "a test").save(model)
    try:
        searcher = open_index(db)
        seen = [by_hand(model, "red", f[m]) for f, m in zip(frames, mask, strict=True)]
        apart = (seen[0] - 0.1 + seen[1]) / 2
        assert searcher.rivals("red").about.background[0] == pytest.approx(apart, abs=1e-3)
        found = searcher.search("red", k=9, per_video=9, fold=False)
        assert found.warnings == plain.warnings
        for hit in found:
            windows = searcher.store.windows_of(hit.path)
            expected = []
            for row in range(len(windows.keys)):
                if hit.start <= windows.start[row] < hit.end:
                    frames = windows.frames[row][windows.mask[row]]
                    bank = [
                        by_hand(model, text, frames) for text in ("a red wall", "green", "blue")
                    ]
                    off = 0.5 * np.mean(sorted(bank)[-2:])
                    expected.append(by_hand(model, "red", frames) - off)
            assert hit.score == pytest.approx(max(expected), abs=3e-3)
        every = searcher.all_scores(["red", "green"] * 40)
        np.testing.assert_allclose(every.background[::2], apart, atol=1e-3)
        for path in set(every.paths):
            row = [
                score for score, of in zip(every.scores[0], every.paths, strict=True) if of == path
            ]
            best = max(hit.score for hit in found if hit.path == path)
            assert max(row) == pytest.approx(best, abs=1e-5)
        assert [h.score for h in found] != pytest.approx([h.score for h in plain], abs=1e-3)
    finally:
        (model / BANK).unlink()


def test_each_frame_is_scored_as_a_video_of_its_own(indexed):
    db, model = indexed
    hit = open_index(db).search("red", k=1)[0]
    windows = Store.open(db).windows_of(hit.path)
    for frame in hit.frames:
        (place,) = np.argwhere(windows.mask & (np.abs(windows.times - frame.time) < 1e-6))
        alone = windows.frames[tuple(place)][None]
        assert frame.score == pytest.approx(by_hand(model, "red", alone), abs=1e-5)


def test_the_commands_search_describe_and_find_alike(indexed, videos, capsys):
    db, model = indexed
    capsys.readouterr()
    assert run(["search", "red", "--db", db, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == str(model)
    assert (told["searched"], len(told["hits"]) > 0) == (6, True)
    assert run(["search", "--like", str(videos / "red.mp4"), "--db", db, "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert {Path(hit["path"]).stem for hit in hits} == {"scenes", "yellow"}
    assert all(-1.001 < hit["score"] < 1.001 for hit in hits)


def test_sentences_are_ranked_by_the_trained_score(indexed, videos):
    db, model = indexed
    searcher = open_index(db)
    windows = searcher.store.windows_of(videos / "red.mp4")
    assert windows.mask.all()
    found = searcher.describe(videos / "red.mp4", QUERIES)
    for sentence in found:
        expected = by_hand(model, sentence.text, windows.frames[0])
        assert sentence.score == pytest.approx(expected, abs=1e-5)
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)


# --- one model, one index -------------------------------------------------------------------------


@pytest.fixture
def duq(tmp_path: Path, videos: Path) -> tuple[str, Path]:
    model = saved(tmp_path / "model", "duq", "linear")
    index(tmp_path / "db", model, videos / "red.mp4")
    return str(tmp_path / "db"), model


def test_a_query_by_another_model_is_refused(duq, tmp_path):
    db, model = duq
    other = saved(tmp_path / "other", "duq", "linear", seed=1)
    with pytest.raises(StoreError, match=rf"by the model '{model}', not by '{other}'.*`model="):
        open_index(db, model=str(other))
    with pytest.raises(StoreError, match=rf"by the model '{model}', not by 'tiny'"):
        open_index(db, model="tiny")


def test_a_model_that_was_trained_again_in_its_place_is_another_version(duq):
    db, model = duq
    saved(model, "duq", "linear", seed=1)
    with pytest.raises(StoreError, match="another version of the model") as refused:
        open_index(db)
    assert "model=" not in str(refused.value)


def test_a_model_that_moved_is_found_by_its_new_folder(duq, tmp_path, videos):
    db, model = duq
    before = open_index(db).search("red")
    moved = model.rename(tmp_path / "moved")
    with pytest.raises(ModelError, match=rf"no model in {model}.*name its folder with `model=`"):
        open_index(db)
    assert open_index(db, model=str(moved)).search("red").hits == before.hits
    index(Path(db), moved, videos)
    assert open_index(db, model=str(moved)).search("red").searched == 6


def test_a_new_index_samples_as_many_frames_as_the_model_was_trained_with(duq, videos, tmp_path):
    db, model = duq
    assert Store.open(db).settings.frames == FRAMES
    index(tmp_path / "other", model, videos / "red.mp4", options=("--frames", "3"))
    assert Store.open(tmp_path / "other").settings.frames == 3
    index(tmp_path / "other", model, videos / "yellow.mp4", options=("--frames", "3"))
    with pytest.raises(AssertionError):  # an index is asked for what it has
        index(tmp_path / "other", model, videos, options=("--frames", "6"))


def test_the_card_is_no_part_of_the_fingerprint_but_settings_are(tmp_path):
    model = saved(tmp_path / "model", "duq", "linear")
    before = load_searchable(model).fingerprint
    rewrite(model, lambda config: config.update(note="Better than ever.", scores={"r1": 99.0}))
    assert load_searchable(model).fingerprint == before
    rewrite(model, lambda config: config["system"].update(closeness=0.25))
    assert load_searchable(model).fingerprint != before


# --- what is loaded -------------------------------------------------------------------------------


def rewrite(folder: Path, change) -> None:
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    change(config)
    (folder / CONFIG).write_text(json.dumps(config), "utf-8")


def test_a_checkpoint_is_an_encoder_that_scores(tmp_path):
    model = load_searchable(saved(tmp_path / "model", "xpool", "linear"), "cpu")
    assert isinstance(model, Encoder)
    assert (model.dim, model.channels, model.frame_size) == (WIDTH, TINY.channels, 16)
    assert model.latin_only
    texts = model.encode_texts(["red", "a red wall"])
    assert texts.words.shape == (2, 3, WIDTH)
    assert not texts.words[0, 1:].any()
    np.testing.assert_allclose(
        np.linalg.norm(model.text_vectors(model.texts(texts)), axis=1), 1, rtol=1e-5
    )


def test_a_stem_without_words_gives_none(tmp_path):
    checkpoint("xpool", "linear", words=False).save_pretrained(tmp_path / "model")
    model = load_searchable(tmp_path / "model")
    features = model.encode_texts(["a red wall"])
    assert features.words.shape == (1, 3, WIDTH)
    assert not features.words.any()
    videos = VideoFeatures.of_frames(np.ones((2, 1, WIDTH), np.float32), np.ones((2, 1), bool))
    assert np.isfinite(model.similarity(model.texts(features), model.videos(videos))).all()


def test_a_damaged_checkpoint_makes_no_index(tmp_path, videos, capsys):
    model = saved(tmp_path / "model", "duq", "none")
    (model / "model.safetensors").write_bytes(b"cut off")
    code = run(["index", str(videos), "--db", str(tmp_path / "db"), "--model", str(model)])
    assert code == 1
    assert f"The weights of {model} cannot be read" in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "db").exists()


def test_frames_go_through_the_stem_one_by_one(tmp_path):
    model = load_searchable(saved(tmp_path / "model", "duq", "linear"))
    pictures = np.random.default_rng(0).integers(0, 256, (5, 20, 30, 3), np.uint8)
    prepared = model.prepare(pictures)
    whole = model.encode_frames(prepared)
    assert isinstance(whole, FrameFeatures)
    for number in range(5):
        alone = model.encode_frames(prepared[[number]])
        np.testing.assert_allclose(alone.frames[0], whole.frames[number], atol=1e-5)
    np.testing.assert_array_equal(whole.backbone, TINY.encode_frames(prepared).backbone)
