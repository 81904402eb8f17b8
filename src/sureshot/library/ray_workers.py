"""Indexing by the machines of a Ray cluster: workers encode, this process hands out and commits.

Videos go out as short lists of paths, staged videos come back; no picture and no vector passes
through here. What a dead worker had not handed in goes to another one, video by video, so that a
video that kills its readers costs no other.
"""

import contextlib
import hashlib
import os
import signal
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sureshot
from sureshot.errors import SureshotError, first_line, install_command, option
from sureshot.library.encoding import Packing, VideoProgress, pack_videos, record_of
from sureshot.media.discover import Source
from sureshot.media.workers import stream
from sureshot.models.encoders.base import Encoder
from sureshot.models.load import load_searchable
from sureshot.paths import absolute
from sureshot.store.index import Store
from sureshot.store.writing import StagedVideo
from sureshot.text import counted, plain

_QUIET = 1.0  # seconds between two reports of how far a video is
_CHUNK = 16  # videos that a worker is given at once
_TRIES = 5  # workers that may die of one video, or before they have begun
_WAITING = 64  # results that wait to be committed
_PATIENCE = 300.0  # seconds without a worker
_SILENT = 50  # level of messages, which are Ray's own
_ANSWER = 10.0  # seconds until somebody must answer at an address
_CLOCKS = 60.0  # seconds that clocks may differ without a word
_CORES = 2  # of one worker, where the machines have so many
_STAYS = "What is indexed stays; the same command goes on from here."
_LACKING = "Sureshot, or a package that it needs, is not installed there"


