"""Subtitles in files and tracks: their words, times and languages, whatever the file gets wrong."""

import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.media import lines, subtitles
from sureshot.paths import absolute
from tests.clips import film, greys
from tests.library.test_timelines import recorded

SRT = """1
00:00:01,000 --> 00:00:02,500
The <i>password</i>
is swordfish

2
00:00:03,000 --> 00:00:04,000
{\\an8}Goodbye &amp; thanks
"""
VTT = """WEBVTT
Kind: captions
Language: {language}

STYLE
::cue {{ color: red }}

NOTE not a caption

first
00:01.000 --> 00:02.500 align:start
<v Roger>The <00:00:01.500><c.loud>password</c></v>
is swordfish

00:00:03.000 --> 00:00:04.000
Goodbye &amp; thanks
"""
ASS = """[Script Info]
ScriptType: {version}

[Events]
Format: {first}, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,not a caption
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,The {{\\i1}}password{{\\i0}}\\Nis swordfish
Dialogue: 0,0:00:02.00,0:00:02.50,Default,,0,0,0,,{{\\p1}}m 0 0 l 9 9{{\\p0}}
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,Goodbye & thanks
"""
WORDS = [(1.0, 2.5, "The password is swordfish"), (3.0, 4.0, "Goodbye & thanks")]
FILES = {
    ".srt": SRT,
    ".vtt": VTT.format(language=""),
    ".ass": ASS.format(version="v4.00+", first="Layer"),
    ".ssa": ASS.format(version="v4.00", first="Marked"),
}


def sidecars_of(video: Path, **options) -> list[subtitles.Sidecar]:
    return subtitles.sidecars([video], **options).get(video, [])


def read(video: Path, **options) -> tuple[list[lines.Line], list[str]]:
    """The lines of the subtitle files of a video, and the remarks."""
    notes: list[str] = []
    video.touch()
    files = sidecars_of(video, note=notes.append)
    found = list(lines.read(video, "subtitles", sidecars=files, note=notes.append, **options))
    return found, notes


def test_names_that_differ_in_the_form_of_an_accent_have_their_own_files(tmp_path):
    for form in ("Caf\u00e9", "Cafe\u0301"):
        (tmp_path / f"{form}.mp4").touch()
        (tmp_path / f"{form}.en.srt").touch()
    if len(list(tmp_path.iterdir())) == 2:
        pytest.skip("names are of one form here")
    for form in ("Caf\u00e9", "Cafe\u0301"):
        (file,) = sidecars_of(tmp_path / f"{form}.mp4")
        assert file.path.name == f"{form}.en.srt"
    (tmp_path / "Caf\u00e9.mp4").unlink()
    assert len(sidecars_of(tmp_path / "Cafe\u0301.mp4")) == 2  # copied from another system


@pytest.mark.parametrize("suffix", FILES)
def test_every_kind_of_file_gives_its_words_without_what_styles_them(tmp_path, suffix):
    (tmp_path / f"film{suffix}").write_text(FILES[suffix])
    found, notes = read(tmp_path / "film.mp4")
    assert [line[:3] for line in found] == WORDS and not notes
    assert {line.source for line in found} == {"subtitles"}


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("film.srt", ""),
        ("film.en.srt", "en"),
        ("film.pt-BR.forced.SRT", "pt-BR"),
        ("film.eng.hi.srt", "en"),
        ("film.hi.srt", "hi"),
        ("film.take 2.srt", ""),
        ("Subs/film.de.srt", "de"),
        ("Subs/film/2_English.srt", "en"),
        ("subtitles/French.srt", "fr"),
    ],
)
def test_files_named_like_the_video_belong_to_it_in_the_language_they_name(
    tmp_path, name, language
):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SRT)
    video = tmp_path / "film.mp4"
    video.touch()
    status = path.stat()
    assert sidecars_of(video) == [
        subtitles.Sidecar(path, language, status.st_size, status.st_mtime_ns)
    ]


def test_a_file_belongs_to_the_video_with_the_longest_name_that_fits(tmp_path):
    for name in ("film.mp4", "film.en.mp4", "film.en.srt", "other.srt", ".film.srt", "films.srt"):
        (tmp_path / name).write_text(SRT)
    assert not sidecars_of(tmp_path / "film.mp4")
    assert [file.path.name for file in sidecars_of(tmp_path / "film.en.mp4")] == ["film.en.srt"]


