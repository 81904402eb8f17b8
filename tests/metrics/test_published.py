"""Printed numbers, and the warnings beside them."""

from dataclasses import replace

import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.published import Setting, compare, published

NUMBERS = ("r1", "r5", "r10", "r50")
SETS = ["MSRVTT", "MSVD", "VATEX", "DiDeMo", "LSMDC", "ActivityNet", "Charades"]
SAME = Setting("MSRVTT", "1kA", 1000, 1000, "B32", 12, "MSRVTT")


def rows():
    return [
        row for name in SETS for way in ("t2v", "v2t") for row in published(name, direction=way)
    ]


def test_all_rows_are_there_none_twice_and_their_numbers_are_possible():
    every = rows()
    assert len(every) == len(set(every)) == 413
    assert {row.encoder for row in every} == {"B32", "B16", "none", ""}
    for row in every:
        recalls = [getattr(row, name) for name in NUMBERS if getattr(row, name) is not None]
        assert recalls == sorted(recalls), row
        assert all(0 < value < 100 for value in recalls), row
        assert row.median is None or 1 <= row.median < 100


def test_a_median_that_contradicts_a_recall_is_noted():
    """Half the queries within k is the same as a median within k; means of runs may differ."""
    contradictions = 0
    for row in rows():
        whole = row.median is not None and row.median * 2 % 1 == 0
        found = [
            f"R@{k} {value} and median {row.median} cannot both hold"
            for k, value in ((1, row.r1), (5, row.r5), (10, row.r10), (50, row.r50))
            if whole and value is not None
            if (row.median <= k and value < 49.9) or (row.median > k and value > 50.1)
        ]
        assert all(text in row.note for text in found), row
        assert bool(found) == ("cannot both hold" in row.note), row
        contradictions += len(found)
    assert contradictions == 6


def test_sums_of_both_directions_add_up_as_printed():
    back = {
        (row.table, row.dataset, row.split, row.name): row
        for row in rows()
        if row.direction == "v2t"
    }
    checked = wrong = 0
    for row in rows():
        other = back.get((row.table, row.dataset, row.split, row.name))
        if row.direction == "v2t" or row.rsum is None or other is None:
            continue
        printed = [getattr(r, name) for r in (row, other) for name in NUMBERS]
        total = sum(value for value in printed if value is not None)
        checked += 1
        wrong += abs(total - row.rsum) > 0.05
    assert checked == 51
    assert wrong == 2  # two rows of DVTR-T7 do not add up on paper either


@pytest.mark.parametrize(
    ("dataset", "method", "encoder", "table", "direction", "numbers"),
    [
        ("MSR-VTT", "DUQ", "B32", "DUQ-T1", "t2v", (51.2, 77.3, 86.1, 1.0, 10.8)),
        ("msrvtt", "x-pool", "B16", "DUQ-T1", "v2t", (46.4, 73.9, 84.1, 2.0, 8.4)),
        ("VATEX", "UATVR", "B16", "UATVR-T7", "t2v", (64.5, 92.6, 96.8, 1.0, 2.8)),
        ("MSVD", "DVTR + C2V", "B16", "DVTR-T4", "v2t", (70.4, 92.4, 96.9, 1.0, None)),
        ("Charades", "T-Mass", "", "DUQ-T2", "t2v", (14.2, 36.2, 48.3, 12.0, 54.8)),
    ],
)
def test_single_rows(dataset, method, encoder, table, direction, numbers):
    found = published(dataset, method=method, direction=direction)
    (row,) = (
        r for r in found if (r.encoder, r.table, r.variant, r.post) == (encoder, table, "", "")
    )
    assert (row.r1, row.r5, row.r10, row.median, row.mean) == numbers


def test_names_that_are_not_there_are_answered_with_those_that_are():
    with pytest.raises(SureshotError, match=r"dataset 'MSRVT'; known: ActivityNet, Charades"):
        published("MSRVT")
    with pytest.raises(SureshotError, match=r"method 'DUK'; known: .*DUQ, "):
        published("MSRVTT", method="DUK")
    (row,) = (row for row in published("LSMDC", method="DUQ") if row.trained_on)
    assert (row.trained_on, row.r1, row.r_sum, row.median) == ("MSRVTT", 21.4, 110.0, 11.0)


