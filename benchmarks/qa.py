"""Questions made from captions of the MSR-VTT frame subset, answered; this is not MSRVTT-QA.

    python -m benchmarks.qa --cache .cache/features

Captions such as "a man is playing the guitar" become "who is playing?" (man), "what is the
man doing?" (playing) and "what is the man playing?" (guitar); see `asked`. A video and a question
have one answer, the one that most of its captions give. The questions are written as ``train``,
``val`` and ``test.jsonl``, the form of MSRVTT-QA, and read from there.

Each model is a stem of width 128 on the frozen ``bridge`` encoder and a head; its checkpoint is the
epoch that is best on validation. Beside them stand what needs no video: the most frequent answer, a
model that is trained and tested without videos, and a model that is tested with those of others.
"""

import argparse
import json
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from sureshot.datasets import Caption, load_split
from sureshot.datasets.questions import Questions, load_questions
from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.base import Encoder, FrameFeatures
from sureshot.research.answers import (
    AnswerCheckpoint,
    AnswerRecipe,
    AnswerReport,
    Start,
    answer_report,
    answerable,
    predict,
    train_answers_on,
)
from sureshot.research.features import SplitFeatures, caption_features, extract
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.run import train_on

_CAPTION = re.compile(
    r"^(?:a|an|the|some|two|three|one) (?:[a-z]+ ){0,2}?(?P<who>[a-z]+) (?P<be>is|are) "
    r"(?P<does>[a-z]+ing)\b"
    r"(?: (?:a|an|the|his|her|some|their) (?:[a-z]+ )?(?P<what>[a-z]+)$| (?P<bare>[a-z]+)$)?"
)
_NEVER = frozenset({"there", "being", "something", "someone", "this", "that", "is", "are", "of"})
_LITTLE = frozenset({"up", "down", "around", "about", "out", "off", "away", "together", "outside"})
FRAMES = 4  # of each video
Rows = list[dict[str, str]]


def asked(caption: str) -> Iterator[tuple[str, str, str]]:
    """Questions, their answers and their types that a caption gives; often none."""
    found = _CAPTION.match(" ".join(caption.lower().split()))
    if found is None or _NEVER & {found["who"], found["does"]}:
        return
    who, be, does = found["who"], found["be"], found["does"]
    yield f"who is {does}?", who, "who"
    yield f"what {be} the {who} doing?", does, "what"
    what = found["what"] or found["bare"]
    if what and what not in _NEVER | _LITTLE and not what.endswith(("ing", "ly")):
        yield f"what {be} the {who} {does}?", what, "what"


def questions(captions: Mapping[str, Sequence[str]], videos: Sequence[str]) -> Rows:
    """Lines of a file of questions: one answer to each question about each video."""
    lines: Rows = []
    for video in videos:
        votes: dict[tuple[str, str], Counter[str]] = {}
        for caption in captions.get(video, ()):
            for question, answer, kind in asked(caption):
                votes.setdefault((question, kind), Counter())[answer] += 1
        for (question, kind), given in votes.items():
            answer = min(given, key=lambda word: (-given[word], word))
            lines.append(
                {"answer": answer, "question": question, "video_id": video, "answer_type": kind}
            )
    return lines


