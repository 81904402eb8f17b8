"""The files of a figure; tests/cli/test_plot.py has the whole way from a model to them."""

import numpy as np
import pytest
from PIL import Image

from sureshot import research
from sureshot.errors import ArgumentError
from sureshot.research.figures.catalogue import FIGURES, FigureOptions, write_figure
from tests.trained import saved


def test_a_folder_gets_both_files_and_a_name_one(subject, tmp_path):
    drawing = FIGURES["matrices"].make([subject("xpool")], 2, FigureOptions())
    both = write_figure("matrices", drawing, tmp_path / "a.b")
    assert both == [tmp_path / "a.b" / f"matrices{suffix}" for suffix in (".png", ".svg")]
    assert "<svg" in both[1].read_text("utf-8")
    with Image.open(both[0]) as picture:
        assert np.asarray(picture.convert("L")).std() > 10
    (one,) = write_figure("matrices", drawing, tmp_path / "alone.SVG")
    assert one == tmp_path / "alone.SVG" and "<svg" in one.read_text("utf-8")


def test_a_model_is_drawn_and_its_numbers_are_the_value(place, tmp_path):
    model = saved(tmp_path / "duq", "duq", "linear")
    data = {"split": "train", "cache": place / "cache", "to": tmp_path / "one.svg", "count": 2}
    drawn = research.plot("results", model, "pairs", place / "pairs.csv", **data)
    assert drawn.files == (tmp_path / "one.svg",) and drawn.files[0].exists()
    assert drawn.title == "duq on tiny, pairs pairs.csv train, 6 videos, 12 captions"
    assert len(drawn.to_dict()["numbers"]["queries"]) == 2


def test_a_second_score_belongs_to_rerank(place):
    with pytest.raises(ArgumentError, match="`after=` belongs to rerank; matrices shows one score"):
        research.plot("matrices", "tiny", "pairs", place / "pairs.csv", after="dsl")
