"""Videos become encoded windows: the right ones, in order, whatever else is in the queue."""

import os
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Shaped, UInt8
from PIL import Image
from threadpoolctl import threadpool_info

from sureshot.errors import ArgumentError, VideoError
from sureshot.library.encoding import (
    EncodedVideo,
    SceneMerger,
    VideoProgress,
    by_scene,
    content_digest,
    encode_video,
    encode_videos,
    pack_videos,
    parts,
    price_of,
)
from sureshot.media.discover import Source, discover
from sureshot.models.encoders.base import FrameFeatures, unit_vectors
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.paths import WHOLE, Shard
from sureshot.store.rows import EncodedWindow, IndexSettings
from sureshot.store.writing import StagedVideo
from tests.clips import coloured, film, greys
from tests.encoded import SETTINGS, make_store

TINY = TinyEncoder()
WIDE = 24  # pixels that frames of the wider clips have across when an encoder gets them


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of one to four colours, of two sizes."""
    folder = tmp_path_factory.mktemp("clips")
    names = list(COLOURS)
    for number in range(6):
        colours = [names[(number + i) % 8] for i in range(1 + number % 4)]
        size = (64, 48) if number % 2 else (96, 64)
        coloured(folder / f"{number}.mp4", colours, size=size)
    return folder


def sources(*paths: Path) -> list[Source]:
    return [found for found in discover(paths) if isinstance(found, Source)]


def encode(
    chosen: Sequence[Source], encoder: TinyEncoder = TINY, settings: IndexSettings = SETTINGS
) -> dict[str, EncodedVideo]:
    return {
        v.record.path.name: v for v in whole(encode_videos(chosen, settings, encoder, workers=2))
    }


def whole(encoded: Iterable[EncodedVideo | VideoProgress]) -> list[EncodedVideo]:
    return [one for one in encoded if isinstance(one, EncodedVideo)]


def same(one: EncodedVideo, two: EncodedVideo) -> None:
    assert [w.start for w in one.windows] == [w.start for w in two.windows]
    for a, b in zip(one.windows, two.windows, strict=True):
        np.testing.assert_array_equal(a.times, b.times)
        np.testing.assert_array_equal(a.signatures, b.signatures)
        np.testing.assert_allclose(a.frames, b.frames, atol=1e-6)


class Watched(TinyEncoder):
    """Notes what is in flight and in which batches it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.windows = 0
        self.prepared = 0
        self.most = 0

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> UInt8[np.ndarray, "frames 3 16 16"]:
        self.windows += 1
        self.prepared += 1
        self.most = max(self.most, self.prepared)
        return super().prepare(frames)

    def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 16 16"]) -> FrameFeatures:
        time.sleep(0.02)  # slower than decoding, as real encoders are
        self.batches.append(len(prepared))
        self.prepared = 0
        return super().encode_frames(prepared)


class TwoShapes(TinyEncoder):
    """Prepares frames to a size that depends on theirs, as encoders of any aspect do."""

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> Shaped[np.ndarray, "frames 3 side side"]:
        small = super().prepare(frames)
        return small[:, :, ::2, ::2] if frames.shape[2] == WIDE else small

    def encode_frames(self, prepared: Shaped[np.ndarray, "frames 3 side side"]) -> FrameFeatures:
        times = 16 // prepared.shape[-1]
        return super().encode_frames(prepared.repeat(times, -1).repeat(times, -2))


def test_every_video_comes_out_once_with_its_windows_in_order(clips: Path) -> None:
    found = encode(sources(clips))
    assert sorted(found) == [f"{n}.mp4" for n in range(6)]
    for number in range(6):
        windows = found[f"{number}.mp4"].windows
        assert len(windows) == 1 + number % 4
        assert [w.start for w in windows] == sorted(w.start for w in windows)
        for before, after in pairwise(windows):
            assert before.end == after.start
        colours = [list(COLOURS)[(number + i) % 8] for i in range(len(windows))]
        shares = np.array([w.frames.mean(0)[:8] for w in windows])
        assert [list(COLOURS)[i] for i in shares.argmax(1)] == colours


