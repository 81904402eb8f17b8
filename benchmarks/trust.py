"""Make the calibration card of the bundled model, and measure it on data it was not made on.

    python -m benchmarks.trust [--model bundled-bf16] [--cache DIR] [--write] [--to results/trust]
        [--draws 60]

--write ships the card; --to measures, into README's tables, trust.json and a picture.

The card is made of four data sets, MSR-VTT and Flickr8k validation and test, each asked in four
kinds: captions, keywords (one to three words of a caption), questions (a caption in a sentence
around it) and short ones (the first half of a caption). No model was trained on these videos; its
epochs were chosen on the validation videos. Right is every video with a caption that holds all
content words of the query (`sureshot.research.queries`), and the one that it was written for; of
sentences that is a part of what a person would call right. Each query is asked with its right
videos in the library and without them.

Measured are cards that have seen nothing of the data set: on MSR-VTT one of Flickr8k alone and the
other way round, on the 26 clips the one of all four. Ranks are by the scores that a search ranks
by, the hub correction on.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from sureshot.datasets import Split, load_split
from sureshot.datasets.split import Caption, Item
from sureshot.files import CARD
from sureshot.library.results import CONFIDENT
from sureshot.metrics.confidence import auroc, brier
from sureshot.metrics.intervals import interval, mean_of
from sureshot.models.hub_bank import BUNDLED
from sureshot.models.load import Scorer, load
from sureshot.research.canvas import (
    MUTED,
    SERIES,
    SUFFIXES,
    add_legend,
    entitle,
    label_axes,
    new_figure,
    save_figure,
)
from sureshot.research.features import SplitFeatures, caption_features, extract
from sureshot.research.queries import by_words, kinds
from sureshot.research.scores import known_of, ranking
from sureshot.trust.card import Calibration, save_card
from sureshot.trust.fit import JudgedQuery, Labelled, adapt, fit_card, labelled

KINDS = ("captions", "keywords", "questions", "short")
EACH = {"msrvtt": 5, "flickr8k": 2}  # captions of a video; more teach little more
_SIZES = (40, 150, 1000)  # videos of a library
_JUDGED, _SHOWN = (5, 10, 20, 50), 3  # searches that somebody judges, and hits of each
_COVERAGE = 0.9
_BINS = np.array([0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01])


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """The videos of a data set, and what is asked of them in each kind."""

    family: str
    videos: SplitFeatures
    kinds: dict[str, Labelled]


def main() -> None:
    """Measure with --to, write with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=BUNDLED, default="bundled")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--to", type=Path, help="measure, into this folder")
    parser.add_argument("--write", action="store_true", help="ship it")
    parser.add_argument("--draws", type=int, default=60, help="people who judge")
    options = parser.parse_args()
    scorer = load(options.model)
    known = worlds(scorer, options.cache)
    if options.write:
        card = card_of(
            known.values(),
            model=scorer.fingerprint,
            bank=None if scorer.bank is None else scorer.bank.digest,
            dataset="captions, questions and keywords of MSR-VTT and Flickr8k",
            date=datetime.now(UTC).date().isoformat(),
            source="tested",
        )
        save_card(card, path := BUNDLED[options.model] / CARD)
        print(f"wrote {path}")
    if options.to is not None:
        known["clips"] = _clips(scorer, known["MSR-VTT test"], options.cache)
        measure(known, options.to, options.draws, options.model)


def splits() -> dict[str, Split]:
    """Each data set that a card is made of, by its name."""
    root = data.folder("msrvtt")
    videos = {
        f"MSR-VTT {part}": load_split(
            "msrvtt", part, root, protocol="full", ids=root / f"split_{part}.txt", label="subset"
        )
        for part in ("val", "test")
    }
    return videos | {
        f"Flickr8k {part}": load_split("flickr8k", part, data.folder("flickr8k"))
        for part in ("val", "test")
    }


