"""Simulated galleries: embeddings of videos and texts with known relevance."""

from dataclasses import dataclass

import numpy as np

from sureshot.trust.fit import fit_card, labelled
from sureshot.trust.signals import UNKNOWN

DIM = 48


@dataclass(frozen=True)
class World:
    """Scores of texts and videos; `video` is the group and the column of each text's own one."""

    scores: np.ndarray
    relevant: np.ndarray
    video: np.ndarray

    def texts(self, rows) -> "World":
        return World(self.scores[rows], self.relevant[rows], self.video[rows])

    def gallery(self, columns) -> "World":
        """Fewer videos; the texts of the others are gone."""
        place = np.full(self.scores.shape[1], -1)
        place[columns] = np.arange(len(columns))
        rows = np.flatnonzero(place[self.video] >= 0)
        return World(
            self.scores[np.ix_(rows, columns)],
            self.relevant[np.ix_(rows, columns)],
            place[self.video[rows]],
        )

    def card(self, about=UNKNOWN, **more):
        """A calibration of its texts; `more` is for `fit_card`."""
        return fit_card([labelled(self.scores, self.relevant, self.video, about)], **more)


def world(seed=0, videos=600, captions=1, noise=1.0) -> World:
    """A world where a fifth of the texts describe a whole scene, relevant to all its videos.

    The videos lie in scenes of about four, these in topics. A text is its video's (or its scene's)
    vector with noise of a length drawn for each text, so some are easy and some hopeless.

    Args:
        seed: of all chance.
        videos: in the gallery.
        captions: texts a video.
        noise: scale of the length of the noise.
    """
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(12, DIM))
    scenes = topics[rng.integers(12, size=videos // 4 + 1)]
    scenes = scenes + 0.8 * rng.normal(size=scenes.shape)
    scene = rng.integers(len(scenes), size=videos)
    vectors = scenes[scene] + 0.7 * rng.normal(size=(videos, DIM))
    own = np.repeat(np.arange(videos), captions)
    generic = rng.random(len(own)) < 0.2
    aim = np.where(generic[:, None], scenes[scene[own]], vectors[own])
    length = noise * rng.uniform(0.5, 4.5, len(own))[:, None]
    texts = aim + length * rng.normal(size=aim.shape)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    relevant = np.where(
        generic[:, None], scene[own][:, None] == scene, own[:, None] == np.arange(videos)
    )
    return World(texts @ vectors.T, relevant, own)
