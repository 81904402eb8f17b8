import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.fit import labelled

SCORES = np.array([[0.3, 0.1, 0.2], [0.0, 0.5, 0.4], [0.9, 0.8, 0.7]])
RELEVANT = np.array([[True, False, True], [False, False, False], [False, True, False]])


def test_queries_without_a_relevant_video_are_left_out() -> None:
    known = labelled(SCORES, RELEVANT, np.array([7, 8, 9]))
    assert known.scores.tolist() == SCORES[[0, 2]].tolist()
    assert known.best_relevant().tolist() == [0.3, 0.8]


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(SureshotError, match="give all for the same queries"):
        labelled(SCORES, RELEVANT[:2], np.array([7, 8, 9]))
    with pytest.raises(SureshotError, match="NaN or infinite"):
        labelled(SCORES * np.nan, RELEVANT, np.array([7, 8, 9]))
    with pytest.raises(SureshotError, match="None of the labelled queries"):
        labelled(SCORES, np.zeros_like(RELEVANT), np.array([7, 8, 9]))
