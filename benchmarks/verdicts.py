"""Gaps between two systems, verdicts on what papers claim, and how often a verdict is wrong.

``python -m benchmarks.verdicts [--families 2000]`` prints how often a family of claims has a wrong
verdict where the true gaps are known. Claims of a family share two baselines, all rows find the
same videos hard, and seeds go up and down together. At most 5 of 100 families may be wrong.
"""

import argparse
import csv
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Integer
from scipy.stats import norm, t

from sureshot.errors import SureshotError
from sureshot.research.reproduction.runs import AMBIGUITY, RunRanks, TableRanks

KS = (1, 5, 10)
# From recalls in percent, those of texts and then those of videos at each of `KS`, to one number.
Measure = Callable[[Float[np.ndarray, "*runs 6"]], Float[np.ndarray, "*runs"]]


# fits: share of captions whose first hit fits, by the ground truth of synthetic data
ClaimMetric = Literal["R@1", "rsum", "geometric mean", "fits"]
Mode = Literal["well_posed", "paper"]
_PRINTED_GAP = re.compile(r"\+(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Claim:
    """A row is better than another.

    Attributes:
        paper: whose claim; "ours" for one of a control that the paper does not have.
        says: the claim in a sentence.
        table: where both rows are; empty where the claim cannot be tested.
        more: the row that is better, if the claim holds; empty where the well-posed mode cannot
            tell.
        less: the other row.
        paper_more, paper_less: these rows in the papers' mode, where their names differ; ``-``
            where they state another mode and have none.
        printed: the paper's gap in points, in words; empty for ours.
        printed_rsum: the paper's gap in the sum of the recalls of both directions, if it prints it.
        metric: what the gap is of.
        elsewhere: whether the gap is on the other data set.
        untested: why nothing here can tell; empty where two rows do.
        family: claims that are decided together; empty is those of the paper.
        mapped: day on which these rows were chosen to test it.
        why: why these.
    """

    paper: str
    says: str
    table: str = ""
    more: str = ""
    less: str = ""
    paper_more: str = ""
    paper_less: str = ""
    printed: str = ""
    printed_rsum: str = ""
    metric: ClaimMetric = "R@1"
    elsewhere: bool = False
    untested: str = ""
    family: str = ""
    mapped: str = ""
    why: str = ""

    @property
    def decided_with(self) -> str:
        """The claims that it is decided with."""
        return self.family or self.paper

    def rows(self, mode: Mode) -> tuple[str, str]:
        """The better row and the other one in a mode; empty names where it cannot tell."""
        if mode == "paper" and self.paper_more == "-":
            return "", ""
        if mode == "paper" and self.paper_more:
            return self.paper_more, self.paper_less
        return self.more, self.less

    def printed_gap(self, measure: ClaimMetric | None = None) -> float | None:
        """The paper's gap in points of a measure, its own by default; None where it prints none.

        Examples:
            >>> claim = Claim("DVTR", "more is better", printed="+2.2, MSVD", printed_rsum="7.5")
            >>> claim.printed_gap(), claim.printed_gap("rsum"), claim.printed_gap("fits")
            (2.2, 7.5, None)
        """
        if measure not in (None, self.metric):
            return float(self.printed_rsum) if measure == "rsum" and self.printed_rsum else None
        found = _PRINTED_GAP.match(self.printed)
        return None if found is None else float(found[1])


@functools.cache
def load_claims() -> tuple[Claim, ...]:
    """All claims, in the order of the file."""
    text = files("sureshot.metrics").joinpath("claims.csv").read_text("utf-8")
    claims = []
    for line in csv.DictReader(text.splitlines()):
        values: dict[str, Any] = {name: value for name, value in line.items() if value}
        values["elsewhere"] = line["elsewhere"] == "yes"
        claims.append(Claim(**values))
    return tuple(claims)


@dataclass(frozen=True, slots=True)
class SeedRanks:
    """The ranks of one system, trained with several seeds.

    Attributes:
        texts: rank of the own video of each caption.
        owner: number of the video of each caption.
        videos: rank of the own captions of each video that has some, in the order of the numbers.
    """

    seeds: tuple[int, ...]
    texts: Float[np.ndarray, "seeds captions"]
    owner: Integer[np.ndarray, " captions"]
    videos: Float[np.ndarray, "seeds videos"]


@dataclass(frozen=True, slots=True)
class Gap:
    """How much better one system is than another: the mean over seeds and its 95 % interval.

    Attributes:
        error: standard error, of seeds and videos.
        freedom: degrees of freedom of the error.
        seeds, videos: how many both were trained with, and tested on.
    """

    value: float
    error: float
    freedom: float
    low: float
    high: float
    seeds: int
    videos: int

    def p_zero(self) -> float:
        """Chance of a gap at least this far from 0, either way, if there were none."""
        return float(2 * t.cdf(-abs(self.value) / self.error, self.freedom))

    def p_at_least(self, true: float) -> float:
        """Chance of a gap this small or smaller if it were truly so large."""
        return float(t.cdf((self.value - true) / self.error, self.freedom))

    def visible(self, level: float = 0.05) -> float:
        """Smallest true gap distinguished from 0 with 80 % power, at this level, two-sided."""
        ends = t.ppf([1 - level / 2, 0.8], self.freedom)
        return float(ends.sum() * self.error)


def paired_gap(
    more: SeedRanks,
    less: SeedRanks,
    measure: Measure,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
) -> Gap:
    r"""The gap of two systems in a measure, over the seeds that both have.

    The gap has one value :math:`g_s` per seed. Other seeds would give another one, and so would
    other videos:

    .. math:: \mathrm{Var}(\bar g) = \frac{\mathrm{Var}_s(g_s)}{S}
        + \mathrm{mean}_{s \ne s'} \mathrm{Cov}_v(g_s, g_{s'})

    The first term is what seeds add, with what belongs to one seed and one video. The second is
    what the choice of videos adds: videos are resampled with all their captions, for all seeds
    alike. The degrees of freedom are Satterthwaite's for the two terms, S - 1 and V - 1.

    Args:
        more: ranks of the system that is claimed to be better.
        measure: what is compared, such as `recall_at_one`.
    """
    seeds = sorted(set(more.seeds) & set(less.seeds))
    if len(seeds) < 2:
        raise SureshotError(
            f"A gap needs two seeds that both systems were trained with; there is {len(seeds)}."
        )
    if not np.array_equal(more.owner, less.owner):
        raise SureshotError("The two systems were asked for other videos; run both again.")
    count = len(np.unique(more.owner))
    weights = rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)
    weights = np.concatenate([np.ones((1, count)), weights])  # first as they are
    gaps = _measured(more, seeds, weights, measure) - _measured(less, seeds, weights, measure)
    each, drawn = gaps[0], gaps[1:]
    of_seeds = float(each.var(ddof=1)) / len(seeds)
    cov = np.atleast_2d(np.cov(drawn.T))
    shared = (cov.sum() - np.trace(cov)) / (len(seeds) * (len(seeds) - 1))
    of_videos = max(float(shared), 0.0) * count / (count - 1)
    variance = max(of_seeds + of_videos, 1e-12)
    spread = of_seeds**2 / (len(seeds) - 1) + of_videos**2 / (count - 1)
    freedom = variance**2 / max(spread, 1e-24)
    value, error = float(each.mean()), variance**0.5
    half = -float(t.ppf(0.025, freedom)) * error
    return Gap(
        value=value,
        error=error,
        freedom=freedom,
        low=value - half,
        high=value + half,
        seeds=len(seeds),
        videos=count,
    )


