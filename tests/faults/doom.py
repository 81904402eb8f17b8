"""The end of a process at a moment of its work, as by `kill -9`: nothing of it runs any more.

A moment is counted in seconds of the processor, so that a busy machine does not move it; that of a
verb which takes less than such a clock can tell in steps, each a file or folder opened or changed.
"""

import os
import signal
import sys
import time

_IN_STEPS = ("reset",)
KILLED = (-signal.SIGPROF, -signal.SIGKILL)  # exit codes of who was ended so


class Doom:
    """Ends this process at a moment of what it does from now on.

    Args:
        verb: what it does.
        at: the moment, 0 is never.
    """

    def __init__(self, verb: str, at: float) -> None:
        self._steps = 0
        self._at = at
        self._counts = verb in _IN_STEPS
        self._began = time.process_time()
        if self._counts:
            sys.addaudithook(self._step)
        else:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, at)

    def escaped(self) -> float:
        """End nothing any more; how much work it was."""
        if self._counts:
            self._at = 0
            return self._steps
        signal.setitimer(signal.ITIMER_PROF, 0)
        return time.process_time() - self._began

    def _step(self, event: str, _: object) -> None:
        if event == "open" or event.startswith(("os.", "shutil.", "fcntl.")):
            self._steps += 1
            if 0 < self._at <= self._steps:
                self._at = 0  # the kill is a step as well
                os.kill(os.getpid(), signal.SIGKILL)
