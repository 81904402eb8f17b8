"""A stand-in for the Hugging Face hub: models are made, committed to and downloaded over HTTP."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlparse

TOKEN = "hf_may_write"


@dataclass
class Hub:
    """What is on it.

    Attributes:
        address: what HF_ENDPOINT is set to.
        models: files of each version of each model, oldest version first.
        private: models that were made private.
        asked: method and path of each request.
    """

    address: str = ""
    models: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    private: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def newest(self, name: str) -> dict[str, bytes]:
        """The files of the newest version of a model."""
        return list(self.models[name].values())[-1]

    def commit(self, name: str, lines: list[dict[str, Any]]) -> str:
        """Put the files of a commit on top of the newest version."""
        versions = self.models[name]
        files = dict(self.newest(name)) if versions else {}
        for line in lines:
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            elif line["key"] == "deletedFile":
                files.pop(line["value"]["path"])
        version = hashlib.sha1(repr((len(versions), sorted(files))).encode()).hexdigest()
        versions[version] = files
        return version


class _Requests(BaseHTTPRequestHandler):
    hub: Hub

    def do_POST(self) -> None:
        path, hub = unquote(urlparse(self.path).path), self.hub
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub.asked.append(f"POST {path}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer({"error": "may not write"}, 403)
        elif path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            hub.models.setdefault(name, {})
            if asked.get("private"):
                hub.private.append(name)
            self.answer({"url": f"{hub.address}/{name}", "id": name})
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = json.loads(body)["files"]
            modes = [{"path": f["path"], "uploadMode": "regular", "oid": None} for f in files]
            self.answer({"files": [{**mode, "shouldIgnore": False} for mode in modes]})
        elif "/commit/" in path:
            name = path.removeprefix("/api/models/").partition("/commit/")[0]
            version = hub.commit(name, [json.loads(line) for line in body.splitlines()])
            address = f"{hub.address}/{name}/commit/{version}"
            self.answer({"commitUrl": address, "commitOid": version, "success": True})
        else:
            self.answer({"error": path}, 404)

    def do_GET(self) -> None:
        path, hub = unquote(urlparse(self.path).path), self.hub
        hub.asked.append(f"GET {path}")
        for name, versions in hub.models.items():
            about, files = f"/api/models/{name}", f"/{name}/resolve/"
            latest = next(reversed(versions), "")
            if path == about or path.startswith(f"{about}/revision/"):
                version = path.removeprefix(about).removeprefix("/revision/") or latest
                version = latest if version == "main" else version
                if version not in versions:
                    self.answer({}, 404, {"X-Error-Code": "RevisionNotFound"})
                    return
                listed = [{"rfilename": file} for file in versions[version]]
                self.answer({"id": name, "sha": version, "siblings": listed})
                return
            if path.startswith(f"{about}/tree/"):
                version = path.removeprefix(f"{about}/tree/").partition("/")[0]
                found = versions.get(latest if version == "main" else version, {}).items()
                kind = {"type": "file"}
                tree = [{**kind, "path": n, "size": len(c), "oid": _oid(c)} for n, c in found]
                self.answer(tree)
                return
            if path.startswith(files):
                version, _, file = path.removeprefix(files).partition("/")
                content = versions[version][file]
                headers = {"ETag": f'"{_oid(content)}"', "X-Repo-Commit": version}
                self.answer(content, 200, headers)
                return
        self.answer({}, 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815 - named by http.server

    def answer(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        held = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for key, value in ((headers or {}) | {"Content-Length": str(len(held))}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(held)

    def log_message(self, *_: object) -> None:
        pass


def _oid(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub without models, for as long as the block runs."""
    hub = Hub()
    kind = type("Requests", (_Requests,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()
