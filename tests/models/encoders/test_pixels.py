"""Preparation of frames, against the image processors of transformers."""

import json

import numpy as np
import pytest
from PIL import Image
from transformers import CLIPImageProcessorPil, SiglipImageProcessorPil

from sureshot.errors import ModelError
from sureshot.models.encoders.pixels import Preprocessing
from sureshot.models.encoders.snapshot import Snapshot

SIDE = 48
LEVEL = 1 / 255
SIZES = [(37, 90), (1, 1), (300, 200), (48, 48), (47, 49), (5, 64), (97, 96)]


def clip_processor(**changes):
    size = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    return CLIPImageProcessorPil(**(size | changes))


def siglip_processor(**changes):
    return SiglipImageProcessorPil(**({"size": {"height": SIDE, "width": SIDE}} | changes))


def recipe_of(processor, folder, family="clip"):
    processor.save_pretrained(folder)
    return Preprocessing.read(Snapshot(folder), family, SIDE)


def from_settings(folder, settings, family="clip", side=SIDE):
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return Preprocessing.read(Snapshot(folder), family, side)


def clips(height, width):
    """Noise, hard edges, and something like a picture."""
    rng = np.random.default_rng(height * 1000 + width)
    noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    edges = (rng.integers(0, 2, (height, width, 3)) * 255).astype(np.uint8)
    waves = np.sin(np.arange(height)[:, None] / 7) * np.cos(np.arange(width)[None, :] / 11)
    picture = np.repeat((waves * 120 + 128)[..., None], 3, axis=-1).astype(np.uint8)
    return np.stack([noise, edges, picture])


def by_library(processor, frames):
    found = processor([*frames], return_tensors="np", input_data_format="channels_last")
    return np.asarray(found["pixel_values"], np.float32)


def assert_close(ours, theirs, levels_apart):
    """Two of 256 levels at most, hardly ever more than one, and almost everywhere none."""
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    apart = np.abs(ours - theirs) / levels_apart
    assert apart.max() < 2.01
    assert (apart > 1.01).mean() < 0.002
    assert apart.mean() < 0.03


@pytest.mark.parametrize("resample", [2, 3])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_clip_equals_the_library(tmp_path, height, width, resample):
    processor = clip_processor(resample=resample)
    frames = clips(height, width)
    found = recipe_of(processor, tmp_path).apply(frames)
    assert_close(found, by_library(processor, frames), LEVEL / np.min(processor.image_std))


@pytest.mark.parametrize("resample", [2, 3])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_siglip_equals_the_library(tmp_path, height, width, resample):
    processor = siglip_processor(resample=resample)
    frames = clips(height, width)
    found = recipe_of(processor, tmp_path, "siglip").apply(frames)
    assert_close(found, by_library(processor, frames), LEVEL / 0.5)


@pytest.mark.parametrize(("height", "width"), [(64, 5), (130, 20), (64, 48), (48, 64), (5, 64)])
def test_a_line_is_resized_before_a_column(tmp_path, height, width):
    """Pillow 13 turns the order round where that is faster (its pull request 9549).

    Between the two the values are rounded and cut to a byte, so an upright frame that is widened
    comes out differently. We keep the order of Pillow 12 and before, on which CLIP was trained.
    """
    frames = clips(height, width)
    found = Preprocessing.read(Snapshot(tmp_path), "siglip", SIDE).apply(frames)
    lines = [Image.fromarray(frame).resize((SIDE, height), 3) for frame in frames]
    squares = np.stack([np.asarray(line.resize((SIDE, SIDE), 3)) for line in lines])
    expected = (squares.transpose(0, 3, 1, 2) / np.float32(127.5) - 1).astype(np.float32)
    assert_close(found, expected, LEVEL / 0.5)


@pytest.mark.parametrize(("height", "width"), [(37, 90), (60, 33), (200, 49), (48, 48), (20, 21)])
def test_cropping_alone_equals_the_library_exactly(tmp_path, height, width):
    processor = clip_processor(do_resize=False)
    frames = clips(height, width)
    found = recipe_of(processor, tmp_path).apply(frames)
    np.testing.assert_allclose(found, by_library(processor, frames), atol=1e-6)


def test_a_resize_smaller_than_the_crop_is_surrounded_by_black(tmp_path):
    processor = clip_processor(size={"shortest_edge": 31})
    frames = clips(40, 60)
    found = recipe_of(processor, tmp_path).apply(frames)
    assert_close(found, by_library(processor, frames), LEVEL / np.min(processor.image_std))


