"""An index taken away as a whole, and what killed processes have left beside one."""

import shutil
import time
import uuid
from pathlib import Path

from sureshot.errors import StoreError, option
from sureshot.files import restore_folder
from sureshot.objects.client import SCHEME
from sureshot.places import absolute
from sureshot.store.remote import delete_tables, is_remote
from sureshot.store.tables import NAMES, NEW, Tables, guard, is_there
from sureshot.store.turns import LOCKS, turn
from sureshot.store.versions import ASIDE
from sureshot.trust.card import FILE as CARD

_GONE = ".gone-"  # in the name of what is being deleted
_IN_MAKING = 600.0  # seconds; a table takes well below one to be made


def delete_index(location: str) -> None:
    """Delete an index with its calibration card, and nothing else that lies in its folder.

    Everything is renamed first, so a kill leaves an index, or none, or one that says it is half
    made; what it leaves of the files, the next call deletes.

    Raises:
        StoreError: it is in a storage other than S3, something in its place is not an index, or
            its files cannot be deleted.
    """
    if is_remote(location):
        _delete_remote(location)
        return
    folder = Path(location)
    with guard(location, "delete"), turn(location):
        # `videos` first: without it an index is half made, which whoever opens it is told.
        there = [t for t in (folder / f"{n}.lance" for n in reversed(NAMES)) if is_there(t)]
        for table in there:
            _check_ours(table)
        if there:
            card = [folder / CARD] if is_there(folder / CARD) else []
            for path in (*there[:-1], *card, there[-1]):
                path.rename(f"{path}{_GONE}{uuid.uuid4().hex}")
    tidy(location, at_once=True)
    with guard(location, "delete"):
        for name in LOCKS if folder.is_dir() else ():
            (folder / name).unlink(missing_ok=True)
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()


def tidy(location: str, *, at_once: bool = False) -> None:
    """Delete what killed processes have left beside a local index.

    Args:
        location: place of the index.
        at_once: whether tables go that another process might be making just now.

    Raises:
        StoreError: it cannot be deleted.
    """
    if is_remote(location):
        return
    with guard(location, "clear the left-overs of"):
        restore_folder(Path(location) / CARD)
        for path in leftovers(location, at_once=at_once):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def leftovers(location: str, *, at_once: bool = False) -> list[Path]:
    """What killed processes have left beside a local index, but for hidden files of its card.

    Args:
        location: place of the index.
        at_once: whether tables count that another process might be making just now.
    """
    if is_remote(location):
        return []
    folder, found = Path(location), []
    for name in NAMES:
        found += [*folder.glob(f"{name}.lance{_GONE}*"), *folder.glob(f"{name}.lance{ASIDE}*")]
        for made in folder.glob(f"{name}.lance{NEW}*"):
            if at_once or time.time() - made.stat().st_mtime > _IN_MAKING:
                found.append(made)
    return sorted([*found, *folder.glob(f"{CARD}{_GONE}*")])


def _delete_remote(location: str) -> None:
    if not location.startswith(SCHEME):
        raise StoreError(f"{location} is object storage; delete it with the tools of that storage.")
    with guard(location, "delete"):
        for name in NAMES:
            if not Tables(location).is_ours_remote(name):
                raise StoreError(_not_ours(f"{location}/{name}.lance"))
        # `videos` first: without it an index is half made, which whoever opens it is told.
        delete_tables(location, tuple(reversed(NAMES)))
        (absolute(location) / CARD).unlink(missing_ok=True)


def _check_ours(folder: Path) -> None:
    """Refuse to delete what is not a table of ours; a damaged one of ours is accepted."""
    if not Tables.is_ours(folder):
        raise StoreError(_not_ours(folder))


def _not_ours(table: Path | str) -> str:
    return (
        f"{table} is not part of an index of Sureshot, so nothing was deleted. Move it "
        f"away, or choose another place with {option('db')}."
    )
