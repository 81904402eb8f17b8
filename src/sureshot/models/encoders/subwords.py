"""Texts to the token ids a text network was trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64
from tokenizers import Tokenizer
from tokenizers.normalizers import Lowercase, Normalizer
from tokenizers.normalizers import Sequence as Normalizers

from sureshot.models.encoders.snapshot import TOKENIZER, TOKENIZER_SETTINGS, Snapshot, first_line
from sureshot.models.encoders.token_words import token_words

_MATCH = f"Put the {TOKENIZER} of the same checkpoint beside its weights."


@dataclass(frozen=True, slots=True)
class Subwords:
    """Texts as rows of token ids.

    Attributes:
        ids: special tokens and padding included.
        mask: True where a token is not padding; special tokens are real.
        truncated: True where the end of a text was dropped.
    """

    ids: Int64[np.ndarray, "texts words"]
    mask: Bool[np.ndarray, "texts words"]
    truncated: Bool[np.ndarray, " texts"]


class Cutter:
    """Cuts texts with the ``tokenizer.json`` of a model's folder.

    Args:
        snapshot: the folder.
        longest: tokens the network reads at most, special tokens included.
        vocabulary: number of tokens the network knows.
        fill: pad every text to ``longest``, for networks that read the padding too.
        end: token that must close every text, because the network looks for it.

    Differs:
        Where the settings ask for lower case and the tokenizer does not see to it, it is done here.
        SigLIP2 was trained on lower case; transformers 5 lowers it for the NaFlex checkpoints only.

    Raises:
        ModelError: the file is missing, damaged, or does not fit the network; the last may be
            found only at the first text.
    """

    def __init__(
        self, snapshot: Snapshot, *, longest: int, vocabulary: int, fill: bool, end: int | None
    ) -> None:
        path = snapshot.require(TOKENIZER, _write(snapshot))
        settings = snapshot.settings(TOKENIZER_SETTINGS)
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises no narrower one
            reason = f"{TOKENIZER} cannot be read ({first_line(error)})"
            raise snapshot.refuse(reason, _MATCH) from None
        if settings.get("do_lower_case") and _keeps_case(tokenizer.normalizer):
            known = [tokenizer.normalizer] if tokenizer.normalizer else []
            tokenizer.normalizer = Normalizers([Lowercase(), *known])
        told = settings.get("model_max_length")
        self._longest = min(longest, int(told)) if isinstance(told, int | float) else longest
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._longest)
        padding = settings.get("pad_token")
        padding = padding.get("content") if isinstance(padding, dict) else padding
        pad = tokenizer.token_to_id(padding) if isinstance(padding, str) else None
        if pad is None and fill:
            fix = f"Add the pad_token the model was trained with to {TOKENIZER_SETTINGS}."
            raise snapshot.refuse("its padding is unknown, and the network reads it", fix)
        self._pad = pad or 0
        self._left = settings.get("padding_side") == "left"
        self._tokenizer, self._snapshot = tokenizer, snapshot
        self._vocabulary, self._fill, self._end = vocabulary, fill, end

    def limit(self, longest: int) -> None:
        """Read no more than so many tokens of a text from now on, special ones included."""
        self._longest = min(self._longest, longest)
        self._tokenizer.enable_truncation(self._longest)

    def cut(self, texts: Sequence[str]) -> Subwords:
        """Cut texts; at least one."""
        found = self._tokenizer.encode_batch(list(texts))
        width = self._longest if self._fill else max(len(text.ids) for text in found)
        ids = np.full((len(found), width), self._pad, np.int64)
        mask = np.zeros(ids.shape, bool)
        for row, text in enumerate(found):
            first = width - len(text.ids) if self._left else 0
            ids[row, first : first + len(text.ids)] = text.ids
            mask[row, first : first + len(text.ids)] = True
        if ids.max() >= self._vocabulary:
            reason = f"{TOKENIZER} gives token {ids.max()}, the network knows {self._vocabulary}"
            raise self._snapshot.refuse(reason, _MATCH)
        if self._end is not None and not (ids == self._end).any(axis=1).all():
            reason = f"{TOKENIZER} does not end a text with token {self._end}"
            raise self._snapshot.refuse(reason, _MATCH)
        truncated = np.array([bool(text.overflowing) for text in found])
        return Subwords(ids=ids, mask=mask, truncated=truncated)

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each token that is not padding."""
        found = self._tokenizer.encode_batch(list(texts))
        return [token_words(*both) for both in zip(texts, found, strict=True)]


def _keeps_case(normalizer: Normalizer | None) -> bool:
    return normalizer is None or "A" in normalizer.normalize_str("A")


def _write(snapshot: Snapshot) -> str:
    return (
        'Write it once: python -c "from transformers import AutoTokenizer as T; '
        f"T.from_pretrained('{snapshot.folder}').save_pretrained('{snapshot.folder}')\""
    )
