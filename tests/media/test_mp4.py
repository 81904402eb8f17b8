"""The film: colours, shapes and directions arrive as players would show the source."""

from fractions import Fraction

import av
import numpy as np
import pytest
from PIL import Image

from sureshot.media.excerpt import cut
from sureshot.media.mp4 import write_frames
from sureshot.media.sampling import sample_frames

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 200, 30), (30, 30, 220), (240, 240, 240)


def quarters(width=64, height=48):
    """Red and green above blue and white."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[: height // 2, : width // 2], picture[: height // 2, width // 2 :] = RED, GREEN
    picture[height // 2 :, : width // 2], picture[height // 2 :, width // 2 :] = BLUE, WHITE
    return picture


def write(path, picture, codec="libx264", pixels="yuv420p", matrix=None, full=False, **settings):
    with av.open(str(path), "w") as container:
        video = container.add_stream(codec, 10, {"crf": "10"} if codec == "libx264" else {})
        video.height, video.width = picture.shape[:2]
        video.pix_fmt = pixels
        turn = settings.pop("turn", 0)
        if turn:
            video.set_display_rotation(turn)
        for name, value in settings.items():
            setattr(video.codec_context, name, value)
        if matrix:
            video.colorspace = matrix
        if full:
            video.color_range = 2
        kind = "rgba" if picture.shape[2] == 4 else "rgb24"
        for _ in range(3):
            frame = av.VideoFrame.from_ndarray(picture, kind).reformat(
                format=pixels, dst_colorspace=matrix, dst_color_range=2 if full else None
            )
            container.mux(video.encode(frame))
        container.mux(video.encode())
    return path


def corners(path):
    """The colours in the middle of the quarters, and the stream."""
    with av.open(str(path)) as container:
        video = container.streams.video[0]
        frame = next(container.decode(video))
        pixels = frame.to_ndarray(format="rgb24")
        height, width = pixels.shape[:2]
        found = [
            tuple(pixels[max(0, y - 4) : y + 4, max(0, x - 4) : x + 4].mean((0, 1)).tolist())
            for y in (height // 4, height * 3 // 4)
            for x in (width // 4, width * 3 // 4)
        ]
        return found, (width, height), frame.rotation, video


def near(*colours):
    return [pytest.approx(colour, abs=6) for colour in colours]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("untagged.mp4", {}),
        ("bt709.mp4", {"matrix": 1}),
        ("full-range.mp4", {"pixels": "yuvj420p"}),
        ("full-range-bt709.mp4", {"matrix": 1, "full": True}),
        ("ten-bit.mkv", {"codec": "ffv1", "pixels": "yuv420p10le"}),
        ("bt2020.mkv", {"codec": "ffv1", "pixels": "yuv422p10le", "matrix": 9}),
        ("fine-colours.mp4", {"pixels": "yuv444p"}),
        ("rgb.mp4", {"codec": "libx264rgb", "pixels": "rgb24"}),
        ("palette.gif", {"codec": "gif", "pixels": "rgb8"}),
    ],
)
def test_colours_arrive(tmp_path, name, settings):
    source = write(tmp_path / name, quarters(), **settings)
    expected = corners(source)[0]
    colours, size, _, video = corners(cut(source, 0.0, 0.2, tmp_path / "cut.mp4"))
    assert colours == near(*expected) and size == (64, 48)
    assert video.pix_fmt == "yuv420p" and video.color_range in (0, 1)


@pytest.mark.parametrize(
    ("turn", "size", "expected"),
    [
        (90, (48, 64), (GREEN, WHITE, RED, BLUE)),
        (-90, (48, 64), (BLUE, RED, WHITE, GREEN)),
        (180, (64, 48), (WHITE, BLUE, GREEN, RED)),
    ],
)
def test_a_turned_video_is_upright(tmp_path, turn, size, expected):
    source = write(tmp_path / "phone.mp4", quarters(), turn=turn)
    colours, shape, rotation, _ = corners(cut(source, 0.0, 0.2, tmp_path / "cut.mp4"))
    assert colours == near(*expected) and shape == size and rotation == 0


@pytest.mark.parametrize(
    ("size", "expected"), [((63, 47), (64, 48)), ((1, 1), (2, 2)), ((64, 5), (64, 6))]
)
@pytest.mark.parametrize("turn", [0, 90])
def test_odd_sides_become_even(tmp_path, size, expected, turn):
    picture = np.full((size[1], size[0], 3), 150, np.uint8)
    source = write(tmp_path / "odd.mov", picture, "png", "rgb24", turn=turn)
    colours, shape, _, _ = corners(cut(source, 0.0, 0.2, tmp_path / "cut.mp4"))
    assert shape == (expected[::-1] if turn else expected)
    assert colours == near(*[(150, 150, 150)] * 4)


@pytest.mark.parametrize("turn", [0, 90])
def test_pixels_that_are_not_square_keep_their_shape(tmp_path, turn):
    shape = Fraction(16, 11)
    source = write(tmp_path / "dvd.mp4", quarters(), turn=turn, sample_aspect_ratio=shape)
    video = corners(cut(source, 0.0, 0.2, tmp_path / "cut.mp4"))[3]
    assert Fraction(video.sample_aspect_ratio) == (1 / shape if turn else shape)


def test_transparent_parts_are_white(tmp_path):
    picture = np.dstack([quarters(), np.full((48, 64), 255, np.uint8)])
    picture[:24, :32, 3], picture[:24, 32:, 3] = 0, 128
    source = write(tmp_path / "alpha.mov", picture, "qtrle", "argb")
    colours = corners(cut(source, 0.0, 0.2, tmp_path / "cut.mp4"))[0]
    assert colours == near((255, 255, 255), (142, 227, 142), BLUE, WHITE)


def test_images_with_palette_grey_or_exif_turn(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    turned = Image.Exif()
    turned[0x112] = 6  # to be shown turned to the right
    Image.fromarray(quarters()).save(folder / "1.jpg", exif=turned, quality=95, subsampling=0)
    Image.fromarray(quarters()).quantize(8).save(folder / "2.png", transparency=0)
    Image.new("I;16", (64, 48), 40_000).save(folder / "3.png")
    colours, size, _, _ = corners(cut(folder, 0.0, 1.0, tmp_path / "turned.mp4"))
    assert size == (48, 64) and colours == near(BLUE, RED, WHITE, GREEN)
    colours = corners(cut(folder, 2.0, 3.0, tmp_path / "grey.mp4"))[0]
    assert colours == near(*[(156, 156, 156)] * 4)
    assert corners(cut(folder, 1.0, 2.0, tmp_path / "palette.mp4"))[1] == (64, 48)


def test_later_frames_of_another_size_get_borders(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    Image.fromarray(quarters()).save(folder / "1.png")
    Image.new("RGB", (40, 80), (200, 200, 200)).save(folder / "2.png")
    with av.open(str(cut(folder, 0.0, 2.0, tmp_path / "cut.mp4"))) as container:
        last = list(container.decode(video=0))[1].to_ndarray(format="rgb24")
    assert last.shape == (48, 64, 3)
    assert last[24, 32].tolist() == pytest.approx([200] * 3, abs=6)
    assert last[24, [4, 60]].max() < 12
    assert (last[24].mean(-1) > 100).sum() == pytest.approx(24, abs=2)


def test_a_film_shows_the_pictures_it_was_made_of(tmp_path):
    draw = np.random.default_rng(0)
    pictures = [np.full((64, 64, 3), draw.integers(30, 220, 3), np.uint8) for _ in range(8)]
    write_frames(tmp_path / "film.mp4", pictures, 4)
    seen = sample_frames(tmp_path / "film.mp4", 8, 64)
    assert seen.shape == (8, 64, 64, 3)
    assert abs(seen.astype(int) - np.stack(pictures)).max() < 12
