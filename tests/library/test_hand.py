"""A hand that cannot work says why; one that can hands in parcels and says how far it is."""

import time
from pathlib import Path

import pytest

from sureshot.library.ray_workers import RayWorker, version
from sureshot.media.discover import Source, discover
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store.writing import StagedVideo
from tests.clips import coloured
from tests.encoded import make_store

TINY = TinyEncoder().fingerprint


def hand(place: Path, model: str = "tiny") -> RayWorker:
    return RayWorker(str(place), model, None, None, 1)


def wrong(
    one: RayWorker, wanted: str = "", fingerprint: str = TINY, tops: tuple[str, ...] = ()
) -> str:
    said = one.begin(wanted or version(), fingerprint, tops)
    assert said["host"]
    assert abs(said["time"] - time.time()) < 60
    return said["wrong"]


def test_what_a_machine_lacks_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "index"
    make_store(place)
    assert wrong(hand(place)) == ""
    assert "has Sureshot 0.1" in wrong(hand(place), wanted="0.0 (abc)")
    assert "this run has 0.0 (abc); install the same" in wrong(hand(place), wanted="0.0 (abc)")
    assert "model 'tiny' is not the one of the index" in wrong(hand(place), fingerprint="other")
    assert "nothing at /none/here; mount it" in wrong(
        hand(place), tops=(str(tmp_path), "/none/here")
    )
    assert "There is no index at" in wrong(hand(tmp_path / "other"))
    assert "/none/model" in wrong(hand(place, "/none/model"))


def test_a_hand_packs_and_what_stops_it_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sureshot.library.ray_workers._QUIET", 0.0)
    store, one = make_store(tmp_path / "index"), hand(tmp_path / "index")
    coloured(tmp_path / "a.mp4", ["red", "green"], rate=5)
    sources = [source for source in discover([tmp_path]) if isinstance(source, Source)]
    wrong(one)
    words = list(one.pack(sources))
    assert {word[0] for word in words} == {"at", "done"}
    parcels = [word[1] for word in words if isinstance(word[1], StagedVideo)]
    store.commit(parcels)
    assert store.count() == 2
    with pytest.raises(AssertionError):
        list(hand(tmp_path / "index").pack(sources))  # never begun
