"""Indexing by the machines of a Ray cluster: hands encode, this process hands out and commits.

Videos go out as short lists of paths, staged videos come back; no picture and no vector passes
through here. What a dead hand had not handed in goes to another one, video by video, so that a
video that kills its readers costs no other.
"""

import contextlib
import functools
import hashlib
import os
import queue
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

import sureshot
from sureshot.errors import SureshotError, VideoError, option
from sureshot.library.encoding import Advance, pack_videos, pages, record_of
from sureshot.media.discover import Source
from sureshot.models.encoders.base import Encoder
from sureshot.models.load import load_searchable
from sureshot.paths import absolute
from sureshot.store.index import Store
from sureshot.store.writing import StagedVideo
from sureshot.text import counted, plain

_QUIET = 1.0  # seconds between two words on how far a video is
# How far a video is (its path, the share and the seconds encoded), or the staged video.
Word = tuple[Literal["at"], Path, float, float] | tuple[Literal["done"], StagedVideo]


@functools.cache
def version() -> str:
    """Which Sureshot this is: its number, and a digest of its source."""
    digest = hashlib.blake2b(digest_size=6)
    root = Path(sureshot.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return f"{sureshot.__version__} ({digest.hexdigest()})"


class RayWorker:
    """Encodes what it is given.

    Args:
        location: place of the index.
        model: model of the index.
        device: torch device; None takes a GPU where there is one.
        engine: what computes, as `sureshot.models.load.load_searchable` takes it.
        threads: decoding threads.
    """

    def __init__(
        self, location: str, model: str, device: str | None, engine: str | None, threads: int
    ) -> None:
        self._location, self._model = location, model
        self._device, self._engine = device, engine
        self._threads = threads
        self._store: Store | None = None
        self._encoder: Encoder | None = None

    def begin(self, wanted: str, fingerprint: str, tops: Sequence[str]) -> dict[str, Any]:
        """Get ready; what this process is, with the reason why it cannot work, if there is one.

        Args:
            wanted: the `version` that it should be.
            fingerprint: digest of the model that it should have.
            tops: paths that it should see.
        """
        try:
            wrong = self._begin(wanted, fingerprint, tops)
        except SureshotError as error:
            wrong = str(error)
        return {"host": socket.gethostname(), "wrong": wrong, "time": time.time()}

    def time(self) -> float:
        """What the clock says here, seconds since the epoch."""
        return time.time()

    def _begin(self, wanted: str, fingerprint: str, tops: Sequence[str]) -> str:
        if version() != wanted:
            return f"it has Sureshot {version()} where this run has {wanted}; install the same"
        unseen = [top for top in tops if not os.path.exists(top)]  # noqa: PTH110 - no error
        if unseen:
            return f"there is nothing at {plain(unseen[0])}; mount it at the same place"
        self._store = Store.open(self._location)
        self._encoder = load_searchable(self._model, self._device, self._engine)
        if self._encoder.fingerprint != fingerprint:
            return f"its model {self._model!r} is not the one of the index; copy that there"
        return _why_not(self._encoder)

    def pack(self, sources: Sequence[Source]) -> Iterator[Word]:
        """Staged videos as they are done, and now and then how far a video is."""
        words: queue.SimpleQueue[Word | Exception | None] = queue.SimpleQueue()
        # A generator cannot speak while a film is encoded; a queue can.
        threading.Thread(target=self._pack, args=(sources, words.put), daemon=True).start()
        while (word := words.get()) is not None:
            if isinstance(word, Exception):
                raise word
            yield word

    def _pack(
        self, sources: Sequence[Source], say: Callable[[Word | Exception | None], None]
    ) -> None:
        said = time.monotonic()

        def advance(source: Source, share: float, seconds: float) -> None:
            nonlocal said
            if time.monotonic() - said >= _QUIET:
                said = time.monotonic()
                say(("at", source.path, share, seconds))

        try:
            assert self._store is not None
            assert self._encoder is not None
            staged = pack_videos(
                self._store, self._encoder, sources, workers=self._threads, advance=advance
            )
            for video in staged:
                say(("done", video))
        except Exception as error:
            say(error)
        say(None)


def _why_not(encoder: Encoder) -> str:
    """Why an encoder cannot encode here, found out by one frame; empty if it can.

    Weights are read when they are needed first; a machine that lacks them must not be given videos.
    """
    try:
        encoder.encode_frames(encoder.prepare(np.zeros((1, 64, 64, 3), np.uint8)))
    except SureshotError as error:
        return str(error)
    except Exception as error:  # of torch, of a GPU's driver, of the memory
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        return f"its model cannot encode there ({reason})"
    return ""


_CHUNK = 16  # videos that a hand is given at once
_TRIES = 5  # hands that may die of one video
_TOGETHER = 64  # videos that are committed at once
_COMMIT_EVERY = 2.0  # seconds
_PATIENCE = 300.0  # seconds without a hand
_SILENT = 50  # level of messages, which are Ray's own
_ANSWER = 10.0  # seconds until somebody must answer at an address
_CLOCKS = 60.0  # seconds that clocks may differ without a word
_LACKING = "Sureshot, or a package that it needs, is not installed there"
_CORES = 2  # of one hand, where the machines have so many


@dataclass(eq=False, slots=True)
class _Post:
    """A hand and what it does.

    Attributes:
        actor: handle of the hand.
        waiting: what it was asked last: to begin, or to pack.
        left: videos that it was given and has not handed in.
        ready: whether it has begun.
    """

    actor: Any
    waiting: Any
    left: dict[Path, Source] = field(default_factory=dict)
    ready: bool = False


@contextlib.contextmanager
def on_ray(address: str) -> Iterator[Any]:
    """The module of Ray, connected with a cluster.

    Args:
        address: ``auto``, or where the head of the cluster answers, such as ``10.0.0.1:6379``.
    """
    # Nobody is told that Sureshot uses Ray; and its messages would stand between ours.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise SureshotError(
            "Indexing on many machines needs Ray, which is not installed; on each of them run: "
            "pip install 'sureshot[ray]'"
        ) from None
    if address.startswith("ray://"):
        raise SureshotError(
            f"{address} is for clients outside of a cluster. Run the same command on a machine of "
            f"the cluster with {option('ray', 'auto')}."
        )
    _check_answers(address)
    with _own_signals():
        try:
            ray.init(address=address, log_to_driver=False, logging_level=_SILENT)
        except (OSError, ValueError, RuntimeError) as error:
            raise _no_answer(address, str(error).strip().split("\n")[0]) from None
        try:
            yield ray
        finally:
            ray.shutdown()


