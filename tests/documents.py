"""Console blocks of the documents: what they say is typed, and what they say is printed.

A block is run if this comment stands above it, and only then::

    <!-- run on NAME -->

`tests/test_documents.py` says what NAME may be. A line ``…`` stands for any lines. Numbers may
differ as they do from one processor to another: see `same_line`.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"(?:<!-- run on ([\w -]+) -->\n)?```console\n(.*?)```", re.S)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FREE = ("took ", "about ")  # in lines with these words numbers are this machine's


@dataclass(frozen=True)
class Step:
    """A command of a block and the lines below it."""

    command: str
    printed: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        """What is typed after ``sureshot``; empty for another program."""
        words = shlex.split(self.command, comments=True)
        return words[1:] if words and words[0] == "sureshot" else []


@dataclass(frozen=True)
class Block:
    """A console block of a document.

    Attributes:
        document: the file.
        sandbox: where it is run; empty if it is only read.
        text: between the fences.
    """

    document: Path
    sandbox: str
    text: str

    @property
    def steps(self) -> list[Step]:
        """Its commands in order."""
        steps: list[Step] = []
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            # A command may go on in the next line, as in a shell.
            command, *printed = part.rstrip().replace("\\\n", " ").splitlines()
            steps.append(Step(command, tuple(printed)))
        return steps


def blocks(document: Path) -> list[Block]:
    """Console blocks of a document in order."""
    found = _BLOCK.finditer(document.read_text("utf-8"))
    return [Block(document, match.group(1) or "", match.group(2)) for match in found]


def renew(block: Block, printed: Sequence[str]) -> None:
    """Write what the commands of a block print today into its document."""
    pairs = zip(block.steps, printed, strict=True)
    text = "\n".join(f"$ {step.command}\n{out.rstrip()}\n" for step, out in pairs)
    old = block.document.read_text("utf-8")
    block.document.write_text(old.replace(block.text, text), "utf-8")


def differences(expected: Sequence[str], printed: Sequence[str]) -> Iterator[str]:
    """Where printed lines are not what a document shows."""
    left = [line for line in printed if line.strip()]
    wanted = [line for line in expected if line.strip()]
    while wanted:
        line = wanted.pop(0)
        if line.strip() == "…":
            if not wanted:
                return
            while left and not same_line(wanted[0], left[0]):
                left.pop(0)
            continue
        if not left:
            yield f"shown and not printed: {line}"
        elif not same_line(line, found := left.pop(0)):
            yield f"shown:   {line}\nprinted: {found}"
    yield from (f"printed and not shown: {line}" for line in left)


def same_line(shown: str, printed: str) -> bool:
    """Whether two lines say the same, but for the spaces between words and what rounding moves.

    Scores of three decimals may be 0.004 apart and percentages 2 points; other numbers are equal.
    Numbers in a line that says how long something took are free, and so are dates.
    """
    shown, printed = (_DATE.sub("today", line) for line in (shown, printed))
    if shown.startswith("Indexed "):  # how long it took depends on the machine
        shown, printed = shown.partition(") in ")[0], printed.partition(") in ")[0]
    if _NUMBER.sub("#", " ".join(shown.split())) != _NUMBER.sub("#", " ".join(printed.split())):
        return False
    if any(word in shown for word in _FREE):
        return True
    pairs = zip(_NUMBER.finditer(shown), _NUMBER.finditer(printed), strict=True)
    return all(
        abs(float(one.group()) - float(other.group())) <= _slack(shown, one) for one, other in pairs
    )


def _slack(line: str, number: re.Match[str]) -> float:
    if re.fullmatch(r"-?\d\.\d{3}", number.group()):
        return 0.004
    return 2.0 if line[number.end() :].lstrip().startswith("%") else 0.0
