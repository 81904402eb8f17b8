"""Figures of numbers: scatter plots, matrices, bins and curves.

Every figure of a model is a pair of functions: one gives its numbers as JSON holds them, the other
draws them. Those of trust draw the numbers of a report.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Integer

from sureshot.errors import SureshotError
from sureshot.metrics.confidence import aurc, auroc, risk_curve
from sureshot.metrics.intervals import interval, mean_of, of_percent
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.models.layers.gaussian import Gaussian, draw_noise, sample
from sureshot.research.canvas import (
    BLUE,
    CENTRED,
    INK,
    MUTED,
    NORMAL,
    ORANGE,
    SERIES,
    SMALL,
    SUFFIXES,
    WIDTH,
    Style,
    add_legend,
    entitle,
    ink_on,
    label_axes,
    new_figure,
    new_panels,
    number,
    quantity,
    save_figure,
    words,
)
from sureshot.research.figures.subject import (
    SMALL_IS_NEAR,
    Numbers,
    Subject,
    nearest,
    tell_apart,
)
from sureshot.research.trust_report import OURS, TrustReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- Gaussians ------------------------------------------------------------------------------------

_SAMPLES = 7  # as the papers draw


def embeddings(subjects: Sequence[Subject], count: int) -> Numbers:
    """Gaussians of pairs drawn by the seed, on the two principal axes of their means.

    Per text and video in turn: its mean, the longer and shorter half axis of the ellipse of one
    deviation, the angle in degrees between the longer and the x axis, and samples; ``explained``
    is the share of the variance of the means along each axis.
    """
    subject = subjects[0]
    queries = subject.pairs(count)
    texts, videos = subject.gaussians(queries)
    means = torch.cat([texts.mean, videos.mean]).double().numpy()
    centre = means.mean(0)
    axes, explained = principal_axes(means)
    draw = torch.Generator().manual_seed(subject.seed)
    items = []
    for row, query in enumerate(queries):
        video = subject.names[subject.owner[query]]
        for kind, side, name in (("text", texts, subject.text(query)), ("video", videos, video)):
            one = Gaussian(*(part[row].double() for part in side))
            drawn = sample(one, draw_noise((_SAMPLES, len(one.mean)), draw, torch.float64)).numpy()
            deviations, angle = ellipse(axes, one.log_var.exp().numpy())
            items.append(
                {
                    "pair": row + 1,
                    "kind": kind,
                    "name": name,
                    "mean": (axes @ (one.mean.numpy() - centre)).tolist(),
                    "deviations": list(deviations),
                    "angle": angle,
                    "samples": ((drawn - centre) @ axes.T).tolist(),
                }
            )
    return {"explained": list(explained), "items": items}


def draw_embeddings(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """Circles are texts, squares videos; a line joins a pair, an ellipse is one deviation."""
    from matplotlib.patches import Ellipse

    texts, videos = numbers["items"][::2], numbers["items"][1::2]
    figure = new_figure(4.4 + 0.17 * len(texts), width=5.6)
    axes = figure.add_subplot()
    for text, video in zip(texts, videos, strict=True):
        colour = SERIES[(text["pair"] - 1) % len(SERIES)]
        ends = zip(text["mean"], video["mean"], strict=True)
        axes.plot(*ends, "-", color=colour, linewidth=0.9, zorder=2)
        for one, marker, dash in ((text, "o", "-"), (video, "s", "--")):
            wide, high = (2 * deviation for deviation in one["deviations"])
            area: Style = {"facecolor": colour, "alpha": 0.13, "zorder": 1}
            rim: Style = {"facecolor": "none", "edgecolor": colour, "linestyle": dash}
            for style in (area, rim):
                axes.add_patch(Ellipse(one["mean"], wide, high, angle=one["angle"], **style))
            drawn = zip(*one["samples"], strict=True)
            axes.plot(*drawn, marker, color=colour, ms=2.2, alpha=0.55, linestyle="none")
            axes.plot(*one["mean"], marker, color=colour, ms=10, mec="white", zorder=3)
            label = str(one["pair"])
            axes.annotate(label, one["mean"], zorder=4, color=ink_on(colour), **CENTRED)
    shares = [
        f"principal axis {place} ({share:.0%} of the variance of the means)"
        for place, share in enumerate(numbers["explained"], 1)
    ]
    label_axes(axes, *shares)
    axes.set_aspect("equal", "datalim")
    axes.autoscale_view()
    title = "\n".join(words(subjects[0].title, 5.0))
    axes.set_title(title, fontsize=NORMAL, parse_math=False)
    legend = ["● text, ■ video; ellipse: one standard deviation; small: samples"]
    legend += [f"{one['pair']}  {words(one['name'], 4.9, SMALL, 1)[0]}" for one in texts]
    below: Style = {"xycoords": "axes fraction", "va": "top", "parse_math": False}
    axes.annotate("\n".join(legend), (0, -0.13), fontsize=SMALL, color=MUTED, **below)
    return figure


def principal_axes(
    points: Float64[np.ndarray, "points dim"],
) -> tuple[Float64[np.ndarray, "2 dim"], tuple[float, float]]:
    """The two directions in which points vary most, and their shares of the variance.

    The largest entry of each direction is positive, so that a figure does not flip.
    """
    _, sizes, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
    # Of one dimension, or one point, there is one.
    axes, power = np.pad(axes, ((0, 1), (0, 0)))[:2], np.pad(sizes**2, (0, 1))
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])
    first, second = power[:2] / (power.sum() or 1.0)
    return axes * np.where(signs == 0, 1, signs)[:, None], (float(first), float(second))


def ellipse(
    axes: Float64[np.ndarray, "2 dim"], variance: Float64[np.ndarray, " dim"]
) -> tuple[tuple[float, float], float]:
    """Half axes of one deviation, the longer first, and its angle, of a Gaussian seen in a plane.

    Examples:
        >>> ellipse(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), np.array([9.0, 4.0, 1.0]))
        ((3.0, 2.0), 90.0)
    """
    sizes, directions = np.linalg.eigh((axes * variance) @ axes.T)
    x, y = directions[:, 1]
    half = np.sqrt(sizes.clip(min=0))
    return (float(half[1]), float(half[0])), float(np.degrees(np.arctan2(y, x)) % 180)


# --- recall by uncertainty ------------------------------------------------------------------------

_BINS = 5


def uncertainty(subjects: Sequence[Subject], count: int = 0) -> Numbers:
    """R@1 in bins of every measure of uncertainty that the system has, see `binned`."""
    subject = subjects[0]
    if not subject.measures:
        raise SureshotError(
            f"{subject.scorer.name} has no uncertainty to draw: {subject.scorer.system} as it was "
            f"trained measures none. DUQ, UATVR and DVTR do."
        )
    texts = text_ranks(subject.scores, subject.owner) <= 1
    videos = video_ranks(subject.scores, subject.owner) <= 1
    columns = np.unique(subject.owner)
    found = {}
    for name, values in subject.measures.items():
        if name.startswith("text"):
            way, binning = "text to video", (values, texts, subject.owner)
        else:
            way, binning = "video to text", (values[columns], videos, columns)
        found[name] = {"direction": way, **binned(*binning, subject.seed)}
    return {"measures": found}


def binned(
    values: Float[np.ndarray, " queries"],
    right: Bool[np.ndarray, " queries"],
    video: Integer[np.ndarray, " queries"],
    seed: int,
) -> Numbers:
    """R@1 of all queries and of bins of a measure, in percent; equal values share a bin.

    A bin has the lowest, mean and highest value of its queries, and a 95 % interval of R@1 from
    resampled videos, None with one video. ``separation`` is that of failed and found queries.
    """
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="left")
    bins = []
    for held in (place == at for at in np.unique(place)):
        percents, ends = 100.0 * right[held], None
        if (videos := len(np.unique(video[held]))) > 1:
            found = interval(mean_of(percents), video[held], np.random.default_rng(seed))
            found = of_percent(found, videos)
            ends = [found.low, found.high]
        bins.append(
            {
                "low": float(values[held].min()),
                "mean": float(values[held].mean()),
                "high": float(values[held].max()),
                "queries": int(held.sum()),
                "r1": float(percents.mean()),
                "interval": ends,
            }
        )
    return {"r1": 100 * float(right.mean()), "separation": separation(values, right), "bins": bins}


def separation(
    values: Float[np.ndarray, " queries"], right: Bool[np.ndarray, " queries"]
) -> float | None:
    """Chance that a failed query has the larger value than one found, ties half: 0.5 is a guess.

    None where all failed or none did.
    """
    return None if right.all() or not right.any() else auroc(-values, right)


def draw_uncertainty(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """A panel per measure: R@1 of each bin with its interval, all queries as a dashed line."""
    measures = numbers["measures"]
    figure, panels = new_panels(len(measures), 2.3)
    for axes, (name, one) in zip(panels, measures.items(), strict=True):
        x, y = ([part[key] for part in one["bins"]] for key in ("mean", "r1"))
        ends = [part["interval"] or (part["r1"], part["r1"]) for part in one["bins"]]
        low, high = np.array(ends).T
        bars = np.maximum(0.0, [y - low, high - y])
        wide = [(part["mean"] - part["low"], part["high"] - part["mean"]) for part in one["bins"]]
        axes.axhline(one["r1"], color=MUTED, linestyle="--", linewidth=0.9)
        axes.errorbar(x, y, xerr=np.transpose(wide), fmt="none", ecolor="0.75", lw=3, zorder=1)
        axes.errorbar(x, y, yerr=bars, fmt="o-", color=BLUE, ms=5, capsize=3, lw=1.2)
        label_axes(axes, "\n".join(words(quantity(name), 3.0)), f"R@1, %\n{one['direction']}")
        axes.locator_params(axis="x", nbins=5)
        if one["separation"] is not None:
            axes.set_title(f"separation {number(one['separation'])}", fontsize=SMALL, loc="right")
    # Below 0, so that its dots are whole; of all panels, after the highest is known.
    panels[0].set_ylim(bottom=-3)
    note = (
        "bars: 95 % intervals; grey: values of a bin; dashed: all queries; separation: chance "
        "that a failed query has the larger value (0.5: the measure knows nothing)"
    )
    return entitle(figure, subjects[0].title, note)


# --- DVTR's eta -----------------------------------------------------------------------------------

_SURE = 0.9  # the paper counts the negatives above it
_MARGIN = 0.5  # of the paper's triplet loss
_SOFTEST = 3  # named among the numbers


def calibration(subjects: Sequence[Subject], count: int) -> Numbers:
    """Eta and score of all pairs of texts drawn by the seed, see `soft_positives`."""
    subject = subjects[0]
    queries = subject.pairs(count)
    matrices = subject.matrices(queries)
    if "eta" not in matrices:
        raise SureshotError(
            f"{subject.scorer.system} does not estimate how uncertain a pair is; DVTR does."
        )
    if len(subject.items) < 2:
        raise SureshotError("calibration compares a text with other videos; there is only one.")
    texts = [subject.text(query) for query in queries]
    owner = subject.owner[queries]
    return soft_positives(texts, subject.names, matrices["eta"], matrices["score"], owner)


def soft_positives(
    texts: Sequence[str],
    names: Sequence[str],
    eta: Float[np.ndarray, "queries videos"],
    scores: Float[np.ndarray, "queries videos"],
    owner: Integer[np.ndarray, " queries"],
) -> Numbers:
    """Matched and other pairs, and how much of the triplet loss of the others eta spares.

    ``separation`` is the chance that an unmatched pair has a larger eta than a matched one,
    ``above_0_9`` the share of the unmatched above 0.9, and ``softest`` the least of them.
    """
    rows = np.arange(len(owner))
    others = np.ones(eta.shape, bool)
    others[rows, owner] = False
    shape = (len(owner), eta.shape[1] - 1)
    matched, matched_score = eta[rows, owner], scores[rows, owner]
    other, other_score = eta[others].reshape(shape), scores[others].reshape(shape)
    hinge = _hinge(matched_score, other_score)
    total = float(hinge.sum())
    flat = np.argsort(np.where(others, eta, np.inf), axis=None, kind="stable")[:_SOFTEST]
    softest = [
        {"query": texts[row], "video": names[column]}
        | {"eta": float(eta[row, column]), "score": float(scores[row, column])}
        for row, column in zip(*np.unravel_index(flat, eta.shape), strict=True)
    ]
    return {
        "queries": list(texts),
        "matched": {"eta": matched.tolist(), "score": matched_score.tolist()},
        "others": {"eta": other.tolist(), "score": other_score.tolist()},
        "above_0_9": float((other > _SURE).mean()),
        "separation": separation(eta.ravel(), ~others.ravel()),
        "loss_spared": 1 - float((other * hinge).sum()) / total if total else 0.0,
        "softest": softest,
    }


def _hinge(
    matched: Float[np.ndarray, " queries"], others: Float[np.ndarray, "queries others"]
) -> Float[np.ndarray, "queries others"]:
    """The plain triplet loss of each unmatched pair."""
    return np.maximum(0.0, others - matched[:, None] + _MARGIN)


def draw_calibration(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """Score against eta, the loss before and after weighting, and how eta is spread."""
    figure = new_figure(3.5)
    left, middle, right = figure.subplots(1, 3)
    matched, scores = (np.array(numbers["matched"][key]) for key in ("eta", "score"))
    eta, other_scores = (np.array(numbers["others"][key]) for key in ("eta", "score"))
    hinge, eta = _hinge(scores, other_scores).ravel(), eta.ravel()

    dots: Style = {"linestyle": "none", "rasterized": True}
    left.plot(eta, other_scores.ravel(), ".", color="0.55", ms=2.5, label="other pair", **dots)
    style: Style = {"color": BLUE, "mec": "white", "ms": 6, "linestyle": "none"}
    left.plot(matched, scores, "D", label="own pair", **style)
    label_axes(left, "uncertainty η of the pair", "score")
    add_legend(left, loc="lower left")

    middle.plot(eta, hinge, ".", color="0.8", ms=2, label="each, plain", **dots)
    tenth = np.minimum((10 * eta).astype(int), 9)
    tenths = np.unique(tenth)  # that hold pairs
    plain, weighted = ([loss[tenth == at].mean() for at in tenths] for loss in (hinge, eta * hinge))
    at = (tenths + 0.5) / 10
    middle.plot(at, plain, "o--", color=INK, mfc="white", ms=4, label="mean, plain")
    middle.plot(at, weighted, "x-", color=ORANGE, ms=5, mew=1.5, label="mean, times η")
    label_axes(middle, "uncertainty η of the pair", f"triplet loss of the pair (margin {_MARGIN})")
    add_legend(middle)
    middle.set_title(f"{numbers['loss_spared']:.0%} of the loss is spared", fontsize=SMALL)

    right.plot(np.sort(eta), np.linspace(0, 1, eta.size), "-", color=INK, label="other pairs")
    own = np.linspace(0, 1, len(matched))
    right.plot(np.sort(matched), own, "D--", color=BLUE, ms=3, label="own pairs")
    right.axvline(_SURE, color="0.6", linewidth=0.8, linestyle=":")
    label_axes(right, "uncertainty η of the pair", "share of pairs below η")
    right.set_title(f"{numbers['above_0_9']:.0%} of other pairs above {_SURE}", fontsize=SMALL)
    add_legend(right)
    for axes in (left, middle, right):
        axes.set_xlim(-0.02, 1.02)
    return entitle(figure, subjects[0].title)


# --- matrices of pairs ----------------------------------------------------------------------------

_POINTS = 105  # of a panel's side
_ABREAST = 3  # panels side by side
_ACROSS, _DOWN = 8, 12  # ticks of an axis, at most
_NOTE = (
    "light is near; ring: best video of the text; square: best text of the video; the pairs are on "
    "the diagonal"
)


def matrices(subjects: Sequence[Subject], count: int) -> Numbers:
    """Square matrices of pairs drawn by the seed, of one model or of two; text i describes video i.

    Beliefs and vacuities are those among all videos of the split; only the pairs are shown.
    """
    subject = subjects[0]
    queries = subject.pairs(count)
    columns = subject.owner[queries]
    numbers: Numbers = {
        "captions": [subject.text(query) for query in queries],
        "videos": [subject.names[column] for column in columns],
        **_of_pairs(subject, queries),
    }
    if len(subjects) > 1:
        second = _of_pairs(subjects[1], queries)
        numbers["compare_with"] = {"model": tell_apart(*subjects)[1], **second}
    return numbers


def _of_pairs(subject: Subject, queries: Sequence[int]) -> Numbers:
    """The matrices, the score first, and the measures of the texts."""
    columns = subject.owner[queries]
    squares = {n: matrix[:, columns] for n, matrix in subject.matrices(queries).items()}
    measures = subject.measures.items()
    return {
        "matrices": {name: pair_matrix(name, square) for name, square in squares.items()},
        "texts": {n: values[queries].tolist() for n, values in measures if n.startswith("text")},
    }


def pair_matrix(name: str, matrix: Float[np.ndarray, "pairs pairs"]) -> Numbers:
    """A matrix, and how many texts find their video by it and videos their text, without ties."""
    near = nearest(matrix, name)
    own = np.diag(near)
    return {
        "values": matrix.tolist(),
        "texts_found": int(((near >= own[:, None]).sum(1) == 1).sum()),
        "videos_found": int(((near >= own).sum(0) == 1).sum()),
    }


def draw_matrices(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """Two models side by side, a row for each matrix that both have; of one its texts' measures."""
    if len(subjects) > 1:
        return _draw_two(subjects, numbers)
    squares, texts = numbers["matrices"], numbers["texts"]
    count = len(squares) + len(texts)
    abreast = 2 if count == 4 else min(count, _ABREAST)
    width = max(WIDTH * abreast / _ABREAST, 5.0)
    figure, panels = new_panels(
        count, width / abreast + 0.3, abreast=abreast, width=width, alike=False
    )
    for axes, (name, square) in zip(panels, squares.items(), strict=False):
        _draw_square(axes, name, square, quantity(name), square["values"])
    for axes, (name, values) in zip(panels[len(squares) :], texts.items(), strict=True):
        style: Style = {"ms": 4, "mfc": "white", "color": INK, "linestyle": "none"}
        axes.plot(values, range(len(values)), "o", **style)
        label_axes(axes, "\n".join(words(quantity(name), 2.0)), "text")
        axes.locator_params(axis="x", nbins=3)
        _number_pairs(axes.yaxis, len(values), _DOWN)
        axes.set_box_aspect(1)
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.margins(x=0.08)
        axes.set_title("of each text", fontsize=NORMAL)
    return entitle(figure, subjects[0].title, _NOTE)


