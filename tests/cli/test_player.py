"""Hits opened in a player, which is a script here that writes down how it was called."""

import shutil
import time
from pathlib import Path

import pytest

from sureshot.cli.search import player_of
from sureshot.errors import SureshotError
from tests.clips import coloured
from tests.small_library import index

SCRIPT = '#!/bin/sh\nprintf "%s\\n" "$0" "$@" > "{log}.part" && mv "{log}.part" "{log}"\n'


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs players on a machine that has none, and gives what one of them was told."""
    (tmp_path / "bin").mkdir()
    move = shutil.which("mv")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    log = tmp_path / "log"

    def install(*names):
        for name in names:
            script = tmp_path / "bin" / name
            script.write_text(SCRIPT.format(log=log).replace("mv", move))
            script.chmod(0o755)

    def told():
        until = time.monotonic() + 60
        while not log.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        program, *arguments = log.read_text().splitlines()
        return Path(program).name, *arguments

    install.told = told
    return install


def test_a_hit_is_played_from_its_best_second_on(sureshot, library, installed):
    installed("mpv", "vlc", "xdg-open")
    ran = sureshot("search", "green", "-k", "2", "--open", "1", "--db", library.db)
    video = library.videos / "scenes.mp4"
    assert ran.code == 0
    program, start, path = installed.told()
    assert (program, path) == ("mpv", str(video))
    assert 4 <= float(start.removeprefix("--start=")) <= 8
    assert ran.err == f"playing: mpv {start} {video}\n"
    assert "scenes.mp4" in ran.out


def test_a_desktop_that_cannot_be_told_a_second_is_told_the_file(sureshot, library, installed):
    installed("xdg-open")
    ran = sureshot("search", "green", "--open", "1", "--db", library.db, "--json")
    assert installed.told() == ("xdg-open", str(library.videos / "scenes.mp4"))
    assert "(the moment is at 0:0" in ran.err
    assert ran.out.count("\n") == 1


def test_a_machine_without_a_player_says_so_below_the_answer(sureshot, library, installed):
    ran = sureshot("search", "green", "--open", "1", "--db", library.db)
    assert ran.code == 1
    assert "scenes.mp4" in ran.out
    assert ran.err.startswith("sureshot: There is no player here; install mpv or vlc, or play ")
    assert len(ran.err.splitlines()) == 1


def test_each_system_has_its_own_way(library, installed, tmp_path):
    video = library.videos / "red.mp4"
    installed("open", "explorer")
    assert player_of(video, 1.0, platform="darwin").command == ("open", str(video))
    assert player_of(video, 1.0, platform="win32").command == ("explorer", str(video))
    with pytest.raises(SureshotError, match="no player"):
        player_of(video, 1.0, platform="linux")
    installed("vlc")
    assert player_of(video, 1.0).command == ("vlc", "--start-time=1.00", str(video))
    installed("xdg-open")
    assert player_of(tmp_path, 1.0, platform="linux").command == ("xdg-open", str(tmp_path))


@pytest.mark.parametrize("number", ["2", "9"])
def test_a_hit_that_is_not_there_cannot_be_opened(sureshot, library, installed, number):
    installed("mpv")
    ran = sureshot("search", "green", "-k", "1", "--open", number, "--db", library.db)
    assert ran.code == 1
    assert ran.err == f"sureshot: There is no hit {number} to open; the answer has 1 hit.\n"


def test_a_file_that_is_gone_cannot_be_opened(sureshot, installed, tmp_path):
    installed("mpv")
    path = coloured(tmp_path / "a.mp4", ["red"], seconds=1)
    index(str(tmp_path / "db"), path)
    path.unlink()
    ran = sureshot("search", "red", "--open", "1", "--db", tmp_path / "db")
    assert (ran.code, ran.err) == (1, f"sureshot: {path} is gone, so hit 1 cannot be opened.\n")
    assert f"{path} (gone)" in ran.out.replace("\n", "")
