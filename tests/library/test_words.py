"""Words of videos: read with them, found at their time, and one row with what is shown then."""

import json
import shutil
from pathlib import Path

import pytest

import sureshot
from sureshot import library
from sureshot.errors import ArgumentError
from sureshot.files import CARD
from sureshot.library.judging import judge_query
from sureshot.library.query_checks import phrase_of
from sureshot.library.ranking import Query
from sureshot.library.results import Answer, Confidence, Hit, LineMatch
from sureshot.library.search import open_index
from sureshot.library.words import _plausible, _Row, _with_confidence
from sureshot.store.index import Store
from sureshot.store.maintenance import find_faults
from sureshot.trust.card import save_card
from tests.clips import blocks, coloured, film
from tests.grey import grey_clip, watch
from tests.trust.worlds import world

SRT = """1
00:00:01,200 --> 00:00:02,500
The <i>password</i> is swordfish

2
00:00:05,000 --> 00:00:06,000
We meet at the station at noon
"""

KINDS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve"),
    *("old", "new", "fast", "slow", "blue", "red", "lost", "stolen", "cheap", "borrowed"),
)


@pytest.fixture
def videos(tmp_path):
    """A film with subtitles, red and then green, and one without, blue."""
    folder = tmp_path / "videos"
    folder.mkdir()
    coloured(folder / "film.mp4", ["red", "green"], seconds=4, rate=5)
    coloured(folder / "blue.mp4", ["blue"], seconds=3, rate=5)
    (folder / "film.en.srt").write_text(SRT)
    return folder


@pytest.fixture
def run(tmp_path, videos):
    def index(**options):
        made = {"model": "tiny", "window": 2.0, "frames": 4, "workers": 1}
        return sureshot.index(videos, db=tmp_path / "db", **made | options)

    return index


def search(tmp_path, query, **options):
    return open_index(tmp_path / "db").search(query, **options)


@pytest.mark.parametrize(
    "query, start, text",
    [
        ("swordfish", 1.2, "The password is swordfish"),
        ("what was the password?", 1.2, "The password is swordfish"),
        ('"at the station"', 5.0, "We meet at the station at noon"),
        ("meeting at the station at midday", 5.0, "We meet at the station at noon"),
    ],
)
def test_words_are_found_at_their_time_and_named(tmp_path, run, query, start, text):
    result = run()
    assert (result.lines, result.worded) == ({"subtitles": 2}, {"subtitles": 1})
    hit = search(tmp_path, query)[0]
    assert hit.path.name == "film.mp4" and hit.source == "subtitles"
    assert hit.peak == pytest.approx(start, abs=0.5)
    assert hit.lines[0].text == text and hit.lines[0].language == "en"
    assert {*hit.lines[0].words} <= {"password", "swordfish", "meet", "station"}
    assert hit.lines[0].said.endswith(f'said in the subtitles: "{text}"')
    kept = hit.to_dict()
    assert kept["source"] == "subtitles" and kept["lines"][0]["text"] == text
    assert kept["probability"] > 0.5


def test_what_is_shown_and_said_at_one_time_is_one_row(tmp_path, videos, run):
    (videos / "film.en.srt").write_text(SRT.replace("The <i>password</i> is swordfish", "red"))
    run()
    answer = search(tmp_path, "red")
    at_red = [hit for hit in answer if hit.path.name == "film.mp4" and hit.start < 2]
    assert len(at_red) == 1 and at_red[0].frames and at_red[0].lines
    assert answer[0] == at_red[0]


def test_words_leave_an_answer_about_pictures_as_it_was(tmp_path, run):
    run(words="none")
    before = search(tmp_path, "blue")
    run(words="subtitles")
    after = search(tmp_path, "blue")
    assert after.hits == before.hits and after.status == before.status


def test_words_that_may_be_meant_never_put_pictures_lower(tmp_path, videos, run):
    """The model has no percentages, and words too little to count are no reason to."""
    run(words="none")
    before = [(hit.path, hit.start) for hit in search(tmp_path, "green and blue")]
    (videos / "film.en.srt").write_text(SRT.replace("We meet at the station at noon", "blue green"))
    (videos / "blue.srt").write_text(SRT.replace("The <i>password</i> is swordfish", "a green car"))
    run(words="subtitles")
    after = search(tmp_path, "green and blue")
    said = [hit for hit in after if hit.lines]
    assert said and all(hit.probability is None or hit.probability > 0.5 for hit in after)
    unsaid = [(hit.path, hit.start) for hit in after if hit.probability is None and hit.frames]
    assert unsaid == [one for one in before if one in unsaid]


