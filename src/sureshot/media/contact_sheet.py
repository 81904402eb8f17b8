"""The contact sheet: a grid of the frames of each hit, with their times and scores, as one picture.

The best frame of a hit has a border and the word "best", so colour is not the only cue. What cannot
be drawn of a text is left out or becomes a box; nothing fails on odd text.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from sureshot.errors import SureshotError
from sureshot.files import replace_file
from sureshot.text import plain, timecode

_FACES = (
    "",  # Pillow's own
    *("segoeui.ttf", "Arial.ttf", "DejaVuSans.ttf", "NotoSans-Regular.ttf"),
    *("Arial Unicode.ttf", "NotoSansCJK-Regular.ttc", "msyh.ttc", "Hiragino Sans GB.ttc"),
)
_SIMPLER = str.maketrans({"–": "-", "—": "-", "‑": "-", "−": "-", "×": "x", "’": "'"})
_LONGEST, _WORD = 2000, 12  # characters of a text, and of a word that is not cut

_MARGIN, _GAP = 40, 16  # pixels around the sheet, between frames
_THUMB = 240, 150  # width and height in pixels that every frame is letterboxed to
_CAPTION, _TITLE, _HEADING = 44, 76, 64  # pixels below a frame, above a hit, above all
_NOTE, _ABOVE = 44, 8  # pixels of a line below the heading, and how far it is moved up
_COLUMNS = 6  # frames of a line
_MOST_ROWS = 60  # hits of a sheet: viewers stop at 32,767 pixels
_WIDTH = _COLUMNS * (_THUMB[0] + _GAP) - _GAP
_INK, _MUTED, _BEST, _DARK = "#17202b", "#5a6675", "#b84a00", "#20262e"


@dataclass(frozen=True, eq=False)
class SheetFrame:
    """One RGB frame of a hit, its second in the video, and its score: higher is better."""

    image: UInt8[np.ndarray, "height width 3"]
    time: float
    score: float


@dataclass(frozen=True, eq=False)
class SheetRow:
    """One hit: its rank, file and range in words, and its frames in the order of their times."""

    title: str
    subtitle: str
    frames: tuple[SheetFrame, ...]


def contact_sheet(heading: str, rows: Sequence[SheetRow], note: str = "") -> Image.Image:
    """An RGB picture of the first 60 hits, or one that says that there are none.

    ``note`` is said below the heading, in as many lines as it takes.
    """
    shown = list(rows[:_MOST_ROWS])
    if not rows:
        shown = [SheetRow("No hits", "", ())]
    elif len(rows) > _MOST_ROWS:
        title = f"{len(rows) - _MOST_ROWS} more hits are not shown"
        shown.append(SheetRow(title, "A sheet has 60; narrow the search to see others.", ()))
    lines = [math.ceil(len(row.frames) / _COLUMNS) for row in shown]
    heights = [_TITLE + count * (_THUMB[1] + _CAPTION) for count in lines]
    words = [heading, note, *(row.title for row in shown), *(row.subtitle for row in shown)]
    face = _face_for("".join(map(drawable, words)))
    large, medium, small = (load_font(face, points) for points in (36, 24, 18))
    notes = wrapped(drawable(note), medium, _WIDTH)
    top = _MARGIN + _HEADING + _NOTE * len(notes)
    size = _WIDTH + 2 * _MARGIN, top + sum(heights) + _MARGIN
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)

    def write(left: int, top: int, text: str, font: ImageFont.FreeTypeFont, colour: str) -> None:
        draw.text((left, top), fitted(drawable(text), font, _WIDTH), colour, font)

    write(_MARGIN, _MARGIN, heading, large, _INK)
    for number, part in enumerate(notes):
        write(_MARGIN, _MARGIN + _HEADING - _ABOVE + _NOTE * number, part, medium, _MUTED)
    for row, height in zip(shown, heights, strict=True):
        write(_MARGIN, top, row.title, medium, _INK)
        write(_MARGIN, top + 36, row.subtitle, small, _MUTED)
        best = max(row.frames, key=lambda frame: frame.score, default=None)
        for place, (frame, time) in enumerate(zip(row.frames, _times(row.frames), strict=True)):
            line, column = divmod(place, _COLUMNS)
            left = _MARGIN + column * (_THUMB[0] + _GAP)
            below = top + _TITLE + line * (_THUMB[1] + _CAPTION)
            sheet.paste(_thumbnail(frame.image), (left, below))
            text, colour = f"{time}   {frame.score:.3f}", _MUTED
            if frame is best:
                text, colour = f"{text}   best", _BEST
                box = (left - 5, below - 5, left + _THUMB[0] + 4, below + _THUMB[1] + 4)
                draw.rectangle(box, outline=_BEST, width=5)
            write(left, below + _THUMB[1] + 8, text, small, colour)
        top += height
    return sheet


def save_sheet(image: Image.Image, path: Path) -> Path:
    """Write the sheet as PNG, in a new folder too; an older file stays until it is complete."""
    if path.suffix.lower() != ".png":
        raise SureshotError(
            f"The sheet is saved as PNG: use a file name ending in .png, not {plain(path)}."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as fresh, fresh.open("wb") as file:
            image.save(file, format="PNG")
    except OSError as error:
        raise SureshotError(
            f"{plain(path)} could not be written ({error.strerror or error}); "
            "free some space there or choose another folder"
        ) from error
    return path


def drawable(text: str) -> str:
    """One line without what cannot be drawn: control characters, stray halves of characters.

    Examples:
        >>> drawable("snow –   storm")
        'snow - storm'
    """
    plain = text.translate(_SIMPLER).encode("utf-8", "replace").decode()
    line = "".join(c for c in " ".join(plain.split()) if c.isprintable() or c in "\u200c\u200d")
    return _shortened(line, min(len(line), _LONGEST))


def fitted(text: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    """The text, shortened in the middle if it is wider than so many pixels."""
    if font.getlength(text) <= width:
        return text
    kept = bisect_right(range(len(text)), width, key=lambda n: font.getlength(_shortened(text, n)))
    return _shortened(text, max(0, kept - 1))


def wrapped(text: str, font: ImageFont.FreeTypeFont, width: float) -> list[str]:
    """Lines of so many pixels, broken between words; of no text none."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _shortened(text: str, kept: int) -> str:
    """The text with so many of its characters, the rest left out in the middle."""
    if kept == len(text):
        return text
    begin, end = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
    # No short word is cut that can be left out; the names of files have words without end.
    if " " in begin[-_WORD:] and text[len(begin)] != " ":
        begin = begin.rpartition(" ")[0]
    if " " in end[:_WORD] and text[-len(end) - 1] != " ":
        end = end.partition(" ")[2]
    return f"{begin.rstrip()}…{end.lstrip()}"


