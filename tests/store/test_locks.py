"""A lock is one's own, or shared, or not to be had; closing its file gives it up."""

import contextlib
from pathlib import Path

import pytest

from sureshot.errors import StoreError
from sureshot.store.locks import acquire, open_lock


def opened(path: Path, stack: contextlib.ExitStack, *, make: bool = True) -> int:
    found = open_lock(str(path), stack, make=make)
    assert found is not None
    return found


def test_one_holds_a_lock_until_its_file_is_closed(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as other:
        assert acquire(opened(tmp_path / "lock", stack), patience=0.0)
        mine = opened(tmp_path / "lock", other)
        assert not acquire(mine, patience=0.01)
        with pytest.raises(StoreError, match="held"):
            acquire(mine, patience=0.01, held=lambda: StoreError("held"))
        stack.close()
        assert acquire(mine, patience=0.0)


def test_a_shared_lock_keeps_only_those_away_who_do_not_share(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        first, second = (opened(tmp_path / "lock", stack) for _ in range(2))
        assert acquire(first, shared=True, patience=0.0)
        assert acquire(second, shared=True, patience=0.0)
        assert not acquire(opened(tmp_path / "lock", stack), patience=0.0)


def test_a_folder_can_be_locked_and_what_is_not_there_cannot(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        assert acquire(opened(tmp_path, stack, make=False), patience=0.0)
        assert open_lock(str(tmp_path / "none"), stack) is None
        assert open_lock(str(tmp_path / "no" / "folder"), stack, make=True) is None
        assert list(tmp_path.iterdir()) == []
