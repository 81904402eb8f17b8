"""README and docs show what the program prints, and name only what there is."""

import ast
import contextlib
import csv
import doctest
import functools
import json
import os
import random
import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
import typer.main

from sureshot import research
from sureshot.cli.app import app_of, run
from sureshot.models.load import Scorer
from tests.cli.terminal import PLAIN
from tests.documents import DOCUMENTS, Block, blocks, differences, renew, same_line
from tests.paths import DATA, ROOT
from tests.trained import saved
from tests.walls import plan, walls

BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
RUN = [block for block in BLOCKS if block.sandbox]
SIXTY = "60 videos of MSR-VTT"
UPDATE = "SURESHOT_UPDATE_DOCUMENTS"


@pytest.fixture(scope="session")
def clips() -> Path:
    """The sample clips of `make demo`: fetched where that was run, and by CI."""
    folder = ROOT / ".cache" / "demo" / "clips"
    if not (folder.parent / "fetched").exists():
        if not os.environ.get("CI"):
            pytest.skip("the sample clips are not here; `make demo` fetches them")
        runpy.run_path(str(ROOT / "examples" / "demo.py"))["fetch"]()
    return folder


@contextlib.contextmanager
def at_home(folder: Path) -> Iterator[None]:
    """Work in a folder that is the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "SURESHOT_DB"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(folder))
        for name, value in PLAIN.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        yield


def write_film_library(folder: Path) -> None:
    """Videos and judged queries for the page about trust."""
    source = DATA / "msrvtt"
    if not source.is_dir():
        pytest.skip(f"there is no {source}; SURESHOT_DATA names the folder that holds msrvtt/")
    names = (source / "split_test_unshared.txt").read_text("utf-8").split()
    captions: dict[str, list[str]] = {}
    for row in json.loads((source / "MSRVTT_data.json").read_text("utf-8"))["sentences"]:
        captions.setdefault(row["video_id"], []).append(row["caption"])
    (folder / "library").mkdir()
    rows = []
    for name in names[:60]:
        (folder / "library" / f"{name}.mp4").symlink_to(source / "videos" / f"{name}.mp4")
        rows += [(caption, f"{name}.mp4") for caption in sorted(set(captions[name]))[:4]]
    rows += [(captions[name][0], "") for name in names[60:80]]
    random.Random(1).shuffle(rows)
    for file, kept in (("judged.csv", rows), ("few.csv", rows[:50])):
        _write_csv(folder / file, kept)
    _write_csv(folder / "typo.csv", [(rows[0][0], "video8252.mp4")])


def _write_csv(file: Path, rows: list[tuple[str, str]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([("query", "video"), *rows])


@pytest.fixture(scope="module")
def home(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """For each document a home folder with the sample clips in ``~/clips``."""

    @functools.cache
    def made(document: str) -> Path:
        folder = tmp_path_factory.mktemp("home")
        shutil.copytree(clips, folder / "clips")
        return folder

    return made


@pytest.fixture(scope="module")
def indexed_home(home: Callable[[str], Path]) -> Callable[[str], Path]:
    """The same with an index of the clips."""

    @functools.cache
    def made(document: str) -> Path:
        with at_home(home(document)):
            assert run(["index", "clips"]) == 0
        return home(document)

    return made


@pytest.fixture(scope="module")
def film_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with 60 videos of MSR-VTT in ``~/library``, indexed, and judged queries.

    ``judged.csv`` has four captions of each video and 20 captions of videos that are not there,
    ``few.csv`` the first 50 of these rows, ``typo.csv`` a video that is not there. The card that
    comes with the model was learned on these very videos, so the index gets one of its own.
    """
    folder = tmp_path_factory.mktemp("film_library")
    write_film_library(folder)
    with at_home(folder):
        assert run(["index", "library"]) == 0
        assert run(["calibrate", "--labels", "judged.csv"]) == 0
    return folder


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Callable[[Block], Path]:
    """Where a block is run, by the name that stands above it."""
    homes = {"the sample clips": "home", "the indexed clips": "indexed_home"}

    def place(block: Block) -> Path:
        if block.sandbox == SIXTY:
            return request.getfixturevalue("film_library")
        return request.getfixturevalue(homes[block.sandbox])(block.document.name)

    return place


def _marked() -> Iterator[object]:
    """Blocks that are run: those of the README always, the others by ``-m slow``."""
    for block in RUN:
        marks = () if block.document.name == "README.md" else (pytest.mark.slow,)
        name = f"{block.document.name}-{block.steps[0].command}"
        yield pytest.param(block, id=name, marks=marks)


