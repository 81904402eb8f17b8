"""Pictures of frames: upright, opaque, of the size asked for, whatever the file made of them."""

import gc
import struct
import warnings
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from sureshot.errors import VideoError
from sureshot.media.discover import Source
from sureshot.media.frames import FileFrame, ImageFrame, Scalers, read_image
from sureshot.media.video import open_video
from tests.clips import film, greys, patterns

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
# (200, 120, 40) in 10 bits as phones write it, three frames by x265. Kept, as whether so few frames
# can be written to a MOV depends on the processor.
HEVC = Path(__file__).with_name("hevc10.mov")
CORNERS = {"red": RED, "green": GREEN, "blue": BLUE, "white": WHITE}


def first_frame(path):
    with open_video(Source(path, "file", 0, 0)) as video:
        return next(iter(video))


def four_corners():
    """Red and green above blue and white."""
    picture = np.zeros((48, 64, 3), np.uint8)
    picture[:24, :32], picture[:24, 32:] = RED, GREEN
    picture[24:, :32], picture[24:, 32:] = BLUE, WHITE
    return picture


def corners(image):
    """Names of the colours at the top left, top right, bottom left and bottom right."""
    height, width = image.shape[:2]
    rows, columns = (height // 6, height - height // 6), (width // 6, width - width // 6)
    return [
        min(CORNERS, key=lambda name: np.abs(image[y, x].astype(int) - CORNERS[name]).sum())
        for y in rows
        for x in columns
    ]


AS_STORED = ["red", "green", "blue", "white"]
CLOCKWISE = ["blue", "red", "white", "green"]
COUNTER = ["green", "white", "red", "blue"]
UPSIDE_DOWN = ["white", "blue", "green", "red"]


@pytest.mark.parametrize(
    ("turned", "seen"), [(0, AS_STORED), (90, COUNTER), (180, UPSIDE_DOWN), (270, CLOCKWISE)]
)
@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv"])
def test_a_rotation_flag_shows_the_picture_upright(tmp_path, suffix, turned, seen):
    image = first_frame(film(tmp_path / f"a.{suffix}", [four_corners()] * 3, turned=turned)).image(
        48
    )
    assert corners(image) == seen
    assert image.shape == ((64, 48, 3) if turned % 180 else (48, 64, 3))


one = 1 << 16


@pytest.mark.parametrize(
    ("matrix", "seen"),
    [
        # What phones write for a portrait: (x, y) goes to (-y, x).
        ((0, one, 0, -one, 0, 0, 48 * one, 0, 1 << 30), CLOCKWISE),
        ((0, -one, 0, one, 0, 0, 0, 64 * one, 1 << 30), COUNTER),
        # Mirrored ones were turned upside down, or not at all.
        ((-one, 0, 0, 0, one, 0, 64 * one, 0, 1 << 30), ["green", "red", "white", "blue"]),
        ((one, 0, 0, 0, -one, 0, 0, 48 * one, 1 << 30), ["blue", "white", "red", "green"]),
        ((0, one, 0, one, 0, 0, 0, 0, 1 << 30), ["red", "blue", "green", "white"]),
        ((0, 0, 0, 0, 0, 0, 0, 0, 0), AS_STORED),
    ],
    ids=["clockwise", "counter", "left to right", "upside down", "transposed", "nonsense"],
)
def test_a_display_matrix_is_obeyed_as_the_mp4_standard_says(tmp_path, matrix, seen):
    clip = film(tmp_path / "a.mp4", [four_corners()] * 3)
    data = bytearray(clip.read_bytes())
    place = data.index(b"tkhd") + 44
    data[place : place + 36] = struct.pack(">9i", *matrix)
    clip.write_bytes(bytes(data))
    assert corners(first_frame(clip).image(48)) == seen


@pytest.mark.parametrize(
    ("size", "pixels", "codec", "shape"),
    [
        ((64, 48), "yuv420p", "libx264", (24, 32)),
        ((1, 1), "bgr0", "ffv1", (1, 1)),
        ((33, 17), "yuv420p", "ffv1", (17, 33)),
        ((33, 17), "yuv444p", "libx264", (17, 33)),
        ((640, 32), "yuv420p", "libx264", (24, 192)),  # 8 times the side asked for at most
        ((32, 640), "yuv420p", "libx264", (192, 24)),
        ((2000, 8), "yuv420p", "libx264", (8, 192)),
    ],
)
def test_frames_of_any_size_shrink_to_the_side_asked_for(tmp_path, size, pixels, codec, shape):
    frame = first_frame(film(tmp_path / "a.mkv", greys([90] * 2, size), codec=codec, pixels=pixels))
    image = frame.image(24)
    assert image.shape == (*shape, 3)
    assert image.mean() == pytest.approx(90, abs=3)
    assert frame.thumbnail(32, 24).shape == (24, 32, 3)


def test_pixels_that_are_not_square_count_as_shown(tmp_path):
    with av.open(tmp_path / "a.mp4", "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.sample_aspect_ratio = 2
        container.mux(stream.encode(av.VideoFrame.from_ndarray(greys([9], (64, 48))[0], "rgb24")))
        container.mux(stream.encode(None))
    assert first_frame(tmp_path / "a.mp4").image(48).shape == (48, 128, 3)
    assert first_frame(tmp_path / "a.mp4").image(whole).shape == (48, 128, 3)


@pytest.mark.parametrize(
    ("codec", "pixels"),
    [
        ("libx264", "yuv420p10le"),
        ("hevc", "yuv420p10le"),
        ("ffv1", "yuv422p16le"),
        ("libx264", "gray"),
        ("ffv1", "gray16le"),
        ("mjpeg", "yuvj420p"),
        ("png", "rgb48be"),
        ("png", "ya8"),
        ("prores_ks", "yuv422p10le"),
    ],
)
def test_pixel_formats_of_every_depth_give_the_same_picture(tmp_path, codec, pixels):
    grey = pixels in ("gray", "gray16le", "ya8")
    picture = np.full((48, 64, 3), 120 if grey else (200, 120, 40), np.uint8)
    clip = tmp_path / f"a.{'mkv' if codec == 'ffv1' else 'mov'}"
    if codec == "hevc":
        clip = HEVC
    else:
        film(clip, [picture] * 2, codec=codec, pixels=pixels)
    image = first_frame(clip).image(48)
    assert np.allclose(image.mean((0, 1)), picture[0, 0], atol=5)


@pytest.mark.parametrize("matrix", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255])
def test_an_unusual_colour_matrix_costs_colours_not_the_video(matrix):
    # ffmpeg refused to convert such frames at all.
    frame = av.VideoFrame.from_ndarray(greys([120], (64, 48))[0], "rgb24").reformat(
        format="yuv420p"
    )
    frame.colorspace = matrix
    image = FileFrame(0.0, frame, 1.0, Scalers()).image(48)
    assert image.mean() == pytest.approx(120, abs=45)


def hdr(transfer, picture):
    """A frame whose code values are those of a picture, as film and phones write HDR."""
    frame = av.VideoFrame.from_ndarray(picture, "rgb24")
    frame.color_trc = transfer
    return FileFrame(0.0, frame, 1.0, Scalers())


def test_hdr_looks_as_on_an_ordinary_display():
    # A white sheet (BT.2408: 58 % of PQ, 75 % of HLG), a tenth of its light, and black.
    sheets = {16: (148, 92, 0), 18: (191, 87, 0)}
    seen = {}
    for transfer, codes in sheets.items():
        picture = np.repeat(np.array(codes, np.uint8)[:, None], 16, 0).repeat(16, 1)
        image = hdr(transfer, np.repeat(picture[..., None], 3, 2)).image(48)
        assert np.ptp(image, axis=-1).max() <= 1  # grey stays grey
        seen[transfer] = image[8::16, 8, 0].astype(int)
        white, tenth, black = seen[transfer]
        assert 195 < white < 235  # brighter things than paper have room
        assert tenth == pytest.approx(255 * 0.1 ** (1 / 2.4), abs=5)
        assert black == 0
    assert seen[16] == pytest.approx(seen[18], abs=3)


@pytest.mark.parametrize("transfer", [16, 18])
def test_colours_of_hdr_are_as_strong_as_they_were(transfer):
    # BT.2020 writes a green of BT.709 as a paler one.
    picture = np.full((16, 16, 3), (110, 140, 80), np.uint8)
    red, green, blue = hdr(transfer, picture).image(16)[8, 8].astype(int)
    plain = FileFrame(0.0, av.VideoFrame.from_ndarray(picture, "rgb24"), 1.0, Scalers())
    assert np.array_equal(plain.image(16), picture)
    assert green - max(red, blue) > 30


def test_a_film_in_hdr(tmp_path):
    sheet = np.full((48, 64, 3), 191, np.uint8)
    clip = tmp_path / "a.mp4"
    with av.open(clip, "w") as container:
        track = container.add_stream("libx264", rate=10)
        track.width, track.height, track.pix_fmt = 64, 48, "yuv420p10le"
        track.colorspace, track.color_primaries, track.color_trc = 9, 9, 18
        for _ in range(3):
            frame = av.VideoFrame.from_ndarray(sheet, "rgb24")
            container.mux(track.encode(frame.reformat(format="yuv420p10le", dst_colorspace=9)))
        container.mux(track.encode(None))
    assert 200 < first_frame(clip).image(48).mean() < 235


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("a.mov", "png", "rgba"),
        ("a.mov", "qtrle", "argb"),
        ("a.mov", "prores_ks", "yuva444p10le"),
        ("a.apng", "apng", "rgba"),
    ],
)
def test_transparent_pixels_are_white(tmp_path, name, codec, pixels):
    picture = np.zeros((48, 64, 4), np.uint8)
    picture[..., 0], picture[:, :32, 3] = 255, 255  # red, its right half transparent
    frame = first_frame(film(tmp_path / name, [picture] * 2, codec=codec, pixels=pixels))
    for image in (frame.image(48), frame.thumbnail(64, 48)):
        assert np.allclose(image[:, 2:28].mean((0, 1)), RED, atol=4)
        assert np.allclose(image[:, 36:62].mean((0, 1)), WHITE, atol=4)


