"""`sureshot calibrate`, as a person types it, and the searches that follow."""

import json
import re

import pytest

from sureshot.library.confidence import find_card
from sureshot.models.load import load_searchable
from sureshot.trust.card import Calibration
from tests.judged import judged, split
from tests.trained import saved


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("judged"), absent=40)


@pytest.fixture
def calibrate(sureshot, place, tmp_path):
    """Runs `calibrate` on the index; the card goes into a folder of this test."""

    def call(*arguments, labels=place.file, to=tmp_path / "card.json"):
        return sureshot("calibrate", "--labels", labels, "--db", place.db, "--to", to, *arguments)

    return call


def test_the_summary_says_what_was_learned(calibrate, tmp_path):
    ran = calibrate("--date", "2026-11-21")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == (
        "Calibrated on 190 judged queries (judged.jsonl), 40 with nothing right here."
    )
    own = Calibration.from_json((tmp_path / "card.json").read_text("utf-8")).personal
    assert (own.queries, own.absent) == (190, 40)
    assert lines[1].startswith(
        f"Where it was here, the first hit was right in {100 * own.right:.0f}% of these searches."
    )
    assert lines[-1].startswith("Card: ") and lines[-1].endswith("card.json")


def test_a_search_after_it_shows_percentages(sureshot, tmp_path):
    own = judged(tmp_path)
    ran = sureshot("search", own.labels[0].query, "--db", own.db)
    assert "Not calibrated" in ran.out and "%" not in ran.out
    assert sureshot("calibrate", "--labels", own.file, "--db", own.db).code == 0
    ran = sureshot("search", own.labels[0].query, "--db", own.db)
    assert "Not calibrated" not in ran.out and "%" in ran.out
    assert ran.out.splitlines()[-1].startswith("Percentages are calibrated on your own judgements.")
    shown = sureshot("calibrate", "--show", "--db", own.db)
    assert (shown.code, shown.err) == (0, "") and "150 judgements of your own" in shown.out
    assert (
        "judged.jsonl"
        in json.loads(sureshot("calibrate", "--show", "--json", "--db", own.db).out)["learned_from"]
    )
    answer = json.loads(sureshot("search", "red", "--db", own.db, "--json").out)
    assert answer["status"] != "not calibrated"
    assert "is removed" in sureshot("calibrate", "--forget", "--db", own.db).out
    assert "There is no calibration" in sureshot("calibrate", "--forget", "--db", own.db).out
    assert sureshot("calibrate", "--labels", own.file, "--db", own.db).code == 0
    # Deleting the index takes the card along; what people judged stays.
    assert sureshot("reset", "--yes", "--db", own.db).code == 0
    assert [path.name for path in own.db.iterdir()] == ["labelled.jsonl"]


def test_what_was_learned_is_json_too(calibrate, tmp_path):
    found = json.loads(calibrate("--json").out)
    assert found["card"] == str(tmp_path / "card.json")
    assert (found["schema"], found["gallery"]) == (4, 60)
    assert (found["absent"], found["not_found"], found["left_out"]) == (40, 0, 0)
    assert found["prior"] == 0.5 and found["quality"] is None


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--show", "--forget"], "Give one of"),
        (["--root", "a"], "--root needs --reference"),
        (["--show", "--ids", "a"], "--ids needs --reference"),
        (["--forget", "--to", "a"], "--to needs --labels FILE or --reference"),
        (["--reference", "a", "--skip-unknown"], "--skip-unknown needs --labels"),
        (["--labels", "a", "--reference", "pairs"], "Give one of"),
        (["tiny", "--reference", "pairs"], "pairs is a data set; name the folder that has it"),
        (["tiny", "--reference", "nowhere"], "neither a data set"),
        (["--labels", "a", "--date", "21.11.26"], "--date 21.11.26 is not a date; write it as"),
    ],
)
def test_arguments_that_do_not_go_together_end_with_two(sureshot, arguments, said):
    ran = sureshot("calibrate", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


# --- on a split of a data set ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return split(tmp_path_factory.mktemp("split"), captions=4)


@pytest.fixture
def of_split(sureshot, photos):
    def call(*arguments):
        data = ("--reference", photos, "--cache", photos.parent / "cache")
        return sureshot("calibrate", *arguments, *data)

    return call


def test_a_card_of_a_split_knows_the_video_of_each_caption(of_split, tmp_path):
    ran = of_split("tiny", "--to", tmp_path / "card.json")
    assert ran.code == 0, ran.err
    assert "pairs pairs.csv val, 60 videos, 240 captions" in ran.err
    assert re.match(
        r"Calibrated on \d+ queries about 60 photographs \(pairs pairs.csv val", ran.out
    )
    assert "Learned on 60 photographs alone: on yours percentages are often too low" in ran.out
    assert "200 or more would be better" in ran.out
    card = Calibration.from_json((tmp_path / "card.json").read_text("utf-8"))
    assert card.valid_for.words
    assert card.mismatches(load_searchable("tiny").fingerprint, None) == ()


def test_a_card_in_a_checkpoint_is_found_by_searches_with_it(of_split, tmp_path):
    folder = saved(tmp_path / "model", "clip4clip", "none")
    ran = of_split(folder, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["card"] == str(folder / "trust.json")
    model = load_searchable(str(folder))
    card, warnings = find_card(str(tmp_path / "no-index"), model.name, model.fingerprint, None)
    assert warnings == ()
    assert card is not None and card.valid_for.source == "reference"


def test_an_encoder_without_percentages_gets_them_from_captioned_photographs(
    of_split, sureshot, library, tmp_path, monkeypatch
):
    """What `index` offers is done, and every index of the encoder has percentages."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    offered = sureshot(
        "index", library.videos / "red.mp4", "--model", "tiny", "--db", tmp_path / "db"
    )
    assert "sureshot calibrate tiny --reference FOLDER" in offered.err + offered.out
    monkeypatch.setenv("SURESHOT_DB", str(tmp_path / "db"))
    ran = of_split()  # the model is that of the index
    assert ran.code == 0 and ".json" in ran.out.splitlines()[-1], ran.err
    answer = json.loads(sureshot("search", "red", "--db", tmp_path / "db", "--json").out)
    assert 0 < answer["present"] < 1 and not answer["confidence"]["personal"]
    assert "queries about 60 photographs (pairs" in answer["confidence"]["valid_for"]
    assert (answer["confidence"]["reference"], answer["answerable"]) == ("photographs", "unknown")
    said = sureshot("search", "red", "--db", tmp_path / "db").out
    assert "Percentages were learned on photographs; on yours they are often too low." in said
    assert "Not sure" in said
    again = sureshot("index", library.videos / "red.mp4", "--db", tmp_path / "db", "--force")
    assert "sureshot calibrate" not in again.err + again.out
