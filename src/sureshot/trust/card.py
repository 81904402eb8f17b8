"""The file of a calibration card: its name, and how it is written."""

import contextlib
import os
from pathlib import Path

from sureshot.errors import SureshotError
from sureshot.trust.calibration import Calibration

FILE = "trust.json"  # in the folder of an index or of a checkpoint


def save(card: Calibration, path: Path) -> None:
    """Write a card, whole or not at all; one that lay there before is replaced.

    Raises:
        SureshotError: the card allows no percentages, or it cannot be written.
    """
    if card.refused:
        raise SureshotError(f"This calibration is not kept: {card.refused}")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as opened:
            opened.write(card.to_json() + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        reason = (error.strerror or str(error)).lower()
        raise SureshotError(f"The calibration card {path} cannot be written: {reason}.") from None
