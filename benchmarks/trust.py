"""How far the confidence of a model can be trusted, on real data: what results/trust holds.

    python -m benchmarks.trust [--model bundled] [--cache DIR] [--to results/trust] [--splits 20]

Calibrated on the MSR-VTT validation videos, tested on the 476 test videos of the frame subset, with
all twenty captions of each and with the one of 1k-A; then on many splits of the test videos, on
galleries five times as large as the calibrated one, and with queries whose videos are not there:
captions of Flickr8k photos (far), and captions whose own video was taken away (near). "Right" is
the annotated video alone, so every number is a lower bound of what a person would call right.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from benchmarks import data
from sureshot.datasets import Split, load_split
from sureshot.features import SplitFeatures, caption_features, extract
from sureshot.metrics.calibration import brier, ece, ece_floor
from sureshot.metrics.detection import auroc, fpr_at_tpr
from sureshot.scorer import Scorer
from sureshot.trust.calibration import Calibration
from sureshot.trust.fitting import fit
from sureshot.trust.signals import top_is_relevant

Scores = Float[np.ndarray, "queries videos"]
Owner = Integer[np.ndarray, " queries"]
_COVERAGES = (0.8, 0.9, 0.95)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--to", type=Path, default=Path("results/trust"))
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    scorer = Scorer.load(options.model)
    parts = _data(scorer, options.cache)
    found = measured(*parts, splits=options.splits)
    options.to.mkdir(parents=True, exist_ok=True)
    name = Path(options.model).name
    text = json.dumps({"model": options.model, **found}, indent=1)
    (options.to / f"{name}.json").write_text(text + "\n", "utf-8")
    for block, rows in found.items():
        print(block)
        for key, value in rows.items():
            print(f"  {key:52}{_shown(value)}")


def measured(
    val: tuple[Scores, Owner],
    every: tuple[Scores, Owner],
    single: tuple[Scores, Owner],
    far: Scores,
    *,
    splits: int,
) -> dict[str, dict[str, Any]]:
    """All blocks of numbers, by their titles."""
    card = _fitted(*val)
    return {
        "validation to test, all captions": _judged(card, *every),
        "validation to test, the one caption of 1k-A": _judged(card, *single),
        "queries whose video is not there (calibrated on validation)": _absent(card, *every, far),
        f"mean of {splits} splits of the test videos in halves": _split(*every, splits),
        "five times the calibrated gallery": _grown(*every),
    }


def _judged(card: Calibration, scores: Scores, owner: Owner) -> dict[str, Any]:
    relevant = _relevant(scores, owner)
    right = top_is_relevant(scores, relevant)
    probability = card.p_top1(scores)
    base = float(right.mean())
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "queries": len(owner),
        "right first (R@1)": base,
        "AUROC of failure, p_top1": auroc(probability, right),
        "AUROC of failure, highest similarity": auroc(scores.max(1), right),
        "Brier over that of the base rate": brier(probability, right) / (base * (1 - base)),
        "ECE less its floor": ece(probability, right) - ece_floor(probability, rng),
    }
    for coverage in _COVERAGES:
        members = card.members(scores, coverage, "annotated")
        if members is not None:
            inside = members[np.arange(len(owner)), owner]
            rows[f"coverage at {coverage:.0%}"] = float(inside.mean())
            rows[f"videos in the set at {coverage:.0%}, mean"] = float(members.sum(1).mean())
    for risk in (0.2, 0.5):
        certificate = card.certificate(risk)
        answered = probability >= (np.inf if certificate is None else certificate.threshold)
        rows[f"answered at a certified risk of {risk:.0%}"] = float(answered.mean())
        if answered.any():
            rows[f"wrong among those at {risk:.0%}"] = float((~right[answered]).mean())
    return rows


def _absent(card: Calibration, scores: Scores, owner: Owner, far: Scores) -> dict[str, Any]:
    """Queries whose video is there against queries whose video is not."""
    near = scores.copy()
    near[np.arange(len(owner)), owner] = -np.inf
    present = card.p_inside(scores)
    rows: dict[str, Any] = {"called absent though there, at 10 %": float((present < 0.1).mean())}
    for name, others in (("near", near), ("far (Flickr8k captions)", far)):
        gone = card.p_inside(others)
        there = np.concatenate([np.ones(len(present), int), np.zeros(len(gone), int)])
        both = np.concatenate([present, gone])
        rows[f"AUROC, {name}"] = auroc(both, there)
        rows[f"FPR at 95 % TPR, {name}"] = fpr_at_tpr(both, there)
        rows[f"called absent at 10 %, {name}"] = float((gone < 0.1).mean())
    return rows


def _split(scores: Scores, owner: Owner, splits: int) -> dict[str, Any]:
    """Half of the videos to calibrate on, the other half's queries to test; gallery of all."""
    rows: dict[str, list[float]] = {}
    for seed in range(splits):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(scores.shape[1])[: scores.shape[1] // 2]
        first = np.isin(owner, chosen)
        card = _fitted(scores[first], owner[first], seed)
        for name, value in _judged(card, scores[~first], owner[~first]).items():
            rows.setdefault(name, []).append(value)
        low = float((card.p_inside(scores[~first]) < 0.1).mean())
        rows.setdefault("called absent though there, at 10 %", []).append(low)
    found: dict[str, Any] = {name: float(np.mean(values)) for name, values in rows.items()}
    for coverage in _COVERAGES:
        values = np.array(rows[f"coverage at {coverage:.0%}"])
        found[f"deviation of the coverage at {coverage:.0%} over splits"] = float(values.std())
    return found


def _grown(scores: Scores, owner: Owner) -> dict[str, Any]:
    """Calibrated in galleries of up to a fifth of the videos, tested in all of them."""
    coverages, eces = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        order = rng.permutation(scores.shape[1])
        small, others = order[: scores.shape[1] // 5], order[scores.shape[1] // 5 :]
        place = np.full(scores.shape[1], -1)
        place[small] = np.arange(len(small))
        mine = np.isin(owner, small)
        card = _fitted(scores[np.ix_(np.flatnonzero(mine), small)], place[owner[mine]], seed)
        rest = np.isin(owner, others)
        members = card.members(scores[rest], 0.9, "annotated")
        assert members is not None
        coverages.append(members[np.arange(rest.sum()), owner[rest]].mean())
        right = top_is_relevant(scores[rest], _relevant(scores[rest], owner[rest]))
        probability = card.p_top1(scores[rest])
        eces.append(ece(probability, right) - ece_floor(probability, rng))
    return {
        "coverage at 90%, mean of 10 splits": float(np.mean(coverages)),
        "coverage at 90%, deviation": float(np.std(coverages)),
        "ECE less its floor": float(np.mean(eces)),
    }


def _fitted(scores: Scores, owner: Owner, seed: int = 0) -> Calibration:
    return fit(scores, _relevant(scores, owner), owner, sought=owner, seed=seed)


def _relevant(scores: Scores, owner: Owner) -> Bool[np.ndarray, "queries videos"]:
    relevant = np.zeros(scores.shape, bool)
    relevant[np.arange(len(owner)), owner] = True
    return relevant


def _data(
    scorer: Scorer, cache: Path | None
) -> tuple[tuple[Scores, Owner], tuple[Scores, Owner], tuple[Scores, Owner], Scores]:
    root, label = data.folder("msrvtt"), "1k-A frame subset"
    ids = {name: root / f"split_{name}.txt" for name in ("val", "test")}
    val = _scored(scorer, load_split("msrvtt", "val", root, ids=ids["val"], label=label), cache)
    whole = load_split("msrvtt", "test", root, protocol="full", ids=ids["test"], label=label)
    features = _features(scorer, whole, cache)
    every = scorer.similarity(features).astype(np.float64), whole.owner()
    single = _scored(scorer, load_split("msrvtt", "test", root, ids=ids["test"]), cache)
    photos = load_split("flickr8k", "val", data.folder("flickr8k"))
    some = photos.part({item.id for item in photos.items[:200]})
    captions = caption_features(some, scorer.encoder, cache=cache)
    return val, every, single, scorer.similarity(features, captions).astype(np.float64)


def _scored(scorer: Scorer, split: Split, cache: Path | None) -> tuple[Scores, Owner]:
    features = _features(scorer, split, cache)
    return scorer.similarity(features).astype(np.float64), features.split.owner()


def _features(scorer: Scorer, split: Split, cache: Path | None) -> SplitFeatures:
    return extract(split, scorer.encoder, frames=scorer.frames, cache=cache)


def _shown(value: float | Sequence[float]) -> str:
    return f"{value:8.3f}" if isinstance(value, float) else f"{value:8}"


if __name__ == "__main__":
    main()
