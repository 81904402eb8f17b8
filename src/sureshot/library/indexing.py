"""From folders to an index: find, decode, encode, write. Can go on after every video.

A video is written when its last window is encoded, or with others within a second of that, so
whatever ends the run, what is written stays.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from sureshot.errors import ArgumentError, QueryError, option
from sureshot.library.committing import Committing
from sureshot.library.crew import Crew, on_ray
from sureshot.library.excluding import exclude_too, forget_excluded, include_again
from sureshot.library.indexed import Indexed
from sureshot.library.packing import Packing, pack_here
from sureshot.library.planning import Planner, find_sources, is_on_disk
from sureshot.library.shard import WHOLE, Shard
from sureshot.library.worklist import Worklist
from sureshot.media.excluded import Excluded
from sureshot.models.encoders.protocol import Encoder
from sureshot.models.loading import load_searchable
from sureshot.models.retriever import Retriever
from sureshot.places import absolute, absolute_model, exists_at, expand, index_place
from sureshot.store.header import Decode, IndexSettings
from sureshot.store.rows import VideoRecord
from sureshot.store.store import Store
from sureshot.store.turns import unfinished
from sureshot.text import counted, plain

_MOST_THREADS = 64
_AT_ONCE = 500  # videos removed in one commit
_OLD = (
    "This index was made when scenes ended at hard cuts only, and goes on so. For times that "
    "follow fades as well, remove it with `sureshot reset` and index your videos again."
)


def index(
    paths: str | Path | Sequence[str | Path],
    *,
    db: str | Path | None = None,
    model: str | None = None,
    device: str | None = None,
    engine: str | None = None,
    frames: int | None = None,
    window: float | None = None,
    scenes: bool | None = None,
    decode: Decode | None = None,
    frame_rate: float | None = None,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    force: bool = False,
    prune: bool = False,
    workers: int | None = None,
    shard: str | None = None,
    ray: str | None = None,
    observe: Callable[[Indexed], None] = lambda result: None,
) -> Indexed:
    """Make videos searchable, or bring their index up to date: only what is new costs time.

    ``model``, ``frames``, ``window``, ``scenes``, ``decode`` and ``frame_rate`` are settled when an
    index is made (`sureshot.store.header.IndexSettings`). Left out, they are those of the index, or
    the defaults for a new one; a trained model has a number of frames of its own.

    Args:
        paths: videos, folders of videos, folders of numbered frames; one or several.
        db: folder or object-storage URI of the index; None is the default index of this user.
        model: ``bundled``, a folder or the name of a model on the hub.
        device: torch device; None takes a GPU where there is one.
        engine: ``torch`` or ``openvino``; None takes OpenVINO where it is installed.
        frames: frames sampled from each window.
        window: longest window in seconds.
        scenes: whether a change of scene begins a window.
        decode: frames that are decoded: ``all``, ``keyframes`` or ``auto``.
        frame_rate: frames a second in a folder of frames.
        exclude: patterns of what is left out from now on, see `sureshot.media.excluded.Excluded`;
            the index remembers them, and forgets what it has of that.
        include: patterns that are excluded no more.
        force: index again what is already there, failed files included.
        prune: forget videos below the paths whose files are gone. A path that is itself gone (an
            unplugged drive) is left alone.
        workers: decoding threads, None takes half the cores, at most four; with ``ray`` processes
            on the machines, None takes one for two cores.
        shard: ``3/16`` deals with the third of sixteen shares, for as many processes anywhere.
        ray: where a Ray cluster answers whose machines encode, ``auto`` for the one of this
            machine; they must see the videos and the index under the same paths.
        observe: called with the growing result before the first video and after every step; may
            raise KeyboardInterrupt.

    Raises:
        ArgumentError: there is no such share, or no such number of workers.
        QueryError: none of the paths exists; or a pattern to include is not excluded.
        SureshotError: a setting is out of range.
        ModelError: the model cannot be loaded here.
        StoreError: the index has other settings or is of another model, or it cannot be read or
            written. Videos written before stay.
    """
    share = WHOLE if shard is None else Shard.parse(shard)
    if ray is None and workers is not None and not 1 <= workers <= _MOST_THREADS:
        raise ArgumentError(
            f"{option('workers', str(workers))} is not from 1 to {_MOST_THREADS}, the decoding "
            f"threads of one machine; more are for {option('ray')}."
        )
    chosen = [expand(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    # Before an index is made or a model fetched for a mistyped path. If only some are missing, the
    # others are indexed: a nightly run must not stop at an unplugged drive.
    if not any(exists_at(path) for path in chosen):
        missing = ", ".join(plain(path) for path in chosen)
        raise QueryError(f"There is nothing at {missing}; name videos or folders that hold some.")
    place = index_place(db)
    is_new = not Store.exists(place)
    settings = IndexSettings() if is_new else Store.open(place, complete=True).settings
    asked = {
        "model": absolute_model(model) if model else None,
        "frames": frames,
        "window": None if window is None else float(window),
        "scenes": scenes,
        "decode": decode,
        "frame_rate": None if frame_rate is None else float(frame_rate),
    }
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    settings = replace(settings, **given)
    with ExitStack() as held:
        cluster = None if ray is None else held.enter_context(on_ray(ray))
        encoder = load_searchable(settings.model, device, engine)
        if isinstance(encoder, Retriever) and frames is None and is_new:
            settings = replace(settings, frames=encoder.frames)
        store = Store.create(place, settings, encoder.fingerprint, encoder.dim)
        include_again(store, include)
        exclude_too(store, exclude)
        packing, said = pack_here(store, encoder, workers), list[str]()
        if cluster is not None:
            crew = Crew(
                cluster, store, encoder, chosen, device=device, engine=engine, hands=workers
            )
            packing, said = crew.packing, crew.warnings
        result = ingest(
            store,
            encoder,
            chosen,
            force=force,
            prune=prune,
            shard=share,
            observe=observe,
            packing=packing,
        )
        result.warnings += said
        return result


def ingest(
    store: Store,
    encoder: Encoder,
    paths: Sequence[Path],
    *,
    force: bool = False,
    prune: bool = False,
    shard: Shard = WHOLE,
    observe: Callable[[Indexed], None] = lambda result: None,
    workers: int | None = None,
    packing: Packing | None = None,
) -> Indexed:
    """Bring the index up to date with the videos at or below the paths.

    Args:
        store: index, opened for the model of the encoder.
        encoder: the encoder.
        paths: files and folders; folders are searched whole.
        force: index again what is already there, failed files included.
        prune: forget videos below the paths whose files are gone. A path that is itself gone (an
            unplugged drive) is left alone.
        observe: called with the growing result before the first video and after every step; may
            raise KeyboardInterrupt.
        shard: which videos are this run's; all others are left as they are.
        workers: decoding threads; None takes half the cores, at most four.
        packing: who encodes; None is this process.

    Returns:
        What the run did. ``interrupted`` is set if Ctrl-C ended it; what was written stays.

    Raises:
        StoreError: the index cannot be written. Videos written before stay.
    """
    packing = packing or pack_here(store, encoder, workers)
    began = time.monotonic()
    result = Indexed(index=store.location)
    result.warnings += store.mend()
    excluded = Excluded(store.excluded())
    # What is not there as it was written is encoded again.
    lost = {r.path for r in store.lost(thorough=True) if shard.has(r.path)}
    committing = Committing(store, result, lost, observe, began)
    try:
        committing.tell()
        with unfinished(store.location), ExitStack() as held:
            sources = held.enter_context(find_sources(paths, excluded, shard, result, observe))
            plan = Planner(store, shard, lost, force=force)
            todo = held.enter_context(plan.todo(sources, result, observe))
            packed = held.enter_context(closing(packing(todo, committing.advance)))
            try:
                for parcels in packed:
                    committing.take(parcels)
            finally:
                committing.finish()
            result.forgotten = forget_excluded(store, paths, excluded, shard.has)
            _forget_missing(store, paths, sources, shard, prune, result)
            result.warnings += filter(None, [store.sweep()[1]])
            if result.indexed + result.pruned + result.moved + result.copied + result.forgotten:
                store.compact()
    except KeyboardInterrupt:
        result.interrupted = True
    store.sync()
    store.clear()
    if result.indexed:
        result.engine = getattr(encoder, "engine", "")
    result.warnings += _on_lost(len(lost), committing.mended)
    if result.indexed and store.settings.scenes and not store.settings.look:
        result.warnings.append(_OLD)
    result.bytes_begun, result.seconds_begun = 0, 0.0
    result.elapsed = time.monotonic() - began
    return result


def _on_lost(lost: int, mended: int) -> list[str]:
    """What to say of videos whose windows were not all there when the run began.

    Args:
        lost: how many there were.
        mended: how many of them this run has encoded again.
    """
    said = []
    if mended:
        were = "was" if mended == 1 else "were"
        said.append(f"{counted(mended, 'video')} had lost windows and {were} indexed again.")
    if lost > mended:
        said.append(
            f"{counted(lost - mended, 'video')} with lost windows could not be indexed again in "
            f"this run; `sureshot status --check` names them."
        )
    return said


def _forget_missing(
    store: Store,
    paths: Sequence[Path],
    sources: Worklist,
    shard: Shard,
    prune: bool,
    result: Indexed,
) -> None:
    tops = [top for top in map(absolute, paths) if exists_at(top)]
    gone: list[VideoRecord] = []
    for record in store.each_video():
        mine = shard.has(record.path) and any(record.path.is_relative_to(top) for top in tops)
        if not mine or sources.has_object(record.path) or is_on_disk(record):
            continue
        result.missing += not prune
        result.pruned += prune
        if prune:
            gone.append(record)
        if len(gone) == _AT_ONCE:
            store.remove(gone)
            gone = []
    store.remove(gone)
