"""Speech: what a model hears comes at the right times, whatever the clocks of a file say."""

import socket
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest
import torch

from sureshot.errors import ModelError, SureshotError
from sureshot.media import lines, speech
from tests.clips import film, greys

RATE = 16_000


def talk(path: Path, said: list[tuple[float, float]], *, seconds: float, late: float = 0.0) -> Path:
    """A film with a tone at the times given; its sound begins ``late``, without a sample before."""
    sound = np.zeros(round(seconds * RATE), np.int16)
    for start, end in said:
        times = np.arange(round(start * RATE), round(end * RATE))
        sound[times] = 9000 * np.sin(2 * np.pi * 300 * times / RATE)
    with av.open(path, "w") as out:
        video = out.add_stream("mpeg4", rate=2)
        video.width, video.height, video.pix_fmt = 32, 32, "yuv420p"
        track = out.add_stream("pcm_s16le", rate=RATE, layout="mono")
        for number, picture in enumerate(greys([40.0] * round(2 * seconds), (32, 32))):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 2)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))
        for first in range(round(late * RATE), len(sound), 1600):
            heard = av.AudioFrame.from_ndarray(
                sound[None, first : first + 1600], format="s16", layout="mono"
            )
            heard.sample_rate, heard.pts, heard.time_base = RATE, first, Fraction(1, RATE)
            out.mux(track.encode(heard))
        out.mux(track.encode(None))
    return path


class Ears:
    """Hears a word per tone in place of a model; its words are not those of one."""

    def transcribe(self, sound: np.ndarray, **_: object) -> tuple[list[object], object]:
        loud = np.abs(sound[: len(sound) // 160 * 160].reshape(-1, 160)).max(1) > 0.05
        edges = np.flatnonzero(np.diff(np.concatenate([[0], loud, [0]]))) / 100
        words = [
            SimpleNamespace(start=start, end=end, word=" beep")
            for start, end in edges.reshape(-1, 2)
        ]
        heard = SimpleNamespace(language="en", language_probability=0.9)
        return [SimpleNamespace(words=words)] if words else [], heard


@pytest.mark.parametrize("late", [0.0, 1.5])
def test_lines_are_timed_from_the_first_picture_over_pieces_and_late_sound(
    tmp_path, monkeypatch, late
):
    monkeypatch.setattr(speech, "_model", lambda name: Ears())
    monkeypatch.setattr(speech, "_PIECE", 8.0)
    monkeypatch.setattr(speech, "_PAUSE", 4.0)
    said = [(2.0, 3.0), (6.5, 9.0), (10.5, 11.0), (11.3, 12.0), (20.0, 21.0)]
    video = talk(tmp_path / "film.mkv", said, seconds=24, late=late)
    done: list[float] = []
    monkeypatch.setattr(speech, "why_not", lambda model: "")
    found = list(lines.read(video, "speech", speech="ears", progress=done.append))
    shown = [(round(line.start, 1), round(line.end, 1)) for line in found]
    assert shown == [(2.0, 3.0), (6.5, 9.0), (10.5, 12.0), (20.0, 21.0)]
    assert found[2].text == "beep beep"  # a breath does not end a sentence
    assert {(line.source, line.language) for line in found} == {("speech", "en")}
    assert done == sorted(done) and done[-1] == pytest.approx(24, abs=0.2)


def test_sound_that_changes_its_form_is_heard_on(tmp_path):
    """As broadcasts do between a film and advertisements."""
    parts = []
    for name, layout, rate in (("a", "mono", 48_000), ("b", "stereo", 44_100)):
        with av.open(tmp_path / f"{name}.ts", "w") as out:
            video = out.add_stream("mpeg2video", rate=25)
            video.width, video.height, video.pix_fmt = 32, 32, "yuv420p"
            track = out.add_stream("mp2", rate=rate, layout=layout)
            for number, picture in enumerate(greys([40.0] * 25, (32, 32))):
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 25)
                out.mux(video.encode(frame))
            out.mux(video.encode(None))
            heard = av.AudioFrame(format="s16", layout=layout, samples=rate)
            for plane in heard.planes:
                plane.update(bytes(plane.buffer_size))
            heard.sample_rate, heard.pts, heard.time_base = rate, 0, Fraction(1, rate)
            fifo = av.AudioFifo()
            fifo.write(heard)
            for piece in fifo.read_many(1152):
                out.mux(track.encode(piece))
            out.mux(track.encode(None))
        parts.append((tmp_path / f"{name}.ts").read_bytes())
    (tmp_path / "both.ts").write_bytes(b"".join(parts))
    heard = sum(len(part) for part in speech._samples(tmp_path / "both.ts"))
    assert heard / 16_000 == pytest.approx(2, abs=0.2)


def test_sentences_end_at_stops_and_silences_and_somewhere():
    texts = [" It", " rains.", " Come", " in", " now"]
    times = [(0, 0.4), (0.5, 1), (1.1, 1.4), (1.5, 1.8), (5, 5.5)]
    words = [
        SimpleNamespace(word=text, start=start, end=end)
        for text, (start, end) in zip(texts, times, strict=True)
    ]
    said = ["".join(word.word for word in one) for one in speech._sentences(words)]
    assert said == [" It rains.", " Come in", " now"]
    endless = [SimpleNamespace(word=" la", start=i * 0.5, end=i * 0.5 + 0.4) for i in range(200)]
    assert max(one[-1].end - one[0].start for one in speech._sentences(endless)) <= 12


def test_what_has_no_sound_has_no_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(speech, "_model", lambda name: Ears())
    monkeypatch.setattr(speech, "why_not", lambda model: "")
    silent = film(tmp_path / "silent.mp4", greys([50] * 6), rate=2)
    assert not list(lines.read(silent, "speech", speech="ears"))
    (tmp_path / "frames").mkdir()
    assert not list(lines.read(tmp_path / "frames", "speech", speech="ears"))


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Whisper model with one layer and random weights, in CTranslate2 format."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = Tokenizer(models.BPE(vocab={c: n for n, c in enumerate(letters)}, merges=[]))
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    marks = ["endoftext", "startoftranscript", "translate", "transcribe", "startoflm"]
    marks += ["startofprev", "nospeech", "notimestamps"]
    tokens.add_special_tokens([f"<|{mark}|>" for mark in marks])
    tokens.add_tokens([f"<|{step * 0.02:.2f}|>" for step in range(1501)])
    end = tokens.token_to_id("<|endoftext|>")
    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=tokens.get_vocab_size(),
            **dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 16),
            **dict.fromkeys(("encoder_layers", "decoder_layers"), 1),
            **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
            **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), end),
            decoder_start_token_id=tokens.token_to_id("<|startoftranscript|>"),
            suppress_tokens=[],
            begin_suppress_tokens=[],
        )
    )
    folder = tmp_path_factory.mktemp("whisper")
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokens, unk_token="<|endoftext|>"
    ).save_pretrained(folder)
    converter = ctranslate2.converters.TransformersConverter(
        str(folder), copy_files=["tokenizer.json"]
    )
    return Path(converter.convert(str(folder / "converted")))


