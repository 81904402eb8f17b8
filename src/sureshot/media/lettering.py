"""Lettering for pictures: text that fits, in a typeface that has its letters, whatever the script.

Nothing here fails on odd text: what cannot be drawn is left out or becomes a box.
"""

import math
from bisect import bisect_right
from functools import lru_cache

from PIL import ImageFont

from sureshot.errors import SureshotError

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
