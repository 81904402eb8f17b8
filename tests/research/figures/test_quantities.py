"""Every number that a system says of a pair or an item has words for its axis."""

import pytest

from sureshot.research.figures.canvas import quantity


@pytest.mark.parametrize("system", ["duq", "duq_released", "uatvr", "dvtr", "pcme", "tmass"])
def test_every_number_of_a_system_is_put_into_words(subject, system):
    of = subject(system)
    names = [*of.matrices([0, 1]), *of.measures]
    said = [quantity(name) for name in names]
    assert all(words != name for words, name in zip(said, names, strict=True))
    assert len(set(said)) == len(said)
