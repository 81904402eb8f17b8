"""Indexing in a process of its own, so that no search waits for it: ``python -m`` this module.

The first line of its input is JSON: what to index. Each later line is ``pause``, ``resume`` or
``cancel``; the end of the input cancels too, so the process never outlives its server. Each line
that it prints is JSON: its progress. What is indexed when it ends is kept.
"""

import json
import os
import sys
import threading
import time
from dataclasses import replace
from typing import Any

from sureshot.errors import SureshotError
from sureshot.library.index_result import Indexed, IndexProgress
from sureshot.library.indexing import index
from sureshot.library.results import json_text, plain_value
from sureshot.text import printable

_MOST = 200  # failures that are listed
_EVERY = 0.2  # seconds between two lines
_NICE = 10  # whatever else this machine does comes first


class Worker:
    """An indexing run that takes orders from standard input and reports to standard output."""

    def __init__(self) -> None:
        self._progress = IndexProgress()
        self._resumed = threading.Event()
        self._resumed.set()
        self._is_cancelled = False
        self._printed = time.monotonic()
        self._paused = 0.0  # seconds
        self._share = 0.0  # of the work that is done

    def run(self) -> None:
        """Index what the first line says."""
        request = json.loads(sys.stdin.readline())
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            result = index(request.pop("folders"), **request, progress=self._report_due)
        except SureshotError as error:
            self._print({"state": "failed", "error": {"code": error.code, "message": str(error)}})
            return
        state, begins = "done", ""
        if result.interrupted:
            state, begins = "cancelled", "Cancelled; what is indexed is kept. "
        summary = "No videos here. Single photos are not indexed."
        if result.found or result.failed or result.interrupted:
            summary = result.summary
        text = " ".join([begins + summary, *result.warnings])
        share = self._share if result.interrupted else 1.0
        self._print({"state": state, "text": text, "share": share}, result)

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "pause":
                self._resumed.clear()
            elif line.strip() == "resume":
                self._resumed.set()
            elif line.strip() == "cancel":
                break
        self._is_cancelled = True
        self._resumed.set()

    def _report_due(self, result: Indexed) -> None:
        if not self._resumed.is_set():
            began = time.monotonic()
            self._report(result, "paused")
            self._resumed.wait()
            self._paused += time.monotonic() - began
        if self._is_cancelled:
            raise KeyboardInterrupt
        if time.monotonic() - self._printed >= _EVERY:
            self._report(result, "running")

    def _report(self, result: Indexed, state: str) -> None:
        self._printed = time.monotonic()
        result = replace(result, elapsed=result.elapsed - self._paused)
        now = self._progress
        now.update(result)
        self._share = round(now.done / max(now.total, 1), 4)
        current = "" if result.current is None else printable(result.current)
        values = {"state": state, "text": now.text + now.left, "share": self._share}
        self._print({**values, "current": current}, result)

    def _print(self, values: dict[str, Any], result: Indexed | None = None) -> None:
        if result is not None:
            values["failures"] = len(result.failed)
            values["failed"] = plain_value("failed", result.failed[-_MOST:])
        sys.stdout.write(json_text(values, ascii_only=True) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICE)
    Worker().run()
