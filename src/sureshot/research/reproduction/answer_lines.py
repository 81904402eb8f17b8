"""The answer in three sentences: to find videos, to see effects, to know when one is wrong."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from sureshot.metrics.verdicts import LEAST_SEEDS
from sureshot.research.reproduction.claims import Finding
from sureshot.research.reproduction.doubts import Doubt, doubts_of
from sureshot.research.reproduction.tested import Tested

_CONTROLS = "positive controls"
# The rows that differ in a mechanism alone, in the table of controls.
_ALONE = (
    ("DUQ's uncertainty", "DUQ", "DUQ, means only"),
    ("UATVR's", "UATVR", "UATVR, means only"),
    ("DVTR's eta", "DVTR", "DVTR, etas shuffled"),
)
_ANY = ("best score", "softmax entropy", "known ambiguity", "Bayes")  # doubts of no paper


def answer_lines(tested: Sequence[Tested]) -> Iterator[str]:
    """Three sentences, from what has a verdict."""
    decided = [found for one in tested for found in one.decided]
    claims = [found for found in decided if found.claim.decided_with != _CONTROLS]
    if not decided:
        yield (
            f"No claim has a verdict yet: none of the tables here has {LEAST_SEEDS} seeds and the "
            "ranks of every query."
        )
        return
    yield f"{_finding(claims)}{_alone(claims)} {_seen(decided)} {_confidence(tested)}".strip()


def _finding(claims: Sequence[Finding]) -> str:
    count = Counter(found.decision.verdict for found in claims)
    return (
        f"**To find videos**: of {len(claims)} claims with a verdict {count['supported']} are "
        f"supported, {count['contradicted']} contradicted, {count['ruled out']} ruled out and "
        f"{count['too noisy to tell']} too noisy to tell"
    )


def _alone(claims: Sequence[Finding]) -> str:
    parts = [
        f"{name} {_size(found)}"
        for name, more, less in _ALONE
        for found in claims
        if (found.claim.more, found.claim.less) == (more, less)
    ]
    return f"; beyond its control {_listed(parts)} points of R@1." if parts else "."


def _seen(decided: Sequence[Finding]) -> str:
    oracles = [found for found in decided if found.claim.decided_with == _CONTROLS]
    parts = [f"{found.claim.says} by {_size(found)}" for found in oracles]
    least = [found.decision.visible for found in decided if found.claim.metric == "R@1"]
    sizes = [one for one in least if one is not None]
    range_ = f"effects of {min(sizes):.1f} to {max(sizes):.1f} points would have been seen"
    if not parts:
        return f"**Whether that could be seen**: {range_}; no oracle was run."
    return f"**Whether that could be seen**: told the truth, {_listed(parts)}; {range_}."


def _confidence(tested: Sequence[Tested]) -> str:
    tables = [one.tables["controls"] for one in tested if "controls" in one.tables]
    if not tables:
        return ""
    found = doubts_of(next(iter(tables[0].values())))
    own = [one for one in found if one.name not in _ANY]
    plain = [one for one in found if one.name == "softmax entropy"]
    if not own or not plain:
        return ""
    best = max(own, key=_mean)
    return (
        f"**As a confidence**: a wrong first hit is told from one that fits with an AUROC of "
        f"{min(map(_mean, own)):.2f} to {_mean(best):.2f} by the papers' uncertainties (the best: "
        f"{best.name} of {best.row}) and of {min(map(_mean, plain)):.2f} to "
        f"{max(map(_mean, plain)):.2f} by the entropy of a softmax of the scores, which any system "
        "has."
    )


def _mean(doubt: Doubt) -> float:
    return float(np.nanmean(doubt.auroc))


def _size(found: Finding) -> str:
    gap = found.gap
    return "" if gap is None else f"{gap.value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), parts[-1]])
