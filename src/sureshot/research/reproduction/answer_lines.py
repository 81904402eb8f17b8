"""The answer in three sentences: to find videos, to see effects, to know when one is wrong."""

from collections.abc import Iterator, Sequence

import numpy as np

from sureshot.metrics.verdicts import LEAST_SEEDS
from sureshot.research.reproduction.claims import Finding
from sureshot.research.reproduction.doubts import ENTROPY, Doubt
from sureshot.research.reproduction.ranks import PERCENT
from sureshot.research.reproduction.tested import Tested

_CONTROLS = "positive controls"
# The rows that differ in a mechanism alone, in the table of controls.
_ALONE = (
    ("DUQ's uncertainty", "DUQ", "DUQ, means only"),
    ("UATVR's uncertainty", "UATVR", "UATVR, means only"),
    ("DVTR's eta", "DVTR", "DVTR, etas shuffled"),
    ("DVTR on the hardest negative", "hardest negative, DVTR", "hardest negative"),
)
_TOLD = "known"  # in the name of a row that is an oracle


def answer_lines(tested: Sequence[Tested]) -> Iterator[str]:
    """Three sentences, from what has a verdict."""
    decided = [found for one in tested for found in one.decided]
    if not decided:
        yield (
            f"No claim has a verdict yet: none of the tables here has {LEAST_SEEDS} seeds and the "
            "ranks of every query."
        )
        return
    yield f"**Does uncertainty help to find videos?** {_finding(tested)}"
    yield ""
    yield f"**Could we have seen it?** {_seen(decided)}"
    confidence = _confidence(tested)
    if confidence:
        yield ""
        yield f"**Does it know when it is wrong?** {confidence}"


def _finding(tested: Sequence[Tested]) -> str:
    asked = {one.title: found for one in tested if (found := _alone(one))}
    if not asked:
        return f"Nobody knows yet. Not run often enough to say: {_listed([n for n, *_ in _ALONE])}."
    parts = []
    for title, mechanisms in asked.items():
        on = f"on {title}: " if len(asked) > 1 else ""
        sizes = [f"{name} {_sizes(found)}" for name, found in mechanisms.items()]
        waiting = [name for name, *_ in _ALONE if name not in mechanisms]
        open_ones = f" (not run often enough to say: {_listed(waiting)})" if waiting else ""
        parts.append(f"{on}{_listed(sizes)}{open_ones}")
    helps = dict.fromkeys(
        name
        for mechanisms in asked.values()
        for name, found in mechanisms.items()
        if any(one.decision.verdict == "supported" for one in found)
    )
    seen = f"{_listed(list(helps))} helped" if helps else "no gain could be seen"
    return (
        f"Against the same system without the mechanism, {seen}. Of 100 searches, so many more "
        f"(fewer, where negative) put the right video first [95 % interval]: {'; '.join(parts)}."
    )


def _alone(one: Tested) -> dict[str, list[Finding]]:
    """What is decided of each mechanism against its own control."""
    return {
        name: found
        for name, more, less in _ALONE
        if (found := [f for f in one.decided if (f.claim.more, f.claim.less) == (more, less)])
    }


def _sizes(found: Sequence[Finding]) -> str:
    """Gaps in the own video found first, then in first hits that fit."""
    ordered = sorted(found, key=lambda one: one.claim.metric == "fits")
    return ", and any video that fits ".join(_size(one) for one in ordered)


def _seen(decided: Sequence[Finding]) -> str:
    oracles = [found for found in decided if found.claim.decided_with == _CONTROLS]
    works = [found for found in oracles if found.decision.verdict == "supported"]
    sizes = [
        found.decision.visible
        for found in decided
        if found.claim.metric == "R@1" and found.decision.visible is not None
    ]
    range_ = f"a gain of {min(sizes):.1f} to {max(sizes):.1f} of 100 searches would have been seen"
    if not works:
        return f"Not shown: no oracle moved anything; by the numbers alone, {range_}."
    parts = [f"{found.claim.says} ({_size(found)})" for found in works]
    return (
        "Yes. Eta is a guess which of the wrong videos of a batch fit after all; a system that "
        f"is told the truth instead does better: {_listed(parts)}. By the numbers alone, {range_}."
    )


def _confidence(tested: Sequence[Tested]) -> str:
    parts = {one.title: part for one in tested if (part := _confidence_on(one))}
    if not parts:
        return ""
    said = [f"on {title} {part}" if len(parts) > 1 else part for title, part in parts.items()]
    return (
        "Asked which of two first hits is the wrong one, where 0.5 is a guess and 1 always right, "
        f"{'; '.join(said)}."
    )


def _confidence_on(one: Tested) -> str:
    found = [doubt for doubt in one.doubts if _TOLD not in doubt.row]
    own = [doubt for doubt in found if doubt.is_own]
    plain = [doubt for doubt in found if doubt.name == ENTROPY]
    ours = [doubt for doubt in found if doubt.name == PERCENT]
    if not own or not plain:
        return ""
    best = max(own, key=_mean)
    said = f"; Sureshot's percentage {_range(ours)}" if ours else ""
    return (
        f"the papers' uncertainties reach {_range(own)} (the best: {best.name} of {best.row}) and "
        f"the entropy of a softmax of the scores, which any system has, {_range(plain)}{said} "
        f"({_seeds(found)} seeds)"
    )


def _range(doubts: Sequence[Doubt]) -> str:
    means = [_mean(one) for one in doubts]
    low, high = f"{min(means):.2f}", f"{max(means):.2f}"
    return low if low == high else f"{low} to {high}"


def _seeds(doubts: Sequence[Doubt]) -> str:
    counts = [len(one.auroc) for one in doubts]
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _mean(doubt: Doubt) -> float:
    return float(np.nanmean(doubt.auroc))


def _size(found: Finding) -> str:
    gap = found.gap
    if gap is None:
        return ""
    value = round(gap.value, 1) + 0.0  # no -0.0
    return f"{value:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), parts[-1]])