@pytest.mark.parametrize(
    "changes",
    [
        {"do_normalize": False},
        {"do_rescale": False},
        {"do_rescale": False, "do_normalize": False},
        {"rescale_factor": 1 / 127.5},
        {"image_mean": 0.25, "image_std": 0.75},
    ],
)
def test_every_switch_equals_the_library(tmp_path, changes):
    frames = clips(SIDE, SIDE)  # nothing to resize, so that only numbers are compared
    given = {"do_resize": True, "size": SIDE, "crop_size": SIDE} | changes
    library = dict(changes)
    for key in {"image_mean", "image_std"} & set(changes):
        library[key] = [changes[key]] * 3  # the library takes a list, a file may say one number
    found = from_settings(tmp_path, given).apply(frames)
    expected = by_library(clip_processor(**library), frames)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_no_file_means_the_defaults_of_the_family(tmp_path, family):
    processor = {"clip": clip_processor, "siglip": siglip_processor}[family]()
    frames = clips(60, 91)
    found = Preprocessing.read(Snapshot(tmp_path), family, SIDE).apply(frames)
    assert_close(found, by_library(processor, frames), LEVEL / np.min(processor.image_std))


def test_the_settings_of_2021_are_read(tmp_path):
    old = {"crop_size": SIDE, "size": SIDE, "do_resize": True, "resample": 3, "image_mean": None}
    assert from_settings(tmp_path, old).resize == SIDE


def test_settings_inside_a_processor_come_first(tmp_path):
    inner = {"image_processor": {"size": {"shortest_edge": SIDE + 8}, "crop_size": SIDE}}
    (tmp_path / "processor_config.json").write_text(json.dumps(inner))
    recipe = from_settings(tmp_path, {"size": SIDE, "crop_size": SIDE})
    assert recipe.resize == SIDE + 8


@pytest.mark.parametrize(
    ("settings", "shorter"),
    [
        ({"size": 60, "crop_size": SIDE}, 60),
        ({"size": {"height": 64, "width": 56}, "crop_size": SIDE}, 56),
        ({"do_resize": False, "crop_size": SIDE}, SIDE),
    ],
)
def test_shorter_is_the_side_after_resizing(tmp_path, settings, shorter):
    assert from_settings(tmp_path, settings).shorter == shorter


@pytest.mark.parametrize("layout", ["reversed", "strided", "transposed", "read-only"])
def test_memory_layout_does_not_matter(tmp_path, layout):
    recipe = Preprocessing.read(Snapshot(tmp_path), "clip", SIDE)
    base = clips(90, 80)
    frames = {
        "reversed": base[::-1, :, ::-1],
        "strided": base[:, ::2, 1::3],
        "transposed": base.transpose(0, 2, 1, 3),
        "read-only": base.copy(),
    }[layout]
    frames.flags.writeable = False
    before = frames.copy()
    found = recipe.apply(frames)
    np.testing.assert_array_equal(found, recipe.apply(np.ascontiguousarray(before)))
    np.testing.assert_array_equal(frames, before)


def test_a_frame_alone_equals_it_in_a_clip(tmp_path):
    recipe = Preprocessing.read(Snapshot(tmp_path), "siglip", SIDE)
    frames = clips(70, 33)
    whole = recipe.apply(frames)
    for frame, expected in zip(frames, whole, strict=True):
        np.testing.assert_array_equal(recipe.apply(frame[None])[0], expected)


def test_no_frames_give_no_frames(tmp_path):
    recipe = Preprocessing.read(Snapshot(tmp_path), "clip", SIDE)
    assert recipe.apply(np.zeros((0, 9, 8, 3), np.uint8)).shape == (0, 3, SIDE, SIDE)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"size": {"shortest_edge": 40, "longest_edge": 80}}, "unknown"),
        ({"size": {"max_height": 40, "max_width": 80}}, "unknown"),
        ({"size": True}, "unknown"),
        ({"resample": 1}, "resample 1"),
        ({"crop_size": {"height": SIDE, "width": 20}}, f"{SIDE} pixels"),
        ({"crop_size": 32}, "gives 32"),
        ({"do_center_crop": False}, f"{SIDE} pixels"),
        ({"do_center_crop": False, "do_resize": False}, "gives None"),
        ({"image_mean": [0.5, 0.5]}, "not a number"),
        ({"image_std": "small"}, "not a number"),
    ],
)
def test_an_unknown_recipe_is_refused(tmp_path, settings, word):
    with pytest.raises(ModelError, match=word) as caught:
        from_settings(tmp_path, settings)
    assert str(tmp_path) in str(caught.value)
