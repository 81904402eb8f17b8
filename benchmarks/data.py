"""Where the research data lies, for the benchmarks that need it."""

import csv
import json
import os
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SURESHOT_DATA", Path(__file__).parents[2] / "shared" / "data"))


def folder(name: str) -> Path:
    """One data set's folder; ends the program with what is missing if it is not there."""
    path = ROOT / name
    if not path.is_dir():
        sys.exit(f"{path} is missing; set SURESHOT_DATA to the folder that holds {name}/")
    return path


def split(name: str) -> list[str]:
    """Ids of one split of the MSR-VTT frame subset: train, val or test."""
    return (folder("msrvtt") / f"split_{name}.txt").read_text().split()


def captions() -> dict[str, list[str]]:
    """All captions of each MSR-VTT video at hand."""
    found: dict[str, list[str]] = {}
    data = json.loads((folder("msrvtt") / "MSRVTT_data.json").read_text())
    for sentence in data["sentences"]:
        found.setdefault(sentence["video_id"], []).append(sentence["caption"])
    return found


def jsfusion() -> dict[str, str]:
    """The one sentence of each 1k-A test video."""
    with (folder("msrvtt") / "MSRVTT_JSFUSION_test.csv").open() as file:
        return {row["video_id"]: row["sentence"] for row in csv.DictReader(file)}


def clip_captions() -> dict[str, str]:
    """The one sentence of each of the 26 clips, by file name."""
    with (folder("clips") / "captions.csv").open() as file:
        return {row["file"]: row["caption"] for row in csv.DictReader(file)}


def flickr(part: str) -> dict[str, list[str]]:
    """Captions of the Flickr8k photos of one split, train, val or test, by file name."""
    wanted = set((folder("flickr8k") / f"split_{part}.txt").read_text().split())
    found: dict[str, list[str]] = {}
    with (folder("flickr8k") / "captions.csv").open() as file:
        for row in csv.DictReader(file):
            if row["image"] in wanted:
                found.setdefault(row["image"], []).append(row["caption"])
    return found
