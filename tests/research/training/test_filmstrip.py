"""Frames kept as one JPEG."""

import numpy as np
import pytest

from sureshot.errors import VideoError
from sureshot.research.training.data import read_filmstrip, write_filmstrip


def frames(count=5, height=24, width=40):
    y, x = np.mgrid[:height, :width]
    shades = [np.stack([x * 5, y * 9, (x + y) * 3 + 20 * n], -1) for n in range(count)]
    return (np.stack(shades) % 256 // 2 + 60).astype(np.uint8)


@pytest.mark.parametrize("shape", [(5, 24, 40), (1, 16, 16), (3, 17, 23)])
def test_what_is_read_is_near_what_was_written(tmp_path, shape):
    write_filmstrip(tmp_path / "a.jpg", frames(*shape))
    found = read_filmstrip(tmp_path / "a.jpg")
    assert found.shape == (*shape, 3)
    assert np.abs(found.astype(int) - frames(*shape)).mean() < 2


def test_frames_of_whole_blocks_do_not_touch_each_other(tmp_path):
    black, white = np.zeros((24, 40, 3), np.uint8), np.full((24, 40, 3), 255, np.uint8)
    write_filmstrip(tmp_path / "a.jpg", np.stack([black, white, black]))
    found = read_filmstrip(tmp_path / "a.jpg")
    assert [int(frame.min()) for frame in found] == [0, 255, 0]
    assert [int(frame.max()) for frame in found] == [0, 255, 0]


def test_what_is_no_filmstrip_is_refused(tmp_path):
    from PIL import Image

    write_filmstrip(tmp_path / "a.jpg", frames())
    whole = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.jpg").write_text("no picture")
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.jpg")
    for name in ("cut", "text", "photo", "gone"):
        with pytest.raises(VideoError, match=f"{name}.jpg"):
            read_filmstrip(tmp_path / f"{name}.jpg")


def test_more_lines_than_a_jpeg_has_are_refused(tmp_path):
    with pytest.raises(ValueError, match="more than a JPEG"):
        write_filmstrip(tmp_path / "a.jpg", np.zeros((70, 1000, 8, 3), np.uint8))
    assert not list(tmp_path.iterdir())
