"""Folders that may be indexed."""

import pytest

from sureshot.errors import ArgumentError
from sureshot.web.jobs import Roots
from sureshot.web.schema import NotFoundError


@pytest.fixture
def home(tmp_path):
    for name in ("home/Videos/2024", "home/.hidden", "home/b", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home" / "a.mp4").touch()
    (tmp_path / "home" / "way-out").symlink_to(tmp_path / "outside")
    (tmp_path / "home" / "round").symlink_to(tmp_path / "home" / "round")
    return tmp_path / "home"


def test_folders_are_shown_level_by_level(home) -> None:
    roots = Roots([home])
    top = roots.below(None)
    assert (top["folder"], [one["path"] for one in top["folders"]]) == (None, [str(home)])
    told = roots.below(str(home))
    assert (told["above"], [one["name"] for one in told["folders"]]) == (None, ["b", "Videos"])
    inside = roots.below(str(home / "Videos"))
    assert (inside["above"], [one["name"] for one in inside["folders"]]) == (str(home), ["2024"])


def test_nothing_outside_is_looked_at(home, tmp_path) -> None:
    roots = Roots([home])
    for folder in (
        *("/", "/etc", str(tmp_path), str(tmp_path / "outside"), f"{home}-other", "", "b", "~"),
        *(
            f"{home}/../outside",
            f"{home}/way-out",
            f"{home}/round",
            f"{home}/none",
            f"{home}/a.mp4",
        ),
        *(f"{home}\0", "a" * 5000, f"{home}/" + "a" * 300),
    ):
        with pytest.raises(NotFoundError):
            roots.allowed(folder)
        with pytest.raises(NotFoundError):
            roots.below(folder)
    assert roots.allowed(f"{home}/Videos/../b") == home / "b"


def test_a_root_that_is_no_folder_is_told(home) -> None:
    with pytest.raises(ArgumentError, match="There is no folder"):
        Roots([home / "a.mp4"])


def test_a_bucket_is_no_folder_of_this_machine() -> None:
    with pytest.raises(ArgumentError, match="There is no folder s3://films"):
        Roots(["s3://films"])
