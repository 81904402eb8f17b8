"""What an oracle is told reaches the losses as it should."""

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.layers.gaussian import Gaussian
from sureshot.models.losses.debiased import AMBIGUITY, FITS, known_eta, known_spreads

GAUSSIAN = Gaussian(torch.eye(3), torch.full((3, 3), 9.0))


def test_a_caption_that_fits_is_no_negative():
    fits = torch.tensor([[True, False], [True, True]])
    assert known_eta({FITS: fits}).tolist() == [[0, 1], [0, 0]]


def test_the_spread_of_a_text_goes_with_its_ambiguity_and_means_stay():
    known = {AMBIGUITY: torch.tensor([0.0, 0.5, 1.0])}
    texts, videos = known_spreads(known, GAUSSIAN, GAUSSIAN)
    assert texts.log_var.exp().sum(-1) == pytest.approx([0.02, 1.0, 2.0])
    assert videos.log_var.exp().sum(-1) == pytest.approx([0.02] * 3)
    assert torch.equal(texts.mean, GAUSSIAN.mean)


def test_who_is_not_told_says_where_the_truth_is():
    with pytest.raises(SureshotError, match='only dataset = "synthetic" has it'):
        known_eta({})
    with pytest.raises(SureshotError, match='only dataset = "synthetic" has it'):
        known_spreads({}, GAUSSIAN, GAUSSIAN)
