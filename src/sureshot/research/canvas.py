"""Where figures are drawn: a page of matplotlib, colours that all can tell apart, and files."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sureshot.errors import SureshotError, require_research
from sureshot.files import replace_file
from sureshot.media.contact_sheet import drawable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Style = dict[str, Any]  # keywords of a drawing

SUFFIXES = (".png", ".svg")
WIDTH = 7.0  # inches: the text width of a paper
SMALL, NORMAL = 7.0, 8.0  # points
CENTRED: Style = {"ha": "center", "va": "center", "fontsize": SMALL - 1}

INK, MUTED, PALE = "#1a1a1a", "#6b6b6b", "#c9c9c9"
BLUE, ORANGE = "#0072b2", "#d55e00"
# Okabe and Ito's colours that are dark enough for lines; markers and numbers say the same.
SERIES = (BLUE, ORANGE, "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6b6b6b", "#000000")

_LIGHT = frozenset({"#cc79a7", "#56b4e9", "#e69f00"})  # of them, which take black letters


def ink_on(colour: str) -> str:
    """Colour of letters on one of `SERIES`."""
    return "black" if colour in _LIGHT else "white"


def new_figure(height: float, *, width: float = WIDTH, constrained: bool = True) -> "Figure":
    """An empty figure of this size in inches, if matplotlib is installed."""
    require_research("A figure", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure; the suffix says what it becomes. The same figure gives the same file."""
    from matplotlib import rc_context

    if path.suffix.lower() not in SUFFIXES:
        raise SureshotError(f"{path} would be no picture; let its name end in .png or .svg.")
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Names inside an SVG are random otherwise.
        with rc_context({"svg.hashsalt": "sureshot"}), replace_file(path) as fresh:
            figure.savefig(fresh, dpi=150, metadata=metadata)
    except OSError as error:
        raise SureshotError(f"The figure {path} cannot be written: {error}.") from None


def label_axes(axes: "Axes", xlabel: str, ylabel: str) -> None:
    """Labels and a light frame; ticks have whole numbers, without an offset."""
    axes.set_xlabel(xlabel, fontsize=NORMAL)
    axes.set_ylabel(ylabel, fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        formatter: Any = axis.get_major_formatter()
        if hasattr(formatter, "set_useOffset"):  # only that of plain numbers
            formatter.set_useOffset(False)


def new_panels(
    count: int, height: float, *, abreast: int = 2, width: float | None = None, alike: bool = True
) -> "tuple[Figure, Sequence[Axes]]":
    """A figure of panels in rows so many inches high; if ``alike`` they share a vertical scale."""
    abreast = min(abreast, count)
    down = -(-count // abreast)
    figure = new_figure(height * down + 0.5, width=width or (WIDTH if abreast > 1 else 4.5))
    grid = figure.subplots(down, abreast, squeeze=False, sharey=alike).ravel()
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, list(grid[:count])


def entitle(figure: "Figure", title: str, note: str = "") -> "Figure":
    """A figure with a title above and how to read it below, each in as many lines as it needs."""
    width = float(figure.get_figwidth()) - 0.3
    figure.suptitle("\n".join(words(title, width)), fontsize=NORMAL, parse_math=False)
    if note:
        figure.supxlabel("\n".join(words(note, width, SMALL)), fontsize=SMALL)
    return figure


def add_legend(axes: "Axes", **style: Any) -> None:
    """A small legend without a frame; ``style`` is passed to matplotlib."""
    axes.legend(**{"fontsize": SMALL, "title_fontsize": SMALL, "frameon": False} | style)


def words(text: str, width: float, size: float = NORMAL, lines: int = 3) -> list[str]:
    """A text in lines of at most this many inches, nearly; what does not fit ends in an ellipsis.

    Examples:
        >>> words("a man is singing", 0.6)
        ['a man is', 'singing']
        >>> words("a man is singing", 0.6, lines=1)
        ['a man is…']
    """
    letters = max(4, int(width / (size * 0.0078)))
    return textwrap.wrap(drawable(text), letters, max_lines=lines, placeholder="…") or [""]


def number(value: float) -> str:
    """A number in three places, with a true minus sign.

    Examples:
        >>> number(-0.1234), number(12.345), number(1234.5), number(0.00012)
        ('−0.123', '12.3', '1234', '0.00012')
    """
    size = abs(value)
    form = ".0f" if size >= 100 else ".1f" if size >= 10 else ".3f"
    return f"{value:{form if size >= 0.001 or value == 0 else '.2g'}}".replace("-", "−")


# Numbers of a pair, by their name in `sureshot.models.systems.base.System.matrices`.
_OF_PAIRS = {
    "score": "score of the pair",
    "similarity": "cosine similarity",
    "belief": "belief that the pair belongs together",
    "distance": "expected distance of the pair",
    "printed score": "re-ranked score as printed",
    "eta": "η (weight of the pair as a negative)",
    "wasserstein": "squared Wasserstein distance of the Gaussians",
    "log radius": "log radius of the text towards the video",
    "sentence frame": "score of sentence and frames",
    "word patch": "score of words and patches",
    "distribution": "score of samples of the Gaussians",
}

# Numbers of a text or a video, by their name in `...System.measures` without the side.
_OF_ITEMS = {
    "deviation": "standard deviation of the {side}'s Gaussian",
    "spread": "log total variance of the {side}'s Gaussian",
    "vacuity": "vacuity of the {side} (lack of evidence, 0 to 1)",
    "distance vacuity": "vacuity of the {side} from distances (0 to 1)",
    "least eta": "least η of the {side} (weight of a negative)",
    "eta deviation": "standard deviation of the {side}'s Gaussian for η",
}


def quantity(name: str) -> str:
    """What the number of this name is; the name itself where nothing more is known.

    Examples:
        >>> quantity("eta"), quantity("text spread")
        ('η (weight of the pair as a negative)', "log total variance of the text's Gaussian")
        >>> quantity("video mood")
        'video mood'
    """
    side, _, measure = name.partition(" ")
    if side in ("text", "video") and measure in _OF_ITEMS:
        return _OF_ITEMS[measure].format(side=side)
    return _OF_PAIRS.get(name, name)
