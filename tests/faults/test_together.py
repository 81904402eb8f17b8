"""Two to four processes at one index: what each gives is right, or it says what to do."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

from tests.faults.verbs import act
from tests.faults.world import (
    SEED,
    Outcomes,
    World,
    by_parts,
    cases,
    healed,
    names_fix,
    strange,
    videos_in,
)
from tests.processes import barrier, finish, start

VERBS = (
    "index", "index --force", "remove", "search", "status --check", "calibrate", "reset",
    "describe",
)  # fmt: skip
_PAIRS = list(itertools.combinations_with_replacement(VERBS, 2))
_TAKING = {"remove", "reset"}
_CHANGING = {"index", "index --force", *_TAKING}
_RIGHT_ERRORS = ("is indexed; nothing was removed", "is not in the index", "needed for percentages")
_CASES = cases(1, 60)
_LATEST = 1.0  # seconds after the first at which one of several begins


def wrong_with(verb: str, beside: set[str], ended: dict[str, Any], world: World) -> str:
    """What is wrong with how a verb has ended beside others; empty if nothing is."""
    if "gave" not in ended:
        told = ended.get("error", "")
        fine = names_fix(told) or any(words in told for words in _RIGHT_ERRORS)
        fine = fine and "damaged" not in told  # nothing is
        return "" if fine else str(ended)
    gave = ended["gave"]
    if verb == "search":
        if odd := strange(gave["answers"], world.before, world.full):
            return f"strange hits {odd[:3]}"
        lost = videos_in(world.before.answers) - videos_in(gave["answers"])
        if lost and not beside & _TAKING and not gave["told"]:
            return f"{lost} are not found"
    if verb == "status --check" and gave["faults"]:
        return f"false alarm: {gave['faults']}"
    if verb == "describe" and gave[0] != "red and green":
        return str(gave)
    return ""


@by_parts(_CASES, 10)
def test_processes_at_once_do_each_other_no_harm(
    tmp_path: Path, world: World, outcomes: Outcomes, numbers: range
) -> None:
    draw = random.Random(f"together/{SEED}")
    groups: list[tuple[str, ...]] = draw.sample(_PAIRS, len(_PAIRS))
    while len(groups) < _CASES:
        groups.append(tuple(draw.choice(VERBS) for _ in range(draw.choice((3, 4)))))
    for number in numbers:
        group = groups[number]
        db, kind = world.copy(tmp_path / "index"), " + ".join(sorted(group))
        if len(group) > 2:
            kind = f"{len(group)} at once"
        gate = barrier(len(group))
        outs = [tmp_path / f"out{place}" for place in range(len(group))]
        # A `reset` that begins with the others is over before they have done much.
        spread = random.Random(f"together/{SEED}/{number}")
        latest = _LATEST if len(group) > 2 and number % 2 else 0.0
        finish(
            *(
                start(act, verb, world, db, gate, out, None, 0.0, spread.uniform(0, latest))
                for verb, out in zip(group, outs, strict=True)
            )
        )
        for place, (verb, out) in enumerate(zip(group, outs, strict=True)):
            beside = {*group[:place], *group[place + 1 :]}
            ended = json.loads(out.read_text())
            if wrong := wrong_with(verb, beside, ended, world):
                outcomes.fail(kind, f"{' + '.join(group)}: {verb}: {wrong}")
            elif "error" in ended:
                outcomes.note(kind, "an error with its mend")
            out.unlink()
        if "calibrate" in group and (latest or _CHANGING & {*group}):
            # From which of the videos it learned is chance.
            (db / "trust.json").unlink(missing_ok=True)
        healed(db, world, kind, outcomes)
