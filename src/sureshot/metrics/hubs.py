"""Correction of similarities for hubs, the videos that come near the top whatever is asked.

Which of these a real search may use depends on what they look at besides the query itself:

* `nearest_neighbour_normalised` and `querybank_norm` look at a fixed bank of other captions, for
  instance those of training. The score of a query does not depend on what else is asked.
* `dual_softmax` and `inverted_softmax` look at **all test queries**. They profit
  from each video being sought once, which no search knows, and must be named with any number they
  made.

All take cosines, not yet scaled, leave their input as it is and work in float64; ``-inf`` stays
``-inf``. A bank holds similarities of other captions, at best of training, to the same videos.
"""

import numpy as np
from jaxtyping import Float, Float64

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import Scores, row_blocks

Bank = Float[np.ndarray, "captions videos"]
Corrected = Float64[np.ndarray, "texts videos"]
CLIP_SCALE = 100.0  # of a CLIP's logits, and so of the published numbers


def dual_softmax(similarity: Scores, scale: float = CLIP_SCALE) -> Corrected:
    """DSL: each similarity times its softmax over all texts of the same video.

    S'_ij = S_ij exp(c S_ij) / sum_k exp(c S_kj). **Looks at all test queries.** This is the form
    for text to video; for video to text give the transposed matrix and transpose the result.

    Where all similarities of a text are negative the product turns its ranking round: the least
    likely video is multiplied by the smallest weight and comes out nearest to zero.

    The published codes correct logits, so c is the model's logit scale.

    References:
        Cheng et al., "Improving video-text retrieval by multi-stream corpus alignment and dual
        softmax loss", arXiv:2109.04290.

    Differs:
        The codes that pad unequal numbers of captions with NaN spread it over all videos; here
        rows are captions and there is no padding. UATVR multiplies by the number of texts and the
        scale as well, which changes no ranking.
    """
    scores = _finite("similarity", similarity)
    if (scores.max(1) < 0).mean() > 0.5:
        raise SureshotError(
            "DSL multiplies scores, so it is for cosines; here most texts score below 0 with every "
            "video, as logarithms of probabilities do. Take inverted_softmax."
        )
    weight = np.exp(_log_softmax(scores, scores, scale))
    return np.multiply(scores, weight, out=scores, where=~np.isneginf(scores))


def inverted_softmax(similarity: Scores, scale: float = CLIP_SCALE) -> Corrected:
    """Each similarity minus the soft maximum of what its video scores with all texts.

    S'_ij = S_ij - log(sum_k exp(c S_kj)) / c. **Looks at all test queries.** Text to video, as
    `dual_softmax`.

    References:
        Smith et al., "Offline bilingual word vectors, orthogonal transformations and the inverted
        softmax", arXiv:1702.03859.

    Differs:
        The softmax over texts is exp(c S'). Its logarithm ranks the videos of a text the same and
        does not lose small ones to zero. The released code of DUQ applies this to every result it
        prints, without saying so.
    """
    scores = _finite("similarity", similarity)
    return _log_softmax(scores, scores, scale) / scale


def querybank_norm(similarity: Scores, bank: Bank, *, beta: float = 20.0, k: int = 1) -> Corrected:
    """QB-Norm: the inverted softmax against a bank, for texts whose best video is a likely hub.

    A video is a likely hub ("activated") if it is among the ``k`` best of any caption of the bank.
    A text whose best video is one gets S'_ij = S_ij - log(sum_k exp(beta B_kj)) / beta; every
    other text keeps its row. **Looks at the bank only.** Rows are then on two scales: good for
    ranking videos of one text, meaningless for ranking texts of one video.

    References:
        Bogolin et al., "Cross modal retrieval with querybank normalisation", CVPR 2022,
        arXiv:2112.12777 (its dynamic inverted softmax).

    Differs:
        The original writes exp(beta S') into its input; the logarithm ranks the same and cannot
        overflow. Where scores tie for place ``k`` all of them are activated, not the first found.
    """
    scores = _finite("similarity", similarity)
    known = _finite("bank", bank)
    activated = (known >= _kth_best(known, k)).any(0)
    hub_first = ((scores == scores.max(1, keepdims=True)) & activated).any(1)
    scores[hub_first] = _log_softmax(scores[hub_first], known, beta) / beta
    return scores


