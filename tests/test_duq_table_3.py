"""Every command of docs/duq-table-3.md, on tiny files in the layout of MSR-VTT and a tiny CLIP."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from sureshot.cli.app import run
from tests.layouts import benchmark
from tests.models.encoders.test_clip import clip
from tests.paths import ROOT
from tests.walls import walls

SMALLER = """
[[cases]]
encoder = { frames = 2, device = "cpu" }
training = { epochs = 1, batch = 4, micro_batch = 4, captions = "one", precision = "float32" }
"""


def commands() -> list[tuple[dict[str, str], list[str]]]:
    """The commands of the page that Sureshot runs, each with what it exports before."""
    page = (ROOT / "docs" / "duq-table-3.md").read_text("utf-8")
    found = []
    for line in re.findall(r"^\$ (.*)$", page, re.M):
        words = shlex.split(os.path.expandvars(line.rstrip(" &")))
        names = dict(word.split("=") for word in words if word.isupper())
        if "sureshot" in words:
            found.append((names, words[len(names) :]))
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with plans and recipes as they ship, but for sizes and the name of the encoder."""
    data = tmp_path / "data"
    videos = walls(tmp_path / "walls") / "videos"
    benchmark("msrvtt", data / "msrvtt", videos)
    (tmp_path / "clip").mkdir()
    clip(tmp_path / "clip", shared=32, inner=128, layers=2, longest=77)
    (tmp_path / "plans").mkdir()
    (tmp_path / "recipes" / "published").mkdir(parents=True)
    for path in (ROOT / "recipes" / "published").glob("*.toml"):
        text = path.read_text("utf-8").replace(
            "openai/clip-vit-base-patch32", str(tmp_path / "clip")
        )
        for old, new in (("epochs = 5", "epochs = 1"), ("float16", "float32")):
            text = text.replace(old, new)
        (tmp_path / "recipes" / "published" / path.name).write_text(text, "utf-8")
    plan = (ROOT / "plans" / "published-duq.toml").read_text("utf-8")
    plan = plan.replace("openai/clip-vit-base-patch32", str(tmp_path / "clip"))
    plan = plan.replace("hold_out = 500", "hold_out = 3") + SMALLER
    (tmp_path / "plans" / "published-duq.toml").write_text(plan, "utf-8")
    monkeypatch.setenv("SURESHOT_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_walk_through_table_3_arrives(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    printed = []
    for names, words in commands():
        fewer = ["1" if last == "--seeds" else word for last, word in pairwise(["", *words])]
        kept = place / "results" / "duq-3"
        if "1/4" in words:  # each way trains what it is to train
            shutil.rmtree(kept)
        if words[0] == "torchrun":
            for path in sorted((kept / "runs").glob("*.json"))[:2]:
                path.unlink()
            subprocess.run([*torchrun, *fewer[3:]], check=True, timeout=600)
        else:
            capsys.readouterr()
            with monkeypatch.context() as patch:
                for name, value in names.items():
                    patch.setenv(name, value)
                assert run(fewer[1:]) == 0
            printed.append(capsys.readouterr().out)
    page = (kept / "duq-3.md").read_text("utf-8")
    assert len(re.findall(r"^\| #\d", page, re.M)) == 11 and "| control: all" in page
    assert "46.9" not in page  # printed for whole MSR-VTT, and these are three videos
    assert not list((kept / "runs").glob("*.run"))
    assert len(list((kept / "runs").glob("*.json"))) == 12
    listed, cost, forecast, *_ = printed
    assert (
        "duq-3" in listed and "decoded once and kept" in cost and "12 of 12 runs left" in forecast
    )
    assert "printed rows of another split" in printed[-1]