def test_a_row_says_its_variant_and_post_processing():
    names = [row.name for row in published("MSRVTT", method="DUQ")]
    assert {"DUQ", "DUQ + DSL", "DUQ evidence=ReLU", "DUQ F=4"} <= set(names)
    (row,) = published("VATEX", method="QB-Norm")
    assert row.name == "QB-Norm"
    assert row.post == "QB-Norm"


def first(setting, method="DUQ", **options):
    return compare(setting, method=method, **options)[0]


@pytest.mark.parametrize(
    ("change", "protocol", "warning"),
    [
        ({}, "", ""),
        ({"encoder": "ViT-B/32"}, "", ""),
        ({"encoder": "openai/clip-vit-base-patch32"}, "", ""),
        ({"videos": 476}, "gallery: 476 here, 1000 published", ""),
        ({"texts": 9520}, "texts: 9520 here, 1000 published", ""),
        ({"split": "at hand"}, "split: at hand here, 1kA", ""),
        ({"split": ""}, "split: none of the published ones here, 1kA", ""),
        ({"encoder": "openai/clip-vit-base-patch16"}, "", "patch16 here, B32 published"),
        ({"encoder": "ViT-L/14"}, "", "encoder: ViT-L/14 here, B32 published"),
        ({"encoder": "google/siglip-base-patch16"}, "", "patch16 here, B32 published"),
        ({"encoder": ""}, "", "encoder: not known here, B32 published"),
        ({"frames": None}, "", "frames: not known here, 12 published"),
        ({"trained_on": "DiDeMo"}, "", "trained on: DiDeMo here, MSRVTT published"),
        ({"trained_on": ""}, "", "trained on: not known here, MSRVTT published"),
        ({"frozen": True}, "", "encoder: B32, frozen here, B32 published"),
        ({"part": "1k-A 7k"}, "", "trained on: MSRVTT (1k-A 7k) here, MSRVTT published"),
    ],
)
def test_other_data_is_another_protocol_and_other_circumstances_a_warning(
    change, protocol, warning
):
    match = first(replace(SAME, **change))
    assert (match.row.name, match.row.encoder) == ("DUQ", "B32")
    assert match.protocol == ((protocol,) if protocol else ())
    assert len(match.warnings) == bool(warning)
    assert not warning or match.warnings[0].endswith(warning)


def test_unknown_post_processed_and_odd_rows_say_so():
    unknown = first(Setting("LSMDC", "std", 1000, 1000, "", None, "LSMDC"), "DiCoSA")
    assert unknown.warnings == (
        "encoder: not known here, not stated published",
        "frames: not known here, not stated published",
    )
    matches = compare(SAME, method="DUQ")
    (dsl,) = (m for m in matches if m.row.post == "DSL" and m.row.encoder == "B32")
    assert dsl.warnings == ("post-processed with DSL; our raw scores are not",)
    setting = Setting("Charades", "std", 1863, 1863, "", 12, "Charades")
    assert "as printed: the released loader" in first(setting).warnings[-1]
    assert first(setting).protocol == ()


def test_tables_that_print_the_same_row_are_named_together():
    matches = compare(SAME, method="DUQ")
    assert "DUQ-T1, DUQ-S2" in [m.row.table for m in matches if m.row.name == "DUQ"]
    # Ablations, such as F=4, are left out.
    assert all(not m.row.variant for m in matches)


def test_a_split_of_ones_own_is_put_beside_every_published_one_with_a_warning():
    setting = replace(SAME, split="at hand", videos=476)
    matches = compare(setting, method="DVTR + C2V")
    assert {m.row.split for m in matches} == {"1kA", "full"}
    assert all(len(m.protocol) >= 2 for m in matches)
    assert {m.row.split for m in compare(SAME, method="DVTR + C2V")} == {"1kA"}


def test_a_range_of_published_sizes_is_one_protocol():
    for count in (1003, 1004):
        assert first(Setting("DiDeMo", "std", count, count)).protocol == ()
    expected = "gallery: 1002 here, 1003 to 1004 published"
    assert expected in first(Setting("DiDeMo", "std", 1002, 1002)).protocol


@pytest.mark.parametrize("dataset", SETS)
def test_every_split_has_its_sizes(dataset):
    for direction in ("t2v", "v2t"):
        for match in compare(Setting(dataset, "", 1, 1), direction=direction):
            assert len(match.protocol) == 3
            assert match.row.dataset == dataset