def recall_at_one(recalls: Float[np.ndarray, "*runs 6"]) -> Float[np.ndarray, "*runs"]:
    """R@1 from text to video."""
    return recalls[..., 0]


def sum_of_recalls(recalls: Float[np.ndarray, "*runs 6"]) -> Float[np.ndarray, "*runs"]:
    """R@1, 5 and 10 of both directions together."""
    return recalls.sum(-1)


def mean_of_recalls(recalls: Float[np.ndarray, "*runs 6"]) -> Float[np.ndarray, "*runs"]:
    """Geometric mean of R@1, 5 and 10 from text to video."""
    return np.cbrt(recalls[..., :3].prod(-1))


def _measured(
    ranks: SeedRanks, seeds: list[int], weights: Float[np.ndarray, "draws videos"], measure: Measure
) -> Float[np.ndarray, "draws seeds"]:
    """The measure of each seed for videos that count so much each."""
    rows = [ranks.seeds.index(seed) for seed in seeds]
    _, video = np.unique(ranks.owner, return_inverse=True)
    captions = np.bincount(video).astype(np.float64)
    recalls = []
    for k in KS:
        hits = np.stack([np.bincount(video, row <= k, len(captions)) for row in ranks.texts[rows]])
        recalls.append((weights @ hits.T) / (weights @ captions)[:, None])
    recalls += [(weights @ (ranks.videos[rows] <= k).T) / len(captions) for k in KS]
    return measure(100 * np.stack(recalls, axis=-1))


