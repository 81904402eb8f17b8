"""Results in the text formats of TREC, which other evaluation tools read."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from sureshot.errors import SureshotError
from sureshot.files import replace_file, write_text
from sureshot.metrics.ranks import refuse_nan


def write_run(
    path: Path,
    similarity: Float[np.ndarray, "queries items"],
    queries: Sequence[str],
    items: Sequence[str],
    *,
    depth: int | None = None,
    tag: str = "sureshot",
) -> None:
    """Write a run: lines ``query Q0 item rank score tag``, best first.

    Scores are written so that reading them gives the same numbers again. Items that score ``-inf``
    are left out: they were ruled out. Most tools ignore the written rank, sort by score and break
    ties by the item's name, so numbers agree with `recall` only where no scores tie.

    Args:
        path: file to write; an existing one is replaced.
        similarity: higher is better; transpose a matrix of texts and videos for video to text.
        queries: names of the rows.
        items: names of the columns.
        depth: items written for each query; all if None.
        tag: name of the run.

    Raises:
        SureshotError: a name is empty, holds white space (fields are separated by it) or occurs
            twice; names do not fit the matrix; a score is NaN or ``+inf``.
    """
    for kind, names, count in zip(
        ("query", "item"), (queries, items), similarity.shape, strict=True
    ):
        _names(kind, names, count)
    _name("tag", tag)
    refuse_nan(similarity)
    if np.isposinf(similarity).any():
        raise SureshotError("A score is +inf, which a TREC run cannot hold; scores must be finite.")
    with replace_file(path) as fresh, fresh.open("w", encoding="utf-8", newline="\n") as file:
        for query, row in zip(queries, similarity, strict=True):
            best = np.argsort(-row, kind="stable")[:depth]
            kept = best[np.isfinite(row[best])]
            file.writelines(
                f"{query} Q0 {items[i]} {rank} {float(row[i])!r} {tag}\n"
                for rank, i in enumerate(kept.tolist(), 1)
            )


def write_qrels(path: Path, relevant: Iterable[tuple[str, str]]) -> None:
    """Write judgements: lines ``query 0 item 1`` for each pair of a query and what it seeks.

    Args:
        path: file to write; an existing one is replaced.
        relevant: pairs of query and item.

    Raises:
        SureshotError: a name is empty or holds white space.
    """
    lines = []
    for query, item in relevant:
        _name("query", query)
        _name("item", item)
        lines.append(f"{query} 0 {item} 1\n")
    write_text(path, "".join(lines))


def _names(kind: str, names: Sequence[str], count: int) -> None:
    if len(names) != count:
        raise SureshotError(
            f"{len(names)} names for {count} {kind} rows or columns; give one each."
        )
    seen: set[str] = set()
    for name in names:
        _name(kind, name)
        if name in seen:
            raise SureshotError(f"The {kind} name {name!r} occurs twice; names must tell apart.")
        seen.add(name)


def _name(kind: str, name: str) -> None:
    if name.split() != [name]:
        raise SureshotError(
            f"The {kind} name {name!r} is empty or holds white space, which separates the fields "
            "of a TREC file; rename it."
        )
