"""Every row can be built, and every printed row beside one is there."""

import itertools

import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.published import published
from sureshot.models.systems.load import load_system
from sureshot.models.tokens import Sizes
from sureshot.research.reproduction.duq import CONTROL
from sureshot.research.reproduction.tables import TABLES, table

ROWS = [(one, variant) for one in TABLES.values() for variant in one.variants]


def weights(variant, width=16):
    return sum(part.numel() for part in load_system(variant.system, Sizes(width, 3)).parameters())


@pytest.mark.parametrize(("one", "variant"), ROWS, ids=lambda x: x.name)
def test_the_settings_of_every_row_build_a_system(one, variant):
    assert weights(variant) >= 1


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


def test_most_tables_have_a_row_without_uncertainty_to_compare_with():
    assert {one.name for one in TABLES.values() if CONTROL in one.variants} == {
        "duq-3",
        "duq-s4",
        "duq-s6",
        "duq-4",
    }


def test_the_control_has_the_weights_of_duq_and_none_of_its_uncertainty():
    full = next(v for v in TABLES["duq-4"].variants if v.name == "DUQ")
    assert weights(CONTROL) == weights(full)
    assert not CONTROL.system["similarity_evidence"] and not CONTROL.system["distance_evidence"]
    assert CONTROL.printed is None


def test_a_table_is_found_by_its_name():
    assert table("duq-3") is TABLES["duq-3"]
    with pytest.raises(SureshotError, match="Unknown table 'duq-9'; known: duq-3, duq-s3"):
        table("duq-9")
