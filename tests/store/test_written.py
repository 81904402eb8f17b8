"""A disk that is full at the last bytes of a file must not leave a version that names the file."""

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.store import maintenance, vector_search
from sureshot.store.index import Store
from sureshot.store.tables import Tables, check_written
from tests.encoded import contents, make_store, random_windows, record
from tests.processes import finish, start


def write_one(db: str) -> None:
    Store.open(db).write(record("new.mp4"), random_windows(40, seed=5))


def write_again(db: str) -> None:
    Store.open(db).write(record("0.mp4"), random_windows(40, seed=6))


def join_files(db: str) -> None:
    maintenance.compact(Tables(db))


def index_vectors(db: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_search, "SCANNED", 100)
        maintenance.index_vectors(Tables(db))


def within(work: Callable[[str], None], db: str, most: int, out: Path) -> None:
    """Do work in this process while no file may grow beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    full = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, full[1]))
    told = ""
    try:
        work(db)
    except SureshotError as error:
        told = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, full)
    out.write_text(json.dumps(told))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An index of eight videos, each written on its own."""
    store = make_store(tmp_path_factory.mktemp("before") / "index")
    for number in range(8):
        store.write(record(f"{number}.mp4"), random_windows(40, seed=number))
    return store.location


def sizes(db: Path) -> dict[str, int]:
    paths = [*db.rglob("data/*.lance"), *db.rglob("*.idx")]
    return {str(path.relative_to(db)): path.stat().st_size for path in paths}


@pytest.mark.parametrize("short", [1, 30, 300])
@pytest.mark.parametrize("work", [write_one, write_again, join_files, index_vectors])
def test_a_file_that_is_cut_short_is_never_named(
    work: Callable[[str], None], short: int, before: str, tmp_path: Path
) -> None:
    whole = shutil.copytree(before, tmp_path / "whole")
    assert finish(start(within, work, str(whole), 1 << 30, tmp_path / "out")) == [0]
    made = {size for name, size in sizes(whole).items() if name not in sizes(Path(before))}
    assert made
    for size in made:
        db = shutil.copytree(before, tmp_path / f"limited{size}")
        assert finish(start(within, work, str(db), size - short, tmp_path / "out")) == [0]
        told = json.loads((tmp_path / "out").read_text())
        store = Store.open(str(db))
        if work in (join_files, index_vectors):
            assert not told and contents(str(db)) == contents(before)
            assert len(store.finder.nearest(np.ones(24, np.float32), 5).keys) == 5
        else:
            # The larger of the two files is not there; the smaller may be.
            assert size < max(made) or "The disk is full" in told
            assert {row.path.name for row in store.videos()} >= {f"{n}.mp4" for n in range(8)}
            for row in store.videos():
                store.windows_of(row.path)


def test_what_is_cut_short_is_deleted(tmp_path: Path) -> None:
    contents = {"a.lance": b"rows LANC", "b.lance": b"rows LAN", "c.lance": b""}
    paths = [tmp_path / name for name in contents]
    for path in paths:
        path.write_bytes(contents[path.name])
    check_written(paths[:1])
    with pytest.raises(OSError, match=os.strerror(28)):
        check_written(paths)
    assert list(tmp_path.iterdir()) == paths[:1]
