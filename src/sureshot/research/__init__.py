"""What a researcher does: train, evaluate, draw, and answer questions about videos.

Importing this package is cheap: what needs numpy or torch is imported at its first use.
"""

from typing import TYPE_CHECKING

from sureshot.lazy import lazy

if TYPE_CHECKING:
    from sureshot.research.evaluation import Evaluation as Evaluation
    from sureshot.research.evaluation import evaluate as evaluate
    from sureshot.research.figures.plotting import Plot as Plot
    from sureshot.research.figures.plotting import plot as plot
    from sureshot.research.questions.answerer import Answerer as Answerer
    from sureshot.research.questions.evaluation import AnswerEvaluation as AnswerEvaluation
    from sureshot.research.questions.evaluation import evaluate_answers as evaluate_answers
    from sureshot.research.questions.recipe import AnswerRecipe as AnswerRecipe
    from sureshot.research.questions.run import train_answers as train_answers
    from sureshot.research.training.loop import Fitted as Fitted
    from sureshot.research.training.recipe import Recipe as Recipe
    from sureshot.research.training.run import train as train

_HOMES = {
    "AnswerEvaluation": "sureshot.research.questions.evaluation",
    "AnswerRecipe": "sureshot.research.questions.recipe",
    "Answerer": "sureshot.research.questions.answerer",
    "Evaluation": "sureshot.research.evaluation",
    "Fitted": "sureshot.research.training.loop",
    "Plot": "sureshot.research.figures.plotting",
    "Recipe": "sureshot.research.training.recipe",
    "evaluate": "sureshot.research.evaluation",
    "evaluate_answers": "sureshot.research.questions.evaluation",
    "plot": "sureshot.research.figures.plotting",
    "train": "sureshot.research.training.run",
    "train_answers": "sureshot.research.questions.run",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