def test_a_moment_is_the_same_however_many_are_asked_for(tmp_path, run):
    run()
    for query in ("red password", "what was the password?"):
        answers = [search(tmp_path, query, limit=limit) for limit in (10, 1, 2, 3)]
        assert any(hit.lines and hit.frames for hit in answers[0])
        for answer in answers[1:]:
            known = [(hit.start, hit.end, hit.probability) for hit in answer]
            whole = [(hit.start, hit.end, hit.probability) for hit in answers[0]]
            assert known == whole[: len(known)]


def test_a_line_in_a_long_shot_is_a_moment_of_its_own(tmp_path, videos, run):
    coloured(videos / "film.mp4", ["red", "red"], seconds=20, rate=5)
    run()
    best = search(tmp_path, "the password is swordfish")[0]
    assert best.lines and (best.start, best.end) == pytest.approx((1.2, 2.5))


def test_a_video_gives_no_more_moments_than_it_may(tmp_path, run):
    run()
    answer = search(tmp_path, "swordfish at the station", per_video=1)
    assert len({hit.path for hit in answer}) == len(answer) == 2


def test_words_of_copies_are_one_row_of_a_file_that_is_there(tmp_path, videos, run):
    for name in ("away.mp4", "copy.mp4"):
        shutil.copy(videos / "film.mp4", videos / name)
        (videos / name).with_suffix(".srt").write_text(SRT)
    (videos / "film.en.srt").unlink()
    run()
    (videos / "away.mp4").unlink()
    (hit,) = search(tmp_path, '"the password"')
    assert not hit.missing and hit.path.name == "copy.mp4"
    assert [copy.path.name for copy in hit.copies] == ["away.mp4"]
    each = search(tmp_path, '"the password"', merge_copies=False)
    assert {hit.path.name for hit in each} == {"away.mp4", "copy.mp4"}
    assert "gone stay in the index" in str(each.warnings)


def test_of_files_that_are_gone_only_those_of_moments_that_are_shown_are_named(
    tmp_path, videos, run
):
    run()
    (videos / "blue.mp4").unlink()
    assert "gone stay in the index" in str(search(tmp_path, "red").warnings)
    assert "gone stay in the index" not in str(search(tmp_path, "red", limit=1).warnings)


def test_a_short_line_at_the_end_is_no_moment_after_it(tmp_path, videos, run):
    (videos / "film.en.srt").write_text("1\n00:00:07,700 --> 00:00:07,900\nfarewell\n")
    run()
    (hit,) = search(tmp_path, '"farewell"')
    assert (hit.start, hit.end) == pytest.approx((6.9, 7.9))


def test_lines_that_are_said_while_the_last_picture_stands_still_are_found(tmp_path, videos, run):
    # Slides and screen recordings end so.
    grey_clip(videos / "slides.mp4", sound="aac", heard=(0.0, 9.0))
    (videos / "slides.srt").write_text("1\n00:00:07,000 --> 00:00:08,500\nany questions\n")
    run()
    answer = search(tmp_path, '"any questions"')
    assert (answer[0].start, answer[0].end) == pytest.approx((7.0, 8.5))
    here = [search(tmp_path, "are there any questions", limit=n).present for n in (1, 10)]
    assert here[0] == here[1] < 1
    clip = library.export(answer, tmp_path / "out").written[0]
    assert watch(clip)[0][2] == pytest.approx(3.9, abs=0.04)


def test_a_quoted_phrase_is_looked_for_in_words_alone(tmp_path, run):
    run(words="none")
    assert not (tmp_path / "db" / "lines.lance").exists()
    shown = search(tmp_path, '"red"')
    assert shown[0].frames and "pictures were searched for the phrase" in shown.warnings[-1]
    run(words="subtitles")
    assert [hit.source for hit in search(tmp_path, '"the password"')] == ["subtitles"]
    nothing = search(tmp_path, '"red"')
    assert not nothing.hits and "“red”" in nothing.warnings[-1]
    assert search(tmp_path, "red").hits[0].frames
    assert phrase_of('"a" or "b"') == phrase_of('"') == phrase_of('""') == ""


