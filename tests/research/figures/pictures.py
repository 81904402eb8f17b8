"""A drawn figure as pixels."""

import io
import itertools

import numpy as np
import pytest
from PIL import Image


def pixels(figure):
    """RGB of a figure, rows by columns by 3."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return np.asarray(Image.open(file).convert("RGB")).astype(int)


def share(picture, colour, near=12):
    """Share of the pixels of about this colour."""
    wanted = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    return float((np.abs(picture - wanted).max(-1) <= near).mean())


def shown(figure):
    """All words of a figure."""
    import matplotlib.text

    found = figure.findobj(matplotlib.text.Text)
    return "\n".join(text.get_text() for text in found)


def untidy(figure):
    """Words that are drawn outside of a figure, or over other words; letters on marks may touch."""
    boxes = _drawn_words(figure)
    width, height = figure.get_size_inches() * figure.dpi
    faults = [
        f"outside: {text}"
        for text, box in boxes
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1
    ]
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        down = min(first.y1, second.y1) - max(first.y0, second.y0)
        if across > 1 and down > 2:  # pixels: the boxes of lines below each other touch
            faults.append(f"over each other: {one} | {other}")
    return faults


def _drawn_words(figure):
    """Each text that drawing really shows, and its box in pixels."""
    from matplotlib.text import Annotation, Text

    seen = []

    def draw(self, renderer, *args, **more):
        if self.get_visible() and self.get_text().strip():
            on_mark = isinstance(self, Annotation) and self.xycoords == "data"
            if not on_mark:
                seen.append(self)
        return plain(self, renderer, *args, **more)

    plain = Text.draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", draw)
        figure.canvas.draw()
    return [(text.get_text(), text.get_window_extent()) for text in seen]
