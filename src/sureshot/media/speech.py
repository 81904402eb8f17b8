"""What is said in a video, by faster-whisper with a model that the user names."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import av
import av.error
import numpy as np
from jaxtyping import Float32

from sureshot.errors import (
    ModelError,
    VideoError,
    first_line,
    install_command,
    is_installed,
    onnxruntime,
    option,
)
from sureshot.media.container import TimeBudget, open_container, within_budget
from sureshot.media.lines import Line
from sureshot.media.video import file_size, picture_stream, reading, start_of
from sureshot.paths import is_folder_at, is_local_model
from sureshot.text import plain

_VERSION = 1  # of the reading; a higher one makes indexes hear again
RATE = 16_000  # samples per second that the models hear
_PIECE = 600.0  # seconds that are heard at once; three hours would take 700 MB
_PAUSE = 30.0  # seconds at the end of a piece in which the quietest moment ends it
_QUIET = 0.2  # seconds of such a moment
_GAP = 0.1  # seconds: sound that comes this late is late; less is rounding
_LONGEST_GAP = 3600.0  # seconds: a longer one is a broken clock
_FILES = ("config.json", "model.bin", "tokenizer.json")
_BREATH = 0.8  # seconds of silence that end a sentence
_LONGEST = 12.0  # seconds of one that does not stop
_STOPS = (".", "?", "!", "…", "。", "？", "！")
_SKIP_SILENCE = True  # of it, models tell stories
_LIKELY = 0.5  # probability of a language from which lines are said to be in it


def why_not(model: str | None) -> str:
    """Why speech cannot be heard here; empty if it can, as far as that is known offline."""
    if not is_installed("faster_whisper"):
        return f"it needs faster-whisper: {install_command('speech')}"
    if not model:
        named = option("speech", "small")
        return f"it needs a model: {named} takes one from the hub, or give a local folder"
    if is_local_model(model):
        if not is_folder_at(model):
            return f"there is no folder {plain(model)}"
        missing = [name for name in _FILES if not (Path(model) / name).is_file()]
        if missing:
            return (
                f"{plain(model)} has no {' and no '.join(missing)}; give the folder of a Whisper "
                "model in CTranslate2 format"
            )
    return ""


def stamp(model: str | None) -> str:
    """What speech depends on besides the video itself."""
    parts = [str(_VERSION), f"faster-whisper {metadata.version('faster-whisper')}", str(model)]
    if model and is_local_model(model):
        status = (Path(model) / "model.bin").stat()
        parts += [str(status.st_size), str(status.st_mtime_ns)]
    return "|".join(parts)


@cache
def _model(name: str) -> Any:
    """A model from a folder, or from the hub's cache, or else from the hub."""
    onnxruntime()
    from faster_whisper import WhisperModel

    try:
        # What is in the cache is used as it is: the hub is asked for what was never there only.
        with contextlib.suppress(FileNotFoundError):
            return WhisperModel(name, compute_type="auto", local_files_only=True)
        return WhisperModel(name, compute_type="auto")
    except Exception as error:  # of the hub, or of a file that is no model, in many kinds
        reason = first_line(error)[:200]
        raise ModelError(
            f"The speech model {plain(name)} cannot be loaded ({plain(reason)}). Give a local "
            f"folder of a Whisper model in CTranslate2 format, or be online once: "
            f"{option('speech', 'small')}"
        ) from None


def read(
    video: Path,
    model: str,
    *,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Iterator[Line]:
    """What is said in a video, sentence by sentence; nothing where it has no sound.

    Each stretch is heard without what came before: a model that repeats itself would go on so.
    ``model`` is a local folder, or a name on the hub.
    """
    if video.is_dir():
        return
    for start, sound in _pieces(video):
        for line in hear(sound, model):
            yield line._replace(start=start + line.start, end=start + line.end)
            progress(start + line.end)
        progress(start + len(sound) / RATE)


def hear(sound: Float32[np.ndarray, " samples"], model: str) -> Iterator[Line]:
    """What is said in a sound of `RATE` samples per second, sentence by sentence."""
    segments, heard = _model(model).transcribe(
        sound, vad_filter=_SKIP_SILENCE, condition_on_previous_text=False, word_timestamps=True
    )
    language = heard.language if heard.language_probability >= _LIKELY else ""
    for words in _sentences(chain.from_iterable(one.words or () for one in segments)):
        yield Line(
            start=float(words[0].start),
            end=float(words[-1].end),
            text="".join(word.word for word in words),
            source="speech",
            language=language,
        )


def _sentences(words: Iterable[Any]) -> Iterator[list[Any]]:
    """Words that were said together: a model's own segments end anywhere, and go over silences."""
    said: list[Any] = []
    for word in words:
        if said and (
            said[-1].word.endswith(_STOPS)
            or word.start - said[-1].end > _BREATH
            or word.end - said[0].start > _LONGEST
        ):
            yield said
            said = []
        said.append(word)
    if said:
        yield said


def _pieces(video: Path) -> Iterator[tuple[float, Float32[np.ndarray, " samples"]]]:
    """The sound of a video in pieces that end at a quiet moment, and when each begins."""
    start, parts, held = 0.0, list[np.ndarray](), 0
    for samples in _samples(video):
        parts.append(samples)
        held += len(samples)
        if held >= _PIECE * RATE:
            sound = np.concatenate(parts)
            end = _quiet_end(sound)
            yield start, sound[:end]
            start, parts, held = start + end / RATE, [sound[end:]], len(sound) - end
    if held:
        yield start, np.concatenate(parts)


def _quiet_end(sound: Float32[np.ndarray, " samples"]) -> int:
    """The middle of the quietest moment near the end of a piece."""
    length = int(_QUIET * RATE)
    count = int(_PAUSE / _QUIET)
    moments = sound[len(sound) - count * length :].reshape(count, length)
    quietest = int((moments**2).mean(1).argmin())
    return len(sound) - (count - quietest) * length + length // 2


def _samples(video: Path) -> Iterator[Float32[np.ndarray, " samples"]]:
    """The sound of a video from its first picture on, without gaps."""
    with reading(), open_container(video, budget := TimeBudget(file_size(video))) as container:
        if not container.streams.audio:
            return
        stream, first = container.streams.audio[0], start_of(picture_stream(container))
        if stream.codec_context is None:
            raise VideoError("has sound of a codec that this build of ffmpeg cannot decode")
        shape, resampler, done = None, av.AudioResampler(), 0
        for frame in within_budget(_frames(container, stream), budget):
            now = frame.format.name, frame.layout.name, frame.sample_rate
            if now != shape:  # of advertisements, in what was broadcast
                shape = now
                resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
            for heard in resampler.resample(frame):
                samples = heard.to_ndarray().reshape(-1)
                late = _late(frame, first, done)
                if late > 0:
                    yield np.zeros(late, np.float32)
                samples = samples[max(0, -late) if not done else 0 :]
                done += max(0, late) + len(samples)
                yield samples


def _frames(container: Any, stream: Any) -> Iterator[Any]:
    """The decoded sound; a damaged packet is left out."""
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.error.FFmpegError:
            continue


def _late(frame: Any, first: float, done: int) -> int:
    """By how many samples a frame comes later than it would without a gap."""
    gap = math.nan if frame.time is None else frame.time - first - done / RATE
    return round(gap * RATE) if _GAP <= abs(gap) <= _LONGEST_GAP else 0
