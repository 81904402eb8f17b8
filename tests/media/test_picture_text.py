"""Text in the picture: what it says, and from when to when it is shown."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from sureshot.errors import SureshotError
from sureshot.media import lines, picture_text
from tests.clips import film, patterns

SIZE = (640, 360)


def card(*texts: str, at: float = 0.8, colour: str = "white", ground: int = 40) -> np.ndarray:
    """A picture with rows of text, the first one at a share of its height."""
    image = Image.new("RGB", SIZE, (ground, ground, 90))
    canvas = ImageDraw.Draw(image)
    for row, text in enumerate(texts):
        place = SIZE[0] / 2, SIZE[1] * at + 30 * row
        canvas.text(place, text, colour, ImageFont.load_default(26), anchor="mm")
    return np.asarray(image)


def read(path) -> list[tuple[float, float, str]]:
    return [(line.start, line.end, line.text) for line in lines.read(path, "picture")]


def test_each_text_is_read_once_for_as_long_as_it_is_shown(tmp_path):
    scenery = patterns(1, SIZE)[0]
    pictures = [scenery] * 8 + [card("HAPPY BIRTHDAY ANNA", at=0.5)] * 16
    pictures += (
        [card("The password", "is swordfish")] * 8 + [card("Take 1")] * 4 + [card("Take 2")] * 4
    )
    found = read(film(tmp_path / "film.mp4", pictures, rate=2))
    assert [text for *_, text in found] == [
        "HAPPY BIRTHDAY ANNA",
        "The password is swordfish",
        "Take 1",
        "Take 2",
    ]
    shown = [(4.0, 12.0), (12.0, 16.0), (16.0, 18.0), (18.0, 20.0)]
    for (start, end, _), times in zip(found, shown, strict=True):
        assert (start, end) == pytest.approx(times, abs=2.0)  # the seconds that are one shot


def test_texts_far_from_each_other_are_lines_of_their_own(tmp_path):
    both = np.maximum(card("Channel Nine", at=0.08), card("She left the harbour", at=0.9))
    found = read(film(tmp_path / "film.mp4", [both] * 4, rate=2))
    assert sorted(text for *_, text in found) == ["Channel Nine", "She left the harbour"]


def test_the_time_of_a_text_is_one_at_which_it_is_shown(tmp_path):
    shown = [card("")] * 8 + [card("The brown fox jumps")] * 12 + [card("")] * 8
    ((start, end, text),) = read(film(tmp_path / "film.mp4", shown, rate=4))
    assert 2.0 <= start < 3.5 and start < end and text == "The brown fox jumps"


def test_pictures_that_do_not_change_are_read_once(tmp_path, monkeypatch):
    asked = []
    real = picture_text.texts_in
    monkeypatch.setattr(picture_text, "texts_in", lambda image: asked.append(image) or real(image))
    still = film(tmp_path / "still.mp4", [card("Chapter one")] * 60, rate=2)
    assert read(still) == [(pytest.approx(0, abs=0.8), pytest.approx(30, abs=0.6), "Chapter one")]
    assert len(asked) == 1


@pytest.mark.parametrize("size", [(1, 1), (1, 5760), (5760, 16), (100, 4000), (3, 400)])
def test_a_picture_of_any_shape_is_looked_at(size):
    noise = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    assert isinstance(picture_text.texts_in(noise), list)


def test_a_folder_of_frames_is_read_at_its_rate(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(6):
        text = "The first half" if number < 3 else "Then the second"
        Image.fromarray(card(text)).save(folder / f"{number}.png")
    for number, text in enumerate(("Quarterly results", "Revenue grew", "Costs fell")):
        Image.fromarray(card(text)).save(folder / f"{number + 6}.png")
    slides = list(lines.read(folder, "picture", rate=1.0))
    assert [line.text for line in slides[2:]] == ["Quarterly results", "Revenue grew", "Costs fell"]
    for number in range(6, 9):
        (folder / f"{number}.png").unlink()
    times = []
    found = list(lines.read(folder, "picture", rate=0.5, progress=times.append))
    assert [line.text for line in found] == ["The first half", "Then the second"]
    assert found[1].start == pytest.approx(6, abs=2) and times == sorted(times)


def test_reading_loads_no_torch_and_asks_no_network(tmp_path):
    film(tmp_path / "film.mp4", [card("HAPPY BIRTHDAY ANNA")] * 4, rate=2)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import socket, sys\n"
            "def refuse(*given): raise AssertionError('a connection')\n"
            "socket.socket.connect = socket.getaddrinfo = refuse\n"
            "from pathlib import Path\n"
            "from sureshot.media import lines\n"
            "print(next(lines.read(Path(sys.argv[1]), 'picture')).text)\n"
            "print([m for m in ('torch', 'scipy', 'transformers') if m in sys.modules])",
            tmp_path / "film.mp4",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("HAPPY BIRTHDAY ANNA\n[]\n", "")


def test_without_its_package_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(
        SureshotError, match="picture cannot be read: it needs rapidocr: pip install"
    ):
        next(lines.read(tmp_path / "film.mp4", "picture"))