def main() -> None:
    """Make the questions, train, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, default=Path(".cache/qa"), help="their folder")
    parser.add_argument("--to", type=Path, default=Path("results/qa.md"), help="the page")
    parser.add_argument("--cache", type=Path, help="folder of features")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    captions = data.captions()
    options.questions.mkdir(parents=True, exist_ok=True)
    for part in ("train", "val", "test"):
        lines = questions(captions, data.split(part))
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (options.questions / f"{part}.jsonl").write_text(text, "utf-8")
    bench = Bench(options.questions, options.cache, options.epochs)
    reports = {name: [bench.measured(name, seed) for seed in range(options.seeds)] for name in ROWS}
    options.to.write_text(page(bench, reports), "utf-8")
    print(options.to.read_text("utf-8"))


_XPOOL: Mapping[str, Any] = {"name": "xpool", "dropout": 0.1}
_DUQ: Mapping[str, Any] = {"name": "duq", "dropout": 0.1}
ROWS: dict[str, Mapping[str, Any]] = {
    "X-Pool, trained together": {"system": _XPOOL},
    "X-Pool, trained to retrieve and frozen": {"system": _XPOOL, "frozen": True},
    # Without losses of its own DUQ is X-Pool to the digit: the head reads the pooled videos alone.
    "X-Pool, trained together, its loss left out": {"system": _XPOOL, "weight": 0.0},
    "DUQ, trained together": {"system": _DUQ},
    "DUQ, trained to retrieve and frozen": {"system": _DUQ, "frozen": True},
    "CLIP4Clip (mean), trained together": {"system": {"name": "clip4clip"}},
    "question only (trained without video)": {
        "system": {"name": "clip4clip"},
        "blind": True,
        "weight": 0.0,  # there is nothing to find
    },
    "X-Pool, tested with videos of others": {"system": _XPOOL, "shuffled": True},
}


class Bench:
    """Questions and features, loaded once."""

    def __init__(self, folder: Path, cache: Path | None, epochs: int) -> None:
        self.folder, self.cache, self.epochs = folder, cache, epochs
        self.encoder: Encoder = load_encoder("bridge", "cpu")
        videos = data.folder("msrvtt") / "videos"
        read = {
            part: load_questions(folder, part, videos=videos, label="questions made from captions")
            for part in ("train", "val", "test")
        }
        start = Start.of(self.recipe({"name": "clip4clip"}, 0), read["train"])
        self.answers, self.often = start.answers, start.often
        self.sizes = {part: found.title() for part, found in read.items()}
        self.parts: dict[str, tuple[Questions, SplitFeatures]] = {
            part: self.seen(part, found) for part, found in read.items()
        }
        self.parts["train"] = answerable(*self.parts["train"], self.answers)
        self.dropped = len(read["train"].answers) - len(self.parts["train"][0].answers)
        self.captioned: list[SplitFeatures] = []
        self.kept: dict[int, tuple[AnswerReport, AnswerReport]] = {}

    def recipe(self, system: Mapping[str, Any], seed: int, **more: Any) -> AnswerRecipe:
        """How a row is trained."""
        training = {"batch": 128, "rate": 1e-3, "weight_decay": 0.1}
        values = {
            "train": {"root": str(self.folder)},
            "val": {"root": str(self.folder)},
            "training": {**training, "epochs": self.epochs, "seed": seed},
            "encoder": {"name": "bridge", "device": "cpu"},
            "stem": {"kind": "linear", "width": 128},
            "system": dict(system),
        }
        return AnswerRecipe.from_dict({**values, **more}, Path.cwd())

    def seen(self, part: str, asked: Questions) -> tuple[Questions, SplitFeatures]:
        """Questions and features, those of videos from the files that retrieval made."""
        place = data.folder("msrvtt")
        split = load_split("msrvtt", part, place, ids=place / f"split_{part}.txt")
        split = replace(
            split, captions=tuple(Caption("a video", n) for n in range(len(split.items)))
        )
        whole = extract(split, self.encoder, cache=self.cache)
        row = {item.id: number for number, item in enumerate(whole.split.items)}
        asked = asked.about(set(row))
        texts = caption_features(asked.split, self.encoder, cache=self.cache)
        videos = [whole.videos[row[item.id]] for item in asked.split.items]
        return asked, few_frames(replace(texts, videos=videos))

    def measured(self, name: str, seed: int) -> AnswerReport:
        """Train a row with a seed and test it."""
        row = ROWS[name]
        if row.get("shuffled"):
            return self.kept[seed][1]
        parts = self.parts
        if row.get("blind"):
            parts = {part: (asked, without_videos(found)) for part, (asked, found) in parts.items()}
        with tempfile.TemporaryDirectory() as place:
            recipe = self.recipe(row["system"], seed, system_weight=row.get("weight", 0.1))
            if row.get("frozen"):
                self.retrieval(recipe, Path(place) / "retrieval")
                began = str(Path(place) / "retrieval" / "model")
                bare: dict[str, Any] = {"encoder": {"device": "cpu"}, "stem": {}}
                recipe = self.recipe({}, seed, retrieval=began, frozen=True, **bare)
            start = Start.of(recipe, self.parts["train"][0])
            start = replace(start, answers=self.answers, often=self.often)
            done = train_answers_on(
                recipe, start, parts["train"], parts["val"], Path(place) / "run"
            )
            made = AnswerCheckpoint.load(done.folder)
        print(f"{name}, seed {seed}: val {done.score:.1f} after epoch {done.epoch}", flush=True)
        tested = self.tested(made, *parts["test"])
        if name == "X-Pool, trained together":
            questions, features = parts["test"]
            self.kept[seed] = tested, self.tested(made, questions, moved(features, seed))
        return tested

    def retrieval(self, recipe: AnswerRecipe, folder: Path) -> None:
        """Train the same stem and system to retrieve, on the captions of the same videos."""
        place = data.folder("msrvtt")
        if not self.captioned:
            for part in ("train", "val"):
                split = load_split("msrvtt", part, place, ids=place / f"split_{part}.txt")
                self.captioned.append(few_frames(extract(split, self.encoder, cache=self.cache)))
        source = {"dataset": "msrvtt", "root": str(place)}
        training = {"epochs": 6, "batch": 128, "rate": 1e-3, "weight_decay": 0.1}
        values = {
            "train": [source],
            "encoder": {"name": "bridge", "device": "cpu"},
            "stem": {"kind": "linear", "width": 128},
            "system": dict(recipe.system),
            "training": {**training, "seed": recipe.training.seed},
        }
        made = Recipe.from_dict(values, Path.cwd())
        train_on(made, self.encoder, self.captioned[:1], self.captioned[1], folder)

    def tested(
        self, made: AnswerCheckpoint, asked: Questions, features: SplitFeatures
    ) -> AnswerReport:
        """The test questions, answered."""
        given = [made.answers[number] for number in predict(made.model(), features)]
        return answer_report(
            given,
            asked.answers,
            asked.split.owner(),
            asked.kinds,
            vocabulary=made.answers,
            constant=made.answers[int(np.argmax(made.often))],
            title=asked.title(),
        )


def few_frames(features: SplitFeatures) -> SplitFeatures:
    """At most `FRAMES` frames a video, evenly spread: few videos here have more."""
    videos = []
    for video in features.videos:
        count = len(video.frames)
        rows = np.linspace(0, count - 1, min(count, FRAMES)).round().astype(int)
        videos.append(FrameFeatures(video.frames[rows], video.patches[rows], video.backbone[rows]))
    return replace(features, videos=videos, frames=FRAMES)


def without_videos(features: SplitFeatures) -> SplitFeatures:
    """The same questions about videos of which nothing is seen."""
    empty = [
        FrameFeatures(0 * video.frames[:1], 0 * video.patches[:1], 0 * video.backbone[:1])
        for video in features.videos
    ]
    return replace(features, videos=empty)


def moved(features: SplitFeatures, seed: int) -> SplitFeatures:
    """The same questions, each video exchanged for another one."""
    order = np.random.default_rng(seed).permutation(len(features.videos))
    videos = list(features.videos)
    for here, there in zip(order, np.roll(order, 1), strict=True):
        videos[here] = features.videos[there]
    return replace(features, videos=videos)


def page(bench: Bench, reports: Mapping[str, Sequence[AnswerReport]]) -> str:
    """The results in Markdown."""
    first = next(iter(reports.values()))[0]
    kinds = [line.name for line in first.kinds]
    command = f"python -m benchmarks.qa --seeds {len(next(iter(reports.values())))}"
    lines = [
        "# Questions made from captions",
        "",
        "**This is not MSRVTT-QA**, whose files are not at hand: the questions are made by rules",
        "from the captions of the MSR-VTT frame subset (`benchmarks/qa.py` says how), so no number",
        "here stands beside a published one.",
        "",
        f"`{command} --epochs {bench.epochs}`: frozen `bridge` encoder, linear stem of width 128,",
        f"at most {FRAMES} frames a video, batch 128, rate 1e-3, every question in each epoch; the "
        "epoch",
        "that is best on validation is tested.",
        "",
        *(f"* {title}" for title in bench.sizes.values()),
        f"* {len(bench.answers)} answers known, the most frequent of training; {bench.dropped} "
        "training",
        "  questions have none of them and are left out",
        f"* {first.unknown} test questions have none of them and count as wrong",
        "",
        "Accuracy on the test questions in percent, mean and standard deviation over the seeds; in",
        "brackets the 95 % interval over resampled videos, seed 0.",
        "",
        f"| | all | {' | '.join(kinds)} | answers known only |",
        "|---" * (3 + len(kinds)) + "|",
    ]
    always = first.constant
    ends = f"{always.value:.1f} [{always.low:.1f}, {always.high:.1f}]"
    lines.append(f"| {always.name} | {ends} |{' |' * (1 + len(kinds))}")
    for name, found in reports.items():
        overall = [report.overall.value or 0.0 for report in found]
        ends = f"[{found[0].overall.low:.1f}, {found[0].overall.high:.1f}]"
        cells = [f"{statistics.mean(overall):.1f} ± {statistics.stdev(overall):.1f} {ends}"]
        cells += [
            f"{statistics.mean(r.kinds[place].value or 0.0 for r in found):.1f}"
            for place in range(len(kinds))
        ]
        cells.append(f"{statistics.mean(r.answerable.value or 0.0 for r in found):.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
