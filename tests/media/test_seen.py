"""A file is met once, whatever its names."""

import os
from pathlib import Path

from sureshot.media.discover import Seen


def test_names_of_one_file_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    os.link(tmp_path / "a", tmp_path / "c")
    (tmp_path / "d").symlink_to("a")
    with Seen() as seen:
        assert [seen.add((tmp_path / name).stat()) for name in "abcd"] == [True, True, False, False]
        assert seen.add(tmp_path.stat())


def test_numbers_of_any_size_are_told_apart() -> None:
    def stat(file: int, device: int) -> os.stat_result:
        return os.stat_result((0, file, device, *[0] * 7))

    with Seen() as seen:
        numbers = [(2**64 - 1, 1), (2**64 - 1, 2), (1, 2**64 - 1), (0x11, 0x1), (0x1, 0x11)]
        assert all(seen.add(stat(*number)) for number in numbers)
        assert not any(seen.add(stat(*number)) for number in numbers)