def test_a_transparent_gif_is_white_where_nothing_is_painted(tmp_path):
    picture = Image.new("P", (64, 48), 0)
    picture.putpalette([255, 0, 0, 0, 0, 255])
    picture.paste(1, (32, 0, 64, 48))
    picture.save(tmp_path / "a.gif", transparency=1)
    image = first_frame(tmp_path / "a.gif").image(48)
    assert corners(image) == ["red", "white", "red", "white"]


def test_a_thumbnail_looks_at_every_pixel(tmp_path):
    # Cheaper scaling sees every tenth pixel or so, other ones in each frame: noise like motion.
    picture = np.zeros((480, 640, 3), np.uint8)
    picture[::2] = 255
    clip = film(tmp_path / "a.mkv", [picture], codec="ffv1", pixels="bgr0")
    assert np.ptp(first_frame(clip).thumbnail(32, 24).astype(int)) <= 2


# Images of folders


@pytest.mark.parametrize(
    ("codec", "pixels"),
    [("libx264", "yuv420p"), ("libx264", "yuv422p10le"), ("mpeg2video", "yuv420p")],
)
def test_what_moves_is_no_comb_in_a_small_picture_of_interlaced_video(tmp_path, codec, pixels):
    """Each field of a frame is of an instant of its own; here one is black and one white."""
    woven = np.zeros((96, 128, 3), np.uint8)
    woven[1::2] = 255
    options = {"flags": "+ilme+ildct", "x264-params": "tff=1"}
    clip = tmp_path / "a.mkv"
    film(clip, [woven] * 3, rate=25, codec=codec, pixels=pixels, options=options)
    with open_video(Source(clip, "file"), decode="all") as video:
        for frame in video:
            assert frame.image(30).mean() < 10 > frame.thumbnail(8, 8).mean()
            assert frame.image(30).shape == (30, 40, 3)
            assert 100 < frame.image(96).mean() < 155


