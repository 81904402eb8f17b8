"""The file of a card: whole or not there, and never one that allows no percentages."""

from dataclasses import replace

import pytest

from sureshot.errors import SureshotError
from sureshot.trust.calibration import Calibration
from sureshot.trust.card import FILE, save
from sureshot.trust.fitting import fit
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card():
    made = world(seed=3, videos=200, captions=2)
    return fit(made.scores, made.relevant, made.video, model="abc", date="2026-11-21")


def test_what_is_written_is_what_is_read(tmp_path, card):
    (tmp_path / FILE).write_text("an older one")
    save(card, tmp_path / FILE)
    assert Calibration.from_json((tmp_path / FILE).read_text("utf-8")) == card
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_refused_card_is_not_kept(tmp_path, card):
    (tmp_path / FILE).write_text("an older one")
    with pytest.raises(SureshotError, match=r"not kept: they do not separate\."):
        save(replace(card, refused="they do not separate."), tmp_path / FILE)
    assert (tmp_path / FILE).read_text() == "an older one"


def test_a_place_that_cannot_be_written_is_said_and_left_as_it_was(tmp_path, card):
    with pytest.raises(SureshotError, match=rf"{tmp_path}/none/{FILE} cannot be written: no such"):
        save(card, tmp_path / "none" / FILE)
    (tmp_path / FILE).mkdir()
    with pytest.raises(SureshotError, match="cannot be written: is a directory"):
        save(card, tmp_path / FILE)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
