"""A process on some machine that decodes and encodes videos for an indexing run elsewhere.

What goes to it and comes back is plain values, so that another version of Sureshot can say that it
is one.
"""

import functools
import hashlib
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

import sureshot
from sureshot.errors import SureshotError
from sureshot.library.packing import pack_videos
from sureshot.media.discover import Source
from sureshot.models.encoders.protocol import Encoder
from sureshot.models.loading import load_searchable
from sureshot.store.parcels import Parcel
from sureshot.store.store import Store
from sureshot.text import plain

_QUIET = 1.0  # seconds between two words on how far a video is
# How far a video is (its path, the share and the seconds encoded), or a parcel.
Word = tuple[Literal["at"], Path, float, float] | tuple[Literal["done"], Parcel]


@functools.cache
def version() -> str:
    """Which Sureshot this is: its number, and a digest of its source."""
    digest = hashlib.blake2b(digest_size=6)
    root = Path(sureshot.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return f"{sureshot.__version__} ({digest.hexdigest()})"


class Hand:
    """Encodes what it is given.

    Args:
        location: place of the index.
        model: model of the index.
        device: torch device; None takes a GPU where there is one.
        engine: what computes, as `sureshot.models.loading.load_searchable` takes it.
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
        """Parcels of videos as they are done, and now and then how far a video is."""
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
            parcels = pack_videos(
                self._store, self._encoder, sources, workers=self._threads, advance=advance
            )
            for parcel in parcels:
                say(("done", parcel))
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
