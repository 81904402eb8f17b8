"""Our models in mteb: the same videos in the same order as `sureshot evaluate`, as percentages."""

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import lazy_loader
import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError, is_installed
from sureshot.models.load import load as load_model
from sureshot.research.calibration import calibrate
from sureshot.research.evaluation import evaluate
from sureshot.research.features import extract
from sureshot.research.mteb import MtebSearcher, falling, load, task_of
from sureshot.research.scores import known_of, ranking
from tests.judged import split as split_of_photos
from tests.paths import DATA, ROOT

pytestmark = pytest.mark.skipif(not is_installed("mteb"), reason="mteb is not installed")
mteb, datasets = lazy_loader.load("mteb"), lazy_loader.load("datasets")  # take three seconds


def embedded(task: Any) -> Any:
    """The same task with its videos inside of the dataset, as those of the hub have them."""
    task.load_data()
    data = task.dataset["default"]["test"]
    corpus = data["corpus"].cast_column("video", datasets.Video(decode=False))
    held = [
        {"path": Path(video["path"]).name, "bytes": Path(video["path"]).read_bytes()}
        for video in corpus["video"]
    ]
    features = datasets.Features({"id": datasets.Value("string"), "video": datasets.Video()})
    inside = datasets.Dataset.from_dict({"id": corpus["id"], "video": held}, features=features)
    task.load_data = lambda **_: None
    task.dataset = {"default": {"test": {**data, "corpus": inside}}}
    return task


def measured(searcher: MtebSearcher, task: Any, folder: Path) -> tuple[Any, Any]:
    """What mteb measures, and the scores that it was given."""
    found = mteb.evaluate(searcher, task, cache=None, prediction_folder=folder, co2_tracker=False)
    (file,) = folder.rglob("*predictions.json")
    given = json.loads(file.read_text("utf-8"))["default"]["test"]
    return found.task_results[0].scores["test"][0], given


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("photos")
    pairs = split_of_photos(place, captions=4)
    calibrate("tiny", "pairs", pairs, to=place / "card.json", cache=place / "cache")
    return pairs


@pytest.fixture
def photos(calibrated: Path, tmp_path: Path) -> Path:
    """A list of sixty photos with captions, next to a calibration of the tiny encoder on them."""
    shutil.copytree(calibrated.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / calibrated.name


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


@pytest.mark.parametrize("model, listed", [("tiny", "photos"), ("bundled", "clips")])
def test_mteb_gets_the_percentages_of_a_search_in_the_order_of_its_scores(
    model: str, listed: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pairs = request.getfixturevalue(listed)
    card, cache = tmp_path / "card.json", tmp_path / "cache"
    searcher = load(model, card=card if card.exists() else None, device="cpu", cache=cache)
    split = load_split("pairs", "val", pairs)
    scores, given = measured(searcher, task_of(split), tmp_path / "predictions")
    scorer = load_model(model, "cpu")
    features = extract(split, scorer.encoder, frames=scorer.frames, cache=cache)
    ours, asked = ranking(scorer, features), known_of(scorer, features)
    assert searcher.card is not None
    order, chances = searcher.card.p_right(ours, asked, results=None)
    names = [item.id for item in split.items]
    for row in range(len(split.captions)):
        found = given[str(row)]
        ranked = sorted(found, key=lambda name: -found[name])
        assert len(set(found.values())) == len(found) == len(names)
        assert ranked == [names[column] for column in order[row]]
        values = np.array([found[name] for name in ranked])
        np.testing.assert_allclose(values[:10], chances[row, :10], atol=1e-6)
        np.testing.assert_allclose(values, chances[row], atol=1e-5)  # many equal ones take steps
    right = (order[:, 0] == split.owner()).tolist()
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


@pytest.mark.parametrize("inside", [True, False])
def test_similarities_are_those_that_evaluate_writes_for_trec_eval(
    photos: Path, tmp_path: Path, inside: bool
) -> None:
    evaluate("tiny", "pairs", photos, split="val", trec=tmp_path / "trec", cache=tmp_path)
    ours: dict[str, dict[str, float]] = {}
    for line in (tmp_path / "trec" / "run.txt").read_text("utf-8").splitlines():
        query, _, video, _, score, _ = line.split()
        ours.setdefault(query.rpartition("#")[2], {})[video] = float(score)
    searcher = load("tiny", percentages=False, device="cpu", cache=tmp_path)
    task = task_of(load_split("pairs", "val", photos))
    _, given = measured(searcher, embedded(task) if inside else task, tmp_path / "predictions")
    assert set(given) == set(ours)
    for query, found in ours.items():
        assert given[query] == pytest.approx(found, abs=1e-6)


def test_a_video_that_cannot_be_read_is_named_and_never_found(
    photos: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    split = load_split("pairs", "val", photos)
    broken = split.items[0]
    broken.path.write_bytes(b"no picture")
    searcher = load("tiny", percentages=False, device="cpu", cache=tmp_path / "fresh")
    _, given = measured(searcher, task_of(split), tmp_path / "predictions")
    assert f"left out: {broken.id} " in caplog.text
    assert all(broken.id not in found and len(found) == 59 for found in given.values())


def test_candidates_of_a_reranking_are_all_that_a_query_finds(photos: Path, tmp_path: Path) -> None:
    split = load_split("pairs", "val", photos)
    task, (first, second) = task_of(split), [item.id for item in split.items[:2]]
    task.load_data()
    data = task.dataset["default"]["test"]
    for card in (None, tmp_path / "card.json"):
        searcher = load("tiny", card=card, percentages=card is not None, cache=tmp_path)
        asked = {"task_metadata": task.metadata, "hf_split": "test", "hf_subset": "default"}
        searcher.index(data["corpus"], **asked, encode_kwargs={})
        some = {"0": [second, first, "gone"], "1": []}
        found = searcher.search(data["queries"], **asked, top_k=9, top_ranked=some)
        assert set(found["0"]) == {first, second}
        assert found["1"] == found["2"] == {}


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
        other = mteb.get_tasks(tasks=["MSVDV2TRetrieval"])[0].metadata
        searcher.index({}, task_metadata=other, hf_split="test", hf_subset="default")


def test_parts_of_videos_are_no_task(photos: Path) -> None:
    split = load_split("pairs", "val", photos)
    part = replace(split, items=(replace(split.items[0], end=1.0), *split.items[1:]))
    with pytest.raises(SureshotError, match="mteb knows whole ones only"):
        task_of(part)
    assert task_of(split).metadata.name != task_of(split.part([split.items[1].id])).metadata.name


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