def test_a_number_is_the_same_with_and_without_a_comma(tmp_path, videos, run):
    (videos / "blue.srt").write_text(SRT.replace("swordfish", "1,250 dollars"))
    run()
    assert search(tmp_path, "1250")[0].lines


def test_a_word_is_the_same_with_another_ending(tmp_path, videos, run):
    (videos / "film.en.srt").write_text(SRT.replace("at noon", "to dance with the bride"))
    run()
    (line,) = search(tmp_path, "dancing with the bride")[0].lines
    assert {*line.words} == {"bride", "dance"}


def test_the_days_of_a_query_are_named_though_a_line_has_its_year(tmp_path, videos, run):
    (videos / "blue.srt").write_text(SRT.replace("swordfish", "for the party of 2024"))
    run()
    answer = search(tmp_path, "the party of 2024")
    assert answer[0].lines and "--since 2024-01-01" in " ".join(answer.warnings)


def test_only_what_changed_is_read_again_and_no_frame_is_encoded(tmp_path, videos, run):
    run(words="none")
    later = run(words="subtitles")
    assert (later.indexed, later.unchanged, later.lines) == (0, 2, {"subtitles": 2})
    again = run()
    assert (again.lines, again.worded) == ({}, {"subtitles": 1})
    (videos / "film.en.srt").write_text(SRT.replace("swordfish", "trout"))
    changed = run()
    assert (changed.indexed, changed.lines) == (0, {"subtitles": 2})
    assert search(tmp_path, "trout")[0].source == "subtitles"
    assert search(tmp_path, "swordfish")[0].source == "frames"
    (videos / "film.en.srt").unlink()
    gone = run()
    assert (gone.indexed, gone.worded) == (0, {})
    assert search(tmp_path, "trout")[0].source == "frames"


def test_words_of_a_file_that_was_replaced_are_forgotten(tmp_path, videos, run):
    run()
    assert search(tmp_path, "swordfish")[0].lines
    (videos / "film.en.srt").unlink()
    coloured(videos / "film.mp4", ["blue", "white"], seconds=4, rate=5)
    run(words="none")
    assert not any(hit.lines for hit in search(tmp_path, "swordfish"))


def test_lines_go_where_their_video_goes(tmp_path, videos, run):
    run()
    (videos / "film.mp4").rename(videos / "other.mp4")
    (videos / "film.en.srt").rename(videos / "other.en.srt")
    moved = run()
    assert (moved.moved, moved.indexed) == (1, 0)
    assert search(tmp_path, "swordfish")[0].path.name == "other.mp4"
    library.remove([videos / "other.mp4"], db=tmp_path / "db")
    assert Store.open(tmp_path / "db").lines.count() == 0
    assert all(hit.source == "frames" for hit in search(tmp_path, "swordfish"))


def test_words_of_another_folder_are_not_searched(tmp_path, videos, run):
    (videos / "below").mkdir()
    (videos / "blue.mp4").rename(videos / "below" / "blue.mp4")
    run()
    answer = search(tmp_path, "swordfish", folder=str(videos / "below"))
    assert {hit.source for hit in answer} == {"frames"}
    assert search(tmp_path, "swordfish", folder=str(videos))[0].source == "subtitles"


def test_a_line_steers_no_terminal(tmp_path):
    line = LineMatch("picture", "a\x1b[31m\u202eb", 1.0, 2.0)
    assert line.said.isprintable() and json.dumps(line.to_dict()).isprintable()


def test_unknown_words_are_refused(run):
    with pytest.raises(ArgumentError, match="some"):
        run(words="some")


def test_a_picture_keeps_its_own_percentage_and_a_note_on_a_word_that_is_said_is_dropped(
    tmp_path, videos
):
    (videos / "film.en.srt").write_text(SRT.replace("password", "swordfish password"))
    sureshot.index(videos, db=tmp_path / "db", words="none")
    query = "the swordfish password"
    before = search(tmp_path, query)
    sureshot.index(videos, db=tmp_path / "db", words="subtitles")
    after = search(tmp_path, query)
    assert any("swordfish" in note for note in before.warnings) and not after.warnings
    assert after[0].source == "subtitles" and after.answerable == "yes"
    assert "that the first result is right" in "".join(after.verdict)
    assert all(hit.source == "frames" for hit in search(tmp_path, "a red wall"))


