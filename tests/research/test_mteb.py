"""Our models in mteb: the same videos in the same order as `sureshot evaluate`, as percentages."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from sureshot.models.load import load as load_model
from sureshot.research.calibration import calibrate
from sureshot.research.evaluation import evaluate
from sureshot.research.features import extract
from sureshot.research.mteb import MtebSearcher, falling, load
from sureshot.research.scores import known_of, ranking
from tests.judged import split as split_of_photos
from tests.paths import DATA, ROOT

mteb = pytest.importorskip("mteb", reason="mteb is not installed")
datasets = pytest.importorskip("datasets", reason="mteb is not installed")


def task_of(rows: list[tuple[Path, str]], *, embedded: bool = True, category: str = "t2v") -> Any:
    """A task of mteb: captions, and the videos or photos that they are about."""
    videos = list(dict.fromkeys(path for path, _ in rows))
    held = [
        {"path": video.name, "bytes": video.read_bytes()}
        if embedded
        else {"path": str(video), "bytes": None}
        for video in videos
    ]
    corpus = datasets.Dataset.from_dict(
        {"id": [video.stem for video in videos], "video": held},
        features=datasets.Features({"id": datasets.Value("string"), "video": datasets.Video()}),
    )
    names = [f"q{number}" for number in range(len(rows))]
    asked = datasets.Dataset.from_dict({"id": names, "text": [text for _, text in rows]})
    right = {name: {path.stem: 1} for name, (path, _) in zip(names, rows, strict=True)}

    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class Task(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="OurClips",
            description="Clips of this machine.",
            dataset={"path": "none/none", "revision": "none"},
            type="Any2AnyRetrieval",
            category=category,
            modalities=["text", "video"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

        def load_data(self, **_: Any) -> None:
            data = {"corpus": corpus, "queries": asked, "relevant_docs": right, "top_ranked": None}
            self.dataset, self.data_loaded = {"default": {"test": data}}, True

    return Task()


def measured(searcher: MtebSearcher, task: Any, folder: Path) -> tuple[Any, Any]:
    """What mteb measures, and the scores that it was given."""
    found = mteb.evaluate(searcher, task, cache=None, prediction_folder=folder, co2_tracker=False)
    (file,) = folder.rglob("*predictions.json")
    given = json.loads(file.read_text("utf-8"))["default"]["test"]
    return found.task_results[0].scores["test"][0], given


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A list of sixty photos with captions, next to a calibration of the tiny encoder on them."""
    pairs = split_of_photos(tmp_path, captions=4)
    calibrate("tiny", "pairs", pairs, to=tmp_path / "card.json", cache=tmp_path / "cache")
    return pairs


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """A list of six real clips with captions."""
    source = DATA / "clips"
    if not source.is_dir():
        pytest.skip(f"there is no {source}; SURESHOT_DATA names the folder that holds clips/")
    with (source / "captions.csv").open(encoding="utf-8", newline="") as opened:
        listed = list(csv.DictReader(opened))[:6]
    write(tmp_path / "pairs.csv", [[source / "videos" / x["file"], x["caption"]] for x in listed])
    return tmp_path / "pairs.csv"


def write(pairs: Path, rows: list[list[Any]]) -> None:
    with pairs.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([["video", "caption", "split"], *([*r, "val"] for r in rows)])


def rows_of(pairs: Path) -> list[tuple[Path, str]]:
    with pairs.open(encoding="utf-8", newline="") as opened:
        return [(pairs.parent / row["video"], row["caption"]) for row in csv.DictReader(opened)]


