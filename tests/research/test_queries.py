"""Which videos a query describes, by their captions."""

import numpy as np

from sureshot.research.queries import by_words, content, keywords


def test_words_that_say_what_is_to_be_seen():
    assert content("A man is playing the guitars!") == content("guy plays guitar")
    assert content("there is one of them") == frozenset()
    assert content("a woman dances") != content("a man dances")


def test_digits_are_no_words_to_search_for():
    rng = np.random.default_rng(0)
    assert keywords(["a covid19 test"], 3, rng) == ["test"]
    assert keywords(["covid19 iphone6"], 3, rng) == []


def test_a_video_is_relevant_if_one_caption_of_it_says_everything():
    texts = [
        "a man plays guitar",  # of video 0
        "someone sings",
        "a man in a hat is playing a red guitar",  # of video 1
        "the man stands",  # of video 2
        "he plays the guitar",
        "it is there",
    ]
    owner = np.array([0, 0, 1, 2, 2, 2])
    found = by_words(texts, texts, owner, 3)
    assert found.tolist() == [
        [True, True, False],  # video 2 says it in two captions, not in one
        [True, False, False],
        [False, True, False],
        [False, False, True],
        [True, True, True],
        [False, False, False],  # no word says what is to be seen
    ]
