"""What the papers claim, and which two rows of our tables tell whether it holds here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Metric = Literal["R@1", "rsum"]
Verdict = Literal["held", "not seen", "reversed", "not run"]
Scores = Mapping[tuple[str, int], Mapping[str, float]]  # of a row and a seed

_LEAST = {"R@1": 0.5, "rsum": 2.0}  # a smaller gap is no finding, however steady it is
_SIX = ("R@1", "R@5", "R@10", "v2t R@1", "v2t R@5", "v2t R@10")


@dataclass(frozen=True, slots=True)
class Claim:
    """A row is better than another.

    Attributes:
        paper: whose claim; "ours" for one of a control that the paper does not have.
        says: in a sentence.
        table: where both rows are.
        more: the row that is better, if the claim holds.
        less: the other row.
        printed: the paper's gap in points, in words; empty for ours.
        metric: R@1 from text to video, or the sum of the six recalls.
        elsewhere: whether the gap is on the other data set.
    """

    paper: str
    says: str
    table: str
    more: str
    less: str
    printed: str = ""
    metric: Metric = "R@1"
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What our runs say.

    Attributes:
        claim: about what.
        verdict: see `judge`.
        gap: mean over the seeds; None if a row is missing.
        deviation: of the gap over the seeds; None for fewer than two.
    """

    claim: Claim
    verdict: Verdict
    gap: float | None = None
    deviation: float | None = None


@dataclass(frozen=True, slots=True)
class Untested:
    """A claim that nothing here can tell about, and why."""

    paper: str
    says: str
    why: str


def judge(claim: Claim, scores: Scores, prefix: str = "") -> Finding:
    """Compare the two rows seed by seed.

    ``held`` if the mean gap is at least half a point of R@1, or two of the sum of six, and more
    than two standard errors over the seeds; ``reversed`` if it is that far below 0; ``not seen``
    between. A gap of one seed alone is judged by its size.

    Args:
        claim: what is claimed.
        scores: of the rows of its table.
        prefix: of the scores of another data set.
    """
    ours = {seed: found for (row, seed), found in scores.items() if row == claim.more}
    theirs = {seed: found for (row, seed), found in scores.items() if row == claim.less}
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return Finding(claim, "not run")
    gaps = [
        _value(ours[seed], claim.metric, prefix) - _value(theirs[seed], claim.metric, prefix)
        for seed in both
    ]
    mean = float(np.mean(gaps))
    deviation = float(np.std(gaps, ddof=1)) if len(gaps) > 1 else None
    error = 0.0 if deviation is None else 2 * deviation / len(gaps) ** 0.5
    verdict: Verdict = "not seen"
    if abs(mean) >= _LEAST[claim.metric] and abs(mean) > error:
        verdict = "held" if mean > 0 else "reversed"
    return Finding(claim, verdict, mean, deviation)


def _value(scores: Mapping[str, float], metric: Metric, prefix: str) -> float:
    names: Sequence[str] = ("R@1",) if metric == "R@1" else _SIX
    return sum(scores[prefix + name] for name in names)


_DUQ = "control: all weights of DUQ, means for samples, no uncertainty"
_UATVR = "control: all weights of UATVR, means for samples, no uncertainty"
_DVTR = "control: contrastive, etas dealt to other negatives"
_FULL = "#6 L_S+L_S^U+L_D+L_D^U (well_posed)"

