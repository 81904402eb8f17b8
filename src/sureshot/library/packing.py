"""Videos to parcels that only have to be committed: the half of indexing that any machine does."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace

from sureshot.library.encode import Advance, EncodedVideo, encode_videos
from sureshot.library.worklist import Worklist
from sureshot.media.discover import Source
from sureshot.models.encoders.protocol import Encoder
from sureshot.store.parcels import Parcel
from sureshot.store.rows import VideoRecord
from sureshot.store.store import Store

# Gives parcels of all videos of a list, those together that are to be committed together.
Packing = Callable[[Worklist, Advance], Generator[list[Parcel], None, None]]


def pack_videos(
    store: Store,
    encoder: Encoder,
    sources: Sequence[Source],
    *,
    workers: int | None = None,
    advance: Advance = lambda source, share, seconds: None,
) -> Generator[Parcel, None, None]:
    """Decode and encode videos and write their windows beside the index, in no fixed order.

    To end early, close it (`contextlib.closing`).

    Args:
        store: index that the videos are for.
        encoder: the encoder.
        sources: the videos.
        workers: decoding threads; None takes half the cores, at most four.
        advance: function told how far a video is, as by `sureshot.library.encode.encode_videos`.

    Raises:
        StoreError: the windows cannot be written.
    """
    encoding = encode_videos(sources, store.settings, encoder, workers=workers, advance=advance)
    with closing(encoding) as videos:
        for video in videos:
            record = _finished(video)
            yield Parcel(record) if record.reason else store.pack(record, video.windows)


def pack_here(store: Store, encoder: Encoder, workers: int | None = None) -> Packing:
    """The packing that this process does by itself, one video after another."""

    def packing(todo: Worklist, advance: Advance) -> Generator[list[Parcel], None, None]:
        for page in todo.pages():
            made = pack_videos(store, encoder, page, workers=workers, advance=advance)
            with closing(made) as parcels:
                for parcel in parcels:
                    yield [parcel]

    return packing


def record_of(source: Source, **known: object) -> VideoRecord:
    """What an index knows of a source by looking at it, and some more."""
    blank = VideoRecord(
        path=source.path, kind=source.kind, size=source.size, mtime_ns=source.mtime_ns
    )
    return replace(blank, **known)  # type: ignore[arg-type]


def _finished(video: EncodedVideo) -> VideoRecord:
    if video.error is not None:
        reason, transient = str(video.error), video.error.transient
        return record_of(video.source, reason=reason, transient=transient)
    duration = video.windows[-1].end
    return record_of(video.source, digest=video.digest, note=video.note, duration=duration)
