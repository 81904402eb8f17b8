"""A stem and a system behind it."""

import torch

from sureshot.systems.model import Model
from sureshot.systems.stem import Stem, StemConfig
from sureshot.systems.tokens import Sizes
from tests.training.toy import CHANNELS, DIM, WIDTH, Pairs, Toy


def test_codes_are_those_of_the_system_in_the_space_of_the_stem():
    pairs = Pairs()
    stem, system = Stem(StemConfig("linear", WIDTH, 0.0), Sizes(DIM, CHANNELS)), Toy(WIDTH)
    model = Model(stem, system)
    texts, videos = pairs.texts([0, 3, 4]), pairs.videos([0, 3, 4])
    for found, expected in (
        (model.texts(texts), system.texts(stem.texts(texts))),
        (model.videos(videos), system.videos(stem.videos(videos))),
    ):
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in found)


def test_weights_of_both_are_its_own():
    model = Model(Stem(StemConfig(), Sizes(DIM, CHANNELS)), Toy(DIM))
    assert {name.split(".")[0] for name in model.state_dict()} == {"system"}
    linear = Model(Stem(StemConfig("linear", WIDTH), Sizes(DIM, CHANNELS)), Toy(WIDTH))
    assert {name.split(".")[0] for name in linear.state_dict()} == {"stem", "system"}
