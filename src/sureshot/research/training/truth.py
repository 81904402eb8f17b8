"""The truth about a batch, for systems that are told it: oracles, the controls of a measurement."""

from collections.abc import Sequence

import numpy as np
import torch

from sureshot.datasets import Split
from sureshot.datasets.made import read_truth
from sureshot.errors import SureshotError
from sureshot.models.losses.known import AMBIGUITY, FITS
from sureshot.models.systems.system import Codes
from sureshot.research.training.epoch import Labels


def told_truth(splits: Sequence[Split], device: str = "cpu") -> Labels:
    """What an oracle is told of the pairs of a batch, by rows of all captions of the splits.

    The codes are those of `sureshot.models.losses.known`: which captions fit which videos of the
    batch, and the ambiguity of each caption: the logarithm of the number of videos of the split
    that it fits, over that of all its videos; 0 fits its own alone, 1 all.

    Raises:
        SureshotError: there is more than one split, or it is none of a made world.
    """
    if len(splits) != 1:
        raise SureshotError(
            f"An oracle is told which captions fit which videos of one made world; there are "
            f"{len(splits)} sets to train on. Leave one."
        )
    truth, owner = read_truth(splits[0]), splits[0].owner()
    ambiguity = np.log(truth.videos_that_fit) / np.log(max(len(splits[0].items), 2))

    def told(rows: Sequence[int]) -> Codes:
        chosen = np.array(rows)
        fits = torch.from_numpy(truth.fits[chosen][:, owner[chosen]])
        known = torch.from_numpy(ambiguity[chosen]).float()
        return {FITS: fits.to(device), AMBIGUITY: known.to(device)}

    return told