CLAIMS = (
    Claim(
        "DUQ",
        "evidence on similarities helps",
        "duq-3",
        "#2 L_S+L_S^U (well_posed)",
        "#1 L_S (well_posed)",
        "+0.6",
    ),
    Claim(
        "DUQ",
        "the distances of distributions help",
        "duq-3",
        "#3 L_S+L_D (well_posed)",
        "#1 L_S (well_posed)",
        "+1.3",
    ),
    Claim("DUQ", "all of DUQ helps", "duq-3", _FULL, "#1 L_S (well_posed)", "+4.3"),
    Claim(
        "DUQ",
        "all of DUQ helps, as printed",
        "duq-3",
        "#6 L_S+L_S^U+L_D+L_D^U (paper)",
        "#1 L_S (well_posed)",
        "+4.3",
    ),
    Claim("ours", "it is DUQ's uncertainty that helps, not its weights", "duq-3", _FULL, _DUQ),
    Claim("DUQ", "cross-attention pools better than the mean", "duq-s3", "CA", "Mean", "+5.4"),
    Claim("DUQ", "exponential evidence beats ReLU", "duq-s4", "Exponential", "ReLU", "+0.7"),
    Claim("DUQ", "twelve frames beat four", "duq-s5", "F=12", "F=4", ""),
    Claim(
        "DUQ",
        "its distance beats the 2-Wasserstein distance",
        "duq-s6",
        "DUQ, rule of the paper, K=7",
        "2-Wasserstein K=7",
        "+3.0",
    ),
    Claim(
        "DUQ",
        "seven samples beat four",
        "duq-s6",
        "DUQ, rule of the paper, K=7",
        "DUQ, rule of the paper, K=4",
        "+1.7",
    ),
    Claim(
        "DUQ",
        "it holds up better on another data set than X-Pool",
        "duq-4",
        "DUQ",
        "X-Pool",
        "+7.7, MSR-VTT to DiDeMo",
        elsewhere=True,
    ),
    Claim("UATVR", "token-wise interaction beats CLIP4Clip", "uatvr-1", "TI", "CLIP4Clip", "+1.3"),
    Claim("UATVR", "learned tokens help (DSA)", "uatvr-1", "+ DSA", "TI", "+1.2"),
    Claim(
        "UATVR", "matching distributions helps (DUA)", "uatvr-1", "+ DUA (MIL-NCE)", "+ DSA", "+0.5"
    ),
    Claim("UATVR", "the KL term helps", "uatvr-1", "+ KL (UATVR)", "+ DUA (MIL-NCE)", "+0.7"),
    Claim("UATVR", "all of UATVR helps", "uatvr-1", "+ KL (UATVR)", "TI", "+2.4"),
    Claim(
        "UATVR",
        "MIL-NCE beats the soft contrastive loss",
        "uatvr-1",
        "+ KL (UATVR)",
        "+ KL (soft contrastive)",
        "+0.2",
    ),
    Claim(
        "ours",
        "it is UATVR's uncertainty that helps, not its loss",
        "uatvr-1",
        "+ KL (UATVR)",
        _UATVR,
    ),
    Claim("UATVR", "three learned video tokens help", "uatvr-3", "C_v=3 C_t=0", "none", "+1.2"),
    Claim("UATVR", "seven samples beat one", "uatvr-4", "K=7", "K=1", "+1.2"),
    Claim("UATVR", "twelve frames beat four", "uatvr-5", "F=12", "F=4", "+5.9"),
    Claim("DVTR", "the debiased triplet loss helps HiT", "dvtr-10", "DVTR, triplet", "HiT", "+3.1"),
    Claim(
        "DVTR",
        "the debiased contrastive loss helps HiT",
        "dvtr-10",
        "DVTR, contrastive",
        "HiT",
        "+3.3",
    ),
    Claim(
        "ours",
        "it is eta that helps, not the loss it is in",
        "dvtr-10",
        "DVTR, contrastive",
        "contrastive without eta",
    ),
    Claim("ours", "eta knows which negatives to spare", "dvtr-10", "DVTR, contrastive", _DVTR),
    Claim(
        "DVTR",
        "its eta beats PCME's on HiT",
        "dvtr-9",
        "DVTR + HiT",
        "DVTR + HiT, PCME",
        "+1.7",
    ),
    Claim(
        "DVTR",
        "its eta beats PCME's on CLIP2Video",
        "dvtr-9",
        "DVTR + C2V",
        "DVTR + C2V, PCME",
        "+2.0",
    ),
    Claim(
        "DVTR",
        "seven samples beat two",
        "dvtr-11",
        "K=7, as printed",
        "K=2, as printed",
        "+2.2, MSVD, geometric mean",
    ),
    Claim(
        "DVTR",
        "a margin of 0.5 beats one of 0.1",
        "dvtr-12",
        "margin=0.5",
        "margin=0.1",
        "+3.0, MSVD, rsum",
        "rsum",
    ),
    Claim(
        "DVTR",
        "a temperature of 0.07 beats one of 0.01",
        "dvtr-13",
        "temperature=0.07",
        "temperature=0.01",
        "+34.5, MSVD, rsum",
        "rsum",
    ),
    *(
        Claim("DVTR", f"it helps {base}", "systems", f"DVTR + {base}", base, printed)
        for base, printed in {
            "CLIP4Clip": "any system",
            "X-Pool": "any system",
            "CLIP2Video": "yes",
            "HiT": "yes",
            "CE": "any system",
        }.items()
    ),
    Claim("DUQ", "X-Pool beats CLIP4Clip", "systems", "X-Pool", "CLIP4Clip", "+2.4"),
    Claim("DUQ", "DUQ beats UATVR", "systems", "DUQ", "UATVR", "+3.7"),
    Claim("UATVR", "UATVR beats CLIP2Video", "systems", "UATVR", "CLIP2Video", "+1.9"),
    Claim("UATVR", "UATVR beats X-Pool", "systems", "UATVR", "X-Pool", "+0.6"),
)

UNTESTED = (
    Untested("DUQ", "accuracy on MSRVTT-QA (table 5)", "its files are not here; see qa.md"),
    Untested(
        "DUQ",
        "results on DiDeMo, LSMDC, VATEX, Charades, ActivityNet",
        "not here",
    ),
    Untested("DUQ", "B/16 beats B/32", "no CLIP is here, and nothing was trained end to end"),
    Untested("UATVR", "results on MSVD, DiDeMo, VATEX", "not here"),
    Untested(
        "UATVR", "cost on a P40 (table 2)", "no such GPU; for a CPU see benchmarks/systems.py"
    ),
    Untested("DVTR", "results on MSR-VTT full, MSVD, VATEX, ActivityNet, LSMDC", "not here"),
)
