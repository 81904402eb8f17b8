"""Words that the captions a model learned from did not have."""

import pytest

from sureshot.library.query_checks import unknown_words

KNOWN = {"dog", "dogs", "run", "kitchen", "bicycle", "cake"}


@pytest.mark.parametrize(
    "text, unknown, all_of_it",
    [
        ("a dog in the kitchen", (), False),
        ("Bicycles", (), False),  # another ending is the same word
        ("kitchens after the dog", (), False),
        ("zzzz", ("zzzz",), True),
        ("the zzzz, after the Zzzz", ("zzzz", "Zzzz"), True),
        ("zzzz zzzz", ("zzzz",), True),
        ("a dog at Berghain", ("Berghain",), False),
        ("and after", (), True),  # says nothing of a picture
        ("3 x 4!", (), True),
    ],
)
def test_words_without_a_caption_are_named(text, unknown, all_of_it):
    assert unknown_words(text, KNOWN) == (unknown, all_of_it)
