"""A listener that keeps what it hears, for tests of long work."""

from collections.abc import Callable


class Heard:
    """Keeps sentences and the numbers of the steps that are done.

    Attributes:
        updates: what was done, how many and of how many.

    Args:
        on_step: called with the number of each step.
    """

    def __init__(self, on_step: Callable[[int], object] = lambda step: None) -> None:
        self.lines: list[str] = []
        self.steps: list[int] = []
        self.updates: list[tuple[str, int, int]] = []
        self._on_step = on_step

    def line(self, text: str) -> None:
        """A sentence."""
        self.lines.append(text)

    def update(self, what: str, done: int, total: int, more: str = "") -> None:
        """Work that is done."""
        self.updates.append((what, done, total))
        if what == "steps":
            self.steps.append(done)
            self._on_step(done)


def stop_at(step: int) -> Heard:
    """A listener that interrupts a run after a step."""

    def stop(done: int) -> None:
        if done == step:
            raise KeyboardInterrupt

    return Heard(stop)
