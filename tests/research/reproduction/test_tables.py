"""Every row can be built, every printed row beside one is there, and controls control."""

import itertools

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.metrics.published import folded_name, rows_of_table
from sureshot.models.model import Stem, StemConfig
from sureshot.models.systems.base import Sizes, known_systems, load_system
from sureshot.research.figures.catalogue import FIGURES
from sureshot.research.reproduction.plan import (
    find_table,
    load_figures,
    load_tables,
    published_as,
    read_plan,
    settings_of,
)
from tests.paths import ROOT

TABLES = load_tables()
ROWS = [(one, variant) for one in TABLES.values() for variant in one.variants]
DUQ_CONTROL = "control: all weights of DUQ, means for samples, no uncertainty"


def system(settings, width=16):
    return load_system(settings, Sizes(width, 3))


def weights(settings, width=16):
    return sum(part.numel() for part in system(settings, width).parameters())


def row(table, name):
    (found,) = [variant for variant in TABLES[table].variants if variant.name == name]
    return found


# --- all tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "variant"), ROWS, ids=lambda x: x.name)
def test_the_settings_of_every_row_build_a_system(one, variant):
    assert weights(variant.system) >= 1


@pytest.mark.parametrize(("one", "variant"), ROWS, ids=lambda x: x.name)
def test_every_printed_name_is_in_the_table_it_is_from(one, variant):
    if variant.printed is not None:
        rows = [r for r in rows_of_table(one.table) if r.direction == "t2v"]
        same = [r for r in rows if (r.method, r.variant) == (variant.method, variant.printed)]
        found = [r for r in same if bool(r.post) == bool(variant.post)]
        assert found and all(r.r1 is not None for r in found)
        # One of each data set and encoder.
        assert len({(r.dataset, r.split, r.encoder) for r in found}) == len(found)


@pytest.mark.parametrize("one", TABLES.values(), ids=lambda x: x.name)
def test_rows_of_a_table_have_names_and_settings_of_their_own(one):
    assert len({v.name for v in one.variants}) == len(one.variants) >= 1
    for first, second in itertools.combinations(one.variants, 2):
        same = dict(first.system) == dict(second.system) and first.frames == second.frames
        same = same and (first.width, first.post) == (second.width, second.post)
        assert not same, (first.name, second.name)
    assert sum(v.control for v in one.variants) <= 1


@pytest.mark.parametrize("one", TABLES.values(), ids=lambda x: x.name)
def test_the_data_of_a_table_are_those_of_its_printed_rows(one):
    printed = {(row.dataset, row.split) for row in rows_of_table(one.table)}
    if one.kind == "recalls" and printed:
        assert {published_as(name) for name in (*one.data, *one.elsewhere)} == printed


def test_every_numbered_table_and_figure_is_there():
    tables = [f"duq-{n}" for n in range(1, 6)] + [f"duq-s{n}" for n in range(1, 7)]
    tables += [f"uatvr-{n}" for n in range(1, 10)] + [f"dvtr-{n}" for n in range(3, 14)]
    assert list(TABLES) == [*tables, "controls", "dose-common", "dose-ambiguity", "systems"]
    figures = [f"duq-fig-{n}" for n in (1, 2, 3, 4, "s1", "s2", "s3")]
    figures += [f"uatvr-fig-{n}" for n in range(1, 6)] + [f"dvtr-fig-{n}" for n in range(1, 7)]
    assert list(load_figures()) == figures


def test_figures_are_those_that_the_catalogue_says_the_paper_has():
    drawn = {one.figure for one in load_figures().values() if one.figure}
    assert drawn == set(FIGURES) - {"uncertainty"}  # which is after one, and none of theirs
    for one in load_figures().values():
        if one.figure:
            assert weights(one.system) >= 1


@pytest.mark.parametrize(
    "name",
    [name for name, one in TABLES.items() if rows_of_table(one.table)],
)
def test_no_printed_row_of_a_system_that_is_here_is_left_out(name):
    of = {variant.method for variant in TABLES[name].variants if variant.printed is not None}
    rows = [r for r in rows_of_table(TABLES[name].table) if r.direction == "t2v"]
    printed = {(r.method, r.variant, bool(r.post)) for r in rows if r.method in of}
    ours = {(v.method, v.printed, bool(v.post)) for v in TABLES[name].variants}
    assert ours >= printed > set()


def test_systems_of_the_papers_that_are_here_have_a_row_wherever_they_are_printed():
    here = ("CE", "HiT", "PCME", "CLIP4Clip", "CLIP2Video", "X-Pool", "T-Mass", "UATVR", "DUQ")
    for one in TABLES.values():
        ours = {folded_name(variant.method) for variant in one.variants}
        printed = {folded_name(row.method) for row in rows_of_table(one.table)}
        assert {folded_name(name) for name in here} & printed <= ours, one.name


def test_a_table_is_found_by_its_name():
    assert find_table("duq-3") is TABLES["duq-3"]
    with pytest.raises(SureshotError, match="Unknown table 'duq-9'; known: duq-1, duq-2"):
        find_table("duq-9")


def test_settings_start_from_others():
    assert settings_of("duq_control") == {
        **settings_of("duq"),
        "similarity_evidence": False,
        "distance_loss": True,
        "distance_evidence": False,
        "distance": "means",
    }
    on = settings_of({"name": "dvtr", "base": "hit", "mode": "paper"})
    assert on == {"name": "dvtr", "base": settings_of("hit"), "mode": "paper"}


