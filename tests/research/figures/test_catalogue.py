"""The list of figures, and each of them drawn for every system that has what it shows."""

import json

import numpy as np
import pytest
from PIL import Image

from sureshot.errors import SureshotError
from sureshot.research.figures.catalogue import FIGURES, Wish, figure, listing, named, places, write

LACKING = {
    "xpool": {"embeddings", "rerank", "uncertainty", "epochs", "tokens", "calibration"},
    "duq": {"tokens", "calibration"},
    "uatvr": {"rerank", "calibration"},
    "dvtr": {"rerank", "tokens"},
    "tiny": {"failures", "embeddings", "rerank", "uncertainty", "epochs", "tokens", "calibration"},
}


@pytest.mark.parametrize("system", LACKING)
@pytest.mark.parametrize("name", FIGURES)
def test_a_system_has_a_figure_or_says_what_it_lacks(subject, name, system):
    subjects = [subject(system)] * (2 if name == "epochs" else 1)
    if name in LACKING[system]:
        with pytest.raises(SureshotError):
            figure(name, subjects, Wish())
        return
    drawing = figure(name, subjects, Wish(count=2))
    assert len(json.dumps(drawing.to_dict(), allow_nan=False)) > 50
    drawn = drawing.draw()
    assert drawn.axes and any(axes.has_data() for axes in drawn.axes)


def test_the_count_asked_for_is_shown(subject):
    for count, expected in ((None, 4), (2, 2), (99, 6)):
        assert len(figure("results", [subject("duq")], Wish(count)).answers) == expected


def test_what_is_drawn_follows_the_seed_alone(subject):
    for name in ("matrices", "embeddings", "results", "captions", "failures"):
        first, again, other = (
            figure(name, [subject("duq", seed)], Wish(2)).to_dict() for seed in (0, 0, 5)
        )
        assert first == again != other


def test_unknown_figures_and_too_many_checkpoints_are_refused():
    with pytest.raises(SureshotError, match="Unknown figure 'matrix'; known: matrices, embeddings"):
        named("matrix")
    with pytest.raises(SureshotError, match="results draws one checkpoint, not 2; epochs draws"):
        named("results", 2)
    assert named("epochs", 3) is FIGURES["epochs"]


def test_every_figure_is_listed_with_what_it_needs():
    lines = listing().splitlines()
    assert len(lines) == 2 * len(FIGURES)
    for (name, entry), first, second in zip(FIGURES.items(), lines[::2], lines[1::2], strict=True):
        assert first.split()[0] == name and entry.about in first and entry.papers in first
        assert second.strip() == f"systems: {entry.needs}"


def test_a_folder_gets_both_files_and_a_name_one(subject, tmp_path):
    drawing = figure("matrices", [subject("xpool")], Wish(2))
    both = write("matrices", drawing, tmp_path / "out")
    assert [path.name for path in both] == ["matrices.png", "matrices.svg"]
    assert "<svg" in both[1].read_text("utf-8")
    with Image.open(both[0]) as picture:
        assert np.asarray(picture.convert("L")).std() > 10
    (one,) = write("matrices", drawing, tmp_path / "alone.SVG")
    assert one == tmp_path / "alone.SVG" and "<svg" in one.read_text("utf-8")
    assert places("x", tmp_path / "a.b") == [tmp_path / "a.b" / "x.png", tmp_path / "a.b" / "x.svg"]
