"""Features of a split: those of its videos, encoded once, whatever happens meanwhile."""

import os
import resource
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import UInt8
from PIL import Image
from safetensors.numpy import save_file

from sureshot.datasets.split import Caption, Item, Split
from sureshot.errors import SureshotError
from sureshot.media.discover import Source
from sureshot.media.sampling_rule import Sampling
from sureshot.media.video import open_video
from sureshot.media.windows import windows
from sureshot.models.encoders.base import FrameFeatures, TextFeatures, pool_grid
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.research import features
from sureshot.research.features import (
    FeatureCache,
    FrameMemory,
    SplitFeatures,
    caption_features,
    extract,
    uncached,
)
from tests.clips import coloured
from tests.heard import Heard
from tests.processes import error_of

FRAMES = 4
NAMES = ("red", "green", "blue", "white", "cyan")


class Counting(TinyEncoder):
    """Counts what it encodes, and may be stopped or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = self.texts = 0
        self.stop_at = 10**9
        self.spoil: float | None = None
        self.spoil_texts: float | None = None

    def encode_texts(self, texts: Sequence[str]) -> TextFeatures:
        self.texts += len(texts)
        found = super().encode_texts(texts)
        if self.spoil_texts is not None:
            found.words[-1, 0, 0] = self.spoil_texts
        return found

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 16 16"]) -> FrameFeatures:
        if self.frames + len(prepared) > self.stop_at:
            raise KeyboardInterrupt
        self.frames += len(prepared)
        found = super().encode_frames(prepared)
        if self.spoil is not None:
            found.backbone[-1, 0] = self.spoil
        return found


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of each colour, of different lengths and two sizes; the first is two-coloured."""
    folder = tmp_path_factory.mktemp("clips")
    for number, name in enumerate(NAMES):
        size = (64, 48) if number % 2 else (96, 64)
        shown = [name, "yellow"] if number == 0 else [name]
        coloured(folder / f"{name}.mp4", shown, seconds=0.5 + number / 4, rate=4, size=size)
    return folder


def split_of(*items: Item, captions: int = 2) -> Split:
    """Videos with so many captions each; one caption is said of all."""
    said = [
        Caption(text, row)
        for row, item in enumerate(items)
        for text in ("a wall", f"a {item.path.stem} wall", "again")[:captions]
    ]
    return Split("pairs", "test", "list", items, tuple(said))


@pytest.fixture
def split(clips: Path) -> Split:
    return split_of(*(Item(name, clips / f"{name}.mp4") for name in NAMES))


def same(one: SplitFeatures, two: SplitFeatures) -> bool:
    pairs = zip(one.videos, two.videos, strict=True)
    return (
        one.split == two.split
        and one.unreadable == two.unreadable
        and all(
            np.array_equal(getattr(a, name), getattr(b, name))
            for a, b in pairs
            for name in ("frames", "patches", "backbone")
        )
        and all(
            np.array_equal(a, b)
            for ours, theirs in zip(one.texts, two.texts, strict=True)
            for a, b in zip(ours, theirs, strict=True)
        )
    )


def by_hand(path: Path, kind="file") -> FrameFeatures:
    """What the encoder says of a whole video's frames, without anything in between."""
    tiny = TinyEncoder()
    with open_video(Source(path, kind, 0, 0), decode="all") as video:
        (window,) = windows(video, longest=1e6, samples=FRAMES, size=tiny.frame_size, scenes=False)
    return tiny.encode_frames(tiny.prepare(window.images))


def seen(found: FrameFeatures) -> list[str]:
    """The colour of each frame."""
    return [list(COLOURS)[i] for i in found.frames[:, :8].argmax(1)]


