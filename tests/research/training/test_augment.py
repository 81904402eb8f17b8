"""Random changes of frames: one draw a video, of the strength and the boxes asked for."""

import numpy as np
import pytest
from PIL import Image

from sureshot.media.signature import shrunk
from sureshot.research.training.augment import CHANGES, augmented, change, crop_box

SIDE = 32


def frame(seed=0, height=60, width=90):
    """A picture with edges and colours, not alike when mirrored or turned."""
    y, x = np.mgrid[:height, :width]
    bands = [(x * 3 + seed * 20) % 256, (y * 4) % 256, ((x // 9 + y // 7) % 2) * 200]
    return np.stack(bands, axis=-1).astype(np.uint8)


def small(whole):
    size = shrunk(whole.shape[1], whole.shape[0], SIDE)
    return np.asarray(Image.fromarray(whole).resize(size, Image.Resampling.BOX))


@pytest.mark.parametrize("kind", ["crop_flip", "rand_augment"])
def test_all_frames_of_a_video_are_changed_alike_and_videos_are_not(kind):
    def changed(seed, whole):
        return augmented(kind, small, SIDE, np.random.default_rng(seed))(whole)

    make = augmented(kind, small, SIDE, np.random.default_rng(1))
    np.testing.assert_array_equal(make(frame()), make(frame()))
    np.testing.assert_array_equal(make(frame()), changed(1, frame()))
    found = [changed(seed, frame()) for seed in range(8)]
    assert len({image.tobytes() for image in found}) >= 6
    for image in found:
        assert image.dtype == np.uint8 and image.shape[:2] == (
            SIDE,
            SIDE if kind == "crop_flip" else 48,
        )


def test_crops_keep_half_of_the_frame_at_least_and_its_shape_nearly():
    draw = np.random.default_rng(0)
    for height, width in ((60, 90), (240, 320), (90, 60)):
        for _ in range(200):
            left, top, right, bottom = crop_box(height, width, draw.random((10, 4)))
            assert 0 <= left < right <= width and 0 <= top < bottom <= height
            share = (right - left) * (bottom - top) / (height * width)
            assert 0.47 < share <= 1.02
            assert 0.72 < (right - left) / (bottom - top) < 1.38


def test_a_sliver_is_cropped_in_its_middle():
    assert crop_box(10, 400, np.full((10, 4), 0.999)) == (193.5, 0.0, 206.5, 10.0)


def test_a_crop_is_what_pillow_cuts_and_mirrored_every_second_time():
    mirrored = 0
    for seed in range(20):
        draw = np.random.default_rng(seed)
        box = crop_box(60, 90, draw.random((10, 4)))
        expected = np.asarray(
            Image.fromarray(frame()).resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box)
        )
        found = augmented("crop_flip", small, SIDE, np.random.default_rng(seed))(frame())
        if draw.random() < 0.5:
            expected, mirrored = expected[:, ::-1], mirrored + 1
        np.testing.assert_array_equal(found, expected)
    assert 4 <= mirrored <= 16


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_changes_and_a_weak_one_does_less(name):
    picture = Image.fromarray(frame()[:40, :40])
    strong, weak = (np.asarray(change(picture, name, s, 1.0)).astype(int) for s in (0.9, 0.1))
    plain = np.asarray(picture).astype(int)
    assert strong.shape == plain.shape
    assert np.abs(strong - plain).mean() > 0.5
    if name not in ("autocontrast", "equalize", "invert", "posterize"):
        assert np.abs(weak - plain).mean() < np.abs(strong - plain).mean()
