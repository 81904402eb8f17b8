"""Signals end the program in order, or at once if they come twice."""

import os
import signal
import subprocess
import sys

import pytest

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
WAITS = """
import sys, time
from sureshot.cli.app import catch_signals, exit_code
catch_signals()
code = 0
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("ending", flush=True)
    code = {after}
sys.exit(exit_code(code))
"""


def started(after="130", first=()):
    """A program that waits, and then ends with this code; words to start it by come first."""
    process = subprocess.Popen(
        [*first, sys.executable, "-c", WAITS.format(after=after)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process


def ended(process):
    """Its exit code and what it still said."""
    try:
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()  # one left running would fail the next test as well
    return process.returncode, said


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_in_order_with_its_own_exit_code(number):
    process = started()
    process.send_signal(number)
    assert ended(process) == (128 + number, b"ending\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 143)])
def test_what_the_command_says_of_ctrl_c_counts(number, code):
    process = started(after="1")
    process.send_signal(number)
    assert ended(process) == (code, b"ending\n")


@pytest.mark.parametrize("number", ENDING)
def test_a_second_signal_ends_at_once(number):
    process = started(after="time.sleep(60)")
    process.send_signal(number)
    assert process.stdout.readline() == b"ending\n"
    while process.poll() is None:  # those that come with the first are taken for it
        process.send_signal(number)
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    assert ended(process) == (-number, b"")


def test_what_nohup_ignores_stays_ignored():
    process = started(first=["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, b"ending\n")


def test_a_signal_while_the_program_starts_is_no_trace():
    code = (
        "import signal; from sureshot.__main__ import main; import sureshot.cli.app as s;"
        "s.time.sleep(0); old = s.catch_signals;"
        f"s.catch_signals = lambda: (old(), signal.raise_signal({int(signal.SIGTERM)}));"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=os.environ)
    assert (done.returncode, done.stderr) == (143, b"")
