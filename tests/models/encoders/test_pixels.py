"""Preparation of frames, against the image processors of transformers."""

import json

import av
import numpy as np
import pytest
from PIL import Image
from transformers import CLIPImageProcessorPil, SiglipImageProcessorPil

from sureshot.errors import ModelError
from sureshot.media.sampling import sample_frames
from sureshot.models.encoders.clip import Preprocessing, Snapshot

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


@pytest.mark.parametrize("family", ["clip", "siglip"])
@pytest.mark.parametrize("resample", [2, 3])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_frames_equal_those_of_the_library(tmp_path, height, width, resample, family):
    make = clip_processor if family == "clip" else siglip_processor
    processor, frames = make(resample=resample), clips(height, width)
    found = recipe_of(processor, tmp_path, family).apply(frames)
    assert_close(found, by_library(processor, frames), LEVEL / np.min(processor.image_std))


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


def test_settings_inside_a_processor_come_first(tmp_path):
    inner = {"image_processor": {"size": {"shortest_edge": SIDE + 8}, "crop_size": SIDE}}
    (tmp_path / "processor_config.json").write_text(json.dumps(inner))
    recipe = from_settings(tmp_path, {"size": SIDE, "crop_size": SIDE})
    assert recipe.resize_to == SIDE + 8


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


# --- whole decoded frames -------------------------------------------------------------------------


def levels_apart(path, processor, recipe, count=12):
    """How far, in grey levels, sampled frames are from those of the library, which sees all pixels.

    The library's frames are those that PyAV gives without any scaling.
    """
    found = sample_frames(path, count, recipe.resize)
    ours = recipe.apply(found)
    with av.open(str(path)) as opened:
        whole = [frame.to_ndarray(format="rgb24") for frame in opened.decode(video=0)]
    theirs = by_library(processor, np.stack(whole[: len(ours)]))
    return np.abs(ours - theirs) * np.array(processor.image_std)[:, None, None] * 255


@pytest.mark.parametrize("shape", [(4, 3000), (3000, 4), (3, 2001), (50, 90), (1, 1)])
def test_resizing_first_changes_nothing_and_slivers_stay_small(tmp_path, shape):
    frame = clips(*shape)[0]
    recipe = Preprocessing.read(Snapshot(tmp_path), "clip", SIDE)
    small = recipe.resize(frame)
    assert min(small.shape[:2]) == SIDE and max(small.shape[:2]) <= 32 * SIDE
    ours, theirs = (recipe.apply(each[None]) for each in (small, frame))
    assert np.abs(ours - theirs).max() < (0.5 if max(shape) > 32 * min(shape) else 1e-6)
