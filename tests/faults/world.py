"""A library to harm: clips with subtitles, an index of most of them with a card, what is right.

`SURESHOT_FAULTS` is how many cases of each fuzzer are tried, 1000 by `make faults`; the benches of
whole indexes, which take seconds a case, try a share of that. `SURESHOT_FAULTS_SEED` gives others.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sureshot.errors import SureshotError
from sureshot.library.calibration import calibrate
from sureshot.library.catalog import remove
from sureshot.library.index_result import Indexed
from sureshot.library.indexing import index as ingest_all
from sureshot.library.search import open_index
from sureshot.models.encoders.toy import COLOURS
from sureshot.store import vector_search
from sureshot.store.index import Store
from sureshot.store.maintenance import find_faults, index_vectors
from sureshot.store.tables import Tables
from tests.clips import coloured
from tests.encoded import contents

SEED = int(os.environ.get("SURESHOT_FAULTS_SEED", "0"))
_NAMES = [colour for colour in COLOURS if colour not in ("black", "cyan")]
SAID = '"the password"'  # in the subtitles of each clip
QUERIES = ("red red red green", "yellow and magenta", "zebra", SAID)
_INDEXED = 22  # of the clips; the others are new to `index`
_CLIPS = 24
_LABELS = 8  # judged queries of each clip
_MENDS = ("`sureshot index", "`sureshot reset", "`sureshot calibrate")
_HARMLESS = (".broken-", "which only matters if the newest is damaged too")
Answers = dict[str, Any]


def cases(usual: int, of_thousand: int) -> int:
    """How many cases a bench tries: a few in every run, more where `SURESHOT_FAULTS` asks."""
    asked = os.environ.get("SURESHOT_FAULTS")
    return usual if asked is None else max(usual, int(asked) * of_thousand // 1000)


def by_parts(count: int, size: int) -> pytest.MarkDecorator:
    """Makes a test of each part of so many cases; it may take two minutes for each of them."""
    late = pytest.mark.timeout(240 + 120 * min(size, count))
    parts = [range(first, min(first + size, count)) for first in range(0, count, size)]
    marked = [pytest.param(part, id=f"from-{part.start}", marks=late) for part in parts]
    return pytest.mark.parametrize("numbers", marked)


@dataclass(frozen=True)
class World:
    """What is harmed: an index of most clips, with a card and judged queries.

    Attributes:
        before: what is right of it.
        full: what is right once all clips are indexed.
    """

    videos: Path
    labels: Path
    base: Path
    before: "Library"
    full: "Library"

    def copy(self, to: Path) -> Path:
        """A copy of the index."""
        shutil.rmtree(to, ignore_errors=True)
        return shutil.copytree(self.base, to)

    def some(self) -> list[Path]:
        """Indexed clips that `remove` takes away."""
        return sorted(self.videos.glob("*.mp4"))[1:_INDEXED:3]

    def half(self) -> list[Path]:
        """Indexed clips and new ones, of which some are removed by `remove` and some are not."""
        return sorted(self.videos.glob("*.mp4"))[::2]


@dataclass(frozen=True)
class Library:
    """All that an index gives: its rows, see `contents`, and its answers, see `ask`."""

    rows: tuple[list, ...]
    answers: Answers


def build(root: Path) -> World:
    """Make clips, an index of several small files with deletions, and a card, if not there yet."""
    videos, base, full = root / "videos", root / "base", root / "full"
    labels, ready = root / "labels.csv", root / "ready"
    if ready.exists():
        return World(videos, labels, base, library(base), library(full))
    videos.mkdir(parents=True)
    clips = [videos / f"{number:02}.mp4" for number in range(_CLIPS)]
    lines = []
    for number, clip in enumerate(clips):
        first, second = _NAMES[number % 6], _NAMES[(number + 1 + number // 6 % 5) % 6]
        coloured(clip, [first, first, first, second] * 2, seconds=0.6, rate=5, size=(32, 32))
        said = f"The password of {clip.stem} is swordfish"
        clip.with_suffix(".srt").write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{said}\n")
        for again in range(_LABELS):
            # A few first hits are wrong and look it, or there would be nothing to learn.
            sure = again % 3 > 0
            query = f"{first} {first} {first} {second}" if sure else f"{first} black"
            right = clip if sure else clips[number - 2]
            lines.append(f"{query} {number} {again},{right}\n")
    labels.write_text("query,video\n" + "".join(lines))
    index(base, clips[: _INDEXED - 3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_search, "SCANNED", 10)
        assert index_vectors(Tables(str(base)))
    # Some deletions, and files that no compaction has joined.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "compact", lambda self: None)
        remove([clips[0], clips[4]], db=base)
        index(base, clips[:_INDEXED])
    _judge(base, clips[0])  # before the card: who calibrates again learns from the same
    calibrate(labels, db=base, skip_unknown=True, date="2026-11-22")
    assert (base / "trust.json").exists()
    shutil.copytree(base, full)
    index(full, [videos])
    ready.touch()
    return World(videos, labels, base, library(base), library(full))


def index(
    db: Path,
    paths: list[Path],
    *,
    force: bool = False,
    progress: Callable[[Indexed], None] = lambda result: None,
) -> list[str]:
    """Index clips with the tiny encoder; what it warns of."""
    made = {"model": "tiny", "window": 2.4, "frames": 4, "scenes": False}
    done = ingest_all(paths, db=db, workers=1, force=force, progress=progress, **made)
    assert not done.failed, done.failed
    return done.warnings


def library(db: Path) -> Library:
    """What an index gives."""
    answers, told = ask(db)
    assert told == set(), told
    return Library(contents(db), answers)


def ask(db: Path) -> tuple[Answers, set[str]]:
    """Hits of each query, and what is said of damage."""
    searcher = open_index(db)
    answers: Answers = {}
    told: set[str] = set()
    for query in QUERIES:
        answer = searcher.search(query, limit=50, per_video=9, merge_copies=False)
        answers[query] = [
            (hit.path.name, hit.start, hit.end, hit.score)
            # Those of words need no card.
            + ((hit.probability, hit.plausible) if hit.frames else (None, None))
            for hit in answer.hits
        ]
        told |= {line for line in answer.warnings if any(mend in line for mend in _MENDS)}
    return answers, told


def strange(answers: Answers, *rights: "Library") -> list[Any]:
    """Hits that no right index gives, percentages aside."""
    known = {query: {tuple(h[:4]) for r in rights for h in r.answers[query]} for query in QUERIES}
    return [h for query, hits in answers.items() for h in hits if tuple(h[:4]) not in known[query]]


def videos_in(answers: Answers, *, words: bool = True) -> set[str]:
    """Names of the videos that every query has found, or every one that asks for no words."""
    asked = [hits for query, hits in answers.items() if words or query != SAID]
    return set.intersection(*({hit[0] for hit in hits} for hits in asked))


def plain(answers: Answers) -> Answers:
    """Hits without percentages, as of an index without a card."""
    return {query: [hit[:4] for hit in hits] for query, hits in answers.items()}


def names_fix(text: str) -> bool:
    """Whether a sentence says what to do."""
    return any(word in text for word in ("`sureshot ", "--db", "again", "disk is full", "upgrade"))


def check(db: Path) -> str:
    """What `status --check` says: ``sound``, ``told``, or what is wrong with how it says it.

    What only the next change of the index clears away counts as sound.
    """
    for mend in (mends := fixes_of(db)):
        if not names_fix(mend):
            return f"no mend: {mend}"
    return "told" if mends else "sound"


def fixes_of(db: Path) -> list[str]:
    """The mends that `status --check` names, or the error that it ends with."""
    try:
        faults = find_faults(str(db))
    except SureshotError as error:
        return [str(error)]
    return [f.fix for f in faults if not any(part in f.what for part in _HARMLESS)]


def differences(db: Path, right: Library) -> str:
    """How an index differs from what is right, percentages aside where it has no card."""
    try:
        answers, told = ask(db)
        rows = contents(db)
    except SureshotError as error:
        return f"cannot be searched: {error}"
    wanted = right.answers
    if not (db / "trust.json").exists():
        answers, wanted = plain(answers), plain(wanted)
    if answers != wanted:
        return f"other answers, told {told}"
    if len(rows) != len(right.rows):
        return "no table of lines"
    for name, here, there in zip(("videos", "windows", "lines"), rows, right.rows, strict=True):
        if here != there:
            return f"other {name}: {len(here)} rows, right are {len(there)}"
    return "; ".join(told)


class Outcomes(Counter):
    """How often cases of each kind ended in each way, and what was wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def note(self, kind: str, outcome: str) -> None:
        """Count a case."""
        self[f"{kind}: {outcome}"] += 1

    def fail(self, kind: str, why: str) -> None:
        """Count a case that ended as none may."""
        self.note(kind, "WRONG")
        self.wrong.append(f"{kind}: {why}")


def healed(db: Path, world: World, kind: str, outcomes: Outcomes) -> bool:
    """Check an index after harm, index all clips again and compare; whether all is right."""
    said = check(db) if Store.exists(db) else "none"
    if said.startswith("no mend"):
        outcomes.fail(kind, f"check: {said}")
        return False
    try:
        index(db, [world.videos])
    except SureshotError as error:
        outcomes.fail(kind, f"check: {said}; next index: {error}")
        return False
    wrong = differences(db, world.full)
    after = check(db)
    if wrong or after != "sound":
        outcomes.fail(kind, f"check: {said}; after index: {wrong}; check: {after}")
        return False
    outcomes.note(kind, f"{said}, then exact")
    return True


def _judge(db: Path, clip: Path) -> None:
    from sureshot.library.labels import append, labels_of_index
    from tests.judged import label

    for number in range(12):
        append(labels_of_index(str(db)), label(f"red {number}", [clip]))
