"""The function behind `sureshot evaluate`: values, notes, and what is refused."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PIL import Image

from sureshot import research
from sureshot.datasets import Caption, Item, load_split
from sureshot.errors import ArgumentError, SureshotError
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.hub_bank import Bank
from sureshot.models.load import load, load_searchable
from sureshot.progress import Notes, Silent
from sureshot.research.evaluation import (
    known_splits,
    read_source,
    recall_report,
    source_of,
    training_captions,
    warn_of_shared,
)
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.scores import background, similarity, stored_videos
from sureshot.research.training.hub_correction import encode_captions
from sureshot.research.trust_report import measure
from sureshot.trust.fit import fit_card, labelled
from sureshot.trust.signals import QueryContext
from tests import judged
from tests.trained import checkpoint, saved
from tests.walls import walls

TITLE = "pairs pairs.csv val, 64 videos, 256 captions"
FIGURES = [
    f"trust-{name}{suffix}"
    for name in ("reliability", "risk", "sets")
    for suffix in (".png", ".svg")
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Photos with captions, some easy and some vague, and models to try on them."""
    folder = tmp_path_factory.mktemp("photos")
    judged.split(folder, photos=64, captions=4)
    for system in ("duq", "xpool", "clip4clip"):
        saved(folder / system, system, "none")
    return folder


@pytest.fixture
def evaluate(place):
    def call(model="tiny", *, root=place / "pairs.csv", split="val", cache="cache", **more):
        cache = cache if cache.startswith("~") else place / cache
        more = {"split": split, "cache": cache, **more}
        return research.evaluate(model, "pairs", root, **more)

    return call


@pytest.fixture(scope="module")
def scores(place):
    split = load_split("pairs", "val", place / "pairs.csv")
    scorer = load("tiny")
    features = extract(split, scorer.encoder, frames=12, cache=place / "cache")
    return similarity(scorer.raw, features), split.owner()


@pytest.fixture
def card(scores, tmp_path):
    """Writes a card, and returns its file."""

    def made(about=QueryContext(), **more):  # noqa: B008 - frozen
        found, owner = scores
        known = {"model": load("tiny").fingerprint, "dataset": "other photos", **more}
        relevant = owner[:, None] == np.arange(found.shape[1])
        made = fit_card([labelled(found, relevant, owner, about)], date="2026-01-02", **known)
        path = tmp_path / "card.json"
        path.write_text(made.to_json(), "utf-8")
        return path

    return made


def test_the_re_ranking_of_duq_is_named_with_its_gamma(evaluate, place):
    found = evaluate(str(place / "duq"), post=["duq_printed"], gamma=0.25)
    told = found.to_dict()
    post = told["post_processed"]
    assert [(line["direction"], line["gamma"]) for line in post] == [("t2v", 0.25), ("v2t", 0.25)]
    assert all("as printed, gamma 0.25" in line["name"] for line in post)
    assert all(line["gamma"] is None for line in told["raw"])
    for line in post:
        assert line["name"] in found.text()


