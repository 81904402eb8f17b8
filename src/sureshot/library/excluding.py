"""What an index leaves out: patterns remembered and taken back, and videos indexed before."""

import glob
from collections.abc import Callable, Sequence
from pathlib import Path

from sureshot.errors import QueryError
from sureshot.media.excluded import Excluded, as_pattern
from sureshot.places import absolute
from sureshot.store.store import Store
from sureshot.text import plain


def exclude_too(store: Store, patterns: Sequence[str]) -> None:
    """Remember patterns of what is left out from now on.

    Raises:
        QueryError: a pattern is empty.
        StoreError: the index cannot be written.
    """
    store.set_excluded([as_pattern(pattern) for pattern in patterns], excluded=True)


def include_again(store: Store, patterns: Sequence[str]) -> None:
    """Take patterns, or paths that `sureshot.library.remove` excluded, off what is left out.

    Raises:
        QueryError: one of them is not excluded.
        StoreError: the index cannot be written.
    """
    known = store.excluded()
    chosen = []
    for pattern in map(as_pattern, patterns):
        names = [name for name in (pattern, glob.escape(pattern)) if name in known]
        if not names:
            are = f"these are: {', '.join(map(plain, known))}" if known else "nothing is"
            raise QueryError(f"{plain(pattern)} is not excluded; {are}.")
        chosen += names
    store.set_excluded(chosen, excluded=False)


def forget_excluded(
    store: Store,
    paths: Sequence[Path],
    excluded: Excluded,
    mine: Callable[[Path], bool] = lambda path: True,
) -> int:
    """Remove what was indexed at or below some paths before it was excluded.

    Args:
        store: the index.
        paths: the paths.
        excluded: what is left out.
        mine: whether the video at a path may be removed.

    Returns:
        How many videos that were.
    """
    if not excluded.patterns:
        return 0
    tops = [absolute(path) for path in paths]
    here = (r for r in store.each_video() if any(r.path.is_relative_to(top) for top in tops))
    chosen = [r for r in here if excluded.matches(r.path, tops) and mine(r.path)]
    store.remove(chosen)
    return len(chosen)