def test_a_clip_is_exported_with_its_part_of_the_subtitles(tmp_path, run):
    run()
    searcher = open_index(tmp_path / "db")
    answer = searcher.search('"the station"')
    done = library.export(answer, tmp_path / "out", pad=1.0, lines=searcher.lines)
    clip, said = done.written
    assert clip.suffix == ".mp4" and said.name == clip.with_suffix(".en.srt").name
    assert said.read_text() == "1\n00:00:01,000 --> 00:00:02,000\nWe meet at the station at noon\n"


def test_a_sentence_that_is_said_describes_a_video_best(tmp_path, videos, run):
    run()
    searcher = open_index(tmp_path / "db")
    sentences = ["red", "the password is swordfish"]
    said = searcher.describe(videos / "film.mp4", sentences)
    assert said.ranked[0].text == sentences[1] and said.ranked[0].lines[0].start == 1.2
    assert "said in the subtitles" in repr(said)
    shown = searcher.describe(videos / "film.mp4", sentences, at=5)
    assert not any(one.lines for one in shown)


@pytest.mark.parametrize(
    "query, videos_of", [("cars", 2), ("car drives", 1), ("drives car", 0), ("a car in space", 0)]
)
def test_words_of_lines_that_may_not_be_meant_are_not_passed_over(
    tmp_path, videos, run, query, videos_of
):
    """Pictures of it are probably not there, which is no answer for whoever has heard it."""
    (videos / "film.en.srt").write_text(SRT.replace("The <i>password</i> is", "a red car drives"))
    (videos / "blue.en.srt").write_text(SRT.replace("The <i>password</i> is", "two cars of"))
    run()
    card = world(videos=150).card(model=open_index(tmp_path / "db").encoder.fingerprint)
    save_card(card, tmp_path / "db" / CARD)
    answer = search(tmp_path, query, prior=0.02)
    assert answer.status == "probably not here"
    notes = [note for note in answer.warnings if "said or written" in note]
    assert len(notes) == bool(videos_of)
    assert not notes or f"“{query}” is said or written in {videos_of} video" in notes[0]


