"""Questions about the videos of `tests.walls`, in the files of MSRVTT-QA, and a recipe for them."""

import json
from pathlib import Path

from tests.walls import COLOURS, SPLITS, walls

RECIPE = """
[train]
root = "qa"
videos = "videos"

[val]
root = "qa"
videos = "videos"

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

[head]
dropout = 0.0

[training]
epochs = 2
batch = 4
rate = 1e-2
"""


def asked(folder: Path) -> Path:
    """Write videos, ``qa/{train,val,test}.jsonl`` and ``questions.toml`` into a folder.

    Two questions a video. The last test question has an answer that training never sees.
    """
    walls(folder)
    lines: dict[str, list[dict[str, str]]] = {"train": [], "val": [], "test": []}
    for number, split in enumerate(SPLITS):
        first, second = COLOURS[number % 6], COLOURS[(number + 1 + number // 6) % 6]
        lines[split].append(line(number, "what colour comes first?", first))
        lines[split].append(line(number, "how does it end?", second))
    lines["test"][-1]["answer"] = "turquoise"
    for split, rows in lines.items():
        put(folder / "qa" / f"{split}.jsonl", rows)
    (folder / "questions.toml").write_text(RECIPE)
    return folder


def line(video: object, question: str, answer: str) -> dict[str, str]:
    """A line of such a file."""
    kind = question.split()[0]
    return {
        "answer": answer,
        "question": question,
        "video_id": str(video),
        "answer_type": kind,
    }


def put(path: Path, rows: list[dict[str, str]]) -> Path:
    """A file of such lines."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
