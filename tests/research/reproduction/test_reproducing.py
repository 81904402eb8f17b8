"""Shares of the runs of a table; tests/cli/test_reproduce.py makes them."""

import pytest

from sureshot import research
from sureshot.errors import ArgumentError
from sureshot.progress import Silent
from sureshot.research.reproduction.reproduce import _share
from tests.datasets.files import data
from tests.models.encoders.test_clip import clip
from tests.walls import plan


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        yield folder


def test_a_table_is_a_value_with_its_runs_and_its_files(bench, tmp_path):
    made = research.reproduce(
        "dvtr-12", bench / "plan.toml", to=tmp_path, seeds=1, part="10/10", cache=bench / "cache"
    )
    (run,) = made.runs["dvtr-12"]
    assert (run.variant, run.seed, made.files) == ("HiT", 0, ())
    assert len(list((tmp_path / "runs").glob("*.json"))) == 1


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "1/", "/2", "a/b", "1-2", "-1/2", "1/2/3"])
def test_a_part_that_is_none_is_refused(bench, tmp_path, part):
    with pytest.raises(ArgumentError, match="is no part; write it as 1/2"):
        research.reproduce("duq-4", bench / "plan.toml", to=tmp_path / "out", part=part)
    assert not (tmp_path / "out").exists()


def test_parts_share_all_runs_between_them():
    every = list(range(11))
    for count in (1, 2, 3, 11, 12):
        shares = [_share(f"{number}/{count}") for number in range(1, count + 1)]
        assert sorted(run for at, step in shares for run in every[at::step]) == every
    assert _share(None) == (0, 1)


# --- end to end, on real frames -------------------------------------------------------------------

REAL = """
[home.train]
dataset = "msrvtt"
root = "{root}"
ids = "train.txt"
label = "some of the frame subset"

[home.val]
dataset = "msrvtt"
root = "{root}"
ids = "val.txt"
label = "some of the frame subset"

[home.test]
dataset = "msrvtt"
root = "{root}"
ids = "test.txt"
label = "some of the frame subset"

[encoder]
name = "clip"
frames = 2
device = "cpu"
tuned = true

[training]
epochs = 1
batch = 8
captions = "one"
rate = 1e-3
encoder_rate = 1e-3
workers = 2
"""


@pytest.mark.slow
def test_a_table_is_made_end_to_end_on_real_frames(tmp_path):
    """Proof of the way and no reproduction: random weights, few videos, one epoch."""
    root = data("msrvtt")
    for name, count in (("train", 16), ("val", 4), ("test", 6)):
        ids = (root / f"split_{name}.txt").read_text().split()[:count]
        (tmp_path / f"{name}.txt").write_text("\n".join(ids))
    clip(tmp_path / "clip", shared=64, inner=256)
    (tmp_path / "plan.toml").write_text(REAL.format(root=root))
    heard = Heard()
    made = research.reproduce(
        "duq-s3",
        tmp_path / "plan.toml",
        to=tmp_path / "results",
        seeds=1,
        cache=tmp_path / "cache",
        progress=heard,
    )
    assert {path.suffix for path in made.files} == {".md", ".csv", ".json", ".npz", ".png", ".svg"}
    runs = made.runs["duq-s3"]
    assert [run.variant for run in runs] == ["Mean", "MLP", "SA", "CA"]
    assert len({run.validation for run in runs} | {run.scores["MnR"] for run in runs}) > 1
    text = made.files[0].read_text("utf-8")
    assert "trained on MSR-VTT some of the frame subset train (16)" in text
    # The encoder by the name that the plan has, not by where it lies.
    assert "encoder `clip`, trained too; 1 epoch with one random caption" in text
    assert {what for what, _ in heard.counted} == {"runs", "steps"}  # nothing was encoded
    assert not (tmp_path / "cache").exists()
    kept = (tmp_path / "results" / "runs").iterdir()
    assert {path.suffix for path in kept} == {".json", ".npz"}


class Heard(Silent):
    """Keeps what is counted, and of how many."""

    def __init__(self):
        self.counted = set()

    def update(self, what, done, total, more=""):
        self.counted.add((what, total))
