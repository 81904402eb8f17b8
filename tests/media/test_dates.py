"""When a video was recorded, by what its file says."""

import os
import time
from datetime import UTC, date, datetime
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from sureshot.media.dates import Shot, read_shot, video_date
from sureshot.media.discover import Source
from tests.clips import coloured

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
KEY = "com.apple.quicktime.creationdate"


def written(path: Path, whole: dict[str, str], track: dict[str, str] | None = None) -> Source:
    """A video with metadata, of the whole and of its track."""
    with av.open(path, "w", options={"movflags": "use_metadata_tags"}) as container:
        container.metadata.update(whole)
        stream = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        stream.metadata.update(track or {})
        for number in range(5):
            frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return Source(path=path, kind="file", size=path.stat().st_size, mtime_ns=0)


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch):
    """Moves this computer to another time zone."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv"])
def test_the_date_of_a_container_is_read(tmp_path: Path, suffix: str) -> None:
    source = written(tmp_path / f"a.{suffix}", {"creation_time": "2024-05-31T12:03:22Z"})
    assert read_shot(source, now=NOW) == Shot("2024-05-31T12:03:22+00:00", "creation_time")


@pytest.mark.parametrize(
    ("whole", "found"),
    [
        (
            {KEY: "2024-05-31T14:03:22+0200", "creation_time": "2024-05-31T12:03:22Z"},
            ("2024-05-31T14:03:22+02:00", "quicktime"),
        ),
        # The clock of a camera that was never set, and one that is set to a year ahead.
        ({"creation_time": "1970-01-01T00:00:09Z"}, ("", "")),
        ({"creation_time": "2025-05-31T12:03:22Z"}, ("", "")),
        (
            {KEY: "1904-01-01T00:00:00+0000", "creation_time": "2024-05-31T12:03:22Z"},
            ("2024-05-31T12:03:22+00:00", "creation_time"),
        ),
        ({"creation_time": "2024-06-02T01:00:00Z"}, ("2024-06-02T01:00:00+00:00", "creation_time")),
        ({KEY: "last summer"}, ("", "")),
        ({KEY: "2024-02-31T14:03:22+0200"}, ("", "")),
        ({}, ("", "")),
    ],
)
def test_the_best_believable_date_counts(tmp_path: Path, whole, found) -> None:
    source = written(tmp_path / "a.mov", whole)
    assert read_shot(source, now=NOW.replace(hour=2, day=1)) == Shot(*found)


def test_a_folder_of_frames_has_the_date_of_its_first_photo(tmp_path: Path) -> None:
    stamps = [("2024:05:31 23:30:00", "+09:00"), ("2024:06:01 08:00:00", "")]
    for number, (stamp, offset) in enumerate(stamps):
        picture = Image.new("RGB", (32, 32), "red")
        tags = picture.getexif()
        tags.get_ifd(0x8769)[0x9003] = stamp
        if offset:
            tags.get_ifd(0x8769)[0x9011] = offset
        picture.save(tmp_path / f"{number}.jpg", exif=tags)
    folder = Source(path=tmp_path, kind="frames", size=1, mtime_ns=0)
    assert read_shot(folder, now=NOW) == Shot("2024-05-31T23:30:00+09:00", "exif")
    (tmp_path / "0.jpg").rename(tmp_path / "2.jpg")
    assert read_shot(folder, now=NOW) == Shot("2024-06-01T08:00:00", "exif")
    for file in tmp_path.iterdir():
        file.write_bytes(b"\xff\xd8 no picture")
    assert read_shot(folder, now=NOW) == Shot()


@pytest.mark.parametrize(
    "name, said",
    [
        ("VID-20240531-WA0003.mp4", "2024-05-31T12:00:00+02:00"),
        ("VID_20240531_140322.mp4", "2024-05-31T14:03:22+02:00"),
        ("VID20240531140322.mp4", "2024-05-31T14:03:22+02:00"),
        ("20240531_140322.mp4", "2024-05-31T14:03:22+02:00"),
        ("PXL_20240531_223022123.TS.mp4", "2024-06-01T00:30:22+02:00"),  # names in UTC
        ("video_2024-05-31_14-03-22.mp4", "2024-05-31T14:03:22+02:00"),
        ("signal-2024-05-31-140322.mp4", "2024-05-31T14:03:22+02:00"),
        ("Screen Recording 2024-05-31 at 14.03.22.mov", "2024-05-31T14:03:22+02:00"),
        ("Screen Recording 2024-05-31 at 2.03.22 PM.mov", "2024-05-31T12:00:00+02:00"),
        ("Screen Recording 2024-05-31 at 02.03.22 PM.mov", "2024-05-31T14:03:22+02:00"),
        ("Screen Recording 2024-05-31 at 12.03.22 AM.mov", "2024-05-31T00:03:22+02:00"),
        ("clip_20240531T223022Z.mp4", "2024-06-01T00:30:22+02:00"),
        ("2024-05-31 garden.mp4", "2024-05-31T12:00:00+02:00"),
        ("20240231 then 2024-05-31.mp4", "2024-05-31T12:00:00+02:00"),
        *(
            (name, "")
            for name in ("video7010.mp4", "20240231.mp4", "1920x1080.mp4", "29990101.mp4")
        ),
        *((name, "") for name in ("MVI_2024.mp4", "x20240531.mp4", "120240531.mp4", "2024053.mp4")),
    ],
)
def test_a_date_in_the_name_of_a_file_goes_before_its_last_change(in_zone, name, said) -> None:
    in_zone("Europe/Berlin")
    found = video_date("", "", 0, name)
    assert (found.text, found.source) == ((said, "name") if said else (found.text, "file"))
    assert video_date("2001-01-01T00:00:00Z", "quicktime", 0, name).source == "quicktime"


def test_what_cannot_be_read_has_no_date(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    source = Source(path=path, kind="file", size=1, mtime_ns=0)
    assert read_shot(source) == Shot()
    path.write_bytes(os.urandom(5000))
    assert read_shot(source) == Shot()
    os.truncate(coloured(path, ["red"], seconds=1), 600)
    assert read_shot(source) == Shot()


def test_a_day_is_that_of_the_place_or_of_this_computer(in_zone) -> None:
    in_zone("Europe/Berlin")
    # Half past midnight in Berlin; the camera knows the time zone, or the file has UTC.
    assert video_date("2023-12-31T23:30:00+00:00", "creation_time", 0).day == date(2024, 1, 1)
    assert video_date("2023-12-31T23:30:00-05:00", "quicktime", 0).day == date(2023, 12, 31)
    assert video_date("2023-12-31T23:30:00", "exif", 0).text == "2023-12-31T23:30:00+01:00"
    # An AVI has the time of the place, and no zone.
    assert video_date("2023-12-31T23:30:00", "creation_time", 0).day == date(2023, 12, 31)
    noon = int(datetime(2024, 7, 1, 22, 30, tzinfo=UTC).timestamp()) * 10**9
    assert video_date("", "", noon)[:] == (
        datetime.fromtimestamp(noon // 10**9).astimezone(),
        "file",
    )
    assert video_date("", "", noon).day == date(2024, 7, 2)
    assert video_date("", "", 10**21).text == "" and video_date("", "", 10**21).day is None
