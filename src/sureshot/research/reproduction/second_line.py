"""The second line of a table: the test videos that share no upload with a training video."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from sureshot.errors import SureshotError
from sureshot.research.reproduction.ranks import RunRanks, TableRanks
from sureshot.text import plain

_KS = (1, 5, 10)


def second_lines(ranks: TableRanks, ids: Sequence[str]) -> list[str]:
    """Recalls of the captions of some of the test videos, in Markdown; all videos are searched.

    Args:
        ranks: ranks of a table on one test set.
        ids: ids of those videos.

    Raises:
        SureshotError: none of them is the id of a test video.
    """
    chosen = set(ids)
    first = ranks.runs[0]
    kept = np.array([query.rsplit("#", 1)[0] in chosen for query in first.queries])
    if not kept.any():
        example = first.queries[0].rsplit("#", 1)[0]
        raise SureshotError(
            f"None of the {len(chosen)} ids of `unshared` of the plan is that of a test video, as "
            f"{plain(example)} is; correct the file. Finished runs are kept."
        )
    count = len(set(first.owner[kept].tolist()))
    lines = [
        f"## Of these, the {count} videos that share no upload with a training video",
        "",
        f"Captions of these alone; all {len(first.videos)} videos are searched.",
        "",
        f"| | {' | '.join(f'R@{k}' for k in _KS)} |",
        f"|---|{'---|' * len(_KS)}",
    ]
    for row in dict.fromkeys(ranks.rows):
        runs = ranks.part(row).values()
        cells = [_mean([_recall(run, kept, k) for run in runs]) for k in _KS]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


def _recall(run: RunRanks, kept: Bool[np.ndarray, " captions"], k: int) -> float:
    return float(100 * np.mean(run.texts[kept] <= k))


def _mean(values: Sequence[float]) -> str:
    mean = f"{np.mean(values):.1f}"
    return f"{mean} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else mean