def test_links_out_of_the_indexed_folders_are_left_out_by_name(tmp_path):
    private, shared, videos = (tmp_path / name for name in ("private", "shared", "videos"))
    for folder in (private, shared, videos):
        folder.mkdir()
    video = videos / "film.mp4"
    (shared / "film.mp4").touch()
    video.symlink_to(shared / "film.mp4")
    for folder in (private, shared):
        (folder / "words.srt").write_text(SRT)
    (videos / "film.de.srt").symlink_to(private / "words.srt")
    (videos / "film.en.srt").symlink_to(shared / "words.srt")  # where the video is, too
    notes: list[str] = []
    assert [file.language for file in sidecars_of(video, note=notes.append)] == ["en"]
    assert len(notes) == 1 and "film.de.srt" in notes[0]
    assert len(sidecars_of(video, roots=[private])) == 2


def test_files_in_a_bucket_are_read_as_those_in_a_folder(bucket, tmp_path):
    bucket.put("v/film.mp4", b"no video")
    bucket.put("v/film.en.srt", SRT.encode())
    bucket.put("v/Subs/film.de.vtt", FILES[".vtt"].encode())
    video = absolute("s3://films/v/film.mp4")
    files = sidecars_of(video)
    assert sorted(file.language for file in files) == ["de", "en"]
    found = list(lines.read(video, "subtitles", sidecars=files))
    for language in ("de", "en"):
        assert [line[:3] for line in found if line.language == language] == WORDS
    bucket.put("v/film.mp4", film(tmp_path / "film.mp4", greys([50] * 20)))
    bucket.asked.clear()
    assert len(list(lines.read(video, "subtitles", sidecars=files))) == len(found)
    assert [asked.method for asked in bucket.asked].count("HEAD") == 1


def test_a_changed_file_changes_the_stamp_and_a_moved_one_does_not(tmp_path):
    (tmp_path / "film.mp4").touch()
    file = tmp_path / "film.srt"
    file.write_text(SRT)
    before = lines.stamp("subtitles", sidecars_of(tmp_path / "film.mp4"))
    os.utime(file, ns=(1, 1))
    changed = lines.stamp("subtitles", sidecars_of(tmp_path / "film.mp4"))
    (tmp_path / "moved").mkdir()
    for name in ("film.mp4", "film.srt"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    moved = lines.stamp("subtitles", sidecars_of(tmp_path / "moved" / "film.mp4"))
    assert len({before, changed, lines.stamp("subtitles")}) == 3 and moved == changed


def with_tracks(path: Path, tracks: Sequence[tuple[str, str]], ahead: float = 0.0) -> Path:
    """A film of ten seconds with tracks of the words of `FILES`, each of a suffix and a language.

    Args:
        ahead: seconds that the clock of the file begins with.
    """
    codec = "libvpx" if path.suffix == ".webm" else "mpeg4"
    pictures = film(path.with_name(f"pictures{path.suffix}"), greys([50] * 20), rate=2, codec=codec)
    with ExitStack() as opened:
        out = opened.enter_context(av.open(path, "w"))
        sources = [opened.enter_context(av.open(pictures))]
        streams = [out.add_stream_from_template(sources[0].streams.video[0])]
        for number, (suffix, language) in enumerate(tracks):
            parsed = path.with_name(f"track{number}{suffix}")
            parsed.write_text(FILES[suffix])
            sources.append(opened.enter_context(av.open(parsed)))
            if path.suffix == ".mp4":
                streams.append(out.add_stream("mov_text"))
                streams[-1].codec_context.subtitle_header = ASS.encode()
            else:
                streams.append(out.add_stream_from_template(sources[-1].streams.subtitles[0]))
            streams[-1].metadata["language"] = language
        for source, stream in zip(sources, streams, strict=True):
            for packet in source.demux():
                if packet.pts is not None:
                    out.mux(_moved(packet, stream, ahead))
    return path


def _moved(packet: av.Packet, stream: av.stream.Stream, ahead: float) -> av.Packet:
    ticks = round(ahead / packet.time_base)
    if stream.codec_context.name == "mov_text":
        text = bytes(packet).replace(b"<i>", b"").replace(b"</i>", b"")
        sample = av.Packet(len(text).to_bytes(2, "big") + text)
        sample.pts, sample.duration, sample.time_base = (
            packet.pts,
            packet.duration,
            packet.time_base,
        )
        packet = sample
    packet.pts += ticks
    packet.dts = packet.dts + ticks if packet.dts is not None else packet.pts
    packet.stream = stream
    return packet


@pytest.mark.parametrize("ahead", [0.0, 5.0])
@pytest.mark.parametrize(
    ("name", "tracks"),
    [
        ("film.mkv", [(".srt", "eng"), (".ass", "ger")]),
        ("film.webm", [(".vtt", "por")]),
        ("film.mp4", [(".srt", "eng"), (".srt", "fre")]),
    ],
)
def test_tracks_inside_a_video_are_read_by_language_in_time_with_its_pictures(
    tmp_path, name, tracks, ahead
):
    found, notes = read(with_tracks(tmp_path / name, tracks, ahead))
    assert not notes
    for _, code in tracks:
        language = {"eng": "en", "ger": "de", "por": "pt", "fre": "fr"}[code]
        words = [(round(a, 2), round(b, 2), text) for a, b, text, _, of in found if of == language]
        assert words == WORDS, language


ROLLING = """WEBVTT

00:00:01.000 --> 00:00:03.000
_
the<00:00:01.500><c> password</c>

00:00:03.000 --> 00:00:03.010
the password
_

00:00:03.010 --> 00:00:05.000
the password
is<00:00:04.000><c> swordfish</c>

00:00:05.000 --> 00:00:05.010
is swordfish

00:01:00.000 --> 00:01:01.000
the password
""".replace("_", " ")


def test_rolling_captions_give_each_line_once_unless_it_comes_back_later(tmp_path):
    (tmp_path / "film.vtt").write_text(ROLLING)
    found, _ = read(tmp_path / "film.mp4")
    assert [(line.start, line.text) for line in found] == [
        (1.0, "the password"),
        (3.01, "is swordfish"),
        (60.0, "the password"),
    ]
    assert found[0].end == 5.0  # shown above the next line until then


def test_a_file_and_a_track_with_the_same_words_give_them_once(tmp_path):
    video = with_tracks(tmp_path / "film.mkv", [(".srt", "eng")])
    (tmp_path / "film.en.srt").write_text(SRT)
    found, _ = read(video)
    assert [line.text for line in found] == [text for *_, text in WORDS]


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("Wir müssen gehen, schön dass du da warst. Für mich wäre das toll.", "cp1252", "film.srt"),
        ("Você já comeu o pão, não é?", "cp1252", "film.pt.srt"),
        ("Não, coração: você já comeu o pão.", "cp1252", "film.srt"),
        ("¿Dónde está el niño? Mañana vendrá.", "cp1252", "film.srt"),
        ("Où êtes-vous allé, et déjà à Noël ?", "cp1252", "film.srt"),
        ("Perché non può essere così?", "cp1252", "film.srt"),
        ("Şimdi gidiyoruz, çabuk ol; ağır değil.", "cp1254", "film.srt"),
        ("Kur tu esi, mīļā? Šodien jāiet mājās.", "cp1257", "film.srt"),
        ("Musimy już iść, proszę się pośpieszyć.", "cp1250", "film.srt"),
        ("Нам пора идти, пожалуйста, поторопитесь.", "cp1251", "film.srt"),
        ("今すぐ行かなければなりません。急いでください。", "shift_jis", "film.srt"),
        ("我们现在必须走了，请快一点。", "gb18030", "film.srt"),
        ("Wir müssen gehen.", "utf-8-sig", "film.srt"),
        ("Нам пора идти.", "utf-16", "film.srt"),
    ],
)
def test_words_are_read_whatever_their_encoding(tmp_path, text, encoding, name):
    srt = f"1\r\n00:00:01,000 --> 00:00:02,000\r\n{text}\r\n"
    (tmp_path / name).write_bytes(srt.encode(encoding))
    found, notes = read(tmp_path / "film.mp4")
    assert [line.text for line in found] == [text] and not notes


