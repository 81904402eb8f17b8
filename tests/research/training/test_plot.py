"""The picture of a run, and the note where it cannot be drawn."""

import sys

import numpy as np
import pytest
from PIL import Image

from sureshot.errors import SureshotError
from sureshot.research.training.loop import draw, running_mean

LOSSES = [3.0, 2.0, 1.5, 1.2]
SCORES = [(2, 100.0), (4, 150.0)]


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def test_the_picture_shows_losses_and_scores(tmp_path):
    draw(tmp_path / "a.png", LOSSES)
    draw(tmp_path / "b.png", LOSSES, SCORES, title="run")
    orange = [
        ((pixels(tmp_path / f"{name}.png") - [213, 94, 0]) ** 2).sum(-1).min() for name in "ab"
    ]
    assert orange[0] > 1000 > 10 > orange[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]


def test_a_drawing_is_the_same_again(tmp_path):
    for name in "ab":
        draw(tmp_path / f"{name}.svg", LOSSES, SCORES)
    text = (tmp_path / "a.svg").read_text()
    assert "<svg" in text and text == (tmp_path / "b.svg").read_text()


def test_without_matplotlib_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SureshotError, match=r"pip install 'sureshot\[plots\]'"):
        draw(tmp_path / "a.png", LOSSES)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SureshotError, match=r"The figure .* cannot be written"):
        draw(tmp_path / "file" / "a.png", LOSSES)


def test_the_running_mean_is_a_weighted_mean():
    values = [3.0, -1.0, 2.5, 0.0]
    for end, found in enumerate(running_mean(values, 0.8), 1):
        weights = 0.8 ** np.arange(end)[::-1]
        assert found == pytest.approx((weights * values[:end]).sum() / weights.sum())
    assert running_mean([]) == []
