"""The three standard streams, as whoever started the program left them."""

import io
import os
import sys

_STREAMS = ("stdin", "stdout", "stderr")


def open_streams() -> None:
    """Make all three usable: what is closed becomes empty, or takes all that is written.

    Must come before any file is opened, which would get the number of a closed stream, and with it
    what is printed.
    """
    for number, name in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        stream = getattr(sys, name)
        # A terminal that cannot show a letter of a file name shows a question mark in its place.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Forget what is not printed yet, so that Python does not complain of it at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
