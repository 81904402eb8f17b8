"""Progress in a terminal and elsewhere."""

import io
import time

import pytest
from rich.console import Console

from sureshot.cli import terminal as module
from sureshot.cli.terminal import Bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test decides."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def plain():
    return Console(file=io.StringIO(), width=1000)


def test_elsewhere_a_line_comes_now_and_then(clock):
    console = plain()
    with Bar(console) as bar:
        bar.update("videos", 1, 40)
        clock[0] += 9
        bar.update("videos", 9, 40)
        clock[0] += 1
        bar.update("videos", 10, 40, ", slow")
        clock[0] += 1
        bar.update("videos", 11, 40)
        clock[0] += 9
        bar.update("videos", 40, 40)
    lines = console.file.getvalue().splitlines()
    assert lines == ["10 of 40 videos, slow, about 30 s left", "40 of 40 videos"]


def test_the_time_left_begins_anew_with_other_work(clock):
    console = plain()
    with Bar(console) as bar:
        bar.update("videos", 0, 4)
        clock[0] += 1000
        bar.update("captions", 0, 100)
        clock[0] += 50
        bar.update("captions", 1, 100)
    first, second = console.file.getvalue().splitlines()
    assert first == "0 of 100 captions"
    assert second == "1 of 100 captions, about 1 h 22 min left"  # 99 times 50 seconds, to a minute


def test_little_work_leaves_no_trace(clock):
    console = plain()
    with Bar(console) as bar:
        bar.update("steps", 1, 1)
    assert console.file.getvalue() == ""


def test_a_terminal_shows_a_bar_and_takes_it_away():
    console = Console(file=Terminal(), force_terminal=True, width=100)
    with Bar(console) as bar:
        bar.update("steps", 3, 7, ", loss 1.5")
        until = time.monotonic() + 60
        while "3 of 7 steps, loss 1.5" not in console.file.getvalue():  # drawn by a thread
            assert time.monotonic() < until
            time.sleep(0.01)
        bar.update("runs", 0, 0)
    assert console.file.getvalue().rstrip().endswith("\x1b[2K")  # the line is cleared at last


def test_a_fault_inside_is_not_swallowed_and_ends_the_bar():
    console = Console(file=Terminal(), force_terminal=True, width=100)
    with pytest.raises(ValueError, match="a fault"), Bar(console) as bar:
        bar.update("steps", 1, 2)
        raise ValueError("a fault")
    assert "\x1b[?25h" in console.file.getvalue()  # the cursor is back