Verdict = Literal[
    "supported",
    "contradicted",
    "ruled out",
    "too noisy to tell",
    "not testable on these data",
    "not run",
]
LEAST_SEEDS = 10  # fewer get no verdict
LEVEL = 0.05  # share of families in which any verdict may be wrong


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim and what was measured of it.

    Attributes:
        printed: gap that the paper prints, above 0; None where it prints none.
        testable: whether these data could tell at all.
    """

    gap: Gap | None = None
    printed: float | None = None
    testable: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a claim.

    Attributes:
        visible: smallest true gap distinguished from 0 with 80 % power, within its
            family; None without a verdict from data.
        smaller: whether a gap that is there is significantly smaller than printed.
    """

    verdict: Verdict
    visible: float | None = None
    smaller: bool = False


def decide(family: Sequence[Comparison]) -> list[Decision]:
    """The verdicts on all claims of a paper, decided together.

    A claim says that one system is better than another, and by how much. Two hypotheses can be
    refused: that there is no gap, and that the gap is as large as printed. A verdict is *supported*
    or *contradicted* where the first is refused, by the sign of the gap; *ruled out* where only the
    second is; *too noisy to tell* where neither is. The smallest p-value is held against `LEVEL`
    over the number of claims, the next against `LEVEL` over the claims still open, and so on
    (Holm). A claim has two p-values and counts once: a gap as large as printed is not 0, so at
    most one of its hypotheses holds (Shaffer). What cannot be tested or was not run takes no part.

    References:
        Holm, A simple sequentially rejective multiple test procedure, 1979.
        Shaffer, Modified sequentially rejective multiple test procedures, 1986.
    """
    open_ones: dict[int, dict[str, float]] = {}
    for place, claim in enumerate(family):
        if claim.testable and claim.gap is not None and claim.gap.seeds >= LEAST_SEEDS:
            open_ones[place] = {"zero": claim.gap.p_zero()}
            if claim.printed is not None:
                open_ones[place]["printed"] = claim.gap.p_at_least(claim.printed)
    many = len(open_ones)
    refused: dict[int, set[str]] = {place: set() for place in open_ones}
    while open_ones:
        p, place, what = min(
            (p, place, what) for place, ps in open_ones.items() for what, p in ps.items()
        )
        if p > LEVEL / len(open_ones):
            break
        refused[place].add(what)
        del open_ones[place][what]
        if not open_ones[place]:
            del open_ones[place]
    return [
        _decision(claim, refused.get(place), LEVEL / max(many, 1))
        for place, claim in enumerate(family)
    ]


def _decision(claim: Comparison, refused: set[str] | None, level: float) -> Decision:
    if not claim.testable:
        return Decision("not testable on these data")
    if refused is None or claim.gap is None:
        return Decision("not run")
    visible = claim.gap.visible(level)
    if "zero" in refused:
        verdict: Verdict = "supported" if claim.gap.value > 0 else "contradicted"
        return Decision(verdict, visible, claim.gap.value > 0 and "printed" in refused)
    return Decision("ruled out" if "printed" in refused else "too noisy to tell", visible)


# --- ranks of a table -----------------------------------------------------------------------------


def ranks_of_row(ranks: TableRanks, row: str, *, fits: bool = False) -> SeedRanks | None:
    """The ranks of a row over its seeds; None where there is no run of it.

    If ``fits``, the ranks are those of the best video that fits a caption and the best caption
    that fits a video. Of runs that did not keep them, a caption ranks first where its first hit
    fits and second elsewhere, and no video ranks at all.
    """
    chosen = {seed: run for (name, seed), run in ranks.items() if name == row}
    if not chosen:
        return None
    runs = list(chosen.values())
    pairs = [_fitting(one) if fits else (one.texts, one.videos) for one in runs]
    return SeedRanks(
        seeds=tuple(chosen),
        texts=np.stack([texts for texts, _ in pairs]),
        owner=runs[0].owner,
        videos=np.stack([videos for _, videos in pairs]),
    )


