"""Shares of the runs of a table; tests/cli/test_reproduce.py makes them."""

import pytest

from sureshot import research
from sureshot.errors import ArgumentError
from sureshot.research.reproduction.reproducing import _share
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
    assert len(list((tmp_path / "runs").iterdir())) == 1


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