def test_batches_across_videos_give_what_each_video_gives_alone(clips: Path) -> None:
    watched = Watched()
    together = encode(sources(clips), watched)
    assert max(watched.batches) > 12  # a batch did hold more than one window
    for source in sources(clips):
        same(encode_video(source, SETTINGS, TINY), together[source.path.name])


def test_frames_prepared_to_different_sizes_share_a_run(clips: Path) -> None:
    together = encode(sources(clips), TwoShapes())
    for source in sources(clips):
        same(encode_video(source, SETTINGS, TwoShapes()), together[source.path.name])


def test_windows_have_no_more_frames_than_asked_for(clips: Path) -> None:
    video = encode_video(sources(clips / "3.mp4")[0], replace(SETTINGS, frames=3), TINY)
    for window in video.windows:
        assert window.frames.shape == (3, TINY.dim)
        assert window.signatures.shape == (3, 288)
        assert len(window.times) == 3


def test_frames_of_a_window_are_not_rounded_before_they_are_stored(clips: Path) -> None:
    window = encode_video(sources(clips / "0.mp4")[0], SETTINGS, TINY).windows[0]
    assert window.frames.dtype == np.float32  # queries by video are not rounded at all


def test_a_folder_of_frames_is_a_video(tmp_path: Path) -> None:
    for number in range(4):
        Image.new("RGB", (32, 32), COLOURS["green"]).save(tmp_path / f"{number}.png")
    (source,) = sources(tmp_path)
    video = encode_video(source, SETTINGS, TINY)
    assert video.windows[0].frames[:, :8].mean(0).argmax() == list(COLOURS).index("green")
    assert video.record.digest == content_digest(source)


def test_copies_have_one_digest_and_other_videos_another(clips: Path, tmp_path: Path) -> None:
    shutil.copy(clips / "0.mp4", tmp_path / "copy.mkv")
    found = encode(sources(clips / "0.mp4", clips / "1.mp4", tmp_path / "copy.mkv"))
    assert found["0.mp4"].record.digest == found["copy.mkv"].record.digest
    assert found["0.mp4"].record.digest != found["1.mp4"].record.digest
    assert found["0.mp4"].record.digest == content_digest(sources(clips / "0.mp4")[0])


def test_one_bad_file_costs_only_itself(clips: Path, tmp_path: Path) -> None:
    (tmp_path / "noise.mp4").write_bytes(np.random.default_rng(0).bytes(5000))
    (tmp_path / "empty.mp4").touch()
    found = encode(sources(tmp_path, clips))
    assert len(found) == 8
    for name in ("noise.mp4", "empty.mp4"):
        assert found[name].record.reason and not found[name].record.transient
        assert found[name].windows == []
    assert sum(not v.record.reason for v in found.values()) == 6


@pytest.mark.parametrize(
    "error",
    [ValueError("odd"), ZeroDivisionError(), MemoryError(), KeyError("x"), RecursionError("deep")],
)
def test_whatever_decoding_raises_becomes_the_error_of_that_video(
    clips: Path, error: Exception
) -> None:
    class Picky(TinyEncoder):
        def prepare(
            self, frames: UInt8[np.ndarray, "frames height width 3"]
        ) -> UInt8[np.ndarray, "frames 3 16 16"]:
            if frames.shape[2] == WIDE:
                raise error
            return super().prepare(frames)

    found = encode(sources(clips), Picky())
    for number in range(6):
        record = found[f"{number}.mp4"].record
        assert (type(error).__name__ in record.reason) == (number % 2 == 0)
        assert not record.transient


def test_what_the_system_refuses_may_be_granted_next_time(clips: Path) -> None:
    class Refused(TinyEncoder):
        def prepare(
            self, frames: UInt8[np.ndarray, "frames height width 3"]
        ) -> UInt8[np.ndarray, "frames 3 16 16"]:
            raise PermissionError(13, "Permission denied")

    (video,) = encode(sources(clips / "0.mp4"), Refused()).values()
    assert video.record.transient
    assert video.record.reason == "permission denied"


