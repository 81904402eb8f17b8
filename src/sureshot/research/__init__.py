"""What a researcher does: train, evaluate, draw, reproduce, and answer questions about videos.

Importing this package is cheap: what needs numpy or torch is imported at its first use.
"""

from typing import TYPE_CHECKING, Any

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
__all__ = ["Evaluation", "Plot", "evaluate", "plot"]


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'sureshot.research' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that can be asked for, imported yet or not."""
    return sorted(__all__)