# --- DUQ and UATVR --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["duq-s5", "uatvr-5"])
def test_frames_of_the_paper_are_there_beside_fewer(name):
    frames = {v.name: v.frames for v in TABLES[name].variants}
    assert frames == {f"F={count}": count for count in (1, 2, 4, 8, 12, 16, 20)}


def test_most_tables_have_a_row_without_uncertainty_to_compare_with():
    names = {one.name for one, variant in ROWS if variant.name == DUQ_CONTROL}
    assert names == {"duq-3", "duq-s4", "duq-s6", "duq-4"}


def test_the_control_has_the_weights_of_duq_and_none_of_its_uncertainty():
    control = row("duq-4", DUQ_CONTROL)
    assert weights(control.system) == weights(row("duq-4", "DUQ").system)
    assert not control.system["similarity_evidence"] and not control.system["distance_evidence"]
    assert control.control and control.printed is None


def test_a_part_is_added_from_row_to_row():
    names = ["TI", "+ DSA", "+ DUA (MIL-NCE)", "+ KL (UATVR)"]
    made = [system(row("uatvr-1", name).system).config for name in names]
    parts = [(one.adaptation, one.branch, one.branch and one.divergence) for one in made]
    assert parts == [(False,) * 3, (True, False, False), (True, True, False), (True,) * 3]


def test_the_control_of_uatvr_has_the_weights_and_no_uncertainty():
    control = settings_of("uatvr_control")
    assert weights(control) == weights(settings_of("uatvr"))
    made = system(control)
    assert made.config.matching == "means"
    assert made.gaussian({name: torch.zeros(1, 16) for name in ("mean", "log_var")}) is None


# --- DVTR -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name in TABLES if name.startswith("dvtr") and TABLES[name].stand_in]
)
def test_what_a_row_is_compared_with_has_the_same_base(name):
    systems = [dict(variant.system) for variant in TABLES[name].variants]
    bases = [settings["base"] for settings in systems if settings["name"] == "dvtr"]
    assert bases and all(base in systems for base in bases)


def test_the_controls_differ_from_the_full_row_in_eta_alone():
    rows = {v.name: dict(v.system) for v in TABLES["dvtr-10"].variants}
    full = rows["DVTR, contrastive"]
    assert full == settings_of({"name": "dvtr", "base": "hit"})
    shuffled = rows["control: contrastive, etas dealt to other negatives"]
    assert shuffled == full | {"uncertainty": "shuffled"}
    assert rows["contrastive without eta"] == full | {"uncertainty": "none"}


def test_values_of_the_paper_stand_beside_each_setting():
    """As tables XI, XII and XIII print them."""
    values = {name: [float(v.paper.split()[0]) for v in TABLES[name].variants if v.paper]
              for name in ("dvtr-11", "dvtr-12", "dvtr-13")}  # fmt: skip
    assert values["dvtr-11"] == [65.68, 66.33, 67.44, 67.90, 67.72, 67.67]
    assert values["dvtr-12"] == [319.2, 320.4, 321.3, 321.1, 322.2, 321.4, 321.4, 320.6, 318.5]
    assert values["dvtr-13"] == [
        288.5, 309.4, 318.1, 318.9, 321.6, 320.5, 323.0, 319.4, 318.9, 317.9,
    ]  # fmt: skip


def test_margins_and_temperatures_are_those_of_hit_as_its_row_of_msvd_says():
    """The best of table XIII is the sum that table IV prints for DVTR + HiT."""
    (row,) = [r for r in rows_of_table("DVTR-T4")
              if (r.method, r.direction) == ("DVTR + HiT", "t2v")]  # fmt: skip
    assert f"{row.rsum} (rsum)" in {v.paper for v in TABLES["dvtr-13"].variants}
    for name, base in (("dvtr-11", "clip2video"), ("dvtr-12", "hit"), ("dvtr-13", "hit")):
        systems = [v.system for v in TABLES[name].variants if not v.control]
        assert {system["base"]["name"] for system in systems} == {base}
    margins = [v.system["margin"] for v in TABLES["dvtr-12"].variants if "margin" in v.system]
    assert margins == pytest.approx([n / 10 for n in range(1, 10)])
    heats = [v.system.get("temperature") for v in TABLES["dvtr-13"].variants]
    assert heats[:10] == pytest.approx([n / 100 for n in range(1, 11)])


# --- all systems ----------------------------------------------------------------------------------

SYSTEMS = TABLES["systems"].variants
PLAN = read_plan(ROOT / "results" / "frame-subset.toml")


def size(variant):
    """Weights at the size of the frame subset's features, in the plan's stem or the row's own."""
    stem = Stem(StemConfig("linear", variant.width or 128), Sizes(384, 1408))
    made = load_system(PLAN.system(variant.system, "home"), stem.sizes)
    parts = [*stem.parameters(), *made.parameters()]
    return sum(part.numel() for part in parts if part.requires_grad)


def test_every_system_is_in_the_table_of_systems():
    without_row = {"duq_released"}  # too new for the results that are kept
    assert {v.system["name"] for v in SYSTEMS} == set(known_systems()) - without_row


def test_every_base_is_there_alone_too():
    rows = {v.name: v.system for v in SYSTEMS}
    bases = [n for n in rows if n.startswith("DVTR + ") and not n.endswith("without uncertainty")]
    assert len(bases) == 5
    for name in bases:
        assert rows[name]["base"] == rows[name.removeprefix("DVTR + ")]


def test_there_is_a_clip4clip_at_least_as_large_as_every_system():
    largest = max(size(v) for v in SYSTEMS if v.width is None)
    widest = max(SYSTEMS, key=lambda variant: variant.width or 0)
    assert widest.system["name"] == "clip4clip" and size(widest) >= largest
