"""What an index holds: to look at, and to take away. The videos themselves are never touched."""

import contextlib
import glob
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sureshot.errors import ModelError, QueryError, SureshotError, option
from sureshot.library.confidence import describe_card, find_card
from sureshot.library.judging import Judgements
from sureshot.library.results import JSON_SCHEMA, json_values
from sureshot.library.video_list import split_failed
from sureshot.media.discover import as_pattern, is_away, is_folder, is_gone
from sureshot.models.hub_bank import bank_of
from sureshot.paths import IndexPlace, absolute, as_list, cache_dir, index_place
from sureshot.progress import Progress
from sureshot.s3 import ObjectPath
from sureshot.store.index import Store
from sureshot.store.maintenance import Fault, find_faults
from sureshot.store.rows import IndexSettings, VideoRecord
from sureshot.store.vector_search import VideoSet, is_selected
from sureshot.text import counted, duration, plain

CHECKED = "Checked: every row is as it was written, and nothing is missing."


@dataclass(frozen=True, slots=True, repr=False)
class Contents:
    """What an index holds.

    Attributes:
        index: where it is.
        videos: videos that can be found.
        windows: their windows.
        seconds: their length.
        bytes: size on disk or in S3 storage; 0 in others, where it is unknown.
        fingerprint: digest that identifies the model that wrote the index.
        settings: name of that model, and how videos are cut and sampled.
        status: what percentages are learned from, or why there are none.
        failed: files that could not be indexed, with reasons.
        notes: videos that were indexed in spite of some damage, with what it was.
        excluded: patterns of what is left out.
        folders: those that the videos are in.
        judged: searches whose hits somebody judged, with `sureshot judge` or while searching.
        judging: what is to be said of them, in sentences.
        missing: videos whose files are gone, which stay until ``prune``; storage is not asked.
        away: videos whose folder or disk is not there now.
        away_folders: the folders that they are in.
        trouble: what of the index is damaged, lost or missing, as sentences with the fix in them.
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
    folders: tuple[Path, ...] = ()
    judged: int = 0
    judging: str = ""
    missing: int = 0
    away: int = 0
    away_folders: tuple[Path, ...] = ()
    trouble: tuple[str, ...] = ()
    faults: tuple[Fault, ...] | None = None

    @property
    def summary(self) -> str:
        """All but the single files, a line each."""
        settings = self.settings
        cut = "cut at scene changes" if settings.scenes else "not cut at scene changes"
        if settings.scenes and not settings.decode_window:
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
            lines.append(f"Judged      {self.judging}")
        if self.excluded:
            lines.append(f"Excluded    {', '.join(map(plain, self.excluded))}")
        if self.failed:
            lines.append(f"Failed      {counted(len(self.failed), 'video')}")
        if self.missing:
            forget = f"`sureshot index FOLDER` with {option('prune', True)} forgets what is gone"
            lines.append(f"Gone        {counted(self.missing, 'video')}; {forget}")
        if self.away:
            lines.append(f"Not there   {away_sentence(self.away, self.away_folders)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as docs/json.md describes them."""
        values = json_values(self, schema=JSON_SCHEMA)
        del values["judging"]
        return values

    def __repr__(self) -> str:
        lines = [self.summary]
        lines += [f"  failed: {plain(path)}: {plain(reason)}" for path, reason in self.failed]
        lines += [f"  damaged: {plain(path)}: {plain(note)}" for path, note in self.notes]
        lines += self.trouble
        if self.faults is not None:
            lines += [f"  wrong: {fault.what} {fault.fix}" for fault in self.faults]
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


def has_index(db: IndexPlace = None) -> bool:
    """Whether an index is at a place; None is the default index of this user."""
    return Store.exists(index_place(db))


def status(
    db: IndexPlace = None,
    *,
    check: bool = False,
    progress: Progress | None = None,
    within: VideoSet | None = None,
) -> Contents:
    """What an index holds, with which model, how large it is, and what failed and why.

    ``check`` reads all of it and holds every row against its checksum. With ``within`` no other
    videos are counted or named.
    """
    store = Store.open(index_place(db))
    good, failed = split_failed(one for one in store.videos() if is_selected(one, within))
    away, away_folders = count_away(good)
    judged, judging = 0, ""
    with contextlib.suppress(SureshotError):
        kept = Judgements.of_index(store)
        judged, judging = len(kept), kept.described()
    return Contents(
        index=store.location,
        videos=len(good),
        windows=sum(one.windows for one in good) if within else store.count(),
        seconds=sum((record.duration for record in good), 0.0),
        bytes=store.bytes_on_disk(),
        fingerprint=store.fingerprint,
        settings=store.settings,
        status=_calibrated(store),
        failed=tuple((record.path, record.reason) for record in failed),
        notes=tuple((record.path, record.note) for record in good if record.note),
        excluded=store.excluded(),
        folders=tuple(sorted({record.path.parent for record in good})),
        missing=_count_missing(record.path for record in good),
        away=away,
        away_folders=away_folders,
        judged=judged,
        judging=judging,
        trouble=(*store.trouble(), *store.missing_shards()),
        faults=tuple(find_faults(store.location, progress)) if check else None,
    )


