"""Frames and learned tokens against the tokens and words of a text."""

import itertools

import numpy as np
import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.research.figures.strips import best_tokens, best_words, thinned, tokens
from tests.research.figures.pictures import pixels, share, shown, untidy


def parts(count=4):
    draw = torch.Generator().manual_seed(0)
    mask = torch.ones(4, dtype=torch.bool)
    mask[count:] = False
    return -torch.rand(4, 5, generator=draw), torch.rand(6, 5, generator=draw), mask


@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_frame_has_its_best_real_token(count):
    words, frames, mask = parts(count)
    found = best_tokens(words, frames, mask)
    for frame in range(6):
        values = [(words[word] @ frames[frame]).item() for word in range(count)]
        assert found[frame].item() == pytest.approx(max(values))


def test_the_word_that_fits_a_frame_best_is_named_and_no_other_token():
    words, frames, mask = parts(3)
    found = best_words(words, frames, mask, ("", "red", "wall", "late"))
    for frame, best in zip(frames, found, strict=True):
        values = {"red": (words[1] @ frame).item(), "wall": (words[2] @ frame).item()}
        name = max(values, key=values.__getitem__)
        assert best.word == name and best.cosine == pytest.approx(values[name])
    assert best_words(words, frames, mask, ("", "", "", "late")) == [None] * 6


def test_a_video_is_read_by_its_own_text_and_by_the_best_other(subject):
    of = subject("uatvr")
    found = tokens(of, 4)
    for query, own, other in zip(of.pairs(4), found.rows[::2], found.rows[1::2], strict=True):
        column = int(of.owner[query])
        assert own.item == other.item == of.items[column]
        assert (own.reading.right, other.reading.right) == (True, False)
        assert own.reading.text == of.text(query)
        others = [row for row in range(12) if of.owner[row] != column]
        best = max(others, key=lambda row: of.scores[row, column])
        assert (other.reading.text, other.reading.score) == (of.text(best), of.scores[best, column])
        texts, videos = of.text_codes([query]), of.video_codes([column])
        products = texts["words"][0][texts["mask"][0]] @ videos["frames"][0].T
        values = (*own.reading.frames, *own.reading.learned)
        assert values == pytest.approx(products.amax(0).tolist(), abs=1e-5)
        assert len(own.reading.frames) == len(of.features.videos[column].frames)
        assert len(own.reading.learned) == 3
        names = of.text(query).split()
        named = products[: len(names)].max(0)
        for word, place, cosine in zip(
            (*own.reading.words, *own.reading.learned_words), *named[::-1], strict=True
        ):
            assert word.word == names[place]
            assert word.cosine == pytest.approx(cosine.item(), abs=1e-5)
    first = found.to_dict()["videos"][0]["texts"][0]
    assert first["learned"] == list(found.rows[0].reading.learned)
    best = found.rows[0].reading.words[0]
    assert first["words"][0] == {"word": best.word, "cosine": best.cosine}


class Wordless:
    """An encoder that does not know what its tokens are."""

    def __getattr__(self, name):
        if name == "words_of":
            raise AttributeError(name)
        return getattr(TinyEncoder(), name)


class Miscounting(TinyEncoder):
    """Says fewer words than it gave tokens."""

    def words_of(self, texts):
        return [names[:-1] for names in super().words_of(texts)]


@pytest.mark.parametrize("encoder", [Wordless, Miscounting])
def test_an_encoder_that_cannot_say_its_words_claims_none(subject, encoder):
    of = subject("uatvr", encoder=encoder())
    found = tokens(of, 2)
    assert all(set(row.reading.words) == {None} for row in found.rows)
    assert found.to_dict()["videos"][0]["texts"][0]["words"][0] is None
    assert untidy(found.draw()) == []


@pytest.mark.parametrize("system", ["xpool", "duq", "tiny"])
def test_a_system_without_words_against_frames_is_refused(subject, system):
    with pytest.raises(SureshotError, match="does not compare words with frames; UATVR does"):
        tokens(subject(system), 2)
    with pytest.raises(SureshotError, match="does not compare words with frames; UATVR does"):
        tokens(subject("uatvr"), 2, subject(system))


def test_frames_are_drawn_with_bars_numbers_and_words(subject):
    found = tokens(subject("uatvr"), 2)
    figure = found.draw()
    text = shown(figure)
    frames = sum(len(row.reading.frames) for row in found.rows)
    assert len(figure.axes[0].images) == frames > 4
    assert text.count("learned tokens: ") == 4
    assert text.count("✓ “") == 2
    for row in found.rows:
        assert all(f"“{best.word}” " in text for best in row.reading.words)
    assert share(pixels(figure), "#1a1a1a", 4) > 0.005


def test_two_models_show_the_best_video_of_the_texts_they_differ_on(subject):
    both = subject("uatvr"), subject("uatvr", weights=1)
    found = tokens(both[0], 3, both[1])
    tops = [one.scores.argmax(1) for one in both]
    right = [top == both[0].owner for top in tops]
    assert found.first_alone == int((right[0] & ~right[1]).sum())
    assert found.second_alone == int((right[1] & ~right[0]).sum())
    assert found.first_alone + found.second_alone > 0, "models that agree test nothing"
    shown_texts = found.rows[::2]
    assert 1 <= len(shown_texts) <= 3
    texts = [both[0].text(query) for query in range(12)]
    for first, second in zip(found.rows[::2], found.rows[1::2], strict=True):
        assert first.reading.text == second.reading.text
        query = texts.index(first.reading.text)
        assert right[0][query] != right[1][query]
        for row, one, top in zip((first, second), both, tops, strict=True):
            assert row.item == one.items[top[query]]
            assert row.reading.right == (top[query] == one.owner[query])
            assert row.reading.score == one.scores[query, top[query]]
    assert len({row.model for row in found.rows}) == 2
    told = found.to_dict()
    assert told["queries"] == 12 and told["rows"][0]["model"] == found.rows[0].model
    figure = found.draw()
    text = shown(figure)
    assert untidy(figure) == []
    assert all(f"{row.model}: " in text for row in found.rows)


def test_the_bars_of_two_models_are_on_one_scale(subject):
    found = tokens(subject("uatvr"), 3, subject("uatvr", weights=1))
    values = [v for row in found.rows for v in (*row.reading.frames, *row.reading.learned)]
    low, high = min(values), max(values)
    bars = [patch for patch in found.draw().axes[0].patches if patch.get_height() == 0.07]
    whole = max(patch.get_width() for patch in bars)
    filled = [patch.get_width() / whole for patch in bars[1::2]]
    frames = [value for row in found.rows for value in row.reading.frames]
    np.testing.assert_allclose(filled, [(v - low) / (high - low) for v in frames], atol=1e-6)


def test_many_frames_are_thinned_evenly():
    assert thinned(0, 6) == [] and thinned(6, 6) == [0, 1, 2, 3, 4, 5]
    for count in (7, 12, 64):
        places = thinned(count, 6)
        assert (places[0], places[-1], len(set(places))) == (0, count - 1, 6)
        gaps = [b - a for a, b in itertools.pairwise(places)]
        assert max(gaps) - min(gaps) <= 1
