"""Saved and read again, a model answers as before; what is not such a model is named."""

import json

import pytest
import torch

from sureshot.errors import ModelError
from sureshot.models.checkpoint import Checkpoint, is_checkpoint
from sureshot.models.systems.base import TextTokens, VideoTokens
from sureshot.research.answers import (
    CARD,
    CONFIG,
    RETRIEVAL,
    WEIGHTS,
    AnswerCheckpoint,
    HeadConfig,
    head_of,
)
from tests.models.layers.weights import sample, shake
from tests.trained import checkpoint

ANSWERS = ("man", "dog", "schön")


def made(system="xpool", answers=ANSWERS, **more):
    retrieval = checkpoint(system, "linear", seed=3)
    torch.manual_seed(0)
    head = head_of(retrieval.model, len(answers), HeadConfig())
    shake(head)
    settings = {"recipe": {"frozen": True}, "scores": {"accuracy": 41.25}, "note": "From qa."}
    return AnswerCheckpoint(
        retrieval, head, HeadConfig(0.3, 20), answers, (5, 2, 0), **{**settings, **more}
    )


def answers(found):
    model = found.model()
    noted = found.retrieval.encoder
    mask = torch.ones(3, 2, dtype=torch.bool)
    asked = TextTokens(sample(3, noted.dim), sample(3, 2, noted.dim, seed=1), mask)
    frames, backbone = sample(3, 2, noted.dim, seed=2), sample(3, 2, noted.channels, seed=3)
    films = VideoTokens(frames, frames.new_zeros(3, 2, 0, noted.dim), backbone, mask)
    assert not model.training
    with torch.no_grad():
        return model.system.logits(model.texts(asked), model.videos(films))


@pytest.fixture
def folder(tmp_path):
    made().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("system", ["clip4clip", "xpool", "duq"])
def test_it_answers_as_before_and_knows_what_it_is(tmp_path, system):
    one = made(system)
    one.save(tmp_path / "model")
    other = AnswerCheckpoint.load(tmp_path / "model")
    assert torch.equal(answers(one), answers(other))
    for name in ("answers", "often", "config", "recipe", "scores", "note"):
        assert getattr(one, name) == getattr(other, name)


def test_the_model_it_reads_is_a_checkpoint_of_its_own(folder):
    assert is_checkpoint(folder / RETRIEVAL) and not is_checkpoint(folder)
    kept = Checkpoint.from_pretrained(folder / RETRIEVAL).model.state_dict()
    assert all(
        torch.equal(kept[name], w) for name, w in made().retrieval.model.state_dict().items()
    )


def test_the_card_says_what_it_is(folder):
    card = (folder / CARD).read_text("utf-8")
    assert "one of 3 words (man, dog, schön, …) from the features of\nxpool" in card
    assert "From qa." in card and "| accuracy | 41.25 |" in card


def test_what_is_no_such_model_is_named(tmp_path, folder):
    with pytest.raises(ModelError, match=rf"{tmp_path} holds no model that answers.*no {CONFIG}"):
        AnswerCheckpoint.load(tmp_path)
    with pytest.raises(ModelError, match="holds no model that answers"):
        AnswerCheckpoint.load(folder / RETRIEVAL)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "has the format 2; this Sureshot reads up to 1. Update it"),
        ({"format": True}, "is not the config of a model that answers"),
        ({"answers": "man"}, "is not the config of a model that answers"),
        ({"recipe": None}, "is not the config of a model that answers"),
        ({"answers": ["man"]}, f"{CONFIG} is damaged: answers must be texts"),
        ({"answers": ["man"], "often": [1]}, f"are not those of its {CONFIG}"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, change, reason):
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    (folder / CONFIG).write_text(json.dumps(config | change))
    with pytest.raises(ModelError, match=reason):
        AnswerCheckpoint.load(folder)


def test_damage_is_named(folder):
    (folder / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(ModelError, match=r"The weights of .* cannot be read"):
        AnswerCheckpoint.load(folder)
    (folder / CONFIG).write_text("{")
    with pytest.raises(ModelError, match=f"{CONFIG} cannot be read"):
        AnswerCheckpoint.load(folder)
    (folder / CONFIG).write_text("[]")
    with pytest.raises(ModelError, match="is not the config"):
        AnswerCheckpoint.load(folder)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="cannot be written"):
        made().save(tmp_path / "file")


def test_every_file_has_the_permissions_that_the_umask_gives(folder):
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert len(modes) == 1