def test_a_file_counts_from_the_beginning_of_the_video_and_not_of_its_pictures(tmp_path):
    made = recorded(tmp_path / "film.mov", late=1.2)
    made.with_suffix(".srt").write_text(SRT)
    found, _ = read(made)
    assert [(line.start, line.end) for line in found] == [
        pytest.approx((0.0, 1.3), abs=0.05),
        pytest.approx((1.8, 2.8), abs=0.05),
    ]


def test_what_is_called_like_subtitles_and_is_none_costs_no_other(tmp_path, monkeypatch):
    (tmp_path / "film.srt").mkdir()
    (tmp_path / "film.en.srt").write_text(SRT)
    (tmp_path / "Subs").mkdir()
    listdir = os.listdir

    def refused(path):
        if Path(path).name == "Subs":
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refused)
    found, notes = read(tmp_path / "film.mp4")
    assert [line.text for line in found] == [text for *_, text in WORDS]
    assert notes == [
        f"{tmp_path}/Subs is left out: permission denied",
        "film.srt is left out: is not a regular file",
    ]


def test_one_damaged_letter_does_not_change_the_encoding_of_the_rest(tmp_path):
    text = "Wir müssen gehen, schön dass du für mich da wärst; größer, kühner, älter, früh, süß"
    (tmp_path / "film.srt").write_bytes(
        b"1\n00:00:01,000 --> 00:00:02,000\n" + text.encode() + b" \xff"
    )
    assert read(tmp_path / "film.mp4")[0][0].text == f"{text} \ufffd"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no subtitles"),
        (b"<!DOCTYPE html><html><body>404 not found</body></html>", "no subtitles"),
        (b"\x7fELF\x02\x01\x01\0\0\0" * 99, "not text"),
        (b"WEBVTT\n\nNOTE nothing here\n", "no subtitles"),
    ],
)
def test_a_file_without_subtitles_is_refused_by_name_and_the_others_are_read(
    tmp_path, content, reason
):
    (tmp_path / "film.de.srt").write_bytes(content)
    (tmp_path / "film.en.srt").write_text(SRT)
    found, notes = read(tmp_path / "film.mp4")
    assert [line[:3] for line in found] == WORDS
    (note,) = notes
    assert note.startswith("film.de.srt is left out") and reason in note


