"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from sureshot.text import time_left

if TYPE_CHECKING:
    from rich.console import Console

_EVERY = 10.0  # seconds between lines where there is no terminal
_WIDE, _BAR = 80, 20  # columns: from here there is room for a bar, so long


class Bar(AbstractContextManager["Bar"]):
    """Shows what is being done, how much of it is done, and how long the rest will take.

    Args:
        err: where it is shown.
        first: what is shown until there is more to say.
    """

    def __init__(self, err: "Console", first: str = "") -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from sureshot.cli.show import is_live

        self._err = err
        self._what = ""
        self._began = self._printed = time.monotonic()
        self._bar: Progress | None = None
        if is_live(err):
            columns = BarColumn(_BAR), TextColumn("{task.description}"), TimeRemainingColumn(True)
            # Without room for all of it the words say more than the bar.
            shown = columns if err.width >= _WIDE else columns[1:]
            self._bar = Progress(*shown, console=err, transient=True)
            self._task = self._bar.add_task(first, total=None)
            self._bar.start()

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self._began

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Show how many of a kind are done.

        Args:
            what: the kind of thing counted; the estimate of the time left begins anew with it.
            done: how many are done.
            total: how many there are.
            more: words behind the numbers.
        """
        if what != self._what:
            self._what, self._began = what, time.monotonic()
            if self._bar is not None:
                self._bar.reset(self._task)
        self.show(f"{done} of {total} {what}{more}", done, total)

    def line(self, text: str) -> None:
        """Print a sentence that stays."""
        from sureshot.library.printed import as_typed

        self._err.print(as_typed(text))

    def show(self, text: str, done: int, total: int, free: int = 0) -> None:
        """Show a state of the work.

        Args:
            text: the state in words.
            done: how much is done, in any unit.
            total: how much there is.
            free: how much of what is done cost no time.
        """
        if self._bar is not None:
            self._bar.update(self._task, description=text, total=max(total, 1), completed=done)
        elif time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            self._err.print(text + time_left(self.elapsed, done - free, total - free))

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
