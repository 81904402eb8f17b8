"""Twelve small videos of two colours, a list of their captions, and recipes to train on them."""

import csv
from pathlib import Path

from tests.clips import coloured

COLOURS = ("red", "green", "blue", "white", "yellow", "magenta")
SPLITS = ("train",) * 6 + ("val",) * 3 + ("test",) * 3
RECIPE = """
[[train]]
dataset = "pairs"
root = "pairs.csv"

[val]
dataset = "pairs"
root = "pairs.csv"

[encoder]
name = "tiny"
frames = 3
device = "cpu"

[stem]
kind = "linear"
width = 16
dropout = 0.0

[system]
name = "xpool"
dropout = 0.0
scale = 20.0

[training]
epochs = 2
batch = 4
rate = 1e-2
"""


def walls(folder: Path) -> Path:
    """Write ``videos``, ``pairs.csv`` and ``recipe.toml`` into a folder.

    Two captions a video; six videos to train on, three to choose on, three to test on.
    """
    (folder / "videos").mkdir(parents=True)
    rows = []
    for number, split in enumerate(SPLITS):
        first, second = COLOURS[number % 6], COLOURS[(number + 1 + number // 6) % 6]
        name = f"videos/{number}.mp4"
        coloured(folder / name, [first, second], seconds=0.6, rate=5, size=(32, 32))
        rows.append([name, f"{first} then {second}", split])
        rows.append([name, f"a {second} wall after {first}", split])
    write(folder / "pairs.csv", rows)
    (folder / "recipe.toml").write_text(RECIPE)
    return folder


def write(path: Path, rows: list[list[str]]) -> None:
    """A list of pairs."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["video", "caption", "split"], *rows])


PLAN = """
[home.train]
dataset = "pairs"
root = "$WALLS/pairs.csv"
split = "train"

[home.val]
dataset = "pairs"
root = "pairs.csv"
split = "val"

[home.test]
dataset = "pairs"
root = "pairs.csv"
split = "test"

[away.train]
dataset = "pairs"
root = "away/pairs.csv"
split = "train"

[away.val]
dataset = "pairs"
root = "away/pairs.csv"
split = "val"

[away.test]
dataset = "pairs"
root = "away/pairs.csv"
split = "test"
label = "walls away"

[encoder]
name = "tiny"
frames = 3
device = "cpu"

[stem]
kind = "linear"
width = 16

[training]
epochs = 1
batch = 4
rate = 1e-2
"""


def plan(folder: Path) -> Path:
    """Two worlds and a plan for them; ``$WALLS`` is the folder."""
    walls(folder)
    walls(folder / "away")
    (folder / "plan.toml").write_text(PLAN)
    return folder / "plan.toml"


def tuned_plan() -> str:
    """The plan with a CLIP in the folder ``clip`` beside it, trained too."""
    text = PLAN[: PLAN.index("[encoder]")]
    return (
        text
        + """
[encoder]
name = "clip"
frames = 2
device = "cpu"
tuned = true

[training]
epochs = 2
batch = 4
rate = 1e-2
encoder_rate = 3e-3
workers = 2
"""
    )
