"""What is trained on: batches, pairs of features and of pixels, and sampled frames."""

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sureshot.datasets import Caption, Item, Split
from sureshot.errors import SureshotError, VideoError
from sureshot.media.sampling import sample_frames
from sureshot.media.sampling_rule import Sampling
from sureshot.models.encoders.base import FrameFeatures
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.systems.base import text_tokens, video_tokens
from sureshot.research.features import SplitFeatures
from sureshot.research.training import data as data_module
from sureshot.research.training.data import (
    FeaturePairs,
    Pairs,
    PixelPairs,
    TrainingFrames,
    count,
    plan,
    read_filmstrip,
    write_filmstrip,
)
from sureshot.research.training.encoder_tuning import TunedClip
from tests.clips import film
from tests.models.encoders.test_clip import clip

owners = st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(lambda v: len(set(v)) > 1)


@given(owners, st.integers(2, 9), st.sampled_from(["one", "all"]), st.integers(0, 3))
def test_no_video_twice_in_a_batch_and_sizes_are_even(video_of, batch, captions, epoch):
    batches = plan(video_of, batch=batch, captions=captions, epoch=epoch)
    assert len(batches) == count(video_of, batch=batch, captions=captions)
    for rows in batches:
        shown = [video_of[row] for row in rows]
        assert len(set(shown)) == len(shown) <= batch
    sizes = [len(rows) for rows in batches]
    assert max(sizes) - min(sizes) <= 1
    assert captions == "all" or batch == 2 or min(sizes) >= 2
    seen = Counter(row for rows in batches for row in rows.tolist())
    assert set(seen.values()) == {1}
    if captions == "all":
        assert set(seen) == set(range(len(video_of)))
    else:
        assert Counter(video_of[row] for row in seen) == Counter(set(video_of))


