"""Reference numbers, made by running the public code of the papers on small fixed inputs.

Each file tells its source (repository and commit), its conventions, inputs and outputs.
"""

import json
from pathlib import Path
from typing import Any


def golden(name: str) -> dict[str, Any]:
    """One file of reference numbers; "nan", "inf" and "-inf" become floats."""
    return _numbers(json.loads((Path(__file__).parent / f"{name}.json").read_text("utf-8")))


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return float(value) if value in ("nan", "inf", "-inf") else value
