"""Hits played by what this machine plays videos with."""

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sureshot.errors import QueryError, SureshotError
from sureshot.text import counted, plain, timecode

if TYPE_CHECKING:
    from sureshot.library.answer import Answer, Hit

# Players that begin at a second, and how they are told which; then what hands a file to whatever
# the desktop opens it with, which begins at the start.
_PLAYERS = {"mpv": "--start={at}", "vlc": "--start-time={at}"}
_OPENERS = {"darwin": "open", "win32": "explorer"}


@dataclass(frozen=True, slots=True)
class Player:
    """A program that is told what to play.

    Attributes:
        command: the program and its arguments.
        seeks: whether it begins at the second of the hit.
    """

    command: tuple[str, ...]
    seeks: bool


def player_of(path: Path, at: float, *, platform: str = sys.platform) -> Player:
    """What plays a video from a second on, or opens it where nothing here can be told a second.

    Args:
        path: a video file, or a folder of frames, which no player takes but a desktop opens.
        at: seconds.
        platform: name of the system, as `sys.platform`.

    Raises:
        SureshotError: there is nothing here that opens videos.
    """
    if "://" in str(path):
        raise SureshotError(
            f"{plain(path)} is in object storage, which players do not reach. `sureshot serve` "
            f"plays it, `sureshot export` cuts the moment out."
        )
    for name, start in _PLAYERS.items() if path.is_file() else ():
        if shutil.which(name):
            return Player((name, start.format(at=f"{at:.2f}"), str(path)), seeks=True)
    opener = _OPENERS.get(platform, "xdg-open")
    if shutil.which(opener):
        return Player((opener, str(path)), seeks=False)
    raise SureshotError(
        f"There is no player here; install mpv or vlc, or play {plain(path)} by hand, from "
        f"{timecode(at)} on."
    )


def play(answer: "Answer", number: int) -> str:
    """Start a player with one hit of an answer, and leave it running.

    Returns:
        The command, and what to know about it.

    Raises:
        QueryError: there is no such hit, or its file is gone.
        SureshotError: there is nothing here that opens videos.
    """
    hit = _hit(answer, number)
    player = player_of(hit.path, hit.peak)
    try:
        process = subprocess.Popen(
            player.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that it outlives this terminal and its Ctrl-C
        )
    except OSError as error:
        raise SureshotError(f"{player.command[0]} does not start: {error.strerror}.") from None
    process.returncode = 0  # nobody waits for it, and Python should not complain about that
    told = f"playing: {plain(shlex.join(player.command))}"
    return told if player.seeks else f"{told} (the moment is at {timecode(hit.peak)})"


def _hit(answer: "Answer", number: int) -> "Hit":
    if not 1 <= number <= len(answer):
        hits = counted(len(answer), "hit")
        raise QueryError(f"There is no hit {number} to open; the answer has {hits}.")
    hit = answer[number - 1]
    if hit.missing:
        raise QueryError(f"{plain(hit.path)} is gone, so hit {number} cannot be opened.")
    return hit