def test_images_of_every_kind_become_rgb(tmp_path):
    grey = Image.new("L", (40, 30), 120)
    for mode, suffix in (
        ("L", "png"),
        ("P", "png"),
        ("RGB", "bmp"),
        ("CMYK", "jpg"),
        ("LA", "png"),
    ):
        grey.convert(mode).save(tmp_path / f"a.{suffix}")
        assert np.allclose(np.asarray(read_image(tmp_path / f"a.{suffix}")), 120, atol=3), mode
    deep = np.full((30, 40), 120 * 256, np.uint16)  # Pillow alone would make it white
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert np.allclose(np.asarray(read_image(tmp_path / "deep.png")), 120)
    Image.new("1", (40, 30), 1).save(tmp_path / "bit.png")
    assert np.allclose(np.asarray(read_image(tmp_path / "bit.png")), 255)


def test_transparent_images_are_white(tmp_path):
    rgba = np.zeros((30, 40, 4), np.uint8)
    rgba[..., 0], rgba[:, :20, 3] = 255, 255
    for suffix in ("png", "webp"):
        Image.fromarray(rgba).save(tmp_path / f"a.{suffix}")
        image = np.asarray(read_image(tmp_path / f"a.{suffix}"))
        assert np.allclose(image[:, :18].mean((0, 1)), RED, atol=12)
        assert np.allclose(image[:, 22:].mean((0, 1)), WHITE, atol=12)
    palette = Image.new("P", (40, 30), 1)
    palette.putpalette([255, 0, 0, 0, 0, 255])
    palette.save(tmp_path / "p.png", transparency=1)
    assert np.asarray(read_image(tmp_path / "p.png")).min() == 255