def _draw_two(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    names, both = tell_apart(*subjects), (numbers["matrices"], numbers["compare_with"]["matrices"])
    shared = [name for name in both[0] if name in both[1]]
    figure, panels = new_panels(2 * len(shared), 3.5, alike=False)
    for place, name in enumerate(shared):
        scale = [one[name]["values"] for one in both]
        for axes, model, one in zip(panels[2 * place :], names, both, strict=False):
            _draw_square(axes, name, one[name], f"{model}: {quantity(name)}", scale, width=3.0)
    title = f"{names[0]}, {subjects[0].features.split.title()}, compared with {names[1]}"
    return entitle(figure, title, f"{_NOTE}; both models in the same colours")


def _draw_square(
    axes: "Axes", name: str, square: Numbers, heading: str, scale: Any, *, width: float = 2.0
) -> None:
    """A matrix, in colours from the lowest to the highest value of ``scale``."""
    matrix = np.array(square["values"])
    near = nearest(matrix, name)
    colours = "cividis_r" if name in SMALL_IS_NEAR else "cividis"
    low, high = float(np.min(scale)), float(np.max(scale))
    image = axes.imshow(matrix, cmap=colours, interpolation="nearest", vmin=low, vmax=high)
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.04)
    bar.ax.tick_params(labelsize=SMALL - 1)
    bar.ax.locator_params(nbins=6)
    bar.outline.set_visible(False)
    count = len(matrix)
    marks = [(row, column, "o", 0.45) for row, column in enumerate(near.argmax(1))]
    marks += [(row, column, "s", 0.75) for column, row in enumerate(near.argmax(0))]
    middle = float(nearest(np.array([[(low + high) / 2]]), name)[0, 0])
    for row, column, marker, size in marks:
        light = near[row, column] > middle
        rim: Style = {"facecolors": "none", "edgecolors": "black" if light else "white"}
        area = (size * _POINTS / count) ** 2
        thin = min(1.0, 16 / count)  # else the rings of many pairs are filled
        axes.scatter(column, row, s=area, marker=marker, linewidths=thin, **rim)
    found = f"found: {square['texts_found']} texts, {square['videos_found']} videos"
    title = "\n".join([*words(heading, width), found])
    axes.set_title(title, fontsize=NORMAL, parse_math=False)
    _number_pairs(axes.xaxis, count, _ACROSS)
    _number_pairs(axes.yaxis, count, _DOWN)
    axes.set_xlabel("video", fontsize=SMALL)
    axes.set_ylabel("text", fontsize=SMALL)


