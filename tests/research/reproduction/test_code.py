"""A run is stale when code that makes it changes, and only then."""

import shutil

import pytest

from sureshot.research.reproduction.runs import ANSWERING, code_digest
from tests.paths import PACKAGE

DUQ = ("duq",)


@pytest.fixture
def package(tmp_path):
    """A copy of the package's files, as an edit would find them."""
    sources = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.npz")
    return shutil.copytree(PACKAGE, tmp_path / "sureshot", ignore=sources)


def edited(package, path, old, new):
    """The digest of DUQ's code after one replacement in one file."""
    text = (package / path).read_text("utf-8")
    assert old in text
    (package / path).write_text(text.replace(old, new, 1), "utf-8")
    return code_digest(DUQ, package)


def test_a_copy_of_the_code_is_the_same_code(package):
    assert code_digest(DUQ, package) == code_digest(DUQ)
    assert code_digest(DUQ) != code_digest(("xpool",))


@pytest.mark.parametrize(
    "path",
    [
        "models/systems/duq.py",
        "models/systems/system.py",
        "models/losses/evidential.py",
        "models/layers/pooling.py",
        "models/scoring/embeddings.py",
        "models/model.py",
        "models/tokens.py",
        "metrics/recall.py",
        "research/features.py",
        "research/scores.py",
        "research/reproduction/percentages.py",
        "research/reproduction/ranks.py",
        "research/reproduction/runs.py",
        "trust/fitting.py",
        "research/training/loop.py",
        "research/training/step.py",
        "research/training/run.py",
        "research/training/schedule.py",
    ],
)
def test_a_line_in_what_makes_a_run_makes_it_stale(package, path):
    (package / path).write_text((package / path).read_text("utf-8") + "\nEDITED = 1\n", "utf-8")
    assert code_digest(DUQ, package) != code_digest(DUQ)


@pytest.mark.parametrize(
    "path",
    [
        "models/systems/uatvr.py",
        "models/losses/debiased.py",
        "models/retriever.py",
        "models/bank.py",
        "models/encoders/clip.py",
        "research/figures/strip.py",
        "research/reproduction/page.py",
        "research/questions/head.py",
        "research/training/correction.py",
        "research/evaluation.py",
        "library/search.py",
        "cli/train.py",
    ],
)
def test_a_line_elsewhere_changes_no_run(package, path):
    (package / path).write_text((package / path).read_text("utf-8") + "\nEDITED = 1\n", "utf-8")
    assert code_digest(DUQ, package) == code_digest(DUQ)


@pytest.mark.parametrize("name", ["run", "evaluation", "head"])
def test_a_line_in_what_answers_questions_makes_its_runs_stale(package, name):
    path = package / "research" / "questions" / f"{name}.py"
    path.write_text(path.read_text("utf-8") + "\nEDITED = 1\n", "utf-8")
    assert code_digest(DUQ, package, ANSWERING) != code_digest(DUQ, starts=ANSWERING)


def test_words_about_the_code_do_not_count(package):
    path = package / "models" / "losses" / "evidential.py"
    text = path.read_text("utf-8")
    documented = text.replace('"""', '"""Said in other words. ', 1) + "\n# and a comment\n"
    path.write_text(documented.replace("\n\n\n", "\n\n\n\n"), "utf-8")
    assert code_digest(DUQ, package) == code_digest(DUQ)


def test_a_number_in_a_loss_counts(package):
    digest = edited(package, "models/losses/evidential.py", "return ", "return 1 * ")
    assert digest != code_digest(DUQ)


def test_a_system_on_another_is_stale_with_it(package):
    before = code_digest(("dvtr", "hit"), package), code_digest(("dvtr", "clip4clip"), package)
    other = shutil.copytree(package, package.parent / "other")
    hit = other / "models" / "systems" / "hit.py"
    hit.write_text(hit.read_text("utf-8") + "\nEDITED = 1\n", "utf-8")
    after = code_digest(("dvtr", "hit"), other), code_digest(("dvtr", "clip4clip"), other)
    assert before[0] != after[0] and before[1] == after[1]
