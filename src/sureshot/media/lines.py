"""Lines of a video with their times: subtitles, text in the picture, speech.

Readers are imported when something is read: an index and a search know lines only.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sureshot.errors import SureshotError
from sureshot.media.workers import usual_workers
from sureshot.text import one_line

if TYPE_CHECKING:
    from sureshot.media.subtitles import Sidecar

# Processor seconds per second of video, about; of speech it is that of a model of the size "small".
_COST = {"subtitles": 0.0, "picture": 0.07, "speech": 0.3}

Source: TypeAlias = Literal["subtitles", "picture", "speech"]
SOURCES: tuple[Source, ...] = ("subtitles", "picture", "speech")
TITLES: dict[Source, str] = {
    "subtitles": "Subtitles",
    "picture": "Text in the picture",
    "speech": "Speech",
}


class Line(NamedTuple):
    """Words of a video, in seconds from its start."""

    start: float
    end: float
    text: str
    source: Source
    language: str = ""  # a tag such as ``en`` or ``pt-BR``; empty where nothing says


def why_not(source: Source, speech: str | None = None) -> str:
    """Why a source cannot be read here, and what to do about it; empty if it can."""
    if source == "subtitles":
        return ""
    if source == "picture":
        from sureshot.media import picture_text

        return picture_text.why_not()
    from sureshot.media import speech as hearing

    return hearing.why_not(speech)


def cost(source: Source, seconds: float) -> float:
    """About how many seconds it takes here to read so many seconds of video."""
    return _COST[source] * seconds / usual_workers()


def stamp(source: Source, sidecars: Sequence["Sidecar"] = (), speech: str | None = None) -> str:
    """What the lines of a source depend on besides the video; they are read again if it changes."""
    if source == "subtitles":
        from sureshot.media import subtitles

        return subtitles.stamp(sidecars)
    if source == "picture":
        from sureshot.media import picture_text

        return picture_text.stamp()
    from sureshot.media import speech as hearing

    return hearing.stamp(speech)


def read(
    video: Path,
    source: Source,
    *,
    sidecars: Sequence["Sidecar"] = (),
    duration: float = math.inf,
    rate: float = 1.0,
    speech: str | None = None,
    note: Callable[[str], None] = lambda remark: None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Iterator[Line]:
    """The lines of one video from one source, those of one language in the order of their times.

    VideoError is the reason why nothing in the video can be read, SureshotError why the source
    cannot be read here.

    Args:
        sidecars: the video's subtitle files, see `subtitles.sidecars`.
        duration: seconds of the video; subtitles that begin later are left out.
        rate: frames per second of a folder of frames.
        speech: model of the speech reader: a local folder, or a name on the hub.
        note: called with a remark on each file or track that cannot be read, or not to its end.
        progress: called with the seconds of video done so far.
    """
    if reason := why_not(source, speech):
        raise SureshotError(f"{TITLES[source]} cannot be read: {reason}.")
    lines: Iterable[Line]
    if source == "subtitles":
        from sureshot.media import subtitles

        lines = subtitles.read(video, sidecars, duration=duration, note=note)
    elif source == "picture":
        from sureshot.media import picture_text

        lines = picture_text.read(video, rate=rate, progress=progress)
    else:
        from sureshot.media import speech as hearing

        lines = hearing.read(video, speech or "", progress=progress)
    for line in lines:
        if text := one_line(line.text):
            yield line._replace(text=text)
