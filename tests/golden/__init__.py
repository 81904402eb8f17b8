"""Reference numbers, made by running the public code of the papers on small fixed inputs.

Each file tells its source (repository and commit), its conventions, inputs and outputs. A test that
asks for the fixture ``golden`` has the marker of that name and runs once on every folder of
`folders`. It takes all sizes from the files, so that numbers which nobody here has seen can be put
in their place.
"""

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "SURESHOT_GOLDEN"


def folders() -> list[Path]:
    """The folders that SURESHOT_GOLDEN names, separated as in PATH, or this one.

    Raises:
        FileNotFoundError: one of them is not there or holds no numbers.
    """
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    for folder in named:
        if not any(folder.glob("*.json")):
            raise FileNotFoundError(f"{VARIABLE} names {folder}, where no numbers are.")
    return named or [Path(__file__).parent]


def numbers(path: Path) -> dict[str, Any]:
    """A file of reference numbers; "nan", "inf" and "-inf" become floats."""
    return _numbers(json.loads(path.read_text("utf-8")))


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return float(value) if value in ("nan", "inf", "-inf") else value