@lru_cache(maxsize=64)
def load_font(face: str, size: int) -> ImageFont.FreeTypeFont:
    """A typeface in a size in pixels; the empty name is Pillow's own. OSError if it is missing."""
    font = ImageFont.truetype(face, size) if face else ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise SureshotError("this Pillow cannot draw text; install one with FreeType")
    return font


def _face_for(text: str) -> str:
    """The typeface that lacks the fewest characters of a text."""
    rare = {letter for letter in text if not letter.isascii()}
    return min(_FACES, key=lambda face: _lacking(face, rare)) if rare else ""


def _lacking(face: str, letters: set[str]) -> float:
    """How many of the letters the typeface draws as its sign for a missing one."""
    try:
        font = load_font(face, 20)
    except OSError:
        return math.inf
    missing = bytes(font.getmask("\U0010fffe"))
    return float(sum(bytes(font.getmask(letter)) == missing for letter in letters))


def _thumbnail(pixels: UInt8[np.ndarray, "height width 3"]) -> Image.Image:
    """The whole frame, undistorted, in the middle of a cell."""
    height, width, _ = pixels.shape
    scale = min(_THUMB[0] / width, _THUMB[1] / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    cell = Image.new("RGB", _THUMB, _DARK)
    cell.paste(small, ((_THUMB[0] - size[0]) // 2, (_THUMB[1] - size[1]) // 2))
    return cell


def _times(frames: Sequence[SheetFrame]) -> list[str]:
    """Clock times; with tenths of a second where two frames would share one."""
    whole = [timecode(frame.time) for frame in frames]
    if len(set(whole)) == len(whole):
        return whole
    tenths = [math.floor(frame.time * 10 + 1e-6) for frame in frames]
    return [f"{timecode(tenth / 10)}.{tenth % 10}" for tenth in tenths]
