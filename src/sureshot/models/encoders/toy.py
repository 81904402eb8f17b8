"""A deterministic encoder without weights, for tests: it understands the names of colours.

Frames lie near the colours their pixels have, texts near the colours they name, so that "a red
wall" really finds the red clip and every later part can be tested on meaning, not on noise. It
needs neither torch nor Pillow.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8

from sureshot.models.encoders.base import FrameFeatures, Images, TextFeatures, Vocabulary, padded

COLOURS: dict[str, tuple[int, int, int]] = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "cyan": (0, 255, 255),
    "magenta": (255, 0, 255),
}
_WORDS = 16  # dimensions that other words are hashed into; frames are zero there
_MAX_WORDS = 32
_GRID = 2


class TinyEncoder:
    """Eight colour dimensions, sixteen for everything else, in pure numpy."""

    latin_only = True
    vocabulary: Vocabulary | None = None
    name = "tiny"
    dim = len(COLOURS) + _WORDS
    channels = 3
    frame_size = 16
    fingerprint = hashlib.sha256(f"tiny-1 {COLOURS} {_WORDS} {_GRID}".encode()).hexdigest()

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        """One token a word, lower-cased; a colour is its own axis, another word a hashed one."""
        tokens = [text.lower().split() or [""] for text in texts]
        read = [[_word(w.strip(".,;:!?\"'")) for w in text[:_MAX_WORDS]] for text in tokens]
        words, mask = padded(list(map(np.stack, read)))
        sentence = words.sum(1)
        sentence /= np.linalg.norm(sentence, axis=1, keepdims=True)
        truncated = np.array([len(text) > _MAX_WORDS for text in tokens])
        return TextFeatures(sentence=sentence, words=words, mask=mask, truncated=truncated)

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The words of each text, as it writes them."""
        return [tuple(text.split()[:_MAX_WORDS] or ("",)) for text in texts]

    def prepare(self, frames: Images) -> UInt8[np.ndarray, "frames 3 16 16"]:
        """Pick a 16 x 16 grid of pixels."""
        rows = np.arange(self.frame_size) * frames.shape[1] // self.frame_size
        columns = np.arange(self.frame_size) * frames.shape[2] // self.frame_size
        picked = frames[:, rows][:, :, columns]
        return np.ascontiguousarray(picked.transpose(0, 3, 1, 2))

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 16 16"]) -> FrameFeatures:
        """Share of each colour among the pixels, of the frame and of its four quarters."""
        n, half = len(prepared), self.frame_size // _GRID
        pixels = prepared.transpose(0, 2, 3, 1).astype(np.float32)
        colours = np.array(list(COLOURS.values()), np.float32)
        distance = np.linalg.norm(pixels[..., None, :] - colours, axis=-1)
        shares = np.exp(-distance / 32)
        shares /= shares.sum(-1, keepdims=True)
        quarters = shares.reshape(n, _GRID, half, _GRID, half, len(COLOURS)).mean((2, 4))
        return FrameFeatures(
            frames=_widen(shares.mean((1, 2))),
            patches=_widen(quarters.reshape(n, _GRID * _GRID, len(COLOURS))),
            backbone=pixels.mean((1, 2)) / 255,
        )


def _widen(colours: Float[np.ndarray, "*n colours"]) -> Float[np.ndarray, "*n dim"]:
    zeros = np.zeros((*colours.shape[:-1], _WORDS), np.float32)
    return np.concatenate([colours, zeros], axis=-1).astype(np.float32)


def _word(word: str) -> Float[np.ndarray, " dim"]:
    vector = np.zeros(TinyEncoder.dim, np.float32)
    if word in COLOURS:
        vector[list(COLOURS).index(word)] = 1.0
    else:
        slot = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()[0] % _WORDS
        vector[len(COLOURS) + slot] = 0.25
    return vector
