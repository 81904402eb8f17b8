"""Prepared frames that are kept in memory, so that a small data set is decoded once."""

from sureshot.datasets.split import Item
from sureshot.models.encoders.together import Prepared

ROOM = 512 * 2**20  # bytes


class FrameMemory:
    """Frames of videos as one encoder prepares them, sampled by one rule; the same in all epochs.

    What does not fit any more is not kept.

    Args:
        room: most bytes of frames.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._kept: dict[Item, Prepared] = {}

    def get(self, item: Item) -> Prepared | None:
        """The frames of a video; None where they are not kept."""
        return self._kept.get(item)

    def put(self, item: Item, frames: Prepared) -> None:
        """Keep the frames of a video, if there is room."""
        if item not in self._kept and frames.nbytes <= self._room:
            self._room -= frames.nbytes
            self._kept[item] = frames
