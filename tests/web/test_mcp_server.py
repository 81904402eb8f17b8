"""An agent and the server of `sureshot mcp`, by the client of the protocol's package."""

import base64
import fcntl
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import av
import numpy as np
import pytest
from PIL import Image

from sureshot.models.encoders.toy import COLOURS
from sureshot.paths import video_id
from sureshot.web.media import ClipCache
from sureshot.web.session import Session
from tests.cli.terminal import COMMAND
from tests.clips import coloured
from tests.small_library import Library, index


def talk(server: Any, visit: Callable[[Any], Awaitable[None]]) -> None:
    """Let a client of the protocol's package visit a server."""
    from mcp.client import Client  # takes a second to import

    async def run() -> None:
        async with Client(server) as client:
            await visit(client)

    anyio.run(run)


def talk_here(db: str | Path, visit: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    """The same with a server in this process."""
    from sureshot.web.mcp_server import make_mcp

    within = options.pop("roots", ())
    session = Session(db=str(db), **options, within=within)
    with tempfile.TemporaryDirectory() as films:
        talk(make_mcp(session, ClipCache(Path(films))), visit)
    session.close()


def message(result: Any) -> str:
    """The error of a call, in one line."""
    assert result.is_error
    (content,) = result.content
    assert "\n" not in content.text
    return content.text


def test_an_agent_finds_a_moment_looks_at_it_and_cuts_it_out(library: Library, tmp_path) -> None:
    async def visit(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"find", "status", "frames", "clip"}
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        found = (await client.call_tool("find", {"query": "green", "limit": 2})).structured_content
        assert {"sentence", "probability", "present", "answerable"} < found.keys()
        assert (found["probability"], found["answerable"]) == (None, "unknown")  # not calibrated
        assert found["sentence"].startswith("Not calibrated")
        assert (found["searched"], found["names"]) == ("green", [])
        (named,) = (await client.call_tool("find", {"query": "tape"})).structured_content["names"]
        assert named == {"video": None, "path": str(library.videos / "tapes")}
        best, _ = found["moments"]
        assert best["date_from"] == "file" and best["date"][:2] == "20"
        for none in (
            {"until": "2001"},
            {"since": "2999-01-01"},
            {"longer": 3600},
            {"shorter": 1},
        ):
            asked = {"query": "green", **none}
            assert not (await client.call_tool("find", asked)).structured_content["moments"]
        asked = {"query": "red", "folder": ["tapes", "nowhere"]}
        assert (await client.call_tool("find", asked)).structured_content["moments"]
        asked = {"query": "red", "limit": 3, "sort": "date", "longer": 1, "since": "2001-01-01"}
        assert (await client.call_tool("find", asked)).structured_content["moments"]
        assert best["path"] == str(library.videos / "scenes.mp4")
        assert (best["start"], best["end"]) == pytest.approx((4, 8), abs=0.3)
        span = {"video": best["video"], "start": best["start"] + 0.2, "end": best["end"] - 0.3}
        shown = (await client.call_tool("frames", span | {"count": 3, "side": 40})).content
        assert [part.type for part in shown] == ["text", "image"] * 3
        for part in shown[1::2]:
            picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(part.data))))
            assert min(picture.shape[:2]) == 40
            assert np.abs(picture[30, 20].astype(int) - COLOURS["green"]).max() < 30
        held = (await client.call_tool("status", {})).structured_content
        assert (held["videos"], held["model"], held["failed_count"]) == (5, "tiny", 0)
        clip = (await client.call_tool("clip", span)).structured_content
        assert Path(clip["path"]).is_relative_to(tmp_path)
        with av.open(clip["path"]) as container:
            assert container.duration / 1e6 == pytest.approx(span["end"] - span["start"], abs=0.3)

    from mcp import StdioServerParameters

    arguments = ["-m", "sureshot", "mcp", "--db", library.db]
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    talk(
        StdioServerParameters(command=sys.executable, args=arguments, env=os.environ | cache), visit
    )


