"""Patterns of what an index leaves out."""

from pathlib import Path

import pytest

from sureshot.errors import QueryError
from sureshot.media.discover import Excluded, as_pattern

TOPS = [Path("/v"), Path("/w/private")]


@pytest.mark.parametrize(
    "pattern, path, left_out",
    [
        ("*.gif", "/v/a/b.gif", True),
        ("*.gif", "/v/a/b.mp4", False),
        ("raw", "/v/raw/deep/a.mp4", True),
        ("raw", "/v/raw.mp4", False),
        ("v", "/v/a.mp4", True),  # the folder that was named has a name too
        ("private", "/w/private/a.mp4", True),
        ("w", "/w/private/a.mp4", False),  # but folders above it say nothing
        ("/v/raw", "/v/raw", True),
        ("/v/raw", "/v/raw/a.mp4", True),
        ("/v/raw", "/v/raw-2/a.mp4", False),
        ("/v/*/raw", "/v/2024/raw/a.mp4", True),
        ("/v/a[[]1].mp4", "/v/a[1].mp4", True),
    ],
)
def test_a_name_and_a_path_are_told_apart(pattern, path, left_out):
    assert Excluded((pattern,)).matches(Path(path), TOPS) is left_out


def test_nothing_is_left_out_without_a_pattern():
    assert not Excluded().matches(Path("/v/a.mp4"), TOPS)


def test_paths_are_remembered_from_the_root_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert as_pattern("./raw/*.mp4") == str(tmp_path / "raw" / "*.mp4")
    assert as_pattern("~/Videos/") == "/home/me/Videos"
    assert as_pattern("drafts/") == "drafts"


@pytest.mark.parametrize("pattern", ["", "  "])
def test_an_empty_pattern_is_refused(pattern):
    with pytest.raises(QueryError, match="is empty"):
        as_pattern(pattern)
