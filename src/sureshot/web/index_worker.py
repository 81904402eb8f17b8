"""Indexing in a process of its own, so that no search waits for it: ``python -m`` this module.

The first line that it reads is JSON: what to index. Each later one is an order: ``pause``,
``resume`` or ``cancel``; the end of its input is one to cancel, so that it never outlives its
server. Each line that it prints is JSON: how far it is. What is written when it ends stays.
"""

import json
import os
import sys
import threading
import time
from typing import Any

from sureshot.errors import SureshotError
from sureshot.library.indexing import index
from sureshot.library.results import Headway, Indexed, json_text, reasons
from sureshot.text import printable

_EVERY = 0.2  # seconds between two lines
_NAMED = 200  # failures that are named


class Worker:
    """An indexing run that takes orders.

    Args:
        orders: text stream that orders come from.
        out: text stream that says how far it is.
    """

    def __init__(self, orders: Any, out: Any) -> None:
        self._orders = orders
        self._out = out
        self._headway = Headway()
        self._go_on = threading.Event()
        self._go_on.set()
        self._cancelled = False
        self._began = self._told = time.monotonic()
        self._paused = 0.0

    def run(self) -> None:
        """Do what the first line says."""
        asked = json.loads(self._orders.readline())
        if asked["nice"] and hasattr(os, "nice"):
            os.nice(asked["nice"])
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            result = index(
                asked["folders"],
                db=asked["db"],
                model=asked["model"],
                device=asked["device"],
                observe=self._observe,
            )
        except SureshotError as error:
            self._say({"state": "failed", "error": {"code": error.code, "message": str(error)}})
            return
        state = "cancelled" if result.interrupted else "done"
        self._say({"state": state, "said": result.summary, "share": 1.0, **_failures(result)})

    def _listen(self) -> None:
        for line in self._orders:
            if line.strip() == "pause":
                self._go_on.clear()
            elif line.strip() == "resume":
                self._go_on.set()
            elif line.strip() == "cancel":
                break
        self._cancelled = True
        self._go_on.set()

    def _observe(self, result: Indexed) -> None:
        """Say how far it is, and do what was ordered."""
        if not self._go_on.is_set():
            began = time.monotonic()
            self._tell(result, "paused")
            self._go_on.wait()
            self._paused += time.monotonic() - began
        if self._cancelled:
            raise KeyboardInterrupt
        if time.monotonic() - self._told >= _EVERY:
            self._tell(result, "running")

    def _tell(self, result: Indexed, state: str) -> None:
        self._told = time.monotonic()
        result.elapsed -= self._paused
        now = self._headway
        now.update(result)
        left = now.left(self._told - self._began - self._paused)
        values = {
            "state": state,
            "said": now.text + left,
            "share": round(now.done / max(now.total, 1), 4),
            "current": "" if result.current is None else printable(result.current),
        }
        self._say(values | _failures(result))

    def _say(self, values: dict[str, Any]) -> None:
        self._out.write(json_text(values, ascii_only=True) + "\n")
        self._out.flush()


def _failures(result: Indexed) -> dict[str, Any]:
    return {"failed": reasons(result.failed[-_NAMED:])}


if __name__ == "__main__":
    Worker(sys.stdin, sys.stdout).run()
