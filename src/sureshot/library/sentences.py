"""Sentences as an encoder sees them, each worked out once, those of the same instant together."""

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import replace

from sureshot.models.encoders import Encoder, TextFeatures

_KEPT = 256  # sentences that are remembered


class Sentences:
    """Encodes sentences for several threads.

    A small network spends its time on fetching its weights, so eight sentences cost little more
    than two. Threads that wait for one another have theirs encoded in one go.

    Args:
        encoder: what encodes.
        kept: how many sentences are remembered, the latest ones.
    """

    def __init__(self, encoder: Encoder, kept: int = _KEPT) -> None:
        self._encoder = encoder
        self._kept = kept
        self._known: OrderedDict[str, TextFeatures] = OrderedDict()
        self._wanted: dict[str, Future[TextFeatures]] = {}
        self._guard = threading.Lock()
        self._turn = threading.Lock()

    def features(self, text: str) -> TextFeatures:
        """What the encoder makes of a text that is not empty; nobody may change it."""
        with self._guard:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text]
            future = self._wanted.setdefault(text, Future())
        with self._turn:
            if not future.done():  # else the thread whose turn it was has done this one as well
                self._encode()
        return future.result()

    def _encode(self) -> None:
        """Encode all that is wanted by now."""
        with self._guard:
            wanted, self._wanted = self._wanted, {}
        try:
            features = self._encoder.encode_texts(list(wanted))
        except BaseException as error:
            for future in wanted.values():
                future.set_exception(error)
            return
        with self._guard:
            for row, (text, future) in enumerate(wanted.items()):
                self._known[text] = _row(features, row)
                future.set_result(self._known[text])
            while len(self._known) > self._kept:
                self._known.popitem(last=False)


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
