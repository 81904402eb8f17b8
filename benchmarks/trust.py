"""How far the confidence of a model can be trusted, on real data: what results/trust holds.

    python -m benchmarks.trust [--model bundled] [--cache DIR] [--to results/trust] [--splits 20]

Calibrated on the MSR-VTT validation videos, tested on the 476 test videos of the frame subset, with
all twenty captions of each and with the one of 1k-A; then on many splits of the test videos, on
galleries five times as large as the calibrated one, and with queries whose videos are not there:
captions of Flickr8k photos (far), and captions whose own video and all others that a caption says
to be relevant were taken away (near), from the whole gallery and from their category. Then Flickr8k
as the gallery. "Right" is the annotated video alone, but for the block that says otherwise, so the
numbers are lower bounds of what a person would call right. Scores are those a search ranks by; one
block has them without the hub correction.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer

from benchmarks import data
from benchmarks.relevance import by_captions
from sureshot.datasets import Split, load_split
from sureshot.metrics.confidence import auroc, brier, ece, ece_floor, fpr_at_tpr
from sureshot.models.load import Scorer, load
from sureshot.models.similarity import Similarity
from sureshot.research.features import SplitFeatures, caption_features, extract
from sureshot.research.scores import background, ranking, similarity
from sureshot.trust.card import Calibration
from sureshot.trust.fit import fit_card, labelled
from sureshot.trust.signals import QueryContext, top_is_relevant

Scores = Float[np.ndarray, "queries videos"]
Relevant = Bool[np.ndarray, "queries videos"]
_COVERAGES = (0.8, 0.9, 0.95)
_FAR = 200  # videos or photos of the other data set whose captions are asked
_GROWN = 10  # splits
_DRAWS = 20  # of half the categories


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Queries before a gallery.

    Attributes:
        scores: that a search ranks by.
        owner: column of the video that each query was written for.
        relevant: what counts as right.
        background: what each query scores with the videos of the model's bank, if it has some.
    """

    scores: Scores
    owner: Integer[np.ndarray, " queries"]
    relevant: Relevant
    background: Float[np.ndarray, " queries"] | None

    @classmethod
    def annotated(
        cls,
        scores: Scores,
        owner: Integer[np.ndarray, " queries"],
        background: Float[np.ndarray, " queries"] | None,
    ) -> "Asked":
        """Only the video that a query was written for is right."""
        return cls(scores, owner, owner[:, None] == np.arange(scores.shape[1]), background)

    def of(self, rows: np.ndarray) -> "Asked":
        """Some of the queries."""
        apart = None if self.background is None else self.background[rows]
        return Asked(self.scores[rows], self.owner[rows], self.relevant[rows], apart)

    def card(self, seed: int = 0) -> Calibration:
        """Calibrated on them."""
        asked = labelled(self.scores, self.relevant, self.owner, self.about)
        return fit_card([asked], seed=seed)

    @property
    def about(self) -> QueryContext:
        """What else is known of them."""
        return QueryContext(background=self.background)

    def present(self, card: Calibration) -> Float[np.ndarray, " queries"]:
        """The p-value of each that a right video is there."""
        return card.p_inside(self.scores, self.about)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--to", type=Path, default=Path("results/trust"))
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    scorer = load(options.model)
    found = measured(scorer, options.cache, options.splits)
    options.to.mkdir(parents=True, exist_ok=True)
    name = Path(options.model).name
    about = {"model": options.model, "correction": scorer.bank and scorer.bank.title}
    (options.to / f"{name}.json").write_text(
        json.dumps({**about, **found}, indent=1) + "\n", "utf-8"
    )
    for block, rows in found.items():
        print(block)
        for key, value in rows.items():
            print(f"  {key:56}{_shown(value)}")