def _number_pairs(axis: Any, count: int, limit: int) -> None:
    """Numbers of the pairs from 1, as many of them as can be read."""
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    step = next(step for step in steps if count <= limit * step)
    places = range(0, count, step)
    axis.set_ticks(places, [str(place + 1) for place in places], fontsize=SMALL - 1)


# --- checkpoints of several epochs ----------------------------------------------------------------


def epochs(subjects: Sequence[Subject], count: int = 0) -> Numbers:
    """Mean measures and R@1 of several checkpoints of one system.

    Those whose recipes differ in the seed alone are one of the ``points``, their mean; its 95 %
    interval is of other test videos, with these seeds.
    """
    if len(subjects) < 2:
        raise SureshotError(
            "epochs draws how uncertainty and recall change together; name two checkpoints or more."
        )
    checkpoints: list[Numbers] = []
    together: dict[str, dict[Any, int]] = {}  # rows of the checkpoints of a point, by their seed
    found = []
    for row, subject in enumerate(subjects):
        found.append(text_ranks(subject.scores, subject.owner) <= 1)
        means = {name: float(values.mean()) for name, values in subject.measures.items()}
        one = {"name": subject.scorer.name, "r1": 100 * float(found[-1].mean())}
        checkpoints.append(one | {"means": means})
        first = checkpoints[0]
        if not means or means.keys() != first["means"].keys():
            raise SureshotError(
                f"{subject.scorer.name} measures {', '.join(means) or 'no uncertainty'}, "
                f"{first['name']} {', '.join(first['means']) or 'none'}; name checkpoints of one "
                f"system that has some, such as DUQ, UATVR or DVTR."
            )
        training = {**subject.scorer.recipe.get("training", {})}
        seed = training.pop("seed", None)
        seeds = together.setdefault(repr({**subject.scorer.recipe, "training": training}), {})
        if seed is None or seed in seeds:  # not known, or another checkpoint of the same run
            seeds = together[str(row)] = {}
        seeds[seed] = row
    points = []
    for rows in (list(seeds.values()) for seeds in together.values() if seeds):
        hits, owner = 100 * np.mean([found[row] for row in rows], axis=0), subjects[0].owner
        r1 = interval(mean_of(hits), owner, np.random.default_rng(subjects[0].seed))
        r1 = of_percent(r1, len(np.unique(owner)))
        each = [checkpoints[row]["means"] for row in rows]
        means = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
        points.append({"checkpoints": rows, "r1": r1.value, "means": means})
        points[-1]["interval"] = [r1.low, r1.high]
    return {"checkpoints": checkpoints, "points": points}


