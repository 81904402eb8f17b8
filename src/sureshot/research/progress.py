"""Who hears what long work is doing: the terminal's progress bar, or nobody."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Listener(Protocol):
    """Hears what long work is doing, such as `sureshot.cli.terminal.Bar`."""

    def line(self, text: str) -> None:
        """A sentence about the data or the run."""
        ...

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """How many things of a kind are done, of how many; ``more`` is words behind the numbers."""
        ...


class Silence:
    """A listener that shows nothing."""

    def line(self, text: str) -> None:
        """Nothing."""

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Nothing."""


class Notes:
    """Keeps the sentences, and passes everything on to another listener.

    Attributes:
        lines: the sentences so far.
    """

    def __init__(self, listener: Listener) -> None:
        self.lines: list[str] = []
        self._listener = listener

    def line(self, text: str) -> None:
        """Keep a sentence and pass it on."""
        self.lines.append(text)
        self._listener.line(text)

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Pass it on."""
        self._listener.update(what, done, total, more)

    def encoded(self, what: str, done: int, total: int) -> None:
        """How many videos or captions are encoded, as `sureshot.research.features` counts them."""
        self.update(f"{what} encoded", done, total)
