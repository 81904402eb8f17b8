"""What an index holds: to look at, and to take away. The videos themselves are never touched."""

import contextlib
import glob
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sureshot.errors import ModelError, QueryError, SureshotError
from sureshot.library.answer import JSON_SCHEMA, reasons
from sureshot.library.confidence import describe_card, find_card
from sureshot.library.judging import said_of_judged
from sureshot.library.label_paths import labels_of_index
from sureshot.library.labels import read_labels
from sureshot.models.bank import bank_of
from sureshot.places import absolute, index_place
from sureshot.settings import to_values
from sureshot.store.checking import Fault, Told, find_faults
from sureshot.store.header import IndexSettings
from sureshot.store.store import Store
from sureshot.text import counted, duration, plain, printable

CHECKED = "Checked: every row is as it was written, and nothing is missing."


@dataclass(frozen=True, slots=True, repr=False)
class Contents:
    """What an index holds.

    Attributes:
        index: where it is.
        videos: videos that can be found.
        windows: their windows.
        seconds: their length.
        bytes: size on disk or in S3 storage; 0 in others, where nobody knows.
        fingerprint: digest that identifies the model that wrote the index.
        settings: name of that model, and how videos are cut and sampled.
        status: what percentages are learned from, or why there are none.
        failed: files that could not be indexed, with reasons.
        notes: videos that were indexed in spite of some damage, with what it was.
        excluded: patterns of what is left out.
        judged: searches whose hits somebody judged, with `sureshot judge` or while searching.
        telling: number of them that percentages can be learned from.
        trouble: what of the index is damaged or lost, as sentences with the mend in them.
        faults: all that is wrong with the index, where it was checked as a whole; else None.
    """

    index: str
    videos: int
    windows: int
    seconds: float
    bytes: int
    fingerprint: str
    settings: IndexSettings
    status: str
    failed: tuple[tuple[Path, str], ...]
    notes: tuple[tuple[Path, str], ...]
    excluded: tuple[str, ...] = ()
    judged: int = 0
    telling: int = 0
    trouble: tuple[str, ...] = ()
    faults: tuple[Fault, ...] | None = None

    @property
    def summary(self) -> str:
        """All but the single files, a line each."""
        settings = self.settings
        cut = "cut at scene changes" if settings.scenes else "not cut at scene changes"
        if settings.scenes and not settings.look:
            cut = "cut at hard cuts only"
        if settings.decode != "auto":
            cut += f", {'all frames' if settings.decode == 'all' else 'only keyframes'} decoded"
        length = f", {duration(self.seconds)} in {counted(self.windows, 'window')}"
        lines = [
            f"Index       {plain(self.index)}",
            f"Videos      {self.videos}{length if self.videos else ''}",
            f"Model       {plain(settings.model)}, version {self.fingerprint[:12]}",
            f"Windows     of at most {settings.window:g} s, {cut}; "
            f"{counted(settings.frames, 'frame')} of each seen",
            f"On disk     {self._size()}",
            f"Percentages {plain(self.status)}",
        ]
        if self.judged:
            lines.append(f"Judged      {said_of_judged(self.judged, self.telling)}")
        if self.excluded:
            lines.append(f"Excluded    {', '.join(map(plain, self.excluded))}")
        if self.failed:
            lines.append(f"Failed      {counted(len(self.failed), 'video')}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        return {
            "schema": JSON_SCHEMA,
            "index": printable(self.index),
            "videos": self.videos,
            "windows": self.windows,
            "seconds": round(self.seconds, 3),
            "bytes": self.bytes,
            "fingerprint": self.fingerprint,
            "settings": to_values(self.settings),
            "status": self.status,
            "failed": reasons(self.failed),
            "notes": reasons(self.notes),
            "excluded": [printable(pattern) for pattern in self.excluded],
            "judged": self.judged,
            "trouble": list(self.trouble),
            "faults": None if self.faults is None else [asdict(fault) for fault in self.faults],
        }

    def __repr__(self) -> str:
        lines = [self.summary]
        lines += [f"  failed: {plain(path)}: {plain(reason)}" for path, reason in self.failed]
        lines += [f"  damaged: {plain(path)}: {plain(note)}" for path, note in self.notes]
        lines += self.trouble
        if self.faults is not None:
            lines += [f"  wrong: {fault.what} {fault.mend}" for fault in self.faults]
            lines += [] if self.faults else [CHECKED]
        return "\n".join(lines)

    def _size(self) -> str:
        """Bytes in words, and what a minute of video costs of them."""
        if not self.bytes:
            return "unknown, as it is in this storage"
        size = f"{self.bytes / 1e3:.0f} kB" if self.bytes < 1e6 else f"{self.bytes / 1e6:.1f} MB"
        if not self.seconds:
            return size
        return f"{size} ({self.bytes / 1e3 / (self.seconds / 60):.0f} kB a minute of video)"


