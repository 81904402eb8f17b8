"""Recall of the command line on real videos: index a folder, ask every caption, rank the files.

    python -m benchmarks.quality clips          # 26 clips from elsewhere, one sentence each
    python -m benchmarks.quality msrvtt         # the 476 test videos at hand, one sentence each
    python -m benchmarks.quality msrvtt --model DIR

The second is "MSR-VTT 1k-A frame subset (476)": gallery, frames and encoder are not those of the
published protocol, and its numbers do not stand beside published ones. Nothing that looks at
other queries is used. Copies are not folded, so that every file can be ranked, and each file is
listed once.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import data


def main() -> None:
    """Index, search, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=["clips", "msrvtt"])
    parser.add_argument("--model", default="bundled")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        queries = clips() if options.data == "clips" else msrvtt()
        folder = work / "videos"
        folder.mkdir()
        for path, _ in queries:
            (folder / path.name).symlink_to(path)
        began = time.monotonic()
        index = str(work / "index")
        sureshot("index", str(folder), "--db", index, "--model", options.model)
        indexed = time.monotonic() - began
        (work / "queries.txt").write_text("\n".join(text for _, text in queries), "utf-8")
        asked = ["--from-file", str(work / "queries.txt"), "-k", "100"]
        fair = ["--per-video", "1", "--no-fold", "--json"]
        answers = sureshot("search", *asked, *fair, "--db", index).splitlines()
    ranks = []
    for (path, _), line in zip(queries, answers, strict=True):
        found = [Path(hit["path"]).name for hit in json.loads(line)["hits"]]
        ranks.append(found.index(path.name) + 1 if path.name in found else len(queries) + 1)
    report(options.data, np.array(ranks), indexed)


def clips() -> list[tuple[Path, str]]:
    """The 26 clips with their sentences."""
    folder = data.folder("clips") / "videos"
    return [(folder / name, text) for name, text in data.clip_captions().items()]


def msrvtt() -> list[tuple[Path, str]]:
    """The 476 test videos with their JSFusion sentences."""
    folder, sentences = data.folder("msrvtt") / "videos", data.jsfusion()
    return [(folder / f"{i}.mp4", sentences[i]) for i in data.split("test")]


def report(name: str, ranks: np.ndarray, seconds: float) -> None:
    """Recall with a bootstrap interval over videos."""
    draw = np.random.default_rng(0)
    resampled = ranks[draw.integers(0, len(ranks), (2000, len(ranks)))]
    for k in (1, 5, 10):
        low, high = np.percentile(100 * (resampled <= k).mean(1), [2.5, 97.5])
        recall = 100 * (ranks <= k).mean()
        print(f"{name} t2v R@{k:<2} {recall:5.1f} %  (95 %: {low:.1f} to {high:.1f})")
    print(f"{name} t2v MdR {np.median(ranks):.0f} of {len(ranks)}; indexed in {seconds:.0f} s")


def sureshot(*arguments: str) -> str:
    """Run the command line; what it prints."""
    command = [sys.executable, "-m", "sureshot", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


if __name__ == "__main__":
    main()
