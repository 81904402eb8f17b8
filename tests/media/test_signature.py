"""Signatures know a copy from a look-alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from sureshot.media import signature as module
from sureshot.media.discover import Source
from sureshot.media.signature import Patterns, shrunk, signature
from sureshot.media.video import open_video
from tests.clips import film, patterns, similarity


def signatures(pictures):
    return np.stack([signature(picture) for picture in pictures])


def read(path):
    with open_video(Source(path, "file", 0, 0)) as video:
        return [frame.image(64) for frame in video]


def half(picture):
    return np.asarray(Image.fromarray(picture).resize((96, 64), Image.Resampling.BILINEAR))


@pytest.fixture(scope="module")
def originals():
    return patterns(6, (192, 128))


def test_a_copy_of_half_the_size_encoded_again_matches(originals, tmp_path):
    first = read(film(tmp_path / "a.mp4", originals))
    again = film(tmp_path / "b.avi", [half(p) for p in originals], codec="mpeg4", rate=5)
    assert similarity(signatures(first), signatures(read(again))[None]) == [1.0]


def test_other_content_does_not_match(originals):
    others = patterns(6, (192, 128), seed=1)
    assert similarity(signatures(originals), signatures(others)[None]) == [0.0]


def test_two_colours_are_not_two_others(originals):
    """Grey pictures alone took 26 clips of other colours for copies of one."""
    two = np.zeros((4, 64, 96, 3), np.uint8)
    two[:, :, 48:] = np.array([(255, 0, 0), (0, 140, 60), (60, 60, 255), (90, 90, 90)])[
        :, None, None
    ]
    marks = signatures(two)
    for one in range(4):
        like = [similarity(marks[[one]], marks[None, [other]]).item() for other in range(4)]
        assert like == [float(one == other) for other in range(4)]
    swapped = [picture[..., ::-1] for picture in originals]
    assert similarity(signatures(originals), signatures(swapped)[None]) < [0.5]


@pytest.mark.parametrize(("degrees", "alike"), [(0, 1.0), (30, 1.0), (45, 0.0), (90, 0.0)])
def test_strong_colours_of_another_hue_make_another_picture(originals, degrees, alike):
    marks = signatures(originals[:2])
    for mark, turn in zip(marks, np.radians([0, degrees]), strict=True):
        mark[:] = [
            *marks[0][:256],
            *[128 + 60 * np.cos(turn)] * 16,
            *[128 + 60 * np.sin(turn)] * 16,
        ]
    assert similarity(marks[:1], marks[None, 1:]) == [alike]


@pytest.mark.parametrize(("pairs", "at_once"), [(3, 4_000_000), (8192, 80)])
def test_many_pictures_are_compared_in_parts_and_to_the_last_pixel(monkeypatch, pairs, at_once):
    """Half of them are like others in each block of pixels, but not within these."""
    monkeypatch.setattr(module, "_PAIRS", pairs)
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    marks = np.random.default_rng(0).integers(0, 256, (40, 1, 288), np.uint8)
    marks[:, :, 256:] = 128
    grey = marks[:20, 0, :256].reshape(20, 4, 4, 4, 4)  # rows, and columns, of blocks and in them
    marks[20:, 0, :256] = grey[:, :, ::-1, :, ::-1].reshape(20, 256)
    marks[30] = marks[3]
    one, other = Patterns(marks).alike([3, 5, 30, 12, 25])
    found = set(zip(one.tolist(), other.tolist(), strict=True))
    assert found == {(n, n) for n in (3, 5, 30, 12, 25)} | {(3, 30), (30, 3)}


def test_paler_and_stronger_colours_are_those_of_a_copy(originals):
    for strength in (0.5, 0.7, 1.3):
        pale = [
            np.asarray(ImageEnhance.Color(Image.fromarray(p)).enhance(strength)) for p in originals
        ]
        assert similarity(signatures(originals), signatures(pale)[None]) == [1.0]


def test_brightness_and_contrast_do_not_matter(originals):
    darker = [(picture * 0.6 + 20).astype(np.uint8) for picture in originals]
    assert similarity(signatures(originals), signatures(darker)[None]) == [1.0]


def test_a_trimmed_or_shifted_copy_matches(originals):
    marks = signatures(originals)
    assert similarity(marks[2:4], marks[None]) == [1.0]
    assert similarity(marks[::-1].copy(), marks[None]) == [1.0]
    assert similarity(marks, marks[None, :3]) == [0.5]


def test_flat_frames_tell_nothing():
    dice = np.random.default_rng(0)
    black, white = np.zeros((40, 60, 3), np.uint8), np.full((40, 60, 3), 255, np.uint8)
    noisy = (100 + dice.normal(0, 3, (40, 60, 3))).astype(np.uint8)
    flat = signatures([black, white, noisy])
    assert similarity(flat, flat[None]) == [0.0]


def test_a_signature_is_the_mean_of_each_part():
    picture = np.random.default_rng(0).integers(0, 256, (32, 48, 3), np.uint8)
    grey = np.asarray(Image.fromarray(picture).convert("L"), np.float64)
    slow = [grey[y : y + 2, x : x + 3].mean() for y in range(0, 32, 2) for x in range(0, 48, 3)]
    assert np.allclose(signature(picture)[:256], slow, atol=1)
    colours = np.asarray(Image.fromarray(picture).convert("YCbCr"), np.float64)[..., 1:]
    means = colours.reshape(4, 8, 4, 12, 2).mean((1, 3)).transpose(2, 0, 1)
    assert np.allclose(signature(picture)[256:], means.reshape(-1), atol=2)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4), st.integers(0, 5))
def test_similarity_is_a_share_that_padding_never_changes(seed, frames, videos, padding):
    dice = np.random.default_rng(seed)
    one = dice.integers(0, 256, (frames, 288), np.uint8)
    others = dice.integers(0, 256, (videos, 3, 288), np.uint8)
    others[0, 0] = one[0]
    plain = similarity(one, others)
    padded = similarity(one, np.pad(others, ((0, 0), (0, padding), (0, 0))))
    assert np.array_equal(plain, padded)
    assert ((plain >= 0) & (plain <= 1)).all() and plain[0] >= 1 / frames


@pytest.mark.parametrize(
    ("size", "side", "expected"),
    [
        ((640, 360), 224, (398, 224)),
        ((360, 640), 224, (224, 398)),
        ((100, 50), 224, (100, 50)),
        ((682.67, 480), 240, (341, 240)),
        ((2000, 8), 24, (192, 8)),
        ((1, 1), 24, (1, 1)),
    ],
)
def test_the_shorter_side_is_at_most_what_was_asked_for(size, side, expected):
    assert shrunk(*size, side) == expected
