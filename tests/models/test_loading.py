"""Models by name: encoders, checkpoints, and what is neither."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sureshot
from sureshot.errors import ModelError
from sureshot.models.checkpoint import CONFIG
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.hub_bank import Bank
from sureshot.models.load import Retriever, load, load_searchable
from sureshot.models.systems.base import known_systems
from tests.trained import FRAMES, checkpoint, saved

both = pytest.mark.parametrize("read", [load, load_searchable])


def test_it_is_what_the_package_calls_load():
    assert sureshot.load is load


def test_an_encoder_alone():
    scorer = load("tiny")
    assert (scorer.model, scorer.system, scorer.encoder_name) == (None, "encoder", "tiny")
    assert (scorer.frames, scorer.trained_on, dict(scorer.recipe)) == (12, "", {})
    assert scorer.searchable is scorer.encoder and scorer.bank is None
    assert isinstance(load_searchable("tiny"), TinyEncoder)


def test_a_checkpoint(tmp_path):
    folder = saved(tmp_path / "model", "duq", "linear")
    scorer = load(folder, "cpu")
    assert (scorer.system, scorer.encoder_name, scorer.frames) == ("duq", "tiny", FRAMES)
    assert isinstance(scorer.searchable, Retriever) and scorer.searchable.name == str(folder)
    assert isinstance(load_searchable(folder, "cpu"), Retriever)


def test_a_model_that_compares_more_than_frames_makes_no_index(tmp_path):
    folder = saved(tmp_path / "model", "ce", "linear")
    scorer = load(folder, "cpu")
    assert scorer.searchable is None
    for refused in (lambda: load_searchable(folder), lambda: scorer.fingerprint):
        with pytest.raises(ModelError, match=r"of the system ce, which compares more.*no index"):
            refused()


def test_names_of_encoders_mean_them_whatever_lies_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "tiny", "clip4clip", "none")
    assert load("tiny").system == "encoder"
    assert load("./tiny").system == "clip4clip"


def test_it_computes_where_it_is_told_to(tmp_path):
    folder = saved(tmp_path / "model", "duq", "none")
    scorer = load(folder)
    assert scorer.device == load_searchable(folder).device == scorer.searchable.device
    assert next(scorer.model.parameters()).device.type == scorer.device.split(":")[0]
    assert load(folder, "cpu").device == "cpu"


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


@pytest.mark.parametrize("name", ["load", "system", "pooled", "duc"])
def test_what_is_no_system_either_is_refused_as_a_model(name):
    with pytest.raises(ModelError, match="neither a folder nor the name of a model on the"):
        load(name)


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


@both
def test_a_device_that_is_not_there_is_refused(read, tmp_path):
    model = saved(tmp_path / "model", "duq", "none")
    with pytest.raises(ModelError, match="Cannot compute on device 'nonsense'"):
        read(model, "nonsense")


def test_a_bank_of_another_model_is_refused(tmp_path):
    folder = saved(tmp_path / "model", "clip4clip", "none")
    tiny = TinyEncoder()
    frames, mask = tiny.encode_texts(["red"]).words, tiny.encode_texts(["red"]).mask
    bank = Bank(
        texts=tiny.encode_texts(["red"]),
        k=1,
        weight=0.5,
        frames=frames,
        mask=mask,
        corrections=frames[:, 0, 0],
        model="of another one",
        source="a test",
    )
    bank.save(folder)
    with pytest.raises(ModelError, match="made for another model than the one beside it"):
        load(folder)
    assert load_searchable(folder).name == str(folder)  # whoever indexes compares nothing


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


@pytest.mark.parametrize("name", ["a" * 5000, "a/" + "b" * 300, "/" + "c" * 300])
def test_a_name_too_long_for_a_file_is_no_model(name):
    with pytest.raises(ModelError, match=r"There is no model in|Could not load model"):
        load(name)
