"""Real processes for tests. A server imports the package once and forks itself, which is quick."""

import contextlib
import io
import multiprocessing
import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from sureshot.library import indexing
from sureshot.library.indexing import Run
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store.index import Store
from sureshot.store.locks import staging_lock, write_lock
from sureshot.store.maintenance import find_faults
from sureshot.store.tables import Tables
from tests.encoded import fail, make_store, random_windows, record

# The server only imports Lance; what must not be forked starts with its first table.
warnings.filterwarnings("ignore", message="lance is not fork-safe")
_PATIENCE = 200  # seconds; a busy machine must not end what is at work
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "tests.processes",
        "tests.faults.verbs",
        "sureshot.cli.search",
        "sureshot.cli.manage",
        "sureshot.web.server",
    ]
)


def start(work, *arguments) -> BaseProcess:
    """Run a function of this module in a process of its own."""
    process = _CONTEXT.Process(target=work, args=arguments)
    process.start()
    return process


def finish(*processes: BaseProcess) -> list[int | None]:
    """Wait for processes; their exit codes."""
    for process in processes:
        process.join(_PATIENCE)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
        process.close()
    return codes


def error_of(work, *arguments) -> str:
    """Kind and message of the error that a function of this module ends with in its process."""
    queue = _CONTEXT.SimpleQueue()
    assert finish(start(_report, queue, work, *arguments)) == [0]
    return queue.get()


def error_after_ctrl_c(seconds: float, work, *arguments) -> str:
    """Kind and message of the error that a function ends with when it is interrupted.

    Whoever presses Ctrl-C presses it again: Python drops one that comes within a destructor.
    """
    queue, begun = _CONTEXT.SimpleQueue(), _CONTEXT.Event()
    process = start(_report, queue, _announce, begun, work, *arguments)
    begun.wait(30)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGINT)
    process.join(5)
    if process.is_alive():
        os.kill(process.pid, signal.SIGINT)
    assert finish(process) == [0]
    return queue.get()


def command(
    arguments: Sequence[str], files: Sequence[int], environment: dict[str, str], code: str = ""
):
    """Run `sureshot` in a process of its own, without the seconds that imports take.

    Args:
        files: what are its standard input, output and error.
        code: what to run in place of the command.
    """
    given = [Connection(os.dup(file)) for file in files]  # which a process can be sent
    return start(_command, list(arguments), given, environment, str(Path.cwd()), code)


def _command(arguments, given, environment, folder, code) -> None:
    from sureshot.__main__ import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(given):
        os.dup2(file.fileno(), number)
        file.close()
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for number, mode in enumerate("rww")
    )
    sys.argv = ["sureshot", *arguments]
    exec(code, {"__name__": "__main__"}) if code else main()


def barrier(parties: int):
    """Lets so many processes go at once."""
    return _CONTEXT.Barrier(parties)


def index(place: Path, folders: list[Path], gate=None, die_at: int = -1, times: int = 1) -> None:
    """Index folders, by force from the second time on; be killed just before a commit, if any."""
    store = make_store(place)
    if gate is not None:
        gate.wait()
    if die_at >= 0:
        indexing._EVERY = 0.0  # so that each video has commits of its own
        _die_before_change(die_at)
    for time_ in range(times):
        run = Run(store, TinyEncoder(), folders, workers=1, force=time_ > 0).ingest()
        assert not run.interrupted


def remove(place: Path, gate, times: int, pause: float) -> None:
    """Remove all videos again and again."""
    store = Store.open(place)
    gate.wait()
    for _ in range(times):
        store.remove(store.videos())
        time.sleep(pause)


def fail_and_write(place: Path, gate, times: int) -> None:
    """Note a failure of a video and write it, by turns."""
    store = Store.open(place)
    gate.wait()
    for number in range(times):
        fail(store, record("/v.mp4", reason="is damaged"))
        store.write(record("/v.mp4"), random_windows(1 + number % 3, seed=number))
        store.copy([(store.videos()[0], record("/w.mp4"))])


def exclude(place: Path, gate, letter: str, times: int) -> None:
    """Leave out files of so many names, one after another."""
    store = Store.open(place)
    gate.wait()
    for number in range(times):
        store.set_excluded([f"{letter}{number}"], excluded=True)


def create(places: list[Path], gate) -> None:
    """Make indexes at the same moments as others do."""
    for place in places:
        gate.wait()
        store = make_store(place)
        store.write(record(f"/{os.getpid()}.mp4"), random_windows(1))


def churn(place: Path, seconds: float) -> None:
    """Write each of five videos once at least, and compact, without pause."""
    store, until, number = Store.open(place), time.monotonic() + seconds, 0
    while time.monotonic() < until or number < 5:
        store.write(
            record(f"/churn/{os.getpid()}/{number % 5}.mp4"), random_windows(2, seed=number)
        )
        store.compact()
        number += 1


def read(place: Path, seconds: float) -> None:
    """Read without pause; the windows of one video must be there all the time."""
    store, until = Store.open(place), time.monotonic() + seconds
    query = np.eye(store.dim, dtype=np.float32)[0]
    while time.monotonic() < until:
        assert len(store.finder.nearest(query, 5).keys) == 5
        assert len(store.windows_of(Path("/steady.mp4")).keys) == 5
        assert "/steady.mp4" in [str(r.path) for r in store.videos()]
        assert store.count() >= 5


def without_rights(work, *arguments) -> None:
    """Run a function without the rights of root, who may write anywhere."""
    random_windows(1)  # imports what nobody could read if Python lies in root's home
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    work(*arguments)


def command_without_rights(out: Path, home: str | None, arguments: list[str]) -> None:
    """Run the command in this process as nobody; exit code and what is printed go into a file."""
    from sureshot.cli.app import run

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run(arguments)  # imports what nobody could read if Python lies in root's home
    for name in [name for name in os.environ if name == "HOME" or name.startswith("XDG")]:
        del os.environ[name]
    if home is not None:
        os.environ["HOME"] = home
    with out.open("w") as file:
        printed = io.StringIO()
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run(arguments)
        file.write(f"{code}\n{printed.getvalue()}")


def _report(queue, work, *arguments) -> None:
    try:
        work(*arguments)
    except (Exception, KeyboardInterrupt) as error:
        queue.put(f"{type(error).__name__}: {error}")
    else:
        queue.put("")


def _announce(begun, work, *arguments) -> None:
    random_windows(1)  # imports parts of NumPy, whose own start swallows a Ctrl-C
    begun.set()
    work(*arguments)


def hold(place: Path) -> None:
    """Hold the write lock of an index until killed."""
    with write_lock(str(place)):
        (place / "held").touch()
        time.sleep(60)


def reset(place: Path, die_at: int) -> None:
    """Delete an index; be killed just before the rename or deletion of this number."""
    left, rename, rmtree = [die_at], Path.rename, shutil.rmtree

    def dying(act):
        def before(*arguments, **options):
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return act(*arguments, **options)

        return before

    Path.rename, shutil.rmtree = dying(rename), dying(rmtree)  # type: ignore[method-assign]
    Store.delete(place)


def make_and_check(place: Path) -> None:
    """Make an index; it must be sound."""
    make_store(place)
    assert find_faults(str(place)) == []


def _die_before_change(number: int) -> None:
    left, change = [number], Tables.change

    def dying(self: Tables, name, act, **more):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return change(self, name, act, **more)

    Tables.change = dying  # type: ignore[method-assign]


def stage_and_wait(place: str) -> None:
    """Stage a video that is never committed."""
    with staging_lock(place):
        Store.open(place).stage(record("/v.mp4"), random_windows(2))
        time.sleep(600)
