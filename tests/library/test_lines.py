"""Reading words into an index: what is read, what that says, and what an interruption leaves."""

import pytest

import sureshot
from sureshot.errors import ArgumentError
from sureshot.library.index_result import IndexProgress
from sureshot.media import picture_text, speech
from sureshot.store.index import Store
from tests.clips import film
from tests.media.test_picture_text import card

SRT = "1\n00:00:01,000 --> 00:00:02,000\nwe meet at noon\n"


@pytest.fixture
def run(tmp_path):
    """Indexes two films with titles, of which the first has subtitles."""
    videos = tmp_path / "videos"
    videos.mkdir()
    film(videos / "one.mp4", [card("HAPPY BIRTHDAY ANNA")] * 8, rate=2)
    film(videos / "two.mp4", [card("The first day")] * 8, rate=2)
    (videos / "one.srt").write_text(SRT)

    def index(**options):
        made = {"model": "tiny", "window": 2.0, "frames": 4, "workers": 1}
        return sureshot.index(videos, db=tmp_path / "db", **made | options)

    return index


def texts(tmp_path):
    store = Store.open(tmp_path / "db")
    return sorted(line.text for video in store.videos() for line in store.lines.of(video.path))


def test_words_that_are_not_asked_for_are_counted_until_they_are(run):
    first = run()
    assert first.worded == {"subtitles": 1}
    assert first.unread == {"picture": pytest.approx(8, abs=0.5)}
    every = run(words="all")
    assert every.worded == {"subtitles": 1, "picture": 2} and not every.unread
    assert not run(words="subtitles").unread  # they are there


def test_progress_says_what_is_read_and_how_much_of_it(run):
    run(words="none")
    now, said = IndexProgress(), []

    def show(result):
        now.update(result)
        said.append((now.text, now.done, now.total))

    run(words="all", progress=show)
    reading = [entry for entry in said if entry[0].startswith("reading text in the picture: ")]
    assert reading[-1] == ("reading text in the picture: 8 s of 8 s of video", 8, 8)
    assert [done for _, done, _ in reading] == sorted(done for _, done, _ in reading)


def test_what_was_read_before_an_interruption_is_not_read_again(run, tmp_path, monkeypatch):
    run(words="none")
    real, asked = picture_text.texts_in, []

    def read(image):
        asked.append(image)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return real(image)

    monkeypatch.setattr(picture_text, "texts_in", read)
    assert run(words="all").interrupted
    assert texts(tmp_path) == ["HAPPY BIRTHDAY ANNA", "we meet at noon"]
    again = run()
    assert again.lines == {"picture": 1} and len(asked) == 3
    assert texts(tmp_path) == ["HAPPY BIRTHDAY ANNA", "The first day", "we meet at noon"]


def test_subtitles_that_cannot_be_read_are_named_and_nothing_else_is_lost(run, tmp_path):
    (tmp_path / "videos" / "two.srt").write_bytes(b"\x7fELF\0")
    result = run()
    assert (result.indexed, result.lines, result.notes) == (2, {"subtitles": 1}, [])
    ((path, remark),) = result.left_out
    assert path.name == "two.mp4" and remark == "two.srt is left out: it is not text"
    assert result.to_dict()["left_out"][0]["reason"] == remark


def test_a_model_that_cannot_be_used_is_refused_and_one_that_fails_is_said_once(
    run, tmp_path, monkeypatch
):
    for words in ("none", "subtitles"):
        with pytest.raises(ArgumentError, match=f"--words {words} reads none of them"):
            run(speech=str(tmp_path), words=words)
    with pytest.raises(ArgumentError, match=r"--speech .* cannot be used: .* has no config.json"):
        run(speech=str(tmp_path))
    assert run().worded == {"subtitles": 1}  # it was not remembered
    for name in ("config.json", "model.bin", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr(speech, "_samples", lambda video: iter([speech.np.ones(99, "f4")]))
    result = run(speech=str(tmp_path))
    (warning,) = result.warnings
    assert warning.startswith("Speech was not read: The speech model")
    assert result.worded == {"subtitles": 1, "picture": 2}