def measured(scorer: Scorer, cache: Path | None, splits: int) -> dict[str, dict[str, Any]]:
    """All blocks of numbers, by their titles."""

    def seen(split: Split) -> SplitFeatures:
        return extract(split, scorer.encoder, frames=scorer.frames, cache=cache)

    def asked(features: SplitFeatures, how: Similarity = scorer.ranking) -> Asked:
        scores = similarity(how, features).astype(np.float64)
        return Asked.annotated(scores, features.split.owner(), background(scorer, features))

    def others(features: SplitFeatures, split: Split) -> Asked:
        some = split.part({item.id for item in split.items[:_FAR]})
        texts = caption_features(some, scorer.encoder, cache=cache)
        scores = ranking(scorer, features, texts).astype(np.float64)
        none = np.zeros(scores.shape, bool)
        return Asked(scores, some.owner(), none, background(scorer, texts))

    val, test, single, photos = (
        seen(split) for split in (_val(), _test("full"), _test("1k-A"), _photos("val"))
    )
    known, every = asked(val), asked(test)
    card = known.card()
    found = {
        "validation to test, all captions": _judged(card, every),
        "... the one caption of 1k-A": _judged(card, asked(single)),
        "... without the hub correction": _judged(
            asked(val, scorer.raw).card(), asked(test, scorer.raw)
        ),
        "... right is what a caption says to be relevant": _judged(
            _by_captions(known, val.split).card(), _by_captions(every, test.split)
        ),
        "queries whose video is not there (calibrated on validation)": _absent(
            card, every, test.split, {"far (Flickr8k captions)": others(test, _photos("test"))}
        ),
        "... without the videos of the bank": _absent(
            without(known).card(),
            without(every),
            test.split,
            {"far (Flickr8k captions)": without(others(test, _photos("test")))},
        ),
        f"mean of {splits} splits of the test videos in halves": _split(every, splits),
        "five times the calibrated gallery": _grown(every),
    }
    portraits = asked(seen(_photos("test")))
    own = asked(photos).card()
    found |= {
        "Flickr8k, validation to test": _judged(own, portraits),
        "Flickr8k, the card of MSR-VTT validation": _judged(card, portraits),
        "Flickr8k, ... without the videos of the bank": _absent(
            without(asked(photos)).card(),
            without(portraits),
            None,
            {"far (MSR-VTT captions)": without(others(seen(_photos("test")), _test("full")))},
        ),
        "Flickr8k, queries whose photo is not there": _absent(
            own,
            portraits,
            None,
            {"far (MSR-VTT captions)": others(seen(_photos("test")), _test("full"))},
        ),
    }
    return found


def _judged(card: Calibration, asked: Asked) -> dict[str, Any]:
    right = top_is_relevant(asked.scores, asked.relevant)
    probability = card.p_top1(asked.scores, asked.about)
    base = float(right.mean())
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "queries": len(right),
        "videos": asked.scores.shape[1],
        "right first (R@1)": base,
        "AUROC of failure, p_top1": auroc(probability, right),
        "AUROC of failure, highest similarity": auroc(asked.scores.max(1), right),
        "Brier over that of the base rate": brier(probability, right) / (base * (1 - base)),
        "ECE less its floor": ece(probability, right) - ece_floor(probability, rng),
    }
    for coverage in _COVERAGES:
        members = card.members(asked.scores, coverage, asked.about)
        if members is not None:
            held = (members & asked.relevant).any(1)
            rows[f"coverage at {coverage:.0%}"] = float(held.mean())
            rows[f"videos in the set at {coverage:.0%}"] = float(members.sum(1).mean())
    return rows


def _absent(
    card: Calibration, asked: Asked, split: Split | None, far: dict[str, Asked]
) -> dict[str, Any]:
    """Queries whose video is there against queries whose video is not."""
    relevant = asked.relevant if split is None else _by_captions(asked, split).relevant
    present = asked.present(card)
    rows: dict[str, Any] = {"called absent though there, at 10 %": float((present < 0.1).mean())}
    pairs = {
        "near": (present, without(asked, relevant).present(card)),
        **{name: (present, others.present(card)) for name, others in far.items()},
    }
    if split is not None:
        category = _categories(split)
        inside = category[asked.owner][:, None] == category
        kept = without(asked, ~inside).of(np.flatnonzero((inside & ~relevant).any(1)))
        lost = without(asked, ~inside | relevant).of(np.flatnonzero((inside & ~relevant).any(1)))
        pairs["near, the gallery its category"] = kept.present(card), lost.present(card)
        rows["AUROC, of other categories than the gallery"] = _other_categories(
            card, asked, category
        )
    for name, (there, gone) in pairs.items():
        truth = np.concatenate([np.ones(len(there), int), np.zeros(len(gone), int)])
        both = np.concatenate([there, gone])
        rows[f"AUROC, {name}"] = auroc(both, truth)
        rows[f"FPR at 95 % TPR, {name}"] = fpr_at_tpr(both, truth)
        rows[f"called absent at 10 %, {name}"] = float((gone < 0.1).mean())
    return rows