def test_a_plan_depends_on_seed_and_epoch_alone():
    def flat(seed, epoch):
        return [rows.tolist() for rows in plan(range(40), batch=8, seed=seed, epoch=epoch)]

    assert flat(1, 2) == flat(1, 2)
    assert len({str(flat(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9


def test_one_caption_of_each_video_is_drawn_anew_each_epoch():
    video_of = [0] * 3 + [1] * 3
    drawn = Counter(
        row
        for epoch in range(300)
        for rows in plan(video_of, batch=2, epoch=epoch)
        for row in rows.tolist()
    )
    assert set(drawn) == set(range(6))
    assert all(60 < times < 140 for times in drawn.values())  # a hundred each, five sigma


@pytest.mark.parametrize("video_of", [[], [0, 0, 0]])
def test_fewer_than_two_videos_are_refused(video_of):
    with pytest.raises(SureshotError, match="two videos"):
        plan(video_of, batch=4)


DIM, CHANNELS = 4, 3


def features(lengths, captions, seed):
    """A set whose videos have these numbers of frames; captions name their video."""
    random = np.random.default_rng(seed)

    def numbers(*shape):
        return random.normal(size=shape).astype(np.float16)

    split = Split(
        "pairs",
        "train",
        f"set {seed}",
        tuple(Item(f"s{seed}v{row}", Path(f"{row}.mp4")) for row in range(len(lengths))),
        tuple(Caption(f"caption {row}", video) for row, video in enumerate(captions)),
    )
    videos = [
        FrameFeatures(numbers(n, DIM), numbers(n, 9, DIM), numbers(n, CHANNELS)) for n in lengths
    ]
    texts = [(numbers(DIM), numbers(1 + seed, DIM)) for _ in captions]
    return SplitFeatures(split, 12, videos, texts)


VIDEOS, PHOTOS = features([3, 1, 5], [0, 0, 1, 2], 1), features([1, 1], [1, 0, 1], 2)


def test_tokens_of_one_set_are_those_of_its_features():
    pairs, rows = FeaturePairs([VIDEOS]), [3, 0, 1]
    for found, expected in zip(
        pairs.texts(rows), text_tokens(VIDEOS.text_batch(rows)), strict=True
    ):
        assert torch.equal(found, expected) and found.dtype == expected.dtype
    owners = [VIDEOS.split.captions[row].video for row in rows]
    expected = video_tokens(VIDEOS.video_batch(owners))
    for found, other in zip(pairs.videos(rows), expected, strict=True):
        assert torch.equal(found, other)


def test_sets_follow_each_other_and_a_batch_may_mix_them():
    pairs = FeaturePairs([VIDEOS, PHOTOS])
    assert pairs.video_of == [0, 0, 1, 2, 4, 3, 4]
    assert (pairs.name(1), pairs.name(5)) == ("s1v0 'caption 1'", "s2v0 'caption 1'")
    tokens, texts = pairs.videos([3, 4]), pairs.texts([5, 2])
    assert tokens.frames.shape == (2, 5, DIM) and tokens.mask.sum(1).tolist() == [5, 1]
    np.testing.assert_array_equal(tokens.frames[1, 0].numpy(), PHOTOS.videos[1].frames[0])
    assert not tokens.frames[1, 1:].any() and not tokens.patches[1, 1:].any()
    assert texts.mask.tolist() == [[True, True, True], [True, True, False]]
    np.testing.assert_array_equal(texts.words[1, :2].numpy(), VIDEOS.texts[2][1])
    assert not texts.words[1, 2].any()


def test_experts_go_with_their_videos_whichever_set_they_are_of():
    draw = np.random.default_rng(0)
    given = [
        {"s1v0": {"audio": draw.normal(size=(2, 3))}, "s1v2": {"motion": draw.normal(size=(1, 5))}},
        {"s2v1": {"audio": draw.normal(size=(1, 3)), "motion": draw.normal(size=(2, 5))}},
    ]
    sets = [replace(part, experts=own) for part, own in zip((VIDEOS, PHOTOS), given, strict=True)]
    pairs = FeaturePairs([*sets, features([2], [0], 3)])
    assert pairs.experts == (("audio", 3), ("motion", 5))
    tokens = pairs.videos([1, 2, 3, 4, 7])  # the videos s1v0, s1v1, s1v2, s2v1, s3v0
    assert tokens.which.sum(1).tolist() == [[2, 0], [0, 0], [0, 1], [1, 2], [0, 0]]
    for row, own in ((0, given[0]["s1v0"]), (2, given[0]["s1v2"]), (3, given[1]["s2v1"])):
        for number, (name, size) in enumerate(pairs.experts):
            found = tokens.experts[row, tokens.which[row, :, number], :size].numpy()
            np.testing.assert_allclose(found, own.get(name, np.zeros((0, size))), rtol=1e-6)


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


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({"augment": "crop_flip"}, 1),
        ({"augment": "rand_augment"}, 1),
        ({"sampling": Sampling("phase", 2.0)}, 3),
        ({"sampling": Sampling("random"), "augment": "rand_augment"}, 3),
    ],
)
def test_what_chance_does_to_frames_is_done_to_kept_ones(
    encoder, item, tmp_path, monkeypatch, settings, files
):
    settings = {"sampling": Sampling("segments"), **settings}
    plain = TrainingFrames(encoder, 4, **settings)
    keeping = TrainingFrames(encoder, 4, **settings, kept=tmp_path / "frames")
    seen = [keeping(item, 0, epoch) for epoch in range(3)]
    for epoch, kept in enumerate(seen):
        apart = np.abs(kept.astype(int) - plain(item, 0, epoch))
        assert apart.mean() < 4, "the draws are not those of frames that are decoded each time"
    assert len({one.tobytes() for one in seen}) > 1
    assert len(list((tmp_path / "frames").glob("*/*.jpg"))) == files
    monkeypatch.setattr(data_module, "sampled_frames", None)  # nothing is decoded any more
    for epoch, kept in enumerate(seen):
        np.testing.assert_array_equal(keeping(item, 0, epoch), kept)


def test_kept_frames_are_those_of_encoders_that_resize_alike(encoder, item, tmp_path):
    side = encoder.side
    cornered = SimpleNamespace(
        side=side, frame_size=lambda image: image[:side, :side], resizing="corner"
    )
    one, other = (
        TrainingFrames(of, 4, Sampling("spread"), kept=tmp_path)(item, 0, 0).shape
        for of in (encoder, cornered)
    )
    assert one != other


def test_a_folder_that_cannot_be_written_is_named_with_what_to_do(encoder, item, tmp_path):
    (tmp_path / "frames").write_text("a file, not a folder")
    read = TrainingFrames(encoder, 4, Sampling(), kept=tmp_path / "frames")
    with pytest.raises(SureshotError, match=r"frames of a cannot be kept in .*Free some space"):
        read(item, 0, 0)


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
