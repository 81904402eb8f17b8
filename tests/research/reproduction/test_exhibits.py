"""The list of all tables and figures says what each needs and what a plan has of it."""

import pytest

from sureshot import research
from sureshot.errors import SureshotError
from sureshot.research.reproduction.plan import load_figures, load_tables
from tests.walls import plan


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WALLS", str(folder))
        yield folder


def by_name(plan=None):
    return {one.name: one for one in research.exhibits(plan)}


def test_all_are_named_in_the_order_of_the_papers():
    assert list(by_name()) == [*load_tables(), *load_figures()]
    kinds = {one.kind: one.name for one in research.exhibits()}
    assert kinds == {"table": "systems", "figure": "dvtr-fig-6"}


def test_without_a_plan_nothing_is_said_of_data_that_may_be_there():
    found = by_name()
    assert {one.where for one in found.values()} == {()}
    assert not any(one.missing or one.lacks for one in found.values())
    assert found["dvtr-3"].needs == "MSR-VTT full and MSR-VTT 1k-A"
    assert found["duq-4"].needs == "MSR-VTT 1k-A, and DiDeMo and LSMDC to test on"
    drawings = [one for one in found.values() if not one.can_run]
    assert len(drawings) == 7 and all("drawing of the paper" in one.line() for one in drawings)


def test_home_stands_in_for_ablations_and_not_for_comparisons(place):
    found = by_name(place / "plan.toml")
    assert found["duq-3"].where == found["dvtr-12"].where == found["systems"].where == ("home",)
    assert not found["dvtr-12"].lacks
    for name in ("duq-1", "duq-2", "dvtr-4", "uatvr-7", "duq-5"):
        assert not found[name].can_run and found[name].lacks and found[name].missing
    assert found["uatvr-2"].can_run and found["uatvr-2"].line().endswith("needs no data")
    assert found["duq-fig-3"].where == ("home",) and found["duq-fig-3"].drawn == "rerank"


def test_data_of_the_paper_go_before_home(place, tmp_path):
    text = (place / "plan.toml").read_text().replace("[away", "[data.msvd")
    text = text.replace('"pairs.csv"', f'"{place}/pairs.csv"').replace('"away/', f'"{place}/away/')
    (tmp_path / "plan.toml").write_text(text)
    found = by_name(tmp_path / "plan.toml")
    assert found["dvtr-12"].where == found["dvtr-4"].where == ("msvd",)
    assert found["duq-3"].where == ("home",)
    assert found["duq-4"].where == () and "second data set" in found["duq-4"].missing[0]


def test_data_that_are_named_and_not_there_are_missing_and_no_error(place, tmp_path):
    text = (place / "plan.toml").read_text().replace("[away", "[data.msvd")
    (tmp_path / "plan.toml").write_text(text)
    one = by_name(tmp_path / "plan.toml")["uatvr-9"]
    assert not one.can_run and one.lacks == "MSVD"
    assert "pairs.csv" in one.missing[0] and "It needs raw-captions.pkl" in one.missing[0]


def test_a_plan_that_is_wrong_is_an_error(tmp_path):
    with pytest.raises(SureshotError, match="Cannot read the plan"):
        research.exhibits(tmp_path / "gone.toml")


def test_an_exhibit_is_plain_values_too(place):
    values = by_name(place / "plan.toml")["duq-s1"].to_dict()
    assert (values["name"], values["can_run"], values["where"]) == ("duq-s1", False, [])
    assert values["missing"][0].startswith("LSMDC is not in the plan. Put ")
