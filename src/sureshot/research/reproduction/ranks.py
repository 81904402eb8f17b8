"""The ranks of every query of a run, kept so that anybody can ask later what chance could do.

Each run has a file beside its record, and each table one file of all its runs, in numpy's own
format. Ranks are halves where scores tie, so they are stored doubled, as whole numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt

from sureshot.datasets import Split
from sureshot.datasets.made import read_truth
from sureshot.files import replace_file
from sureshot.metrics.paired import SeedRanks
from sureshot.metrics.ranks import text_ranks, video_ranks

PERCENT = "Sureshot's percentage"  # name of that doubt
AMBIGUITY = "known ambiguity"  # name of what a made world knows: the logarithm of videos that fit


@dataclass(frozen=True, slots=True)
class RunRanks:
    """What one run gave for each query of a test set.

    Attributes:
        queries: name of each caption: the id of its video, a # and its number among its captions.
        owner: number of the video of each caption.
        texts: rank of the own video of each caption.
        videos: rank of the own captions of each video.
        first: number of the video that each caption finds first.
        right: whether that video fits the caption: in a made world by what is true, elsewhere only
            the caption's own video does.
        doubts: what says how unsure the answer to a caption is, by name; higher is less sure.
    """

    queries: Sequence[str]
    owner: Int[np.ndarray, " captions"]
    texts: Float[np.ndarray, " captions"]
    videos: Float[np.ndarray, " videos"]
    first: Int[np.ndarray, " captions"]
    right: Bool[np.ndarray, " captions"]
    doubts: Mapping[str, Float[np.ndarray, " captions"]] = field(default_factory=dict)


def ranks_of(
    scores: Float[np.ndarray, "captions videos"],
    split: Split,
    doubts: Mapping[str, Float[np.ndarray, " captions"]],
    turned: Float[np.ndarray, "captions videos"] | None = None,
    percent: Float[np.ndarray, " captions"] | None = None,
) -> RunRanks:
    """The ranks of a matrix of scores, with two doubts that any scores have.

    Args:
        scores: higher is better.
        split: captions and videos of the matrix.
        doubts: the model's own, by name.
        turned: scores that videos are asked by, where a correction makes them others.
        percent: Sureshot's own probability that the first hit of each caption is right, if it has
            one.

    Returns:
        The ranks; to the doubts are added ``best score``, minus the highest score of a caption,
        ``softmax entropy``, that of its scores in units of their mean deviation, and `PERCENT`,
        the probability that the first hit is wrong. In a made world they are ``known ambiguity``,
        the logarithm of the number of videos that fit, and ``Bayes``, the chance that the best
        scorer's first hit is not the caption's own video, too.
    """
    owner = split.owner()
    spread = max(float(scores.std(1).mean()), 1e-12)
    logits = (scores - scores.max(1, keepdims=True)) / spread
    odds = np.exp(logits)
    odds /= odds.sum(1, keepdims=True)
    entropy = -(odds * np.log(odds + 1e-30)).sum(1)
    plain = {"best score": -scores.max(1), "softmax entropy": entropy}
    if percent is not None:
        plain[PERCENT] = 1 - percent
    first = scores.argmax(1)
    right = relevance(split)[np.arange(len(first)), first]
    if split.dataset == "made":
        truth = read_truth(split)
        plain[AMBIGUITY] = np.log(truth.videos_that_fit)
        plain["Bayes"] = 1 - truth.posterior().max(1)
    return RunRanks(
        queries=query_names(split),
        owner=owner,
        texts=text_ranks(scores, owner),
        videos=video_ranks(scores if turned is None else turned, owner),
        first=first,
        right=right,
        doubts={**plain, **doubts},
    )


def relevance(split: Split) -> Bool[np.ndarray, "captions videos"]:
    """Which videos fit each caption: in a made world those that do, elsewhere its own alone."""
    if split.dataset == "made":
        return read_truth(split).fits
    return split.owner()[:, None] == np.arange(len(split.items))


def query_names(split: Split) -> list[str]:
    """The name of each caption: the id of its video, a # and its number among its captions."""
    seen: dict[int, int] = {}
    names = []
    for caption in split.captions:
        number = seen[caption.video] = seen.get(caption.video, -1) + 1
        names.append(f"{split.items[caption.video].id}#{number}")
    return names


def write_run_ranks(path: Path, found: Mapping[str, RunRanks]) -> None:
    """Keep the ranks of a run, those on each test set under the beginning of its scores' names.

    Raises:
        OSError: they cannot be written.
    """
    arrays: dict[str, Any] = {"tests": np.array(list(found))}
    for number, one in enumerate(found.values()):
        arrays[f"{number} queries"] = np.array(one.queries)
        arrays[f"{number} owner"] = one.owner.astype(np.int32)
        arrays[f"{number} texts"] = _doubled(one.texts)
        arrays[f"{number} videos"] = _doubled(one.videos)
        arrays[f"{number} first"] = one.first.astype(np.int32)
        arrays[f"{number} right"] = one.right
        for name, values in one.doubts.items():
            arrays[f"{number} doubt {name}"] = values.astype(np.float32)
    _save(path, arrays)


