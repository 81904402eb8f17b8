"""DUQ as released: what the official numbers in test_whole_duq.py do not show."""

import torch

from sureshot.models.systems.duq_released import DuqReleased, DuqReleasedConfig
from tests.models.systems.every import WIDTH, texts, videos


def made(**settings) -> DuqReleased:
    torch.manual_seed(0)
    return DuqReleased(DuqReleasedConfig(**{"layers": 1, "heads": 2, **settings}), WIDTH)


def test_the_score_is_the_mean_of_three_cosine_branches() -> None:
    system = made().eval()
    codes = system.texts(texts(4)), system.videos(videos(5))
    branches = system.matrices(*codes)
    assert list(branches) == ["sentence frame", "word patch", "distribution"]
    assert all(scores.abs().max() <= 1 + 1e-6 for scores in branches.values())
    mean = torch.stack(list(branches.values())).mean(0)
    torch.testing.assert_close(system.similarity(*codes), mean)


def test_frames_without_cells_stand_for_themselves() -> None:
    system, films = made().eval(), videos(3)
    bare = films._replace(patches=films.patches[:, :, :0])
    codes = system.videos(bare)
    assert codes["mask"].sum(1).tolist() == [
        ((-(-count // 2) + 1) // 2 + 1) // 2 for count in films.mask.sum(1).tolist()
    ]


def test_branches_that_agree_cost_nothing() -> None:
    system = made()
    losses = system.losses(system.texts(texts(4)), system.videos(videos(4)))
    assert 0 < losses["agreement"] < 0.1
    assert set(losses) == set(system.weights)
