"""The contact sheet: a picture of what a search found, frame by frame, with every frame's score.

* One card per hit: its frames, each with its time, and its score as a number and as a bar.
* All bars share one scale, from the lowest to the highest frame score of the whole sheet.
* The best frame of a hit has a ring and a badge, so colour is not the only cue.
* One typeface for the whole sheet: Pillow's own where it has all letters, else one of the system.
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
_LONGEST = 2000  # characters; nobody reads more in a picture


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
    """One or two lines; what does not fit is left out in the middle of the second."""
    words, first = text.split(" "), ""
    while words and font.getlength(f"{first} {words[0]}".strip()) <= width:
        first = f"{first} {words.pop(0)}".strip()
    return [line for line in (first, fitted(" ".join(words), font, width)) if line]


def face_for(text: str) -> str:
    """The typeface, as `load_font` takes it, that lacks the fewest characters of a text."""
    rare = {letter for letter in text if not letter.isascii()}
    return min(_FACES, key=lambda face: _lacking(face, rare)) if rare else ""


@lru_cache(maxsize=64)
def load_font(face: str, size: int) -> ImageFont.FreeTypeFont:
    """The typeface in a size in pixels.

    Raises:
        OSError: the typeface is not on this system.
        SureshotError: this Pillow cannot draw text at all.
    """
    font = ImageFont.truetype(face, size) if face else ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise SureshotError("this Pillow cannot draw text; install one with FreeType")
    return font


def _shortened(text: str, kept: int) -> str:
    """The text with so many of its characters, the rest left out in the middle."""
    if kept == len(text):
        return text
    return f"{text[: (kept + 1) // 2].rstrip()}…{text[len(text) - kept // 2 :].lstrip()}"


def _lacking(face: str, letters: set[str]) -> float:
    """How many of the letters the typeface draws as its sign for a missing one."""
    try:
        font = load_font(face, 20)
    except OSError:
        return math.inf
    missing = bytes(font.getmask("\U0010fffe"))
    return float(sum(bytes(font.getmask(letter)) == missing for letter in letters))


_MARGIN, _PAD, _GAP = 48, 28, 16  # pixels around the sheet, inside a card, between frames
_NARROW, _WIDE = 820, 1484  # pixels inside a card
_THUMB = 160  # pixels; every frame is as high
_CELLS = 148, 284  # pixels; a frame is at least and at most as wide, the rest is letterboxed
_CAPTION = 56  # pixels below a frame, for time, score and bar
_MOST_ROWS, _MOST_LINES, _LINES = 80, 4, 24  # hits on a sheet, lines of a hit, lines in all

_GROUND, _CARD, _EDGE, _TRACK = "#f2f4f7", "#ffffff", "#e0e5ec", "#e6eaf0"
_INK, _MUTED, _DARK = "#17202b", "#5a6675", "#20262e"
_BLUE, _BEST = "#2f6db5", "#b84a00"  # told apart with every kind of colour blindness


@dataclass(frozen=True, eq=False)
class SheetFrame:
    """One frame of a hit.

    Attributes:
        image: RGB, of any size above 0.
        time: seconds from the start of the video.
        score: how well it fits, higher is better; any finite number.
    """

    image: UInt8[np.ndarray, "height width 3"]
    time: float
    score: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time) and math.isfinite(self.score)):
            raise SureshotError(
                f"a frame with time {self.time} and score {self.score} cannot be drawn; "
                "both must be finite, so mend whatever scored it"
            )
        if not self.image.size:
            raise SureshotError("a frame without pixels cannot be drawn; leave it out")


@dataclass(frozen=True, eq=False)
class SheetRow:
    """One hit: its rank, file and range in words, and its frames in the order of their times."""

    title: str
    subtitle: str
    frames: tuple[SheetFrame, ...]


def contact_sheet(heading: str, rows: Sequence[SheetRow]) -> Image.Image:
    """An RGB picture with a card for each of the first 80 hits.

    A hit with more frames than fit is thinned out evenly; its best frame always stays.

    Args:
        heading: what was searched for, in any script.
        rows: the hits in the order to show them; none gives a sheet that says so.
    """
    shown = rows[:_MOST_ROWS]
    look = _look(heading, shown)
    blocks = [_header(heading, look), *(_card(row, look) for row in shown)]
    if not shown:
        blocks.append(
            _card(SheetRow("Nothing was found", "Try other words, or index more videos.", ()), look)
        )
    if len(rows) > len(shown):
        rest = f"{len(rows) - len(shown)} more hits are not shown"
        blocks.append(_card(SheetRow(rest, "Ask for fewer results to see each of them.", ()), look))
    return _stacked(blocks)


def save_sheet(image: Image.Image, path: Path) -> Path:
    """The PNG file at `path`, which is replaced if it exists, and complete whenever it does.

    Raises:
        SureshotError: the file is not named `.png`, or cannot be written.
    """
    if path.suffix.lower() != ".png":
        raise SureshotError(f"{plain(path)} would be a PNG; give it a name ending in .png")
    try:
        with replace_file(path) as fresh, fresh.open("wb") as file:
            image.save(file, format="PNG")
    except OSError as error:
        raise SureshotError(
            f"{plain(path)} could not be written ({error.strerror or error}); "
            "free some space there or choose another folder"
        ) from error
    return path


def _stacked(blocks: list[Image.Image]) -> Image.Image:
    """The blocks below each other on the ground of the sheet."""
    width = blocks[0].width + 2 * _MARGIN
    height = sum(block.height + _GAP for block in blocks) - _GAP + 2 * _MARGIN
    sheet, top = Image.new("RGB", (width, height), _GROUND), _MARGIN
    for block in blocks:
        sheet.paste(block, (_MARGIN, top))
        top += block.height + _GAP
    return sheet


@dataclass(frozen=True)
class _Look:
    """What all cards of a sheet share: typeface, scale of the bars, pixels inside, lines."""

    face: str
    low: float
    high: float
    inner: int
    lines: int

    def font(self, size: int) -> ImageFont.FreeTypeFont:
        return load_font(self.face, size)


@dataclass(frozen=True)
class _Cell:
    """A frame, what is said about it, and where it goes, in pixels of its card."""

    frame: SheetFrame
    time: str
    best: bool
    left: int
    top: int
    width: int


def _look(heading: str, rows: Sequence[SheetRow]) -> _Look:
    """As wide as these rows need, in a typeface that has their letters."""
    words = [heading, *(row.title for row in rows), *(row.subtitle for row in rows)]
    scores = [frame.score for row in rows for frame in row.frames] or [math.nan]
    lines = max(1, min(_MOST_LINES, _LINES // max(1, len(rows))))
    strips = (len(row.frames) * (_cell_width(row.frames) + _GAP) - _GAP for row in rows)
    inner = min(_WIDE, max([_NARROW, *strips]))
    face = face_for("".join(drawable(word) for word in words))
    return _Look(face=face, low=min(scores), high=max(scores), inner=inner, lines=lines)


def _header(heading: str, look: _Look) -> Image.Image:
    """The heading on at most two lines, and what the bars and the badge mean."""
    width, big, small = look.inner + 2 * _PAD, look.font(40), look.font(20)
    lines, scored = wrapped(drawable(heading), big, float(width)), math.isfinite(look.low)
    block = Image.new("RGB", (width, 52 * len(lines) + (52 if scored else 8)), _GROUND)
    write = ImageDraw.Draw(block).text
    for number, line in enumerate(lines):
        write((0, 36 + 52 * number), line, _INK, big, "ls")
    if scored:
        base = block.height - 24
        key = f"Bars: frame scores from {_number(look.low)} to {_number(look.high)}"
        write((0, base), key, _MUTED, small, "ls")
        left = round(small.getlength(key)) + 32
        left += _badge(block, (left, base - 19), look) + 8
        write((left, base), "frame of each hit", _MUTED, small, "ls")
    return block


def _card(row: SheetRow, look: _Look) -> Image.Image:
    """The card of a hit: title, subtitle, frames."""
    inner, width = look.inner, _cell_width(row.frames)
    columns = (inner + _GAP) // (width + _GAP)
    frames = _thinned(row.frames, columns * look.lines)
    note = f"{len(frames)} of {len(row.frames)} frames" if len(frames) < len(row.frames) else ""
    words = 60 if row.subtitle or note else 26
    step, lines = _THUMB + _CAPTION + _GAP, math.ceil(len(frames) / columns)
    size = inner + 2 * _PAD, 2 * _PAD + words + (lines * step + 6 if lines else 0)
    card = Image.new("RGB", size, _GROUND)
    _rounded(card, (0, 0, *size), _EDGE, 16)
    _rounded(card, (1, 1, size[0] - 2, size[1] - 2), _CARD, 15)
    write, title, small = ImageDraw.Draw(card).text, look.font(27), look.font(20)
    write((_PAD, _PAD + 22), fitted(drawable(row.title), title, float(inner)), _INK, title, "ls")
    room = inner - small.getlength(note) - 24
    write((_PAD, _PAD + 54), fitted(drawable(row.subtitle), small, room), _MUTED, small, "ls")
    write((_PAD + inner, _PAD + 54), note, _MUTED, small, "rs")
    best = max(range(len(frames)), key=lambda place: frames[place].score, default=None)
    for place, (frame, time) in enumerate(zip(frames, _times(frames), strict=True)):
        cell = _Cell(
            frame=frame,
            time=time,
            best=place == best,
            left=_PAD + place % columns * (width + _GAP),
            top=_PAD + words + 22 + place // columns * step,
            width=width,
        )
        _draw(card, cell, look)
    return card


def _draw(card: Image.Image, cell: _Cell, look: _Look) -> None:
    """Draws a frame with its ring and badge, if it is the best, and time, score and bar below."""
    left, top, width = cell.left, cell.top, cell.width
    if cell.best:
        _rounded(card, (left - 6, top - 6, width + 12, _THUMB + 12), _BEST, 12)
        _rounded(card, (left - 2, top - 2, width + 4, _THUMB + 4), _CARD, 8)
    card.paste(_thumb(cell.frame.image, width), (left, top), _mask(width, _THUMB, 7))
    if cell.best:
        _badge(card, (left + 8, top + 8), look)
    write, font = ImageDraw.Draw(card).text, look.font(19)
    base, bar = top + _THUMB + 30, top + _THUMB + 44
    time = fitted(cell.time, font, float(width))
    write((left, base), time, _INK, font, "ls")
    score = fitted(_number(cell.frame.score), font, width - font.getlength(time) - 8)
    write((left + width, base), score, _BEST if cell.best else _MUTED, font, "rs")
    length = max(8, round(_share(cell.frame.score, look) * width))
    _rounded(card, (left, bar, width, 8), _TRACK, 4)
    _rounded(card, (left, bar, length, 8), _BEST if cell.best else _BLUE, 4)


def _share(score: float, look: _Look) -> float:
    """Where a score lies between the lowest, 0, and the highest, 1; halves cannot overflow."""
    spread = look.high / 2 - look.low / 2
    return (score / 2 - look.low / 2) / spread if spread > 0 else 1.0


def _thumb(pixels: UInt8[np.ndarray, "height width 3"], cell: int) -> Image.Image:
    """The frame, whole and undistorted, in the middle of its cell."""
    height, width, _ = pixels.shape
    scale = min(cell / width, _THUMB / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    thumb = Image.new("RGB", (cell, _THUMB), _DARK)
    thumb.paste(small, ((cell - size[0]) // 2, (_THUMB - size[1]) // 2))
    return thumb


def _badge(block: Image.Image, corner: tuple[int, int], look: _Look) -> int:
    """Draws the mark of a best frame and returns its width."""
    font = look.font(17)
    width = round(font.getlength("best")) + 20
    _rounded(block, (*corner, width, 26), _BEST, 13)
    ImageDraw.Draw(block).text((corner[0] + 10, corner[1] + 18), "best", _CARD, font, "ls")
    return width


def _cell_width(frames: Sequence[SheetFrame]) -> int:
    """Pixels that the widest frame of a hit takes, within limits."""
    shapes = [frame.image.shape for frame in frames]
    widest = max((shape[1] / shape[0] for shape in shapes), default=1.0)
    return round(min(max(_THUMB * widest, _CELLS[0]), _CELLS[1]))


def _thinned(frames: tuple[SheetFrame, ...], most: int) -> tuple[SheetFrame, ...]:
    """At most so many frames, spread evenly, the best one among them."""
    if len(frames) <= most:
        return frames
    best = max(range(len(frames)), key=lambda place: frames[place].score)
    kept = [round(place * (len(frames) - 1) / max(1, most - 1)) for place in range(most)]
    kept[min(range(most), key=lambda place: abs(kept[place] - best))] = best
    return tuple(frames[place] for place in kept)


def _times(frames: Sequence[SheetFrame]) -> list[str]:
    """Clock times; with tenths of a second where two frames would share one."""
    whole = [timecode(frame.time) for frame in frames]
    if len(set(whole)) == len(whole):
        return whole
    tenths = [math.floor(frame.time * 10 + 1e-6) for frame in frames]
    return [f"{timecode(tenth / 10)}.{tenth % 10}" for tenth in tenths]


def _number(score: float) -> str:
    return f"{score:.3f}" if abs(score) < 100 else f"{score:.4g}"


def _rounded(block: Image.Image, box: tuple[int, int, int, int], colour: str, radius: int) -> None:
    """Fills left, top, width, height with smooth corners."""
    left, top, width, height = box
    block.paste(colour, (left, top, left + width, top + height), _mask(width, height, radius))


@lru_cache(maxsize=64)
def _mask(width: int, height: int, radius: int) -> Image.Image:
    """A rounded rectangle; its corners are drawn large and shrunk, as Pillow's own are jagged."""
    radius = min(radius, width // 2, height // 2)
    large = Image.new("L", (radius * 8, radius * 8))
    ImageDraw.Draw(large).ellipse((0, 0, radius * 8 - 1, radius * 8 - 1), fill=255)
    disc = large.resize((radius * 2, radius * 2), Image.Resampling.BOX)
    mask = Image.new("L", (width, height), 255)
    for x, left in ((0, 0), (radius, width - radius)):
        for y, top in ((0, 0), (radius, height - radius)):
            mask.paste(disc.crop((x, y, x + radius, y + radius)), (left, top))
    return mask