WRONG = (
    ("find", {"query": "red", "since": "tomorrowish"}, "`since`"),
    ("find", {"query": " "}, "The query is empty"),
    ("find", {"query": 1, "limit": 0}, "a valid string; limit: input should be greater than or eq"),
    ("find", {"query": "red", "folders": "/nope"}, "folders: extra inputs are not permitted."),
    ("frames", {"video": "/etc/passwd", "start": 0}, "is no id of a video; `find` gives them"),
    ("frames", {"video": "0" * 32, "start": 0}, "There is no such video in the index"),
    ("clip", {"video": "0" * 32, "start": 2, "end": 1}, "Cut out more than 0 and at most 600"),
)


def test_what_cannot_be_is_a_sentence(library: Library) -> None:
    async def visit(client: Any) -> None:
        for tool, arguments, said in WRONG:
            assert said in message(await client.call_tool(tool, arguments))
        found = (
            await client.call_tool("find", {"query": "red", "folder": "/no"})
        ).structured_content
        assert found["moments"] == [] and "/no" in found["notes"][0]

    talk_here(library.db, visit)


def test_a_moment_in_the_order_of_dates_has_the_number_that_the_sentence_names(library) -> None:
    async def visit(client: Any) -> None:
        asked = {"query": "green", "sort": "date"}
        moments = (await client.call_tool("find", asked)).structured_content["moments"]
        best = max(moments, key=lambda moment: moment["score"])
        assert [one["rank"] for one in moments].count(1) == 1 == best["rank"]

    talk_here(library.db, visit)


def test_pictures_can_be_searched_for_what_is_a_name(library: Library) -> None:
    async def visit(client: Any) -> None:
        for correct in (True, False):
            asked = {"query": "scenes.mp4", "correct": correct}
            found = (await client.call_tool("find", asked)).structured_content
            assert found["names"] and bool(found["moments"]) is not correct

    talk_here(library.db, visit)


def test_pictures_of_a_moment_are_none_of_the_next_scene(tmp_path) -> None:
    coloured(tmp_path / "x.mp4", ["red", "blue"], seconds=2)
    index(str(tmp_path / "index"), tmp_path / "x.mp4")

    async def visit(client: Any) -> None:
        asked = {"video": video_id(tmp_path / "x.mp4"), "start": 0, "end": 2, "count": 8}
        shown = (await client.call_tool("frames", asked)).content[1::2]
        for part in shown:
            picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(part.data))))
            assert np.abs(picture[30, 20].astype(int) - COLOURS["red"]).max() < 30

    talk_here(tmp_path / "index", visit)


def test_no_time_is_after_the_end_of_a_video(library: Library) -> None:
    async def visit(client: Any) -> None:
        found = (await client.call_tool("find", {"query": "red"})).structured_content
        video, end = found["moments"][0]["video"], found["moments"][0]["end"]
        shown = await client.call_tool("frames", {"video": video, "start": 0, "end": 1000})
        times = [one.text for one in shown.content if one.type == "text"]
        assert len(times) == 4 and float(times[-1].split()[0]) < end + 60
        late = await client.call_tool("frames", {"video": video, "start": 5000})
        assert "The video ends at" in message(late)
        turned = await client.call_tool("frames", {"video": video, "start": 1, "end": 0.5})
        assert "before it begins" in message(turned)
        cut = await client.call_tool("clip", {"video": video, "start": 0, "end": 300})
        assert "00.05.00" not in cut.structured_content["name"]

    talk_here(library.db, visit)


