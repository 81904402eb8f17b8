"""From an encoder's space into a system's, and then through it."""

import pytest
import torch
from torch.nn import functional

from sureshot.errors import SureshotError
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import Sizes, VideoTokens
from tests.models.systems.every import EXPERTS, SIZES, WIDTH, system, texts, videos


def stem(**settings) -> Stem:
    torch.manual_seed(0)
    return Stem(StemConfig("linear", **{"width": 6, "dropout": 0.0} | settings), SIZES)


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


def test_the_length_of_what_comes_in_does_not_count() -> None:
    made, words, films = stem(), texts(3), videos(3)
    longer = words._replace(sentence=5 * words.sentence, words=5 * words.words)
    for one, other in zip(made.texts(longer), made.texts(words), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    wider = VideoTokens(7 * films.frames, films.patches, 3 * films.backbone, films.mask)
    torch.testing.assert_close(
        made.videos(wider).frames, made.videos(films).frames, atol=1e-3, rtol=1e-3
    )


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


def test_standard_form_is_that_of_a_layer_norm() -> None:
    row = torch.randn(WIDTH)
    torch.testing.assert_close(standard(row), functional.layer_norm(row, (WIDTH,)))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"width": 0}, "stem.width is 0"), ({"dropout": 1.0}, "stem.dropout is 1.0")],
)
def test_settings_out_of_range_are_refused(settings: dict, reason: str) -> None:
    with pytest.raises(SureshotError, match=reason):
        StemConfig("linear", **settings)


def test_tokens_pass_the_stem_first() -> None:
    torch.manual_seed(0)
    stem = Stem(StemConfig("linear", WIDTH, dropout=0.0), Sizes(WIDTH, 3))
    model = Model(stem, system("duq well_posed distance=mean"))
    words, films = texts(3), videos(3)
    for found, expected in (
        (model.texts(words), model.system.texts(stem.texts(words))),
        (model.videos(films), model.system.videos(stem.videos(films))),
    ):
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in found)


def test_it_holds_the_weights_of_both() -> None:
    model = Model(Stem(StemConfig("linear", WIDTH), Sizes(WIDTH, 3)), system("xpool"))
    parts = {name.split(".")[0] for name, _ in model.named_parameters()}
    assert parts == {"stem", "system"}
