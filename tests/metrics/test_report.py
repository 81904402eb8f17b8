"""The report: raw first, every other number named, no printed row without its differences."""

import json

import ir_measures
import numpy as np
import pytest
from ir_measures import R, Success

from sureshot.errors import SureshotError
from sureshot.metrics.hubs import (
    dual_softmax,
    hubness_skewness,
    inverted_softmax,
    nearest_neighbour_normalised,
    querybank_norm,
)
from sureshot.metrics.intervals import interval, mean_of, median_of
from sureshot.metrics.published import Setting
from sureshot.metrics.ranks import (
    recall,
    recall_at,
    relevant_ranks,
    rsum,
    text_ranks,
    video_ranks,
)
from sureshot.metrics.report import CORRECTIONS, hub_corrected, report, write_trec

EVERY = list(CORRECTIONS)


def world(texts=60, videos=24, seed=0):
    """Rounded, so that some scores tie."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, videos - 2, texts)
    similarity = rng.uniform(-1, 1, (texts, videos)).round(2)
    similarity[np.arange(texts), owner] += 0.5
    return similarity, owner, rng.uniform(-1, 1, (70, videos))


def made(**options):
    similarity, owner, bank = world()
    of = {name: options.pop(name) for name in ("dataset", "split", "trained_on") if name in options}
    post, scale = options.pop("post", ()), options.pop("scale", None)
    corrected = [c for name in post for c in hub_corrected(name, similarity, bank, scale)]
    options = {"title": "Toy, all of it", "resamples": 20, "corrected": corrected} | options
    return report(similarity, owner, Setting(**of), **options)


def test_raw_lines_come_first_and_are_the_scores_as_they_are():
    similarity, owner, _ = world()
    found = made(post=EVERY)
    assert [(line.name, line.direction) for line in found.raw] == [("raw", "t2v"), ("raw", "v2t")]
    texts = recall(text_ranks(similarity, owner))
    videos = recall(video_ranks(similarity, owner))
    assert found.raw[0].recall == texts
    assert found.raw[1].recall == videos
    assert found.rsum == rsum(texts, videos)
    assert found.hubness == hubness_skewness(similarity)
    text = found.text()
    for block in (part for part in text.split("\n\n") if part.startswith(("text →", "video →"))):
        assert block.splitlines()[2].startswith("raw ")
        assert ("QB-Norm" in block) == block.startswith("text →")


@pytest.mark.parametrize("scale", [None, 5.0])
def test_post_processed_lines_are_named_for_what_they_look_at(scale):
    similarity, owner, bank = world()
    lines = made(post=EVERY, scale=scale).post
    found = {(line.name, line.direction): line.recall for line in lines}
    c = scale or 100
    looks = f"at scale {c:g} (looks at all test queries)"
    of = "(bank: 70 training captions)"
    soft = inverted_softmax(similarity.T, c).T
    expected = {
        (f"DSL {looks}", "t2v"): text_ranks(dual_softmax(similarity, c), owner),
        (f"DSL {looks}", "v2t"): video_ranks(dual_softmax(similarity.T, c).T, owner),
        (f"inverted softmax {looks}", "t2v"): text_ranks(inverted_softmax(similarity, c), owner),
        (f"inverted softmax {looks}", "v2t"): video_ranks(soft, owner),
        (f"QB-Norm {of}", "t2v"): text_ranks(querybank_norm(similarity, bank), owner),
        (f"NNN {of}", "t2v"): text_ranks(nearest_neighbour_normalised(similarity, bank), owner),
    }
    assert found == {key: recall(ranks) for key, ranks in expected.items()}


def test_the_text_tells_title_and_numbers_of_queries():
    text = made().text()
    head = ["Toy, all of it", "60 texts, 24 videos. Raw scores come first."]
    assert text.splitlines()[:2] == head
    described = len(set(world()[1].tolist()))
    assert described < 24
    assert f"{24 - described} videos without a text" in text
    assert "text → video, n = 60" in text
    assert f"video → text, n = {described}, captions of a video as one group" in text
    assert "20 resamples of whole videos, seed 0" in text


def test_other_recalls_can_be_printed():
    found = made(ks=(1, 5, 50))
    assert "R@50" in found.text()
    assert "R@10" not in found.text()
    lines = made(post=["dsl"]).text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("text →"))
    head, raw, dsl = lines[start + 1 : start + 4]
    assert raw.index("]") == dsl.index("]") == head.index("R@1") + 2
    assert head.endswith("R@1 minus raw")
    assert found.rsum == rsum(*(line.recall for line in found.raw), (1, 5, 50))


def test_a_subset_never_stands_beside_a_printed_row_without_saying_so():
    text = made(dataset="MSR-VTT", against=["DUQ", "DVTR + C2V"]).text()
    for way in ("text → video", "video → text"):
        block = text.split(f"Published, {way}\n")[1].split("\n\n")[0].splitlines()
        assert block[0].startswith("! Other data or protocol, so the numbers do not compare: ")
        assert "split: none of the published ones here" not in block[0]  # not the same for all
        # What is not common to all rows stands beneath each of them.
        rows = [i for i, line in enumerate(block) if line.startswith(("DUQ", "DVTR"))]
        assert rows
        for i in rows:
            assert block[i + 1].startswith("    ! other data or protocol: split")
    text = made(dataset="MSR-VTT", split="1kA", against=["DUQ"]).text()
    assert "do not compare: gallery: 24 here, 1000 published; texts: 60 here, 1000" in text
    assert "    ! other" not in text and "DUQ B32 (DUQ-T1" in text


def test_the_published_sizes_are_no_proof_and_it_says_so():
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(1000, 1000)).astype(np.float32)
    found = report(
        similarity,
        np.arange(1000),
        Setting("MSRVTT", "1kA", encoder="ViT-B/32", frames=12, trained_on="MSRVTT"),
        title="MSR-VTT 1k-A",
        against=["DUQ"],
        resamples=2,
    )
    text = found.text()
    assert "do not compare" not in text
    assert text.count("same split and sizes; whether the same videos is not checked") == sum(
        map(len, found.matches.values())
    )
    assert found.raw[0].recall.r1 < 2


def test_printed_rows_that_do_not_compare_may_be_left_out_and_are_counted():
    every = made(dataset="MSR-VTT", against=["DUQ"])
    some = made(dataset="MSR-VTT", against=["DUQ"], comparable=True)
    count = sum(map(len, every.matches.values()))
    assert (every.left_out, some.left_out) == (0, count) and not any(some.matches.values())
    assert f"{count} printed rows of another split" in some.text()


def test_printed_rows_need_a_known_method():
    with pytest.raises(SureshotError, match="method 'DUK'"):
        made(dataset="MSRVTT", against=["DUK"])
    assert "published" not in made(dataset="my own").text()


@pytest.mark.parametrize(
    ("trained", "tested", "out"),
    [
        ("MSRVTT", "DiDeMo", True),
        ("Flickr8k + MSR-VTT", "msrvtt", False),
        ("", "MSRVTT", False),
        ("MSRVTT", "", False),
    ],
)
def test_training_on_other_data_is_said(trained, tested, out):
    found = made(trained_on=trained, dataset=tested)
    assert bool(found.out_of_domain) == out
    line = f"out of domain: trained on {trained}, tested on {tested}"
    assert (line in found.text().splitlines()) == out
    assert not trained or f"trained on {trained}" in found.text()


def test_ties_are_said():
    similarity, owner, _ = world()
    similarity[:, :] = 0.0
    text = report(similarity, owner, title="Ties", resamples=5).text()
    assert "Ties, raw: 60 of 60 queries; R@1 is 0.0 to 100.0, depending on how they fall" in text
    similarity += np.random.default_rng(1).random(similarity.shape)
    assert "Ties" not in report(similarity, owner, title="None", resamples=5).text()


def test_json_holds_everything_with_raw_before_all_others():
    found = made(post=EVERY, dataset="MSR-VTT", against=["DUQ"], system="DUQ")
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    keys = list(values)
    assert keys.index("raw") < keys.index("post_processed")
    assert values["title"] == "Toy, all of it"
    assert values["raw"][0]["recall"]["n"] == 60
    assert values["raw"][0]["intervals"]["r1"]["low"] <= values["raw"][0]["recall"]["r1"]
    assert values["published"]["t2v"][0]["row"]["r1"] == 51.2
    assert values["published"]["t2v"][0]["protocol"]
    assert values["setting"]["videos"] == 24


def test_the_same_seed_gives_the_same_report():
    assert made(post=EVERY).to_dict() == made(post=EVERY).to_dict()
    assert made(seed=1).raw[0].intervals != made().raw[0].intervals
    text = report(np.array([[0.4], [0.2]]), np.array([0, 0]), title="One").text()
    assert "[" not in text and "video → text, n = 1" in text


@pytest.mark.parametrize(("number", "rank"), [(0, text_ranks), (1, video_ranks)])
def test_a_line_holds_the_numbers_of_its_parts(number, rank):
    similarity, owner, _ = world()
    found = made(post=["dsl"], resamples=50, seed=7)
    raw, better = found.raw[number], found.post[number]
    videos = np.unique(owner) if number else owner
    corrected = dual_softmax(similarity.T).T if number else dual_softmax(similarity)
    mean, best = rank(similarity, owner), rank(similarity, owner, ties="best")
    worst = 2 * mean - best
    assert raw.gain is None
    assert raw.tied == np.count_nonzero(worst > mean)
    assert raw.r1_worst == recall_at(worst, 1) <= raw.recall.r1 <= raw.r1_best
    statistics = {
        "r1": mean_of(100.0 * (mean <= 1)),
        "r5": mean_of(100.0 * (mean <= 5)),
        "median": median_of(mean),
        "mean": mean_of(mean),
    }
    for name, statistic in statistics.items():
        expected = interval(statistic, videos, np.random.default_rng(7), resamples=50)
        assert raw.intervals[name] == expected
        assert expected.value == pytest.approx(getattr(raw.recall, name))
    assert set(raw.intervals) == {"r1", "r5", "r10", "r50", "median", "mean"}
    ours = rank(corrected, owner)
    gained = mean_of(100.0 * (ours <= 1) - 100.0 * (mean <= 1))
    assert better.gain == interval(gained, videos, np.random.default_rng(7), resamples=50)
    assert better.gain.value == pytest.approx(better.recall.r1 - raw.recall.r1)


def matrix(dtype=np.float64):
    rng = np.random.default_rng(0)
    similarity = rng.uniform(-1, 1, (60, 25)).astype(dtype)
    owner = rng.integers(0, 24, 60)  # the last video has no text
    similarity[np.arange(60), owner] += 0.4
    return similarity, owner, [f"video{i}" for i in range(25)]


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_a_run_reads_back_as_the_same_numbers(tmp_path, dtype):
    similarity, owner, videos = matrix(dtype)
    write_trec(tmp_path, similarity, owner, videos, "me")
    run = {}
    for line in ir_measures.read_trec_run(str(tmp_path / "run.txt")):
        run.setdefault(line.query_id, {})[line.doc_id] = line.score
    for number, row in enumerate(similarity):
        found = run[f"video{owner[number]}#{number}"]
        assert found == {v: float(s) for v, s in zip(videos, row, strict=True)}
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_ir_measures_finds_the_recall_that_we_find_in_both_directions(tmp_path):
    similarity, owner, videos = matrix()
    write_trec(tmp_path, similarity, owner, videos, "me")
    judged = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "run.txt")))
    ours = recall(text_ranks(similarity, owner))
    assert 0 < ours.r1 < ours.r5 < ours.r10 < 100
    measures = [R @ 1, R @ 5, R @ 10, Success @ 1, Success @ 5, Success @ 10]
    theirs = ir_measures.calc_aggregate(measures, judged, run)
    assert 100 * theirs[R @ 1] == 100 * theirs[Success @ 1] == pytest.approx(ours.r1)
    assert 100 * theirs[R @ 5] == 100 * theirs[Success @ 5] == pytest.approx(ours.r5)
    assert 100 * theirs[R @ 10] == 100 * theirs[Success @ 10] == pytest.approx(ours.r10)
    own = np.unique(owner)[:, None] == owner
    ours = recall(relevant_ranks(similarity.T[np.unique(owner)], own))
    turned = [ir_measures.ScoredDoc(one.doc_id, one.query_id, one.score) for one in run]
    sought = [ir_measures.Qrel(one.doc_id, one.query_id, 1) for one in judged]
    theirs = ir_measures.calc_aggregate([Success @ 1, Success @ 5, Success @ 10], sought, turned)
    assert 0 < ours.r1 < 100
    assert 100 * theirs[Success @ 1] == pytest.approx(ours.r1)
    assert 100 * theirs[Success @ 5] == pytest.approx(ours.r5)
    assert 100 * theirs[Success @ 10] == pytest.approx(ours.r10)


def test_the_lines_are_those_of_the_format(tmp_path):
    similarity = np.array([[0.25, -0.5, 0.75], [-np.inf, 1e-17, 0.1]])
    write_trec(tmp_path / "new", similarity, np.array([0, 1]), ["a", "b\u00a0b", "c"], "my/m e")
    assert (tmp_path / "new/run.txt").read_text().splitlines() == [
        "a#0 Q0 c 1 0.75 m_e",
        "a#0 Q0 a 2 0.25 m_e",
        "a#0 Q0 b_b 3 -0.5 m_e",
        "b_b#1 Q0 c 1 0.1 m_e",
        "b_b#1 Q0 b_b 2 1e-17 m_e",
    ]
    assert (tmp_path / "new/qrels.txt").read_text() == "a#0 0 a 1\nb_b#1 0 b_b 1\n"


def test_names_that_become_the_same_are_refused(tmp_path):
    with pytest.raises(SureshotError, match="1 different names for 2 videos"):
        write_trec(tmp_path / "x", np.zeros((1, 2)), np.array([0]), ["a b", "a_b"], "me")
    assert not (tmp_path / "x").exists()
