"""Every row can be built, every printed row beside one is there, and controls control."""

import itertools

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.metrics.published import published
from sureshot.models.model import Stem, StemConfig
from sureshot.models.systems.load import known_systems, load_system
from sureshot.models.tokens import Sizes
from sureshot.research.reproduction.tables import find_table, load_tables, settings_of

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
        rows = published("msrvtt", method=variant.method, direction="t2v")
        found = [r for r in rows if r.table == one.table and r.variant == variant.printed]
        assert len(found) == 1 and found[0].r1 is not None


@pytest.mark.parametrize("one", TABLES.values(), ids=lambda x: x.name)
def test_rows_of_a_table_have_names_and_settings_of_their_own(one):
    assert len({v.name for v in one.variants}) == len(one.variants) > 1
    for first, second in itertools.combinations(one.variants, 2):
        same = dict(first.system) == dict(second.system) and first.frames == second.frames
        same = same and first.width == second.width
        assert not same, (first.name, second.name)
    assert sum(v.control for v in one.variants) <= 1


@pytest.mark.parametrize(
    "name",
    ["duq-3", "duq-s3", "duq-s4", "uatvr-1", "uatvr-3", "uatvr-4", "dvtr-9", "dvtr-10"],
)
def test_no_printed_row_is_left_out(name):
    of = {variant.method for variant in TABLES[name].variants if variant.printed is not None}
    rows = [r for r in published("msrvtt", direction="t2v") if r.table == TABLES[name].table]
    printed = {(r.method, r.variant) for r in rows if r.method in of}
    assert {(v.method, v.printed) for v in TABLES[name].variants} >= printed > set()


def test_a_table_is_found_by_its_name():
    assert find_table("duq-3") is TABLES["duq-3"]
    with pytest.raises(SureshotError, match="Unknown table 'duq-9'; known: duq-3, duq-s3"):
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
    assert frames == {"F=1": 1, "F=2": 2, "F=4": 4, "F=8": 8, "F=12": None}


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


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith("dvtr")])
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
    papers = {v.name: v.paper for v in TABLES["dvtr-11"].variants if v.paper}
    assert papers["K=7, as printed"] == "67.90 (geometric mean of recalls)"
    assert len(papers) == 6
    assert {v.paper for v in TABLES["dvtr-13"].variants} > {"323.0 (rsum)", "288.5 (rsum)"}


# --- all systems ----------------------------------------------------------------------------------

SYSTEMS = TABLES["systems"].variants


def size(variant):
    """Weights at the size of the frame subset's features, in the plan's stem or the row's own."""
    stem = Stem(StemConfig("linear", variant.width or 128), Sizes(384, 1408))
    made = load_system(variant.system, stem.sizes)
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
