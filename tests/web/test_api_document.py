"""The commands of docs/api.md are run."""

import json
import re
import shutil
import subprocess

import pytest

from tests.clips import coloured
from tests.paths import ROOT
from tests.small_library import index
from tests.web.browser import served

BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "api.md").read_text("utf-8"), re.S)


def test_every_command_of_the_document_works(tmp_path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    (tmp_path / "v").mkdir()
    coloured(tmp_path / "v" / "a.mp4", ["red"], seconds=2, rate=5)
    index(str(tmp_path / "db"), tmp_path / "v")
    with served("--db", tmp_path / "db", "--root", tmp_path, home=tmp_path) as address:
        # A reply to an error ends a script only if curl is told to fail.
        script = "set -eu\n" + "\n".join(BLOCKS).replace("curl -s", "curl -sSf")
        ran = subprocess.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env={"SURESHOT": address.rstrip("/"), "PATH": "/usr/bin:/bin:/usr/local/bin"},
            capture_output=True,
            text=True,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    replies = [json.loads(line) for line in ran.stdout.replace("}{", "}\n{").splitlines()]
    assert len(replies) == 9 and all(reply["schema"] == 2 for reply in replies)
    assert replies[-1] == {"schema": 2, "removed": 1}
    assert (tmp_path / "part.mp4").stat().st_size == 100
    assert (tmp_path / "clip.mp4").stat().st_size > 500
