"""Questions about videos with one answer each: MSRVTT-QA, or your own questions in its format.

Files:
    ``train.jsonl``, ``val.jsonl`` and ``test.jsonl``: one JSON object per line with ``question``,
    ``answer`` and ``video_id``; ``answer_type`` may be left out. A video that is given as a number
    n or its digits is ``videon``, as in the first release of MSRVTT-QA. Other keys are passed over.
    ``train_qa.json``, ``val_qa.json`` and ``test_qa.json`` are that release: a list of the same
    objects. Where both forms are there, the lines count.
    ``train_ans2label.json``: an object from each answer that can be given to its number. Without
    it, the most frequent answers of the training questions can be.

All lines are checked. A video that is not on disk is no fault: its questions are left out and
counted.

References:
    Xu et al., Video Question Answering via Gradually Refined Attention over Appearance and Motion,
    2017: MSRVTT-QA.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sureshot.datasets.annotation import pick, read_annotation, read_objects
from sureshot.datasets.split import Listing, Split, to_split, usual_folders
from sureshot.errors import SureshotError
from sureshot.paths import expand

KINDS = ("what", "who", "how", "when", "where")  # types of MSRVTT-QA, the most frequent first
VOCABULARY = "train_ans2label.json"
PUBLISHED = "MSRVTT-QA"

# Questions and videos of the published splits.
SIZES = {"train": (158_581, 6513), "val": (12_278, 497), "test": (72_821, 2990)}
_FORM = "it must be an object with question, answer and video_id"


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a split whose videos are on disk."""

    split: Split  # its captions are the questions, those of one video side by side
    answers: tuple[str, ...]
    kinds: tuple[str, ...]  # such as ``what``
    absent: int = 0  # questions left out because their video is not there

    @property
    def published(self) -> bool:
        """Whether this is MSRVTT-QA, all of the published split."""
        full = len(self.split.items) == self.split.expected
        return self.split.dataset == PUBLISHED and full and self.split.label is None

    def title(self) -> str:
        """What a table of results calls these questions; a part never looks like the whole."""
        split, asked = self.split, f"{len(self.answers)} questions"
        count, full = len(split.items), split.expected or len(split.items) + len(split.missing)
        if split.label is not None:
            return f"{split.label}, {split.name}, {count} videos, {asked}"
        share = f"{count}" if count == full else f"{count} of {full}"
        return f"{split.dataset} {split.name}, {share} videos, {asked}"

    def digest(self) -> str:
        """12 letters that change with the videos, the questions or the answers."""
        content = repr((self.split.digest(), self.answers))
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def summary(self) -> str:
        """The title, and what of the questions was not there."""
        line, missing = self.title(), self.split.missing
        if missing:
            line += f"; {len(missing)} videos not on disk, such as {missing[0]}, with "
            line += f"{self.absent} questions"
        return line

    def about(self, videos: Collection[str]) -> "Questions":
        """Those about videos with these ids, of which there is one at least."""
        items = self.split.items
        asked = enumerate(self.split.captions)
        return self._only([row for row, one in asked if items[one.video].id in videos])

    def answerable(self, vocabulary: Collection[str]) -> "Questions":
        """Those whose answer is in a vocabulary; a video without one is left out."""
        known = set(vocabulary)
        kept = [row for row, answer in enumerate(self.answers) if answer in known]
        if not kept:
            raise SureshotError(
                f"No question of {self.title()} has an answer that can be given; the vocabulary is "
                f"of other questions. Leave {VOCABULARY} out to make one of the training answers."
            )
        return self._only(kept)

    def _only(self, rows: Sequence[int]) -> "Questions":
        """Those of these rows; videos without one are left out."""
        answers = tuple(self.answers[row] for row in rows)
        kinds = tuple(self.kinds[row] for row in rows)
        return replace(self, split=self.split.of_captions(rows), answers=answers, kinds=kinds)


def load_questions(
    root: str | Path,
    split: str,
    *,
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
) -> Questions:
    """The questions of one split; arguments as of `sureshot.datasets.load_split`."""
    if split not in SIZES:
        raise SureshotError(f"Unknown split {split!r}; known: {', '.join(SIZES)}.")
    root = expand(root)
    path = pick(root, f"{split}.jsonl", f"{split}_qa.json")
    asked: dict[str, list[tuple[str, str, str]]] = {}
    lines = read_objects(path)
    for place, values in lines:
        try:
            video, *texts = _checked(values)
        except ValueError as error:
            raise SureshotError(f"{path}, {place}: {error}.") from None
        asked.setdefault(video, []).append((texts[0], texts[1], texts[2]))
    if not asked:
        raise SureshotError(f"{path} is empty; it must hold questions.")
    published = (len(lines), len(asked)) == SIZES[split]
    listing = Listing(
        protocol="questions",
        captions={video: [question for question, _, _ in rows] for video, rows in asked.items()},
        expected=len(asked) if ids is None else None,
        names={
            video: (video.removeprefix("video"),) for video in asked if video.startswith("video")
        },
    )
    if ids is not None:
        listing = listing.only(expand(ids))
    folders = usual_folders(root) if videos is None else [expand(videos)]
    dataset = PUBLISHED if published else root.resolve().name
    there = to_split(listing, dataset, split, folders, label)
    rows = [row for item in there.items for row in asked[item.id]]
    return Questions(
        split=there,
        answers=tuple(answer for _, answer, _ in rows),
        kinds=tuple(kind for _, _, kind in rows),
        absent=sum(len(asked[video]) for video in there.missing),
    )


def read_vocabulary(root: str | Path) -> tuple[str, ...] | None:
    """The answers of ``train_ans2label.json`` by their numbers; None where it is not there."""
    path = expand(root) / VOCABULARY
    if not path.is_file():
        return None
    labels = read_annotation(path)
    if not isinstance(labels, Mapping) or len(labels) < 2:
        raise SureshotError(f"{path} must be an object from answers, two at least, to numbers.")
    owner: dict[int, str] = {}
    for answer, label in labels.items():
        if type(label) is not int:
            raise SureshotError(f"{path}: the number of {answer!r} is {label!r}; give a whole one.")
        if label in owner:
            raise SureshotError(f"{path}: {owner[label]!r} and {answer!r} share number {label}.")
        owner[label] = answer
    return tuple(owner[label] for label in sorted(owner))


def frequent(answers: Sequence[str], count: int) -> tuple[str, ...]:
    """The most frequent answers, those alike in number by the alphabet.

    Examples:
        >>> frequent(["man", "cat", "dog", "man"], 2)
        ('man', 'cat')
    """
    often = Counter(answers)
    return tuple(sorted(often, key=lambda answer: (-often[answer], answer))[:count])


def _checked(values: dict[str, Any]) -> tuple[str, str, str, str]:
    """Video, question, answer and type of one line."""
    if (number := str(values.get("video_id"))).isdecimal():
        values = {**values, "video_id": f"video{number}"}
    video, question, answer = (_text(values, name) for name in ("video_id", "question", "answer"))
    if values.get("answer_type") is not None:
        kind = _text(values, "answer_type")
    else:
        first = question.split()[0].lower()
        kind = first if first in KINDS else "other"
    return video, question, answer, kind


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None:
        raise ValueError(f"there is no {name}; {_FORM}")
    if not isinstance(value, str):
        raise ValueError(f"the {name} is {value!r:.60}; it must be text")
    if not value.strip():
        raise ValueError(f"the {name} is empty")
    return value.strip()
