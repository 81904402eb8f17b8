"""Photos as cameras write them are videos of one frame: whole, upright, in their colours."""

import subprocess
import sys
import warnings
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from sureshot.errors import VideoError
from sureshot.library.search import open_index
from sureshot.media.discover import Source
from sureshot.media.excerpt import footage, playable
from sureshot.media.frames import is_photo, read_image
from sureshot.media.sampling import sample_frames
from sureshot.media.video import frames_at, open_video
from sureshot.paths import absolute
from tests.clips import film, patterns
from tests.paths import DATA
from tests.small_library import index

KINDS = ("baseline.jpg", "progressive.JPG", "cmyk.jpeg", "turned.jpg", "a.png", "a.webp", "a.tif")


@pytest.fixture(scope="module")
def scene():
    """A detailed picture of a camera's size: blotches under noise, as a photo of a lawn has it."""
    picture = patterns(1, (2400, 1800))[0].astype(int)
    picture += np.random.default_rng(0).integers(-40, 40, picture.shape)
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def taken(scene: Image.Image, folder: Path, name: str) -> Path:
    """The scene as a file of some kind."""
    path, exif = folder / name, Image.Exif()
    exif[0x010F], exif[0x0112] = "A camera", 1  # its maker; the picture is upright
    if name.startswith("turned"):
        scene, exif[0x0112] = scene.transpose(Image.Transpose.ROTATE_90), 6
    if name.startswith("cmyk"):
        scene = scene.convert("CMYK")
    more = {} if name.endswith(".tif") else {"exif": exif, "quality": 90}
    scene.save(path, progressive=name.startswith("progressive"), **more)
    return path


@pytest.mark.parametrize("name", KINDS)
def test_a_photo_is_a_video_of_one_frame_by_every_way_to_read(scene, tmp_path, name) -> None:
    path = taken(scene, tmp_path, name)
    small = np.asarray(scene.resize((120, 90), Image.Resampling.BOX), float)
    with open_video(Source(path, "file", 0, 0)) as video:
        (frame,) = video
    (still,) = frames_at(path, [0.0], side=90)
    (sampled,) = sample_frames(path, 12, 90)
    (shown,), sounds = footage(path, 0.0, 1.0, 1.0)
    cut = shown.frame.to_ndarray(format="rgb24", width=120, height=90)
    for image in (frame.image(90), still, sampled, cut):
        assert image.shape == (90, 120, 3)
        assert abs(image - small).mean() < 12
    assert not list(sounds) and playable(path)


def test_a_photo_in_a_bucket_is_read_whole(scene, tmp_path, bucket) -> None:
    bucket.put("v/photo.jpg", taken(scene, tmp_path, "turned.jpg"))
    (near,) = frames_at(tmp_path / "turned.jpg", [0.0], side=90)
    (far,) = frames_at(absolute("s3://films/v/photo.jpg"), [0.0], side=90)
    assert (near == far).all()


def test_what_looks_like_a_photo_is_found(scene, tmp_path, library) -> None:
    (tmp_path / "v").mkdir()
    near = np.asarray(scene.resize((240, 180)))
    film(tmp_path / "v" / "lawn.mp4", [near] * 20)
    film(tmp_path / "v" / "other.mp4", [patterns(2, (240, 180))[1]] * 20)
    index(str(tmp_path / "db"), tmp_path / "v")
    photo = taken(scene, tmp_path, "turned.jpg")
    searcher = open_index(tmp_path / "db")
    assert [hit.path.stem for hit in searcher.like(photo)] == ["lawn", "other"]
    assert len(searcher.describe(photo, ["red", "blue"]).ranked) == 2
    command = [sys.executable, "-m", "sureshot", "search", "--like", photo, "--db", library.db]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_photographs_are_read() -> None:
    photos = sorted((DATA / "flickr8k" / "images").glob("*"))[::800]
    if not photos:
        pytest.skip("needs the photographs of Flickr8k; SURESHOT_DATA names their folder")
    for photo in photos:
        picture = read_image(photo)
        assert frames_at(photo, [0.0], side=9999)[0].shape == (picture.height, picture.width, 3)


def test_a_transparent_photo_is_shrunk_before_it_is_laid_over_white(tmp_path) -> None:
    """Where it is half transparent a shrunk one is pink, whichever colour holes have."""
    picture = np.zeros((1100, 2200, 4), np.uint8)
    picture[:, ::2] = 255, 0, 0, 255
    Image.fromarray(picture).save(tmp_path / "a.png")
    (shown,) = frames_at(tmp_path / "a.png", [0.0], side=100)
    assert np.abs(shown[40:60, 80:120].mean((0, 1)) - (255, 127, 127)).max() <= 3


def test_a_photo_just_below_the_limit_is_read_without_a_word(tmp_path) -> None:
    Image.new("1", (10_000, 9000)).save(tmp_path / "panorama.png")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert is_photo(tmp_path / "panorama.png")
    assert not said


def test_a_photo_that_cannot_be_read_says_what_is_missing(tmp_path) -> None:
    heic = tmp_path / "IMG_0001.HEIC"
    heic.write_bytes(b"\0\0\0\x28ftypheic\0\0\0\0mif1heic" + bytes(5000))
    with pytest.raises(VideoError, match=r"is a HEIC photo.*save it as JPEG"):
        frames_at(heic, [0.0], side=90)
    bomb = tmp_path / "panorama.png"
    for side in (20_000, 8_500):  # more than Pillow opens, and more than a video may have
        Image.new("1", (side, side)).save(bomb)
        with pytest.raises(VideoError, match="large; the most is 67 million pixels, of JPEG 178"):
            frames_at(bomb, [0.0], side=90)
    Image.new("RGB", (8_500, 8_500)).save(tmp_path / "large.jpg")
    assert read_image(tmp_path / "large.jpg").size == (1024, 1024)
    assert read_image(tmp_path / "large.jpg", None).size == (8_500, 8_500)
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut off")
    with pytest.raises(VideoError):
        frames_at(tmp_path / "a.jpg", [0.0], side=90)


@pytest.mark.parametrize(("suffix", "count"), [("webp", 1), ("png", 5)])
def test_a_picture_that_moves_is_read_as_far_as_it_can_be(tmp_path, suffix, count) -> None:
    first, *rest = map(Image.fromarray, patterns(5))
    first.save(tmp_path / f"a.{suffix}", save_all=True, append_images=rest, duration=100)
    with open_video(Source(tmp_path / f"a.{suffix}", "file", 0, 0)) as video:
        assert len([frame.image(64) for frame in video]) == count


def test_pictures_of_a_camera_in_a_film_are_read_whatever_is_noted_in_them(scene, tmp_path) -> None:
    # EXIF data came with each frame, of a kind that PyAV has no name for.
    photo = taken(scene, tmp_path, "turned.jpg").read_bytes()
    (tmp_path / "camera.mjpeg").write_bytes(photo * 3)
    with av.open(tmp_path / "camera.mjpeg") as container:
        assert container.streams.video[0].codec_context.name == "mjpeg"
    with open_video(Source(tmp_path / "camera.mjpeg", "file", 0, 0)) as video:
        assert [frame.image(90).shape for frame in video] == [(90, 120, 3)] * 3
