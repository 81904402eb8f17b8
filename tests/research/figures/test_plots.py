"""Figures of numbers, against slow ways to get the numbers, and that they are drawn."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.models.layers.gaussian import wasserstein2
from sureshot.research.canvas import BLUE, ORANGE, quantity
from sureshot.research.figures import plots
from tests.research.figures.pictures import pixels, share, shown, untidy

RNG = np.random.default_rng(0)
TITLED = [SimpleNamespace(title="title")]


@pytest.mark.parametrize("system", ["duq", "duq_released", "uatvr", "dvtr", "pcme", "tmass"])
def test_every_number_of_a_system_has_words_for_its_axis(subject, system):
    of = subject(system)
    names = [*of.matrices([0, 1]), *of.measures]
    assert all(quantity(name) != name for name in names)
    assert len({quantity(name) for name in names}) == len(names)
    if system == "dvtr":
        pairs, shown = of.gaussians([0, 1]), of.matrices([0, 1])["wasserstein"]
        own = shown[[0, 1], of.owner[:2]]
        assert own == pytest.approx(wasserstein2(*pairs).numpy(), rel=1e-3)
        assert "squared" in quantity("wasserstein")


# --- Gaussians ------------------------------------------------------------------------------------


def test_the_axes_are_the_largest_eigenvectors_of_the_covariance():
    points = RNG.standard_normal((40, 6)) * [1, 5, 2, 0.1, 1, 3]
    axes, shares = plots.principal_axes(points)
    sizes, vectors = np.linalg.eigh(np.cov(points.T))
    for axis, vector in zip(axes, vectors.T[::-1], strict=False):
        assert abs(axis @ vector) == pytest.approx(1.0)
        assert axis[np.abs(axis).argmax()] > 0
    assert shares == pytest.approx((sizes[::-1] / sizes.sum())[:2])


def test_the_ellipse_is_that_of_many_samples():
    axes = np.linalg.qr(RNG.standard_normal((5, 2)))[0].T
    variance = np.array([4.0, 0.5, 1.0, 9.0, 0.1])
    seen = (RNG.standard_normal((200_000, 5)) * np.sqrt(variance)) @ axes.T
    sizes, vectors = np.linalg.eigh(np.cov(seen.T))
    (long, short), angle = plots.ellipse(axes, variance)
    assert (short, long) == pytest.approx(np.sqrt(sizes), rel=0.01)
    turned = math.degrees(math.atan2(*vectors[::-1, 1])) % 180
    assert min(abs(turned - angle), 180 - abs(turned - angle)) < 1.0
    assert 0 <= angle < 180


@pytest.mark.parametrize("system", ["duq", "uatvr", "dvtr"])
def test_means_and_ellipses_are_those_of_the_system(subject, system):
    of = subject(system)
    numbers = plots.embeddings([of], 4)
    texts, videos = of.gaussians(of.pairs(4))
    every = np.concatenate([texts.mean.numpy(), videos.mean.numpy()]).astype(float)
    axes, shares = plots.principal_axes(every)
    assert numbers["explained"] == pytest.approx(shares)
    flat = (every - every.mean(0)) @ axes.T
    for row, query in enumerate(of.pairs(4)):
        text, video = numbers["items"][2 * row : 2 * row + 2]
        assert [(one["pair"], one["kind"]) for one in (text, video)] == [
            (row + 1, "text"),
            (row + 1, "video"),
        ]
        assert text["mean"] == pytest.approx(flat[row]) and text["name"] == of.text(query)
        assert video["mean"] == pytest.approx(flat[4 + row])
        expected = plots.ellipse(axes, videos.log_var[row].double().exp().numpy())[0]
        assert video["deviations"] == pytest.approx(expected) and len(text["samples"]) == 7


def test_samples_scatter_as_the_ellipse_says(subject, monkeypatch):
    monkeypatch.setattr(plots, "_SAMPLES", 4000)
    for one in plots.embeddings([subject("duq")], 2)["items"]:
        seen = np.array(one["samples"])
        assert seen.mean(0) == pytest.approx(one["mean"], abs=0.1 * one["deviations"][0])
        sizes = np.sqrt(np.linalg.eigvalsh(np.cov(seen.T)))
        assert [sizes[1], sizes[0]] == pytest.approx(one["deviations"], rel=0.06)


# --- recall by uncertainty ------------------------------------------------------------------------


def binned(values, right, video=None):
    video = np.arange(len(values)) if video is None else np.array(video)
    return plots.binned(np.array(values, float), np.array(right, bool), video, 0)


def test_bins_hold_the_queries_in_order_of_the_measure():
    rng = np.random.default_rng(0)
    values, right = rng.permutation(100).astype(float), rng.random(100) < 0.4
    found = binned(values, right)
    order = np.argsort(values)
    assert [one["queries"] for one in found["bins"]] == [20] * 5
    for place, one in enumerate(found["bins"]):
        part = order[20 * place : 20 * place + 20]
        assert one["r1"] == pytest.approx(100 * right[part].mean())
        assert (one["low"], one["high"]) == (values[part].min(), values[part].max())
        assert one["mean"] == pytest.approx(values[part].mean())
        low, high = one["interval"]
        assert low <= one["r1"] <= high and high - low > 10
    assert found["r1"] == pytest.approx(100 * right.mean())
    alike = binned([4.0] * 8, [True, False] * 4)  # equal values share a bin
    assert [one["queries"] for one in alike["bins"]] == [8] and alike["separation"] == 0.5
    alone = binned(np.arange(40.0), np.resize([True, False], 40), np.repeat(np.arange(5), 8))
    assert [one["interval"] for one in alone["bins"]] == [None] * 5  # of one video


def test_texts_are_judged_by_texts_found_and_videos_by_videos(subject):
    of = subject("duq")
    found = plots.uncertainty([of])["measures"]
    assert set(found) == set(of.measures)
    ranks = {"text": text_ranks(of.scores, of.owner), "video": video_ranks(of.scores, of.owner)}
    for name, one in found.items():
        side = name.split()[0]
        right = ranks[side] <= 1
        assert one["r1"] == pytest.approx(100 * right.mean())
        assert one["direction"] == ("text to video" if side == "text" else "video to text")
        values = of.measures[name]
        assert one["separation"] == plots.separation(values, right)
        assert sum(part["queries"] for part in one["bins"]) == len(values)
    with pytest.raises(SureshotError, match="has no uncertainty to draw: xpool as it was trained"):
        plots.uncertainty([subject("xpool")])


# --- DVTR's eta -----------------------------------------------------------------------------------

ETA, SCORES, OWNER = RNG.random((4, 7)), RNG.uniform(-1, 1, (4, 7)), np.array([2, 0, 6, 3])
NAMES = [f"v{column}" for column in range(7)]


def test_own_pairs_are_apart_and_the_loss_of_others_is_weighed():
    found = plots.soft_positives("abcd", NAMES, ETA, SCORES, OWNER)
    spared = total = above = wins = 0.0
    for row, own in enumerate(OWNER):
        others = [column for column in range(7) if column != own]
        for key, matrix in (("eta", ETA), ("score", SCORES)):
            assert found["matched"][key][row] == matrix[row, own]
            assert found["others"][key][row] == matrix[row, others].tolist()
        for column in others:
            loss = max(0.0, SCORES[row, column] - SCORES[row, own] + 0.5)
            spared += (1 - ETA[row, column]) * loss
            total += loss
            above += ETA[row, column] > 0.9
            wins += sum(ETA[row, column] > ETA[r, OWNER[r]] for r in range(4))
    assert found["loss_spared"] == pytest.approx(spared / total)
    assert found["above_0_9"] == pytest.approx(above / 24)
    assert found["separation"] == pytest.approx(wins / 96)
    pairs = sorted(
        (ETA[r, c], "abcd"[r], NAMES[c]) for r in range(4) for c in range(7) if c != OWNER[r]
    )
    assert [(one["eta"], one["query"], one["video"]) for one in found["softest"]] == pairs[:3]
    ones = plots.soft_positives("abcd", NAMES, np.ones((4, 7)), SCORES, OWNER)
    assert ones["loss_spared"] == 0


def test_dvtr_has_eta_and_others_do_not(subject):
    of = subject("dvtr")
    numbers = plots.calibration([of], 5)
    eta = of.matrices(of.pairs(5))["eta"]
    own = [eta[row, of.owner[query]] for row, query in enumerate(of.pairs(5))]
    assert numbers["matched"]["eta"] == pytest.approx(own)
    assert numbers["queries"] == [of.text(query) for query in of.pairs(5)]
    with pytest.raises(SureshotError, match="how uncertain a pair is; DVTR does"):
        plots.calibration([subject("duq")], 3)
    figure = plots.draw_calibration([of], numbers)
    eta, scores = (np.array(numbers["others"][key]) for key in ("eta", "score"))
    hinge = np.maximum(0, scores - np.array(numbers["matched"]["score"])[:, None] + 0.5)
    plain, weighted = (line.get_xydata() for line in figure.axes[1].lines[1:])
    for (middle, mean), (_, less) in zip(plain, weighted, strict=True):
        held = np.abs(eta - middle) <= 0.05
        assert mean == pytest.approx(hinge[held].mean())
        assert less == pytest.approx((eta * hinge)[held].mean())
    assert f"{numbers['loss_spared']:.0%} of the loss is spared" in shown(figure)
    assert share(pixels(figure), BLUE) > 0.0005 and share(pixels(figure), ORANGE) > 0.0001


# --- matrices of pairs ----------------------------------------------------------------------------


def squares(values, name="score", **texts):
    matrix = plots.pair_matrix(name, np.array(values, float))
    return {"matrices": {name: matrix}, "texts": {n: list(v) for n, v in texts.items()}}


@pytest.mark.parametrize("system", ["duq", "tiny"])
def test_rows_are_pairs_and_the_diagonal_belongs_together(subject, system):
    of = subject(system)
    numbers = plots.matrices([of], 4)
    queries = of.pairs(4)
    columns = of.owner[queries]
    assert numbers["captions"] == [of.text(query) for query in queries]
    assert numbers["videos"] == [of.items[column].id for column in columns]
    whole = of.matrices(range(12))
    for name, one in numbers["matrices"].items():
        expected = whole[name][np.ix_(queries, columns)]
        np.testing.assert_allclose(one["values"], expected, atol=1e-5)
    texts = {n: v[queries].tolist() for n, v in of.measures.items() if n.startswith("text")}
    assert numbers["texts"] == texts
    text = " ".join(shown(plots.draw_matrices([of], numbers)).split())
    assert f"{system} on tiny" in text or system == "tiny"
    assert text.count("found: ") == len(numbers["matrices"]) and "ring:" in text
    assert all(quantity(name) in text for name in (*numbers["matrices"], *texts))


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        ([[3, 1, 2], [9, 8, 1], [1, 2, 7]], "score", (2, 2)),
        ([[3, 1, 2], [9, 8, 1], [1, 2, 7]], "distance", (0, 0)),
        ([[1, 2, 2], [2, 1, 2], [2, 2, 3]], "eta", (2, 2)),
        ([[1, 1], [0, 0]], "score", (0, 1)),  # ties are not found
        ([[4]], "score", (1, 1)),
    ],
)
def test_who_finds_whom_is_counted_without_ties(values, name, expected):
    one = plots.pair_matrix(name, np.array(values))
    assert (one["texts_found"], one["videos_found"]) == expected
    assert one["values"] == values


@pytest.mark.parametrize("name", ["score", "wasserstein"])
def test_what_is_near_is_light(name):
    values = np.full((3, 3), 5.0)
    np.fill_diagonal(values, 9.0 if name == "score" else 1.0)
    figure = plots.draw_matrices(TITLED, squares(values, name))
    picture, axes = pixels(figure).sum(-1), figure.axes[0]
    light = np.zeros((3, 3))
    for row, column in np.ndindex(3, 3):  # a spot off the middle of each cell
        x, y = axes.transData.transform((column - 0.44, row - 0.44)) * 100 / figure.dpi
        light[row, column] = picture[round(len(picture) - y), round(x)]
    assert light.diagonal().min() > light[~np.eye(3, dtype=bool)].max() + 100


def test_the_best_of_rows_and_columns_are_marked():
    marks = plots.draw_matrices(TITLED, squares([[3, 1], [9, 8]])).axes[0].collections
    places = [(*one.get_offsets()[0], len(one.get_paths()[0].vertices) > 6) for one in marks]
    assert {place[:2] for place in places if place[2]} == {(0, 0), (0, 1)}  # rings: x, y
    assert {place[:2] for place in places if not place[2]} == {(0, 1), (1, 1)}  # squares


@pytest.mark.parametrize("count", [1, 13, 200])
def test_ticks_can_be_read_at_any_number_of_pairs(count):
    deviations = 0.0882 + 1e-4 * RNG.random(count)
    texts = {"text deviation": deviations, "text spread": deviations - 7}
    figure = plots.draw_matrices(TITLED, squares(RNG.random((count, count)) * 1e-3, **texts))
    assert untidy(figure) == []
    matrix, measure = figure.axes[:2]
    labels = matrix.get_xticklabels(), matrix.get_yticklabels(), measure.get_yticklabels()
    for ticks, most in zip(labels, (8, 12, 12), strict=True):
        numbers = [int(label.get_text()) for label in ticks]
        assert numbers[0] == 1 and len(numbers) <= most
        assert len(set(np.diff(numbers))) <= 1


def test_two_models_show_the_same_pairs_in_the_same_colours(subject):
    both = [subject("dvtr"), subject("clip4clip")]
    numbers = plots.matrices(both, 4)
    second = numbers["compare_with"]
    assert second["model"] == "clip4clip on tiny" and list(second["matrices"]) == ["score"]
    queries = both[0].pairs(4)
    for of, found in zip(both, (numbers, second), strict=True):
        expected = of.scores[np.ix_(queries, of.owner[queries])]
        np.testing.assert_allclose(found["matrices"]["score"]["values"], expected, atol=1e-6)
    figure = plots.draw_matrices(both, numbers)
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 2, "what one model alone has is not compared"
    values = [one["matrices"]["score"]["values"] for one in (numbers, second)]
    for axes in panels:
        assert axes.images[0].get_clim() == pytest.approx((np.min(values), np.max(values)))
    text = " ".join(shown(figure).split())
    assert "dvtr on tiny: score of the pair" in text and untidy(figure) == []
    assert "clip4clip on tiny: score of the pair" in text


# --- checkpoints of several epochs ----------------------------------------------------------------


def test_points_are_mean_measures_and_recalls_in_order(subject):
    first, second = subject("uatvr"), subject("uatvr", 1)
    both = [first, replace(second, scorer=replace(second.scorer, name="later"))]
    numbers = plots.epochs(both)
    assert [point["name"] for point in numbers["checkpoints"]] == [first.scorer.name, "later"]
    for point in numbers["checkpoints"]:
        assert point["r1"] == 100 * np.mean(text_ranks(first.scores, first.owner) <= 1)
        means = {name: float(values.mean()) for name, values in first.measures.items()}
        assert point["means"] == pytest.approx(means)
    points = [
        {"r1": r1, "means": {"text a": x}, "interval": [r1 - 2, r1 + 5]}
        for r1, x in ((10.0, 0.3), (20.0, 0.1))
    ]
    figure = plots.draw_epochs(both, {"checkpoints": points, "points": points})
    line, *_ = figure.axes[0].lines
    assert line.get_xydata().tolist() == [[0.3, 10], [0.1, 20]]
    (bars,) = figure.axes[0].collections
    assert [part[:, 1].tolist() for part in bars.get_segments()] == [[8, 15], [18, 25]]
    assert {"1", "2"} <= set(shown(figure).splitlines())


def test_checkpoints_that_differ_in_their_seed_are_one_point(subject):
    def of(epochs, seed):
        training = {"epochs": epochs, "seed": seed}
        return replace(uatvr, scorer=replace(uatvr.scorer, recipe={"training": training}))

    uatvr = subject("uatvr")
    several = [of(1, 0), of(2, 0), of(1, 1), of(2, 0)]
    points = plots.epochs(several)["points"]
    assert [point["checkpoints"] for point in points] == [[0, 2], [1], [3]]
    assert all(low <= p["r1"] <= high for p in points for low, high in [p["interval"]])
    assert "grey: single seeds" in shown(plots.draw_epochs(several, plots.epochs(several)))


def test_one_checkpoint_or_different_systems_are_refused(subject):
    with pytest.raises(SureshotError, match="name two checkpoints or more"):
        plots.epochs([subject("duq")])
    with pytest.raises(SureshotError, match=r"text deviation.*; name checkpoints of one system"):
        plots.epochs([subject("duq"), subject("uatvr")])
    with pytest.raises(SureshotError, match="measures no uncertainty"):
        plots.epochs([subject("xpool"), subject("xpool")])
