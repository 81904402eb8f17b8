"""Queries with and without an answer, as Generalized Moment Retrieval measures them.

Every query comes with an existence score, the probability that something is right for it. Below a
threshold it is rejected, which is an empty answer; otherwise the best moments answer it. How well
existence scores separate the queries is their AUROC, `sureshot.metrics.confidence.auroc`. Each
caption of a split is asked twice: in all videos, and in all but its own. There are two files of
JSON lines, one object per query::

    truth.jsonl        {"qid": "v7#3", "query": "a goal", "relevant_windows": [["v7", 0, 9]]}
    predictions.jsonl  {"qid": "v7#3", "query": "a goal", "existence": 0.81,
                        "pred_relevant_windows": [["v7", 0, 9, 0.42], ...]}

A window is a video, seconds from and to (null where the video counts as a whole), and in
predictions its score. The query without an answer is ``v7#3/absent``, whose relevant windows
are none.

References:
    "Retrieving Any Relevant Moments: Benchmark and Models for Generalized Moment Retrieval",
    arXiv:2605.02623, whose names (Rej-F1, G-mIoU@k) these are.

Differs:
    Moments are looked for in a whole gallery, not in one video, so those of other videos overlap by
    0; and each query has one right moment. The paper's own toolkit was not at hand, so G-mIoU@k is
    as its description reads.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from sureshot.datasets.split import Split
from sureshot.files import write_text
from sureshot.metrics.confidence import auroc
from sureshot.paths import expand
from sureshot.progress import Progress
from sureshot.research.trust_report import TrustReport

_SHOWN = 5  # windows of a query
_THRESHOLD = 0.5  # of the existence score, below which a query is rejected

FILES = ("truth.jsonl", "predictions.jsonl")
PerQuery = Bool[np.ndarray, " queries"]


class Moments(NamedTuple):
    """Some moments: the number of the video of each, and seconds; a whole video has 0 and inf."""

    video: Int[np.ndarray, " moments"]
    start: Float[np.ndarray, " moments"]
    end: Float[np.ndarray, " moments"]


def overlap(
    moments: Moments, sought: Int[np.ndarray, " queries"], found: Int[np.ndarray, "queries k"]
) -> Float[np.ndarray, "queries k"]:
    """Temporal intersection over union of the moments found with the one sought.

    Of whole videos it is 1 for the same one and 0 for any other; of moments without length it is 1
    for the same one.
    """
    video, start, end = (column[found] for column in moments)
    own = [column[sought][:, None] for column in moments]
    same = video == own[0]
    shared = np.maximum(np.minimum(end, own[2]) - np.maximum(start, own[1]), 0.0)
    union = np.maximum(end, own[2]) - np.minimum(start, own[1])
    whole = np.isinf(end) & np.isinf(own[2])
    ratio = np.divide(shared, union, out=np.zeros(found.shape), where=same & ~whole & (union > 0))
    return np.where(whole | (union == 0), same, ratio).astype(np.float64)


def rejection_f1(rejected: PerQuery, absent: PerQuery) -> float:
    """F1 of rejecting the queries without an answer (Rej-F1); 0 where there is nothing to reject.

    Examples:
        >>> rejection_f1(np.array([True, True, False]), np.array([True, False, True]))
        0.5
    """
    both = 2 * int((rejected & absent).sum())
    return both / (int(rejected.sum() + absent.sum()) or 1)


def generalized_miou(
    overlaps: Float[np.ndarray, "queries k"], rejected: PerQuery, absent: PerQuery
) -> float:
    """Mean over all queries of what each is answered with (G-mIoU@k).

    A query without an answer counts 1 if it is rejected, else 0. One with an answer counts 0 if it
    is rejected, else the best overlap of the first k moments.

    Args:
        overlaps: of the first k moments of each query with the one sought; not read where there
            is none.
    """
    answered = np.where(rejected, 0.0, overlaps.max(1))
    return float(np.where(absent, rejected, answered).mean())


@dataclass(frozen=True, slots=True)
class Absence:
    """What Generalized Moment Retrieval measures, half of the queries having no answer."""

    auroc: float  # of the existence score, queries with an answer against those without
    rejection_f1: float  # of rejecting those without an answer (Rej-F1)
    miou_1: float  # G-mIoU@1, and @5
    miou_5: float

    def text(self) -> str:
        """One line, in percent as the field prints it."""
        return (
            "Generalized Moment Retrieval, half of the queries without an answer: "
            f"AUROC {100 * self.auroc:.1f}, Rej-F1 {100 * self.rejection_f1:.1f}, "
            f"G-mIoU@1 {100 * self.miou_1:.1f}, G-mIoU@5 {100 * self.miou_5:.1f}.\n"
        )


def evaluated(
    folder: str | Path,
    split: Split,
    scores: Float[np.ndarray, "captions videos"],
    report: TrustReport,
    progress: Progress,
) -> tuple[Absence | None, list[Path]]:
    """The numbers of a split whose results ``scores`` order, and the `FILES` of a folder.

    Where there are none, why is reported.
    """
    if report.existence is None:
        progress.line(
            f"! Nothing is written into {folder}, as no existence score can be calibrated on these "
            f"queries. {report.nothing or report.refused}"
        )
        return None, []
    owner, orders, values = split.owner(), [], []
    for own in (owner[:0], owner):  # in all videos, then in all but the caption's own
        there = scores.astype(np.float64)
        there[np.arange(len(own)), own] = -np.inf
        best = np.argsort(-there, axis=1, kind="stable")[:, : min(_SHOWN, scores.shape[1] - 1)]
        orders.append(best)
        values.append(np.take_along_axis(there, best, 1))
    order, existence = np.concatenate(orders), report.existence.ravel()
    # Parts of one file are moments of one video.
    moments = Moments(
        video=np.unique([str(item.path) for item in split.items], return_inverse=True)[1],
        start=np.array([item.start or 0.0 for item in split.items]),
        end=np.array([np.inf if item.end is None else item.end for item in split.items]),
    )
    overlaps = overlap(moments, np.tile(owner, 2), order)
    absent = np.repeat([False, True], len(owner))
    rejected: PerQuery = existence < _THRESHOLD
    found = Absence(
        auroc=auroc(existence, ~absent),
        rejection_f1=rejection_f1(rejected, absent),
        miou_1=generalized_miou(overlaps[:, :1], rejected, absent),
        miou_5=generalized_miou(overlaps, rejected, absent),
    )
    return found, _write(expand(folder).absolute(), split, order, np.concatenate(values), existence)


def _write(
    folder: Path,
    split: Split,
    order: Int[np.ndarray, "queries k"],
    values: Float[np.ndarray, "queries k"],
    existence: Float[np.ndarray, " queries"],
) -> list[Path]:
    """Write the best videos of each query, their scores and whether there is one."""
    windows = [[item.id, item.start, item.end] for item in split.items]
    truth, predictions = [], []
    for query, caption in enumerate(split.captions * 2):
        number, absent = query % len(split.captions), query >= len(split.captions)
        qid = f"{split.items[caption.video].id}#{number}{'/absent' if absent else ''}"
        asked: dict[str, Any] = {"qid": qid, "query": caption.text}
        truth.append(asked | {"relevant_windows": [] if absent else [windows[caption.video]]})
        found = zip(order[query], values[query].tolist(), strict=True)
        predictions.append(
            asked
            | {
                "existence": round(float(existence[query]), 6),
                "pred_relevant_windows": [[*windows[n], round(v, 6)] for n, v in found],
            }
        )
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in FILES]
    for path, rows in zip(paths, (truth, predictions), strict=True):
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    return paths