def read_run_ranks(path: Path) -> dict[str, RunRanks]:
    """What `write_run_ranks` kept; nothing where there is no file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as held:
        return {
            str(test): RunRanks(
                queries=held[f"{number} queries"].tolist(),
                owner=held[f"{number} owner"].astype(np.int64),
                texts=held[f"{number} texts"] / 2,
                videos=held[f"{number} videos"] / 2,
                first=held[f"{number} first"].astype(np.int64),
                right=held[f"{number} right"],
                doubts={
                    name.split(" doubt ", 1)[1]: held[name]
                    for name in held.files
                    if name.startswith(f"{number} doubt ")
                },
            )
            for number, test in enumerate(held["tests"])
        }


@dataclass(frozen=True, slots=True)
class TableRanks:
    """The ranks of all runs of a table on one test set.

    Attributes:
        rows: name of the row of each run.
        seeds: seed of each run.
        runs: what each run gave.
    """

    rows: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[RunRanks, ...]

    @property
    def knows_fits(self) -> bool:
        """Whether it is known which videos fit a caption, as in a made world."""
        return any(AMBIGUITY in one.doubts for one in self.runs)

    def of_row(self, row: str, *, fits: bool = False) -> SeedRanks | None:
        """The ranks of a row over its seeds; None where there is no run of it.

        Args:
            row: name of the row.
            fits: whether a caption ranks first where its first hit fits, and second elsewhere.
        """
        chosen = self.part(row)
        if not chosen:
            return None
        return SeedRanks(
            seeds=tuple(chosen),
            texts=np.stack(
                [np.where(one.right, 1.0, 2.0) if fits else one.texts for one in chosen.values()]
            ),
            owner=next(iter(chosen.values())).owner,
            videos=np.stack([one.videos for one in chosen.values()]),
        )

    def part(self, row: str) -> dict[int, RunRanks]:
        """The runs of a row by their seed."""
        found = zip(self.rows, self.seeds, self.runs, strict=True)
        return {seed: one for name, seed, one in found if name == row}


def write_table_ranks(path: Path, runs: Mapping[tuple[str, int], Mapping[str, RunRanks]]) -> None:
    """Write the ranks of all runs of a table, by row and seed; names of queries once a test set.

    Raises:
        OSError: they cannot be written.
    """
    arrays: dict[str, Any] = {
        "rows": np.array([row for row, _ in runs]),
        "seeds": np.array([seed for _, seed in runs]),
    }
    tests = list(dict.fromkeys(test for one in runs.values() for test in one))
    arrays["tests"] = np.array(tests)
    for number, test in enumerate(tests):
        parts = [one[test] for one in runs.values()]
        arrays[f"{number} queries"] = np.array(parts[0].queries)
        arrays[f"{number} owner"] = parts[0].owner.astype(np.int32)
        arrays[f"{number} texts"] = np.stack([_doubled(one.texts) for one in parts])
        arrays[f"{number} videos"] = np.stack([_doubled(one.videos) for one in parts])
        arrays[f"{number} first"] = np.stack([one.first for one in parts]).astype(np.uint16)
        arrays[f"{number} right"] = np.stack([one.right for one in parts])
        for name in dict.fromkeys(name for one in parts for name in one.doubts):
            empty = np.full(len(parts[0].owner), np.nan)
            values = np.stack([one.doubts.get(name, empty) for one in parts])
            arrays[f"{number} doubt {name}"] = values.astype(np.float16)
    _save(path, arrays)


def read_table_ranks(path: Path) -> dict[str, TableRanks]:
    """The ranks of a table by test set, that of the training's data first; none without a file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    rows, seeds = tuple(held["rows"].tolist()), tuple(held["seeds"].tolist())
    found = {}
    for number, test in enumerate(held["tests"].tolist()):
        doubts = {
            name.split(" doubt ", 1)[1]: values
            for name, values in held.items()
            if name.startswith(f"{number} doubt ")
        }
        queries = held[f"{number} queries"].tolist()
        owner = held[f"{number} owner"].astype(np.int64)
        found[test] = TableRanks(
            rows=rows,
            seeds=seeds,
            runs=tuple(
                RunRanks(
                    queries=queries,
                    owner=owner,
                    texts=held[f"{number} texts"][run] / 2,
                    videos=held[f"{number} videos"][run] / 2,
                    first=held[f"{number} first"][run].astype(np.int64),
                    right=held[f"{number} right"][run],
                    doubts={
                        name: values[run].astype(np.float64)
                        for name, values in doubts.items()
                        if not np.isnan(values[run]).all()
                    },
                )
                for run in range(len(rows))
            ),
        )
    return found


def _doubled(ranks: Float[np.ndarray, " n"]) -> UInt[np.ndarray, " n"]:
    return np.round(2 * ranks).astype(np.uint32)


def _save(path: Path, arrays: Mapping[str, Any]) -> None:
    with replace_file(path) as fresh, fresh.open("wb") as file:
        np.savez_compressed(file, **arrays)
