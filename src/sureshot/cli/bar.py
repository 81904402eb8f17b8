"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_EVERY = 10.0  # seconds between lines where there is no terminal


class Bar(AbstractContextManager["Bar"]):
    """Shows what is being done, how much of it is done, and how long the rest will take.

    Args:
        err: where it is shown.
    """

    def __init__(self, err: "Console") -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from sureshot.cli.show import is_live

        self._err = err
        self._what = ""
        self._began = self._printed = time.monotonic()
        self._bar: Progress | None = None
        if is_live(err):
            columns = BarColumn(20), TextColumn("{task.description}"), TimeRemainingColumn(True)
            self._bar = Progress(*columns, console=err, transient=True)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Show a state of the work.

        Args:
            what: the kind of thing counted; the estimate of the time left begins anew with it.
            done: how many are done.
            total: how many there are.
            more: words behind the numbers.
        """
        text = f"{done} of {total} {what}{more}"
        now = time.monotonic()
        if what != self._what:
            self._what, self._began = what, now
            if self._bar is not None:
                self._bar.reset(self._task)
        if self._bar is not None:
            self._bar.update(self._task, description=text, total=max(total, 1), completed=done)
        elif now - self._printed >= _EVERY:
            from sureshot.cli.show import duration

            self._printed = now
            left = (now - self._began) * (total - done) / done if done else 0.0
            if left >= 1:
                text += f", about {duration(left if left < 100 else round(left / 60) * 60.0)} left"
            self._err.print(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
