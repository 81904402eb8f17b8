"""What ends the program from outside: Ctrl-C, `kill`, and a terminal that is closed.

All three end it in order: what is being written is finished or left out, and what was done is said.
A second one ends it at once.
"""

import os
import signal
import time
from types import FrameType

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
_SAME = 0.3  # seconds; `timeout` and a closing terminal send one twice
_CTRL_C = 130  # exit code of what Ctrl-C ended: 128 and the number of the signal

_first: list[tuple[int, float]] = []  # number and time of the signal that came first


def catch_signals() -> None:
    """From now on each of these signals raises KeyboardInterrupt, and a second one kills.

    What whoever started the program chose to ignore, as `nohup` does, stays ignored.
    """
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def exit_code(code: int) -> int:
    """The exit code of a command that ended with this one; signals do nothing clever any more.

    Args:
        code: exit code that `sureshot.cli.app.run` gave; to it every interruption is Ctrl-C.
    """
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)
    if not _first:
        return code
    by_hand = _first[0][0] == signal.SIGINT  # whoever asks to end it with Ctrl-C sees what it says
    return code if by_hand and code != _CTRL_C else 128 + _first[0][0]


def _end(number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if not _first:
        _first.append((number, now))
        raise KeyboardInterrupt
    if now - _first[0][1] > _SAME:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
