"""The page that shows how to add a system: its file, as it stands there, is a system."""

import re

import pytest
import torch

from sureshot.models import systems
from sureshot.models.systems.base import Sizes, known_systems, load_system
from sureshot.research import Recipe
from tests.models.systems.every import CHANNELS, WIDTH, texts, videos
from tests.paths import ROOT

PAGE = ROOT / "docs" / "adding-a-system.md"


@pytest.fixture
def added(tmp_path, monkeypatch):
    """The system of the page, in a folder that belongs to the package."""
    code = PAGE.read_text("utf-8").split("```python\n")[1].split("```")[0]
    (tmp_path / "best_frame.py").write_text(code, "utf-8")
    monkeypatch.setattr(systems, "__path__", [*systems.__path__, str(tmp_path)])


def test_its_file_is_all_it_takes(added):
    assert "best_frame" in known_systems()
    made = load_system({"name": "best_frame", "scale": 20.0}, Sizes(WIDTH, CHANNELS))
    words, films = texts(5), videos(6)
    found = made.similarity(made.texts(words), made.videos(films))
    for i, j in ((0, 0), (4, 5), (2, 3)):
        frames = films.frames[j][films.mask[j]]
        best = torch.cosine_similarity(words.sentence[i], frames).max()
        torch.testing.assert_close(found[i, j], best)


def test_the_recipe_of_the_page_is_one_of_it(added, tmp_path):
    (copied,) = re.findall(r"a copy of `(recipes/\w+\.toml)`", PAGE.read_text("utf-8"))
    text = (ROOT / copied).read_text("utf-8")
    text = re.sub(r"(?m)^(ids|label) = .*\n|^\[val\]\n(.+\n)+", "", text)
    text = re.sub(r'(?<=\[system\]\n)name = "\w+"', 'name = "best_frame"', text)
    (tmp_path / "recipe.toml").write_text(f"hold_out = 500\n{text}", "utf-8")
    recipe = Recipe.load(tmp_path / "recipe.toml")
    made = load_system(recipe.system, Sizes(WIDTH, CHANNELS))
    assert type(made).__name__ == "BestFrame" and recipe.hold_out == 500
    assert [(one.ids, one.label) for one in recipe.train] == [(None, None)]


def test_and_dvtr_goes_on_it(added):
    made = load_system({"name": "dvtr", "base": {"name": "best_frame"}}, Sizes(WIDTH, CHANNELS))
    losses = made.losses(made.texts(texts(4)), made.videos(videos(4)))
    assert set(losses) == {"similarity", "dvtr_alignment", "dvtr_matching"}


def test_it_is_gone_with_its_file():
    assert "best_frame" not in known_systems()
