"""Moments for editors and players, read back by what others wrote to read them."""

import csv
import io
import os
import shutil
import subprocess
import urllib.parse
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import lazy_loader
import numpy as np
import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.library.clips import export
from sureshot.library.results import Answer, FrameScore, Hit
from sureshot.library.timelines import FORMATS, read_moment
from sureshot.media.timecode import frame_number, read_timing, timecode
from tests.clips import coloured, film, greys, patterns, remuxed

opentimelineio = lazy_loader.load("opentimelineio")

NTSC = Fraction(30000, 1001)
QUERY = 'a "goal" & <more>|x'


def recorded(
    path,
    *,
    rate=Fraction(25),
    code="",
    codec="libx264",
    pixels="yuv420p",
    seconds=4,
    late=0,
    pixel=None,
):
    """A film of grey that gets lighter, and a tone, with a timecode as a camera writes it.

    Args:
        late: seconds of sound before the first picture.
        pixel: width of a pixel over its height.
    """
    with av.open(path, "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 64, 48, pixels, 10
        if pixel:
            stream.codec_context.sample_aspect_ratio = pixel
        stream.codec_context.time_base = 1 / Fraction(rate)
        if code:
            stream.metadata["timecode"] = code
        audio = container.add_stream("pcm_s16le", rate=48_000)
        audio.layout = "stereo"
        for number, picture in enumerate(greys(np.linspace(20, 220, round(seconds * rate)))):
            frame = av.VideoFrame.from_ndarray(np.resize(picture, (48, 64, 3)), "rgb24")
            frame.pts, frame.time_base = number + round(late * rate), 1 / Fraction(rate)
            container.mux(stream.encode(frame))
        for number in range(round((seconds + late) * 50)):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1920), np.int16), "s16", "stereo")
            frame.sample_rate, frame.pts = 48_000, number * 960
            container.mux(audio.encode(frame))
        for one in (stream, audio):
            container.mux(one.encode(None))
    return path


def hit(path, rank=1, start=1.0, end=2.0, likely=0.87):
    frames = (FrameScore(start + 0.2, 0.5),)
    return Hit(rank, Path(path), start, end, 0.5, frames, probability=likely)


def answer(*hits):
    return Answer(QUERY, hits, "confident", "tiny", 9, 0.0)


def written(format, to, *hits, **options):
    """The one file of a format."""
    exported = export(answer(*hits), to, format=format, **options)
    assert not exported.failed
    (path,) = exported.written
    return path


@pytest.fixture(scope="module")
def camera(tmp_path_factory):
    folder = tmp_path_factory.mktemp("camera")
    return recorded(folder / "a.mov", rate=NTSC, code="01:00:59;20")


