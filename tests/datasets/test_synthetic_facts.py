"""Captions say what they were given, in words of their own."""

import numpy as np
import pytest

from sureshot.datasets.synthetic import FACTS, sentence

WHOLE = {
    "colour": "purple",
    "shape": "ring",
    "size": "large",
    "place": "top left",
    "direction": "up",
}


def draws(parts, count=200):
    draw = np.random.default_rng(0)
    return [sentence(parts, draw) for _ in range(count)]


@pytest.mark.parametrize("fact", FACTS)
def test_each_named_fact_is_said_and_no_other(fact):
    for text in draws([{fact: WHOLE[fact]}]):
        said = {
            (other, value)
            for other, values in FACTS.items()
            for value, words in values.items()
            if any(word in text for word in words)
        }
        # "upper left corner" holds no word of a direction; "moves left" none of a place.
        assert (fact, WHOLE[fact]) in said
        assert said <= {(fact, WHOLE[fact])}


def test_all_synonyms_and_both_orders_come_up():
    texts = draws([WHOLE])
    for fact, value in WHOLE.items():
        assert all(any(word in text for text in texts) for word in FACTS[fact][value])
    assert any(text.startswith(("at the", "in the")) for text in texts)
    assert any(text.startswith("a ") for text in texts)


def test_scenes_are_told_in_their_order_with_their_articles():
    texts = draws([{"colour": "blue", "shape": "square"}, {"colour": "green"}])
    for text in texts:
        first = max(text.find("blue"), text.find("azure"))
        second = max(text.find("green"), text.find("emerald"))
        assert 0 <= first < second
        assert "a azure" not in text
        assert "a emerald" not in text
    assert any("an emerald" in text for text in texts)