def test_a_function_is_given_all_pixels_of_an_image(tmp_path):
    path = tmp_path / "a.png"
    large = patterns(1, (1400, 1100))[0]
    Image.fromarray(large).save(path)
    shown = ImageFrame(0.0, read_image(path), path)
    assert shown.image(50).shape == (50, 64, 3)
    np.testing.assert_array_equal(shown.image(np.ascontiguousarray), large)
    path.unlink()
    with pytest.raises(VideoError):
        shown.image(np.ascontiguousarray)
    small = patterns(1, (40, 30))[0]
    Image.fromarray(small).save(path)
    held = ImageFrame(0.0, read_image(path), path)
    path.unlink()  # it is held whole
    np.testing.assert_array_equal(held.image(np.ascontiguousarray), small)


def whole(image):
    return np.array(image)


def test_a_function_is_given_a_whole_upright_frame_in_square_pixels(tmp_path):
    clip = film(tmp_path / "a.mp4", [four_corners()] * 3, turned=90)
    assert corners(first_frame(clip).image(whole)) == COUNTER
    assert first_frame(clip).image(whole).shape == (64, 48, 3)
    with av.open(str(film(tmp_path / "b.mp4", [four_corners()] * 3))) as opened:
        expected = next(opened.decode(video=0)).to_ndarray(format="rgb24")
    frame = first_frame(tmp_path / "b.mp4")
    np.testing.assert_array_equal(frame.image(whole), expected)
    assert frame.image(lambda image: image[:7, :9]).shape == (7, 9, 3)
    assert frame.image(24).shape == (24, 32, 3)


def test_damaged_images_raise_video_errors_only(tmp_path):
    path, dice = tmp_path / "a", np.random.default_rng(0)
    picture = Image.fromarray(patterns(1)[0])
    files = []
    for kind in ("PNG", "JPEG", "WEBP", "BMP"):
        picture.save(path, kind, exif=Image.Exif()) if kind != "BMP" else picture.save(path, kind)
        files.append(path.read_bytes())
    for turn in range(400):
        data = np.frombuffer(files[turn % 4], np.uint8).copy()
        holes = dice.integers(0, 150 if turn % 3 else len(data), 4)
        data[holes] = dice.integers(0, 256, 4)
        path.write_bytes(data.tobytes()[: len(data) if turn % 5 else len(data) // 2])
        try:
            read_image(path)
        except VideoError as error:
            assert str(tmp_path) not in str(error) and "\n" not in str(error)
            assert not error.transient


def test_what_the_system_refuses_may_be_granted_next_time(tmp_path):
    with pytest.raises(VideoError, match="no such file") as caught:
        read_image(tmp_path / "gone.png")
    assert caught.value.transient
    (tmp_path / "a.png").write_text("text")
    with pytest.raises(VideoError, match="is not an image") as caught:
        read_image(tmp_path / "a.png")
    assert not caught.value.transient


def test_a_decompression_bomb_is_refused(tmp_path):
    bomb = struct.pack("<2sIHHI", b"BM", 54, 0, 0, 54)
    bomb += struct.pack("<IiiHHIIiiII", 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0)
    (tmp_path / "a.bmp").write_bytes(bomb)
    with warnings.catch_warnings(), pytest.raises(VideoError, match="is too large"):
        read_image(tmp_path / "a.bmp")


def test_a_frame_is_let_go_of_at_once(tmp_path):
    """Its pixels must not wait for the garbage collector."""
    clip = film(tmp_path / "a.mp4", patterns(4), turned=90)
    with open_video(Source(clip, "file", 0, 0)) as video:
        gc.collect()
        gc.disable()
        try:
            for frame in video:
                frame.image(32)
            del frame
            assert not gc.collect()
        finally:
            gc.enable()


def test_only_the_usual_kinds_of_images_are_read_whatever_their_names(tmp_path):
    script = tmp_path / "a.jpg"
    script.write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
    )
    with Image.open(script) as opened:
        assert opened.format == "EPS"  # which Pillow hands to a program
    with pytest.raises(VideoError, match="is not an image"):
        read_image(script)
