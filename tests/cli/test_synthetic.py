"""`sureshot synthetic` writes a world and says how hard it is."""

import json

FEW = ("--set", "train=4", "--set", "val=2", "--set", "test=3", "--set", "captions=1")


def test_a_world_is_written_with_a_page_of_examples(sureshot, tmp_path):
    picture = tmp_path / "page.png"
    ran = sureshot("synthetic", "--to", tmp_path / "world", *FEW, "--picture", picture)
    assert (ran.code, ran.err) == (0, "")
    assert "9 videos, 9 captions" in ran.out
    assert "best possible scorer finds" in ran.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    ran = sureshot("synthetic", "--to", tmp_path / "world", *FEW, "--json")  # written already
    held = json.loads(ran.out)
    assert held["videos"] == 9 and 0 < held["bayes"] <= 100
    ran = sureshot("synthetic", "--to", tmp_path / "other", "--set", "colour=1")
    assert ran.code == 1 and "Unknown setting options.colour" in ran.err