@cache
def version() -> str:
    """Which Sureshot this is: its number, and a digest of its source."""
    digest = hashlib.blake2b(digest_size=6)
    root = Path(sureshot.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return f"{sureshot.__version__} ({digest.hexdigest()})"


class RayWorker:
    """Encodes what it is given, on a machine of the cluster."""

    def __init__(
        self, location: str, model: str, device: str | None, engine: str | None, threads: int
    ) -> None:
        self._location, self._threads = location, threads
        self._model = model, device, engine

    def begin(self, expected: str, fingerprint: str, tops: Sequence[str]) -> tuple[str, str, float]:
        """Get ready; the name of this machine, why it cannot work or nothing, and its time.

        It should be of a `version`, have the model of a fingerprint, and see some paths.
        """
        try:
            wrong = self._begin(expected, fingerprint, tops)
        except SureshotError as error:
            wrong = str(error)
        return socket.gethostname(), wrong, time.time()

    def _begin(self, expected: str, fingerprint: str, tops: Sequence[str]) -> str:
        if version() != expected:
            return f"it has Sureshot {version()} where this run has {expected}; install the same"
        unseen = [top for top in tops if not os.path.exists(top)]  # noqa: PTH110 - no error
        if unseen:
            return f"there is nothing at {plain(unseen[0])}; mount it at the same place"
        self._store = Store.open(self._location)
        self._encoder = load_searchable(*self._model)
        if self._encoder.fingerprint != fingerprint:
            return f"its model {self._model[0]!r} is not the one of the index; copy that there"
        try:  # weights are read when they are needed first; without them it must get no videos
            self._encoder.encode_frames(self._encoder.prepare(np.zeros((1, 64, 64, 3), np.uint8)))
        except SureshotError:
            raise
        except Exception as error:  # of torch, of a GPU's driver, of the memory
            return f"its model cannot encode there ({first_line(error)[:200]})"
        return ""

    def pack(self, sources: Sequence[Source]) -> Packing:
        """What becomes of some videos as it does, and now and then how far one is."""
        said = time.monotonic()
        for one in pack_videos(self._store, self._encoder, sources, workers=self._threads):
            if isinstance(one, StagedVideo) or time.monotonic() - said >= _QUIET:
                said = time.monotonic()
                yield one


@contextlib.contextmanager
def on_ray(address: str) -> Iterator[Any]:
    """The module of Ray, connected with a cluster.

    Args:
        address: ``auto``, or where the head of the cluster answers, such as ``10.0.0.1:6379``.
    """
    # No usage statistics go to the makers of Ray, and none of its messages come between ours.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise SureshotError(
            "Indexing on many machines needs Ray, which is not installed; on each of them run: "
            f"{install_command('ray')}"
        ) from None
    if address.startswith("ray://"):
        raise SureshotError(
            f"{address} is for clients outside of a cluster. Run the same command on a machine of "
            f"the cluster with {option('ray', 'auto')}."
        )
    ends = signal.getsignal(signal.SIGTERM)  # Ray would end this process in its own way
    try:
        # Ray itself would try for minutes, and not in silence.
        host, _, port = address.rpartition(":")
        if host and port.isdigit():
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
        ray.init(address=address, log_to_driver=False, logging_level=_SILENT)
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        reason = plain(first_line(error)).rstrip(".")[:200]
        raise SureshotError(
            f"No Ray cluster answers at {address} ({reason}). Start one by `ray start` on each "
            "machine, as docs/scale.md shows, then try again."
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()
        with contextlib.suppress(ValueError, TypeError):  # not the main thread, or not Python's
            signal.signal(signal.SIGTERM, ends)


class RayPool:
    """Workers on the machines of a cluster, to which its module is connected.

    There are so many, or one for two cores, or one a GPU where the cluster has some.
    """

    def __init__(
        self,
        ray: Any,
        store: Store,
        encoder: Encoder,
        paths: Sequence[Path],
        *,
        device: str | None = None,
        engine: str | None = None,
        workers: int | None = None,
    ) -> None:
        self._ray = ray
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cores = min([_CORES, *(int(n["CPU"]) for n in nodes if n.get("CPU", 0) >= 1)])
        gpus = 0 if device == "cpu" else int(sum(n.get("GPU", 0) for n in nodes))
        room = gpus or sum(int(n.get("CPU", 0)) // cores for n in nodes)
        self._wanted = workers or max(1, room)
        self._kind = ray.remote(
            num_cpus=cores, num_gpus=int(gpus > 0), scheduling_strategy="SPREAD"
        )(RayWorker)
        self._known = store.location, store.settings.model, device, engine, max(1, cores // 2)
        tops = [str(absolute(path)) for path in paths if "://" not in str(path)]
        seen = [top for top in tops if os.path.exists(top)]  # noqa: PTH110 - no error
        self._asked = version(), encoder.fingerprint, seen
        self._hired: list[Any] = []
        self._heard = time.monotonic()  # from any worker
        self._over = False
        self._why = ""  # the last error of a worker
        self._changed = threading.Condition()
        self._busy = 0  # threads whose workers have something
        self._due: deque[list[Source]] = deque()
        self._tries: Counter[Path] = Counter()
        self._refused: Counter[str] = Counter()
        self._clocks: set[str] = set()

    def pack(self, todo: Sequence[Source]) -> Packing:
        """What becomes of the videos, and now and then how far one is."""
        size = max(1, min(_CHUNK, len(todo) // (4 * self._wanted)))  # so that all have some
        self._due.extend(list(todo[at : at + size]) for at in range(0, len(todo), size))
        left, posts = len(todo), range(min(self._wanted, len(todo)))
        working = stream(self._work, posts, waiting=_WAITING, workers=len(posts))
        try:
            with contextlib.closing(working) as results:
                while left and (one := next(results, None)):
                    left -= isinstance(one, StagedVideo)
                    yield one
            if left:
                raise SureshotError(f"No worker can encode. {' '.join(self._said())} {_STAYS}")
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
            for worker in self._hired:
                self._ray.kill(worker)

    def warnings(self) -> list[str]:
        """What is to be said of the machines."""
        return [*sorted(self._clocks), *self._said()]

    def _said(self) -> list[str]:
        return [f"{counted(count, 'worker')} on {said}." for said, count in self._refused.items()]

    def _work(self, _post: int) -> Iterator[StagedVideo | VideoProgress]:
        """Hire a worker and have it pack until nothing is due; another one where it dies."""
        hired = None
        while self._is_due() and (hired := hired or self._hire()) is not None:
            worker, host = hired
            with self._changed:
                if not self._due:
                    continue  # another thread has taken the last one
                chunk = self._due.popleft()
                self._busy += 1
            try:
                for word in worker.pack.remote(chunk):
                    one = self._ray.get(word)
                    self._heard = time.monotonic()
                    if isinstance(one, StagedVideo):
                        chunk = [s for s in chunk if s.path != one.record.path]
                    yield one
            except self._ray.exceptions.RayError as error:
                # It may be alive after an error, and would keep its place.
                self._ray.kill(worker)
                hired, cause = None, getattr(error, "cause", None)
                if isinstance(cause, SureshotError):  # of the machine, not of one of the videos
                    self._refuse(host, str(cause))
                    with self._changed:
                        self._due.append(chunk)
                    chunk = []
                    return
                self._why = _last_line(error)
            finally:
                ended = self._again(chunk)  # what a worker lost without a word, too
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()
            yield from ended

    def _is_due(self) -> bool:
        """Whether something is due, by now or once another worker has died."""
        with self._changed:
            self._changed.wait_for(lambda: self._due or not self._busy or self._over)
            return bool(self._due) and not self._over

    def _again(self, chunk: Sequence[Source]) -> list[StagedVideo]:
        """Have what a dead worker was given tried again; what too many died of has failed."""
        ended = []
        for source in chunk:
            self._tries[source.path] += 1
            if self._tries[source.path] < _TRIES:
                self._due.appendleft([source])
            else:
                why = f" ({plain(self._why)})" if self._why else ""
                reason = f"ended each of {_TRIES} workers that read it{why}"
                ended.append(StagedVideo(record_of(source, reason=reason, transient=True)))
        return ended

    def _hire(self) -> tuple[Any, str] | None:
        """A worker that has begun, and its machine; None where a machine cannot work."""
        for attempt in range(_TRIES):
            worker = self._kind.remote(*self._known)
            self._hired.append(worker)
            try:
                said = worker.begin.remote(*self._asked)
                while not self._ray.wait([said], timeout=1.0)[0]:
                    if time.monotonic() - self._heard > _PATIENCE:
                        raise SureshotError(
                            f"No machine of the Ray cluster has had room for a worker for "
                            f"{_PATIENCE:.0f} s; `ray status` tells what is in use. {_STAYS}"
                        )
                host, wrong, there = self._ray.get(said)
            except self._ray.exceptions.RayError as error:
                lacking = "No module named" in str(error)
                host, wrong = "a machine", _LACKING if lacking else _last_line(error)
                if not lacking and attempt < _TRIES - 1 and not self._over:
                    continue
            else:
                off = there - time.time()
                if abs(off) > _CLOCKS:
                    way = "ahead of" if off > 0 else "behind"
                    self._clocks.add(
                        f"The clock of {host} is {abs(off):.0f} s {way} the one here; set it, as "
                        f"times in the index tell what is new."
                    )
                if not wrong:
                    return worker, host
            if self._over:  # it was ended with all others
                break
            self._ray.kill(worker)
            self._refuse(host, wrong)
            break
        return None

    def _refuse(self, host: str, why: str) -> None:
        with self._changed:
            self._refused[f"{host} was left out: {plain(why).rstrip('.')}"] += 1


def _last_line(error: Exception) -> str:
    return str(error).strip().split("\n")[-1][:200] or type(error).__name__
