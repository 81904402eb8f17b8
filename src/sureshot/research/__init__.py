"""What a researcher does: train, evaluate, draw, reproduce, and answer questions about videos.

Importing this package is cheap: what needs numpy or torch is imported at its first use.
"""

from typing import TYPE_CHECKING

from sureshot.lazy import lazy

if TYPE_CHECKING:
    from sureshot.research.evaluation import Evaluation as Evaluation
    from sureshot.research.evaluation import evaluate as evaluate
    from sureshot.research.figures.plotting import Plot as Plot
    from sureshot.research.figures.plotting import plot as plot

_HOMES = {
    "Evaluation": "sureshot.research.evaluation",
    "Plot": "sureshot.research.figures.plotting",
    "evaluate": "sureshot.research.evaluation",
    "plot": "sureshot.research.figures.plotting",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
