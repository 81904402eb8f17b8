"""Text in the picture, by rapidocr: one frame per shot, and per 1.5 seconds of a long one.

The models are those in its wheel, so nothing is downloaded: Chinese, Japanese, English and the
other languages that Latin letters are for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from sureshot.errors import install_command, is_installed, onnxruntime
from sureshot.media.discover import Source
from sureshot.media.lines import Line
from sureshot.media.video import open_video
from sureshot.media.windows import windows
from sureshot.media.workers import usual_workers

_VERSION = 1  # of the reading; a higher one makes indexes read pictures again
_STEP = 1.5  # seconds: longer shots are looked at as often; few subtitles stay for less
_SIDE = 720  # pixels of the shorter side that letters are read in
_SEARCHED = 640  # pixels of the longer side that they are found in
_SLIMMEST = 40  # times as long as wide, beyond which rapidocr cannot shrink a picture
_CHANGED = 1  # levels of a signature; 99 of 100 changes of text are larger, noise is not (LOG.md)
_SURE = 0.75  # mean score of its letters from which a text counts; they are 0.9 and more
_SAME = 0.9  # of two texts: share of letters that they have in common to be one, read twice
_GAP = 0.8  # of its height: a line this close below another one continues it
_ALONGSIDE = 1.5  # of its height: words this close in one row are one line
_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}


def why_not() -> str:
    """Why text in the picture cannot be read here; empty if it can."""
    if not is_installed("rapidocr"):
        return f"it needs rapidocr: {install_command('ocr')}"
    missing = [path.name for path in _models().values() if not path.exists()]
    if missing:
        number = metadata.version("rapidocr")
        return (
            f"it needs {' and '.join(missing)}, without which rapidocr {number} comes; install "
            f"another version: {install_command('ocr')}"
        )
    return ""


def _models() -> dict[str, Path]:
    """The files of the models, by the parts of rapidocr."""
    found = find_spec("rapidocr")
    folder = Path(found.origin or "").parent / "models" if found else Path()
    return {part: folder / name for part, name in _MODELS.items()}


def stamp() -> str:
    """What text in the picture depends on besides the video itself."""
    return f"{_VERSION}|rapidocr {metadata.version('rapidocr')}"


@cache
def _engine() -> Any:
    onnxruntime()
    import rapidocr

    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,  # of lines that are upside down
            # Its own size enlarges most videos, which costs four times as much and reads less.
            "Det.limit_type": "max",
            "Det.limit_side_len": _SEARCHED,
            # Given a path, it does not look for another version on the network.
            **{f"{part}.model_path": str(path) for part, path in _models().items()},
            "EngineConfig.onnxruntime.intra_op_num_threads": usual_workers(),
        }
    )


class _Text(NamedTuple):
    """One block of text in a frame."""

    text: str
    score: float


def texts_in(image: UInt8[np.ndarray, "height width 3"]) -> list[_Text]:
    """The blocks of text in an RGB picture, from top to bottom."""
    if max(image.shape[:2]) > _SLIMMEST * min(image.shape[:2]):
        return []
    found = _engine()(np.ascontiguousarray(image[..., ::-1]))
    if found.boxes is None or not len(found.boxes):
        return []
    rows = [
        (box, _Text(text, score))
        for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
        if score >= _SURE and sum(letter.isalnum() for letter in text) > 1
    ]
    return _blocks(rows)


def _blocks(rows: list[tuple[Float[np.ndarray, "4 2"], _Text]]) -> list[_Text]:
    """Rows that go on with each other as one text; they are sorted from top to bottom."""
    blocks: list[tuple[list[float], list[_Text]]] = []
    for box, text in rows:
        (left, top), (right, bottom) = box.min(0), box.max(0)
        height = bottom - top
        for edges, block in blocks:
            tall = max(height, edges[4])
            below = top - edges[3] < _GAP * tall and left < edges[2] and right > edges[0]
            same_row = abs(top + bottom - edges[1] - edges[3]) < tall
            beside = same_row and left - edges[2] < _ALONGSIDE * tall
            if (below or beside) and tall < 1.6 * min(height, edges[4]):
                block.append(text)
                right, bottom = max(edges[2], right), max(edges[3], bottom)
                edges[:] = [min(edges[0], left), top, right, bottom, height]
                break
        else:
            blocks.append(([left, top, right, bottom, height], [text]))
    return [
        _Text(" ".join(text.text for text in block), min(text.score for text in block))
        for _, block in blocks
    ]


@dataclass(slots=True, eq=False)
class _Shown:
    """A text on the screen, as it was read best."""

    start: float
    best: _Text
    end: float = 0.0


def read(
    video: Path,
    *,
    rate: float = 1.0,
    progress: Callable[[float], None] = lambda seconds: None,
) -> list[Line]:
    """The texts in the pictures of a video, each once for as long as it is shown.

    They begin with the picture that was read, one in a shot or in 1.5 seconds of one, and end with
    the last such stretch that they are in. ``rate`` is that of a folder, in frames per second.
    """
    source = Source(video, "frames" if video.is_dir() else "file")
    found: list[_Shown] = []
    shown: list[_Shown] = []
    before: np.ndarray | None = None
    step = min(_STEP, 1 / rate) if source.kind == "frames" else _STEP  # of slides each counts
    with open_video(source, rate=rate) as opened:
        for shot in windows(opened, longest=step, samples=1, size=_SIDE):
            levels = shot.signatures[0].astype(np.int16)
            if before is None or np.abs(levels - before).max() > _CHANGED:
                before = levels
                now = _follow(shown, texts_in(shot.images[0]), float(shot.times[0]))
                found += [one for one in now if one not in shown]
                shown = now
            for one in shown:
                one.end = shot.end
            progress(shot.end)
    found.sort(key=lambda one: one.start)
    return [
        Line(start=one.start, end=one.end, text=one.best.text, source="picture") for one in found
    ]


def _follow(shown: Sequence[_Shown], texts: Sequence[_Text], start: float) -> list[_Shown]:
    """What is shown in a picture that has these texts, where ``shown`` was before."""
    left, now = list(shown), []
    for text in texts:
        one = next((one for one in left if _is_same(one.best.text, text.text)), None)
        if one is None:
            one = _Shown(start, text)
        else:
            left.remove(one)
            one.best = max(one.best, text, key=lambda read: read.score)
        now.append(one)
    return now


def _is_same(one: str, other: str) -> bool:
    """Whether two texts are one that was read twice: of "Take 1" and "Take 2" each digit counts."""
    if [c for c in one if c.isdigit()] != [c for c in other if c.isdigit()]:
        return False
    return one == other or SequenceMatcher(None, one, other).ratio() >= _SAME
