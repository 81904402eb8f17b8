"""Pairs decoded while they are trained on."""

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from sureshot.datasets import Caption, Item, Split
from sureshot.errors import SureshotError, VideoError
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.base import Sizes
from sureshot.research.training.data import Pairs, PixelPairs
from sureshot.research.training.encoder_tuning import TunedClip
from sureshot.research.training.loop import fit
from sureshot.research.training.recipe import TrainingConfig
from tests.models.encoders.test_clip import clip
from tests.research.training.toy import Toy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("clip")
    clip(place)
    return place


@pytest.fixture
def tuned(folder):
    return TunedClip(ClipEncoder.load(str(folder), "cpu"))


def split(name, videos, captions):
    items = tuple(Item(f"{name}{row}", Path(f"{name}{row}.mp4")) for row in range(videos))
    texts = tuple(
        Caption(f"{name} {video} {row}", video)
        for video in range(videos)
        for row in range(captions)
    )
    return Split("pairs", "train", name, items, texts)


class Reader:
    """Frames of a video that follow from its id; counts what it is asked for."""

    def __init__(self, broken=""):
        self.broken, self.asked, self.lock = broken, [], threading.Lock()

    def __call__(self, item, video=0, epoch=0):
        with self.lock:
            self.asked.append(item.id)
        if item.id == self.broken:
            raise VideoError("it holds no frame")
        seed = sum(map(ord, item.id))
        count = 1 + seed % 3
        return np.random.default_rng(seed).integers(0, 256, (count, 36, 36, 3), np.uint8)


SETS = split("a", 3, 2), split("b", 2, 1)


def test_pairs_of_several_sets_are_decoded_and_encoded(tuned):
    read = Reader()
    with PixelPairs(SETS, tuned, read, workers=2) as pairs:
        assert isinstance(pairs, Pairs)
        assert pairs.video_of == [0, 0, 1, 1, 2, 2, 3, 4]
        assert pairs.name(7) == "b1 'b 1 0'"
        found = pairs.videos([3, 7])
        items = [SETS[0].items[1], SETS[1].items[1]]
        expected = tuned.videos([tuned.encoder.prepare(read(item)) for item in items])
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
        assert torch.equal(pairs.texts([3, 7]).words, tuned.texts(["a 1 1", "b 1 0"]).words)


def test_what_is_held_is_decoded_once_and_what_is_let_go_is_decoded_again(tuned):
    read = Reader()
    with PixelPairs(SETS, tuned, read) as pairs:
        pairs.hold([0, 2])
        for _ in range(2):
            pairs.videos([0, 2])
        assert sorted(read.asked) == ["a0", "a1"]
        pairs.hold([2, 4])
        pairs.videos([2])
        pairs.videos([4])
        assert sorted(read.asked) == ["a0", "a1", "a2"]
        pairs.hold([0])
        pairs.videos([1])  # the other caption of the same video
        assert sorted(read.asked) == ["a0", "a0", "a1", "a2"]


def test_a_video_that_cannot_be_read_is_named(tuned):
    with PixelPairs(SETS, tuned, Reader("a1")) as pairs:
        assert pairs.readable([0, 2, 3, 6]) == [0, 6]
        assert pairs.unreadable == {"a1": "it holds no frame"}
        assert pairs.readable([0, 6]) == [0, 6]
        message = r"The video a1 \(a1\.mp4\) cannot be read: it holds no"
        with pytest.raises(SureshotError, match=message):
            pairs.videos([2])


def test_another_epoch_asks_for_frames_of_its_own(tuned):
    asked = []

    def read(item, video, epoch):
        asked.append((item.id, video, epoch))
        return Reader()(item)

    with PixelPairs(SETS, tuned, read, workers=1) as pairs:
        pairs.videos([7])
        pairs.begin_epoch(3)
        pairs.videos([7, 7])
    assert asked == [("b1", 4, 0), ("b1", 4, 3)]


def test_a_system_and_its_encoder_are_trained_end_to_end(tuned, tmp_path):
    torch.manual_seed(0)
    sizes = Sizes(tuned.encoder.dim, tuned.encoder.channels)
    model = Model(Stem(StemConfig(), sizes), Toy(sizes.dim))
    before = {name: weight.detach().clone() for name, weight in tuned.named_parameters()}
    read, told = Reader(), []
    config = TrainingConfig(epochs=3, batch=4, rate=1e-3, encoder_rate=1e-4, micro_batch=2)
    with PixelPairs(SETS, tuned, read) as pairs:
        fit(
            model,
            pairs,
            config,
            tmp_path,
            save=lambda place, epoch, score: tuned.save(place / "encoder"),
            encoder=tuned,
            on_step=told.append,
        )
    assert len(told) == 6
    assert len(read.asked) <= 3 * 5  # once a video and epoch, though each is embedded twice
    moved = [
        (weight - before[name]).abs().max().item() for name, weight in tuned.named_parameters()
    ]
    assert 1e-4 < max(moved) < 1e-3
    kept = ClipEncoder.load(str(tmp_path / "model" / "encoder"), "cpu")
    np.testing.assert_array_equal(
        kept.encode_texts(["a dog"]).sentence, tuned.encoder.encode_texts(["a dog"]).sentence
    )