def some_captions(split: Split, each: int, rng: np.random.Generator) -> Split:
    """A split with so many captions of each video, at most."""
    rows = [row for own in split.by_video() for row in sorted(rng.permutation(own)[:each])]
    return replace(split, captions=tuple(split.captions[row] for row in rows))


def worlds(scorer: Scorer, cache: Path | None) -> dict[str, World]:
    """Each data set that a card is made of, and what is asked of it."""
    found = {}
    for name, split in splits().items():
        rng = np.random.default_rng(0)
        some = some_captions(split, EACH[split.dataset], rng)
        features = extract(some, scorer.encoder, frames=scorer.frames, cache=cache)
        asked = _asked(scorer, features, split, rng, cache)
        found[name] = World(name.split()[0], features, asked)
    return found


def _asked(
    scorer: Scorer,
    features: SplitFeatures,
    captions: Split,
    rng: np.random.Generator,
    cache: Path | None,
    others: Sequence[SplitFeatures] = (),
) -> dict[str, Labelled]:
    """Queries of each kind to the videos of a split, and to others after them.

    Args:
        captions: the split with all captions that say what is right.
        others: other videos of the library.
    """
    split, found = features.split, {}
    for kind, (queries, own, content) in kinds(split, rng).items():
        named = tuple(Caption(text, int(video)) for text, video in zip(queries, own, strict=True))
        seen = caption_features(replace(split, captions=named), scorer.encoder, cache=cache)
        parts, right = [], []
        for gallery, said in ((features, captions), *((one, one.split) for one in others)):
            scores = ranking(scorer, gallery, seen).astype(np.float64)
            parts.append(scores)
            right.append(by_words(content or queries, said.texts(), said.owner(), scores.shape[1]))
        relevant = np.concatenate(right, axis=1)
        relevant[np.arange(len(queries)), own] = True
        scores = np.concatenate(parts, axis=1)
        found[kind] = labelled(scores, relevant, own, known_of(scorer, seen))
    return found


def clips() -> Split:
    """The clips from elsewhere, one sentence each."""
    folder, said = data.folder("clips") / "videos", data.clip_captions()
    return Split(
        "clips",
        "test",
        "",
        tuple(Item(name, folder / name) for name in said),
        tuple(Caption(text, row) for row, text in enumerate(said.values())),
    )


def _clips(scorer: Scorer, among: World, cache: Path | None) -> World:
    """The clips from elsewhere among MSR-VTT test videos."""
    split = clips()
    seen = extract(split, scorer.encoder, frames=scorer.frames, cache=cache)
    rng = np.random.default_rng(0)
    return World("clips", seen, _asked(scorer, seen, split, rng, cache, [among.videos]))


def card_of(known: Any, **about: Any) -> Calibration:
    """A card of all kinds of some data sets."""
    known = [(of, world.kinds[kind]) for of, world in enumerate(known) for kind in KINDS]
    return fit_card([asked for _, asked in known], of=[of for of, _ in known], **about)


def measure(known: dict[str, World], to: Path, draws: int, model: str) -> None:
    """Every data set by a card of the others: tables, numbers and a picture."""
    rows, judged, said, right = [], [], [], []
    for name in ("MSR-VTT test", "Flickr8k test", "clips"):
        world = known[name]
        rest = [one for one in known.values() if one.family not in (world.family, "clips")]
        card = card_of(rest)
        for kind in KINDS:
            asked = world.kinds[kind]
            for size in _SIZES:
                if size > _SIZES[0] and asked.scores.shape[1] < _SIZES[_SIZES.index(size) - 1]:
                    continue
                rng = np.random.default_rng(0)
                both = with_and_without(asked, min(size, asked.scores.shape[1]), rng)
                row, probability, true = _row(card, *both)
                rows.append({"data": name, "kind": kind, **row})
                print(json.dumps(rows[-1]), flush=True)
                if size == _SIZES[1]:
                    said.append(probability)
                    right.append(true)
            if kind in ("captions", "keywords"):
                both = with_and_without(asked, _SIZES[1], np.random.default_rng(0))
                judged += [
                    {"data": name, "kind": kind, **_judging(card, *both, count, draws)}
                    for count in _JUDGED
                ]
    to.mkdir(parents=True, exist_ok=True)
    values = {"model": model, "seed": 0, "strangers": rows, "after judging": judged}
    (to / "trust.json").write_text(json.dumps(values, indent=1) + "\n", "utf-8")
    print(_tables(rows, judged))
    draw(np.concatenate(said), np.concatenate(right), to)


