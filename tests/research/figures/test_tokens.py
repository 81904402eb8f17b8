"""Frames and learned tokens against the words of a text."""

import itertools

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.research.figures.tokens import best_words, thinned, tokens
from tests.research.figures.pictures import pixels, share, shown


def test_each_frame_has_its_best_real_word():
    draw = torch.Generator().manual_seed(0)
    words = -torch.rand(3, 4, 5, generator=draw)
    frames = torch.rand(6, 5, generator=draw)
    mask = torch.arange(4) < torch.tensor([[4], [1], [2]])
    found = best_words(words, frames, mask)
    for text in range(3):
        for frame in range(6):
            values = [
                (words[text, word] @ frames[frame]).item() for word in range(4) if mask[text, word]
            ]
            assert found[text, frame].item() == pytest.approx(max(values))


def test_a_video_is_read_by_its_own_text_and_by_the_best_other(subject):
    of = subject("uatvr")
    found = tokens(of, 4)
    for query, (item, reads) in zip(of.pairs(4), found.videos, strict=True):
        column = int(of.owner[query])
        assert item == of.items[column]
        assert [read.right for read in reads] == [True, False]
        assert reads[0].text == of.text(query)
        others = [row for row in range(12) if of.owner[row] != column]
        best = max(others, key=lambda row: of.scores[row, column])
        assert (reads[1].text, reads[1].score) == (of.text(best), of.scores[best, column])
        texts, videos = of.text_codes([query]), of.video_codes([column])
        products = texts["words"][0][texts["mask"][0]] @ videos["frames"][0].T
        expected = products.amax(0)[videos["mask"][0]]
        assert (*reads[0].frames, *reads[0].learned) == pytest.approx(expected.tolist(), abs=1e-5)
        assert len(reads[0].frames) == len(of.features.videos[column].frames)
        assert len(reads[0].learned) == 3
    assert found.to_dict()["videos"][0]["texts"][0]["learned"] == list(
        found.videos[0][1][0].learned
    )


@pytest.mark.parametrize("system", ["xpool", "duq", "tiny"])
def test_a_system_without_words_against_frames_is_refused(subject, system):
    with pytest.raises(SureshotError, match="does not compare words with frames; UATVR does"):
        tokens(subject(system), 2)


def test_frames_are_drawn_with_bars_and_numbers(subject):
    found = tokens(subject("uatvr"), 2)
    figure = found.draw()
    text = shown(figure)
    frames = sum(len(read.frames) for _, reads in found.videos for read in reads)
    assert len(figure.axes[0].images) == frames > 4
    assert text.count("learned tokens: ") == 4
    assert text.count("✓ “") == 2
    assert share(pixels(figure), "#1a1a1a", 4) > 0.01


def test_many_frames_are_thinned_evenly():
    assert thinned(0, 6) == [] and thinned(6, 6) == [0, 1, 2, 3, 4, 5]
    for count in (7, 12, 64):
        places = thinned(count, 6)
        assert (places[0], places[-1], len(set(places))) == (0, count - 1, 6)
        gaps = [b - a for a, b in itertools.pairwise(places)]
        assert max(gaps) - min(gaps) <= 1