def draw_epochs(subjects: Sequence[Subject], numbers: Numbers) -> "Figure":
    """A panel per measure; numbers are the order of the points, small dots their checkpoints."""
    checkpoints, points = numbers["checkpoints"], numbers["points"]
    names = list(points[0]["means"])
    figure, panels = new_panels(len(names), 2.5)
    y = [point["r1"] for point in points]
    bars = np.abs(np.transpose([point["interval"] for point in points]) - y)
    for axes, name in zip(panels, names, strict=True):
        x = [point["means"][name] for point in points]
        axes.errorbar(x, y, yerr=bars, fmt="o-", color=BLUE, ms=9, lw=1.0, elinewidth=0.8)
        if len(points) < len(checkpoints):
            each = [(one["means"][name], one["r1"]) for one in checkpoints]
            axes.plot(*zip(*each, strict=True), "o", color="0.6", ms=3, zorder=3)
        for order, place in enumerate(zip(x, y, strict=True), 1):
            axes.annotate(str(order), place, color="white", zorder=4, **CENTRED)
        label = "\n".join(words(f"mean {quantity(name)}", 3.0))
        label_axes(axes, label, "R@1, %, text to video")
        axes.margins(0.15)
    seeds = "; grey: single seeds" if len(points) < len(checkpoints) else ""
    note = f"numbers: in the order they were named; bars: 95 % intervals over videos{seeds}"
    return entitle(figure, subjects[0].title, note)


