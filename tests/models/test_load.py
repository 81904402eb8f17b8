"""Models by name: encoders, checkpoints, and what is neither."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sureshot.cli.app import run
from sureshot.errors import ArgumentError, ModelError, StoreError, SureshotError, VideoError
from sureshot.library.search import open_index
from sureshot.media.sampling import sample_frames
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders.base import VideoFeatures, stack
from sureshot.models.encoders.small import SmallEncoder
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.models.hub_bank import Bank
from sureshot.models.huggingface import CONFIG
from sureshot.models.load import load, load_searchable
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import (
    Sizes,
    VideoTokens,
    known_systems,
    load_system,
    text_tokens,
    video_tokens,
)
from sureshot.store.index import Store
from tests.clips import coloured
from tests.models.encoders.test_clip import clip
from tests.trained import FRAMES, SYSTEMS, checkpoint, saved

both = pytest.mark.parametrize("read", [load, load_searchable])


def test_an_encoder_alone():
    scorer = load("tiny")
    assert (scorer.model, scorer.system, scorer.encoder_name) == (None, "encoder", "tiny")
    assert (scorer.frames, scorer.trained_on, dict(scorer.recipe)) == (12, "", {})
    assert scorer.searchable is scorer.encoder and scorer.bank is None
    assert isinstance(load_searchable("tiny"), TinyEncoder)


def test_a_model_that_compares_more_than_frames_makes_no_index(tmp_path):
    folder = saved(tmp_path / "model", "ce", "linear")
    scorer = load(folder, "cpu")
    assert scorer.searchable is None
    assert scorer.scale is None  # its loss has a margin
    assert load(saved(tmp_path / "pcme", "pcme", "linear"), "cpu").scale is None  # a steepness
    for refused in (lambda: load_searchable(folder), lambda: scorer.fingerprint):
        with pytest.raises(ModelError, match=r"of the system ce, which compares more.*no index"):
            refused()


def test_what_two_models_made_is_not_compared(tmp_path):
    """Vectors of one width would give a number that means nothing."""
    made = [saved(tmp_path / f"m{seed}", "clip4clip", "linear", seed=seed) for seed in (0, 1)]
    one, other = (load(folder, "cpu") for folder in made)
    red = coloured(tmp_path / "red.mp4", ["red"])
    texts, videos = one.encode_query("red"), other.encode_document(red)
    assert one.similarity(texts, one.encode_document(red)).shape == (1, 1)
    with pytest.raises(ArgumentError, match=r"similarity of .*m0 compares what it has"):
        one.similarity(texts, videos)
    assert max(len(repr(shown)) for shown in (one, texts, videos)) < 200
    same = load(f"{made[0]}/../m0", "cpu")  # by another name
    assert same.similarity(texts, one.encode_document(red)).shape == (1, 1)
    for refused in (["red", " "], ["red", None], None, 5):
        with pytest.raises(ArgumentError, match="is no text to encode; give a sentence"):
            one.encode_query(refused)
    with pytest.raises(ArgumentError, match="None is not a path; give text or a Path"):
        one.encode_document([red, None])


# --- what is refused ------------------------------------------------------------------------------


@both
def test_a_system_is_no_model(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("duq", "dvtr", "ce"):
        with pytest.raises(ModelError) as refused:
            read(name)
        assert str(refused.value) == (
            f"{name} is a retrieval system, which has no weights before it is trained. Train it by "
            f"a recipe, such as `sureshot train recipes/{name}.toml`, or name the folder of a "
            f"checkpoint."
        )
    saved(tmp_path / "duq", "xpool", "none")  # a folder of that name is one
    assert load("duq").system == "xpool"


@both
def test_an_absolute_folder_that_is_gone_is_told_as_such(read, tmp_path):
    with pytest.raises(ModelError, match=rf"There is no model in {tmp_path}/gone. If it has moved"):
        read(tmp_path / "gone")


@both
def test_a_checkpoint_whose_encoder_has_changed_is_refused(read, tmp_path, monkeypatch):
    model = saved(tmp_path / "model", "duq", "none")
    monkeypatch.setattr(TinyEncoder, "fingerprint", "0" * 64)
    with pytest.raises(ModelError, match=rf"{model} was .* another version of the encoder 'tiny'"):
        read(model)


@both
def test_a_checkpoint_whose_encoder_is_gone_is_refused(read, tmp_path):
    model = saved(tmp_path / "model", "duq", "none")
    config = json.loads((model / CONFIG).read_text("utf-8"))
    config["encoder"]["name"] = "/gone/clip"
    (model / CONFIG).write_text(json.dumps(config), "utf-8")
    with pytest.raises(ModelError, match=rf"{model} needs the encoder '/gone/clip'.*neither"):
        read(model)


# --- what is imported -----------------------------------------------------------------------------


def loaded(code: str, *names: str) -> list[str]:
    """Which of some modules a fresh process has imported after it ran some code."""
    program = f"import sys; {code}; print(*(name for name in {names!r} if name in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return ran.stdout.split()


def test_an_encoder_alone_needs_neither_torch_nor_a_decoder():
    code = (
        "from sureshot.models.similarity import similarity_for; import sureshot; "
        "m = sureshot.load('tiny'); "
        "similarity_for(m.searchable).texts(m.encoder.encode_texts(['red']))"
    )
    assert loaded(code, "torch", "av") == []


def test_a_checkpoint_imports_its_own_system_alone(tmp_path: Path):
    checkpoint("clip4clip", "none").save_pretrained(tmp_path / "model")
    modules = [f"sureshot.models.systems.{name}" for name in known_systems()]
    code = f"import sureshot; sureshot.load({str(tmp_path / 'model')!r}, 'cpu')"
    assert loaded(code, *modules) == ["sureshot.models.systems.clip4clip"]


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
    texts, embedded = model.encode_query(TEXTS), model.encode_document(videos)
    assert (len(texts), len(embedded)) == (3, 4)
    found = model.similarity(texts, embedded)
    for column, path in enumerate(videos):
        mean = seen(path, 12).frames[0].mean(0)
        expected = TINY.encode_texts(TEXTS).sentence @ mean / np.linalg.norm(mean)
        np.testing.assert_allclose(found[:, column], expected, atol=1e-5)
    np.testing.assert_allclose(texts.vectors @ embedded.vectors.T, found, atol=1e-6)
    with pytest.raises(ArgumentError, match="here are videos and texts"):
        model.similarity(embedded, texts)
    with pytest.raises(ArgumentError, match=r"encode_query and encode_.* are texts and NoneType"):
        model.similarity(texts, None)
    assert found[0].argmax() == 0 and found[1].argmax() == 1


@pytest.mark.parametrize("system", ALL)
def test_a_checkpoint_scores_all_pairs_as_it_scores_one(tmp_path, videos, system):
    folder = saved(tmp_path / "model", system, "linear")
    model = load(folder, "cpu")
    texts, embedded = model.encode_query(TEXTS), model.encode_document(videos)
    found, expected = model.similarity(texts, embedded), by_hand(folder, videos)
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-5)
    assert expected.std() > 1e-3
    for side in (texts, embedded):
        np.testing.assert_allclose(np.linalg.norm(side.vectors, axis=1), 1, atol=1e-5)


def test_the_folder_of_a_run_is_told_from_its_model(tmp_path):
    saved(tmp_path / "run" / "model", "clip4clip", "linear")
    with pytest.raises(ModelError, match=r"is the folder of a run; its model is .*run.model\.$"):
        load(tmp_path / "run")


@pytest.mark.parametrize("system", ["duq", "duq_released"])
def test_a_checkpoint_sees_as_many_cells_as_in_training(tmp_path, videos, system):
    small = SmallEncoder(device="cpu")
    sizes = Sizes(small.dim, small.channels)
    model = Model(Stem(StemConfig(kind="none"), sizes), load_system({"name": system}, sizes))
    note = EncoderNote("small", small.fingerprint, FRAMES, small.dim, small.channels, {})
    Checkpoint(model, note, {"name": system}).save_pretrained(tmp_path / "model")
    scorer = load(tmp_path / "model", "cpu")
    cells = scorer._features(videos, None).patches.shape[2]
    assert cells == (16 if system == "duq_released" else 0)


def test_a_folder_of_a_clip(tmp_path, videos):
    model = load(clip(tmp_path / "clip").folder, "cpu")
    found = model.similarity(model.encode_query(TEXTS), model.encode_document(videos))
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
    texts, embedded = model.encode_query(TEXTS), model.encode_document(videos)
    raw = plain.similarity(plain.encode_query(TEXTS), plain.encode_document(videos))
    uncorrected = model.similarity(texts, embedded, corrected=False)
    np.testing.assert_allclose(uncorrected, raw, atol=1e-5)
    captions = plain.encode_query(["white", "a magenta wall", "black"])
    hubs = plain.similarity(captions, plain.encode_document(videos))
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
    embedded = model.encode_document(videos, experts=tmp_path / "experts")
    found = model.similarity(model.encode_query(TEXTS), embedded)
    assert found.shape == (3, 4) and np.isfinite(found).all() and found.std() > 1e-3


def test_a_model_of_experts_asks_for_them(ce, tmp_path, videos):
    model = load(ce, "cpu")
    with pytest.raises(ArgumentError, match="was trained on the experts audio; name the folder"):
        model.encode_document(videos)
    with pytest.raises(SureshotError, match="There is no folder of experts"):
        model.encode_document(videos, experts=tmp_path / "none")
    with pytest.raises(ArgumentError, match="tiny reads no experts; leave out"):
        load("tiny", "cpu").encode_document(videos, experts=tmp_path)


# --- what cannot be read --------------------------------------------------------------------------


def test_a_video_that_cannot_be_read_is_named(videos, tmp_path):
    model = load("tiny")
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"nothing")
    with pytest.raises(VideoError, match=rf"{broken} is not a video, or is damaged"):
        model.encode_document([videos[0], broken])
    with pytest.raises(VideoError, match=rf"There is no video at {tmp_path}/gone.mp4\."):
        model.encode_document([str(tmp_path / "gone.mp4")])
    with pytest.raises(VideoError, match="There is no video at xxx"):
        model.encode_document("x" * 5000)
    with pytest.raises(ArgumentError, match=r"^b'a\.mp4' is not a path"):
        model.encode_document(b"a.mp4")


# --- what is known of a model ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def videos_retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    coloured(folder / "red.mp4", ["red"], rate=5)
    coloured(folder / "scenes.mp4", ["green", "blue", "white"], rate=5)
    coloured(folder / "yellow.mp4", ["yellow", "magenta"], rate=5)
    return folder


def index(db: Path, model: Path, *paths: Path, options: tuple[str, ...] = ()) -> None:
    command = ["index", *map(str, paths), "--db", str(db), "--model", str(model), *options]
    assert run([*command, "--workers", "1"]) == 0


def tokens(frames: np.ndarray) -> VideoTokens:
    """One video of these frames, as its stem gave them."""
    whole = torch.from_numpy(frames)[None].float()
    nothing = torch.zeros(1, len(frames), 0, frames.shape[1]), torch.zeros(1, len(frames), 0)
    return VideoTokens(whole, *nothing, torch.ones(1, len(frames), dtype=torch.bool))


def by_hand_retriever(model: Path, query: str, frames: np.ndarray) -> float:
    """The score of a sentence and one video, from the checkpoint alone."""
    read = Checkpoint.from_pretrained(model).model
    with torch.no_grad():
        texts = read.texts(text_tokens(TINY.encode_texts([query])))
        return read.system.similarity(texts, read.system.videos(tokens(frames))).item()


# --- through the commands -------------------------------------------------------------------------


def test_each_frame_is_scored_as_a_video_of_its_own(duq):
    db, model = duq
    hit = open_index(db).search("red", limit=1)[0]
    windows = Store.open(db).windows_of(hit.path)
    for frame in hit.frames:
        (place,) = np.argwhere(windows.mask & (np.abs(windows.times - frame.time) < 1e-6))
        alone = windows.frames[tuple(place)][None]
        assert frame.score == pytest.approx(by_hand_retriever(model, "red", alone), abs=1e-5)


# --- one model, one index -------------------------------------------------------------------------


@pytest.fixture
def duq(tmp_path: Path, videos_retriever: Path) -> tuple[str, Path]:
    model = saved(tmp_path / "model", "duq", "linear")
    index(tmp_path / "db", model, videos_retriever / "red.mp4")
    return str(tmp_path / "db"), model


def test_a_model_that_was_trained_again_in_its_place_is_another_version(duq):
    db, model = duq
    saved(model, "duq", "linear", seed=1)
    with pytest.raises(StoreError, match="another version of the model") as refused:
        open_index(db)
    assert "model=" not in str(refused.value)


def test_a_model_that_moved_is_found_by_its_new_folder(duq, tmp_path, videos_retriever):
    db, model = duq
    before = open_index(db).search("red")
    moved = model.rename(tmp_path / "moved")
    with pytest.raises(ModelError, match=rf"no model in {model}.*name its folder with --model"):
        open_index(db)
    assert open_index(db, model=str(moved)).search("red").hits == before.hits
    index(Path(db), moved, videos_retriever)
    assert open_index(db, model=str(moved)).search("red").searched == 6


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


@pytest.mark.parametrize("kind", ["tiny", "small", "bundled"])
def test_a_folder_that_calls_itself_built_in_is_not_taken_for_it(kind, tmp_path):
    (tmp_path / CONFIG).write_text(json.dumps({"model_type": kind}))
    with pytest.raises(ModelError, match=f"Could not load the model in .*type is {kind}"):
        load_searchable(str(tmp_path), "cpu")
