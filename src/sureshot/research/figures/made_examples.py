"""A page of examples from a made world: frames, captions, and how many videos each fits."""

import textwrap
from pathlib import Path

import numpy as np

from sureshot.datasets.made import read_part
from sureshot.datasets.made_frames import PER_SCENE, frames_of
from sureshot.datasets.made_truth import truth_of
from sureshot.research.figures.canvas import INK, MUTED, SMALL, new_figure, save_figure

_SHOWN, _CAPTIONS = 8, 3  # videos of the page, and captions of each
_MOST = 4  # scenes of a video


def write_examples(root: Path, to: Path, *, videos: int = _SHOWN) -> Path:
    """Draw the first test videos of a world: one frame of each scene, and some captions.

    Args:
        root: folder of the world.
        to: file of the page, .png or .svg.
        videos: how many are shown.

    Raises:
        SureshotError: the folder holds no made world, or the page cannot be drawn.
    """
    part = read_part(root, "test")
    truth = truth_of(part)
    shown = part.videos[:videos]
    figure = new_figure(0.95 * len(shown), width=9.0, constrained=False)
    grid = figure.add_gridspec(
        len(shown), _MOST + 5, left=0.01, right=0.99, top=0.99, bottom=0.01, wspace=0.05
    )
    for row, video in enumerate(shown):
        frames = frames_of(video.scenes, np.random.default_rng(video.pixels))
        for place in range(len(video.scenes)):
            axes = figure.add_subplot(grid[row, place])
            axes.imshow(frames[place * PER_SCENE + PER_SCENE // 2])
            axes.set_axis_off()
        axes = figure.add_subplot(grid[row, _MOST:])
        axes.set_axis_off()
        own = [n for n, caption in enumerate(part.captions) if caption.video == row][:_CAPTIONS]
        for line, number in enumerate(own):
            caption, fit = part.captions[number], truth.videos_that_fit[number]
            text = textwrap.shorten(caption.text, 90, placeholder=" …")
            high = 0.85 - 0.32 * line
            axes.text(0.02, high, text, fontsize=SMALL, color=INK, va="top")
            about = "all scenes" if caption.scene is None else f"scene {caption.scene + 1}"
            note = f"{about}; fits {fit} of {len(part.videos)} videos"
            axes.text(0.02, high - 0.15, note, fontsize=SMALL - 1, color=MUTED, va="top")
    save_figure(figure, to)
    return to