def has_index(db: str | Path | None = None) -> bool:
    """Whether an index lies at a place; None is the default index of this user.

    Raises:
        StoreError: the place cannot be looked at.
    """
    return Store.exists(index_place(db))


def status(
    db: str | Path | None = None,
    *,
    check: bool = False,
    told: Told = lambda done, all_: None,
) -> Contents:
    """What an index holds, with which model, how large it is, and what failed and why.

    Args:
        db: folder or object-storage URI; None is the default index of this user.
        check: whether to read all of it and hold every row against its checksum.
        told: called with the windows checked so far and all windows.

    Raises:
        StoreError: there is no index, or it cannot be read.
    """
    store = Store.open(index_place(db))
    records = store.videos()
    good = [record for record in records if not record.reason]
    return Contents(
        index=store.location,
        videos=len(good),
        windows=store.count(),
        seconds=sum((record.duration for record in good), 0.0),
        bytes=store.bytes_on_disk(),
        fingerprint=store.fingerprint,
        settings=store.settings,
        status=_calibrated(store),
        failed=tuple((record.path, record.reason) for record in records if record.reason),
        notes=tuple((record.path, record.note) for record in good if record.note),
        excluded=store.excluded(),
        **_judged(store.location),
        trouble=tuple(store.trouble()),
        faults=tuple(find_faults(store.location, told)) if check else None,
    )


def remove(
    paths: str | Path | Sequence[str | Path],
    *,
    db: str | Path | None = None,
    exclude: bool = False,
) -> int:
    """Forget videos; all of them or, where a path is not indexed, none.

    Args:
        paths: videos, or folders whose videos are forgotten; one or several.
        db: folder or object-storage URI; None is the default index of this user.
        exclude: whether indexing leaves the paths out from now on, until ``include`` of
            `sureshot.index` takes that back.

    Returns:
        How many were forgotten.

    Raises:
        ArgumentError: a path is empty.
        QueryError: nothing at or below one of the paths is indexed.
        StoreError: there is no index, or it cannot be written.
    """
    # A text is one path: its first letter may be the /, below which everything lies.
    tops = [absolute(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    store = Store.open(index_place(db))
    records = store.videos()
    for top in tops:
        if not any(record.path.is_relative_to(top) for record in records):
            raise QueryError(f"Nothing at or below {top} is indexed; nothing was removed.")
    chosen = [r for r in records if any(r.path.is_relative_to(top) for top in tops)]
    if exclude:
        store.set_excluded([glob.escape(str(top)) for top in tops], excluded=True)
    store.remove(chosen)
    store.compact()
    return len(chosen)


def reset(db: str | Path | None = None) -> bool:
    """Delete a whole index.

    Returns:
        Whether there was one.

    Raises:
        StoreError: it is in object storage, something in its place is not an index, or its files
            cannot be deleted.
    """
    there = has_index(db)
    # Where there is none, what a killed deletion has left of one goes.
    Store.delete(index_place(db))
    return there


def _judged(location: str) -> dict[str, int]:
    """How many searches of an index were judged; none where that cannot be read."""
    with contextlib.suppress(SureshotError):
        labels = read_labels(labels_of_index(location))
        return {"judged": len(labels), "telling": sum(one.state != "absent" for one in labels)}
    return {}


def _calibrated(store: Store) -> str:
    """What percentages are learned from, and why there are none."""
    model = store.settings.model
    try:
        bank = bank_of(model, store.fingerprint)
    except ModelError:
        # Searching says which of the two it is.
        return "not calibrated; the model has changed since, or its bank is damaged"
    card, _, warnings = find_card(store.location, model, store.fingerprint, bank)
    if card is not None:
        return f"calibrated on {describe_card(card)}"
    return "; ".join(("not calibrated", *warnings))
