"""Sentences as an encoder sees them, each worked out once, those of one call together."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from sureshot.models.encoders import Encoder, TextFeatures

_KEPT = 256  # sentences that are remembered


class Sentences:
    """Encodes sentences for several threads.

    Args:
        encoder: what encodes.
        kept: how many sentences are remembered, the latest ones.
    """

    def __init__(self, encoder: Encoder, kept: int = _KEPT) -> None:
        self._encoder = encoder
        self._kept = kept
        self._known: OrderedDict[str, TextFeatures] = OrderedDict()
        self._guard = threading.Lock()

    def features(self, texts: Sequence[str]) -> list[TextFeatures]:
        """What the encoder makes of each text, none of them empty; nobody may change it."""
        with self._guard:
            new = list(dict.fromkeys(text for text in texts if text not in self._known))
            if new:
                features = self._encoder.encode_texts(new)
                self._known |= {text: _row(features, row) for row, text in enumerate(new)}
            for text in texts:
                self._known.move_to_end(text)
            found = [self._known[text] for text in texts]
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        return found


def _row(features: TextFeatures, row: int) -> TextFeatures:
    """One of several texts, without the padding that the longest of them brought."""
    if len(features.mask) == 1:
        return features
    one, real = slice(row, row + 1), int(features.mask[row].nonzero()[0][-1]) + 1
    return replace(
        features,
        sentence=features.sentence[one],
        words=features.words[one, :real].copy(),
        mask=features.mask[one, :real].copy(),
        truncated=features.truncated[one],
        length=None if features.length is None else features.length[one],
    )
