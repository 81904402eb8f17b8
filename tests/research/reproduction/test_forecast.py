"""The cost of a table is known before anything is trained."""

import json

import pytest

from sureshot.errors import ArgumentError
from sureshot.research import forecast
from tests.walls import plan


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("WALLS", str(tmp_path))
    return plan(tmp_path)


def test_runs_and_steps_are_counted(bench, tmp_path):
    """Six videos in batches of four are two steps, one epoch; DVTR passes twice."""
    (one,) = forecast("duq-s3", bench, to=tmp_path, seeds=3).tables
    assert (one.runs, one.kept, one.steps, one.seconds) == (12, 0, 12 * 2, None)
    (two,) = forecast("dvtr-9", bench, to=tmp_path, seeds=1).tables
    assert two.steps > 2 * two.runs


def test_kept_runs_are_done_and_tell_the_time(bench, tmp_path):
    (tmp_path / "runs").mkdir()
    for seed, seconds in ((0, 60.0), (1, 120.0)):
        record = {"variant": "CA", "seed": seed, "seconds": seconds}
        (tmp_path / "runs" / f"{seed}.json").write_text(json.dumps(record))
    cost = forecast("duq-s3", bench, to=tmp_path, seeds=3)
    (one,) = cost.tables
    assert (one.runs, one.kept, one.seconds) == (12, 2, 10 * 90.0)
    assert "10 of 12 runs left" in cost.text() and "about 15 minutes" in cost.text()
    assert cost.to_dict()["tables"][0]["kept"] == 2


def test_tables_share_runs(bench, tmp_path):
    cost = forecast("all", bench, to=tmp_path, seeds=1)
    together = {one.name: one.runs for one in cost.tables}
    (alone,) = forecast("systems", bench, to=tmp_path, seeds=1).tables
    assert together["systems"] < alone.runs
    assert "time not known yet" in cost.text() and "One seed first" in cost.text()


def test_a_plan_is_needed(tmp_path):
    with pytest.raises(ArgumentError, match="plan"):
        forecast("duq-s3", None, to=tmp_path)
