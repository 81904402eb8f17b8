"""Which moments show the same pictures."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8

from sureshot.library.moments import Moment
from sureshot.media.signature import Patterns

_COPY = 0.75  # share of frames that must be found again in another video to call it a copy


class Copies:
    """Tells moments that show the same pictures, comparing any two windows once.

    Only another video can be a copy: a shot that one video repeats stays two moments.

    Args:
        paths: the video of each window.
        signatures: signatures of the frames of each window, padding zero.
    """

    def __init__(
        self, paths: Sequence[Path], signatures: UInt8[np.ndarray, "windows frames 288"]
    ) -> None:
        numbers = {path: number for number, path in enumerate(dict.fromkeys(paths))}
        self._video = np.array([numbers[path] for path in paths], int)
        self._signatures = signatures
        self._frames: Patterns | None = None
        self._telling = np.zeros(0)
        self._found: dict[int, Bool[np.ndarray, "windows frames"]] = {}
        self._shown: dict[tuple[int, ...], Bool[np.ndarray, " windows"]] = {}

    def fold(self, moments: Sequence[Moment], most: int) -> list[Moment]:
        """The first ``most`` moments, with later ones that show the same pictures under them.

        Args:
            moments: moments of these windows, best first.
            most: moments kept.
        """
        originals = self._originals(moments, most)
        kept: dict[int, Moment] = {}
        for place, moment in enumerate(moments):
            if place in originals:
                copies = kept[originals[place]].copies
                if moment.path not in copies:
                    copies.append(moment.path)
            elif len(kept) < most:
                kept[place] = moment.alone()
        return list(kept.values())

    def without(self, moments: Sequence[Moment], most: int) -> list[Moment]:
        """All moments but those that `fold` would fold under the first ``most``."""
        originals = self._originals(moments, most)
        return [moment for place, moment in enumerate(moments) if place not in originals]

    def _originals(self, moments: Sequence[Moment], most: int) -> dict[int, int]:
        """The place of the moment of which each copy is one, by the place of the copy."""
        originals: dict[int, int] = {}
        best = np.array([moment.best for moment in moments], int)
        kept = 0
        self._look([row for moment in moments[:most] for row in moment.rows])
        for place, moment in enumerate(moments):
            if kept == most:
                break
            if place not in originals:
                kept += 1
                for later in np.flatnonzero(self._showing(moment)[best[place + 1 :]]).tolist():
                    originals.setdefault(place + 1 + later, place)
        return originals

    def _showing(self, moment: Moment) -> Bool[np.ndarray, " windows"]:
        """Which windows show what a moment shows.

        All windows of the moment count: of two copies of a long shot another one may score best.
        """
        if (known := self._shown.get(tuple(moment.rows))) is not None:
            return known
        self._look(moment.rows)
        found = np.any([self._found[row] for row in moment.rows], axis=0).sum(-1)
        copies = (found >= _COPY * self._telling) & (self._telling > 0)
        if len(moment.rows) == 1:  # of longer ones there may be very many
            self._shown[tuple(moment.rows)] = copies
        return copies

    def _look(self, rows: Sequence[int]) -> None:
        """Compare all windows with those of some that were not compared yet."""
        rows = list(dict.fromkeys(row for row in rows if row not in self._found))
        if not rows:
            return
        if self._frames is None:
            frames = Patterns(self._signatures)
            self._telling = frames.telling.sum(-1)
            self._frames = frames
        one, other = self._frames.alike(rows)
        size = self._signatures.shape[1]
        apart = self._video[one // size] != self._video[other // size]
        one, other = one[apart], other[apart]
        place = np.zeros(len(self._video), int)
        place[rows] = np.arange(len(rows))
        found = np.zeros((len(rows), *self._signatures.shape[:2]), bool)
        found[place[other // size], one // size, one % size] = True
        self._found |= dict(zip(rows, found, strict=True))
