r"""What is true of a made world: which videos a caption fits, and what the best scorer would say.

The *Bayes score* of a caption and a video is the logarithm of the probability that the caption was
written for the video, by the way in which captions are written. Ordering videos by it is the best
that any system can do; softmax over a gallery gives the true probability of each of its videos.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from sureshot.datasets.made_facts import FACTS, Said
from sureshot.datasets.made_world import MadePart

_NEVER = -1e4  # in place of the logarithm of 0: scores stay numbers
_VALUES = {fact: {value: n for n, value in enumerate(values)} for fact, values in FACTS.items()}
_MANY = tuple(len(values) for values in FACTS.values())


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of the captions and videos of a split.

    Attributes:
        fits: whether all that a caption was to name is so in a video; its own video always fits.
        bayes: logarithm of the probability of a caption given a video, up to what is the same for
            all videos; -10,000 where it is impossible.
        videos_that_fit: number of videos of the split that a caption fits, its own among them.
    """

    fits: Bool[np.ndarray, "captions videos"]
    bayes: Float[np.ndarray, "captions videos"]
    videos_that_fit: Int[np.ndarray, " captions"]

    def posterior(self) -> Float[np.ndarray, "captions videos"]:
        """Probability of each video that the caption was written for it, all videos alike before.

        Captions whose words fit no video at all give all the same.
        """
        odds = np.exp(self.bayes - self.bayes.max(1, keepdims=True))
        return odds / odds.sum(1, keepdims=True)


def truth_of(part: MadePart) -> Truth:
    """The truth about all captions and videos of a split."""
    scenes, count = _numbers(part)
    real = np.arange(scenes.shape[1]) < count[:, None]
    fits = np.zeros((len(part.captions), len(part.videos)), bool)
    bayes = np.full(fits.shape, _NEVER, np.float32)
    for row, caption in enumerate(part.captions):
        if caption.scene is None:
            told = len(caption.said)
            # A video of fewer scenes has -1 for the rest, which is no value that is named.
            known = scenes[:, :told] if told <= scenes.shape[1] else scenes
            like = count == told
            fits[row] = like & ~_missed(caption.meant, known).any((1, 2))
            chance = like * _chance(caption.said, known, part.dials.noise)
        else:
            fits[row] = (~_missed(caption.meant, scenes).any(2) & real).any(1)
            each = [
                _chance(caption.said, scenes[:, place, None], part.dials.noise)
                for place in range(scenes.shape[1])
            ]
            chance = (np.stack(each, 1) * real).sum(1) / count
        possible = chance > 0
        bayes[row, possible] = np.log(chance[possible])
    return Truth(fits=fits, bayes=bayes, videos_that_fit=fits.sum(1))


def _numbers(
    part: MadePart,
) -> tuple[Int[np.ndarray, "videos scenes facts"], Int[np.ndarray, " videos"]]:
    """The value of each fact of each scene as a number, -1 where there is no scene; how many."""
    count = np.array([len(video.scenes) for video in part.videos])
    scenes = np.full((len(count), count.max(), len(FACTS)), -1)
    for row, video in zip(scenes, part.videos, strict=True):
        row[: len(video.scenes)] = [_numbered(scene) for scene in video.scenes]
    return scenes, count


def _numbered(said: Said) -> list[int]:
    """The value of each fact as a number; -1 where it is not named."""
    return [values.get(said.get(fact, ""), -1) for fact, values in _VALUES.items()]


def _missed(
    parts: Sequence[Said], scenes: Int[np.ndarray, "videos scenes facts"]
) -> Bool[np.ndarray, "videos scenes facts"]:
    """The named facts that are otherwise in a scene; one part is held against every scene."""
    wanted = np.array([_numbered(said) for said in parts])
    return (scenes != wanted) & (wanted >= 0)


def _chance(
    said: Sequence[Said], scenes: Int[np.ndarray, "videos scenes facts"], noise: float
) -> Float[np.ndarray, " videos"]:
    """Probability that these scenes are said so: as they are, or with one of the facts wrong."""
    missed = _missed(said, scenes)
    named = sum(len(one) for one in said)
    slip = (missed / (named * (np.array(_MANY) - 1.0))).sum((1, 2))
    wrong = missed.sum((1, 2))
    return np.where(wrong == 0, 1.0 - noise, np.where(wrong == 1, noise * slip, 0.0))
