"""Matrices: the right rows and columns, who finds whom, and light where it is near."""

import numpy as np
import pytest

from sureshot.research.figures.plots import Matrices, matrices
from tests.research.figures.pictures import pixels, shown, untidy


def by_hand(values, name="score", **texts):
    count = len(values)
    names = tuple(map(str, range(count)))
    return Matrices("title", names, names, {name: np.array(values, float)}, texts)


@pytest.mark.parametrize("system", ["duq", "uatvr", "tiny"])
def test_rows_are_pairs_and_the_diagonal_belongs_together(subject, system):
    of = subject(system)
    found = matrices(of, 4)
    queries = of.pairs(4)
    assert found.captions == tuple(of.text(query) for query in queries)
    assert found.videos == tuple(of.items[of.owner[query]].id for query in queries)
    for name, matrix in found.matrices.items():
        whole = of.matrices(range(12))[name]
        for row, query in enumerate(queries):
            for column, other in enumerate(queries):
                expected = whole[query, of.owner[other]]
                assert matrix[row, column] == pytest.approx(expected, abs=1e-5)
    assert set(found.texts) == {name for name in of.measures if name.startswith("text")}
    for name, values in found.texts.items():
        assert values.tolist() == of.measures[name][queries].tolist()
    assert found.to_dict()["videos"] == list(found.videos)


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        ([[3, 1, 2], [9, 8, 1], [1, 2, 7]], "score", (2, 2)),
        ([[3, 1, 2], [9, 8, 1], [1, 2, 7]], "distance", (0, 0)),
        ([[1, 2, 2], [2, 1, 2], [2, 2, 3]], "eta", (2, 2)),
        ([[1, 1], [0, 0]], "score", (0, 1)),  # ties are not found
        ([[1, 0], [1, 5]], "score", (2, 1)),
        ([[4]], "score", (1, 1)),
    ],
)
def test_who_finds_whom_is_counted_without_ties(values, name, expected):
    made = by_hand(values, name)
    assert made.found(name) == expected
    told = made.to_dict()["matrices"][name]
    assert (told["texts_found"], told["videos_found"]) == expected
    assert told["values"] == values


def middle_of_cells(figure, count):
    """Brightness of a spot beside the middle of every cell of the first panel."""
    picture = pixels(figure).sum(-1)
    axes = figure.axes[0]
    found = np.zeros((count, count))
    for row in range(count):
        for column in range(count):
            x, y = axes.transData.transform((column - 0.44, row - 0.44)) * 100 / figure.dpi
            found[row, column] = picture[round(len(picture) - y), round(x)]
    return found


@pytest.mark.parametrize("name", ["score", "wasserstein"])
def test_what_is_near_is_light(name):
    values = np.full((3, 3), 5.0)
    np.fill_diagonal(values, 9.0 if name == "score" else 1.0)
    light = middle_of_cells(by_hand(values, name).draw(), 3)
    off = ~np.eye(3, dtype=bool)
    assert light.diagonal().min() > light[off].max() + 100


def test_the_best_of_rows_and_columns_are_marked():
    made = by_hand([[3.0, 1.0], [9.0, 8.0]])
    places = {
        (marks.get_offsets()[0][0], marks.get_offsets()[0][1], len(marks.get_paths()[0].vertices))
        for marks in made.draw().axes[0].collections
    }
    # Rings have more points than squares: x, y of rings, then of squares.
    rings = {place[:2] for place in places if place[2] > 6}
    squares = {place[:2] for place in places if place[2] <= 6}
    assert rings == {(0, 0), (0, 1)} and squares == {(0, 1), (1, 1)}


def test_all_that_is_said_is_shown(subject):
    found = matrices(subject("duq"), 5)
    figure = found.draw()
    text = " ".join(shown(figure).split())
    for part in (
        "duq on tiny",
        "belief",
        "distance",
        "re-ranked score",
        "vacuity of the text",
        "ring:",
    ):
        assert part in text
    assert text.count("found: ") == 5
    assert "distance" not in shown(matrices(subject("xpool"), 5).draw())


@pytest.mark.parametrize("count", [1, 12, 13, 40, 200])
def test_ticks_can_be_read_at_any_number_of_pairs(count):
    draw = np.random.default_rng(0)
    deviations = 0.0882 + 1e-4 * draw.random(count)
    values = draw.random((count, count)) * 1e-3
    made = by_hand(values, **{"text deviation": deviations, "text spread": deviations - 7})
    figure = made.draw()
    assert untidy(figure) == []
    matrix, measure = figure.axes[:2]
    for labels, most in (
        (matrix.get_xticklabels(), 8),
        (matrix.get_yticklabels(), 12),
        (measure.get_yticklabels(), 12),
    ):
        numbers = [int(label.get_text()) for label in labels]
        assert numbers[0] == 1 and len(numbers) <= most
        assert len(set(np.diff(numbers))) <= 1


def test_each_quantity_has_a_panel_that_says_what_it_is(subject):
    found = matrices(subject("uatvr"), 4)
    figure = found.draw()
    text = " ".join(shown(figure).split())
    assert "standard deviation of the text's Gaussian" in text and "no unit" not in text
    both = by_hand(np.eye(3), **{"text spread": np.ones(3), "text eta deviation": np.ones(3)})
    labels = [" ".join(axes.get_xlabel().split()) for axes in both.draw().axes]
    assert "log total variance of the text's Gaussian" in labels
    assert "standard deviation of the text's Gaussian for η" in labels


def test_two_models_show_the_same_pairs_in_the_same_colours(subject):
    both = subject("dvtr"), subject("clip4clip")
    found = matrices(both[0], 4, both[1])
    assert (found.model, found.beside.model) == ("dvtr on tiny", "clip4clip on tiny")
    queries = both[0].pairs(4)
    columns = both[0].owner[queries]
    for one, made in zip(both, (found, found.beside), strict=True):
        assert made.captions == found.captions and made.videos == found.videos
        np.testing.assert_allclose(
            made.matrices["score"], one.scores[queries][:, columns], atol=1e-6
        )
    told = found.to_dict()
    assert told["beside"]["model"] == "clip4clip on tiny" and "eta" in told["matrices"]
    assert list(told["beside"]["matrices"]) == ["score"]
    figure = found.draw()
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 2, "what one model alone has is not compared"
    assert panels[0].images[0].get_clim() == panels[1].images[0].get_clim()
    values = np.stack([found.matrices["score"], found.beside.matrices["score"]])
    assert panels[0].images[0].get_clim() == pytest.approx((values.min(), values.max()))
    text = " ".join(shown(figure).split())
    assert "dvtr on tiny: score of the pair" in text
    assert "clip4clip on tiny: score of the pair" in text
    assert untidy(figure) == []


def test_two_models_may_have_all_matrices_in_common(subject):
    figure = matrices(subject("duq"), 4, subject("duq", weights=1)).draw()
    assert len([axes for axes in figure.axes if axes.images]) == 10
    assert untidy(figure) == []