def test_features_are_what_the_encoder_says(split: Split, tmp_path: Path) -> None:
    heard = Heard()
    found = extract(split, TinyEncoder(), frames=FRAMES, cache=tmp_path, progress=heard)
    assert found.split is split
    assert found.frames == FRAMES
    assert [len(video.frames) for video in found.videos] == [4, 3, 4, 4, 4]
    for item, video in zip(split.items, found.videos, strict=True):
        expected = by_hand(item.path)
        for name in ("frames", "backbone"):
            assert getattr(video, name).dtype == np.float16
            np.testing.assert_allclose(getattr(video, name), getattr(expected, name), atol=1e-3)
        np.testing.assert_allclose(video.patches, pool_grid(expected.patches, 3), atol=1e-3)
    encoded = TinyEncoder().encode_texts(split.texts())
    for row, (sentence, words) in enumerate(found.texts):
        np.testing.assert_allclose(sentence, encoded.sentence[row], atol=1e-3)
        np.testing.assert_allclose(words, encoded.words[row][encoded.mask[row]], atol=1e-3)
    assert heard.updates == [("videos encoded", 5, 5), ("captions encoded", 6, 6)]


def test_cells_that_nobody_reads_stay_on_the_disk(split: Split, tmp_path: Path) -> None:
    encoder = Counting()
    first = extract(split, encoder, frames=FRAMES, cells="none", cache=tmp_path)
    again = extract(split, encoder, frames=FRAMES, cells="none", cache=tmp_path)
    whole = extract(split, encoder, frames=FRAMES, cache=tmp_path)
    assert encoder.frames == 19 and same(first, again)
    for without, video in zip(first.videos, whole.videos, strict=True):
        assert without.patches.shape == (len(video.frames), 0, TinyEncoder().dim)
        assert video.patches.shape[1] > 0
        np.testing.assert_array_equal(without.frames, video.frames)


def test_what_was_encoded_is_only_read(split: Split, tmp_path: Path) -> None:
    encoder, heard = Counting(), Heard()
    whole = extract(split, encoder, frames=FRAMES, cache=tmp_path)
    assert (encoder.frames, encoder.texts) == (19, 6)  # the caption that all share is one
    assert same(extract(split, encoder, frames=FRAMES, cache=tmp_path), whole)
    part = split.part({"green", "white"})
    found = extract(part, encoder, frames=FRAMES, cache=tmp_path, progress=heard)
    assert heard.updates == [("videos encoded", 2, 2), ("captions encoded", 3, 3)]
    videos = [whole.videos[split.items.index(item)] for item in part.items]
    texts = [whole.texts[split.texts().index(text)] for text in part.texts()]
    assert same(found, replace(whole, split=part, videos=videos, texts=texts))
    alone = caption_features(split, encoder, cache=tmp_path)
    assert (encoder.frames, encoder.texts) == (19, 6) and not alone.videos
    assert same(replace(alone, videos=whole.videos), whole)
    extract(split, encoder, frames=2, cache=tmp_path)
    assert (encoder.frames, encoder.texts) == (19 + 10, 6)


def test_the_cache_serves_another_order_and_a_moved_folder(
    split: Split, clips: Path, tmp_path: Path
) -> None:
    first = extract(split, TinyEncoder(), frames=FRAMES, cache=tmp_path)
    moved = tmp_path / "elsewhere"
    shutil.copytree(clips, moved)
    for path in moved.iterdir():
        os.utime(path, ns=(7, 7))  # as a mount or an archive may have it
    other = split_of(*(Item(f"id {n}", moved / f"{n}.mp4") for n in reversed(NAMES)), captions=1)
    encoder = Counting()
    found = extract(other, encoder, frames=FRAMES, cache=tmp_path)
    assert encoder.frames == 0
    for ours, theirs in zip(found.videos, reversed(first.videos), strict=True):
        np.testing.assert_array_equal(ours.frames, theirs.frames)


def test_twins_by_name_and_size_are_not_mixed_up(tmp_path: Path) -> None:
    """As files of a format of fixed size may be."""
    items = []
    for name in ("blue", "red", "green"):
        folder = tmp_path / name
        folder.mkdir()
        Image.new("RGB", (32, 32), COLOURS[name]).save(folder / "photo.bmp")
        os.utime(folder / "photo.bmp", ns=(0, 7))
        items.append(Item(name, folder / "photo.bmp"))
    for order in (items, items[::-1]):
        found = extract(split_of(*order), TinyEncoder(), cache=tmp_path / "cache")
        assert [seen(video)[0] for video in found.videos] == [item.id for item in order]


