"""Gaussians in a plane: axes, ellipses and samples, against slow ways to get them."""

import math

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.research.figures.canvas import BLUE, ORANGE
from sureshot.research.figures.plots import (
    Blob,
    Embeddings,
    ellipse,
    embeddings,
    principal_axes,
)
from tests.research.figures.pictures import pixels, share, shown

RNG = np.random.default_rng(0)


def test_the_axes_are_the_largest_eigenvectors_of_the_covariance():
    points = RNG.standard_normal((40, 6)) * [1, 5, 2, 0.1, 1, 3]
    axes, shares = principal_axes(points)
    sizes, vectors = np.linalg.eigh(np.cov(points.T))
    for axis, vector in zip(axes, vectors.T[::-1], strict=False):
        assert abs(axis @ vector) == pytest.approx(1.0)
        assert axis[np.abs(axis).argmax()] > 0
    assert shares == pytest.approx((sizes[::-1] / sizes.sum())[:2])


@pytest.mark.parametrize("shape", [(1, 3), (5, 1), (2, 2)])
def test_few_points_or_dimensions_have_axes_too(shape):
    axes, shares = principal_axes(RNG.standard_normal(shape))
    assert axes.shape == (2, shape[1]) and np.isfinite(axes).all()
    assert 0 <= shares[1] <= shares[0] <= 1


def test_the_ellipse_is_that_of_many_samples():
    axes = np.linalg.qr(RNG.standard_normal((5, 2)))[0].T
    variance = np.array([4.0, 0.5, 1.0, 9.0, 0.1])
    seen = (RNG.standard_normal((200_000, 5)) * np.sqrt(variance)) @ axes.T
    sizes, vectors = np.linalg.eigh(np.cov(seen.T))
    (long, short), angle = ellipse(axes, variance)
    assert (short, long) == pytest.approx(np.sqrt(sizes), rel=0.01)
    turned = math.degrees(math.atan2(*vectors[::-1, 1])) % 180
    assert min(abs(turned - angle), 180 - abs(turned - angle)) < 1.0
    assert 0 <= angle < 180


@pytest.mark.parametrize("system", ["duq", "uatvr", "dvtr"])
def test_means_and_samples_are_those_of_the_system(subject, system):
    of = subject(system)
    found = embeddings(of, 4)
    assert [(blob.pair, blob.kind) for blob in found.blobs] == [
        (pair, kind) for pair in (1, 2, 3, 4) for kind in ("text", "video")
    ]
    texts, videos = of.gaussians(of.pairs(4))
    every = np.concatenate([texts.mean.numpy(), videos.mean.numpy()]).astype(float)
    axes, shares = principal_axes(every)
    assert found.explained == pytest.approx(shares)
    flat = (every - every.mean(0)) @ axes.T
    for row in range(4):
        assert found.blobs[2 * row].mean == pytest.approx(flat[row])
        assert found.blobs[2 * row + 1].mean == pytest.approx(flat[4 + row])
        assert found.blobs[2 * row].name == of.text(of.pairs(4)[row])
        expected = ellipse(axes, videos.log_var[row].double().exp().numpy())[0]
        assert found.blobs[2 * row + 1].deviations == pytest.approx(expected)
        assert len(found.blobs[row].samples) == 7
    assert found.to_dict() == embeddings(of, 4).to_dict()


def test_samples_scatter_as_the_ellipse_says(subject, monkeypatch):
    monkeypatch.setattr("sureshot.research.figures.plots._SAMPLES", 4000)
    for blob in embeddings(subject("duq"), 2).blobs:
        seen = np.array(blob.samples)
        assert seen.mean(0) == pytest.approx(blob.mean, abs=0.1 * blob.deviations[0])
        sizes = np.sqrt(np.linalg.eigvalsh(np.cov(seen.T)))
        assert (sizes[1], sizes[0]) == pytest.approx(blob.deviations, rel=0.06)


def test_without_gaussians_the_error_names_systems_that_have_them(subject):
    for name in ("xpool", "clip4clip", "tiny"):
        with pytest.raises(SureshotError, match=r"has no Gaussians .* DUQ, UATVR and DVTR do"):
            embeddings(subject(name), 3)


def test_each_pair_has_its_colour_number_and_ellipses():
    def blob(pair, kind, x, y):
        x, y = float(x), float(y)
        return Blob(pair, kind, f"{kind} {pair} $x$", (x, y), (0.5, 0.2), 30.0, ((x, y + 0.1),))

    def drawn(*pairs):
        blobs = [blob(n, kind, n, k) for n in pairs for k, kind in enumerate(("text", "video"))]
        return Embeddings("title", (0.6, 0.3), blobs).draw()

    one, two = drawn(1), drawn(1, 2)
    assert share(pixels(one), BLUE) > 0.002 and share(pixels(one), ORANGE) == 0
    assert share(pixels(two), ORANGE) > 0.002
    (axes,) = two.axes
    assert [(p.width, p.height, p.angle) for p in axes.patches] == [(1.0, 0.4, 30.0)] * 8
    text = shown(two)
    assert "principal axis 1 (60% of the variance" in text
    assert "1  text 1 $x$" in text and "video 2" not in text
