"""How many questions about videos are answered right, next to the printed numbers.

A question whose answer is not in the vocabulary cannot be answered, and counts as wrong. The
released loaders of HBI and DUQ leave such questions out of the test, which raises the accuracy;
that number is shown next to ours, under its name.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from sureshot.datasets.questions import SIZES, Questions, load_questions
from sureshot.datasets.split import Split
from sureshot.metrics.intervals import interval, mean_of, of_percent, resampling_note
from sureshot.metrics.published import PrintedAccuracy, published_answers
from sureshot.paths import as_list
from sureshot.progress import Notes, Progress, Silent
from sureshot.research.answers import AnswerCheckpoint, Answerer, AnswerRecipe
from sureshot.research.evaluation import warn_of_shared
from sureshot.research.training.recipe import Recipe
from sureshot.text import counted


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Right answers among some questions.

    Attributes:
        name: which questions, or who answers.
        value: percent; None where there is no question.
        low: lower end of its interval; None for questions about fewer than two videos.
        high: upper end.
        n: questions.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int

    def text(self) -> str:
        """The percentage and its interval."""
        if self.value is None:
            return "-"
        ends = "" if self.low is None else f" [{self.low:.1f}, {self.high:.1f}]"
        return f"{self.value:.1f}{ends}"


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """An evaluation of one model on one set of questions.

    Attributes:
        title: title of the questions.
        system: what the head reads.
        encoder: name of the encoder.
        frames: frames per video.
        vocabulary: answers that can be given.
        overall: accuracy on all questions.
        kinds: accuracy on the questions of each type, the most frequent type first.
        answerable: accuracy on the questions whose answer is in the vocabulary.
        constant: accuracy of always giving the answer that is the most frequent in training.
        unknown: number of questions whose answer is not in the vocabulary.
        absent: number of questions left out because their video is not there or cannot be read.
        videos: number of videos that are asked about.
        published: printed rows, where they were asked for.
        differ: why these do not compare; empty where data agree in size.
        resamples: number of times that videos were drawn for the intervals.
        seed: seed of that chance.
        notes: sentences about the data: missing videos, videos that the model was trained on.
    """

    title: str
    system: str
    encoder: str
    frames: int
    vocabulary: int
    overall: Accuracy
    kinds: tuple[Accuracy, ...]
    answerable: Accuracy
    constant: Accuracy
    unknown: int
    absent: int
    videos: int
    published: tuple[PrintedAccuracy, ...]
    differ: str
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "notes"}

    def text(self) -> str:
        """The report as people read it."""
        return "\n".join([*self._head(), *self._results(), *self._printed()]) + "\n"

    def _head(self) -> Iterator[str]:
        yield self.title
        known = f"{self.vocabulary} answers known"
        yield f"{self.system}, encoder {self.encoder}, {self.frames} frames, {known}"
        yield f"{counted(self.overall.n, 'question')} about {counted(self.videos, 'video')}"
        if self.overall.low is not None:
            yield resampling_note(self.resamples, self.seed)

    def _results(self) -> Iterator[str]:
        lines = [self.overall, *self.kinds, self.constant, self.answerable]
        name = max(len(line.name) for line in lines)
        cell = max(len(line.text()) for line in lines)
        yield ""
        for line in lines:
            yield f"{line.name:{name}}  {line.text():{cell}}  n = {line.n}"
        share = 100 * self.unknown / self.overall.n
        yield (
            f"{counted(self.unknown, 'question')} ({share:.1f} %) with an answer outside of the "
            "vocabulary: counted as wrong."
        )
        if self.absent:
            yield f"{counted(self.absent, 'question')} left out: the video is not there."

    def _printed(self) -> Iterator[str]:
        if not self.published:
            return
        yield f"\nPublished, {self.published[0].dataset}"
        if self.differ:
            yield f"! Other data, so the numbers do not compare: {self.differ}"
        else:
            yield "- as many questions and videos; whether they are the same is not checked"
        yield (
            "- the loaders of HBI and DUQ leave questions outside of the vocabulary out, like the "
            "last line above; what the others do is not known"
        )
        widest = max(len(row.method) for row in self.published)
        for row in self.published:
            odd = f"  as printed: {row.note}" if row.note else ""
            yield f"{row.method:{widest}}  {row.accuracy:.1f}  ({row.table}){odd}"


def answer_report(
    given: Sequence[str],
    questions: Questions,
    checkpoint: AnswerCheckpoint,
    *,
    absent: int = 0,
    against: Sequence[str] = (),
    resamples: int = 1000,
    seed: int = 0,
    notes: Sequence[str] = (),
) -> AnswerReport:
    """Compare the answers that were given to questions with the right ones.

    Args:
        against: methods whose printed rows are shown; ``published`` is all of them.
        seed: of the resamples; each line starts from it.
    """
    true = np.array(questions.answers, object)
    constant = checkpoint.answers[int(np.argmax(checkpoint.often))]
    right, always = true == np.array(given, object), true == constant
    known = np.isin(questions.answers, checkpoint.answers)
    video, kinds = questions.split.owner(), np.array(questions.kinds)
    often = Counter(questions.kinds)

    def line(name: str, hits: Bool[np.ndarray, " q"], chosen: Bool[np.ndarray, " q"]) -> Accuracy:
        values, cluster = 100.0 * hits[chosen], video[chosen]
        mean = float(values.mean()) if len(values) else None
        low, high = None, None
        if (apart := len(np.unique(cluster))) > 1:
            rng = np.random.default_rng(seed)
            ends = interval(mean_of(values), cluster, rng, resamples=resamples)
            ends = of_percent(ends, apart)
            low, high = ends.low, ends.high
        return Accuracy(name=name, value=mean, low=low, high=high, n=len(values))

    every, videos = np.ones(len(right), bool), len(np.unique(video))
    asked, all_videos = SIZES["test"]
    sizes = f"{len(right)} questions about {videos} videos here, {asked} about {all_videos}"
    return AnswerReport(
        title=questions.title(),
        system=str(checkpoint.retrieval.system["name"]),
        encoder=checkpoint.retrieval.encoder_name,
        frames=checkpoint.retrieval.encoder.frames,
        vocabulary=len(checkpoint.answers),
        overall=line("all questions", right, every),
        kinds=tuple(
            line(kind, right, kinds == kind) for kind in sorted(often, key=lambda k: (-often[k], k))
        ),
        answerable=line("questions outside of the vocabulary left out", right, known),
        constant=line(f"always {constant!r}", always, every),
        unknown=int(np.count_nonzero(~known)),
        absent=absent,
        videos=videos,
        published=tuple(row for method in against for row in published_answers(method)),
        differ="" if questions.published else f"{sizes} published",
        resamples=resamples,
        seed=seed,
        notes=tuple(notes),
    )


def evaluate_answers(
    model: str | Path,
    root: str | Path,
    *,
    split: str = "test",
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
    against: str | Sequence[str] = (),
    device: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> AnswerReport:
    """Measure how many questions are answered right; those it cannot know count as wrong.

    Args:
        model: folder of a model that answers questions.
        root: folder of the questions, see `sureshot.datasets.questions.load_questions`; so are
            ``split``, ``videos``, ``ids`` and ``label``. The rest is as of
            `sureshot.research.evaluation.evaluate`.
    """
    for method in (against := as_list(against)):
        published_answers(method)
    notes = Notes(progress or Silent())
    answerer = Answerer.load(model, device)
    recipe = answerer.checkpoint.recipe
    tested = load_questions(root, split, videos=videos, ids=ids, label=label)
    notes.line(tested.summary())
    retrieval = answerer.checkpoint.retrieval.recipe

    def trained() -> tuple[list[Split], None]:
        found = [AnswerRecipe.from_dict(recipe, Path.cwd()).train.load().split]
        found += Recipe.from_dict(retrieval, Path.cwd()).splits()[0] if retrieval else []
        return found, None

    warn_of_shared(trained, tested.split, notes)
    asked, given, unreadable = answerer.answer(tested, cache, notes)
    for name, reason in unreadable:
        notes.line(f"left out: {name} {reason}")
    absent = tested.absent + len(tested.answers) - len(asked.answers)
    return answer_report(
        given, asked, answerer.checkpoint, absent=absent, against=against, notes=notes.lines
    )
