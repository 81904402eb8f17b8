"""Credentials in an address are refused and never printed or stored, whatever takes it."""

import itertools
import logging
import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sureshot
from sureshot.cli.app import run
from sureshot.errors import SureshotError, masked
from sureshot.web.media import ClipCache
from sureshot.web.session import Session
from tests.small_library import Library
from tests.web.visitor import HERE, app_of

SECRET = "wJalrXUtnFEMI"
ADDRESSES = [
    f"s3://AKIDEXAMPLE:{SECRET}@films/a.mp4",
    f"s3://AKIDEXAMPLE:{SECRET}/K7MDENG+{SECRET}@films/a b.mp4",
    f"s3://AKIDEXAMPLE:{SECRET}/films",
    f"gs://ann:{SECRET}@films/index",
    f"s3://films/a.mp4?X-Amz-Algorithm=AWS4&X-Amz-Signature={SECRET}",
    f"https://host/my films/a.mp4?sv=1&sig={SECRET}",
]
COMMANDS = [
    "index A --db DB", "index VIDEOS --db A", "index VIDEOS --db DB --exclude A",
    "index VIDEOS --db DB --include A", "index VIDEOS --db NEW --model A",
    "search red --db A", "search red --db DB --folder A", "search --db DB --like A",
    "search red --db DB --queries A", "search red --db DB --explain A/x.png",
    "search red --db=A --json",
    "describe A red", "describe VIDEO red --db A", "export red --db A --to TO",
    "export red --db DB --to A", "export red --db DB --to TO --folder A", "serve --db A",
    "serve --db DB --root A", "judge --queries A --db DB", "judge --db A", "calibrate A --db DB",
    "calibrate --db A", "status --db A", "status --db A --check --json", "remove A --db DB",
    "remove VIDEO --db A", "reset --db A --yes", "doctor --db A", "train A --to TO",
    "train recipes/duq.toml --to A", "evaluate A --split test", "plot A B", "experts A --to TO",
    "synthetic A", "answer A --model A", "reproduce A", "frobnicate A", "status A",
]  # fmt: skip


def test_no_command_prints_or_stores_credentials(
    library: Library, tmp_path: Path, capfd, caplog, monkeypatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(library.db, tmp_path / "db")
    known = {"DB": "db", "NEW": "new", "VIDEOS": library.videos, "TO": "to"}
    known |= {"VIDEO": library.videos / "red.mp4"}
    for command, address in itertools.product(COMMANDS, ADDRESSES):
        words = [str(known.get(word, word)) for word in command.split()]
        code = run([re.sub(r"(?:^|(?<==))A\b", lambda _, a=address: a, word) for word in words])
        printed = "".join(capfd.readouterr())
        assert code != 0 and "Traceback" not in printed, command
        assert SECRET not in printed and "AKIDEXAMPLE" not in printed, command
    assert SECRET not in caplog.text
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in stored
    assert not [path for path in tmp_path.rglob("*") if SECRET in str(path)]


def test_a_place_in_the_environment_is_refused_too(capfd, monkeypatch) -> None:
    for address in ADDRESSES:
        monkeypatch.setenv("SURESHOT_DB", address)
        for command in ("serve", "status", "search red", "reset --yes", "doctor"):
            assert run(command.split()) != 0
            printed = "".join(capfd.readouterr())
            assert "has credentials in it" in printed and SECRET not in printed


def test_calls_and_the_page_refuse_them_too(library: Library, tmp_path: Path) -> None:
    for address in ADDRESSES:
        for call in (
            lambda address=address: sureshot.index(address, db=tmp_path),
            lambda address=address: sureshot.open_index(address),
            lambda address=address: sureshot.index(Path(address), db=tmp_path),
        ):
            with pytest.raises(SureshotError, match="has credentials in it") as refused:
                call()
            assert SECRET not in str(refused.value) and "AWS_PROFILE" in str(refused.value)
    desk = Session(db=library.db)
    with TestClient(app_of(desk, ClipCache(tmp_path / "clips")), base_url=HERE) as page:
        for address in ADDRESSES:
            answer = page.get("/api/search", params={"q": "red", "folder": address})
            assert answer.status_code >= 400 and SECRET not in answer.text
    desk.close()


def test_what_only_looks_like_credentials_stays() -> None:
    for text in (
        "s3://films/ann@home/a?.mp4", "http://127.0.0.1:8460/?q=red", "a red car? key=1 @noon",
        "C:/Users/ann", "12:/x", "mail ann@host",
    ):  # fmt: skip
        assert masked(text) == text