def with_and_without(
    asked: Labelled, size: int, rng: np.random.Generator
) -> tuple[Labelled, Labelled]:
    """Queries in libraries of so many videos, with an answer and without."""
    there = asked.present(size, rng)
    return there, there.without_answer()


def _first(card: Calibration, asked: Labelled) -> np.ndarray:
    return card.p_right(asked.scores, asked.about, results=1)[1][:, 0]


def said_and_true(
    card: Calibration, there: Labelled, gone: Labelled
) -> tuple[np.ndarray, np.ndarray]:
    """What a card says of first hits, half of them of queries without an answer, and the truth."""
    said = np.concatenate([_first(card, there), _first(card, gone)])
    return said, np.concatenate([there.first_is_right(), np.zeros(len(gone.video), bool)])


def _row(
    card: Calibration, there: Labelled, gone: Labelled
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """What a card says of queries of which half have no answer, and what is true."""
    said, true = said_and_true(card, there, gone)
    video = np.concatenate([there.video, gone.video])
    bias = interval(mean_of(said - true), video, np.random.default_rng(0), resamples=500)
    sure, base = said >= CONFIDENT, float(true.mean())
    members = card.members(there.scores, _COVERAGE, there.about)
    assert members is not None
    sought = np.where(there.relevant, there.scores, -np.inf).max(1)
    below = there.scores.max(1) - sought
    oracle = there.scores >= (there.scores.max(1) - np.quantile(below, _COVERAGE))[:, None]
    here = [card.p_present(one.scores, one.about) for one in (there, gone)]
    called = [card.called_absent(one.scores, one.about) for one in (there, gone)]
    yes = [one >= CONFIDENT for one in here]
    row = {
        "videos": there.scores.shape[1],
        "queries": len(said),
        "right": base,
        "bias": [bias.value, bias.low, bias.high],
        "brier ratio": brier(said, true) / (base * (1 - base)),
        "auroc": auroc(said, true),
        "sure": float(sure.mean()),
        "wrong of the sure": float(1 - true[sure].mean()) if sure.any() else None,
        "set holds one": float((members & there.relevant).any(1).mean()),
        "size of the set": float(members.sum(1).mean()),
        "oracle size": float(oracle.sum(1).mean()),
        "called absent, present and absent": [float(one.mean()) for one in called],
        "called here, present and absent": [float(one.mean()) for one in yes],
    }
    return row, said, true


def _judging(
    card: Calibration, there: Labelled, gone: Labelled, count: int, draws: int
) -> dict[str, Any]:
    """Percentages before and after a person judges some searches, half of them for nothing."""
    before: list[float] = []
    after: list[float] = []
    covered: list[float] = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        mine = rng.permutation(len(there.video))[: count // 2 + count % 2]
        lost = rng.permutation(len(gone.video))[: count // 2]
        own = adapt(card, [_one(there, r) for r in mine] + [_one(gone, r) for r in lost])
        seen = np.concatenate([there.video[mine], gone.video[lost]])
        rest = [one.of(np.flatnonzero(~np.isin(one.video, seen))) for one in (there, gone)]
        if min(len(one.video) for one in rest) < 5:
            return {"judged": count, "bias before": None, "bias after": None, "covered": None}
        true = rest[0].first_is_right().sum() / sum(len(one.video) for one in rest)
        for one, off in ((card, before), (own, after)):
            off.append(abs(np.concatenate([_first(one, part) for part in rest]).mean() - true))
        members = own.members(rest[0].scores, _COVERAGE, rest[0].about)
        assert members is not None
        covered.append(float((members & rest[0].relevant).any(1).mean()))
    return {
        "judged": count,
        "bias before": float(np.mean(before)),
        "bias after": float(np.mean(after)),
        "covered": [float(np.mean(covered)), float(np.quantile(covered, 0.1))],
    }


def _one(asked: Labelled, row: int) -> JudgedQuery:
    """A query whose first three hits were judged; who finds nothing does not know why."""
    order = np.argsort(-asked.scores[row], kind="stable")
    order = order[asked.scores[row, order] > -np.inf]
    right = np.where(np.arange(len(order)) < _SHOWN, asked.relevant[row, order], -1)
    absent = not asked.relevant[row].any()
    about = replace(asked.about.of(np.array([row])), videos=len(order))
    return JudgedQuery(asked.scores[row, order], right, about, absent)


def _tables(rows: Sequence[dict[str, Any]], judged: Sequence[dict[str, Any]]) -> str:
    """The rows as tables of a page."""
    lines = [
        "| | videos | first right | bias | Brier ÷ base | AUROC | 80 % or more (wrong) | set holds "
        "one, size (oracle's) | called absent: present, absent | called here: present, absent |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        bias = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * one for one in row["bias"]))
        wrong = row["wrong of the sure"]
        shares = ("called absent, present and absent", "called here, present and absent")
        absent, here = (", ".join(f"{100 * one:.0f}" for one in row[name]) for name in shares)
        lines.append(
            f"| {row['data']}, {row['kind']} | {row['videos']} | {100 * row['right']:.1f} | {bias} "
            f"| {row['brier ratio']:.2f} "
            f"| {row['auroc']:.2f} | {100 * row['sure']:.1f} "
            f"({'–' if wrong is None else f'{100 * wrong:.0f}'}) "
            f"| {100 * row['set holds one']:.0f}, {row['size of the set']:.1f} "
            f"({row['oracle size']:.1f}) | {absent} | {here} |"
        )
    lines += [
        "",
        "| | judged | bias before | after | set holds one (worst tenth) |",
        "|---" * 5 + "|",
    ]
    for row in judged:
        if row["covered"] is not None:
            held, worst = row["covered"]
            lines.append(
                f"| {row['data']}, {row['kind']} | {row['judged']} "
                f"| {100 * row['bias before']:.1f} | {100 * row['bias after']:.1f} "
                f"| {100 * held:.0f} ({100 * worst:.0f}) |"
            )
    return "\n".join(lines)


def draw(said: np.ndarray, right: np.ndarray, folder: Path) -> None:
    """What was said of first hits against what was right, of libraries of 150 videos."""
    figure = new_figure(4.2, width=4.6)
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100], color=MUTED, linestyle="--", linewidth=0.9)
    place = np.digitize(said, _BINS)
    groups = [place == number for number in np.unique(place) if (place == number).sum() >= 20]
    axes.plot(
        [100 * said[rows].mean() for rows in groups],
        [100 * right[rows].mean() for rows in groups],
        color=SERIES[0],
        marker="o",
        label="first hits, half of the searches for nothing",
    )
    label_axes(axes, "Sureshot said: right with so many %", "so many % were right")
    add_legend(axes, loc="upper left")
    note = (
        "On the dashed line it came true; above it was said too low. Nothing of a data set was "
        "known to the percentages that it tests."
    )
    entitle(figure, "Percentages on data that they have not seen", note)
    for suffix in SUFFIXES:
        save_figure(figure, folder / f"strangers{suffix}")


if __name__ == "__main__":
    main()
