"""Conditions on rows mean the rows that they say, whatever stands in a path."""

from pathlib import Path

import numpy as np

from sureshot.paths import video_id
from sureshot.store.index import Store
from sureshot.store.vector_search import VideoSet, path_below, path_is
from tests.encoded import make_store, random_windows, record


def test_conditions_quote_quotes() -> None:
    assert path_is(Path("/it's")) == "path = '/it''s'"
    assert path_below(Path("/")) == "(path = '/' OR starts_with(path, '/'))"
    assert path_below(Path("/a")) == "(path = '/a' OR starts_with(path, '/a/'))"


def test_some_videos_are_chosen_by_their_ids(tmp_path: Path) -> None:
    chosen = VideoSet(
        ids=frozenset({video_id(Path("/b")), video_id(Path("/a"))}), words="two of three"
    )
    assert path_below(chosen).startswith("video IN ('") and str(chosen) == "two of three"
    assert path_below(chosen, "id").startswith("id IN ('")
    store = make_store(tmp_path / "index")
    for name in "abc":
        store.write(record(f"/{name}"), random_windows(1))
    assert {p.name for p in found(store, chosen)} == {"a", "b"}
    assert found(store, VideoSet(ids=frozenset(), words="none")) == set()
    assert found(store, Path("/c")) == {Path("/c")}


def found(store: Store, under: Path | VideoSet) -> set[Path]:
    """Paths of the windows that a search among some videos looks at."""
    query = [1.0] + [0.0] * 23
    return set(store.nearest(np.array(query, np.float32), 9, under).paths)
