"""Entries come out as they went in, from whatever shards have them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from sureshot.errors import SureshotError
from sureshot.research.features import FeatureCache


def entry(number: int, rows: int = 2) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(number)
    return {
        "frames": draw.normal(size=(rows, 5)).astype(np.float16),
        "patches": draw.normal(size=(rows, 9, 3)).astype(np.float16),
        "sentence": draw.normal(size=(1, 5)).astype(np.float16),
    }


def same(found: object, expected: object) -> bool:
    if isinstance(found, str) or isinstance(expected, str):
        return found == expected
    return list(found) == list(expected) and all(
        np.array_equal(found[name], expected[name]) and found[name].dtype == expected[name].dtype
        for name in found
    )


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    failed=st.sets(st.integers(0, 11)),
    shard=st.integers(1, 12),
    data=st.data(),
)
def test_any_keys_are_found_in_any_shards(tmp_path_factory, lengths, failed, shard, data) -> None:
    cache = FeatureCache(tmp_path_factory.mktemp("cache") / "below")
    entries = {
        f"key {number}": f"reason {number}" if number in failed else entry(number, length)
        for number, length in enumerate(lengths)
    }
    keys = list(entries)
    for first in range(0, len(keys), shard):
        cache.write({key: entries[key] for key in keys[first : first + shard]})
    wanted = data.draw(st.sets(st.sampled_from([*keys, "unknown"])))
    found = cache.read(wanted)
    assert found.keys() == wanted - {"unknown"}
    assert all(same(value, entries[key]) for key, value in found.items())
    assert len(list(cache.folder.iterdir())) == -(-len(keys) // shard)


def test_nothing_is_found_where_nothing_was_written(tmp_path: Path) -> None:
    assert FeatureCache(tmp_path / "none").read(["key"]) == {}


def test_the_same_keys_replace_their_shard(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path)
    cache.write({"a": entry(0), "b": "broken"})
    cache.write({"b": entry(1), "a": entry(2)})
    assert len(list(tmp_path.iterdir())) == 1
    assert same(cache.read(["a", "b"])["a"], entry(2))


def test_other_files_and_damaged_shards_are_passed_over(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path)
    cache.write({"a": entry(0)})
    (good,) = tmp_path.iterdir()
    (tmp_path / f"shard-{'0' * 32}.safetensors").write_bytes(good.read_bytes()[:-1])
    (tmp_path / f"shard-{'1' * 32}.safetensors").write_bytes(b"noise")
    save_file({"a": np.zeros(3)}, tmp_path / f"shard-{'2' * 32}.safetensors")
    save_file({"a": np.zeros(3)}, tmp_path / f"shard-{'3' * 32}.safetensors", {"entries": "[1]"})
    save_file({"a": np.zeros(3)}, tmp_path / "videos-of-before.safetensors")
    assert same(cache.read(["a"])["a"], entry(0))


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SureshotError, match=r"cannot be kept in .*file/below: .*Free some space"):
        FeatureCache(tmp_path / "file" / "below").write({"a": entry(0)})
