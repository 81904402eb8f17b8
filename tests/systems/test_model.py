"""A model is its stem and then its system."""

import torch

from sureshot.systems.model import Model
from sureshot.systems.stem import Stem, StemConfig
from sureshot.systems.tokens import Sizes
from tests.systems.every import WIDTH, system, texts, videos


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
