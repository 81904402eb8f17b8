"""What papers print, and why a number of ours may not be compared with it."""

import csv
import functools
import re
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal

from sureshot.errors import SureshotError

Direction = Literal["t2v", "v2t"]

_NUMBERS = ("r1", "r5", "r10", "r50", "median", "mean", "r_sum", "rsum")

# Smallest and largest number of test texts and videos that the papers use, by data set and split.
_SIZES = {
    ("msrvtt", "1ka"): ((1000, 1000), (1000, 1000)),
    ("msrvtt", "full"): ((59800, 59800), (2990, 2990)),
    ("msvd", "std"): ((27763, 27763), (670, 670)),
    ("vatex", "std"): ((15000, 15000), (1500, 1500)),
    ("vatex", "clip2video"): ((15000, 15000), (1500, 1500)),
    ("didemo", "std"): ((1003, 1004), (1003, 1004)),
    ("lsmdc", "std"): ((1000, 1000), (1000, 1000)),
    ("activitynet", "val1"): ((4917, 4917), (4917, 4917)),
    ("charades", "std"): ((1863, 1863), (1863, 1863)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One printed row. What the table does not print is None or empty.

    Attributes:
        dataset: data set tested on, as the papers write it without hyphens.
        split: test split: ``1kA``, ``full``, ``val1``, ``CLIP2Video`` for the 1,500 videos of
            VATEX that its authors drew, or ``std`` for the usual one.
        variant: the setting that an ablation changes; empty in the main tables.
        post: post-processing of the scores.
        encoder: ``B32`` or ``B16`` for CLIP ViT, ``none`` for older features, empty if not stated.
        trained_on: data set trained on where it is another than that tested on; else empty.
        r1, r5, r10, r50: percent; ``median`` and ``mean`` are of the ranks.
        r_sum: R@1 + R@5 + R@10 of this direction; ``rsum`` all recalls of both.
        table: paper and table.
        note: what is odd about the printed numbers.
    """

    dataset: str
    split: str
    direction: Direction
    method: str
    variant: str
    post: str
    encoder: str
    trained_on: str
    frames: int | None
    r1: float | None
    r5: float | None
    r10: float | None
    r50: float | None
    median: float | None
    mean: float | None
    r_sum: float | None
    rsum: float | None
    table: str
    note: str

    @property
    def name(self) -> str:
        """Method, variant and post-processing in one line."""
        named = " ".join(part for part in (self.method, self.variant) if part)
        return f"{named} + {self.post}" if self.post and self.post not in named else named


@dataclass(frozen=True, slots=True)
class Setting:
    """How a result of ours came about, as far as it matters for a comparison.

    Attributes:
        dataset: name of the data set.
        split: test split; empty if it is none of the published ones.
        texts: captions asked.
        videos: candidates for each caption.
        encoder: name of the encoder; empty if not known.
        frames: frames per video; None if not known.
        trained_on: data sets trained on; empty if not known.
        frozen: whether a system was trained on an encoder that was not; printed ones train it too.
        part: what of these data sets, where that is not the usual training set.
    """

    dataset: str = ""
    split: str = ""
    texts: int = 0
    videos: int = 0
    encoder: str = ""
    frames: int | None = None
    trained_on: str = ""
    frozen: bool = False
    part: str = ""

    @property
    def encoder_is(self) -> str:
        """The encoder in words."""
        return f"{self.encoder}, frozen" if self.frozen else self.encoder

    @property
    def training(self) -> str:
        """The training data in words."""
        return f"{self.trained_on} ({self.part})" if self.part else self.trained_on


@dataclass(frozen=True, slots=True)
class Match:
    """A printed row to compare a result of ours with.

    Attributes:
        row: printed row; its ``table`` names all tables that print the same numbers.
        protocol: how data or split differ; if it is not empty the numbers do not compare.
        warnings: what else differs or is odd.
    """

    row: Row
    protocol: tuple[str, ...]
    warnings: tuple[str, ...]


def published(
    dataset: str, *, method: str | None = None, direction: Direction = "t2v"
) -> list[Row]:
    """Printed rows in the order of the tables. Names match without regard to case and hyphens.

    Examples:
        >>> rows = published("MSR-VTT", method="DUQ")
        >>> rows[0].name, rows[0].encoder, rows[0].r1
        ('DUQ', 'B32', 51.2)
    """
    rows = list(_rows())
    for field, wanted in (("dataset", dataset), ("method", method)):
        if wanted is not None:
            known = {str(getattr(row, field)) for row in rows}
            rows = [row for row in rows if folded_name(getattr(row, field)) == folded_name(wanted)]
            if not rows:
                raise SureshotError(
                    f"No printed row has the {field} {wanted!r}; known: "
                    f"{', '.join(sorted(known, key=str.lower))}."
                )
    return [row for row in rows if row.direction == direction]


def compare(
    setting: Setting, *, method: str | None = None, direction: Direction = "t2v"
) -> list[Match]:
    """Printed rows to compare a result with, each with everything that speaks against it.

    Rows of the split named in the setting, or of all splits if it is none of the published ones;
    those of ablations are left out. Tables that repeat a row are named in one. That the sizes agree
    does not prove that the videos are the same: many clips are gone and have been replaced. Our
    result is taken as not post-processed.
    """
    rows = published(setting.dataset, method=method, direction=direction)
    ours = [row for row in rows if folded_name(row.split) == folded_name(setting.split)]
    merged: dict[tuple[object, ...], Row] = {}
    for row in (row for row in ours or rows if not row.variant):
        same = (row.split, row.name, row.encoder, row.trained_on, row.frames)
        key = (*same, *(getattr(row, number) for number in _NUMBERS[:-2]))
        if key in merged:
            first = merged[key]
            row = replace(
                first,
                table=f"{first.table}, {row.table}",
                r_sum=row.r_sum if first.r_sum is None else first.r_sum,
                rsum=row.rsum if first.rsum is None else first.rsum,
                note="; ".join(dict.fromkeys(note for note in (first.note, row.note) if note)),
            )
        merged[key] = row
    return [Match(row, _protocol(setting, row), _warnings(setting, row)) for row in merged.values()]


def rows_of_table(table: str) -> list[Row]:
    """The printed rows of a table by its id, such as ``DUQ-T3``; none where it is not there."""
    return [row for row in _rows() if row.table == table]


def is_whole(dataset: str, split: str, videos: int) -> bool:
    """Whether so many videos are all of a test split; papers differ by one for DiDeMo."""
    sizes = _SIZES.get((folded_name(dataset), folded_name(split)))
    return sizes is not None and sizes[1][0] <= videos <= sizes[1][1]


def _protocol(setting: Setting, row: Row) -> tuple[str, ...]:
    """Differences of data and split."""
    found = []
    if folded_name(setting.split) != folded_name(row.split):
        found.append(f"split: {setting.split or 'none of the published ones'} here, {row.split}")
    texts, videos = _SIZES[folded_name(row.dataset), folded_name(row.split)]
    for name, count, (low, high) in (
        ("gallery", setting.videos, videos),
        ("texts", setting.texts, texts),
    ):
        if not low <= count <= high:
            printed = str(low) if low == high else f"{low} to {high}"
            found.append(f"{name}: {count} here, {printed} published")
    return tuple(found)


def _warnings(setting: Setting, row: Row) -> tuple[str, ...]:
    """Differences other than of data and split."""
    encoder, trained, printed = setting.encoder_is, setting.training, row.trained_on or row.dataset
    pairs = [
        ("encoder", encoder, row.encoder, _encoder(encoder) == row.encoder),
        ("frames", setting.frames, row.frames, setting.frames == row.frames),
        ("trained on", trained, printed, folded_name(trained) == folded_name(printed)),
    ]
    found = [
        f"{name}: {here or 'not known'} here, {there or 'not stated'} published"
        for name, here, there, same in pairs
        # Two unknowns are not the same thing.
        if not same or not here
    ]
    if row.post:
        found.append(f"post-processed with {row.post}; our raw scores are not")
    if row.note:
        found.append(f"as printed: {row.note}")
    return tuple(found)


def _encoder(name: str) -> str:
    """``B32`` or ``B16`` for the CLIP encoders of the tables, else the name itself."""
    known = re.search(
        r"(?:^|[-_/])(?:vit)?[-_]?b(?:ase)?[-_/]?(?:patch)?[-_/]?(32|16)$", name, re.I
    )
    return f"B{known[1]}" if known and "siglip" not in name.lower() else name


@dataclass(frozen=True, slots=True)
class PrintedAccuracy:
    """One printed row about questions."""

    table: str
    dataset: str
    method: str
    accuracy: float  # percent
    note: str  # what is odd about it


def published_answers(method: str = "published") -> list[PrintedAccuracy]:
    """Printed accuracies on MSRVTT-QA of a method, ``published`` for all, as in DUQ's table 5."""
    table = _read("published_answers.csv")
    rows = [PrintedAccuracy(**{**row, "accuracy": float(row["accuracy"])}) for row in table]
    name = folded_name(method)
    found = [row for row in rows if method == "published" or folded_name(row.method) == name]
    if not found:
        known = ", ".join(row.method for row in rows)
        raise SureshotError(f"No printed accuracy is of the method {method!r}; known: {known}.")
    return found


def _read(name: str) -> Any:
    """The rows of a table of this package, by column."""
    text = files("sureshot.metrics").joinpath(name).read_text("utf-8")
    return csv.DictReader(text.splitlines())


@functools.cache
def _rows() -> tuple[Row, ...]:
    rows = []
    for record in _read("published.csv"):
        values: dict[str, Any] = dict(record)
        values["frames"] = int(record["frames"]) if record["frames"] else None
        for number in _NUMBERS:
            values[number] = float(record[number]) if record[number] else None
        rows.append(Row(**values))
    return tuple(rows)


@functools.cache
def folded_name(name: str) -> str:
    """A name of a data set, split or method without case, spaces and hyphens, to compare by."""
    return re.sub(r"[\s_-]", "", name).lower()


@functools.cache
def claimed_rows(table: str) -> frozenset[str]:
    """Names of the rows of a table that claims of the papers compare, in either mode."""
    claims = [claim for claim in _read("claims.csv") if claim["table"] == table]
    sides = ("more", "less", "paper_more", "paper_less")
    return frozenset(claim[side] for claim in claims for side in sides) - {"", "-"}