def knows_fits(ranks: TableRanks) -> bool:
    """Whether it is known which videos fit a caption, as in a synthetic dataset."""
    return any(AMBIGUITY in one.doubts for one in ranks.values())


def _fitting(
    run: RunRanks,
) -> tuple[Float[np.ndarray, " captions"], Float[np.ndarray, " videos"]]:
    """Ranks of what fits, in both directions."""
    if run.fitting_texts is None or run.fitting_videos is None:
        return np.where(run.right, 1.0, 2.0), np.full(len(run.videos), np.nan)
    return run.fitting_texts, run.fitting_videos


def first_measure(claim: Claim) -> ClaimMetric:
    """What is judged of a claim besides the sum of recalls."""
    return "R@1" if claim.metric == "rsum" else claim.metric


# --- families whose true gaps are known -----------------------------------------------------------

_CAPTIONS = 2  # of a video


def wrong_families(
    families: int,
    *,
    seed: int,
    claims: int = 12,
    printed: float = 0.0,
    seeds: int = 10,
    videos: int = 120,
) -> int:
    """How many families have a wrong verdict.

    All claims of a family hold a row of their own against one of two baselines, which they share;
    all rows find the same videos hard, and seeds go up and down with each other's.

    Args:
        families: number of families drawn.
        seed: number that they are drawn from.
        claims: claims of a family.
        printed: gap that is claimed and, if above 0, true; 0 is no gap, and 2 points claimed.
        seeds: seeds of each row.
        videos: videos of the test set.
    """
    draw = np.random.default_rng(seed)
    wrong = 0
    for _ in range(families):
        rows = _rows(draw, claims, printed, seeds, videos)
        family = []
        for number, row in enumerate(rows[2:]):
            gap = paired_gap(row, rows[number % 2], recall_at_one, draw)
            family.append(Comparison(gap, printed or 2.0))
        bad = {"ruled out", "contradicted"} if printed else {"supported", "contradicted"}
        wrong += any(one.verdict in bad or (printed > 0 and one.smaller) for one in decide(family))
    return wrong


def _rows(
    draw: np.random.Generator, claims: int, gap: float, seeds: int, videos: int
) -> list[SeedRanks]:
    """Two baselines and the rows of the claims, by chances to find a video first."""
    owner = np.repeat(np.arange(videos), _CAPTIONS)
    easy = draw.normal(-0.8, 1.0, len(owner))
    of_seeds = draw.normal(0, 0.05, (seeds, 1))
    found = []
    for number in range(2 + claims):
        taste = draw.normal(0, 0.25, videos)[owner]  # which videos a system happens to like
        noise = of_seeds + draw.normal(0, 0.05, (seeds, 1))
        noise = noise + draw.normal(0, 0.5, (seeds, len(owner)))
        score = easy + taste + noise
        shift = _shift(gap) if number >= 2 else 0.0
        ranks = np.where(score + shift > 0, 1.0, 2.0)
        found.append(
            SeedRanks(
                seeds=tuple(range(seeds)), texts=ranks, owner=owner, videos=ranks[:, ::_CAPTIONS]
            )
        )
    return found


def _shift(points: float) -> float:
    """What lifts the share above 0 by so many points, for the sum of all noises."""
    whole = (1 + 0.25**2 + 2 * 0.05**2 + 0.5**2) ** 0.5
    share = norm.sf(0.8 / whole)
    return float(0.8 + whole * norm.ppf(share + points / 100))


_CASES = (
    ("no gap, 10 seeds, 12 claims", {"printed": 0.0, "seeds": 10, "claims": 12}),
    ("no gap, 15 seeds, 20 claims", {"printed": 0.0, "seeds": 15, "claims": 20}),
    ("gap as printed (3 points), 10 seeds", {"printed": 3.0, "seeds": 10, "claims": 12}),
)


def main() -> None:
    """Draw the families and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=2000)
    families = parser.parse_args().families
    for name, settings in _CASES:
        wrong = wrong_families(families, seed=7, **settings)  # type: ignore[arg-type]
        print(f"{name}: {wrong} of {families} families wrong, {100 * wrong / families:.1f} %")


if __name__ == "__main__":
    main()