def count_away(records: Iterable[VideoRecord]) -> tuple[int, tuple[Path, ...]]:
    """How many videos are in folders that are not there now, and the highest of those folders."""
    inside = Counter(record.path.parent for record in records)
    gone = [folder for folder in inside if is_away(folder / "video")]
    highest = {next(p for p in (folder, *folder.parents) if is_folder(p.parent)) for folder in gone}
    return sum(inside[folder] for folder in gone), tuple(sorted(highest))


def _count_missing(videos: Iterable[Path]) -> int:
    """How many videos are gone from folders that are there."""
    inside, missing = defaultdict[Path, set[str]](set), 0
    for video in videos:
        if not isinstance(video, ObjectPath):
            inside[video.parent].add(video.name)
    for folder, names in inside.items():
        if not is_away(folder / "video"):
            with contextlib.suppress(OSError):  # one list of names is less than a look at each
                names.difference_update(os.listdir(folder))  # noqa: PTH208
                missing += sum(is_gone(folder / name) for name in names)
    return missing


def away_sentence(videos: int, folders: Sequence[Path]) -> str:
    """How many videos are away, and where from."""
    more = f" and {counted(len(folders) - 1, 'more folder')}" if len(folders) > 1 else ""
    return f"{counted(videos, 'video')} of {plain(folders[0])}{more}; is the disk connected?"


def remove(
    paths: str | Path | Sequence[str | Path],
    *,
    db: IndexPlace = None,
    exclude: bool = False,
    alone: bool = False,
) -> int:
    """Forget videos, or those of folders; all or, where a path is not indexed, none. How many.

    With ``exclude`` indexing leaves the paths out from now on, until ``include`` of
    `sureshot.index` takes that back. With ``alone`` the paths are videos: of a folder of frames
    other videos in it stay.
    """
    # A text is one path: its first letter may be the /, below which everything is.
    tops = [absolute(path) for path in as_list(paths)]
    patterns = [as_pattern(glob.escape(str(top))) for top in tops] if exclude else []
    store = Store.open(index_place(db))
    left, wanted, chosen = dict.fromkeys(tops), frozenset(tops), list[VideoRecord]()
    for record in store.videos():
        around = () if alone and not exclude else record.path.parents
        if named := wanted.intersection((record.path, *around)):
            if alone and record.path not in named:
                raise QueryError(
                    f"{plain(record.path)} and others in that folder would be left out, too; "
                    f"`sureshot remove --exclude` does that."
                )
            chosen.append(record)
            for top in named:
                left.pop(top, None)
    if left:
        raise QueryError(f"Nothing at or below {next(iter(left))} is indexed; nothing was removed.")
    if exclude:
        store.set_excluded(patterns, excluded=True)
    store.remove(chosen)
    store.compact()
    forget_films(chosen)
    return len(chosen)


def films_dir() -> Path:
    """Where `sureshot serve` keeps films that it had to make, which begin with the video's id."""
    return cache_dir() / "films"


def forget_films(records: Iterable[VideoRecord]) -> None:
    """Delete the films that were made of videos to be played."""
    ids = {record.id for record in records}
    with contextlib.suppress(OSError, SureshotError):  # no cache; or its next server deletes them
        for film in films_dir().glob("*.mp4"):
            if film.name.partition("-")[0] in ids:
                film.unlink(missing_ok=True)


def reset(db: IndexPlace = None) -> bool:
    """Delete a whole index; whether there was one."""
    there = has_index(db)
    with contextlib.suppress(SureshotError):  # one that is damaged goes all the same
        forget_films(Store.open(index_place(db)).videos())
    # Where there is none, what a killed deletion has left of one goes.
    Store.delete(index_place(db))
    return there


def _calibrated(store: Store) -> str:
    """What percentages are learned from, and why there are none."""
    model = store.settings.model
    try:
        bank = bank_of(model, store.fingerprint)
    except ModelError:
        # Searching says which of the two it is.
        return "not calibrated; the model has changed since, or its bank is damaged"
    card, warnings = find_card(store.location, model, store.fingerprint, bank)
    if card is not None:
        return f"calibrated on {describe_card(card)}"
    return "; ".join(("not calibrated", *warnings))
