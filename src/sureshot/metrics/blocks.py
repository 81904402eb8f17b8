"""Large matrices looked at some rows at a time, so that what is made of them fits in memory."""

from collections.abc import Iterator

CELLS = 1 << 22  # numbers looked at together


def row_blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices that cover ``range(rows)``, each of at most `CELLS` numbers or of a single row.

    Args:
        rows: number of rows of the matrix.
        width: numbers in a row.

    Examples:
        >>> list(row_blocks(5, CELLS // 2))
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, CELLS // max(1, width))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))