def test_what_cannot_be_read_is_left_out_with_its_captions(split: Split, tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "album").mkdir()
    broken = [Item(n, tmp_path / n) for n in ("empty.mp4", "gone.mp4", "text.mp4", "album")]
    past = Item("past", split.items[1].path, 50.0, 60.0)
    mixed = (broken[0], split.items[1], *broken[1:], past, split.items[0])
    for _ in range(2):  # the second time with captions from the cache
        found = extract(split_of(*mixed), TinyEncoder(), frames=FRAMES, cache=tmp_path)
        assert [item.id for item in found.split.items] == ["green", "red"]
        assert [c.text for c in found.split.captions] == [
            "a wall",
            "a green wall",
            "a wall",
            "a red wall",
        ]
        assert [seen(video)[0] for video in found.videos] == ["green", "red"]
        assert len(found.texts) == 4
        assert found.unreadable == (
            ("empty.mp4", "is empty (0 bytes)"),
            ("gone.mp4", "has vanished"),
            ("text.mp4", "is not a video, or is damaged or cut short"),
            ("album", "is not a folder of numbered frames"),
            ("past", "holds no frame that can be decoded from 50 to 60 s"),
        )
        assert "2 of 7 videos" in found.split.title()
    how = {"frames": FRAMES, "sampling": Sampling(), "cells": "coarse"}
    # What is gone may come back; the others have nothing to encode, nor have their captions.
    assert uncached(split_of(*mixed), TinyEncoder(), tmp_path, **how) == 1
    some = replace(split_of(*mixed), missing=("lost",), expected=1000)
    found = extract(some, TinyEncoder(), frames=FRAMES, cache=tmp_path)
    assert found.split.missing == ("lost",) and "2 of 1000 videos" in found.split.title()