def _check_answers(address: str) -> None:
    """Whether somebody listens at an address; Ray itself tries for minutes, and not in silence."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
    except (OSError, OverflowError) as error:
        raise _no_answer(address, str(error)) from None


def _no_answer(address: str, reason: str) -> SureshotError:
    return SureshotError(
        f"No Ray cluster answers at {address} ({plain(reason).rstrip('.')[:200]}). Start "
        "one by `ray start` on each machine, as docs/scale.md shows, then try again."
    )


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray ends a process at SIGTERM in its own way; ours stays."""
    before = None
    with contextlib.suppress(ValueError):  # not the main thread, which cannot set it either
        before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, before)


class RayPool:
    """Hands on the machines of a cluster.

    Attributes:
        warnings: what is to be said of the machines; grows while they work.

    Args:
        ray: the module, connected.
        encoder: the model of the index.
        paths: what is indexed.
        device: torch device; None takes GPUs where the cluster has some.
        engine: what computes, as `sureshot.models.load.load_searchable` takes it.
        hands: how many; None takes one for two cores, or one a GPU.
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
        hands: int | None = None,
    ) -> None:
        self.warnings: list[str] = []
        self._ray = ray
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cores = min([_CORES, *(int(n["CPU"]) for n in nodes if n.get("CPU", 0) >= 1)])
        gpus = 0 if device == "cpu" else int(sum(n.get("GPU", 0) for n in nodes))
        room = gpus or sum(int(n.get("CPU", 0)) // cores for n in nodes)
        self._wanted = hands or max(1, room)
        remote: Any = ray.remote(
            num_cpus=cores, num_gpus=int(gpus > 0), scheduling_strategy="SPREAD"
        )
        made: Any = remote(RayWorker)
        known = (store.location, store.settings.model, device, engine, max(1, cores // 2))
        self._make: Callable[[], Any] = functools.partial(made.remote, *known)
        tops = [str(absolute(path)) for path in paths if "://" not in str(path)]
        self._asked = (version(), encoder.fingerprint, [top for top in tops if os.path.exists(top)])  # noqa: PTH110
        self._posts: list[_Post] = []
        self._again: deque[Source] = deque()
        self._tries: dict[Path, int] = {}
        self._refused: dict[str, int] = {}
        self._unborn = 0

    def packing(
        self, todo: Sequence[Source], advance: Advance
    ) -> Generator[list[StagedVideo], None, None]:
        """All videos of a list, staged, those together that are to be committed together."""
        fresh = _chunks(todo, self._wanted)
        done: list[StagedVideo] = []
        since = heard = time.monotonic()
        left = len(todo)
        self._posts = [self._hire() for _ in range(min(self._wanted, left))]
        try:
            while left:
                for video in self._listen(advance):
                    done.append(video)
                    left -= 1
                now = time.monotonic()
                heard = now if any(post.ready for post in self._posts) else heard
                if now - heard > _PATIENCE or not self._posts:
                    raise SureshotError(self._alone())
                if done and (not left or len(done) >= _TOGETHER or now - since > _COMMIT_EVERY):
                    together, done = done, []
                    yield together
                    since = time.monotonic()
                self._hand_out(fresh)
            self.warnings += self._said()
        finally:
            for post in self._posts:
                self._ray.kill(post.actor)

    def _hire(self) -> _Post:
        actor = self._make()
        return _Post(actor=actor, waiting=actor.begin.remote(*self._asked))

    def _hand_out(self, fresh: Iterator[Sequence[Source]]) -> None:
        """Give every hand that is free something to do."""
        for post in self._posts:
            if not post.ready or post.left:
                continue
            chunk = [self._again.popleft()] if self._again else next(fresh, [])
            if chunk:
                post.left = {source.path: source for source in chunk}
                post.waiting = post.actor.pack.remote(chunk)

    def _listen(self, advance: Advance) -> Iterator[StagedVideo]:
        """What has come from the hands within a moment."""
        busy = {post.waiting: post for post in self._posts if post.left or not post.ready}
        if not busy:
            return
        ready, _ = self._ray.wait(list(busy), timeout=0.5, fetch_local=True)
        for waited in ready:
            post = busy[waited]
            try:
                yield from self._begun(post) if not post.ready else self._word(post, advance)
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None)
                if isinstance(cause, SureshotError):
                    raise cause from None
                if post.ready:
                    yield from self._lose(post)
                else:
                    self._stillborn(post, error)

    def _stillborn(self, post: _Post, error: Exception) -> None:
        """Try once more where a hand ended before it began; not for ever."""
        self._unborn += 1
        lacking = "No module named" in str(error)
        self._refuse(post, "a machine", _LACKING if lacking else _last_line(error))
        if not lacking and self._unborn <= _TRIES * self._wanted:
            self._refused.clear()
            self._posts.append(self._hire())

    def _begun(self, post: _Post) -> Iterator[StagedVideo]:
        """Take in a hand that has begun, or refuse it; yields no video."""
        said = self._ray.get(post.waiting)
        if said["wrong"]:
            self._refuse(post, said["host"], said["wrong"])
            return
        before = time.time()
        there = self._ray.get(post.actor.time.remote())
        off = there - (before + time.time()) / 2
        if abs(off) > _CLOCKS + time.time() - before:
            way = "ahead of" if off > 0 else "behind"
            self._note(
                f"The clock of {said['host']} is {abs(off):.0f} s {way} the one here; set it, as "
                f"times in the index tell what is new."
            )
        post.ready, self._unborn = True, 0
        yield from ()

    def _word(self, post: _Post, advance: Advance) -> Iterator[StagedVideo]:
        """What a hand says next."""
        try:
            word = self._ray.get(next(post.waiting))
        except StopIteration:
            # It has handed in all; what it lost without a word is tried again.
            self._again.extend(post.left.values())
            post.left = {}
            return
        if word[0] == "at":
            source = post.left.get(word[1])
            if source is not None:
                advance(source, word[2], word[3])
            return
        video = word[1]
        if post.left.pop(video.record.path, None) is not None:
            yield video

    def _lose(self, post: _Post) -> Iterator[StagedVideo]:
        """Put another hand in the place of a dead one; videos that too many died of have failed."""
        self._posts.remove(post)
        self._ray.kill(post.actor)
        self._posts.append(self._hire())
        for path, source in post.left.items():
            self._tries[path] = self._tries.get(path, 0) + 1
            if self._tries[path] < _TRIES:
                self._again.append(source)
                continue
            ended = VideoError(f"ended each of {_TRIES} workers that read it", transient=True)
            yield StagedVideo(record_of(source, reason=str(ended), transient=True))

    def _refuse(self, post: _Post, host: str, why: str) -> None:
        self._posts.remove(post)
        self._ray.kill(post.actor)
        said = f"{host} was left out: {plain(why).rstrip('.')}"
        self._refused[said] = self._refused.get(said, 0) + 1

    def _note(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def _said(self) -> list[str]:
        return [f"{counted(count, 'worker')} on {said}." for said, count in self._refused.items()]

    def _alone(self) -> str:
        """Why nobody works."""
        stays = "What is indexed stays; the same command goes on from here."
        if self._refused:
            return f"No worker can encode. {' '.join(self._said())} {stays}"
        return (
            f"No machine of the Ray cluster has had room for a worker for {_PATIENCE:.0f} s; "
            f"`ray status` tells what is in use. {stays}"
        )


def _chunks(todo: Sequence[Source], hands: int) -> Iterator[Sequence[Source]]:
    """Short lists of sources, shorter ones for few, so that all hands have some."""
    yield from pages(todo, max(1, min(_CHUNK, len(todo) // (4 * hands))))


def _last_line(error: Exception) -> str:
    return str(error).strip().split("\n")[-1][:200] or type(error).__name__
