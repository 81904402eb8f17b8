"""How long work reports its progress: to the terminal's bar, to the page, or nowhere."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Takes reports of long work, such as `sureshot.cli.terminal.Bar`."""

    def line(self, text: str) -> None:
        """Report a sentence that stays."""
        ...

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Report how many things are done; ``more`` is words behind the numbers."""
        ...


class Silent:
    """Progress that is not shown."""

    def line(self, text: str) -> None:
        """Drop it."""

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Drop it."""


class Notes:
    """Keeps the sentences, and passes everything on."""

    def __init__(self, progress: Progress) -> None:
        self.lines: list[str] = []
        self._progress = progress

    def line(self, text: str) -> None:
        """Keep a sentence and pass it on."""
        self.lines.append(text)
        self._progress.line(text)

    def warn(self, text: str) -> None:
        """Keep a warning and pass it on, even where other sentences are dropped."""
        Notes.line(self, text)

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Pass it on."""
        self._progress.update(what, done, total, more)
