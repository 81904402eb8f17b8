"""Files go where the user says, else where XDG says."""

import os
from pathlib import Path

import pytest

from sureshot import library
from sureshot.errors import ArgumentError, StoreError, SureshotError
from sureshot.paths import (
    absolute,
    absolute_model,
    cache_dir,
    data_dir,
    exists_at,
    expand,
    index_place,
    is_folder_at,
    locate,
)

KINDS = [
    (data_dir, "XDG_DATA_HOME", ".local/share/sureshot"),
    (cache_dir, "XDG_CACHE_HOME", ".cache/sureshot"),
]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "SURESHOT_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ann")


@pytest.mark.parametrize(("folder", "variable", "below"), KINDS)
def test_folders_are_below_the_home_folder_unless_a_variable_moves_them(
    folder, variable, below, monkeypatch
) -> None:
    assert folder() == Path("/home/ann") / below
    for relative in ("", "relative/folder", "~/folder"):
        monkeypatch.setenv(variable, relative)
        assert folder() == Path("/home/ann") / below
    monkeypatch.setenv(variable, "/big disk")
    assert folder() == Path("/big disk/sureshot")


@pytest.mark.parametrize(("folder", "variable", "below"), KINDS)
def test_without_a_home_folder_the_variable_to_set_is_named(
    folder, variable, below, monkeypatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 54_321)  # a container run by a user it does not know
    with pytest.raises(SureshotError, match=f"no home folder; set {variable}"):
        folder()
    monkeypatch.setenv(variable, "/x")
    assert folder() == Path("/x/sureshot")


def test_the_index_is_where_one_says_else_the_variable_else_the_data_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.delenv("SURESHOT_DB", raising=False)
    assert index_place(None) == "/data/sureshot/index"
    monkeypatch.setenv("SURESHOT_DB", "/elsewhere")
    assert index_place(None) == "/elsewhere"
    assert index_place("/given") == "/given"
    assert index_place("s3://bucket/index") == "s3://bucket/index"


def test_names_of_models_stay_and_their_folders_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("bundled", "openai/clip-vit-base-patch16", "a" * 5000):
        assert absolute_model(name) == name
    Path("mine").mkdir()
    for way in ("mine", "./mine", "mine/../mine", str(tmp_path / "mine"), "~/mine"):
        assert absolute_model(way) == str(tmp_path / "mine")
    assert absolute_model("./not-there") == str(tmp_path / "not-there")
    assert is_folder_at(tmp_path) and not is_folder_at("a" * 5000)


def test_places_are_made_absolute_and_links_stay(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert locate("a/../b") == locate(Path("b/")) == f"{tmp_path}/b"
    assert locate("~/index") == "/home/ann/index"
    assert locate("~no-such-user/x") == f"{tmp_path}/~no-such-user/x"
    assert locate(tmp_path / "link") == f"{tmp_path}/link"
    assert locate("file:///a/b/") == "/a/b"
    for uri in ("s3://bucket/a%20b", "gs://b", "az://c/d/e"):
        assert locate(uri) == locate(uri + "/") == uri
    with pytest.raises(StoreError, match=r"not UTF-8.*--db"):
        locate(os.fsdecode(b"/v\xe9"))


def test_paths_are_expanded_and_made_absolute_without_following_links(
    monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("/")
    assert expand("~/x") == Path("/home/ann/x")
    assert expand("~no-such-user/x") == Path("~no-such-user/x")
    assert expand("a/../b") == Path("a/../b")
    assert absolute("~/x/../y") == Path("/home/ann/y")
    assert absolute("link/../y") == tmp_path / "y"
    assert absolute("~no-such-user") == tmp_path / "~no-such-user"


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "~/a\0"])
def test_what_no_file_can_be_named_is_said_in_a_sentence(name: str) -> None:
    for function in (expand, absolute, locate):
        with pytest.raises(ArgumentError, match="No file can be named") as refused:
            function(name)
        assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["a\nb", "a\r", "s3://bucket/a\nb"])
def test_a_line_break_in_the_place_of_an_index_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(StoreError, match="holds a line break") as told:
        locate(name)
    assert str(told.value).isprintable()


def test_addresses_of_objects_are_kept_and_do_not_climb(bucket) -> None:
    bucket.put("v/a.mp4", b"x")
    assert str(absolute("s3://films/a b.mp4")) == "s3://films/a b.mp4"
    assert absolute(Path("s3://films/v")) == expand("s3://films/v/")
    assert locate("s3://films/v/") == locate(Path("s3://films/v")) == "s3://films/v"
    assert locate("gs://films/v/") == "gs://films/v"
    assert exists_at("s3://films/v")
    assert not exists_at("s3://films/w")
    with pytest.raises(ArgumentError, match=r"no '\.\.'"):
        absolute("s3://films/v/../../other")
    bucket.fault = lambda asked: "403"
    with pytest.raises(SureshotError, match="cannot be read: access is denied"):
        exists_at("s3://films/v")


@pytest.mark.parametrize("act", [library.remove, library.index, library.has_index, library.reset])
def test_an_empty_place_is_not_the_one_that_happens_to_be_there(act, tmp_path, monkeypatch):
    monkeypatch.setenv("SURESHOT_DB", str(tmp_path / "index"))
    with pytest.raises(ArgumentError, match="is empty"):
        act("")
