"""Where a plan has the data of a table, tried on tiny files in the benchmarks' own layouts."""

import shutil
from dataclasses import fields, replace

import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.research.reproduction.plan import (
    Bench,
    DataSets,
    Place,
    find_table,
    load_tables,
    needed,
    places_of,
    published_as,
    read_plan,
)
from tests.layouts import NAMES, written
from tests.walls import PLAN, walls

REST = PLAN[PLAN.index("[encoder]") :]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A plan with every data set of the papers."""
    folder = tmp_path_factory.mktemp("plan")
    walls(folder)
    (folder / "plan.toml").write_text(written(folder / "sets", folder / "videos") + REST)
    return folder


def bench(path):
    return Bench(read_plan(path), path.parent)


def test_every_data_set_has_a_title_files_and_a_printed_name():
    assert tuple(one.name for one in fields(DataSets)) == (*NAMES, "synthetic")
    assert needed(["synthetic"]) and published_as("synthetic") == ("", "")
    for name in NAMES:
        assert needed([name]) and published_as(name)
    assert needed(["msvd", "vatex", "lsmdc"]) == "MSVD, VATEX and LSMDC"
    assert needed([]) == ""


def test_every_table_of_recalls_finds_its_data(place):
    made = bench(place / "plan.toml")
    for table in load_tables().values():
        if table.kind == "recalls" and table.data and table.data != ("synthetic",):
            places, missing = places_of(table, made)
            assert [one.name for one in places] == list(table.data) and not missing
            assert all(
                [name for name, _ in one.elsewhere] == list(table.elsewhere) for one in places
            )


def test_oracles_are_rows_of_synthetic_datasets_alone(place):
    table = find_table("controls")
    home = Place("home", bench(place / "plan.toml").plan.data.msrvtt)
    told = [row.name for row in table.variants if row not in home.rows(table)]
    assert len(told) == 4 and all("known" in name for name in told)
    world = replace(home.world, train=replace(home.world.train, dataset="synthetic"))
    assert tuple(replace(home, world=world).rows(table)) == table.variants


# A table on each data set, and its page there.
ONE = [
    ("duq-1", ["duq-1"]),
    ("duq-2", ["duq-2-didemo", "duq-2-lsmdc", "duq-2-charades", "duq-2-vatex"]),
    ("uatvr-9", ["uatvr-9"]),
    ("dvtr-6", ["dvtr-6"]),
    ("dvtr-8", ["dvtr-8"]),
    ("duq-4", ["duq-4"]),
]


@pytest.mark.parametrize(("table", "pages"), ONE, ids=[table for table, _ in ONE])
def test_a_table_runs_on_the_files_of_its_benchmarks(place, tmp_path, table, pages):
    """The first of its runs, that is: a row on each data set."""
    made = research.reproduce(
        table, place / "plan.toml", to=tmp_path, seeds=1, part="1/99", cache=place / "cache"
    )
    assert list(made.runs) == pages and made.notes == ()
    for (run,) in made.runs.values():
        assert run.variant == find_table(table).variants[0].name
        assert 0 <= run.scores["R@1"] <= 100
    if table == "duq-4":
        away = {name.split(":")[0] for name in made.runs["duq-4"][0].scores if ":" in name}
        assert [title.split()[0] for title in sorted(away)] == ["DiDeMo", "LSMDC"]


def test_a_part_of_the_data_is_enough_and_what_is_missing_is_told_of(place, tmp_path):
    text = (place / "plan.toml").read_text()
    shutil.copytree(place / "sets" / "lsmdc", tmp_path / "lsmdc")
    (tmp_path / "lsmdc" / "LSMDC16_annos_val.csv").unlink()
    text = text.replace("[data.didemo.", "[data.msvd_.")
    text = text[: text.index("[data.msvd_.")] + text[text.index("[data.lsmdc.") :]
    text = text.replace(str(place / "sets" / "lsmdc"), str(tmp_path / "lsmdc"))
    (tmp_path / "plan.toml").write_text(text)
    places, missing = places_of(find_table("duq-2"), bench(tmp_path / "plan.toml"))
    assert [one.name for one in places] == ["charades", "vatex"]
    absent, unread = missing
    assert absent.startswith("DiDeMo is not in the plan. Put {train,val,test}_data.json")
    assert "[data.didemo.train]" in absent and 'dataset = "didemo"' in absent
    assert unread.startswith("LSMDC cannot be read:") and "LSMDC16_annos_val.csv" in unread
    with pytest.raises(SureshotError, match=r"LSMDC cannot be read.*It needs LSMDC16"):
        research.reproduce("duq-s1", tmp_path / "plan.toml", to=tmp_path)
