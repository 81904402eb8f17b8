"""The one indexing run that a server has at a time, and orders to it."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from sureshot.errors import SureshotError
from sureshot.web.desk import Served
from sureshot.web.replies import BusyError, UnknownError

Order = Literal["pause", "resume", "cancel"]
_GOING = ("running", "paused")
_NICE = 10  # of the run: whatever else this machine does comes first
_PATIENCE = 20.0  # seconds that a run has to end when the server does


class Jobs:
    """Indexing from the page.

    Args:
        served: the index.
        ended: called when a run has ended.
        nice: how far a run steps back for everything else, as the command of that name has it.
    """

    def __init__(
        self, served: Served, ended: Callable[[], None] = lambda: None, *, nice: int = _NICE
    ) -> None:
        self._served = served
        self._ended = ended
        self._nice = nice
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._state: dict[str, Any] | None = None
        self.version = 0

    def state(self) -> dict[str, Any]:
        """How far the last run is, as plain values for JSON; ``job`` is null before the first."""
        return {"job": self._state}

    def start(self, folders: Sequence[Path]) -> None:
        """Begin to index.

        Raises:
            BusyError: another run goes on.
            SureshotError: no process can be started.
        """
        with self._lock:
            if self._state is not None and self._state["state"] in _GOING:
                raise BusyError("Videos are being indexed already; wait for that, or cancel it.")
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "sureshot.web.indexer"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for the server, which ends it in order
                )
            except OSError as error:
                raise SureshotError(f"Indexing does not start: {error.strerror}.") from None
            self._process = process
            names = [os.fspath(folder) for folder in folders]
            self._set(
                {
                    "state": "running",
                    "folders": names,
                    "said": "looking for videos",
                    "share": 0.0,
                    "current": "",
                    "failed": [],
                    "error": None,
                }
            )
            served = self._served
            asked = {"db": served.db, "model": served.model, "device": served.device}
            self._write(json.dumps({"folders": names, "nice": self._nice, **asked}))
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def order(self, order: Order) -> None:
        """Have the run pause, go on or end.

        Raises:
            UnknownError: there is none.
        """
        with self._lock:
            if self._state is None or self._state["state"] not in _GOING:
                raise UnknownError("Nothing is being indexed.")
            self._write(order)
            if order != "cancel":
                self._set({"state": "paused" if order == "pause" else "running"})

    def close(self) -> None:
        """End the run; what it has written stays."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _write(self, line: str) -> None:
        """Tell the process; of one that has ended the reader hears."""
        process = self._process
        with contextlib.suppress(OSError, ValueError):
            if process is not None and process.stdin is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            values = json.loads(line)
            del values["schema"]
            with self._lock:
                # What it says of the time before an order must not undo the order.
                if self._state is not None and values["state"] == "running":
                    values["state"] = self._state["state"]
                self._set(values)
        process.wait()
        process.stdout.close()
        with self._lock, contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        with self._lock:
            if self._state is not None and self._state["state"] in _GOING:
                told = "Indexing ended without a word; index the folder again to go on."
                self._set({"state": "failed", "error": {"code": "system", "message": told}})
        self._ended()

    def _set(self, values: dict[str, Any]) -> None:
        state = (self._state or {}) | values
        if values.get("error"):
            state["said"] = values["error"]["message"]
        self._state = state
        self.version += 1