@pytest.mark.parametrize("query, likely", [("car", False), ("a man", False), ("swordfish", True)])
def test_an_everyday_word_is_not_meant_by_lines_the_more_there_are(
    tmp_path, videos, run, query, likely
):
    """Lines that all have it are one alternative, and a word no caption has is asked of lines."""
    cue = "\n{0}\n00:00:0{1},{2}00 --> 00:00:0{1},{2}90\na man and {3} cars, and swordfish\n"
    cues = (cue.format(n, n // 10, n % 10, kind) for n, kind in enumerate(KINDS, 1))
    (videos / "film.en.srt").write_text("".join(cues))
    run()
    said = [hit.probability or 0.0 for hit in search(tmp_path, query) if hit.lines]
    assert (max(said, default=0.0) > 0.7) == likely
    assert likely or max(said, default=0.0) < 0.3


@pytest.mark.parametrize("query", ["swordfish", "swordfish password", "the password is"])
def test_lines_that_all_have_what_is_asked_do_not_share_its_percentage(
    tmp_path, videos, run, query
):
    other = SRT.replace("The <i>password</i>", "I know that the password").replace("noon", "ten")
    (videos / "blue.en.srt").write_text(other)
    run()
    hits = [hit for hit in search(tmp_path, query) if hit.lines]
    assert {hit.path.name for hit in hits} == {"film.mp4", "blue.mp4"}
    assert min(hit.probability for hit in hits) > 0.5


def test_lines_of_one_moment_are_no_likelier_together_than_any_line(tmp_path, videos, run):
    cue, said = "\n{0}\n00:00:0{0},500 --> 00:00:0{0},900\na red car number {0}\n", []
    for count in (1, 2):
        (videos / "film.en.srt").write_text("".join(map(cue.format, range(1, count + 1))))
        run()
        (hit,) = (hit for hit in search(tmp_path, "car number red") if hit.lines)
        assert len(hit.lines) == count
        said.append(hit.probability)
    assert 0.5 < said[1] <= said[0] < 1


def test_a_line_that_is_said_again_and_again_is_as_likely_as_one(tmp_path, videos, run):
    """Such as what each episode of a series begins with."""
    said = []
    for count in (1, 12):
        texts = ["welcome back to our cooking show", "now we add the salt"] * count
        cues = [
            f"{n}\n00:00:0{n / 4:.3f} --> 00:00:0{n / 4 + 0.2:.3f}\n{text}\n"
            for n, text in enumerate(texts)
        ]
        (videos / "film.en.srt").write_text("\n".join(cues).replace(".", ","))
        run()
        found = open_index(tmp_path / "db").search("welcome to the cooking show")
        said.append(found[0].probability)
        assert found[0].source == "subtitles"
    assert said[1] == pytest.approx(said[0], abs=0.02) and said[0] > 0.5


def test_words_of_captions_ask_for_pictures_where_people_talk(tmp_path, videos, run):
    """Among talk a line that says what could be seen stands out, and is no likelier for that."""
    captions = [
        *("a man plays a guitar on a stage", "two dogs run on a beach", "a boat sails on a lake"),
        *("children play football in a park", "a woman is cutting an onion"),
    ]
    talk = [
        *("I do not know what you mean", "we have to leave now", "where were you last night"),
        *("how much does it cost", "tell me the truth"),
    ]
    said = []
    for others in (captions, talk):
        cues = [
            f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{text}\n"
            for n, text in enumerate(["a car drives by the station", *others], 1)
        ]
        (videos / "film.en.srt").write_text("\n".join(cues))
        run()
        found = search(tmp_path, "a car drives on the road")
        said.append(max((hit.probability or 0.0 for hit in found if hit.lines), default=0.0))
    assert said[1] < 0.5 < said[0]


def test_a_judged_hit_by_words_keeps_where_they_were(tmp_path, run):
    run()
    label = judge_query(
        open_index(tmp_path / "db"),
        "swordfish",
        lambda hit: "yes",
        lambda shown: "absent",
        {"limit": 1},
    )
    assert [moment.source for moment in label.moments] == ["subtitles"]
    assert label.state == "present" and label.of_frames().state == "not found"


@pytest.mark.parametrize("query, shown", [('"zebra crossing"', 0), ('"the password"', 1)])
def test_a_phrase_that_is_not_found_teaches_pictures_nothing(tmp_path, run, query, shown):
    run()
    asked = []
    label = judge_query(
        *(open_index(tmp_path / "db"), query, lambda hit: "no"),
        lambda count: asked.append(count) or ("more" if count else "absent"),
        {"limit": 1},
    )
    assert asked == [shown] and label.is_of_words
    assert label.state == ("not found" if shown else "absent")


def test_pictures_without_percentages_are_no_long_list_behind_words(tmp_path, run):
    """The model has no percentages, and the words alone are not enough for 99.9 in 100."""
    run()
    answer = search(tmp_path, "what was the password?", limit=3, coverage=0.999)
    assert answer[0].lines and any(hit.probability is None for hit in answer)
    assert answer.confidence.plausible is None and "short list" not in "".join(answer.verdict)


def test_words_that_cannot_be_read_are_reported_and_pictures_are_found(tmp_path, videos, run):
    run()
    for path in (tmp_path / "db" / "lines.lance" / "data").iterdir():
        path.unlink()
    for query in ("red", '"the password"', "swordfish"):
        answer = search(tmp_path, query)
        assert answer.hits and all(hit.source == "frames" for hit in answer)
        assert "`sureshot index FOLDER`" in " ".join(answer.warnings)
    described = open_index(tmp_path / "db").describe(videos / "film.mp4", ["red", "swordfish"])
    assert "`sureshot index FOLDER`" in " ".join(described.warnings)
    run()
    assert search(tmp_path, "swordfish")[0].source == "subtitles"


def test_words_whose_newest_version_is_gone_are_reported_and_read_again(tmp_path, run):
    run()
    min((tmp_path / "db" / "lines.lance" / "_versions").glob("*.manifest")).unlink()
    said = "newest version of the table of lines"
    assert said in " ".join(search(tmp_path, "swordfish").warnings)
    assert any(said in fault.what for fault in find_faults(str(tmp_path / "db")))
    run()
    answer = search(tmp_path, "swordfish")
    assert answer[0].source == "subtitles" and said not in " ".join(answer.warnings)


def test_whoever_knows_that_it_is_there_gets_that_counted_in(tmp_path, run):
    """Pictures have no percentage here, so half of what is left is theirs."""
    run()
    plain = search(tmp_path, "what was the password?")
    known = search(tmp_path, "what was the password?", present=True)
    said, here = plain[0].probability, 1 - 0.5 * (1 - plain[0].probability)
    assert plain.present == pytest.approx(here) and said < 0.999
    assert known[0].probability == pytest.approx(said / here) == known.confidence.right
    assert known.present == known.confidence.prior == 1
    assert "not in your videos" not in "".join(known.verdict)


def test_how_often_searches_are_for_what_is_there_counts_for_words_too(tmp_path, run, monkeypatch):
    run()
    given = search(tmp_path, "what was the password?", prior=0.9)[0].probability
    plain = search(tmp_path, "what was the password?")[0].probability
    monkeypatch.setenv("SURESHOT_PRIOR", "90%")
    assert search(tmp_path, "what was the password?")[0].probability == given > plain
    # Pictures may have what is there as surely.
    assert search(tmp_path, "what was the password?", prior=0.999)[0].probability == given


def test_a_list_covers_what_is_there_as_often_as_it_says():
    """Here in a fifth of searches, each row right in half of these: nine in ten take four."""
    hit = Hit(rank=1, path=Path("v.mp4"), start=0.0, end=1.0, score=0.0)
    rows = [_Row(hit, 0.1) for _ in range(10)]
    assert _plausible(rows, 0.9 * 0.2, present=0.2) == 4


def test_hits_without_a_percentage_are_less_likely_than_asked_for(tmp_path, run):
    run()
    whole = search(tmp_path, "the password is swordfish")
    assert whole[0].lines and any(hit.probability is None for hit in whole)
    likely = search(tmp_path, "the password is swordfish", min=0.5)
    assert [hit.source for hit in likely] == ["subtitles"] and "left out" in likely.warnings[-1]
    clips = library.export(whole, tmp_path / "out")
    assert (len(clips.written), clips.left_out) == (1, len(whole) - 1)
    assert search(tmp_path, "red", min=0.5).hits  # nothing has a percentage


@pytest.mark.parametrize(
    "query, meant",
    [
        ("swordfsh", "swordfish"),
        ("the pasword is swordfsh", "the password is swordfish"),
        ("Hermoine at the station", "hermione at the station"),  # names are in lines, too
        ("Kettner at noon", "kettler at noon"),
        ("Otto at noon", None),  # short words are near to many
        ("swrdf", None),
        ("an elefant at noon", "an elephant at noon"),  # no elegant one
        ("platzhirsh", "platzhirsch"),  # of a film that came later
    ],
)
def test_a_misspelt_word_that_only_lines_have_is_corrected(tmp_path, spelt, query, meant):
    answer = spelt.search(query)
    assert answer.typed == (query if meant else "")
    if meant:
        assert f"“{meant}”" in answer.warnings[0]
        assert answer[0].lines or "elephant" in meant
    assert not spelt.search(query, correct=False).typed


def test_a_misspelt_word_is_searched_as_it_is_where_lines_cannot_be_read(tmp_path, videos):
    sureshot.index(videos, db=tmp_path / "db", workers=1)
    for path in (tmp_path / "db" / "lines.lance" / "data").iterdir():
        path.unlink()
    answer = search(tmp_path, "swordfsh")
    assert answer.hits and not answer.typed
    assert "`sureshot index FOLDER`" in " ".join(answer.warnings)


@pytest.fixture(scope="module")
def spelt(tmp_path_factory):
    """An index of the bundled model with lines of two films, one of which came later."""
    folder = tmp_path_factory.mktemp("spelt")
    coloured(folder / "film.mp4", ["red", "green"], seconds=4, rate=5)
    (folder / "film.srt").write_text(SRT.replace("We", "Hermione and elegant Mr Kettler"))
    sureshot.index(folder, db=folder / "db", workers=1)
    coloured(folder / "late.mp4", ["blue"], seconds=3, rate=5)
    (folder / "late.srt").write_text(SRT.replace("swordfish", "platzhirsch"))
    sureshot.index(folder, db=folder / "db", workers=1)
    return open_index(folder / "db")


def test_what_subtitles_say_is_not_said_to_be_unknown_or_left_out(tmp_path, videos):
    (videos / "film.en.srt").write_text(SRT.replace("The <i>password</i>", "I never said it"))
    sureshot.index(videos, db=tmp_path / "db")
    searcher = open_index(tmp_path / "db")
    described = searcher.describe(videos / "film.mp4", ["swordfish", "a zorblax"])
    assert len(described.warnings) == 1 and "zorblax" in described.warnings[0]
    assert not searcher.describe(videos / "film.mp4", ["swordfish"]).warnings
    answer = searcher.search("never said it is swordfish")
    assert answer[0].source == "subtitles" and not answer.warnings and not answer.unrated
    negated = searcher.search("no red wall")
    assert negated.unrated and "Not calibrated" not in f"{negated.verdict}{negated.note}"


@pytest.mark.parametrize(
    "phrase, span",
    [
        ("at the station at noon", (1.0, 4.0)),
        ("meet at the station at", (1.0, 4.0)),
        ("meeting at the stations at noon tomorrow", (1.0, 4.0)),  # but for endings
        ("the station", (1.0, 2.0)),
        ("noon tomorrow", (2.2, 4.0)),
        ("tomorrow bring the money", None),  # half a minute later
        ("noon at the station", None),
        ("station we meet", None),  # each track by itself
    ],
)
def test_a_phrase_may_go_on_in_the_next_line_of_its_track(tmp_path, phrase, span):
    folder = tmp_path / "videos"
    folder.mkdir()
    coloured(folder / "film.mp4", ["red", "green"], seconds=40, rate=1)
    lines = (
        ("00:00:01,000 --> 00:00:02,000", "We meet at the station"),
        ("00:00:02,200 --> 00:00:04,000", "at noon tomorrow."),
        ("00:00:34,000 --> 00:00:35,000", "Bring the money."),
    )
    text = "\n".join(f"{n}\n{when}\n{said}\n" for n, (when, said) in enumerate(lines, 1))
    (folder / "film.en.srt").write_text(text)
    (folder / "film.fr.srt").write_text(text.replace("station\n", "gare\n"))
    sureshot.index(folder, db=tmp_path / "db", model="tiny", workers=1)
    answer = open_index(tmp_path / "db").search(f'"{phrase}"')
    found = {(line.start, line.end) for hit in answer for line in hit.lines}
    assert found == ({span} if span else set())
    assert all(hit.start <= span[0] and hit.end >= span[1] for hit in answer)
    assert all(hit.probability == 1 for hit in answer) and not answer.note


def test_lines_that_all_say_what_is_asked_do_not_rule_each_other_out(tmp_path, videos):
    lines = [f"{n}\n00:00:0{n % 7},{n}00 --> 00:00:07,900\nI love you, Anna\n" for n in range(9)]
    for name, colour in zip("abcd", ("blue", "green", "white", "black"), strict=True):
        coloured(videos / f"{name}.mp4", ["red", colour], seconds=2, rate=5)
        said = [line.replace("Anna", f"Anna {name}") for line in lines]
        said.append("10\n00:00:01,000 --> 00:00:02,000\nThe password is swordfish.\n")
        (videos / f"{name}.srt").write_text("\n".join(said))
    sureshot.index(videos, db=tmp_path / "db", model="tiny", workers=1)
    for query in ("i love you anna", "what is the password"):  # the latter in no words of a line
        answer = search(tmp_path, query)
        assert all(hit.lines and hit.probability > 0.5 for hit in answer[:4])
        assert answer[0].probability <= answer.present <= 1
        assert answer.confidence.expected <= 10
        assert "Many of your videos seem to show or say this" in " ".join(answer.verdict)


def test_lines_of_which_one_is_meant_are_enough_together(tmp_path):
    """None of three is likely, but one of them almost surely: they rule each other out."""
    folder = tmp_path / "videos"
    folder.mkdir()
    for name, colour in (("seven", "red"), ("eight", "green"), ("nine", "blue")):
        coloured(folder / f"{name}.mp4", [colour], seconds=3, rate=5)
        said = f"1\n00:00:01,000 --> 00:00:02,000\nThe code of the bicycle lock is {name}\n"
        for track in (".en", ".fr"):  # twice the same words are not twice as likely
            (folder / f"{name}{track}.srt").write_text(said)
    sureshot.index(folder, db=tmp_path / "db", workers=1)
    query = "which code opens the lock of a bicycle"
    answer = search(tmp_path, query)
    assert [len(hit.lines) for hit in answer] == [2, 2, 2]
    shares = [hit.probability for hit in answer]
    assert 0.2 < min(shares) <= max(shares) < 0.45 and 0.8 < answer.present < 1
    assert answer.confidence.plausible == 3
    assert search(tmp_path, query, limit=2).confidence.plausible == 3


def with_words(known: Confidence, shares, **about) -> list[Answer]:
    """An answer of one hit of pictures, as likely as that says, next to words that are meant."""
    path, right = Path("v.mp4"), known.right
    hit = Hit(rank=1, path=path, start=0.0, end=1.0, score=0.0, probability=right)
    answer = Answer(
        query="a dog",
        hits=(hit,),
        model="tiny",
        searched=99,
        seconds=0.0,
        confidence=known,
        **about,
    )
    asked, rows = Query(text="a dog", codes=None), [_Row(hit, right)]
    return [_with_confidence(answer, asked, said, said, rows) for said in shares]


def test_a_line_that_may_not_be_meant_makes_no_card_of_other_footage_sure():
    known = Confidence(
        right=0.9, coverage=0.9, plausible=1, prior=0.5, valid_for="photographs", reference="photos"
    )
    found = with_words(known, (0.6, 0.9), status="several plausible", present=0.95)
    assert [one.answerable for one in found] == ["unknown", "yes"]


def test_words_that_make_it_likelier_to_be_here_unsay_that_it_is_not():
    """Of 62 % absent pictures alone say "not sure", so words that leave 55 % do too."""
    known = Confidence(
        right=0.1, coverage=0.9, plausible=None, prior=0.5, valid_for="films", absent_below=0.36
    )
    about = {"status": "probably not here", "present": 0.3, "answerable": "no"}
    found = with_words(known, (0.05, 0.36), **about)
    assert [one.answerable for one in found] == ["no", "unknown"]
    assert [one.verdict[0] for one in found] == ["Probably not in your videos", "Not sure"]


def test_words_of_a_video_that_is_gone_stay_with_the_copy_that_is_shown(tmp_path):
    folder = tmp_path / "videos"
    folder.mkdir()
    film(folder / "film.mp4", blocks(8, ["red", "white"], (192, 128)), rate=4)
    film(folder / "small.mp4", blocks(8, ["red", "white"]), rate=4)  # not of the same bytes
    (folder / "film.srt").write_text(
        "1\n00:00:00,500 --> 00:00:01,500\nThe password is swordfish\n"
    )
    sureshot.index(folder, db=tmp_path / "db", model="tiny", workers=1)
    (folder / "film.mp4").unlink()
    first, *others = search(tmp_path, "the password is swordfish")
    assert first.path.name == "small.mp4" and not first.missing
    assert first.lines[0].text == "The password is swordfish"
    assert not any(hit.lines or hit.path == folder / "film.mp4" for hit in others)


def test_a_line_in_another_piece_of_a_scene_is_found_at_its_own_time(tmp_path, videos, run):
    coloured(videos / "film.mp4", ["red", "green", "red"], seconds=4, rate=5)
    (videos / "film.en.srt").unlink()
    run()
    (piece,) = search(tmp_path, "red").hits[0].pieces
    at = f"00:00:{piece.start + 1:06.3f}".replace(".", ",")
    (videos / "film.en.srt").write_text(f"1\n{at} --> {at[:-1]}9\nRed\n")
    run()
    (said,) = [hit for hit in search(tmp_path, "red") if hit.lines]
    assert said.start <= said.lines[0].start <= said.end