@pytest.fixture(scope="module")
def cinema(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cinema")
    code = "10:20:30:05"
    return recorded(folder / "b.mov", rate=24, code=code, codec="prores_ks", pixels="yuv422p10le")


def test_drop_frame_leaves_out_two_numbers_a_minute_but_each_tenth():
    for written_, frame in (
        ("00:00:59;29", 1799), ("00:01:00;02", 1800), ("00:09:59;29", 17981),
        ("00:10:00;00", 17982), ("01:00:00;00", 107892), ("23:59:59;29", 2589407),
    ):  # fmt: skip
        assert timecode(frame, NTSC, drop=True) == written_
        assert frame_number(written_, NTSC, drop=True) == frame
    assert timecode(2589408, NTSC, drop=True) == "00:00:00;00"
    assert timecode(3600, 2 * NTSC, drop=True) == "00:01:00;04"
    assert timecode(1800, NTSC) == "00:01:00:00"


@pytest.mark.parametrize("suffix", ["mov", "mp4", "mkv"])
@pytest.mark.parametrize(
    ("rate", "code"),
    [
        (NTSC, "00:59:59;20"),
        (NTSC, "00:59:59:20"),
        (Fraction(24000, 1001), "01:00:00:00"),
        (50, ""),
    ],
)
def test_rate_and_timecode_are_those_of_the_camera(tmp_path, suffix, rate, code):
    clip = tmp_path / f"a.{suffix}"
    with av.open(clip, "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = 1 / Fraction(rate)
        if code:
            stream.metadata["timecode"] = code
        for number in range(100):
            frame = av.VideoFrame.from_ndarray(greys([9], (64, 48))[0], "rgb24")
            frame.pts, frame.time_base = number, 1 / Fraction(rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    timing = read_timing(clip)
    assert (timing.rate, timing.varies, timing.length) == (rate, False, 100)
    assert timing.timecode(0) == (code or "00:00:00:00")
    assert timing.sound is None


def test_a_rate_that_is_not_stated_is_measured_and_a_portrait_is_upright(tmp_path):
    clip = film(tmp_path / "a.mp4", greys(range(10, 250, 4), (64, 48)), rate=25, turned=90)
    timing = read_timing(remuxed(clip, tmp_path / "a.mkv"))  # which leaves the rate out
    assert (timing.rate, timing.varies) == (25, False)
    timing = read_timing(clip)
    assert (timing.width, timing.height) == (48, 64)


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_rate_that_varies_is_said(tmp_path, suffix):
    times = [40 * n + (40 * (n // 20)) for n in range(60)]  # now and then a frame is left out
    clip = film(tmp_path / f"a.{suffix}", greys(range(20, 200, 3)), times=times)
    timing = read_timing(clip)
    assert timing.varies and timing.rate == 25
    exported = export(answer(hit(clip)), tmp_path, format="csv")
    assert f"The frame rate varies in a.{suffix} (25 taken)" in exported.remark


def test_otio_opens_with_times_of_the_cameras(camera, cinema, tmp_path):
    path = written("otio", tmp_path, hit(camera), hit(cinema, 2, 0.5, 9.0))
    timeline = opentimelineio.adapters.read_from_file(str(path))
    video, audio = timeline.tracks
    assert (video.kind, audio.kind) == ("Video", "Audio")
    first, second = video
    assert first.source_range.start_time.to_timecode() == "01:01:00;21"
    assert first.duration().value == 31  # from the frame on screen at 1 s to that at 2 s
    assert urllib.parse.unquote(first.media_reference.target_url) == f"file://{camera}"
    assert first.media_reference.available_range.start_time.to_timecode() == "01:00:59;20"
    (marker,) = first.markers
    assert marker.name == f"87% {QUERY}" and marker.metadata["sureshot"]["probability"] == 0.87
    assert first.source_range.contains(marker.marked_range)
    assert second.source_range.start_time.to_timecode() == "10:20:30:17"
    assert second.source_range.end_time_exclusive() == (
        second.media_reference.available_range.end_time_exclusive()
    )


def test_fcpxml_counts_in_frames_of_each_video(camera, cinema, tmp_path):
    path = written("fcpxml", tmp_path, hit(camera), hit(cinema, 2), hit(camera, 3, 2.0, 3.0))
    root = ElementTree.parse(path).getroot()
    formats = {f.get("id"): Fraction(f.get("frameDuration")[:-1]) for f in root.iter("format")}
    assets = {a.get("id"): a for a in root.iter("asset")}
    assert sorted(formats.values()) == [1 / NTSC, Fraction(1, 24)] and len(assets) == 2
    at = 0
    for clip in root.iter("asset-clip"):
        asset = assets[clip.get("ref")]
        step = formats[asset.get("format")]
        times = {k: Fraction(clip.get(k)[:-1]) for k in ("offset", "start", "duration")}
        assert times["offset"] == at and (times["offset"] * NTSC).denominator == 1
        assert (times["start"] / step).denominator == 1
        assert times["start"] >= Fraction(asset.get("start")[:-1])
        marker = clip.find("marker")
        assert times["start"] <= Fraction(marker.get("start")[:-1]) < times["start"] + 1
        assert marker.get("value") == f"87% {QUERY}"
        at += times["duration"]
    assert Fraction(root.find(".//sequence").get("duration")[:-1]) == at
    assert root.find(".//sequence").get("tcFormat") == "DF"
    assert assets[clip.get("ref")].get("audioRate") == "48000"


def test_no_clip_of_fcpxml_is_longer_than_its_media_and_pixels_have_their_shape(camera, tmp_path):
    wide = recorded(tmp_path / "wide.mov", rate=25, seconds=2, pixel=Fraction(64, 45))
    path = written("fcpxml", tmp_path / "out", hit(camera), hit(wide, 2, 0.0, 2.0))
    root = ElementTree.fromstring(path.read_text("utf-8"))
    assets = {one.get("id"): one for one in root.iter("asset")}

    def seconds(element, name):
        return Fraction(element.get(name).removesuffix("s"))

    for clip in root.iter("asset-clip"):
        media = assets[clip.get("ref")]
        end = seconds(media, "start") + seconds(media, "duration")
        assert seconds(clip, "start") + seconds(clip, "duration") <= end
    shapes = [(one.get("paspH"), one.get("paspV")) for one in root.iter("format")]
    assert shapes == [(None, None), ("64", "45")]


def test_players_count_from_the_beginning_of_the_file_and_not_of_its_pictures(tmp_path):
    late = recorded(tmp_path / "late.mov", late=1.2)
    path = written("m3u", tmp_path, hit(late))
    assert "#EXTVLCOPT:start-time=2.2" in path.read_text("utf-8")
    assert ",start=2.2" in written("mpv", tmp_path, hit(late)).read_text("utf-8")
    assert ",1.000,2.000," in written("csv", tmp_path, hit(late)).read_text("utf-8")


def test_players_take_what_no_editor_counts_and_names_that_are_no_text(tmp_path):
    slow = recorded(tmp_path / "slow\udce9.mov", rate=Fraction(1, 2), seconds=8)
    path = written("m3u", tmp_path, hit(slow))
    assert "slow%E9.mov" in path.read_bytes().decode("utf-8")
    written("mpv", tmp_path, hit(slow))
    (tmp_path / "frames").mkdir()
    refused = export(answer(hit(tmp_path / "frames")), tmp_path / "out", format="m3u")
    assert "folder of frames" in refused.failed[0][1]


def test_an_edl_says_how_frames_are_counted_where_that_changes(camera, tmp_path):
    plain = recorded(tmp_path / "plain.mov", rate=NTSC, code="02:00:00:00")
    lines = written("edl", tmp_path, hit(camera), hit(plain, 2), hit(plain, 3)).read_text()
    modes = [line for line in lines.splitlines() if line.startswith("FCM")]
    assert modes == ["FCM: DROP FRAME", "FCM: NON-DROP FRAME"]


@pytest.mark.parametrize("format", ["edl", "markers"])
def test_a_moment_over_midnight_ends_after_it_begins(tmp_path, format):
    late = recorded(tmp_path / "late.mov", rate=25, code="23:59:58:24")
    span = hit(late, 1, 1.0, 2.0)
    text = written(format, tmp_path, span).read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("001 "))
    assert line.split()[4:6] == ["23:59:59:24", "24:00:00:24" if format == "edl" else "24:00:00:00"]
    rows = written("csv", tmp_path, span).read_text()
    assert "23:59:59:24,00:00:00:24" in rows  # as the camera shows them


@pytest.mark.parametrize("format", ["edl", "markers"])
def test_more_frames_a_second_than_an_edl_counts_are_named(camera, tmp_path, format):
    fast = recorded(tmp_path / "fast.mov", rate=120, code="")
    exported = export(answer(hit(fast), hit(camera, 2)), tmp_path, format=format)
    ((left, why),) = exported.failed
    assert (left, len(exported.written)) == (fast, 1)
    assert why == (
        "has 120 frames per second, and an EDL counts at most 100; export it as otio or fcpxml"
    )


def test_what_cannot_be_asked_for_is_refused_and_nothing_found_is_said(camera, tmp_path):
    for wrong in ({"min": 50}, {"min": -1}, {"min": float("nan")}, {"pad": -1}):
        with pytest.raises(ArgumentError, match=f"--{next(iter(wrong))} is"):
            export(answer(hit(camera)), tmp_path, format="csv", **wrong)
    with pytest.raises(ArgumentError, match="--pad is -1"):
        hit(camera).clip(tmp_path / "a.mp4", pad=-1)
    for name in ("goals.csv", "goal.mp4"):
        with pytest.raises(
            ArgumentError, match=rf"--to {name} is named like a file; name the folder"
        ):
            export(answer(hit(camera)), tmp_path / name, format="csv")
    assert export(answer(), tmp_path).remark == "No moment was found, so nothing was written."


def test_an_edl_is_read_and_holds_one_rate(camera, cinema, tmp_path):
    exported = export(answer(hit(camera), hit(cinema, 2), hit(camera, 3)), tmp_path, format="edl")
    (path,) = exported.written
    ((left, why),) = exported.failed
    assert left == cinema and why.startswith("has 24 frames per second and the first hit 29.97")
    assert path.read_text().splitlines()[1] == "FCM: DROP FRAME"
    timeline = opentimelineio.adapters.read_from_file(str(path), rate=float(NTSC))
    clips = [c for track in timeline.video_tracks() for c in track.find_clips()]
    assert [c.name for c in clips] == ["a.mov", "a.mov"]
    assert clips[0].source_range.start_time.to_timecode() == "01:01:00;21"
    assert [c.duration().value for c in clips] == [31, 31]
    assert "01:00:00;00 01:00:01;01" in path.read_text()


def test_markers_are_a_file_for_each_video(camera, cinema, tmp_path):
    later = hit(camera, 1, 2.0, 3.0)
    exported = export(answer(later, hit(cinema, 2), hit(camera, 3)), tmp_path, format="markers")
    one, two = exported.written
    assert one.name == "01 a a _goal_ & _more__x.markers.edl" and two.name.startswith("02 b ")
    timeline = opentimelineio.adapters.read_from_file(str(one), rate=float(NTSC))
    starts = [c.source_range.start_time.to_timecode() for c in timeline.find_clips()]
    assert starts == ["01:01:00;21", "01:01:01;21"]
    assert '|M:87% a "goal" & <more>/x |D:31' in one.read_text()


ODD = 'ä, "q" & <b> ]]> %41 ;\n#\x01.mov'


@pytest.fixture
def odd(camera, tmp_path):
    """The film under a name with all that a format might trip over."""
    folder = tmp_path / "odd"
    folder.mkdir()
    return Path(shutil.copy(camera, folder / ODD))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", [ODD, "caf\udce9.mov"], ids=["odd", "not UTF-8"])
def test_no_name_breaks_a_format(camera, tmp_path, format, name):
    clip = Path(shutil.copy(camera, tmp_path / name))
    path = (
        written(format, tmp_path / "out", hit(clip), hit(camera, 2, 2.0, 3.0))
        if format != "markers"
        else export(answer(hit(clip)), tmp_path / "out", format=format).written[0]
    )
    data = path.read_bytes()
    if format == "otio":
        (first, _) = opentimelineio.adapters.read_from_file(str(path)).tracks[0]
        url = first.media_reference.target_url
        assert urllib.parse.unquote_to_bytes(url) == b"file://" + os.fsencode(clip)
    elif format == "fcpxml":
        url = next(ElementTree.parse(path).iter("asset")).get("src")
        assert urllib.parse.unquote_to_bytes(url) == b"file://" + os.fsencode(clip)
    elif format == "csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 2 and rows[0]["query"] == QUERY
    elif format in ("edl", "markers"):
        assert data.decode().count("\n001 ") == 1 and b"\x01" not in data
    elif format == "m3u":
        lines = [line for line in data.split(b"\n") if line and not line.startswith(b"#")]
        assert len(lines) == 2
        found = lines[0].removeprefix(b"file://") if name != ODD else lines[0][7:]
        assert urllib.parse.unquote_to_bytes(found) == os.fsencode(clip)
    else:
        head, entry = data.split(b"\n", 1)
        length, rest = entry[1:].split(b"%", 1)
        assert head == b"# mpv EDL v0" and rest[: int(length)] == os.fsencode(clip)


@pytest.mark.skipif(not shutil.which("mpv"), reason="mpv is not installed")
@pytest.mark.parametrize("format", ["mpv", "m3u"])
def test_mpv_plays_what_is_written(odd, cinema, tmp_path, format):
    path = written(format, tmp_path / "out", hit(odd), hit(cinema, 2, 0.5, 1.5))
    playing = ["mpv", "--no-config", "--vo=null", "--ao=null", "--untimed", "--no-terminal"]
    (tmp_path / "seen.lua").write_text(
        'mp.register_event("file-loaded", function()\n'
        f'  local seen = io.open("{tmp_path}/seen", "a")\n'
        '  seen:write(mp.get_property("duration") .. "\\n") seen:close() end)\n'
    )
    playing += [f"--script={tmp_path}/seen.lua", str(path)]
    assert subprocess.run(playing, timeout=120, check=False).returncode == 0
    seen = [float(line) for line in (tmp_path / "seen").read_text().split()]
    # mpv knows no times in a playlist, and plays the whole videos.
    assert seen == pytest.approx([2.0] if format == "mpv" else [4.0, 4.0], abs=0.1)


def test_a_moment_after_the_length_that_a_file_states_keeps_its_own(tmp_path):
    """Of two recordings in one file the length of one is stated."""
    parts = [coloured(tmp_path / f"{n}.ts", ["red"], seconds=3).read_bytes() for n in range(2)]
    (tmp_path / "both.ts").write_bytes(b"".join(parts))
    hit = Hit(rank=1, path=tmp_path / "both.ts", start=4.0, end=5.0, score=0.5)
    moment = read_moment(hit, "red", 4.0, 5.0)
    first, last = moment.frames
    assert (moment.start, moment.end, last > first) == (4.0, 5.0, True)


def test_what_is_gone_or_has_no_frames_to_count_is_named(camera, tmp_path):
    frames = tmp_path / "frames"
    frames.mkdir()
    exported = export(
        answer(hit(tmp_path / "gone.mp4"), hit(frames, 2), hit(camera, 3)), tmp_path, format="otio"
    )
    assert len(exported.written) == 1
    reasons = dict(exported.failed)
    assert "does not exist" in reasons[tmp_path / "gone.mp4"]
    assert "has no timecode" in reasons[frames]
    assert len(written("csv", tmp_path, hit(frames), hit(camera, 2)).read_text().split("\n")) == 4


def test_a_line_break_in_a_name_begins_no_row_of_a_table(camera, tmp_path):
    odd = camera.with_name("b\r=1+1\n=2.mov")
    shutil.copy(camera, odd)
    table = written("csv", tmp_path, hit(odd)).read_bytes().decode()
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    assert row["video"].startswith(str(camera.parent / "b")) and row["end"]


def test_a_video_without_a_frame_rate_is_named(camera, tmp_path):
    clip = film(tmp_path / "a.ts", greys([90]), times=[0])
    exported = export(answer(hit(clip, 1, 0.0, 1.0), hit(camera, 2)), tmp_path, format="fcpxml")
    assert exported.failed == ((clip, "states no frame rate, which editors need"),)
    # One frame in five seconds is less than a timecode counts.
    slow = film(tmp_path / "slow.mp4", greys([10, 90, 170]), rate=1, times=[0, 5000, 10000])
    exported = export(answer(hit(slow, 1, 0.0, 5.0), hit(camera, 2)), tmp_path / "b", format="edl")
    assert (
        exported.failed[0][0] == slow
        and "frames per second, and editors count no fewer" in exported.failed[0][1]
    )
    for one in (clip, slow):
        table = written("csv", tmp_path, hit(one, 1, 0.0, 1.0), overwrite=True).read_text()
        assert [row["start_timecode"] for row in csv.DictReader(table.splitlines())] == [""]
    assert export(answer(hit(slow, 1, 0.0, 5.0)), tmp_path / "b").failed == ()


def test_nothing_is_half_written_or_replaced_unasked(camera, tmp_path):
    path = written("edl", tmp_path, hit(camera))
    path.write_text("mine")
    exported = export(answer(hit(camera)), tmp_path, format="edl")
    assert exported.failed == ((path, "exists already; --overwrite replaces it"),)
    assert path.read_text() == "mine"
    assert "FCM" in written("edl", tmp_path, hit(camera), overwrite=True).read_text()
    gone = export(answer(hit(tmp_path / "gone.mp4")), tmp_path / "none", format="otio")
    assert not gone.written and not list((tmp_path / "none").iterdir())
    with pytest.raises(SureshotError, match="There is no format 'xml'; choose clips, otio, fcpxml"):
        export(answer(hit(camera)), tmp_path, format="xml")
    for pad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(SureshotError, match=f"--pad is {pad:g}; give seconds, 0 or more"):
            export(answer(hit(camera)), tmp_path / "padded", pad=pad)
    for pad in ("soon", [1]):
        with pytest.raises(SureshotError, match="--pad"):
            export(answer(hit(camera)), tmp_path / "padded", pad=pad)
    assert not (tmp_path / "padded").exists()
    with pytest.raises(SureshotError, match="--copy is about clips"):
        export(answer(hit(camera)), tmp_path, format="edl", copy=True)


def test_hits_that_are_probably_wrong_are_not_listed_unless_asked(camera, tmp_path):
    weak = hit(camera, 2, likely=0.1)
    exported = export(answer(hit(camera), weak), tmp_path, format="csv")
    assert exported.left_out == 1 and "1 hit not listed: less likely right" in exported.remark
    lines = written("csv", tmp_path, hit(camera), weak, min=0.0, overwrite=True).read_text()
    assert len(lines.splitlines()) == 3


# Copies


def levels(path):
    """Codec, and the grey of each frame."""
    with av.open(path) as container:
        stream = container.streams.video[0]
        shown = [frame.to_ndarray(format="gray").mean() for frame in container.decode(stream)]
        return stream.codec_context.codec.canonical_name, np.array(shown)


def test_prores_stays_prores_frame_by_frame(cinema, tmp_path):
    exported = export(answer(hit(cinema)), tmp_path, copy=True)
    assert not exported.failed
    (path,) = exported.written
    assert path.name == "01 b 00.00.01-00.00.02 copy.mov"
    codec, shown = levels(path)
    assert codec == "prores"
    np.testing.assert_allclose(shown, levels(cinema)[1][24:48])
    timing = read_timing(path)
    assert timing.timecode(0) == "10:20:31:05" and timing.rate == 24 and timing.sound


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov", "ts"])
def test_a_copy_begins_with_the_keyframe_before(tmp_path, suffix):
    clip = film(tmp_path / f"a.{suffix}", greys(range(10, 250, 4)), rate=10, every=20)
    with av.open(clip) as container:
        video = container.streams.video[0]
        frames = list(container.decode(video))
    begins = max(n for n, frame in enumerate(frames[:26]) if frame.key_frame)
    exported = export(answer(hit(clip, 1, 3.0, 4.0)), tmp_path / "out", copy=True, pad=0.5)
    assert not exported.failed
    (path,) = exported.written
    assert path.name == f"01 a 00.00.{begins // 10:02}-00.00.05 copy.{suffix}"
    codec, shown = levels(path)
    assert codec == "h264"
    # Frames that are shown before the last one that is decoded may come with it.
    assert shown[: 45 - begins] == pytest.approx(levels(clip)[1][begins:45], abs=0.01)
    assert 45 - begins <= len(shown) <= 49 - begins
    with av.open(path) as container:
        assert next(container.decode(video=0)).time <= 0.3


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "mpg"])
def test_wherever_a_copy_ends_its_last_pictures_are_whole(tmp_path, suffix):
    codec = "mpeg2video" if suffix == "mpg" else "libx264"
    options = {"bf": "2", "qscale": "2"} if suffix == "mpg" else {"bf": "3", "crf": "5"}
    pictures = patterns(60)  # each unlike the last: nothing can stand in for a lost one
    clip = film(tmp_path / f"a.{suffix}", pictures, rate=25, every=24, codec=codec, options=options)
    with av.open(clip) as container:
        shown = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    for end in (1.48, 1.52, 1.56, 1.6, 2.1, 2.4):  # the last is in the last group of pictures
        moment = hit(clip, 1, end - 0.3, end)
        exported = export(answer(moment), tmp_path / f"{end}", copy=True)
        assert not exported.failed
        with av.open(exported.written[0]) as container:
            copied = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        first = int(np.argmin([np.abs(copied[0] - 1.0 * one).mean() for one in shown]))
        order = [
            int(np.argmin([np.abs(copy - 1.0 * one).mean() for one in shown])) for copy in copied
        ]
        assert order[: round(end * 25) - first] == [*range(first, round(end * 25))]
        assert order == sorted(set(order))
        assert (
            max(np.abs(c - 1.0 * shown[n]).mean() for c, n in zip(copied, order, strict=True)) < 1
        )


def test_times_of_matroska_that_are_rounded_make_no_frame_more_or_less(tmp_path):
    for rate in (Fraction(24000, 1001), Fraction(60)):
        clip = film(tmp_path / f"{rate.denominator}.mkv", greys(np.arange(200)), rate=rate)
        with av.open(clip) as container:
            times = [frame.time for frame in container.decode(video=0)]
        for start, end in ((0, 97), (97, 151), (151, 152), (152, 199)):
            moment = read_moment(hit(clip, 1), "q", times[start], times[end])
            assert moment.frames == (start, end)
            shown = replace(hit(clip, 1), frames=(FrameScore(times[end - 1], 0.5),))
            assert replace(moment, hit=shown).peak == end - 1


def test_what_cannot_be_copied_says_what_to_do(tmp_path):
    gif = film(tmp_path / "a.gif", greys(range(10, 250, 8)), codec="gif", pixels="rgb8")
    broken = tmp_path / "b.mp4"
    broken.write_text("no video")
    exported = export(answer(hit(gif), hit(broken, 2)), tmp_path / "out", copy=True)
    assert not exported.written and not list((tmp_path / "out").iterdir())
    (_, one), (_, two) = exported.failed
    assert "a.gif cannot be cut without encoding it" in one and "is not a video" in two


def test_a_clip_that_is_turned_stays_so(tmp_path):
    clip = film(tmp_path / "a.mp4", greys(range(10, 250, 4)), turned=90)
    (path,) = export(answer(replace(hit(clip), end=3.0)), tmp_path / "out", copy=True).written
    with av.open(path) as container:
        assert next(container.decode(video=0)).rotation % 360 == 90
