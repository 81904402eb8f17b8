"""Random mutants of the source, and whether a test notices each of them.

    pip install "cosmic-ray==8.7.0" coverage psutil pytest-cov
    python -m pytest -n 2 --cov=sureshot --cov-context=test --cov-report=
    python -m benchmarks.mutants OUT.csv --count 300 --seed 0

A mutant is one operator of cosmic-ray at one place of metrics, trust, store, models/systems or
library; type annotations and what does not compile are left out. The tests that run the mutated
line, those that run least else first, have 60 seconds of a processor to fail. The source is changed
on disk while they run and restored after, so run this in a clone of its own. ``OUT.csv`` gets a row
per mutant as soon as it is decided, and a run that was stopped continues there. ``--part 1/2`` and
``2/2`` share the work of two clones.
"""

import argparse
import ast
import csv
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import coverage
import psutil
import pytest
import torch  # noqa: F401 (once, before the forks)
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

SOURCE = Path("src/sureshot")
ROOMS = ("metrics", "trust", "store", "models/systems", "library")
SECONDS = 60  # of a processor for the tests of one mutant
MOST = 400  # of them
OPTIONS = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout=150")
SKIPPED = ("VariableReplacer", "VariableInserter")  # operators that need arguments
FIELDS = ("module", "line", "operator", "occurrence", "outcome")
Mutant = tuple[str, int, str, int]


def mutants(module: str) -> Iterator[Mutant]:
    """All mutants of one module."""
    text = (SOURCE / module).read_text("utf-8")
    typed = set(annotations(text))
    tree = get_ast(text)
    for name in plugins.operator_names():
        short = name.removeprefix("core/")
        if short in SKIPPED:
            continue
        operator, occurrence = plugins.get_operator(name)(), 0
        for node in ast_nodes(tree):
            for (line, column), _ in operator.mutation_positions(node):
                if (line, column) not in typed:
                    yield module, line, short, occurrence
                occurrence += 1


def annotations(text: str) -> Iterator[tuple[int, int]]:
    """Positions of everything within type annotations."""
    for node in ast.walk(ast.parse(text)):
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(each, ast.expr):
                lines = range(each.lineno, (each.end_lineno or each.lineno) + 1)
                last = each.end_col_offset or 0
                for line in lines:
                    start = each.col_offset if line == each.lineno else 0
                    yield from ((line, c) for c in range(start, last if line == lines[-1] else 200))


def mutated(mutant: Mutant) -> str | None:
    """The module's text with a mutant in it; None if that does not compile."""
    module, _, operator, occurrence = mutant
    text = (SOURCE / module).read_text("utf-8")
    changed = mutate_code(text, plugins.get_operator(f"core/{operator}")(), occurrence)
    try:
        compile(changed, module, "exec")
    except SyntaxError:
        return None
    return str(changed)


def drawn(count: int, seed: int) -> list[Mutant]:
    """``count`` mutants, each of all as likely as any other."""
    modules = sorted(
        path.relative_to(SOURCE).as_posix()
        for room in ROOMS
        for path in (SOURCE / room).glob("*.py")
    )
    found = [mutant for module in modules for mutant in mutants(module)]
    print(f"{len(found)} mutants, {count} drawn with seed {seed}")
    random.Random(seed).shuffle(found)
    return list(islice((mutant for mutant in found if mutated(mutant) is not None), count))


class Tests:
    """Which tests run a line, from the contexts in ``.coverage``."""

    def __init__(self) -> None:
        data = coverage.CoverageData()
        data.read()
        self.lines = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
        self.width = Counter(
            test for lines in self.lines.values() for tests in lines.values() for test in tests
        )

    def of(self, module: str, line: int) -> list[str]:
        """Tests that run a line, those that run least else first.

        A line that runs at import belongs to all tests of its module.
        """
        lines = self.lines.get(str((SOURCE / module).resolve()), {})
        found = set(lines.get(line, []))
        if "" in found:
            found.update(test for tests in lines.values() for test in tests)
        ordered = sorted(found - {""}, key=lambda test: (self.width[test], test))
        return list(dict.fromkeys(test.split("|")[0] for test in ordered))


def outcome(mutant: Mutant, tests: list[str]) -> str:
    """Whether the tests fail with a mutant in place."""
    if not tests:
        return "not covered"
    path = SOURCE / mutant[0]
    text = path.read_text("utf-8")
    path.write_text(mutated(mutant) or text, "utf-8")
    child = os.fork()  # what is imported already need not be imported again
    if not child:
        os.setsid()
        with open(os.devnull, "w") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        os._exit(pytest.main([*OPTIONS, *tests[:MOST]]))
    try:
        return waited(child)
    finally:
        path.write_text(text, "utf-8")


def waited(child: int) -> str:
    """How a run of tests ended; one that is not done in time is ended."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "survived" if status == 0 else "killed"
        if sum(psutil.Process(child).cpu_times()[:4]) > SECONDS:  # children that ended included
            break
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "survived"


def main() -> None:
    """Decide the mutants that the file does not have yet, and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", help="K/N: this clone's share")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    known: dict[Mutant, str] = {}
    if options.out.exists():
        with options.out.open(newline="") as file:
            for row in csv.DictReader(file):
                key = row["module"], int(row["line"]), row["operator"], int(row["occurrence"])
                known[key] = row["outcome"]
    tests = Tests()
    for mutant in drawn(options.count, options.seed)[part - 1 :: parts]:
        if mutant in known:
            continue
        known[mutant] = outcome(mutant, tests.of(mutant[0], mutant[1]))
        new = not options.out.exists()
        with options.out.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([FIELDS] * new + [(*mutant, known[mutant])])
        print(*mutant, known[mutant], flush=True)
    print(Counter(known.values()))


if __name__ == "__main__":
    main()