def test_one_correction_and_one_folder_may_be_given_as_text(evaluate, place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    found = evaluate(post="dsl", against=[], cache="~/features", trec="~/trec")
    assert found.to_dict() == evaluate(post=["dsl"]).to_dict()
    assert {path.name for path in tmp_path.iterdir()} == {"features", "trec"}
    with pytest.raises(SureshotError, match="matrices draws one checkpoint, not 0"):
        research.plot("matrices", [], "pairs", place / "pairs.csv", split="val")


def test_re_ranking_that_cannot_be_is_refused_before_anything_is_read(evaluate, place, tmp_path):
    gone = tmp_path / "gone.csv"
    with pytest.raises(
        ArgumentError, match=r"takes similarities and distances of DUQ, and tiny is"
    ):
        evaluate("tiny", root=gone, post=["duq_printed"])
    with pytest.raises(ArgumentError, match="--gamma is -1; it must be a number from 0 on"):
        evaluate("tiny", root=gone, post=["duq_printed"], gamma=-1.0)
    with pytest.raises(ArgumentError, match="--gamma is nan; it must"):
        evaluate("tiny", root=gone, post=["duq_printed"], gamma=float("nan"))
    for given in ({"gamma": 0.2, "post": ["dsl"]}, {"bank": 5}):  # which nothing would read
        with pytest.raises(ArgumentError, match=r"is about --post .*; add one, or leave --"):
            evaluate("tiny", root=gone, **given)
    with pytest.raises(
        ArgumentError, match="duq_candidates, nnn, qb_norm look at training captions"
    ):
        evaluate("tiny", post=["duq_candidates"])


def test_the_trust_report_comes_after_the_ordinary_one_and_under_a_key_of_its_own(evaluate, scores):
    plain, both = evaluate(), evaluate(trust=True)
    expected = measure(*scores, title=TITLE)
    assert plain.trust is None and plain.notes == (TITLE,)
    assert both.text() == f"{plain.text()}\n{expected.text()}" and "Trust" not in plain.text()
    assert "P(first is right)" in both.text()
    values = both.to_dict()
    trust = values.pop("trust")
    assert values == plain.to_dict() and trust.pop("files") == []
    assert trust == expected.to_dict()


def test_figures_are_written_and_named(evaluate, tmp_path):
    drawn = evaluate(trust=True, plots=tmp_path / "figures")
    assert list(drawn.files) == [tmp_path / "figures" / name for name in FIGURES]
    assert drawn.text().splitlines()[-6:] == [str(path) for path in drawn.files]
    assert drawn.to_dict()["trust"]["files"] == [str(path) for path in drawn.files]
    for path in drawn.files[::2]:
        with Image.open(path) as picture:
            assert np.asarray(picture.convert("L")).std() > 10


def test_queries_with_and_without_an_answer_are_written_in_the_form_of_the_field(
    evaluate, scores, tmp_path
):
    done = evaluate(trust=True, absent=tmp_path / "absent")
    truth, found = (
        [json.loads(line) for line in path.read_text().splitlines()] for path in done.files
    )
    ranked, owner = scores[0], scores[1]
    assert len(truth) == len(found) == 2 * len(owner)
    assert [one["qid"] for one in truth] == [one["qid"] for one in found]
    right = rejected = hits = told = 0
    for one, said in zip(truth, found, strict=True):
        windows, answer = one["relevant_windows"], said["pred_relevant_windows"]
        assert one["qid"].endswith("/absent") == (not windows)
        assert [w[3] for w in answer] == sorted((w[3] for w in answer), reverse=True)
        video = one["qid"].partition("#")[0]
        assert windows or video not in {w[0] for w in answer}
        no = said["existence"] < 0.5
        right += no if not windows else not no and answer[0][:3] == windows[0]
        rejected, hits, told = rejected + no, hits + (no and not windows), told + (not windows)
    assert done.absence.miou_1 == pytest.approx(right / len(truth))
    assert done.absence.rejection_f1 == pytest.approx(2 * hits / (rejected + told))
    assert done.absence.miou_1 <= done.absence.miou_5
    first = found[0]["pred_relevant_windows"]
    np.testing.assert_allclose([w[3] for w in first], -np.sort(-ranked[0])[:5], atol=1e-5)
    assert f"G-mIoU@1 {100 * done.absence.miou_1:.1f}" in done.text()
    assert done.to_dict()["absence"]["auroc"] == done.absence.auroc


def test_a_card_is_measured(evaluate, card):
    told = evaluate(trust=True, card=card()).trust.to_dict()
    expected = (
        "Calibrated by a card that was made on 256 queries about 64 videos of other photos, "
        "2026-01-02."
    )
    assert told["calibration"] == expected
    assert told["warnings"] == []


def test_a_model_with_a_bank_is_measured_with_it(evaluate, place, card):
    folder = saved(place / "banked", "clip4clip", "none")
    encoder, split = load_searchable(str(folder)), load_split("pairs", "val", place / "pairs.csv")
    windows = extract(split, TinyEncoder(), frames=12, cache=place / "cache")
    videos = stored_videos(load(folder), windows)
    texts = encode_captions(encoder, [caption.text for caption in split.captions[:40]], False)
    first = videos.frames[:5], videos.mask[:5], np.zeros(5, np.float32)
    Bank(texts, 4, 0.5, *first, encoder.fingerprint, "a test").save(folder)
    both, plain = evaluate(folder, trust=True), evaluate(place / "clip4clip", trust=True)
    assert (
        "Scores include the hub correction (k=4, weight 0.5; 40 captions of a test)." in both.text()
    )
    both, plain = both.to_dict(), plain.to_dict()
    assert both["raw"] == plain["raw"]  # the same weights, and recalls are raw
    assert both["trust"]["orders"] != plain["trust"]["orders"]
    bank = Bank.load(folder, encoder.fingerprint).digest
    found = background(load(folder), windows)
    path = card(model=encoder.fingerprint, bank=bank, about=QueryContext(background=found))
    assert evaluate(folder, trust=True, card=path).trust is not None
    (folder / "bank.safetensors").unlink()
    with pytest.raises(SureshotError, match="another hub correction"):
        evaluate(folder, trust=True, card=path)


def test_a_card_of_a_checkpoint_is_one_of_its_index(evaluate, card, place):
    """The fingerprint is that of the whole model, not of the encoder below it."""
    model = place / "xpool"
    right = card(model=load_searchable(str(model)).fingerprint)
    assert evaluate(model, trust=True, card=right).trust is not None
    with pytest.raises(SureshotError, match="The calibration is of another model"):
        evaluate(model, trust=True, card=card(model=load_searchable("tiny").fingerprint))


def test_a_card_that_cannot_be_used_is_told_of_before_anything_is_decoded(
    evaluate, card, place, tmp_path
):
    other = card(model="another")
    (tmp_path / "text").write_text("{}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    edited = tmp_path / "edited"
    edited.write_text(other.read_text().replace('"background": false', '"background": true', 1))
    for path, message in (
        (other, "is not about tiny. The calibration is of another model."),
        (tmp_path / "text", "The calibration card cannot be used: it is another file"),
        (tmp_path / "bytes", "cannot be used as a card"),
        (tmp_path / "gone", "gone cannot be read: no such file or directory"),
        (tmp_path, "cannot be read: is a folder"),
        (edited, "was changed after it was made"),
    ):
        with pytest.raises(SureshotError, match=re.escape(message)):
            evaluate(trust=True, card=path, cache="never")
    assert not (place / "never").exists()


def test_where_no_existence_score_can_be_calibrated_that_is_said_next_to_the_report(
    evaluate, place, tmp_path
):
    lines = (place / "pairs.csv").read_text().splitlines(keepends=True)
    (place / "few.csv").write_text("".join(line for line in lines[:20] if "train" not in line))
    done = evaluate(root=place / "few.csv", trust=True, absent=tmp_path / "x")
    assert "R@1" in done.text() and done.absence is None and not done.files
    assert any(
        note.startswith(f"! Nothing is written into {tmp_path / 'x'}, as no existence score")
        and (done.trust.nothing or done.trust.refused) in note
        for note in done.notes
    )


@pytest.mark.parametrize("call", [research.evaluate, partial(research.plot, "results")])
def test_what_names_no_data_set_is_refused_by_its_own_name(call):
    with pytest.raises(ArgumentError, match="--data is 3; give the name of a data set"):
        call("tiny", 3, "pairs.csv")


@pytest.mark.parametrize("name", ["card", "plots", "absent"])
def test_what_is_about_trust_needs_it(evaluate, name, tmp_path):
    with pytest.raises(ArgumentError, match=f"--{name} is about --trust"):
        evaluate(**{name: tmp_path / "x"})


def test_published_names_are_those_of_whole_splits_only(place):
    """What is compared with print: the usual protocol, whole, under no other name."""
    base = load_split("pairs", "val", place / "pairs.csv")
    items = tuple(Item(f"v{n}", place / f"{n}.mp4") for n in range(4))
    whole = replace(
        base,
        dataset="msrvtt",
        name="test",
        protocol="1k-A",
        expected=4,
        items=items,
        captions=tuple(Caption("x", n) for n in range(4)),
    )
    scorer = load("tiny")
    for split, name in (
        (whole, "1kA"),
        (replace(whole, label="mine"), ""),
        (replace(whole, expected=5), ""),
        (replace(whole, protocol="full multi-caption"), "full"),
        (replace(whole, name="val"), ""),
    ):
        features = SplitFeatures(split, 3, [], [])
        told = recall_report(scorer, features, np.eye(4), against=["DUQ"])
        assert told.setting.split == name
    short = {"train": [{"dataset": "msrvtt", "protocol": "1k-A 7k"}]}
    told = recall_report(replace(scorer, recipe=short), features, np.eye(4))
    assert told.setting.training == "msrvtt (1k-A 7k)"


@pytest.fixture(scope="module")
def coloured(tmp_path_factory):
    """Videos, and a model that says it was trained on those of the training set."""
    folder = walls(tmp_path_factory.mktemp("walls"))
    train = [{"dataset": "pairs", "root": str(folder / "pairs.csv")}]
    recipe = {"train": train, "system": {"name": "xpool"}}
    checkpoint("xpool", "linear", recipe=recipe).save_pretrained(folder / "model")
    return folder


@pytest.fixture(scope="module")
def scorer(coloured):
    return load(str(coloured / "model"), "cpu")


def test_what_was_trained_on_is_known_and_told_where_it_is_tested(coloured, scorer):
    (split,), _ = known_splits(scorer)
    notes = Notes(Silent())
    warn_of_shared(lambda: known_splits(scorer), split, notes)
    assert len(notes.lines) == 1 and "share 6 videos" in notes.lines[0]
    test = read_source(source_of("pairs", root=coloured / "pairs.csv", split="test"), Silent())
    warn_of_shared(lambda: known_splits(scorer), test, notes)
    assert len(notes.lines) == 1
    train = [{"dataset": "pairs", "root": "gone.csv"}]
    gone = replace(scorer, recipe={**scorer.recipe, "train": train})
    warn_of_shared(lambda: known_splits(gone), split, notes)
    assert "is not known: " in notes.lines[1] and "gone.csv cannot be read" in notes.lines[1]
    texts = training_captions(scorer, test, 5).texts()
    assert len(texts) == 5 and set(texts) < set(split.texts())
    with pytest.raises(SureshotError, match="all those of"):
        training_captions(scorer, split, 5)
