"""A figure's system is trained as the plan says, kept, and drawn on the test split."""

import pytest

from sureshot import research
from sureshot.errors import ArgumentError, SureshotError
from sureshot.models.checkpoint import Checkpoint
from sureshot.research.reproduction import reproduce as module
from tests.walls import plan


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        yield folder


def test_a_figure_is_drawn_of_a_model_that_is_trained_once(place, tmp_path, monkeypatch):
    drawn = []
    whole = module.plot
    monkeypatch.setattr(module, "plot", lambda *a, **k: drawn.append((a, k)) or whole(*a, **k))

    def made():
        found = research.reproduce(
            "duq-fig-4", place / "plan.toml", to=tmp_path, cache=place / "cache"
        )
        assert [path.name for path in found.files] == ["duq-fig-4.png", "duq-fig-4.svg"]
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("models/*/model/*")}

    first = made()
    ((arguments, named),) = drawn
    assert arguments[0] == "embeddings" and (arguments[2], named["split"]) == ("pairs", "test")
    (model,) = arguments[1]
    assert Checkpoint.from_pretrained(model).system["name"] == "duq"
    assert (tmp_path / "duq-fig-4.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "duq-fig-4.svg").read_text()
    assert made() == first  # found, and not trained again


def test_a_figure_that_compares_two_systems_trains_and_draws_both(place, tmp_path, monkeypatch):
    drawn = []
    whole = module.plot
    monkeypatch.setattr(module, "plot", lambda *a, **k: drawn.append((a, k)) or whole(*a, **k))
    research.reproduce("uatvr-fig-5", place / "plan.toml", to=tmp_path, cache=place / "cache")
    ((arguments, named),) = drawn
    (model,) = arguments[1]
    adapted, plain = (
        Checkpoint.from_pretrained(one).system for one in (model, named["compare_with"])
    )
    assert adapted["name"] == plain["name"] == "uatvr"
    assert plain["adaptation"] is False and adapted.get("adaptation") is not False
    assert (tmp_path / "uatvr-fig-5.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_over_epochs_has_a_model_for_each_number_of_them(place, tmp_path, monkeypatch):
    text = (place / "plan.toml").read_text().replace("epochs = 1", "epochs = 2")
    text = text.replace('"pairs.csv"', f'"{place}/pairs.csv"')
    (tmp_path / "two.toml").write_text(text)
    models = []
    whole = module.plot
    monkeypatch.setattr(module, "plot", lambda *a, **k: models.extend(a[1]) or whole(*a, **k))
    research.reproduce("uatvr-fig-3", tmp_path / "two.toml", to=tmp_path, cache=place / "cache")
    assert [Checkpoint.from_pretrained(model).scores["epoch"] for model in models] == [1.0, 2.0]


def test_a_drawing_of_the_paper_is_told_of(place, tmp_path):
    with pytest.raises(SureshotError, match="figure 2: the framework is a drawing of the paper's"):
        research.reproduce("duq-fig-2", place / "plan.toml", to=tmp_path)


def test_a_figure_without_its_data_says_which_files_go_where(place, tmp_path):
    text = (place / "plan.toml").read_text()
    (tmp_path / "none.toml").write_text(text[text.index("[encoder]") :])
    with pytest.raises(SureshotError, match=r"MSVD is not in the plan\. Put raw-captions\.pkl"):
        research.reproduce("dvtr-fig-5", tmp_path / "none.toml", to=tmp_path)


def test_a_figure_needs_a_plan(tmp_path):
    with pytest.raises(ArgumentError, match="Name the data and the training"):
        research.reproduce("duq-fig-3", to=tmp_path)
