"""The names that `import sureshot` gives, and how little it loads."""

import subprocess
import sys

import pytest

import sureshot

HEAVY = ("torch", "transformers", "numpy", "lance", "pyarrow", "av", "PIL", "rich", "typer")


def loaded_by(code):
    """Which of the heavy packages some code loads in a fresh Python."""
    code = f"import sys; {code}; print([name for name in {HEAVY} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1]


def test_public_names_are_documented():
    for name in sureshot.__all__:
        if name != "__version__":
            assert getattr(sureshot, name).__doc__


def test_each_public_name_can_be_imported_and_listed():
    assert {*sureshot.__all__} - {"__version__"} <= {*dir(sureshot)}
    from sureshot.library.indexing import index
    from sureshot.library.results import Answer, Hit
    from sureshot.library.search import Searcher, open_index

    assert sureshot.index is index
    assert (sureshot.Answer, sureshot.Hit) == (Answer, Hit)
    assert (sureshot.Searcher, sureshot.open_index) == (Searcher, open_index)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="serch"):
        sureshot.serch  # noqa: B018
    names: dict[str, object] = {}
    exec("from sureshot import *", names)
    assert set(sureshot.__all__) <= set(names)


def test_importing_loads_nothing_heavy():
    code = "import sureshot as s; s.SureshotError; s.__version__; s.library, s.research"
    assert loaded_by(f"{code}; from sureshot import Answer, Hit, Indexed") == "[]"


def test_help_loads_neither_numpy_nor_torch_nor_lance():
    code = "from sureshot.cli.app import run; run(['--help']); run(['search', '--help'])"
    assert not set(eval(loaded_by(code))) - {"rich", "typer"}
