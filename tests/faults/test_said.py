"""What people said of their index, right or wrong or left out, outlives kills and full disks."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.library.indexing import index as ingest_all
from sureshot.library.labels import labels_of_index, read_labels
from sureshot.store.index import Store
from tests.faults.doom import KILLED
from tests.faults.verbs import JUDGED, VERBS, act
from tests.faults.world import (
    SEED,
    Library,
    Outcomes,
    World,
    ask,
    by_parts,
    cases,
    differences,
    index,
    library,
    names_fix,
    plain,
)
from tests.processes import finish, start

_CASES = cases(1, 32)
_ABOUT = {"judge": 0.15, "remove --exclude": 0.1}  # of work, see `Doom`
_VERBS = tuple(_ABOUT)


@pytest.fixture(scope="module")
def undisturbed(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    """What each verb leaves that nobody disturbs; all clips are indexed after it."""
    found = {}
    for verb in _VERBS if _CASES > 1 else _VERBS[:1]:
        db = world.copy(tmp_path_factory.mktemp("undisturbed") / "index")
        VERBS[verb](world, db)
        index(db, [world.videos])
        found[verb] = library(db)
    return found


def wrong_with_judgements(db: Path, world: World, right: Library) -> Iterator[str]:
    """What is wrong with an index whose judging was broken off."""
    known = [label.query for label in read_labels(labels_of_index(str(world.base)))]
    kept = [label.query for label in read_labels(labels_of_index(str(db)))]
    if kept not in (known, [*known, JUDGED]):
        yield f"other judgements: {kept}"
    answers, told = ask(db)
    if told or plain(answers) != plain(world.before.answers):
        yield f"other answers, told {told}"
    if any(hit[4] is None for hit in answers["red red red green"]):
        yield "no percentages"
    VERBS["judge"](world, db)
    index(db, [world.videos])
    yield differences(db, right)


def wrong_with_exclusions(db: Path, world: World, right: Library) -> Iterator[str]:
    """What is wrong with an index when leaving videos out was broken off."""
    left_out = Store.open(db).excluded()
    if left_out not in ((), tuple(sorted(map(str, world.some())))):
        yield f"left out: {left_out}"
    index(db, [world.videos])
    yield differences(db, right if left_out else world.full)
    if left_out:
        ingest_all([world.videos], db=db, workers=1, include=left_out)
        yield differences(db, world.full)


@by_parts(_CASES, 16)
def test_what_was_said_outlives_kills_and_full_disks(
    tmp_path: Path,
    world: World,
    undisturbed: dict[str, Library],
    outcomes: Outcomes,
    numbers: range,
) -> None:
    out = tmp_path / "out"
    for number in numbers:
        draw = random.Random(f"said/{SEED}/{number}")
        verb, db = _VERBS[number % len(_VERBS)], world.copy(tmp_path / "index")
        # A case of two kills, one of two lets files grow to a size.
        at = draw.uniform(1e-4, _ABOUT[verb]) if number // 2 % 2 == 0 else 0.0
        most = None if at else int(2 ** draw.uniform(0, 17))
        (code,) = finish(start(act, verb, world, db, None, out, most, at))
        ended = json.loads(out.read_text()) if code == 0 else {}
        kind = f"{verb} {'killed' if code in KILLED else 'ended' if at else 'without room'}"
        try:
            if "trace" in ended or not names_fix(ended.get("error", "again")):
                wrong = str(ended)
            elif verb == "judge":
                wrong = "; ".join(wrong_with_judgements(db, world, undisturbed[verb])).strip("; ")
            else:
                wrong = "; ".join(wrong_with_exclusions(db, world, undisturbed[verb])).strip("; ")
        except SureshotError as error:
            wrong = str(error)
        if wrong:
            outcomes.fail(kind, f"case {number}: {wrong}")
        else:
            outcomes.note(kind, "exact")
