"""Small synthetic datasets for tests, and recipes that train on them."""

from pathlib import Path
from typing import Any

from sureshot.datasets.synthetic import SyntheticOptions
from sureshot.research.synthetic import write_dataset
from sureshot.research.training.recipe import Recipe


def small_dataset(folder: Path, **options: Any) -> Path:
    """A world of a few dozen videos."""
    few = {"train": 24, "val": 6, "test": 10, "captions": 2}
    return write_dataset(folder, SyntheticOptions(**{**few, **options})).folder


def synthetic_recipe(root: Path, system: dict[str, Any], **training: Any) -> Recipe:
    """A recipe that trains a system and the small encoder end to end on a world."""
    usual = {"epochs": 1, "batch": 12, "rate": 1e-3, "encoder_rate": 1e-3}
    return Recipe.from_dict(
        {
            "train": [{"dataset": "synthetic", "root": str(root)}],
            "val": {"dataset": "synthetic", "root": str(root)},
            "encoder": {"name": "small", "tuned": True, "frames": 4, "device": "cpu"},
            "system": system,
            "training": {**usual, **training},
        },
        root,
    )
