"""What the program gives, written to files, and two such captures compared.

    python benchmarks/before_after.py capture AFTER --python /elsewhere/.venv/bin/python
    python benchmarks/before_after.py compare BEFORE AFTER

A capture takes three minutes and uses the command line alone, so that this file serves both sides
of a refactor: 40 searches over the sample clips and 60 videos of MSR-VTT, the losses of the first
20 steps of each system, two evaluation reports, two tables with the rank of each query, and the
schema of the server. `$SURESHOT_DATA` names the folder of the videos. Times are left out. Captures
beside one another train on the same ``synthetic-videos``, which the first of them writes.

``compare`` fails if a score moved by more than 1e-6, if a rank, loss or name is another, or if a
key is gone. Sentences for people and new keys are only listed.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

VERBS = ("synthetic", "made")  # names of the verb and of its data set; the first that is known
RENAMED: dict[str, str] = {
    "dials": "options",
    "worth": "note",
    "yours": "personal",
}  # keys and values that have another name on purpose: {old: new}
VARYING = {"seconds", "milliseconds", "elapsed", "bytes", "id"}  # keys of what no two runs share
EXACT = ("losses", "tables", "synthetic")  # where the arithmetic must not move at all
TOLERANCE = 1.01e-6  # replies have six places
SYSTEMS = {
    **dict.fromkeys(("clip4clip", "xpool", "duq", "tmass", "pcme"), "scale = 20.0"),
    **dict.fromkeys(("clip2video", "uatvr"), "layers = 1\nheads = 2\nscale = 20.0"),
    "hit": "layers = 2\nheads = 2\nbank = 8\nscale = 20.0",
    "ce": "width = 16",
    "duq_released": "layers = 1\nheads = 2\nsamples = 2",
    "dvtr": '[system.base]\nname = "clip4clip"\nscale = 20.0',
}
ENCODER = '[encoder]\nname = "tiny"\nframes = 4\ndevice = "cpu"\n[stem]\nkind = "{}"\nwidth = 16\n'
TRAINING = "[training]\nseed = 0\nepochs = {}\nbatch = 16\nrate = 1e-2\nworkers = 1\n"
TABLES = ("controls", "duq-3")
ABSENT = ("a submarine under polar ice", "zxqv", "two astronauts on the moon", "ein Hund am Meer")
WORDS = ("dog", "guitar", "cooking", "a man", "cartoon characters", "a car on the road")


class Program:
    """The command line of a Python, with caches and an index of its own in the folder ``work``."""

    def __init__(self, python: Path, work: Path) -> None:
        folders = {f"XDG_{name}_HOME": str(work / name) for name in ("CACHE", "DATA", "CONFIG")}
        fixed = {"OMP_NUM_THREADS": "1", "SURESHOT_ENGINE": "torch", "HF_HUB_OFFLINE": "1"}
        names = {**os.environ, **folders, **fixed, "SURESHOT_DB": str(work / "index")}
        self.options: dict[str, Any] = {"env": names, "cwd": work, "text": True}
        self.command = [str(python), "-m", "sureshot"]
        self.work, self.root = work, work / "synthetic"
        helps = self.run("--help").stdout
        self.verb = next(verb for verb in VERBS if re.search(rf"^\W*{verb}\s", helps, re.M))

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = [*self.command, *map(str, arguments)]
        ended = subprocess.run(command, capture_output=True, check=False, **self.options)
        if ended.returncode:
            sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        return ended

    def __call__(self, *arguments: object) -> list[Any]:
        """The JSON documents that a command prints."""
        return [json.loads(line) for line in self.run(*arguments, "--json").stdout.splitlines()]

    def split(self, heading: str) -> str:
        """The synthetic videos, as a part of a recipe."""
        return f'[{heading}]\ndataset = "{self.verb}"\nroot = "{self.root}"\n'


def capture(out: Path, python: Path, data: Path) -> None:
    """Write all that is compared."""
    work = out / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run = Program(python, work)
    for part in (synthetic, searches, schema, losses, evaluation, tables):
        began = time.monotonic()
        values = plain(part(run, data), {str(work): "WORK", str(data): "DATA", run.verb: VERBS[0]})
        text = json.dumps(values, indent=1, ensure_ascii=False)
        (out / f"{part.__name__}.json").write_text(text + "\n", "utf-8")
        print(f"{part.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    shutil.rmtree(work)


def plain(value: Any, names: dict[str, str]) -> Any:
    """A value without what varies, and with short names for paths."""
    if isinstance(value, dict):
        kept = [key for key, one in value.items() if key not in VARYING or isinstance(one, dict)]
        return {plain(key, names): plain(value[key], names) for key in kept}
    if isinstance(value, list):
        return [plain(one, names) for one in value]
    if isinstance(value, str):
        for long, short in names.items():
            if "/" in long or " " not in value:  # a path, or a name outside of sentences
                value = re.sub(rf"{re.escape(long)}\b", short, value)
        return re.sub(r"\b\d{4}-\d\d-\d\d\b", "DATE", value)
    return value


def synthetic(run: Program, data: Path) -> dict[str, Any]:
    """A small set of synthetic videos, with the files of the first capture."""
    sizes = [part for size in ("train=48", "val=8", "test=24") for part in ("--set", size)]
    told = run(run.verb, "--to", run.root, *sizes)
    kept = run.work.parent.parent / "synthetic-videos"
    kept.mkdir(exist_ok=True)
    for video in run.root.rglob("*.mp4"):
        first = kept / video.name
        shutil.copy2(*((first, video) if first.exists() else (video, first)))
    return {"reply": told, "about": json.loads(next(run.root.glob("*.json")).read_text("utf-8"))}


def searches(run: Program, data: Path) -> dict[str, Any]:
    """An index of 86 videos, asked 40 times."""
    clips = [(row["file"], row["caption"]) for row in rows(data / "clips" / "captions.csv")]
    folder = shutil.copytree(data / "clips" / "videos", run.work / "videos")
    texts = rows(data / "msrvtt" / "MSRVTT_JSFUSION_test.csv")
    films = [(f"{row['video_id']}.mp4", row["sentence"]) for row in texts]
    films = [row for row in films if (data / "msrvtt" / "videos" / row[0]).exists()][:60]
    for name, _ in films:
        shutil.copy2(data / "msrvtt" / "videos" / name, folder / name)
    indexed = run("index", folder)
    queries = [text for _, text in (*clips[:12], *films[:12])]
    (run.work / "queries.txt").write_text("\n".join([*queries, *ABSENT, *WORDS]), "utf-8")
    asked = run("search", "--from-file", run.work / "queries.txt")
    first, at = folder / clips[0][0], f"{folder / clips[1][0]}@0:01"
    asked += run("search", "--like", first) + run("search", "--like", at, "-k", "3")
    asked += run("search", "a dog", "--folder", folder, "--min", "20%")
    asked += run("search", "people talking", "--per-video", "1", "--no-merge-copies", "-k", "30")
    asked += run("search", "a person cooks", "--coverage", "99%") + run("search", "music", "-k99")
    assert len(asked) == 40
    described = run("describe", first, *queries[:5])
    return {"searches": asked, "index": indexed, "status": run("status"), "describe": described}


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def schema(run: Program, data: Path) -> Any:
    """What the server says of its addresses and replies."""
    known = run.run("serve", "--help").stdout
    lifted = ["--no-token"] if "--no-token" in known else []
    command, pipe = [*run.command, "serve", "--port", "0", *lifted], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, **run.options) as server:
        try:
            found = (re.search(r"http://[\w.:]+", line) for line in server.stdout or ())
            address = next(match.group() for match in found if match)
            return json.load(urllib.request.urlopen(f"{address}/api/openapi.json", timeout=60))
        finally:
            server.terminate()


def losses(run: Program, data: Path) -> dict[str, Any]:
    """The first 20 steps of each system, from the logs; the runs stay for the other parts."""
    steps = {}
    for name, settings in SYSTEMS.items():
        recipe = run.split("[train]") + run.split("val")
        recipe += ENCODER.format("none" if name == "ce" else "linear") + TRAINING.format(7)
        path, folder = run.work / f"{name}.toml", run.work / "runs" / name
        path.write_text(f'{recipe}[system]\nname = "{name}"\n{settings}\n', "utf-8")
        run("train", path, "--to", folder)
        log = next(folder.glob("*.jsonl")).read_text("utf-8")
        steps[name] = [one for one in map(json.loads, log.splitlines()) if "losses" in one][:20]
    return steps


def evaluation(run: Program, data: Path) -> dict[str, Any]:
    """Reports about DUQ as it was trained, and about the bundled model on the sample clips."""
    more = ["--trust", "--post", "dsl", "--post", "qb_norm", "--post", "nnn"]
    model, clips = run.work / "runs" / "duq" / "model", data / "clips" / "captions.csv"
    duq = run("evaluate", model, "--data", run.verb, "--root", run.root, *more)
    bundled = run("evaluate", "bundled", "--data", "pairs", "--root", clips, "--trust")
    return {"duq": duq, "bundled": bundled}


def tables(run: Program, data: Path) -> dict[str, Any]:
    """The rows of two tables, and the ranks behind them."""
    places = ("home", f"data.{run.verb}")
    plan = [run.split(f"{place}.{part}") for place in places for part in ("train", "val", "test")]
    path, to, written = run.work / "plan.toml", run.work / "reproduced", {}
    path.write_text("".join([*plan, ENCODER.format("linear"), TRAINING.format(2)]), "utf-8")
    for name in TABLES:
        run("reproduce", name, "--plan", path, "--to", to, "--seeds", "1")
        ranks = {key: kept.tolist() for key, kept in np.load(to / f"{name}.npz").items()}
        written[name] = {"rows": rows(to / f"{name}.csv"), "ranks": ranks}
    return written


def compare(before: Path, after: Path) -> bool:
    """Print how two captures differ; whether nothing did that matters."""
    wrong = 0
    for path in sorted(before.glob("*.json")):
        texts = [(folder / path.name).read_text("utf-8") for folder in (before, after)]
        old, new = (dict(leaves(json.loads(text))) for text in texts)
        real = {at for at in old if isinstance(old[at], float) and isinstance(new.get(at), float)}
        moved = {at: abs(old[at] - new[at]) for at in real}
        least = 0.0 if path.stem in EXACT else TOLERANCE
        found: dict[str, list[str]] = {"moved": [at for at in old if moved.get(at, 0.0) > least]}
        others = [at for at in old if at in new and at not in moved and old[at] != new[at]]
        found["other"] = [at for at in others if " " not in str(old[at])]
        found["gone"] = sorted(old.keys() - new.keys())
        wrong += sum(map(len, found.values()))
        found["reworded"] = [at for at in others if " " in str(old[at])]
        found["added"] = sorted(new.keys() - old.keys())
        counts = "; ".join(f"{len(places)} {kind}" for kind, places in found.items())
        most = max(moved.values(), default=0)
        print(f"{path.stem}: {len(old)} values; {len(moved)} scores differ by {most:.1e}; {counts}")
        for kind, places in found.items():
            alike = {re.sub(r"\.\d+", ".*", at): at for at in reversed(places)}
            for pattern, at in sorted(alike.items())[:12]:
                print(f"  {kind} {pattern}: {old.get(at)!r} -> {new.get(at)!r}"[:300])
    print(f"{wrong} values are not the same." if wrong else "The same.")
    return not wrong


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """All values with their places, under today's names."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{at}.{RENAMED.get(key, key)}")
    elif isinstance(value, list):
        yield f"{at}.length", len(value)
        for place, one in enumerate(value):
            yield from leaves(one, f"{at}.{place}")
    else:
        yield at, "NaN" if value != value else RENAMED.get(str(value), value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("capture", "compare"))
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    options = parser.parse_args()
    if options.verb == "compare":
        sys.exit(not compare(*options.folders))
    shared = Path(os.environ.get("SURESHOT_DATA", "../shared/data")).absolute()
    capture(options.folders[0].absolute(), options.python.absolute(), shared)
