"""The rows of a contact sheet, fetched from real videos."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from sureshot.library.clips import sheet_rows
from sureshot.library.results import FrameScore
from sureshot.library.search import open_index
from sureshot.models.encoders.toy import COLOURS
from tests.clips import coloured
from tests.small_library import index


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


def shown(row):
    """Name of the colour that each frame of a row is nearest to."""
    names, colours = list(COLOURS), np.array(list(COLOURS.values()))
    means = [frame.image.reshape(-1, 3).mean(0) for frame in row.frames]
    return [names[np.linalg.norm(colours - mean, axis=1).argmin()] for mean in means]


def test_a_row_shows_the_frames_of_its_hit(searcher):
    answer = searcher.search("green", limit=1)
    (row,) = sheet_rows(answer, 1.0)
    assert set(shown(row)) == {"green"}
    assert [(f.time, f.score) for f in row.frames] == [(f.time, f.score) for f in answer[0].frames]


def test_a_row_says_rank_name_range_score_and_folder(searcher):
    answer = searcher.search("green", limit=1)
    (row,) = sheet_rows(answer, 1.0)
    assert row.title == "1. scenes.mp4"
    assert row.subtitle == f"0:04-0:08 · score 1.000 · in {answer[0].path.parent.name}"


def test_a_row_counts_the_copies_of_its_hit(searcher):
    (row,) = sheet_rows(searcher.search("white", limit=1), 1.0)
    assert row.subtitle.endswith(" · 1 copy elsewhere")


def test_there_is_a_row_for_each_hit_and_none_for_no_hit(searcher, tmp_path):
    answer = searcher.search("red")
    assert [row.title[:2] for row in sheet_rows(answer, 1.0)] == [f"{h.rank}." for h in answer]
    assert sheet_rows(searcher.search("red", folder=tmp_path), 1.0) == []


@pytest.mark.parametrize("count", [1, 2, 11, 12, 13, 24, 25, 1000])
@pytest.mark.parametrize("best", [0.0, 0.5, 1.0])
def test_of_many_frames_a_dozen_are_drawn_the_best_among_them(searcher, count, best):
    answer = searcher.search("green", limit=1)
    times = np.linspace(4.0, 7.9, count)
    at = round(best * (count - 1))
    frames = tuple(FrameScore(t.item(), float(i == at)) for i, t in enumerate(times))
    (row,) = sheet_rows(replace(answer, hits=(replace(answer[0], frames=frames),)), 1.0)
    assert max(1, min(count, 12) // 2) <= len(row.frames) <= 12
    assert sum(frame.score for frame in row.frames) == 1.0
    assert [f.time for f in row.frames] == sorted(f.time for f in row.frames)


def test_a_video_that_vanished_or_broke_gives_a_row_that_says_so(tmp_path):
    for name in ("gone", "broken", "there"):
        coloured(tmp_path / f"{name}.mp4", ["red"], seconds=1)
    index(str(tmp_path / "index"), tmp_path)
    (tmp_path / "gone.mp4").unlink()
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    rows = {
        row.title[3:]: row
        for row in sheet_rows(open_index(tmp_path / "index").search("red", merge_copies=False), 1.0)
    }
    assert rows["there.mp4"].frames
    assert rows["gone.mp4"].subtitle.endswith("cannot be shown, the video has vanished")
    assert "cannot be shown, the video" in rows["broken.mp4"].subtitle
    assert not rows["gone.mp4"].frames + rows["broken.mp4"].frames


def test_frames_of_a_folder_come_at_its_rate(tmp_path):
    from PIL import Image

    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(8):
        colour = "blue" if number < 4 else "red"
        Image.new("RGB", (32, 24), COLOURS[colour]).save(folder / f"{number}.png")
    index(str(tmp_path / "index"), folder, frame_rate=2.0)
    answer = open_index(tmp_path / "index").search("red", limit=1)
    (row,) = sheet_rows(answer, 2.0)
    assert answer[0].start == pytest.approx(2.0)
    assert set(shown(row)) == {"red"}
    shutil.rmtree(folder)
    assert "cannot be shown" in sheet_rows(answer, 2.0)[0].subtitle
