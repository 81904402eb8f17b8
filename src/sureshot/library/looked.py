"""Windows that a search looks at, and what is worked out of them whatever was asked."""

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.library.copies import Copies
from sureshot.models.comparing import Comparing
from sureshot.models.encoders.protocol import VideoFeatures
from sureshot.store.rows import StoredWindows


class Looked:
    """Windows with their codes, those of their frames, and their copies, each worked out once.

    Args:
        windows: the windows; nobody may change them.
        how: how they are compared with queries.
    """

    def __init__(self, windows: StoredWindows, how: Comparing) -> None:
        self.windows = windows
        self._how = how
        self._guard = threading.Lock()
        self._parts: list[Any] = []
        self._places: dict[int, tuple[int, int]] = {}  # part and first frame of a window

    @cached_property
    def copies(self) -> Copies:
        """Which of the windows show the same pictures."""
        return Copies(self.windows.paths, self.windows.signatures)

    @cached_property
    def _codes(self) -> Any:
        return self._how.videos(self.windows.features)

    def scores(self, texts: Any) -> Float[np.ndarray, " windows"]:
        """Score of each window with that of some coded texts which fits it best."""
        return self._how.similarity(texts, self._codes).max(0)

    def frame_scores(self, texts: Any, rows: Sequence[int]) -> list[Float[np.ndarray, " frames"]]:
        """Scores of the real frames of some windows, each as if it were the whole video."""
        with self._guard:
            self._code([row for row in rows if row not in self._places])
        places = [self._places[row] for row in rows]
        scores = {
            part: self._how.similarity(texts, self._parts[part]).max(0)
            for part in {part for part, _ in places}
        }
        counts = self.windows.mask[list(rows)].sum(1).tolist()
        return [
            scores[part][first : first + count]
            for (part, first), count in zip(places, counts, strict=True)
        ]

    def _code(self, rows: Sequence[int]) -> None:
        """Code the frames of windows that are asked for the first time."""
        if not rows:
            return
        chosen = list(rows)
        mask = self.windows.mask[chosen]
        single = self.windows.frames[chosen][mask][:, None]
        codes = self._how.videos(VideoFeatures.of_frames(single, np.ones((len(single), 1), bool)))
        counts = mask.sum(1)
        firsts = np.cumsum(counts) - counts
        self._places |= {
            row: (len(self._parts), first) for row, first in zip(rows, firsts.tolist(), strict=True)
        }
        self._parts.append(codes)
