"""Every figure by name, drawn for every system that has what it shows."""

import json

import pytest

from sureshot.errors import SureshotError
from sureshot.research.figures.catalogue import FIGURES, plot
from tests.research.figures.pictures import untidy

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


def test_no_checkpoint_is_too_few(place):
    for figure, message in (
        ("epochs", "name two checkpoints or more"),
        ("matrices", "draws one checkpoint, not 0"),
    ):
        with pytest.raises(SureshotError, match=message):
            plot(figure, [], "pairs", place / "pairs.csv")