def test_only_what_is_indexed_there_and_below_the_root_is_shown(tmp_path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        coloured(tmp_path / name / "x.mp4", ["red"], seconds=1)
    db = str(tmp_path / "index")
    index(db, tmp_path / "a", tmp_path / "b")
    secret = tmp_path / "c" / "x.mp4"
    linked = tmp_path / "a" / "x.mp4"
    linked.unlink()
    linked.symlink_to(secret)  # after it was indexed
    (tmp_path / "b" / "x.mp4").unlink()

    async def visit(client: Any) -> None:
        for path in (linked, tmp_path / "b" / "x.mp4", secret):
            for tool, more in (("frames", {}), ("clip", {"end": 1})):
                asked = {"video": video_id(path), "start": 0} | more
                said = message(await client.call_tool(tool, asked))
                assert "There is no such video" in said
        for query in ("red", "x"):
            found = (await client.call_tool("find", {"query": query})).structured_content
            assert found["moments"] == [] and "that are served" in found["notes"][0]
        held = (await client.call_tool("status", {})).structured_content
        assert (held["videos"], held["failed_count"]) == (0, 0)

    talk_here(db, visit, roots=[tmp_path / "a"])


def test_an_index_may_come_go_and_be_of_another_model(library: Library, tmp_path) -> None:
    db = tmp_path / "index"

    async def visit(client: Any) -> None:
        assert "sureshot index" in message(await client.call_tool("find", {"query": "red"}))
        assert "sureshot index" in message(await client.call_tool("status", {}))
        shutil.copytree(library.db, db)
        assert not (await client.call_tool("find", {"query": "red"})).is_error
        shutil.rmtree(db)
        assert "sureshot index" in message(await client.call_tool("find", {"query": "red"}))

    talk_here(db, visit)

    async def other(client: Any) -> None:
        assert "tiny" in message(await client.call_tool("find", {"query": "red"}))
        assert (await client.call_tool("status", {})).structured_content["model"] == "tiny"

    talk_here(library.db, other, model="bundled")


@contextmanager
def greeted(library: Library, command: Sequence[str] = COMMAND) -> Iterator[Any]:
    """A process of the server that an agent has greeted."""
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}}
    asked["clientInfo"] = {"name": "test", "version": "1"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
    command = [*command, "mcp", "--db", library.db]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        assert b"serverInfo" in process.stdout.readline()
        yield process


def waiting(pipe: Any) -> int:
    """How many bytes wait in a pipe to be read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_ends_it_while_it_waits_for_the_agent(library: Library, number) -> None:
    with greeted(library) as process:
        process.send_signal(number)
        assert process.wait(60) == 128 + number


def test_one_signal_ends_it_while_the_agent_reads_nothing(library: Library) -> None:
    with greeted(library) as process:
        for number in range(60):  # their answers are more than a pipe holds
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}}
            process.stdin.write(json.dumps(call).encode() + b"\n")
        process.stdin.flush()
        before, now = -1, 0
        while not now or now > before:  # pipes are of different lengths
            time.sleep(1)
            before, now = now, waiting(process.stdout)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60)


SLOW = """
import time
from sureshot.__main__ import main
from sureshot.web import mcp_server
def cut(*_):
    open("begun", "w").close()
    time.sleep(600)
mcp_server._file = cut
main()
"""


@pytest.mark.parametrize("number", [0, signal.SIGTERM])
def test_nothing_waits_for_a_clip_that_nobody_waits_for(
    library: Library, tmp_path, monkeypatch, number
) -> None:
    monkeypatch.chdir(tmp_path)
    with greeted(library, [sys.executable, "-c", SLOW]) as process:
        asked = {"name": "clip", "arguments": {"video": "0" * 32, "start": 0, "end": 1}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
        process.stdin.write(json.dumps(call).encode() + b"\n")
        process.stdin.flush()
        while not Path("begun").exists():
            time.sleep(0.1)
        if number:
            process.send_signal(number)
        process.stdin.close()
        assert process.wait(120) in (0, 130)


def test_an_agent_that_is_gone_is_no_fault(library: Library, capfd) -> None:
    with greeted(library) as process:
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        process.stdout.close()
        process.stdin.write(json.dumps(call).encode() + b"\n")
        process.stdin.close()
        assert process.wait(60) == 0
    assert not capfd.readouterr().err


def test_a_call_may_be_cancelled(library: Library) -> None:
    async def visit(client: Any) -> None:
        with anyio.move_on_after(0.001) as scope:
            await client.call_tool("find", {"query": "red"})  # loads the model first
        assert scope.cancelled_caught
        found = await client.call_tool("find", {"query": "green", "limit": 1})
        assert len(found.structured_content["moments"]) == 1

    talk_here(library.db, visit)