def test_a_model_in_a_folder_hears_without_asking_a_network(tmp_path, whisper, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(speech, "_SKIP_SILENCE", False)  # a tone is no speech
    video = talk(tmp_path / "film.mkv", [(1.0, 3.0)], seconds=4)
    done: list[float] = []
    # What it hears is as random as its weights, and may be nothing.
    for line in lines.read(video, "speech", speech=str(whisper), progress=done.append):
        assert 0 <= line.start <= line.end <= 30 and line.text.isprintable()
    assert done[-1] == pytest.approx(4, abs=0.2)
    monkeypatch.setattr(speech, "_SKIP_SILENCE", True)
    assert not list(lines.read(video, "speech", speech=str(whisper)))


def test_another_model_is_another_stamp(whisper, tmp_path):
    named = lines.stamp("speech", speech="small")
    assert len({named, lines.stamp("speech", speech="tiny")}) == 2
    assert lines.stamp("speech", speech=str(whisper)) == lines.stamp("speech", speech=str(whisper))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (None, "it needs a model: --speech small"),
        ("none", "there is no folder"),
        ((), "has no config.json and no model.bin and no tokenizer.json"),
        # With what is missing here, faster-whisper would go and get it.
        (("config.json", "model.bin"), "has no tokenizer.json"),
    ],
)
def test_a_folder_that_is_no_model_is_refused_before_anything_is_fetched(tmp_path, files, reason):
    model = None if files is None else str(tmp_path)
    if files == "none":
        files, model = (), str(tmp_path / "nowhere")
    for name in files or ():
        (tmp_path / name).write_text("{}")
    with pytest.raises(SureshotError, match=f"Speech cannot be read: .*{reason}"):
        next(lines.read(tmp_path / "film.mp4", "speech", speech=model))


def test_a_model_that_cannot_be_loaded_is_named(tmp_path):
    for name in ("config.json", "model.bin", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    video = talk(tmp_path / "film.mkv", [], seconds=1)
    with pytest.raises(ModelError, match=rf"speech model {tmp_path} cannot be loaded \("):
        list(lines.read(video, "speech", speech=str(tmp_path)))


def test_without_its_package_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    assert lines.why_not("speech", "small").startswith("it needs faster-whisper: pip install")
