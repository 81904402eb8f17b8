"""How true the percentages of other models are, after a card of captioned footage from elsewhere.

`python -m benchmarks.trust_models` measures nine models that nothing here was fitted to: six real
ones (the bundled encoder without its hub correction and its first 64 dimensions; ``bridge``; linear
maps from the untuned networks of ``bridge``, fitted to photographs of Flickr8k, to videos of
MSR-VTT, and both together with the labels of ``bridge``), and three that stand for strong ones: the
bundled encoder whose videos are moved towards the mean of captions that are not asked.

A clip has one caption, so the strong ones are not asked of clips.

Each gets a card of at most 500 photographs or videos, as ``sureshot calibrate --reference`` makes
it: Flickr8k validation for MSR-VTT test and for the 26 clips (among MSR-VTT test videos), MSR-VTT
validation for Flickr8k test. Queries, what is right and libraries of 150 are those of
`benchmarks.trust`; half of the queries have no answer.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from benchmarks import data
from benchmarks.trust import (
    EACH,
    KINDS,
    clips,
    said_and_true,
    some_captions,
    splits,
    with_and_without,
)
from sureshot.datasets import Split, load_split
from sureshot.datasets.split import Caption, Item
from sureshot.metrics.confidence import brier
from sureshot.models.load import Scorer, load
from sureshot.research.features import SplitFeatures, caption_features, extract
from sureshot.research.queries import by_words, kinds
from sureshot.trust.card import Calibration, Logistic
from sureshot.trust.fit import Labelled, fit_card, labelled
from sureshot.trust.signals import QueryContext, query_signals, result_signals, word_counts

REFERENCES = {
    "MSR-VTT test": "Flickr8k val",
    "Flickr8k test": "MSR-VTT val",
    "clips": "Flickr8k val",
}
_VIDEOS, _REFERENCE = 150, 500
_STRONG = (0.15, 0.3, 0.6)  # share of the mean of captions
_TRAINED = 1500, 600  # photographs and videos that the maps are fitted to
_RIDGE = 3000.0
_CUT = 64  # dimensions
_FREE_SIZES, _EACH = (10, 40, 150, 476), 400  # libraries, and queries of a kind

Vectors = Float[np.ndarray, "items dim"]
Owners = Integer[np.ndarray, " queries"]  # video that each query was written for


class Models:
    """Vectors of texts and videos by each of the models."""

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._bundled, self._bridge = load("bundled"), load("bridge")
        photos = load_split("flickr8k", "train", data.folder("flickr8k"))
        root = data.folder("msrvtt")
        videos = load_split("msrvtt", "train", root, ids=root / "split_train.txt", label="subset")
        self._maps = {
            "map, photographs": self._fitted(_some(photos, _TRAINED[0])),
            "map, videos": self._fitted(_some(videos, _TRAINED[1])),
        }

    def _fitted(self, split: Split) -> tuple[Vectors, Vectors]:
        """A ridge regression from a video's mean features to the mean vector of its captions."""
        seen = extract(
            some_captions(split, 5, np.random.default_rng(0)),
            self._bridge.encoder,
            cache=self._cache,
        )
        texts, owner = self._texts(seen.split.texts(), self._bridge), seen.split.owner()
        means = np.stack([texts[owner == video].mean(0) for video in range(len(seen.videos))])
        centre = means.mean(0, keepdims=True)
        inputs = _with_one(_normal(_pooled(seen, "backbone")))
        penalty = _RIDGE * np.eye(inputs.shape[1])
        return np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ (means - centre)), centre

    def _texts(self, texts: Sequence[str], scorer: Scorer) -> Vectors:
        captions = tuple(Caption(text, 0) for text in texts)
        split = Split("asked", "test", "", (Item("none", Path("none")),), captions)
        found = caption_features(split, scorer.encoder, cache=self._cache).texts
        return _unit(np.stack([sentence for sentence, _ in found]).astype(np.float64))

    def videos(self, split: Split, held_back: Split) -> dict[str, Vectors]:
        """Videos of a split, by the name of the model.

        Args:
            held_back: the same split with captions that are not asked.
        """
        bundled = _pooled(self._seen(split, self._bundled), "frames")
        untuned = self._seen(split, self._bridge)
        labels = _unit(_pooled(untuned, "frames"))
        inputs = _with_one(_normal(_pooled(untuned, "backbone")))
        mapped = {name: _unit(inputs @ weights) for name, (weights, _) in self._maps.items()}
        texts, owner = self._texts(held_back.texts(), self._bundled), held_back.owner()
        means = np.stack([texts[owner == video].mean(0) for video in range(len(split.items))])
        strong = {
            f"bundled and {100 * share:.0f} % captions": _unit(
                (1 - share) * _unit(bundled) + share * _unit(means)
            )
            for share in _STRONG
        }
        return {
            "bundled": _unit(bundled),
            f"bundled, {_CUT} dimensions": _unit(bundled[:, :_CUT]),
            "bridge": labels,
            **mapped,
            "both maps and labels": _unit(
                np.hstack([_unit(np.sum(list(mapped.values()), axis=0)), labels])
            ),
            **strong,
        }

    def texts(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """Texts, by the name of the model."""
        bundled, plain = (self._texts(texts, one) for one in (self._bundled, self._bridge))
        mapped = {name: _unit(plain - centre) for name, (_, centre) in self._maps.items()}
        both = _unit(np.hstack([_unit(np.sum(list(mapped.values()), axis=0)), plain]))
        strong = {f"bundled and {100 * share:.0f} % captions": bundled for share in _STRONG}
        return {
            "bundled": bundled,
            f"bundled, {_CUT} dimensions": _unit(bundled[:, :_CUT]),
            "bridge": plain,
            **mapped,
            "both maps and labels": both,
            **strong,
        }

    def _seen(self, split: Split, scorer: Scorer) -> SplitFeatures:
        return extract(split, scorer.encoder, frames=scorer.frames, cache=self._cache)


def measure(to: Path, cache: Path | None) -> None:
    """Write ``models.json`` into a folder, and print its tables."""
    models, known = Models(cache), splits() | {"clips": clips()}
    asked: dict[str, dict[str, dict[str, Labelled]]] = {}
    vectors: dict[str, dict[str, Vectors]] = {}
    owners: dict[str, dict[str, Owners]] = {name: {} for name in known}
    for name, split in known.items():
        rng = np.random.default_rng(0)
        some = some_captions(split, EACH.get(split.dataset, 1), rng)
        asked_rows = set(some.captions)
        rest = tuple(one for one in split.captions if one not in asked_rows)
        vectors[name] = models.videos(some, replace(split, captions=rest or split.captions))
        galleries = [name, *(["MSR-VTT test"] if name == "clips" else [])]
        for kind, (queries, own, content) in kinds(some, rng).items():
            right = [
                by_words(content or queries, s.texts(), s.owner(), len(s.items))
                for s in (known[one] for one in galleries)
            ]
            relevant = np.concatenate(right, axis=1)
            relevant[np.arange(len(queries)), own] = True
            owners[name][kind] = np.asarray(own)
            about = QueryContext(words=word_counts(queries))
            for model, texts in models.texts(queries).items():
                if name == "clips" and model.endswith("captions"):
                    continue  # none is left that is not asked
                videos = np.concatenate([vectors[one][model] for one in galleries])
                one = labelled(texts @ videos.T, relevant, np.asarray(own), about)
                asked.setdefault(model, {}).setdefault(name, {})[kind] = one
    rows = []
    for model, worlds in asked.items():
        for name, reference in REFERENCES.items():
            if name not in worlds:
                continue
            card = _card(worlds[reference], owners[reference])
            for kind in KINDS:
                rows.append({"model": model, "data": name, "kind": kind})
                rows[-1] |= _row(card, worlds[name][kind])
                print(json.dumps(rows[-1]), flush=True)
    to.mkdir(parents=True, exist_ok=True)
    values = {"seed": 0, "rows": rows, "scale free": scale_free(asked)}
    (to / "models.json").write_text(json.dumps(values, indent=1) + "\n", "utf-8")
    print(_tables(rows))


def scale_free(asked: Mapping[str, Mapping[str, Mapping[str, Labelled]]]) -> dict[str, Any]:
    """The numbers of `sureshot.trust.fit.scale_free`: one fit to all models.

    Signals are in units of their spread over the queries of a kind in libraries of one size.
    """
    query, present, first, result, hits = [], [], [], [], []
    depths: dict[int, list[np.ndarray]] = {size: [] for size in _FREE_SIZES}
    for worlds in asked.values():
        for name in sorted(set(REFERENCES.values())):
            for kind in KINDS:
                some = worlds[name][kind].at_most(_EACH, np.random.default_rng(0))
                for size in _FREE_SIZES:
                    size = min(size, some.scores.shape[1])
                    both = with_and_without(some, size, np.random.default_rng(1))
                    signals = [query_signals(one.scores, one.about) for one in both]
                    free = np.concatenate(signals)
                    mean, spread = free[:, :3].mean(0), free[:, :3].std(0)
                    free[:, :3] = (free[:, :3] - mean) / spread
                    query.append(free)
                    present.append(np.repeat([1.0, 0.0], [len(one) for one in signals]))
                    there = both[0]
                    first.append(there.first_is_right())
                    order, later = result_signals(there.scores, there.about)
                    units = np.array([spread[0], spread[0], spread[2]])
                    later[..., :3] = (later[..., :3] - [mean[0], 0, 0]) / units
                    result.append(later[:, 1:].reshape(-1, later.shape[-1]))
                    hits.append(np.take_along_axis(there.relevant, order, 1)[:, 1:].ravel())
                    sought = np.where(there.relevant, there.scores, -np.inf).max(1)
                    known = min(_FREE_SIZES, key=lambda one: abs(np.log(one / size)))
                    depths[known].append((there.scores.max(1) - sought) / spread[0])
    everything, here = np.concatenate(query), np.concatenate(present)
    fits = {
        "present": Logistic.fit(everything, here),
        "first": Logistic.fit(everything[here == 1], np.concatenate(first)),
        "later": Logistic.fit(np.concatenate(result), np.concatenate(hits)),
    }
    found = np.sort(fits["present"].probability(everything[here == 1]))
    plain = {
        name: [*(coef := np.array(fit.coef) / fit.scale), fit.bias - coef @ np.array(fit.mean)]
        for name, fit in fits.items()
    }
    tenths = np.linspace(0.1, 1, 10)
    return {
        **{name: np.round(values, 2).tolist() for name, values in plain.items()},
        "absent": round(float(found[len(found) // 12]), 2),
        "depths": {
            size: np.round(np.quantile(np.concatenate(parts), tenths), 2).tolist()
            for size, parts in depths.items()
        },
    }


def _card(kinds_asked: Mapping[str, Labelled], owners: Mapping[str, Owners]) -> Calibration:
    """A card of some of the videos, in which a sentence is right about its own video alone."""
    parts = []
    for kind, asked in kinds_asked.items():
        kept = np.sort(np.random.default_rng(0).permutation(asked.scores.shape[1])[:_REFERENCE])
        own = owners[kind][:, None] == np.arange(asked.scores.shape[1])
        relevant = (asked.relevant if kind == "keywords" else own)[:, kept]
        known = np.isin(owners[kind], kept)
        parts.append(
            labelled(
                asked.scores[known][:, kept],
                relevant[known],
                asked.video[known],
                asked.about.of(known),
            )
        )
    return fit_card(parts, of=[0] * len(parts), source="reference")


def _row(card: Calibration, asked: Labelled) -> dict[str, Any]:
    size = min(_VIDEOS, asked.scores.shape[1])
    there, gone = with_and_without(asked, size, np.random.default_rng(0))
    said, true = said_and_true(card, there, gone)
    members = card.members(there.scores, 0.9, there.about)
    base = float(true.mean())
    return {
        "right": base,
        "bias": float(said.mean() - base),
        "brier ratio": brier(said, true) / (base * (1 - base)),
        "called absent, present and absent": [
            float(card.called_absent(one.scores, one.about).mean()) for one in (there, gone)
        ],
        "set holds one": None
        if members is None
        else float((members & there.relevant).any(1).mean()),
    }


def _tables(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table by model and one by kind."""
    lines = [
        "| model | first right | bias of captions on the three sets | of keywords |",
        "|---" * 4 + "|",
    ]
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        right = ", ".join(f"{100 * row['right']:.0f}" for row in own if row["kind"] == "captions")
        biases = (
            ", ".join(f"{100 * row['bias']:+.1f}" for row in own if row["kind"] == kind)
            for kind in ("captions", "keywords")
        )
        lines.append(f"| {model} | {right} | {' | '.join(biases)} |")
    lines += [
        "",
        "| | mean absolute bias | lowest, highest | Brier ÷ base | called absent: present, "
        "absent | set holds one |",
        "|---" * 6 + "|",
    ]
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        bias = 100 * np.array([row["bias"] for row in own])
        absent = 100 * np.mean([row["called absent, present and absent"] for row in own], axis=0)
        held = [row["set holds one"] for row in own if row["set holds one"] is not None]
        lines.append(
            f"| {kind} | {np.abs(bias).mean():.1f} | {bias.min():+.1f}, {bias.max():+.1f} "
            f"| {np.mean([row['brier ratio'] for row in own]):.2f} "
            f"| {absent[0]:.0f}, {absent[1]:.0f} | {100 * np.mean(held):.0f} |"
        )
    return "\n".join(lines)


def _some(split: Split, count: int) -> Split:
    rows = np.random.default_rng(0).permutation(len(split.items))[:count]
    return split.part({split.items[row].id for row in rows})


def _pooled(features: SplitFeatures, what: str) -> Vectors:
    return np.stack([getattr(one, what).astype(np.float64).mean(0) for one in features.videos])


def _normal(vectors: Vectors) -> Vectors:
    centred = vectors - vectors.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)


def _with_one(vectors: Vectors) -> Vectors:
    return np.column_stack([vectors, np.ones(len(vectors))])


def _unit(vectors: Vectors) -> Vectors:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How true the percentages of other models are.")
    parser.add_argument("--cache", type=Path, help="folder of features")
    parser.add_argument(
        "--to", type=Path, default=Path("results/trust"), help="folder of the table"
    )
    options = parser.parse_args()
    measure(options.to, options.cache)
