"""Frames that an encoder is trained on: of the rule, of the draw, and kept."""

import numpy as np
import pytest

from sureshot.datasets import Item
from sureshot.errors import SureshotError, VideoError
from sureshot.media.sampling import sample_frames
from sureshot.media.sampling_rule import Sampling
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.research.training.data import TrainingFrames
from tests.clips import film
from tests.models.encoders.test_clip import clip


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    place = tmp_path_factory.mktemp("clip")
    clip(place)
    return ClipEncoder.load(str(place), "cpu")


@pytest.fixture(scope="module")
def item(tmp_path_factory):
    y, x = np.mgrid[:48, :64]
    shades = [np.stack([x * 2 + 8 * n, y * 3, x + y], -1).astype(np.uint8) for n in range(12)]
    path = film(tmp_path_factory.mktemp("videos") / "a.mp4", shades, rate=4)
    return Item("a", path)


def test_frames_are_those_of_the_rule_in_every_epoch(encoder, item):
    read = TrainingFrames(encoder, 4, Sampling("segments"))
    expected = sample_frames(item.path, 4, encoder.frame_size, sampling=Sampling("segments"))
    for epoch in (0, 7):
        np.testing.assert_array_equal(read(item, 3, epoch), expected)


@pytest.mark.parametrize(
    "settings", [{"sampling": Sampling("random")}, {"sampling": Sampling(), "augment": "crop_flip"}]
)
def test_draws_follow_from_seed_epoch_and_video(encoder, item, settings):
    def frames(seed, video, epoch):
        return TrainingFrames(encoder, 4, seed=seed, **settings)(item, video, epoch).tobytes()

    assert frames(0, 1, 2) == frames(0, 1, 2)
    assert len({frames(seed, 1, 2) for seed in range(5)}) > 2
    assert len({frames(0, 1, epoch) for epoch in range(5)}) > 2
    assert len({frames(0, video, 2) for video in range(5)}) > 2


def test_kept_frames_are_near_and_the_same_ever_after(encoder, item, tmp_path):
    plain = TrainingFrames(encoder, 4, Sampling("spread", 2.0))
    keeping = TrainingFrames(encoder, 4, Sampling("spread", 2.0), kept=tmp_path / "frames")
    first = keeping(item, 0, 0)
    apart = np.abs(first.astype(int) - plain(item, 0, 0))
    assert apart.mean() < 2 and apart.max() < 30
    (file,) = (tmp_path / "frames").glob("*/*.jpg")
    np.testing.assert_array_equal(keeping(item, 0, 1), first)
    file.write_bytes(file.read_bytes()[:100])  # cut short by a full disk, say
    np.testing.assert_array_equal(keeping(item, 0, 2), first)
    other = TrainingFrames(encoder, 3, Sampling("spread", 2.0), kept=tmp_path / "frames")
    assert len(other(item, 0, 0)) == 3  # another rule has a file of its own


def test_a_video_that_cannot_be_read_is_no_matter_of_the_folder(encoder, tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"none")
    read = TrainingFrames(encoder, 4, Sampling(), kept=tmp_path / "frames")
    with pytest.raises(VideoError, match="is not a video"):
        read(Item("broken", broken), 0, 0)
    assert not (tmp_path / "frames").exists()


def test_a_folder_that_cannot_be_written_is_named_with_what_to_do(encoder, item, tmp_path):
    (tmp_path / "frames").write_text("a file, not a folder")
    read = TrainingFrames(encoder, 4, Sampling(), kept=tmp_path / "frames")
    with pytest.raises(SureshotError, match=r"frames of a cannot be kept in .*Free some space"):
        read(item, 0, 0)
