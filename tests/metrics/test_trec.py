"""TREC files: read and judged by another tool as we judge."""

import ir_measures
import numpy as np
import pytest
from ir_measures import R, Success

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import recall, text_ranks, video_ranks
from sureshot.metrics.report import write_qrels, write_run

QUERIES, ITEMS = ["q0", "q1"], ["a", "b", "c"]


def matrix(dtype=np.float64):
    rng = np.random.default_rng(0)
    similarity = rng.uniform(-1, 1, (60, 25)).astype(dtype)
    owner = rng.integers(0, 24, 60)  # the last video has no text
    similarity[np.arange(60), owner] += 0.4
    return similarity, owner, [f"text{i}" for i in range(60)], [f"video{i}" for i in range(25)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_run_reads_back_as_the_same_numbers(tmp_path, dtype):
    similarity, _, texts, videos = matrix(dtype)
    write_run(tmp_path / "run", similarity, texts, videos)
    run = scores(tmp_path / "run")
    for text, row in zip(texts, similarity, strict=True):
        assert run[text] == {v: float(s) for v, s in zip(videos, row, strict=True)}
        assert list(run[text].values()) == sorted(run[text].values(), reverse=True)


def test_ir_measures_finds_the_recall_that_we_find_from_text_to_video(tmp_path):
    similarity, owner, texts, videos = matrix()
    write_run(tmp_path / "run", similarity, texts, videos)
    write_qrels(tmp_path / "qrels", [(t, videos[o]) for t, o in zip(texts, owner, strict=True)])
    ours = recall(text_ranks(similarity, owner))
    theirs = judged(tmp_path, [R @ 1, R @ 5, R @ 10, Success @ 1, Success @ 5, Success @ 10])
    assert 0 < ours.r1 < ours.r5 < ours.r10 < 100
    for k in (1, 5, 10):
        assert 100 * theirs[R @ k] == pytest.approx(ours.at(k))
        assert 100 * theirs[Success @ k] == pytest.approx(ours.at(k))


def test_ir_measures_finds_the_success_that_we_find_from_video_to_text(tmp_path):
    similarity, owner, texts, videos = matrix()
    write_run(tmp_path / "run", similarity.T, videos, texts)
    write_qrels(tmp_path / "qrels", [(videos[o], t) for t, o in zip(texts, owner, strict=True)])
    ours = recall(video_ranks(similarity, owner, "caption"))
    theirs = judged(tmp_path, [Success @ 1, Success @ 5, Success @ 10])
    assert 0 < ours.r1 < 100
    for k in (1, 5, 10):
        assert 100 * theirs[Success @ k] == pytest.approx(ours.at(k))


def scores(path):
    found = {}
    for line in ir_measures.read_trec_run(str(path)):
        found.setdefault(line.query_id, {})[line.doc_id] = line.score
    return found


def judged(folder, measures):
    qrels = ir_measures.read_trec_qrels(str(folder / "qrels"))
    run = ir_measures.read_trec_run(str(folder / "run"))
    return ir_measures.calc_aggregate(measures, list(qrels), list(run))


def test_the_lines_are_those_of_the_format(tmp_path):
    similarity = np.array([[0.25, -0.5, 0.75], [-np.inf, 1e-17, 0.1]])
    write_run(tmp_path / "run", similarity, QUERIES, ITEMS, depth=2, tag="me")
    assert (tmp_path / "run").read_text().splitlines() == [
        "q0 Q0 c 1 0.75 me",
        "q0 Q0 a 2 0.25 me",
        "q1 Q0 c 1 0.1 me",
        "q1 Q0 b 2 1e-17 me",
    ]
    write_qrels(tmp_path / "qrels", [("q0", "a"), ("q0", "b")])
    assert (tmp_path / "qrels").read_text() == "q0 0 a 1\nq0 0 b 1\n"


def test_what_was_ruled_out_is_left_out(tmp_path):
    write_run(tmp_path / "run", np.array([[-np.inf, 0.5, -np.inf]]), ["q"], ITEMS)
    assert scores(tmp_path / "run") == {"q": {"b": 0.5}}


@pytest.mark.parametrize("name", ["", "a b", "a\tb", " a", "a\n", "a\u00a0b"])
def test_names_that_would_break_a_line_are_refused(tmp_path, name):
    for call in (
        lambda: write_run(tmp_path / "x", np.zeros((1, 1)), [name], ["v"]),
        lambda: write_run(tmp_path / "x", np.zeros((1, 1)), ["q"], [name]),
        lambda: write_run(tmp_path / "x", np.zeros((1, 1)), ["q"], ["v"], tag=name),
        lambda: write_qrels(tmp_path / "x", [(name, "v")]),
        lambda: write_qrels(tmp_path / "x", [("q", name)]),
    ):
        with pytest.raises(SureshotError, match="white space"):
            call()
    assert not (tmp_path / "x").exists()


def test_names_that_occur_twice_or_do_not_fit_are_refused(tmp_path):
    with pytest.raises(SureshotError, match="'q' occurs twice"):
        write_run(tmp_path / "x", np.zeros((2, 1)), ["q", "q"], ["v"])
    with pytest.raises(SureshotError, match="1 names for 2 item"):
        write_run(tmp_path / "x", np.zeros((1, 2)), ["q"], ["v"])


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_scores_that_are_no_number_are_refused(tmp_path, score):
    with pytest.raises(SureshotError, match=r"NaN|inf"):
        write_run(tmp_path / "x", np.array([[0.0, score]]), ["q"], ["a", "b"])