def test_an_error_of_the_encoder_itself_is_not_the_videos(clips: Path) -> None:
    class Broken(TinyEncoder):
        def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 16 16"]) -> FrameFeatures:
            raise RuntimeError("out of memory on the GPU")

    with pytest.raises(RuntimeError, match="GPU"):
        encode(sources(clips), Broken())
    assert not decoding_threads()


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e5])
def test_a_video_of_which_the_model_gives_no_numbers_fails_alone(clips: Path, value: float) -> None:
    class Odd(TwoShapes):
        def encode_frames(
            self, prepared: Shaped[np.ndarray, "frames 3 side side"]
        ) -> FrameFeatures:
            features = super().encode_frames(prepared)
            if prepared.shape[-1] < 16:
                features.frames[:, 0] = value
            return features

    found = encode(sources(clips), Odd())
    for number in range(6):
        video = found[f"{number}.mp4"]
        failed = number % 2 == 0
        assert (video.record.reason.endswith("(NaN)"), not video.windows) == (failed, failed)


def test_one_video_that_fails_raises_its_reason(tmp_path: Path) -> None:
    (tmp_path / "v.mp4").touch()
    with pytest.raises(VideoError, match=r"^is empty \(0 bytes\)$"):
        encode_video(sources(tmp_path)[0], SETTINGS, TINY)


