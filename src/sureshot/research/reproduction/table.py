"""A table of a paper: the runs it is made of, and the printed row beside each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a table.

    Attributes:
        name: what the row is called.
        system: settings of the system, with its ``name``.
        printed: ``variant`` of the printed row in metrics/published.csv; None if there is none.
        method: of the printed row.
        frames: frames a video; None is as many as were encoded.
        control: whether this is a baseline of ours that the paper does not have.
        width: of the stem; None is that of the plan.
        paper: what the paper prints for the row, in words, where that is no R@1.
    """

    name: str
    system: Mapping[str, Any]
    printed: str | None = None
    method: str = "DUQ"
    frames: int | None = None
    control: bool = False
    width: int | None = None
    paper: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a paper.

    Attributes:
        name: what a user types.
        title: what it shows.
        table: its id in metrics/published.csv.
        variants: its rows.
        protocol: of the paper's numbers, in words; empty if it prints none.
        elsewhere: whether it is about another data set than that trained on.
    """

    name: str
    title: str
    table: str
    variants: tuple[Variant, ...]
    protocol: str = ""
    elsewhere: bool = False