# --- a trust report -------------------------------------------------------------------------------

_CURVE_POINTS = 400  # of a curve at most
_FEWEST = 10  # queries that a point is about, for its share to say much
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 3)))
_MARKS = ("o", "s", "^", "D")
_SIZES = ((BLUE, "-", "o"), (ORANGE, "--", "s"), (INK, "-.", "^"))


def write_trust(report: TrustReport, folder: Path) -> list[Path]:
    """Write every figure that a report has numbers for, as PNG and SVG, and name the files."""
    paths = []
    for name, numbers, draw in (
        ("reliability", report.reliability, draw_reliability),
        ("risk", report.confidences, draw_risk),
        ("sets", report.sizes, draw_sets),
    ):
        if numbers:
            figure = draw(report)
            for suffix in SUFFIXES:
                paths.append(folder / f"trust-{name}{suffix}")
                save_figure(figure, paths[-1])
    return paths


def draw_reliability(report: TrustReport) -> "Figure":
    """Share of right answers against the probability given; below it how many queries each has."""
    figure = new_figure(5.4, width=4.6)
    top, low = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
    top.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=0.9)
    shown = sorted(report.reliability.items(), key=lambda item: item[0] != OURS)
    for place, (name, bins) in enumerate(shown):
        style: Style = {"color": SERIES[place], "marker": _MARKS[place % len(_MARKS)]}
        if place:
            style |= {"mfc": "white", "linewidth": 0.9, "linestyle": _DASHES[place]}
        many = bins.count >= _FEWEST
        x, y = bins.probability, bins.right
        top.plot(x[many], y[many], label=name, ms=4.5, zorder=5 - place, **style)
        top.plot(x[~many], y[~many], **(style | {"ms": 2.5, "linestyle": "none"}))
    label_axes(top, "", "share that is right")
    top.set_ylim(-0.03, 1.03)
    add_legend(top, loc="upper left")
    name, bins = shown[0]
    bars = low.bar((bins.low + bins.high) / 2, bins.count, (bins.high - bins.low) * 0.9, color=BLUE)
    low.bar_label(bars, fmt="%d", padding=1, fontsize=5.5)
    label_axes(low, "probability given", "queries")
    low.margins(y=0.22)
    low.set_xlim(-0.02, 1.02)
    note = (
        f"dashed: a true probability; small: bins of fewer than {_FEWEST} queries; bars: queries "
        f"of each bin of {name}"
    )
    return entitle(figure, _title(report), note)


