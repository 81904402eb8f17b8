"""Items as Gaussians, seen from two directions: means, ellipses and samples."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Float64

from sureshot.models.gaussian import Gaussian, draw_noise, sample
from sureshot.research.figures.canvas import (
    CENTRED,
    MUTED,
    NORMAL,
    SERIES,
    SMALL,
    Style,
    ink_on,
    label_axes,
    new_figure,
    words,
)
from sureshot.research.figures.subject import Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SAMPLES = 7  # as the papers draw


@dataclass(frozen=True)
class Blob:
    """A Gaussian in the plane.

    Attributes:
        pair: number of its pair, from 1.
        kind: kind of the item.
        name: the caption, or the video's name.
        mean: x and y.
        deviations: longer and shorter half axis of the ellipse of one deviation.
        angle: degrees between the longer axis and the x axis.
        samples: x and y of each embedding drawn.
    """

    pair: int
    kind: Literal["text", "video"]
    name: str
    mean: tuple[float, float]
    deviations: tuple[float, float]
    angle: float
    samples: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Embeddings:
    """Gaussians of pairs on the two principal axes of their means.

    Attributes:
        title: model and split.
        explained: share of the variance of the means along each axis, in [0, 1].
        blobs: text and video of each pair in turn.
    """

    title: str
    explained: tuple[float, float]
    blobs: Sequence[Blob]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        return {"explained": list(self.explained), "items": [asdict(blob) for blob in self.blobs]}

    def draw(self) -> "Figure":
        """Circles are texts, squares videos; a line joins a pair, an ellipse is one deviation."""
        from matplotlib.patches import Ellipse

        pairs = len(self.blobs) // 2
        figure = new_figure(4.4 + 0.17 * pairs, width=5.6)
        axes = figure.add_subplot()
        for text, video in zip(self.blobs[::2], self.blobs[1::2], strict=True):
            colour = SERIES[(text.pair - 1) % len(SERIES)]
            ends = [text.mean[0], video.mean[0]], [text.mean[1], video.mean[1]]
            axes.plot(*ends, "-", color=colour, linewidth=0.9, zorder=2)
            for blob, marker in ((text, "o"), (video, "s")):
                wide, high = (2 * deviation for deviation in blob.deviations)
                style = "-" if blob.kind == "text" else "--"
                about: Style = {"facecolor": colour, "alpha": 0.13, "zorder": 1}
                rim: Style = {"facecolor": "none", "edgecolor": colour, "linestyle": style}
                for look in (about, rim):
                    axes.add_patch(Ellipse(blob.mean, wide, high, angle=blob.angle, **look))
                drawn = zip(*blob.samples, strict=True)
                axes.plot(*drawn, marker, color=colour, ms=2.2, alpha=0.55, linestyle="none")
                axes.plot(*blob.mean, marker, color=colour, ms=10, mec="white", zorder=3)
                axes.annotate(str(blob.pair), blob.mean, zorder=4, color=ink_on(colour), **CENTRED)
        shares = [f"principal axis {n} ({share:.0%} of the variance of the means)"
                  for n, share in enumerate(self.explained, 1)]  # fmt: skip
        label_axes(axes, *shares)
        axes.set_aspect("equal", "datalim")
        axes.autoscale_view()
        axes.set_title("\n".join(words(self.title, 5.0)), fontsize=NORMAL, parse_math=False)
        legend = ["● text, ■ video; ellipse: one standard deviation; small: samples"]
        legend += [f"{b.pair}  {words(b.name, 4.9, SMALL, 1)[0]}" for b in self.blobs[::2]]
        axes.annotate(
            "\n".join(legend),
            (0, -0.13),
            xycoords="axes fraction",
            va="top",
            fontsize=SMALL,
            color=MUTED,
            parse_math=False,
        )
        return figure


def embeddings(subject: Subject, count: int) -> Embeddings:
    """The Gaussians of pairs drawn by the seed, each of another video.

    Raises:
        SureshotError: the system trains none.
    """
    queries = subject.pairs(count)
    texts, videos = subject.gaussians(queries)
    names = [
        [subject.text(query) for query in queries],
        [subject.items[video].id for video in subject.owner[queries]],
    ]
    axes, explained = principal_axes(torch.cat([texts.mean, videos.mean]).double().numpy())
    centre = torch.cat([texts.mean, videos.mean]).double().numpy().mean(0)
    draw = torch.Generator().manual_seed(subject.seed)
    blobs: list[Blob] = []
    for row in range(len(queries)):
        for kind, side, name in (("text", texts, names[0]), ("video", videos, names[1])):
            one = Gaussian(side.mean[row].double(), side.log_var[row].double())
            noise = draw_noise((_SAMPLES, len(one.mean)), draw, torch.float64)
            blobs.append(_blob(row + 1, kind, name[row], one, noise.numpy(), axes, centre))
    return Embeddings(subject.title, explained, blobs)


def principal_axes(
    points: Float64[np.ndarray, "points dim"],
) -> tuple[Float64[np.ndarray, "2 dim"], tuple[float, float]]:
    """The two directions in which points vary most, and their shares of the variance.

    The largest entry of each direction is positive, so that a figure does not flip.
    """
    centred = points - points.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    power = sizes**2
    if len(axes) < 2:  # one dimension, or one point
        axes = np.pad(axes, ((0, 2 - len(axes)), (0, 0)))
        power = np.pad(power, (0, 2 - len(power)))
    axes = axes[:2]
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])
    total = power.sum() or 1.0
    return axes * np.where(signs == 0, 1, signs)[:, None], (
        float(power[0] / total),
        float(power[1] / total),
    )


def ellipse(
    axes: Float64[np.ndarray, "2 dim"], variance: Float64[np.ndarray, " dim"]
) -> tuple[tuple[float, float], float]:
    """Half axes of one deviation, the longer first, and its angle, of a Gaussian seen in a plane.

    Examples:
        >>> ellipse(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), np.array([9.0, 4.0, 1.0]))
        ((3.0, 2.0), 90.0)
    """
    covariance = (axes * variance) @ axes.T
    sizes, directions = np.linalg.eigh(covariance)
    x, y = directions[:, 1]
    half = np.sqrt(sizes.clip(min=0))
    return (float(half[1]), float(half[0])), float(np.degrees(np.arctan2(y, x)) % 180)


def _blob(
    pair: int,
    kind: Any,
    name: str,
    one: Gaussian,
    noise: Float[np.ndarray, "k dim"],
    axes: Float64[np.ndarray, "2 dim"],
    centre: Float64[np.ndarray, " dim"],
) -> Blob:
    drawn = sample(one, torch.from_numpy(noise)).numpy()
    mean = axes @ (one.mean.numpy() - centre)
    deviations, angle = ellipse(axes, one.log_var.exp().numpy())
    samples = (drawn - centre) @ axes.T
    return Blob(
        pair=pair,
        kind=kind,
        name=name,
        mean=(float(mean[0]), float(mean[1])),
        deviations=deviations,
        angle=angle,
        samples=tuple((float(x), float(y)) for x, y in samples),
    )
