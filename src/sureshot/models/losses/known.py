"""What an oracle is told: the truth about a batch, where somebody knows it.

A mechanism that learns how ambiguous a text is, or which negatives are right answers after all, can
be told instead. If even that does not move a measure, the measure cannot see the mechanism, and
that the learned one moves nothing says nothing. Only a made world knows the truth; it comes as two
more codes of texts.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from sureshot.errors import SureshotError
from sureshot.models.gaussian import Gaussian

FITS, AMBIGUITY = "known fits", "known ambiguity"  # codes of texts, in training only
_LEAST = 0.02  # total variance of an item that is not ambiguous, beside a mean of length 1
_SPREAD = 2.0  # of a text that fits every video


def known_eta(texts: dict[str, Tensor]) -> Float[Tensor, "items items"]:
    """How much each pair of a batch counts as a negative: 0 where the caption fits, else 1.

    Raises:
        SureshotError: nobody told the truth.
    """
    return 1 - _told(texts, FITS).float()


def known_spreads(
    texts: dict[str, Tensor], one: Gaussian, other: Gaussian
) -> tuple[Gaussian, Gaussian]:
    """Gaussians of texts and videos with the spread that is known in place of the learned one.

    The total variance of a text goes with its ambiguity: the logarithm of the number of videos that
    fit, over that of all videos. A video is not ambiguous.

    Args:
        texts: codes of texts, with what is known of them.
        one: Gaussians of the texts, whose means are kept.
        other: Gaussians of the videos.

    Raises:
        SureshotError: nobody told the truth.
    """
    width = one.mean.shape[-1]
    total = (_SPREAD * _told(texts, AMBIGUITY)).clamp(min=_LEAST)
    log_var = (total / width).log()[:, None].expand_as(one.mean)
    still = torch.full_like(other.mean, math.log(_LEAST / width))
    return one._replace(log_var=log_var), other._replace(log_var=still)


def _told(texts: dict[str, Tensor], name: str) -> Tensor:
    if name not in texts:
        raise SureshotError(
            'An oracle is told the truth while it trains, and only dataset = "made" has it; train '
            "on a made world in one process and without training.micro_batch."
        )
    return texts[name]
