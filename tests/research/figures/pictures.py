"""A drawn figure as pixels."""

import io

import numpy as np
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
