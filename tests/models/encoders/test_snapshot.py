"""Folders of model files: found, fetched from a hub that runs here, checked and digested."""

import hashlib
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlparse

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants
from safetensors.numpy import save, save_file

from sureshot.errors import ArgumentError, ModelError
from sureshot.models import huggingface as module
from sureshot.models.encoders.clip import Snapshot, find_snapshot

NAME = "someone/a-clip"
FILES = {
    "config.json": b'{"model_type": "clip"}',
    "tokenizer.json": b"{}",
    "preprocessor_config.json": b"{}",
    "model.safetensors": save({"w": np.arange(4.0)}),
    "README.md": b"not for us",
    "model.fp16.safetensors": b"nor this",
}
PICKLED = {k: v for k, v in FILES.items() if "safetensors" not in k} | {"pytorch_model.bin": b"x"}
MAIN, PULL = "a" * 40, "b" * 40


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    """Nothing is remembered outside of the test, and no real hub is called."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    set_hub(monkeypatch, 9)  # the discard port: refuses at once
    yield
    huggingface_hub.close_session()


def set_hub(monkeypatch, port):
    address = f"http://127.0.0.1:{port}"
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def folder(tmp_path) -> Path:
    return write(tmp_path / "model", FILES)


def write(folder, files) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


class Hub(BaseHTTPRequestHandler):
    """The five answers of the hub that a download needs, for one model of two versions."""

    main: dict[str, bytes] = FILES
    pull: dict[str, bytes] | None = None
    asked: list[str]

    def do_GET(self) -> None:
        path = unquote(urlparse(self.path).path)
        self.asked.append(path)
        versions = {MAIN: self.main, PULL: self.pull or {}}
        about, files = f"/api/models/{NAME}", f"/{NAME}/resolve/"
        if path in (about, f"{about}/revision/refs/pr/7"):
            commit = MAIN if path == about else PULL
            names = [{"rfilename": name} for name in versions[commit]]
            self.answer(json.dumps({"id": NAME, "sha": commit, "siblings": names}).encode())
        elif path == f"{about}/discussions":
            pull = {"num": 7, "title": "safetensors", "status": "open", "isPullRequest": True}
            pull |= {"author": {"name": "SFconvertbot"}, "createdAt": "2023-01-01T00:00:00.000Z"}
            pull |= {"repo": {"name": NAME, "type": "model"}}
            pulls = [pull] if self.pull else []
            body = {"discussions": pulls, "count": len(pulls), "start": 0}
            self.answer(json.dumps(body).encode())
        elif path.startswith(f"{about}/tree/"):
            found = versions[path.removeprefix(f"{about}/tree/")].items()
            tree = [{"type": "file", "path": n, "size": len(c), "oid": oid(c)} for n, c in found]
            self.answer(json.dumps(tree).encode())
        elif path.startswith(files):
            commit, name = path.removeprefix(files).split("/")
            content = versions[commit][name]
            self.answer(content, {"ETag": f'"{oid(content)}"', "X-Repo-Commit": commit})
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - named by http.server

    def answer(self, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(200)
        for key, value in ((headers or {}) | {"Content-Length": str(len(body))}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def oid(content):
    return hashlib.sha1(content).hexdigest()


@contextmanager
def hub(monkeypatch, **versions) -> Iterator[list[str]]:
    asked: list[str] = []
    kind = type("OneHub", (Hub,), {**versions, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        set_hub(monkeypatch, server.server_port)
        try:
            yield asked
        finally:
            huggingface_hub.close_session()
            server.shutdown()
    set_hub(monkeypatch, 9)


def one_sentence(caught):
    """What a user sees: one line, no trace of other errors behind it."""
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_a_folder_is_taken_as_it_is(folder, monkeypatch):
    assert find_snapshot(str(folder)) == Snapshot(folder)
    monkeypatch.chdir(folder.parent)
    assert find_snapshot("model").folder == folder
    assert find_snapshot("./model").folder.is_absolute()


@pytest.mark.parametrize("name", ["nonsense", "/no/such/folder", "../up", "a/b/c", "a b/c", ""])
def test_what_cannot_be_a_hub_id_never_asks_the_hub(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not name:
        with pytest.raises(ArgumentError, match="is empty"):
            find_snapshot(name)
        return
    with hub(monkeypatch) as asked, pytest.raises(ModelError, match="neither a folder") as caught:
        find_snapshot(name)
    assert name in one_sentence(caught)
    assert not asked


def test_no_network_is_one_sentence_and_quick():
    with pytest.raises(ModelError) as caught:
        find_snapshot("openai/clip-vit-base-patch32")
    assert one_sentence(caught) == (
        "Could not load model 'openai/clip-vit-base-patch32': not in the local cache and the model "
        "hub cannot be reached. Give a local folder with --model (in a recipe as encoder.name, in "
        "a plan also in [encoders]), connect once, or use --model bundled."
    )


def test_a_network_that_swallows_everything_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        set_hub(monkeypatch, silent.getsockname()[1])
        # Without a limit this would wait for ever: nobody answers at the other end.
        with pytest.raises(ModelError, match="cannot be reached"):
            find_snapshot(NAME)


def test_a_model_is_downloaded_once_and_then_found_without_the_hub(monkeypatch):
    with hub(monkeypatch) as asked:
        found = find_snapshot(NAME)
    present = {path.name for path in found.folder.iterdir()}
    assert present == {
        "config.json", "tokenizer.json", "preprocessor_config.json", "model.safetensors"
    }  # fmt: skip
    assert found.folder.name == MAIN
    assert any("resolve" in path for path in asked)
    assert find_snapshot(NAME) == found


def test_a_pickled_model_is_taken_from_the_conversion_of_the_hub(monkeypatch):
    with hub(monkeypatch, main=PICKLED, pull=FILES):
        found = find_snapshot(NAME)
    assert found.folder.name == PULL
    assert found.weights()[0].read_bytes() == FILES["model.safetensors"]
    assert find_snapshot(NAME) == found


def test_a_pickled_model_without_conversion_is_refused_with_the_way_to_convert(monkeypatch):
    with hub(monkeypatch, main=PICKLED) as asked, pytest.raises(ModelError) as caught:
        find_snapshot(NAME)
    assert f"from_pretrained('{NAME}')" in one_sentence(caught)
    assert not any("resolve" in path for path in asked)


def test_a_name_the_hub_does_not_know(monkeypatch):
    with hub(monkeypatch), pytest.raises(ModelError, match="no public model") as caught:
        find_snapshot("someone/another")
    one_sentence(caught)


def test_a_download_that_breaks_off(monkeypatch):
    def broken(self):
        Hub.do_GET(self) if "resolve" not in self.path else self.send_error(403)

    with hub(monkeypatch, do_GET=broken, do_HEAD=broken), pytest.raises(ModelError) as caught:
        find_snapshot(NAME)
    assert "Try again" in one_sentence(caught)


def cached(tmp_path, commit, files):
    root = tmp_path / "hub" / f"models--{NAME.replace('/', '--')}"
    folder = write(root / "snapshots" / commit, files)
    (root / "refs").mkdir(exist_ok=True)
    return root, folder


def test_the_current_version_of_the_cache_comes_first(tmp_path):
    root, old = cached(tmp_path, "old", FILES)
    _, new = cached(tmp_path, "new", FILES)
    for age, path in ((100, old), (200, new)):
        os.utime(path, (age, age))
    assert find_snapshot(NAME).folder == new
    (root / "refs" / "main").write_text("old")
    assert find_snapshot(NAME).folder == old


@pytest.mark.parametrize(
    "missing", ["config.json", "tokenizer.json", "preprocessor_config.json", "model.safetensors"]
)
def test_an_incomplete_version_of_the_cache_is_passed_over(tmp_path, missing):
    cached(tmp_path, "part", {k: v for k, v in FILES.items() if k != missing})
    with pytest.raises(ModelError, match="cannot be reached"):
        find_snapshot(NAME)
    _, whole = cached(tmp_path, "whole", FILES)
    assert find_snapshot(NAME).folder == whole


def test_shards_are_found_by_their_index(folder):
    (folder / "model.safetensors").unlink()
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"weight_map": {"b": names[1], "a": names[0], "c": names[0]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in names:
        save_file({"w": np.zeros(2)}, folder / name)
    assert [file.name for file in Snapshot(folder).weights()] == names
    assert Snapshot(folder).complete()
    (folder / names[1]).unlink()
    assert not Snapshot(folder).complete()
    with pytest.raises(ModelError, match=names[1]) as caught:
        Snapshot(folder).weights()
    one_sentence(caught)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "m.pt"])
def test_pickled_weights_are_refused_unopened(folder, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(ModelError, match=r"pickled.*save_pretrained") as caught:
        Snapshot(folder).weights()
    assert str(folder) in one_sentence(caught)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '{"a": "\\ud8'])
def test_settings_that_are_none_are_refused(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json") as caught:
        Snapshot(folder).settings("config.json")
    one_sentence(caught)


def test_the_fingerprint_does_not_depend_on_the_place(folder, tmp_path):
    first = Snapshot(folder).fingerprint("1")
    assert len(first) == 64
    assert int(first, 16)
    moved = tmp_path / "elsewhere" / "other name"
    shutil.copytree(folder, moved)
    assert Snapshot(moved).fingerprint("1") == first
    assert Snapshot(moved).fingerprint("2") != first  # of other code


@pytest.mark.parametrize("name", [name for name in FILES if name != "README.md"])
def test_the_fingerprint_follows_every_file_that_counts(folder, name):
    before = Snapshot(folder).fingerprint("1")
    content = FILES[name]
    (folder / name).write_bytes(save({"w": np.arange(4.0)[::-1]}) if len(content) > 60 else b"[] ")
    changed = Snapshot(folder).fingerprint("1") != before
    assert changed == (name != "model.fp16.safetensors")