def test_cues_that_are_wrong_do_not_spoil_those_around_them(tmp_path):
    (tmp_path / "film.srt").write_text(
        "\ufeffsome words before\n\n"
        + "7\n00:00:05,000 --> 00:00:02,000\nends before it starts\n\n"
        + "00:00:01,000 --> 00:00:09,000\nno number, overlapping\n\n"
        + "1\nnot a time --> 00:00:03,000\n\n"
        + "2\n00:00:06,000 --> 00:00:07,000\n"
        + "long " * 2_000_000
        + "\n\n3\n-00:00:08,000 --> 00:00:09,000\nnegative\n\n"
        + "4\n00:00:10,000 --> 00:00:20,000\nruns past the end\n\n"
        + "5\n99:00:00,000 --> 99:00:01,000\nnot in this film\n\n"
        + "6\n00:00:07,000 --> 00:00:08,000\nout of \u202eorder\x1b[2J\0\n"
    )
    (tmp_path / "film.srt").write_bytes((tmp_path / "film.srt").read_bytes().replace(b"\0", b""))
    found, notes = read(tmp_path / "film.mp4", duration=12.0)
    texts = [line.text for line in found]
    for words in ("ends before", "no number", "long long", "negative", "runs past", "out of order"):
        assert any(text.startswith(words) for text in texts), words
    assert [line.start for line in found] == sorted(line.start for line in found)
    assert all(0 <= line.start <= line.end <= 12 for line in found)
    assert all(len(text) <= 1000 and text.isprintable() for text in texts)
    assert notes == ["film.srt: 1 line after the end of the video left out"]


def test_a_short_video_has_no_novel(tmp_path):
    """Each line costs a millisecond, and a file of four megabytes may hold hundred thousand."""
    cue = "1\n00:00:0{},000 --> 00:00:0{},500\nline {}\n\n"
    text = "".join(cue.format(n % 9, n % 9, n) for n in range(1500))
    (tmp_path / "film.srt").write_text(text)
    found, notes = read(tmp_path / "film.mp4", duration=9.0)
    assert len(found) <= 1180 and notes == ["film.srt is read up to 0:07: it has over 1180 lines"]


def test_what_a_file_has_beyond_all_reason_is_cut_off_with_a_remark(tmp_path, monkeypatch):
    monkeypatch.setattr(subtitles, "_MOST_CUES", 3)
    cue = "1\n00:00:0{0},000 --> 00:00:0{0},500\nline {0}\n\n"
    (tmp_path / "film.srt").write_text("".join(map(cue.format, range(1, 8))))
    found, notes = read(tmp_path / "film.mp4")
    assert len(found) == 3 and notes == ["film.srt is read up to 0:03: it has over 3 lines"]
    monkeypatch.setattr(subtitles, "_MOST_BYTES", 100)
    found, notes = read(tmp_path / "film.mp4")
    assert 0 < len(found) < 3 and "MB" in notes[0]


PARTS = st.sampled_from(
    [
        *("\n", "\n\n", "1\n", " --> ", "00:00:01,000", "-00:01", "99:99:99.999", "WEBVTT\n\n"),
        *(
            "[Script Info]\n",
            "[Events]\n",
            "Dialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,",
            "{\\p1}",
        ),
        *("<i>", "{\\an8}", "&amp;", "words", "\ufeff", "\u202e", "\x1b[2J", "\r", "NOTE\n", "é"),
    ]
)
CONTENTS = st.one_of(
    st.binary(max_size=300),
    st.lists(PARTS, max_size=30).map(lambda parts: "".join(parts).encode()),
    st.lists(PARTS, max_size=30).map(lambda parts: "".join(parts).encode("utf-16")),
)


@given(content=CONTENTS, suffix=st.sampled_from(sorted(FILES)))
def test_no_file_gives_anything_but_lines_that_can_be_shown(tmp_path_factory, content, suffix):
    folder = tmp_path_factory.mktemp("any")
    (folder / f"film{suffix}").write_bytes(content)
    found, notes = read(folder / "film.mp4")
    assert found or notes
    for line in found:
        assert 0 <= line.start <= line.end < math.inf
        assert line.text == line.text.strip() != "" and line.text.isprintable()
