"""From an encoder's space into a system's, and then through it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.encoders.base import FrameFeatures, stack
from sureshot.models.encoders.experts import pack
from sureshot.models.model import Stem, StemConfig
from sureshot.models.systems.base import Sizes, TextTokens, VideoTokens, video_tokens
from tests.models.systems.every import EXPERTS, SIZES, WIDTH, texts, videos


def stem(**settings) -> Stem:
    torch.manual_seed(0)
    return Stem(StemConfig("linear", **{"width": 6, "dropout": 0.0} | settings), SIZES)


def test_a_width_out_of_range_is_named_in_full() -> None:
    with pytest.raises(SureshotError, match=r"Setting stem\.width is 0"):
        stem(width=0)


def test_none_passes_on_the_very_tokens_and_has_no_weights() -> None:
    made, words, films = Stem(StemConfig(), SIZES), texts(3), videos(3)
    assert made.texts(words) is words
    assert made.videos(films) is films
    assert made.sizes.dim == WIDTH
    assert not list(made.parameters())


def standard(row: torch.Tensor) -> torch.Tensor:
    """Mean 0 and variance 1, without layer norm."""
    centred = row - row.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt()


def test_each_token_is_mapped_as_written() -> None:
    made, words, films = stem(), texts(3), videos(3)
    assert made.sizes.dim == 6
    found = made.texts(words)
    for i in range(3):
        sentence = words.sentence[i] / words.sentence[i].norm() * WIDTH**0.5
        expected = made.sentence.weight @ sentence + made.sentence.bias
        torch.testing.assert_close(found.sentence[i], expected)
        for j, real in enumerate(words.mask[i]):
            expected = made.word.weight @ standard(words.words[i, j]) + made.word.bias
            torch.testing.assert_close(found.words[i, j], expected if real else torch.zeros(6))
    seen = made.videos(films)
    for i in range(3):
        for j, real in enumerate(films.mask[i]):
            parts = torch.cat([standard(films.frames[i, j]), standard(films.backbone[i, j])])
            expected = made.frame.weight @ parts + made.frame.bias
            torch.testing.assert_close(seen.frames[i, j], expected if real else torch.zeros(6))
    assert torch.equal(found.mask, words.mask) and torch.equal(seen.mask, films.mask)
    assert seen.patches.shape == (3, 4, 0, 0)


def test_experts_pass_and_cells_do_not() -> None:
    made, films = stem(), videos(3)
    seen = made.videos(films)
    assert torch.equal(seen.experts, films.experts) and torch.equal(seen.which, films.which)
    assert made.sizes == Sizes(6, 3, EXPERTS, cells=False)
    assert Stem(StemConfig(), SIZES).sizes == SIZES and SIZES.cells


def test_what_is_switched_off_is_not_read_and_has_no_weights() -> None:
    words, films = texts(3), videos(3)
    bare = stem(backbone=False)
    assert bare.frame.in_features == WIDTH
    other = films._replace(backbone=films.backbone + 9)
    assert torch.equal(bare.videos(other).frames, bare.videos(films).frames)
    wordless = stem(words=False)
    assert not [name for name, _ in wordless.named_parameters() if name.startswith("word.")]
    assert wordless.texts(words).words.shape == (3, 5, 0)
    assert wordless.texts(words).sentence.shape == (3, 6)


def test_dropout_is_for_training_alone() -> None:
    made, words = stem(dropout=0.5), texts(3)
    made.eval()
    assert torch.equal(made.texts(words).sentence, made.texts(words).sentence)
    made.train()
    assert not torch.equal(made.texts(words).sentence, made.texts(words).sentence)


def test_words_are_zero_at_padding_even_for_a_nan_there() -> None:
    made, words = stem(), texts(4)
    films = videos(4)
    words.words[~words.mask] = torch.nan
    films.frames[~films.mask] = torch.nan
    assert made.texts(words).words.isfinite().all()
    assert made.videos(films).frames.isfinite().all()


def test_videos_in_half_precision_become_single() -> None:
    draw = np.random.default_rng(0)

    def some(frames: int) -> FrameFeatures:
        shapes = (frames, 4), (frames, 2, 4), (frames, 3)
        return FrameFeatures(*(draw.normal(size=shape).astype(np.float16) for shape in shapes))

    parts = [some(3), some(1)]
    tokens = video_tokens(stack(parts))
    assert {t.dtype for t in tokens} == {torch.float32, torch.bool}
    for row, part in enumerate(parts):
        count = len(part.frames)
        for name in ("frames", "patches", "backbone"):
            found = getattr(tokens, name)[row].numpy()
            np.testing.assert_array_equal(found[:count], getattr(part, name).astype(np.float32))
            assert not found[count:].any()
    assert tokens.mask.tolist() == [[True] * 3, [True, False, False]]


def test_a_mask_without_the_first_word_keeps_an_only_one() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
    kept = mask.clone()
    assert TextTokens(torch.zeros(3, 2), torch.zeros(3, 3, 2), mask).without_first.tolist() == [
        [False, True, True],
        [True, False, False],
        [False, True, False],
    ]
    assert torch.equal(mask, kept)


def test_experts_come_along_and_are_none_otherwise() -> None:
    draw = np.random.default_rng(0)

    def some(*shape: int) -> np.ndarray:
        return draw.normal(size=shape).astype(np.float16)

    plain = stack([FrameFeatures(some(2, 4), some(2, 1, 4), some(2, 3)) for _ in range(3)])
    bare = video_tokens(plain)
    assert bare.experts.shape == bare.which.shape == (3, 0, 0)
    assert (bare.experts.dtype, bare.which.dtype) == (torch.float32, torch.bool)
    own = [{"audio": some(2, 5)}, {}, {"motion": some(1, 7), "audio": some(1, 5)}]
    experts, which = pack(own, (("audio", 5), ("motion", 7)))
    tokens = video_tokens(replace(plain, experts=experts, which=which))
    np.testing.assert_array_equal(tokens.experts.numpy(), experts)
    np.testing.assert_array_equal(tokens.which.numpy(), which)
    # Cut and joined like every other tensor of a video, and kept by what replaces others.
    parts = [VideoTokens(*(part[rows] for part in tokens)) for rows in (slice(1), slice(1, 3))]
    whole = VideoTokens(*(torch.cat(pair) for pair in zip(*parts, strict=True)))
    assert all(torch.equal(a, b) for a, b in zip(whole, tokens, strict=True))
    other = tokens._replace(frames=2 * tokens.frames)
    assert isinstance(other, VideoTokens) and other.experts is tokens.experts
