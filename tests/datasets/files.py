"""What the tests of the readers share: tiny files in the forms the community has on disk."""

import json

import pytest

from tests.paths import DATA


def put(path, text=""):
    """A file with this text, byte for byte; what is no text is written as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8", newline="")
    return path


def films(folder, *names):
    """Empty files: a reader never opens a video."""
    for name in names:
        put(folder / name)
    return folder


def frames(folder, count=3):
    """A folder of numbered images."""
    return films(folder, *(f"frame_{number:04d}.jpg" for number in range(1, count + 1)))


def told(split):
    """Each item's id with its texts, the items in order."""
    texts = split.texts()
    return {
        item.id: [texts[row] for row in rows]
        for item, rows in zip(split.items, split.by_video(), strict=True)
    }


def data(name):
    """A folder of the research data."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"needs the folder {folder}; SURESHOT_DATA names another one")
    return folder