def draw_risk(report: TrustReport) -> "Figure":
    """Share of wrong answers among the surest queries, for every signal, best first."""
    figure = new_figure(4.0)
    axes = figure.add_subplot()
    wrong = ~report.right
    ordered = sorted(report.confidences.items(), key=lambda item: aurc(item[1], wrong))
    others = 0
    for name, confidence in ordered:
        label = f"{name}, {number(aurc(confidence, wrong))}"
        coverage, share = risk_curve(confidence, wrong)
        # Without the first few queries, whose share of wrong ones jumps.
        first = min(max(_FEWEST, len(coverage) // 100), len(coverage)) - 1
        x, y = _thinned(coverage[first:], share[first:])
        if name == OURS:
            axes.plot(x, y, color=BLUE, linewidth=2.6, label=label, zorder=5)
            continue
        colours = SERIES[1:]
        style: Style = {
            "color": colours[others % len(colours)],
            # Whose colour comes again has another dash.
            "linestyle": _DASHES[(others + others // len(colours)) % len(_DASHES)],
            "marker": _MARKS[others % len(_MARKS)],
            "markevery": (0.03 * others % 0.25, 0.25),
            "ms": 3,
        }
        axes.plot(x, y, linewidth=1.0, label=label, **style)
        others += 1
    risk_of_all = float(wrong.mean())
    axes.axhline(risk_of_all, color=MUTED, linestyle=":", linewidth=0.9)
    answered = np.linspace(0.0, 1.0, 101)[1:]
    best = np.maximum(0, 1 - (1 - risk_of_all) / answered)
    axes.fill_between(answered, best, color="0.92", linewidth=0)
    label_axes(
        axes, "share of the queries that is answered, the surest first", "share that is wrong"
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    place: Style = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "alignment": "left"}
    add_legend(axes, title="signal, AURC", **place)
    note = "dotted: chance; grey: no order comes lower; lower is better"
    return entitle(figure, _title(report), note)


def draw_sets(report: TrustReport) -> "Figure":
    """How large the sets are: for every share of the queries, the size that they do not exceed."""
    figure = new_figure(3.2, width=4.6)
    axes = figure.add_subplot()
    for (coverage, sizes), (colour, dash, mark) in zip(report.sizes.items(), _SIZES, strict=False):
        ordered = np.sort(sizes).astype(np.float64)
        x, y = _thinned(np.arange(1, len(ordered) + 1) / len(ordered), ordered)
        median = float(np.median(sizes))
        mean = number(float(sizes.mean()))
        label = f"{100 * coverage:.0f} %: median {median:.0f}, mean {mean}"
        axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.4, label=label)
        axes.plot([0.5], [median], mark, color=colour, ms=5)
    axes.axhline(report.videos, color=MUTED, linestyle=":", linewidth=0.9)
    _sized(axes, report.videos)
    label_axes(axes, "share of the queries", "videos in the set, at most")
    axes.set_xlim(0, 1)
    add_legend(axes, loc="lower right", title="promised coverage")
    note = f"dotted: all {report.videos} videos; markers: half of the queries"
    return entitle(figure, _title(report), note)


def _sized(axes: "Axes", videos: int) -> None:
    """A logarithmic scale that begins at 0, with plain numbers."""
    axes.set_yscale("symlog", linthresh=1, linscale=0.4)
    steps = [0, *(step * 10**power for power in range(6) for step in (1, 2, 5))]
    ticks = [tick for tick in steps if tick <= videos]
    axes.set_yticks(ticks, list(map(str, ticks)))
    axes.set_yticks([], minor=True)
    axes.set_ylim(0, videos * 1.1)


def _thinned(
    x: Float64[np.ndarray, " queries"], y: Float64[np.ndarray, " queries"]
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """As many points as can be seen, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(_CURVE_POINTS, len(x))).astype(int))
    return x[chosen], y[chosen]


def _title(report: TrustReport) -> str:
    return report.title or f"{report.queries} queries, {report.videos} videos"