@pytest.mark.parametrize("block", list(_marked()))
def test_what_is_shown_is_what_is_printed(
    block: Block, sandbox: Callable[[Block], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    folder = sandbox(block)
    with at_home(folder):
        for step in block.steps:
            capsys.readouterr()
            code = run(step.arguments)
            out, err = capsys.readouterr()
            failed = [line for line in err.splitlines() if line.startswith("sureshot: ")]
            assert bool(code) == bool(failed)
            printed.append("\n".join([out, *failed]).replace(str(folder), "/home/me").strip())
    if os.environ.get(UPDATE):
        renew(block, printed)
        return
    for step, out in zip(block.steps, printed, strict=True):
        found = list(differences(step.printed, out.splitlines()))
        assert not found, f"{step.command}; {UPDATE}=1 writes what is printed\n" + "\n".join(found)


def test_python_examples_of_the_documents_run(clips: Path, tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    for name in ("bigbuckbunny", "bikes", "carphone_distorted", "carphone_pristine", "world"):
        shutil.copy(clips / f"{name}.mp4", tmp_path / "clips")
    page = ROOT / "docs" / "python.md"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    text = re.sub(r"^```.*$", "", page.read_text("utf-8"), flags=re.M)
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert len(example.examples) > 5
    said: list[str] = []
    with at_home(tmp_path):
        doctest.DocTestRunner(optionflags=flags).run(example, out=said.append)
    assert not said, "".join(said)


def python_blocks(document: Path) -> list[ast.Module]:
    """The blocks of Python without prompts."""
    found = re.findall(r"^```python\n(.*?)^```", document.read_text("utf-8"), re.S | re.M)
    return [ast.parse(block) for block in found if ">>> " not in block]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_other_python_of_the_documents_is_python_and_imports_what_there_is(document: Path) -> None:
    for tree in python_blocks(document):
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), document.name, "exec"), {})


AWAY = ("MSVDT2VRetrieval", ", tasks)", "openai/", "my-model")


@pytest.mark.slow
def test_other_python_of_the_documents_runs(tmp_path: Path, monkeypatch) -> None:
    """All but what wants a hub, on files of the names that the documents give them."""
    walls(tmp_path)
    plan(tmp_path / "results").rename(tmp_path / "results" / "frame-subset.toml")
    saved(tmp_path / "runs" / "duq" / "model", "duq", "linear")
    research.write_dataset(tmp_path / "synthetic", {"train": 4, "val": 2, "test": 2})
    monkeypatch.setenv("WALLS", str(tmp_path / "results"))
    monkeypatch.setattr(Scorer, "push_to_hub", lambda model, name: name)
    run_in: set[str] = set()
    for document in DOCUMENTS:
        if document.name == "adding-a-system.md":  # has a test of its own
            continue
        names: dict[str, object] = {}
        with at_home(tmp_path):
            for tree in python_blocks(document):
                tree.body = [node for node in tree.body if not asks_hub(node)]
                exec(compile(tree, document.name, "exec"), names)
                run_in.add(document.name)
    assert {"hub.md", "mteb.md", "synthetic.md", "tables.md"} <= run_in
    assert (tmp_path / "to-give-away" / "config.json").exists()


def asks_hub(node: ast.stmt) -> bool:
    """Whether a statement is about what only a hub has."""
    return any(name in ast.unparse(node) for name in AWAY)


def test_commands_of_the_documents_exist() -> None:
    program: click.Command = typer.main.get_command(app_of())
    steps = [(block, step) for block in BLOCKS for step in block.steps if step.arguments]
    assert len(steps) > 50
    for block, step in steps:
        command, arguments = program, step.arguments
        while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
            name, *arguments = arguments
            found = command.get_command(click.Context(command), name)
            assert found is not None, f"{block.document.name}: there is no `sureshot {name}`"
            command = found
        try:
            command.make_parser(click.Context(command)).parse_args(list(arguments))
        except click.UsageError as error:
            pytest.fail(f"{block.document.name}: {step.command}: {error.message}")


def test_links_of_the_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_numbers_may_differ_as_processors_do_and_no_more() -> None:
    line = "1   0.263       98 %  0:05-0:10     0:09  bikes.mp4"
    assert same_line(line, "1  0.261  97 %  0:05-0:10  0:09  bikes.mp4")
    assert not same_line(line, line.replace("0.263", "0.269"))
    assert not same_line(line, line.replace("98 %", "95 %"))
    assert not same_line(line, line.replace("0:09", "0:08"))
    assert not same_line(line, line.replace("bikes", "cars"))
    assert same_line("Indexed 9 s (1 window) in 11 s", "Indexed 9 s (1 window) in 2 min")


def test_three_dots_stand_for_any_lines() -> None:
    assert not list(differences(["a", "…", "d"], ["a", "b", "c", "d"]))
    assert not list(differences(["a", "…"], ["a", "b"]))
    assert list(differences(["a", "d"], ["a", "b", "d"]))
    assert list(differences(["a", "b"], ["a"]))
    assert list(differences(["a"], ["a", "b"]))
