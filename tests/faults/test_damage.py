"""A damaged index gives the right answer or says what to do; indexing again makes it right."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.library.calibration import calibrate
from sureshot.library.catalog import reset
from sureshot.store.checksums import FILE
from tests.faults.verbs import act
from tests.faults.world import (
    SEED,
    Library,
    Outcomes,
    World,
    ask,
    by_parts,
    cases,
    check,
    differences,
    fixes_of,
    index,
    library,
    names_fix,
    plain,
)
from tests.processes import finish, start

_CASES = cases(4, 1000)
_LARGEST = "data of windows"  # nearly all bytes of an index are in these files
_CALIBRATE = "`sureshot calibrate`"
# What messages ask for, the gentlest first.
_MENDS = ("`sureshot index FOLDER`", _CALIBRATE, "`sureshot index --force", "`sureshot reset`")


def _flip(data: bytearray, draw: random.Random) -> bytearray:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data


def _zero(data: bytearray, draw: random.Random) -> bytearray:
    size = draw.choice((64, 512, 4096))
    at = draw.randrange(len(data)) // size * size
    data[at : at + size] = bytes(len(data[at : at + size]))
    return data


def _eight(data: bytearray, draw: random.Random) -> bytearray:
    at = draw.randrange(len(data)) if draw.random() < 0.5 else max(0, len(data) - 40)
    at += draw.randrange(33) if at == len(data) - 40 else 0  # where a file of Lance has its lengths
    data[at : at + 8] = draw.choice((draw.randbytes(8), b"\xff" * 8))[: len(data) - at]
    return data


def _cut(data: bytearray, draw: random.Random) -> bytearray:
    return data[: draw.randrange(len(data))]


def _empty(data: bytearray, draw: random.Random) -> bytearray:
    return bytearray()


WAYS: dict[str, Callable[[bytearray, random.Random], bytearray] | None] = {
    "flipped bit": _flip, "eight bytes": _eight, "zeroed block": _zero, "cut short": _cut,
    "emptied": _empty, "gone": None,
}  # fmt: skip


def parts(db: Path) -> dict[str, list[Path]]:
    """Files of an index by what they are, the newest manifests apart."""
    tables = ("videos", "windows", "lines")
    found = {
        f"{folder} of {table}": sorted((db / f"{table}.lance" / folder).rglob("*.*"))
        for folder in ("data", "_transactions", "_deletions", "_indices")
        for table in tables
    }
    for table in tables:
        manifests = sorted((db / f"{table}.lance" / "_versions").glob("*.manifest"))
        found[f"newest manifest of {table}"] = manifests[:1]
        found[f"older manifests of {table}"] = manifests[1:]
        others = [db / f"{table}.lance" / FILE, *(db / f"{table}.lance").rglob("*.json")]
        found[f"checksums and hint of {table}"] = others
    return {name: files for name, files in found.items() if files} | {
        "card": [db / "trust.json"],
        "judgements": [db / "judged.jsonl"],
    }


def damage(db: Path, draw: random.Random) -> tuple[str, str]:
    """Damage one file, every third time one of windows; of which part, and what was done where."""
    found = parts(db)
    part = _LARGEST if draw.random() < 0.33 else draw.choice(list(found))
    files = found[part]
    path, how = draw.choice(files), draw.choice(list(WAYS))
    way = WAYS[how]
    if way is None:
        path.unlink()
    else:
        path.write_bytes(way(bytearray(path.read_bytes()), draw))
    return part, f"{how} in {path.relative_to(db)}"


def searched(db: Path, world: World) -> str:
    """How searches of a damaged index end; begins with WRONG where they may not end so."""
    try:
        answers, told = ask(db)
    except SureshotError as error:
        return "an error with its mend" if names_fix(str(error)) else f"WRONG error: {error}"
    except BaseException as error:
        return f"WRONG trace: {type(error).__name__}: {error}"
    right = world.before.answers
    if answers == right:
        return "exact and told" if told else "exact"
    if told:
        return "told what is left out"
    if not (db / "trust.json").exists() and answers == plain_hits(right):
        return "exact, without percentages"
    return "WRONG: other answers without a word"


def plain_hits(right: dict) -> dict:
    """Hits as they are where nothing was calibrated."""
    return {query: [(*h, None, None) for h in hits] for query, hits in plain(right).items()}


def mend(named: str, db: Path, world: World) -> None:
    """Do what a message asks for."""
    if named == "`sureshot reset`":
        reset(db)
    if named == _CALIBRATE:
        calibrate(world.labels, db=db, skip_unknown=True, date="2026-11-22")
    else:
        index(db, [world.videos], force="--force" in named)


def made_right(db: Path, world: World, right: dict[bool, Library]) -> str:
    """Index again, then do what messages ask for until all is right; what it took.

    Args:
        db: the damaged index.
        world: what was damaged.
        right: what is right, by whether the index was calibrated again.
    """
    steps = [_MENDS[0]]
    while True:
        try:
            mend(steps[-1], db, world)
            said = differences(db, right[_CALIBRATE in steps])
            said = "; ".join(filter(None, (said, *fixes_of(db))))
        except SureshotError as error:
            said = str(error)
        except BaseException as error:
            return f"WRONG trace: {type(error).__name__}: {error}"
        if not said:
            return f"right after {', '.join(steps)}"
        asked = [named for named in _MENDS if named in said and named not in steps]
        if not asked:
            return f"WRONG after {', '.join(steps)}: {said}"
        steps.append(asked[0])


@pytest.fixture(scope="module")
def right(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Library]:
    """What is right once all is mended, by whether it was calibrated again."""
    again = world.copy(tmp_path_factory.mktemp("again") / "index")
    for named in (_MENDS[0], _CALIBRATE):
        mend(named, again, world)
    return {False: world.full, True: library(again)}


def try_case(number: int, world: World, right: dict[bool, Library], db: Path, out: Path) -> None:
    """Damage an index, search it and do what it says; how that went, as JSON."""
    world.copy(db)
    part, what = damage(db, random.Random(f"damage/{SEED}/{number}"))
    out.write_text(json.dumps([f"damage: {part}", what, "WRONG: ended the process"]))
    found, said = searched(db, world), check(db)
    if part.endswith("of videos") and found.startswith("an error"):
        found = f"WRONG: {found}, though all windows are there"
    went = f"{found}; check: {said}"
    if "WRONG" not in went and not said.startswith("no mend"):
        went = f"{found}; {made_right(db, world, right)}"
    elif "WRONG" not in went:
        went = f"WRONG: {went}"
    out.write_text(json.dumps([f"damage: {part}", what, went]))


def deadly(data: bytes) -> bytes:
    """A file of Lance that asks the system for more memory than there is, which ends a process."""
    return data[:-16] + b"\xff" * 4 + data[-12:]


@pytest.mark.parametrize(
    "table",
    ["windows", *(pytest.param(name, marks=pytest.mark.slow) for name in ("videos", "lines"))],
)
def test_no_verb_is_ended_by_a_file_and_index_makes_it_right(
    tmp_path: Path, world: World, table: str
) -> None:
    db, out = world.copy(tmp_path / "index"), tmp_path / "out"
    path = max((db / f"{table}.lance" / "data").iterdir(), key=lambda path: path.stat().st_size)
    path.write_bytes(deadly(path.read_bytes()))
    for verb in ("search", "status --check", "describe", "calibrate", "remove", "index"):
        assert finish(start(act, verb, world, db, None, out)) == [0]
        ended = json.loads(out.read_text())
        said = ended.get("error", "")
        assert "trace" not in ended and (names_fix(said) or not said), (verb, ended)
    assert not differences(db, world.full)
    assert check(db) == "sound"


@by_parts(_CASES, 20)
def test_a_damaged_index_gives_the_right_answer_or_says_what_to_do(
    tmp_path: Path,
    world: World,
    right: dict[bool, Library],
    outcomes: Outcomes,
    numbers: range,
) -> None:
    for number in numbers:
        out = tmp_path / "out"
        codes = finish(start(try_case, number, world, right, tmp_path / "index", out))
        kind, what, went = json.loads(out.read_text())
        if "WRONG" in went or codes != [0]:
            outcomes.fail(kind, f"case {number}, {what}: {went}, {codes}")
        else:
            outcomes.note(kind, went)