@pytest.mark.parametrize("model, listed", [("tiny", "photos"), ("bundled", "clips")])
def test_mteb_gets_the_percentages_of_a_search_in_the_order_of_its_scores(
    model: str, listed: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pairs = request.getfixturevalue(listed)
    card, cache = tmp_path / "card.json", tmp_path / "cache"
    searcher = load(model, card=card if card.exists() else None, device="cpu", cache=cache)
    rows, split = rows_of(pairs), load_split("pairs", "val", pairs)
    scores, given = measured(searcher, task_of(rows), tmp_path / "predictions")
    scorer = load_model(model, "cpu")
    features = extract(split, scorer.encoder, frames=scorer.frames, cache=cache)
    ours, asked = ranking(scorer, features), known_of(scorer, features)
    assert searcher.card is not None
    order, chances = searcher.card.p_right(ours, asked, results=None)
    names = [item.path.stem for item in split.items]
    assert split.texts() == [text for _, text in rows]
    for row in range(len(rows)):
        found = given[f"q{row}"]
        ranked = sorted(found, key=lambda name: -found[name])
        assert len(set(found.values())) == len(found) == len(names)
        assert ranked == [names[column] for column in order[row]]
        np.testing.assert_allclose([found[name] for name in ranked], chances[row], atol=1e-5)
    right = [names[order[row, 0]] == path.stem for row, (path, _) in enumerate(rows)]
    assert scores["recall_at_1"] == pytest.approx(np.mean(right), abs=1e-5)
    if not all(right):
        assert scores["nauc_recall_at_1_max"] == pytest.approx(abstention(chances[:, 0], right))


def abstention(confidence: np.ndarray, right: list[bool]) -> float:
    """The area that mteb calls nAUC: recall of the surest 100, 90, … 10 %, from flat to perfect."""
    hits, rates = np.array(right, float), np.linspace(0, 1, 11)[:-1]

    def area(by: np.ndarray) -> float:
        ordered = hits[np.argsort(by, kind="stable")]
        curve = [ordered[min(round(rate * len(hits)), len(hits) - 1) :].mean() for rate in rates]
        return float(np.trapezoid(curve, rates))

    flat = hits.mean() * 0.9
    return (area(confidence) - flat) / (area(hits) - flat)


@pytest.mark.parametrize("embedded", [True, False])
def test_similarities_are_those_that_evaluate_writes_for_trec_eval(
    photos: Path, tmp_path: Path, embedded: bool
) -> None:
    evaluate("tiny", "pairs", photos, split="val", trec=tmp_path / "trec", cache=tmp_path)
    ours: dict[str, dict[str, float]] = {}
    for line in (tmp_path / "trec" / "run.txt").read_text("utf-8").splitlines():
        query, _, video, _, score, _ = line.split()
        ours.setdefault(query.rpartition("#")[2], {})[Path(video).stem] = float(score)
    searcher = load("tiny", percentages=False, device="cpu", cache=tmp_path)
    task = task_of(rows_of(photos), embedded=embedded)
    _, given = measured(searcher, task, tmp_path / "predictions")
    assert {query.removeprefix("q") for query in given} == set(ours)
    for query, found in ours.items():
        assert given[f"q{query}"] == pytest.approx(found, abs=1e-6)


def test_a_video_that_cannot_be_read_is_named_and_never_found(
    photos: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = rows_of(photos)
    rows[0][0].write_bytes(b"no picture")
    searcher = load("tiny", percentages=False, device="cpu", cache=tmp_path / "fresh")
    _, given = measured(searcher, task_of(rows), tmp_path / "predictions")
    assert f"left out: {rows[0][0].stem} " in caplog.text
    assert all(rows[0][0].stem not in found and len(found) == 59 for found in given.values())


def test_candidates_of_a_reranking_are_all_that_a_query_finds(photos: Path, tmp_path: Path) -> None:
    task = task_of(rows_of(photos))
    task.load_data()
    data = task.dataset["default"]["test"]
    for card in (None, tmp_path / "card.json"):
        searcher = load("tiny", card=card, percentages=card is not None, cache=tmp_path)
        asked = {"task_metadata": task.metadata, "hf_split": "test", "hf_subset": "default"}
        searcher.index(data["corpus"], **asked, encode_kwargs={})
        some = {"q0": ["003", "001", "gone"], "q1": []}
        found = searcher.search(data["queries"], **asked, top_k=9, top_ranked=some)
        assert set(found["q0"]) == {"003", "001"}
        assert found["q1"] == found["q2"] == {}


def test_another_model_card_or_prior_finds_no_old_results(photos: Path, tmp_path: Path) -> None:
    about = {
        "similarities": load("tiny", percentages=False),
        "percentages": load("tiny", card=tmp_path / "card.json"),
        "prior": load("tiny", card=tmp_path / "card.json", prior=1.0),
        "model": load("bundled", percentages=False),
    }
    metas = [searcher.mteb_model_meta for searcher in about.values()]
    assert len({(m.name, m.revision, str(m.experiment_kwargs)) for m in metas}) == len(metas)


def test_what_cannot_be_measured_is_refused_with_a_way_out(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(
        SureshotError, match=r"no calibration.*sureshot calibrate.*percentages=False"
    ):
        load("tiny")
    with pytest.raises(SureshotError, match="is not about bundled"):
        load("bundled", card=tmp_path / "card.json")
    searcher = load("tiny", percentages=False, cache=tmp_path)
    with pytest.raises(SureshotError, match="index before search"):
        searcher.search({"id": ["q"], "text": ["red"]}, top_k=1)
    with pytest.raises(SureshotError, match=r"looks for text with video.*MSVDT2VRetrieval"):
        mteb.evaluate(searcher, task_of(rows_of(photos), category="v2t"), cache=None)


def test_equal_percentages_keep_their_ranks() -> None:
    chances = np.array([0.9, 0.4, 0.4, 0.4, 0.0, 0.0])
    scores = falling(chances)
    assert (np.diff(scores) < 0).all()
    np.testing.assert_allclose(scores, chances, atol=1e-6)


def test_the_page_names_tasks_that_there_are() -> None:
    page = (ROOT / "docs" / "mteb.md").read_text("utf-8")
    named = re.findall(r"^\| (\w\S+) \| [\d,]+ \|", page, re.M)
    assert len(named) > 9
    for task in mteb.get_tasks(tasks=named, exclude_superseded=False):
        assert task.metadata.category in ("t2v", "t2va")
