"""The list of figures, and each of them drawn for every system that has what it shows."""

import json

import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.research.figures.catalogue import FIGURES, FigureOptions, entry_of, listing
from tests.research.figures.pictures import untidy

LACKING = {
    "xpool": {"embeddings", "rerank", "uncertainty", "epochs", "tokens", "calibration"},
    "duq": {"tokens", "calibration"},
    "uatvr": {"rerank", "calibration"},
    "dvtr": {"rerank", "tokens"},
    "tiny": {"failures", "embeddings", "rerank", "uncertainty", "epochs", "tokens", "calibration"},
}


def figure(name, subjects, count=None):
    """The numbers of a figure."""
    entry = entry_of(name, len(subjects))
    return entry.make(subjects, count or entry.count, FigureOptions())


@pytest.mark.parametrize("system", LACKING)
@pytest.mark.parametrize("name", FIGURES)
def test_a_system_has_a_figure_or_says_what_it_lacks(subject, name, system):
    subjects = [subject(system)] * (2 if name == "epochs" else 1)
    if name in LACKING[system]:
        with pytest.raises(SureshotError):
            figure(name, subjects)
        return
    drawing = figure(name, subjects, 2)
    assert len(json.dumps(drawing.to_dict(), allow_nan=False)) > 50
    drawn = drawing.draw()
    assert drawn.axes and any(axes.has_data() for axes in drawn.axes)
    assert untidy(drawn) == []


def test_the_count_asked_for_is_shown(subject):
    for count, expected in ((None, 4), (2, 2), (99, 6)):
        assert len(figure("results", [subject("duq")], count).answers) == expected


def test_what_is_drawn_follows_the_seed_alone(subject):
    for name in ("matrices", "embeddings", "results", "captions", "failures"):
        first, again, other = (
            figure(name, [subject("duq", seed)], 2).to_dict() for seed in (0, 0, 5)
        )
        assert first == again != other


def test_unknown_figures_and_too_many_checkpoints_are_refused():
    with pytest.raises(SureshotError, match="Unknown figure 'matrix'; known: matrices, embeddings"):
        entry_of("matrix")
    with pytest.raises(SureshotError, match="results draws one checkpoint, not 2; epochs draws"):
        entry_of("results", 2)
    assert entry_of("epochs", 3) is FIGURES["epochs"]


def test_every_figure_is_listed_with_what_it_needs():
    lines = listing().splitlines()
    assert len(lines) == 2 * len(FIGURES)
    for (name, entry), first, second in zip(FIGURES.items(), lines[::2], lines[1::2], strict=True):
        assert first.split()[0] == name and entry.about in first and entry.papers in first
        more = "; a second model can stand beside" if name in ("matrices", "tokens") else ""
        assert second.strip() == f"systems: {entry.needs}{more}"


@pytest.mark.parametrize("name", [name for name, entry in FIGURES.items() if not entry.compares])
def test_a_second_model_is_for_figures_whose_paper_compares_two(name):
    with pytest.raises(ArgumentError) as refused:
        entry_of(name, beside=True)
    assert str(refused.value) == (
        f"`beside=` belongs to matrices and tokens, whose papers compare two models; {name} does "
        "not take it."
    )
