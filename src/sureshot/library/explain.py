"""The frames behind an answer, fetched from the videos for a contact sheet."""

from collections.abc import Sequence

from sureshot.errors import VideoError
from sureshot.library.answer import Answer, FrameScore, Hit
from sureshot.media.sheet import SheetFrame, SheetRow
from sureshot.media.video import frames_at
from sureshot.text import counted, printable, time_range

_SIDE = 180  # shorter side of the frames fetched, in pixels
_FRAMES = 12  # frames of one hit at most


def sheet_rows(answer: Answer, frame_rate: float) -> list[SheetRow]:
    """One row a hit: its frames at its time range, each with its own score.

    A video that has vanished or cannot be read any more gives a row that says so.

    Args:
        answer: the answer of a search.
        frame_rate: frames per second of a folder of frames.
    """
    return [_row(hit, frame_rate) for hit in answer]


def _row(hit: Hit, frame_rate: float) -> SheetRow:
    title = f"{hit.rank}. {printable(hit.path.name)}"
    right = f"right {hit.percentage} · " if hit.percentage else ""
    folder = f" · in {printable(hit.path.parent.name)}" if hit.path.parent.name else ""
    subtitle = f"{time_range(hit.start, hit.end)} · {right}score {hit.score:z.3f}{folder}"
    if hit.copies:
        subtitle += f" · {counted(len(hit.copies), 'copy', 'copies')} elsewhere"
    chosen = _thinned(hit.frames)
    try:
        images = frames_at(hit.path, [f.time for f in chosen], side=_SIDE, rate=frame_rate)
    except VideoError as error:
        return SheetRow(title, f"{subtitle} · cannot be shown, the video {error}", ())
    frames = tuple(
        SheetFrame(image, frame.time, frame.score)
        for image, frame in zip(images, chosen, strict=True)
    )
    return SheetRow(title, subtitle, frames)


def _thinned(frames: Sequence[FrameScore]) -> list[FrameScore]:
    """At most a dozen frames, evenly over the hit, the best one among them."""
    step = -(-len(frames) // _FRAMES)
    best = max(range(len(frames)), key=lambda i: frames[i].score)
    return list(frames[best % step :: step])