class Meddler(TinyEncoder):
    """Changes a file while it is being read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> UInt8[np.ndarray, "frames 3 16 16"]:
        with self.path.open("ab") as file:
            file.write(b"more")
        os.utime(self.path, ns=(1, 1))
        return super().prepare(frames)


def test_a_file_that_changes_while_it_is_read_is_tried_again_next_time(tmp_path: Path) -> None:
    path = coloured(tmp_path / "v.mp4", ["red"])
    with pytest.raises(VideoError, match="changed while it was being read") as caught:
        encode_video(sources(path)[0], SETTINGS, Meddler(path))
    assert caught.value.transient


def test_a_folder_of_frames_that_changes_while_it_is_read_is_tried_again(tmp_path: Path) -> None:
    for number in range(4):
        Image.new("RGB", (32, 32)).save(tmp_path / f"{number}.png")
    with pytest.raises(VideoError, match="changed while it was being read") as caught:
        encode_video(sources(tmp_path)[0], SETTINGS, Meddler(tmp_path / "2.png"))
    assert caught.value.transient


def decoding_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("decode-")]


def test_the_progress_of_each_video_grows_to_the_whole(clips: Path) -> None:
    told: dict[Path, list[VideoProgress]] = defaultdict(list)
    for one in encode_videos(sources(clips), SETTINGS, TINY, workers=2):
        if isinstance(one, VideoProgress):
            told[one.path].append(one)
            continue
        # A machine that is slow at a window reports from the middle of it as well.
        ends = [window.end for window in one.windows]
        video = [now for now in told[one.record.path] if now.seconds in ends]
        count, size = len(one.windows), one.record.size
        expected = [size * (number + 1) / count for number in range(count)]
        assert [now.bytes for now in video] == pytest.approx(expected, abs=0.1 * size)
        assert [now.seconds for now in video] == ends


def test_a_window_that_takes_long_has_progress_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sureshot.library.encoding._REPORTED", 0.0)
    path = coloured(tmp_path / "slow.mp4", ["red"], seconds=4, rate=5)
    *before, whole, video = encode_videos(sources(path), SETTINGS, TINY)
    assert isinstance(video, EncodedVideo) and len(video.windows) == 1
    # Of each frame: large ones may take longer than a window should.
    assert [one.seconds for one in before] == pytest.approx(np.arange(20) / 5)
    shares = [one.bytes / path.stat().st_size for one in (*before, whole)]
    assert shares == pytest.approx(np.arange(21) / 20, abs=0.01)


def test_a_video_of_unknown_length_claims_no_progress(
    clips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sureshot.media.video._claimed_duration", lambda container, stream: 0.0)
    encoded = encode_videos(sources(clips / "1.mp4"), SETTINGS, TINY)
    assert [one.bytes for one in encoded if isinstance(one, VideoProgress)] == [0, 0]


def test_no_thread_outlives_a_stop_while_the_queue_is_full(tmp_path: Path) -> None:
    path = coloured(tmp_path / "long.mp4", list(COLOURS) * 6, rate=5)
    watched = Watched()
    videos = encode_videos(
        sources(path, coloured(tmp_path / "v.mp4", ["red"])), SETTINGS, watched, workers=2
    )
    next(videos)
    before = -1
    while before != watched.windows:  # until the decoder waits for room
        before = watched.windows
        time.sleep(0.3)
    assert before < 49
    videos.close()
    assert not decoding_threads()


def test_memory_is_bounded_by_the_queue_however_long_the_video(tmp_path: Path) -> None:
    path = coloured(tmp_path / "long.mp4", list(COLOURS) * 6, rate=5)
    watched = Watched()
    # Every frame its own, so that a batch is of four windows; of still ones it is of 32.
    settings = replace(SETTINGS, still=0.0)
    (video,) = encode(sources(path), watched, settings).values()
    assert len(video.windows) == 48
    # 12 in the queue, those of one batch, one in the hand of each thread.
    assert watched.most <= 12 + 4 + 2


def test_a_frame_that_hardly_differs_takes_the_vector_of_the_one_before(tmp_path: Path) -> None:
    chosen = sources(film(tmp_path / "a.mp4", greys([60] * 40 + [64] * 40 + [120] * 40), rate=20))
    found, batches = [], []
    for still in (16.0, 0.0):
        watched = Watched()
        whole = IndexSettings(model="tiny", scenes=False, still=still)
        (video,) = encode(chosen, watched, whole).values()
        found.append(video)
        batches.append(sum(watched.batches))
    (shared,), (own,) = found[0].windows, found[1].windows
    assert batches == [2, len(own.times)]
    assert len(shared.times) == 12
    for frame, second in zip(shared.frames, shared.times, strict=True):
        np.testing.assert_array_equal(frame, shared.frames[0 if second < 4 else -1])
    assert (shared.frames[0] != shared.frames[-1]).any()


def test_threads_of_linear_algebra_do_not_wait_while_frames_are_encoded(clips: Path) -> None:
    seen = []

    class Asking(TinyEncoder):
        def encode_frames(self, prepared: UInt8[np.ndarray, "frames 3 16 16"]) -> FrameFeatures:
            seen.extend(pool["num_threads"] for pool in threads())
            return super().encode_frames(prepared)

    def threads() -> list[dict[str, Any]]:
        return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    encode(sources(clips), Asking())
    assert seen and set(seen) == {1}
    assert threads() == before


def sources_packing(folder: Path) -> list[Source]:
    coloured(folder / "a.mp4", ["red", "green"], rate=5)
    (folder / "bad.mp4").write_text("no video")
    return [source for source in discover([folder]) if isinstance(source, Source)]


def test_a_staged_video_is_whole_or_the_reason_why_it_is_none(tmp_path: Path) -> None:
    store, found = make_store(tmp_path / "index"), sources_packing(tmp_path)
    packed = list(pack_videos(store, TinyEncoder(), found, workers=1))
    staged = {v.record.path.name: v for v in packed if isinstance(v, StagedVideo)}
    whole, bad = staged["a.mp4"], staged["bad.mp4"]
    assert (whole.record.windows, len(whole.files), whole.record.reason) == (2, 1, "")
    assert whole.record.digest
    assert whole.record.check_windows
    assert (bad.record.windows, bad.files) == (0, ())
    assert "not a video" in bad.record.reason
    assert {v.path.name for v in packed if isinstance(v, VideoProgress)} == {"a.mp4"}
    assert (store.count(), store.videos()) == (0, [])
    store.commit(list(staged.values()))
    assert store.count() == 2
    assert store.lost(thorough=True) == []


RED, BLUE = np.eye(8, dtype=np.float32)[:2]


def decoded(*shown, seconds=1.0, start=0.0):
    """A window of one frame a second."""
    count = len(shown)
    times = start + (np.arange(count) + 0.5) * seconds
    return EncodedWindow(
        start=start,
        end=start + count * seconds,
        times=times,
        signatures=np.repeat(times[:, None].astype(np.uint8), 288, 1),
        frames=np.stack(shown),
    )


def spans(windows):
    return [(w.start, w.end) for w in windows]


def test_a_scene_that_fades_within_a_window_ends_there_and_goes_on_over_the_next():
    mixed = (RED + BLUE) / 2
    first = decoded(*[RED] * 7, mixed, BLUE, BLUE)
    second = decoded(*[BLUE] * 10, start=10.0)
    one, two = by_scene([(first, False), (second, True)], longest=30.0, max_frames=12)
    assert one.start == 0 and 7 <= one.end == two.start <= 8 and two.end == 20
    assert (one.frames[:7] == RED).all() and (two.frames[-10:] == BLUE).all()


def test_no_scene_goes_on_over_a_cut():
    one, two = decoded(*[RED] * 5), decoded(*[RED] * 5, start=5.0)
    cut = by_scene([(one, False), (two, False)], longest=30.0, max_frames=12)
    assert spans(cut) == spans([one, two])
    whole = by_scene([(one, False), (two, True)], longest=30.0, max_frames=12)
    assert spans(whole) == [(0, 10)]


def test_a_window_keeps_so_many_frames_evenly_and_all_that_belongs_to_them():
    windows = [decoded(*[RED] * 10, start=10.0 * n) for n in range(3)]
    (window,) = by_scene(
        [*zip(windows, [False, True, True], strict=True)], longest=30.0, max_frames=6
    )
    assert window.times.tolist() == [2.5, 7.5, 12.5, 17.5, 22.5, 27.5]
    assert window.signatures[:, 0].tolist() == [int(time) for time in window.times]


def test_a_scene_is_no_longer_than_a_window_may_be():
    windows = [decoded(*[RED] * 10, start=10.0 * n) for n in range(7)]
    pairs = [(one, one.start > 0) for one in windows]
    found = by_scene(pairs, longest=30.0, max_frames=12)
    assert spans(found) == [(0, 30), (30, 60), (60, 70)]


def test_a_long_film_is_settled_as_it_comes_and_nothing_of_it_is_lost():
    colours = [RED if n // 5 % 2 else BLUE for n in range(400)]
    scenes = [decoded(*[colour] * 10, start=10.0 * n) for n, colour in enumerate(colours)]
    film, plain = (SceneMerger(IndexSettings(frames=6, scenes=scenes)) for scenes in (True, False))
    for number, window in enumerate(scenes):
        film.add(window, follows=number > 0)
        plain.add(window, follows=number > 0)
    assert spans(plain.windows()) == spans(scenes)
    found = film.windows()
    assert found[0].start == 0 and found[-1].end == 4000
    assert all(one.end == two.start for one, two in pairwise(found))
    assert {50.0 * n for n in range(80)} <= {window.start for window in found}
    assert all(len(np.unique(window.frames, axis=0)) == 1 for window in found)
    assert max(len(window.times) for window in found) == 6


PATHS = [Path(f"/videos/{number}.mp4") for number in range(500)]
SECOND_OF_THREE = ["1", "4", "10"]


def test_each_video_is_in_one_share_of_about_the_size_of_the_others() -> None:
    shares = [Shard(number, 4) for number in range(1, 5)]
    assert all(sum(share.has(path) for share in shares) == 1 for path in PATHS)
    assert all(80 < sum(map(share.has, PATHS)) < 170 for share in shares)
    assert all(map(WHOLE.has, PATHS))


def test_a_share_is_the_same_wherever_it_is_asked_for() -> None:
    assert [p.stem for p in PATHS[:12] if Shard.parse(" 2/3 ").has(p)] == SECOND_OF_THREE


@pytest.mark.parametrize("text", ["17/16", "0/4", "3", "a/b", "-1/2", "1/0", "", "1/2/3"])
def test_what_is_no_share_is_told(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"Invalid --shard .*: use K/N"):
        Shard.parse(text)


ANY = {"shortest": 1.5, "longest": 30.0}


def shots(*lengths, noise=0.02, dim=16, seed=0, fade=0):
    """Vectors of shots of so many frames, the first ``fade`` of each mixed with the one before."""
    rng = np.random.default_rng(seed)
    scenes = rng.standard_normal((len(lengths), dim))
    rows = np.concatenate([np.repeat(s[None], n, 0) for s, n in zip(scenes, lengths, strict=True)])
    for first in np.cumsum(lengths[:-1]):
        old, new = rows[first - 1].copy(), rows[first + fade].copy()
        for step in range(fade):
            share = (step + 1) / (fade + 1)
            rows[first + step] = (1 - share) * old + share * new
    return rows + noise * rng.standard_normal(rows.shape)


def found(frames, lasting=None, price=None, **limits):
    lasting = np.ones(len(frames)) if lasting is None else lasting
    price = price_of(frames, lasting) if price is None else price
    return parts(frames, lasting, price=price, **ANY | limits)


def cost(frames, lasting, firsts, price):
    """What a parting costs, as the equation has it."""
    total = 0.0
    for first, after in pairwise([*firsts, len(frames)]):
        inside, weights = unit_vectors(frames[first:after]), lasting[first:after]
        mean = np.average(inside, axis=0, weights=weights)
        total += price + (weights * ((inside - mean) ** 2).sum(1)).sum()
    return total


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(0, 1000), st.floats(0.01, 3.0))
def test_no_parting_is_cheaper(count, seed, price):
    rng = np.random.default_rng(seed)
    frames, lasting = rng.standard_normal((count, 3)), rng.uniform(0.1, 2.0, count)
    chosen = found(frames, lasting, price, shortest=0.0)
    every = ([0, *later] for most in range(count) for later in combinations(range(1, count), most))
    least = min(cost(frames, lasting, firsts, price) for firsts in every)
    assert cost(frames, lasting, chosen, price) == pytest.approx(least, abs=1e-6)


def test_shots_are_told_apart_at_cuts_and_in_fades():
    assert found(shots(5, 9, 4)) == [0, 5, 14]
    (first, faded, other) = found(shots(6, 9, 7, fade=2))
    assert first == 0 and 6 <= faded <= 8 and 15 <= other <= 17


@pytest.mark.parametrize("change", ["scale", "turn", "cone"])
def test_any_encoder_will_do(change):
    frames = shots(6, 9, 7)
    if change == "scale":
        frames = 1000 * frames
    elif change == "turn":
        frames = frames @ np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    else:  # all frames lie close together, as those of CLIP do
        frames = unit_vectors(frames) + 3 * np.eye(16)[0]
    assert found(frames) == [0, 6, 15]


def test_one_shot_stays_whole_however_it_shakes():
    for seed in range(20):
        assert found(shots(25, noise=0.3, seed=seed)) == [0]


def test_a_slow_drift_is_parted_seldom():
    turn = np.linspace(0, np.pi / 2, 24)
    drift = np.stack([np.cos(turn), np.sin(turn)], 1)
    assert np.diff([*found(drift), 24]).min() >= 5


def test_what_stands_still_is_parted_by_length_from_its_start():
    frames = np.ones((70, 4))
    assert found(frames) == [0, 30, 60]
    assert found(np.zeros((70, 4))) == [0, 30, 60]
    assert found(frames[:1], np.array([45.0])) == [0]


def test_a_part_is_short_only_where_it_must_be():
    # A second of something else goes to one of its neighbours.
    assert found(shots(8, 1, 8, noise=0.0)) in ([0, 8], [0, 9])
    assert found(shots(1)) == [0]
    assert found(shots(1, 6, noise=0.0), longest=6.0, price=0.01) == [0, 2]


def test_seconds_count_not_frames():
    # Short scenes are sampled more densely; a frame weighs what it lasts.
    frames = shots(12, 12)
    assert found(frames, np.repeat([0.25, 2.0], 12)) == [0, 12]
    assert 12 not in found(frames, np.repeat([0.05, 2.0], 12))  # 0.6 s is no scene
