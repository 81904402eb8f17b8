"""Packing gives every video of a list, whole or with a reason, and writes nothing that is seen."""

from pathlib import Path

from sureshot.library.encoding import pack_here, pack_videos
from sureshot.media.discover import Source, discover
from sureshot.models.encoders.toy import TinyEncoder
from tests.clips import coloured
from tests.encoded import make_store


def sources(folder: Path) -> list[Source]:
    coloured(folder / "a.mp4", ["red", "green"], rate=5)
    (folder / "bad.mp4").write_text("no video")
    return [source for source in discover([folder]) if isinstance(source, Source)]


def test_a_parcel_is_a_whole_video_or_the_reason_why_it_is_none(tmp_path: Path) -> None:
    store, found = make_store(tmp_path / "index"), sources(tmp_path)
    told: list[tuple[Path, float]] = []

    def advance(source: Source, share: float, seconds: float) -> None:
        told.append((source.path, seconds))

    parcels = {
        parcel.record.path.name: parcel
        for parcel in pack_videos(store, TinyEncoder(), found, workers=1, advance=advance)
    }
    whole, bad = parcels["a.mp4"], parcels["bad.mp4"]
    assert (whole.record.windows, len(whole.files), whole.record.reason) == (2, 1, "")
    assert whole.record.digest
    assert whole.record.check_windows
    assert (bad.record.windows, bad.files) == (0, ())
    assert "not a video" in bad.record.reason
    assert {path.name for path, _ in told} == {"a.mp4"}
    assert (store.count(), store.videos()) == (0, [])
    store.commit(list(parcels.values()))
    assert store.count() == 2
    assert store.lost(thorough=True) == []


def test_here_each_video_is_committed_by_itself(tmp_path: Path) -> None:
    store = make_store(tmp_path / "index")
    todo = sources(tmp_path)
    packed = pack_here(store, TinyEncoder(), 1)(todo, lambda source, share, seconds: None)
    assert [len(parcels) for parcels in packed] == [1, 1]
