"""The video that a search is asked about: its windows, in the index or not."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from sureshot.errors import QueryError, VideoError
from sureshot.media.discover import Source, discover, frame_files
from sureshot.models.encoders.protocol import Encoder, VideoFeatures
from sureshot.store.header import IndexSettings
from sureshot.store.rows import StoredWindows
from sureshot.store.store import Store
from sureshot.text import printable

_MOST = 24  # windows of a long video that are looked at


def asked_windows(
    store: Store | IndexSettings, encoder: Encoder, path: Path, at: float | None
) -> VideoFeatures:
    """The windows of a video to look at, from the index or else decoded now.

    Args:
        store: the index; or how a video is cut into windows, where there is no index.
        encoder: the encoder that wrote the index.
        path: any video file, photo or folder of frames, absolute.
        at: seconds; None takes at most 24 windows, evenly over the whole video.

    Raises:
        VideoError: the video cannot be read; the message names it.
        QueryError: there is no video at the path, or nothing at that time of it.
    """
    from sureshot.library.encode import encode_video

    source = _source(path)
    stored = None if isinstance(store, IndexSettings) else _stored(store, source)
    if stored is not None:
        start, end, windows = stored.start, stored.end, stored.features
    else:
        settings = store if isinstance(store, IndexSettings) else store.settings
        try:
            encoded = encode_video(source, settings, encoder).windows
        except VideoError as error:
            raise VideoError(f"{printable(path)} {error}.", transient=error.transient) from error
        windows = _padded([w.frames for w in encoded])
        start = np.array([w.start for w in encoded])
        end = np.array([w.end for w in encoded])
    if at is None:
        spread = np.linspace(0, len(start) - 1, min(len(start), _MOST))
        return windows.part(spread.round().astype(int))
    if not 0 <= at <= end[-1]:
        last = f"{end[-1]:.2f}".rstrip("0").rstrip(".")
        raise QueryError(f"{printable(path)} is {last} s long; there is nothing at {at:g} s.")
    here = max(int(np.searchsorted(start, at, side="right")) - 1, 0)
    return windows.part(slice(here, here + 1))


def _stored(store: Store, source: Source) -> StoredWindows | None:
    """The windows that the index has of a video; None if it is not indexed or has changed since."""
    record = next((r for r in store.videos() if r.path == source.path), None)
    if record is None or not record.windows or record.mtime_ns != source.mtime_ns:
        return None
    windows = store.windows_of(source.path)
    # Another process may have removed it since.
    return windows if len(windows.keys) == record.windows else None


def _source(path: Path) -> Source:
    """The one video at a path.

    Raises:
        QueryError: there is none.
    """
    try:
        ordinary = path.is_dir() and not frame_files(path)
    except OSError:
        ordinary = False  # `discover` says why
    # It would search all that lies below an ordinary folder.
    found = None if ordinary else next(discover([path]), None)
    if isinstance(found, Source):
        return found
    if found is not None:
        raise QueryError(f"{printable(path)} cannot be read: {found.reason}.")
    raise QueryError(f"{printable(path)} is not a video file or a folder of numbered frames.")


def _padded(windows: Sequence[Float[np.ndarray, "_ dim"]]) -> VideoFeatures:
    """The frames of some windows as videos."""
    counts = np.array([len(frames) for frames in windows])
    mask = np.arange(counts.max())[None, :] < counts[:, None]
    frames = np.zeros((*mask.shape, windows[0].shape[1]), windows[0].dtype)
    frames[mask] = np.concatenate(windows)
    return VideoFeatures.of_frames(frames, mask)