@pytest.mark.parametrize("reason", ["has vanished", "permission denied"])
def test_a_file_that_comes_back_is_read_then_and_costs_no_other(
    split: Split, clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    """A reason that may go away by itself is not kept."""
    path = tmp_path / "later.mp4"
    some, encoder = split_of(*split.items, Item("later", path)), Counting()
    with monkeypatch.context() as patch:
        if reason != "has vanished":
            shutil.copy(clips / "blue.mp4", path)

            def refuse(source: Source, **options):
                if source.path == path:
                    raise PermissionError(13, "Permission denied")
                return open_video(source, **options)

            patch.setattr("sureshot.media.sampling.open_video", refuse)
        for _ in range(2):
            found = extract(some, encoder, frames=FRAMES, cache=tmp_path)
            assert found.unreadable == (("later", reason),) and encoder.frames == 19
    shutil.copy(clips / "blue.mp4", path)
    assert not extract(some, encoder, frames=FRAMES, cache=tmp_path).unreadable


def test_a_split_without_a_video_to_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(SureshotError, match=r"No video of pairs list test.* can be read: is empty"):
        extract(split_of(Item("a", tmp_path / "empty.mp4")), TinyEncoder(), cache=tmp_path)


def test_a_run_that_was_stopped_goes_on(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "_VIDEOS", 2)
    whole = Counting()
    expected = extract(split, whole, frames=FRAMES, cache=tmp_path / "whole")
    stopped = Counting()
    stopped.stop_at = 10
    with pytest.raises(KeyboardInterrupt):
        extract(split, stopped, frames=FRAMES, cache=tmp_path / "cache")
    assert 0 < stopped.frames <= 10
    resumed = Counting()
    found = extract(split, resumed, frames=FRAMES, cache=tmp_path / "cache")
    assert resumed.frames == whole.frames - stopped.frames
    assert same(found, expected)


def test_a_damaged_file_of_the_cache_is_made_again(split: Split, tmp_path: Path) -> None:
    first = extract(split, TinyEncoder(), frames=FRAMES, cache=tmp_path)
    files = list(tmp_path.rglob("*.safetensors"))
    assert len(files) == 2
    for path in files:
        os.truncate(path, path.stat().st_size // 2)
    encoder = Counting()
    assert same(extract(split, encoder, frames=FRAMES, cache=tmp_path), first)
    assert (encoder.frames, encoder.texts) == (19, 6)
    assert not list(tmp_path.rglob("*.partial"))


def test_a_folder_of_numbered_frames_is_a_video(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for number, name in enumerate(("red", "green", "blue")):
        Image.new("RGB", (32, 24), COLOURS[name]).save(folder / f"{number:04}.png")
    some = split_of(Item("frames", folder))
    (video,) = extract(some, TinyEncoder(), frames=FRAMES, cache=tmp_path / "cache").videos
    assert seen(video) == ["red", "green", "blue"]
    np.testing.assert_allclose(video.frames, by_hand(folder, "frames").frames, atol=1e-3)


@pytest.mark.parametrize(
    ("start", "end", "colours"),
    [
        (None, None, {"red", "yellow"}),
        (None, 0.3, {"red"}),
        (0.5, None, {"yellow"}),
        (0.25, 0.75, {"red", "yellow"}),
        (0.0, 0.0, {"red"}),
    ],
)
def test_only_the_part_of_a_video_counts(
    clips: Path, tmp_path: Path, start: float | None, end: float | None, colours: set[str]
) -> None:
    """The first half second of the clip is red, the second one yellow."""
    some = split_of(Item("red", clips / "red.mp4", start, end))
    (video,) = extract(some, TinyEncoder(), frames=FRAMES, cache=tmp_path).videos
    assert set(seen(video)) == colours
    other = split_of(Item("red", clips / "red.mp4", 0.0, 0.4))  # is not what is in the cache
    assert set(seen(extract(other, TinyEncoder(), cache=tmp_path, frames=FRAMES).videos[0])) == {
        "red"
    }
    if end == 0.0:
        assert len(video.frames) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e6])
def test_a_number_that_is_none_is_refused_by_the_videos_name(
    split: Split, tmp_path: Path, bad: float
) -> None:
    encoder = Counting()
    encoder.spoil = bad
    with pytest.raises(
        SureshotError, match=r"not finite.* video (\w+) \(.*\1\.mp4\); leave it out"
    ):
        extract(split, encoder, frames=FRAMES, cache=tmp_path)
    assert not list(tmp_path.rglob("*.safetensors"))  # and not kept
    encoder.spoil, encoder.spoil_texts = None, bad
    with pytest.raises(SureshotError, match=r"The encoder 'tiny' gives a number that is not"):
        extract(split, encoder, frames=FRAMES, cache=tmp_path)
    assert not list(tmp_path.rglob("*-captions/*.safetensors"))


def encode_on_a_full_disk(split: Split, cache: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    extract(split, TinyEncoder(), frames=FRAMES, cache=cache)


def test_a_full_disk_is_told_and_leaves_nothing_half_done(split: Split, tmp_path: Path) -> None:
    message = error_of(encode_on_a_full_disk, split, tmp_path)
    assert message.startswith(f"SureshotError: The features cannot be kept in {tmp_path}")
    assert "Free some space" in message
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


class Fine(TinyEncoder):
    """Sees sixteen cells of a frame."""

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 16 16"]) -> FrameFeatures:
        found = super().encode_frames(prepared)
        cells = found.patches.repeat(4, axis=1) * np.arange(16, dtype=np.float32)[:, None]
        return FrameFeatures(found.frames, cells, found.backbone)


def test_cells_are_pooled_to_a_grid_of_three_by_three(clips: Path, tmp_path: Path) -> None:
    path = clips / "blue.mp4"
    (video,) = extract(split_of(Item("a", path)), Fine(), frames=FRAMES, cache=tmp_path).videos
    coarse = by_hand(path).patches
    cells = coarse.repeat(4, axis=1) * np.arange(16, dtype=np.float32)[:, None]
    np.testing.assert_allclose(video.patches, pool_grid(cells, 3), atol=1e-2)
    assert video.patches.shape == (4, 9, TinyEncoder.dim)


def entry(number: int, rows: int = 2) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(number)
    return {
        "frames": draw.normal(size=(rows, 5)).astype(np.float16),
        "patches": draw.normal(size=(rows, 9, 3)).astype(np.float16),
        "sentence": draw.normal(size=(1, 5)).astype(np.float16),
    }


def equal(found: object, expected: object) -> bool:
    if isinstance(found, str) or isinstance(expected, str):
        return found == expected
    return list(found) == list(expected) and all(
        np.array_equal(found[name], expected[name]) and found[name].dtype == expected[name].dtype
        for name in found
    )


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    failed=st.sets(st.integers(0, 11)),
    shard=st.integers(1, 12),
    data=st.data(),
)
def test_any_keys_are_found_in_any_shards(tmp_path_factory, lengths, failed, shard, data) -> None:
    cache = FeatureCache(tmp_path_factory.mktemp("cache") / "below")
    entries = {
        f"key {number}": f"reason {number}" if number in failed else entry(number, length)
        for number, length in enumerate(lengths)
    }
    keys = list(entries)
    for first in range(0, len(keys), shard):
        cache.write({key: entries[key] for key in keys[first : first + shard]})
    wanted = data.draw(st.sets(st.sampled_from([*keys, "unknown"])))
    found = cache.read(wanted)
    assert found.keys() == wanted - {"unknown"}
    assert all(equal(value, entries[key]) for key, value in found.items())
    assert len(list(cache.folder.iterdir())) == -(-len(keys) // shard)


def test_other_files_and_damaged_shards_are_passed_over(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path)
    cache.write({"a": entry(0)})
    (good,) = tmp_path.iterdir()
    (tmp_path / f"shard-{'0' * 32}.safetensors").write_bytes(good.read_bytes()[:-1])
    (tmp_path / f"shard-{'1' * 32}.safetensors").write_bytes(b"noise")
    save_file({"a": np.zeros(3)}, tmp_path / f"shard-{'2' * 32}.safetensors")
    save_file({"a": np.zeros(3)}, tmp_path / f"shard-{'3' * 32}.safetensors", {"entries": "[1]"})
    save_file({"a": np.zeros(3)}, tmp_path / "videos-of-before.safetensors")
    assert equal(cache.read(["a"])["a"], entry(0))


def test_what_fits_is_kept_and_the_rest_is_not():
    memory = FrameMemory(room=30)
    first, other, small = (Item(name, Path(name)) for name in "abc")
    frames = np.zeros((1, 3, 2, 3), np.uint8)  # 18 bytes
    encoder = SimpleNamespace(prepare=lambda images: images)

    def prepared(item, images):
        return memory.prepared(item, encoder, lambda: images)

    for item, images in (
        (first, frames),
        (first, frames),
        (other, frames),
        (small, frames[:, :, :1]),
    ):
        prepared(item, images)
    again = np.ones(1)
    assert prepared(first, again) is frames
    assert prepared(other, again) is again
    assert prepared(small, again) is not again


def test_frames_on_disk_outlive_a_process_and_a_damaged_file_is_none(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"a video")
    item, frames = Item("a", tmp_path / "a.mp4"), np.ones((2, 3, 2, 3), np.float16)
    encoder = SimpleNamespace(prepare=lambda images: images)

    def prepared(images):
        memory = FrameMemory(folder=tmp_path / "kept")
        return memory.prepared(item, encoder, lambda: images).mean()

    assert (prepared(frames), prepared(2 * frames)) == (1, 1)
    (file,) = (tmp_path / "kept").rglob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1])
    assert (prepared(3 * frames), prepared(4 * frames)) == (3, 3)  # it is written again
    (tmp_path / "a.mp4").write_bytes(b"another")
    assert prepared(5 * frames) == 5
