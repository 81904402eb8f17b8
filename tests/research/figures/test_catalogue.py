"""Every figure by name, drawn for every system that has what it shows."""

import json

import numpy as np
import pytest
from PIL import Image

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.research.figures.catalogue import FIGURES, write_figure
from tests.research.figures.pictures import untidy
from tests.trained import saved

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
            FIGURES[name].numbers(subjects, 4)
        return
    numbers = FIGURES[name].numbers(subjects, 2)
    assert len(json.dumps(numbers, allow_nan=False)) > 50
    drawn = FIGURES[name].draw(subjects, numbers)
    assert drawn.axes and any(axes.has_data() for axes in drawn.axes)
    assert untidy(drawn) == []


def test_what_is_drawn_follows_the_seed_and_the_count(subject):
    for name in ("matrices", "embeddings", "results", "captions", "failures"):
        first, again, other = (
            FIGURES[name].numbers([subject("duq", seed)], 2) for seed in (0, 0, 5)
        )
        assert first == again != other
    assert len(FIGURES["results"].numbers([subject("duq")], 99)["queries"]) == 6


def test_a_folder_gets_both_files_and_a_name_one(subject, tmp_path):
    subjects = [subject("xpool")]
    drawn = FIGURES["matrices"].draw(subjects, FIGURES["matrices"].numbers(subjects, 2))
    both = write_figure("matrices", drawn, tmp_path / "a.b")
    assert both == [tmp_path / "a.b" / f"matrices{suffix}" for suffix in (".png", ".svg")]
    assert "<svg" in both[1].read_text("utf-8")
    with Image.open(both[0]) as picture:
        assert np.asarray(picture.convert("L")).std() > 10
    named = [tmp_path / "one.SVG", tmp_path / "two.png"]
    assert write_figure("matrices", drawn, named[0]) == named[:1]
    assert write_figure("matrices", drawn, named) == named
    assert "<svg" in named[0].read_text("utf-8") and named[1].exists()


def test_a_model_is_drawn_and_its_numbers_are_the_value(place, tmp_path):
    model = saved(tmp_path / "duq", "duq", "linear")
    data = {"split": "train", "cache": place / "cache", "to": tmp_path / "one.svg", "count": 2}
    drawn = research.plot("results", model, "pairs", place / "pairs.csv", **data)
    assert drawn.files == (tmp_path / "one.svg",) and drawn.files[0].exists()
    assert drawn.model == "duq on tiny, pairs pairs.csv train, 6 videos, 12 captions"
    assert len(drawn.to_dict()["numbers"]["queries"]) == 2