def _other_categories(
    card: Calibration, asked: Asked, category: Integer[np.ndarray, " videos"]
) -> float:
    """Half of the categories in the gallery, queries about them and about the others."""
    found = []
    for seed in range(_DRAWS):
        drawn = np.random.default_rng(seed).permutation(np.unique(category))
        inside = np.isin(category, drawn[: len(drawn) // 2])
        smaller = without(asked, np.broadcast_to(~inside, asked.scores.shape))
        found.append(auroc(smaller.present(card), inside[asked.owner]))
    return float(np.mean(found))


def _split(asked: Asked, splits: int) -> dict[str, Any]:
    """Half of the videos to calibrate on, the other half's queries to test; gallery of all."""
    rows: dict[str, list[float]] = {}
    videos = asked.scores.shape[1]
    for seed in range(splits):
        chosen = np.random.default_rng(seed).permutation(videos)[: videos // 2]
        first = np.isin(asked.owner, chosen)
        card, rest = asked.of(first).card(seed), asked.of(~first)
        for name, value in _judged(card, rest).items():
            rows.setdefault(name, []).append(value)
        low = float((rest.present(card) < 0.1).mean())
        rows.setdefault("called absent though there, at 10 %", []).append(low)
    found: dict[str, Any] = {name: float(np.mean(values)) for name, values in rows.items()}
    for coverage in _COVERAGES:
        values = np.array(rows[f"coverage at {coverage:.0%}"])
        found[f"deviation of the coverage at {coverage:.0%} over splits"] = float(values.std())
    return found


def _grown(asked: Asked) -> dict[str, Any]:
    """Calibrated in galleries of up to a fifth of the videos, tested in all of them."""
    coverages, eces = [], []
    videos = asked.scores.shape[1]
    for seed in range(_GROWN):
        rng = np.random.default_rng(seed)
        small = rng.permutation(videos)[: videos // 5]
        place = np.full(videos, -1)
        place[small] = np.arange(len(small))
        mine = np.flatnonzero(place[asked.owner] >= 0)
        own = asked.of(mine)
        few = Asked.annotated(own.scores[:, small], place[own.owner], own.background)
        card, rest = few.card(seed), asked.of(place[asked.owner] < 0)
        members = card.members(rest.scores, 0.9, rest.about)
        assert members is not None
        coverages.append(members[np.arange(len(rest.owner)), rest.owner].mean())
        right = top_is_relevant(rest.scores, rest.relevant)
        probability = card.p_top1(rest.scores, rest.about)
        eces.append(ece(probability, right) - ece_floor(probability, rng))
    return {
        f"coverage at 90%, mean of {_GROWN} splits": float(np.mean(coverages)),
        "coverage at 90%, deviation": float(np.std(coverages)),
        "ECE less its floor": float(np.mean(eces)),
    }


def _by_captions(asked: Asked, split: Split) -> Asked:
    texts = [caption.text for caption in split.captions]
    relevant = by_captions(texts, asked.owner, len(split.items))
    return replace(asked, relevant=relevant)


def without(asked: Asked, ruled_out: Relevant | None = None) -> Asked:
    """Queries without these videos, or without what they score elsewhere."""
    if ruled_out is None:
        return replace(asked, background=None)
    return replace(asked, scores=np.where(ruled_out, -np.inf, asked.scores))


def _categories(split: Split) -> Integer[np.ndarray, " videos"]:
    """The category that MSR-VTT files each video under."""
    listed = json.loads((data.folder("msrvtt") / "MSRVTT_data.json").read_text())["videos"]
    of = {video["video_id"]: video["category"] for video in listed}
    return np.array([of[item.id] for item in split.items])


def _val() -> Split:
    return _msrvtt("val", None)


def _test(protocol: str) -> Split:
    return _msrvtt("test", protocol)


def _msrvtt(name: str, protocol: str | None) -> Split:
    root, label = data.folder("msrvtt"), "1k-A frame subset"
    ids = root / f"split_{name}.txt"
    return load_split("msrvtt", name, root, protocol=protocol, ids=ids, label=label)


def _photos(name: str) -> Split:
    return load_split("flickr8k", name, data.folder("flickr8k"))


def _shown(value: float | Sequence[float]) -> str:
    return f"{value:8.3f}" if isinstance(value, float) else f"{value:8}"


if __name__ == "__main__":
    main()
