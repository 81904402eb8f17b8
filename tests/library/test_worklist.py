"""A list in a file gives back what was put in, any name of a file included."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.library.encoding import Worklist
from sureshot.media.discover import Source


def source(name: str, size: int = 7) -> Source:
    return Source(
        path=Path("/v") / name, kind="file", size=size, mtime_ns=1_700_000_000_123_456_789
    )


def test_pages_are_the_list_in_its_order_any_number_of_times() -> None:
    names = ["a b", os.fsdecode(b"caf\xe9"), "zwei\nZeilen", '"quoted"', "日本"]
    with Worklist() as listed:
        for name in names:
            listed.add(source(name, 2**40))
        assert listed.count == 5
        for _ in range(2):
            pages = list(listed.pages(2))
            assert [len(page) for page in pages] == [2, 2, 1]
            assert [s for page in pages for s in page] == [source(n, 2**40) for n in names]
    with Worklist() as empty:
        assert list(empty.pages()) == []


def test_a_list_that_cannot_be_made_says_where_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(SureshotError, match=f"{tmp_path}/none.*TMPDIR"):
        Worklist()


def test_a_list_without_room_is_told_and_let_go_of() -> None:
    code = (
        "import resource, signal\n"
        "from pathlib import Path\n"
        "from sureshot.errors import SureshotError\n"
        "from sureshot.library.encoding import Worklist\n"
        "from sureshot.media.discover import Source\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "with Worklist() as listed:\n"
        "    listed.add(Source(path=Path('/v'), kind='file', size=1, mtime_ns=1))\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))\n"
        "    try:\n"
        "        list(listed.pages())\n"
        "    except SureshotError as error:\n"
        "        print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True
    )
    assert "does not fit" in ran.stdout and "TMPDIR" in ran.stdout
