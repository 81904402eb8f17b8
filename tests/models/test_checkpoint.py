"""A model that was saved is the model that is read, and nothing else is taken for one."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sureshot.errors import ModelError, SureshotError
from sureshot.models.checkpoint import FORMAT, Checkpoint
from sureshot.models.encoders.base import FrameFeatures, stack
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.huggingface import CONFIG, ENCODER, README, WEIGHTS, is_checkpoint
from sureshot.models.systems.base import text_tokens, video_tokens
from tests.models.encoders.test_clip import clip
from tests.trained import SYSTEMS, checkpoint

TINY = TinyEncoder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    checkpoint("duq", "linear").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def scores(model: torch.nn.Module, seed: int = 5) -> torch.Tensor:
    """Of some sentences and some videos of noise."""
    draw = torch.Generator().manual_seed(seed)

    def noise(*shape: int):
        return torch.randn(*shape, generator=draw).numpy()

    sizes = (TINY.dim, TINY.channels)
    videos = [
        FrameFeatures(noise(n, sizes[0]), noise(n, 4, sizes[0]), noise(n, sizes[1]))
        for n in (1, 3, 2)
    ]
    texts = TINY.encode_texts(["a red wall", "blue"])
    with torch.no_grad():
        found: torch.Tensor = model.system.similarity(
            model.texts(text_tokens(texts)), model.videos(video_tokens(stack(videos)))
        )
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rewrite(folder: Path, change) -> None:
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    change(config)
    (folder / CONFIG).write_text(json.dumps(config), "utf-8")


# --- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "linear"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_read_scores_bit_for_bit_like_what_was_saved(tmp_path, system, kind):
    saved = checkpoint(system, kind)
    saved.save_pretrained(tmp_path / "model")
    read = Checkpoint.from_pretrained(tmp_path / "model")
    assert not read.model.training
    assert torch.equal(scores(read.model), scores(saved.model.eval()))
    assert scores(read.model).std() > 0


def test_everything_known_of_a_model_is_kept(tmp_path):
    saved = checkpoint("xpool", "linear", recipe={"encoder": {"frames": 5}}, scores={"r1": 41.5})
    saved.save_pretrained(tmp_path / "model")
    read = Checkpoint.from_pretrained(tmp_path / "model")
    for name in ("encoder", "system", "recipe", "scores", "note"):
        assert getattr(read, name) == getattr(saved, name)
    assert read.model.stem.config == saved.model.stem.config


@pytest.mark.parametrize("kind", ["none", "linear"])
def test_a_model_is_built_again_with_its_experts(tmp_path, kind):
    made = checkpoint("ce", kind, experts={"motion": 7, "audio": 5})
    made.save_pretrained(tmp_path / "model")
    read = Checkpoint.from_pretrained(tmp_path / "model")
    assert read.encoder.experts == {"motion": 7, "audio": 5}
    assert read.model.stem.sizes.experts == (("motion", 7), ("audio", 5))
    assert read.model.system.names[-2:] == ("motion", "audio")
    assert ("cells" in read.model.system.names) == (kind == "none")
    for name, weight in made.model.state_dict().items():
        assert torch.equal(read.model.state_dict()[name], weight)


def test_a_checkpoint_replaces_the_one_before_it_and_leaves_nothing_beside_it(folder):
    second = checkpoint("duq", "linear", seed=1)
    assert not torch.equal(
        scores(second.model.eval()), scores(Checkpoint.from_pretrained(folder).model)
    )
    second.save_pretrained(folder)
    assert torch.equal(
        scores(second.model.eval()), scores(Checkpoint.from_pretrained(folder).model)
    )
    assert names(folder.parent) == ["model"]
    assert names(folder) == sorted([CONFIG, WEIGHTS, README])


def test_the_card_can_be_read_by_people_and_by_the_hub(tmp_path):
    saved = checkpoint("duq", "linear", scores={"r1": 41.5}, note="Trained on coloured walls.")
    saved.save_pretrained(tmp_path / "model")
    card = (tmp_path / "model" / README).read_text("utf-8")
    _, metadata, text = card.split("---\n", 2)
    assert "tags: [video-text-retrieval, duq]" in metadata
    assert "# duq on tiny" in text
    assert "Trained on coloured walls." in text
    assert "| r1 | 41.5 |" in text
    assert TINY.fingerprint[:16] in text
    count = sum(p.numel() for p in saved.model.parameters())
    assert f"{count:,} parameters" in text


@pytest.mark.parametrize(
    ("keep", "scores", "said"),
    [
        (None, {"epoch": 3.0, "r1": 41.5}, "On the validation set, by which its weights were"),
        ("last", {"epoch": 3.0, "r1": 41.5}, "After the last epoch, on the validation set:"),
        (None, {"epoch": 3.0}, "After the last epoch:"),  # without a validation set
    ],
)
def test_the_card_says_what_chose_the_weights(tmp_path, keep, scores, said):
    recipe = {"training": {"keep": keep}}
    checkpoint("xpool", "linear", recipe=recipe, scores=scores).save_pretrained(tmp_path / "model")
    assert f"\n\n{said}" in (tmp_path / "model" / README).read_text("utf-8")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 4, 100, -1, None])
def test_weights_that_were_cut_off_or_are_gone_are_refused(folder, length):
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).unlink()
    if length is not None:
        (folder / WEIGHTS).write_bytes(whole[:length])
    with pytest.raises(ModelError, match=rf"The weights of {folder} cannot be read.*again"):
        Checkpoint.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", -5),
        ("dim", 10**9),
        ("dim", 60_000),
        ("dim", 10**299),
        ("channels", -1),
        ("frames", 0),
        ("fps", -1.0),
        ("experts", {"motion": -3}),
        ("experts", {"motion": "many"}),
    ],
)
def test_sizes_that_no_model_has_are_refused(folder, name, value):
    rewrite(folder, lambda config: config["encoder"].update({name: value}))
    with pytest.raises(ModelError, match=rf"{CONFIG} cannot be used|not those of its {CONFIG}"):
        Checkpoint.from_pretrained(folder)


@pytest.mark.parametrize("version", [FORMAT + 1, 1000])
def test_a_newer_format_is_refused_whatever_else_it_holds(folder, version):
    (folder / CONFIG).write_text(json.dumps({"format": version, "system": {}, "stem": {}}))
    with pytest.raises(
        ModelError, match=rf"has the format {version}.*reads up to {FORMAT}.*Install"
    ):
        Checkpoint.from_pretrained(folder)


@pytest.mark.parametrize(
    "part, name", [("encoder", "colour"), ("stem", "depth"), ("system", "gama")]
)
def test_an_unknown_setting_is_named_by_its_path(folder, part, name):
    rewrite(folder, lambda config: config[part].update({name: 1}))
    with pytest.raises(SureshotError, match=rf"Unknown setting {part}\.{name}; known: "):
        Checkpoint.from_pretrained(folder)


@pytest.mark.parametrize("part", ["encoder", "stem", "system", "recipe", "scores"])
@pytest.mark.parametrize("value", [None, 5, "word", [1]])
def test_a_part_that_is_no_table_is_refused(folder, part, value):
    rewrite(folder, lambda config: config.update({part: value}))
    with pytest.raises(ModelError, match=r"is not the config of a Sureshot checkpoint"):
        Checkpoint.from_pretrained(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}'])
def test_a_config_that_is_none_is_refused(folder, text):
    (folder / CONFIG).write_text(text)
    assert not is_checkpoint(folder)
    with pytest.raises(ModelError, match=rf"{folder / CONFIG}"):
        Checkpoint.from_pretrained(folder)


# --- what lies there is safe ----------------------------------------------------------------------


@pytest.mark.parametrize("holds", ["holiday.jpg", CONFIG, WEIGHTS])
def test_a_folder_of_something_else_is_left_alone(tmp_path, holds):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / holds).write_text('{"model_type": "clip"}')
    with pytest.raises(ModelError, match="holds something else; name a new folder"):
        checkpoint("xpool", "none").save_pretrained(tmp_path / "model")
    assert (tmp_path / "model" / holds).read_text() == '{"model_type": "clip"}'
    assert names(tmp_path) == ["model"]


def test_the_calibration_of_a_checkpoint_goes_with_it(folder):
    (folder / "trust.json").write_text("{}")
    checkpoint("duq", "linear").save_pretrained(folder)
    assert not (folder / "trust.json").exists()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", [1, 2])
def test_an_interrupted_save_leaves_the_old_one(folder, monkeypatch, step, error):
    before = scores(Checkpoint.from_pretrained(folder).model)
    move, calls = os.replace, []

    def interrupted(source: Path, target: Path) -> None:
        if Path(target).parent == folder.parent or Path(source) == folder:  # not those inside
            calls.append(source)
        if len(calls) == step:
            raise error
        move(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(ModelError if isinstance(error, OSError) else KeyboardInterrupt):
        checkpoint("duq", "linear", seed=1).save_pretrained(folder)
    assert torch.equal(scores(Checkpoint.from_pretrained(folder).model), before)
    assert names(folder.parent) == ["model"]


# --- an encoder that was trained too --------------------------------------------------------------


def written(folder: Path) -> None:
    """A CLIP of random weights, as one that was trained would be written."""
    folder.mkdir()
    clip(folder)


def tuned(**more):
    return replace(checkpoint("xpool", "none", **more), tuned=written)


def test_a_tuned_encoder_is_part_of_the_folder_and_noted_as_it_lies_there(tmp_path):
    tuned(recipe={"encoder": {"name": "openai/clip"}}).save_pretrained(tmp_path / "model")
    assert names(tmp_path / "model") == sorted([CONFIG, WEIGHTS, README, ENCODER])
    read = Checkpoint.from_pretrained(tmp_path / "model")
    there = ClipEncoder.load(str(tmp_path / "model" / ENCODER), "cpu")
    assert (read.encoder.name, read.encoder.fingerprint) == (ENCODER, there.fingerprint)
    assert read.encoder_name == "openai/clip"
    assert read.load_encoder(tmp_path / "model", "cpu").fingerprint == there.fingerprint
    card = (tmp_path / "model" / README).read_text("utf-8")
    assert "# xpool on openai/clip" in card
    assert "`openai/clip`, which was trained with it and is in the folder `encoder`" in card
    assert there.fingerprint[:16] in card


def test_what_is_read_takes_its_encoder_along_also_onto_itself(tmp_path):
    tuned().save_pretrained(tmp_path / "model")
    before = Checkpoint.from_pretrained(tmp_path / "model")
    for target in ("other", "model"):
        before.save_pretrained(tmp_path / target)
        after = Checkpoint.from_pretrained(tmp_path / target)
        assert after.encoder == before.encoder
        found = after.load_encoder(tmp_path / target, "cpu")
        assert found.name == str(tmp_path / target / ENCODER)
    assert names(tmp_path) == ["model", "other"]


def test_an_encoder_that_lies_elsewhere_is_loaded_by_its_name(folder, tmp_path, monkeypatch):
    """A folder that happens to be called so is not taken for it."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / ENCODER)
    read = Checkpoint.from_pretrained(folder)
    assert (read.tuned, read.encoder_name) == (None, "tiny")
    assert read.load_encoder(folder).fingerprint == TINY.fingerprint
    rewrite(folder, lambda config: config["encoder"].update(name=ENCODER))
    with pytest.raises(ModelError, match=rf"needs the encoder 'encoder'.*'{folder / ENCODER}'"):
        Checkpoint.from_pretrained(folder).load_encoder(folder)