def nearest_neighbour_normalised(
    similarity: Scores, bank: Bank, *, k: int = 64, weight: float = 1.0
) -> Corrected:
    """NNN: each similarity minus what its video scores with the captions of a bank nearest to it.

    S'_ij = S_ij - weight * mean of the ``k`` largest B_.j, or of all if the bank is smaller.
    **Looks at the bank only.** One number per video is taken off, the same for every text, so it
    can be stored with the video; ranks of texts for a video do not change.

    References:
        Chowdhury et al., "Nearest neighbor normalization improves multimodal retrieval", EMNLP
        2024, arXiv:2410.24114.

    Differs:
        The original fails where ``k`` exceeds the bank.

    Examples:
        >>> scores = np.array([[0.5, 0.6]])
        >>> bank = np.array([[0.1, 0.4], [0.0, 0.6]])
        >>> nearest_neighbour_normalised(scores, bank, k=1)
        array([[0.4, 0. ]])
    """
    scores = _finite("similarity", similarity)
    return scores - weight * nearest_mean(bank, k)


def nearest_mean(bank: Bank, k: int) -> Float64[np.ndarray, " videos"]:
    """Mean of the ``k`` largest scores of each video with a bank, or of all if there are fewer."""
    known = _finite("bank", bank)
    k = min(k, len(known))
    nearest = np.partition(known, len(known) - k, axis=0)[-k:].mean(0)
    if not np.isfinite(nearest).all():
        column = int(np.argmin(np.isfinite(nearest)))
        raise SureshotError(
            f"The bank scores video {column} with -inf among its {k} nearest captions, so their "
            "mean is undefined; leave the video out or use a smaller k."
        )
    return nearest


def occurrences(similarity: Scores, k: int = 10) -> Float64[np.ndarray, " videos"]:
    """N_k: for how many texts each video is among the ``k`` best; they sum to ``k`` times texts.

    Videos that tie for the last places share them, so that the order of the columns never counts.

    Examples:
        >>> occurrences(np.array([[0.9, 0.2, 0.2], [0.8, 0.1, 0.3]]), 2)
        array([2. , 0.5, 1.5])
    """
    found = np.zeros(similarity.shape[1])
    for part in row_blocks(*similarity.shape):
        scores = _finite("similarity", similarity[part])
        last = _kth_best(scores, k)
        above, level = scores > last, scores == last
        share = (k - above.sum(1)) / level.sum(1)
        found += above.sum(0) + share @ level
    return found


def hubness_skewness(similarity: Scores, k: int = 10) -> float:
    """Skewness of N_k over the videos: 0 without hubs, above 1 with strong ones.

    E[(N_k - mean)^3] / sd^3 with the moments of the gallery itself; 0 where all videos occur
    equally often. A gallery of fewer than ``k`` videos has no choice to show: all are among the
    ``k`` best, and it is 0.

    References:
        Radovanovic et al., "Hubs in space", JMLR 11 (2010).
    """
    if k >= similarity.shape[1]:
        _finite("similarity", similarity)
        return 0.0
    counts = occurrences(similarity, k)
    centred = counts - counts.mean()
    spread = np.sqrt(np.mean(centred**2))
    # Shares of tied places do not add up exactly, so equal counts may differ by rounding.
    if spread <= 1e-9 * max(1.0, counts.mean()):
        return 0.0
    return float(np.mean((centred / spread) ** 3))


def _log_softmax(
    scores: Corrected, bank: Float64[np.ndarray, "captions videos"], scale: float
) -> Corrected:
    """``scale * scores`` minus the logarithm of the sum of exp(``scale * bank``) in each column."""
    top = bank.max(0)
    # A column the bank rules out is no hub of it: only its own scores count.
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(scale * (bank - top)).sum(0))
    return scale * (scores - top) - np.where(np.isneginf(total), 0.0, total)


def _kth_best(scores: Corrected, k: int) -> Float64[np.ndarray, "texts 1"]:
    place = scores.shape[1] - k
    return np.partition(scores, place, axis=1)[:, place : place + 1]


def _finite(name: str, scores: Scores) -> Corrected:
    """A float64 copy without NaN and ``+inf``."""
    copied = scores.astype(np.float64)
    bad = np.argwhere(~(copied < np.inf))
    if len(bad):
        row, column = bad[0]
        raise SureshotError(
            f"{name}[{row}, {column}] is {copied[row, column]}; scores must be numbers below "
            "infinity. Find what made it: an empty mask, a zero vector, a training that diverged."
        )
    return copied
