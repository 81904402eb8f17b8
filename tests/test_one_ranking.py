"""An evaluation ranks the videos of a split as a search ranks the same videos in an index.

Both compare through `sureshot.models.similarity`, on what different paths have read: an evaluation
samples a whole video and keeps what the encoder sees in 16 bits, an index cuts windows and keeps
what has come through the model's stem in 16 bits. Here each video is one window, so that only the
rounding to 16 bits differs.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import Float

import sureshot
from sureshot.datasets.split import Caption, Item, Split
from sureshot.library.indexing import index
from sureshot.library.search import open_index
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.hub_bank import Bank
from sureshot.models.huggingface import BANK
from sureshot.models.load import Scorer
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.scores import background, ranking, similarity, stored_videos
from sureshot.research.training.hub_correction import encode_captions
from tests.clips import coloured
from tests.trained import saved

FRAMES = 4
# 16 bits round a number by up to 2 ** -11, 5e-4, of itself; the numbers, and all scores here, lie
# within [-1, 1], and what is summed up in them is rounded to both sides. Scores of different videos
# are hundreds of times farther apart.
TOLERANCE = 1e-3
TEXTS = ("a red wall", "green", "blue and yellow", "a dog on a white beach", "magenta then black")
CAPTIONS = ("white", "a yellow wall", "cyan and red", "a black cat")
CLIPS = [  # what is shown for a second each
    *(["red"], ["green", "green", "blue"], ["yellow", "magenta"], ["white"], ["black", "cyan"]),
    *(["blue", "yellow"], ["cyan", "red", "red"]),
]


@pytest.fixture(scope="module")
def split(tmp_path_factory) -> Split:
    folder = tmp_path_factory.mktemp("videos")
    paths = [
        coloured(folder / f"{number}.mp4", colours, seconds=1.0, rate=5, size=(32, 32))
        for number, colours in enumerate(CLIPS)
    ]
    items = tuple(Item(path.name, path) for path in paths)
    captions = tuple(Caption(text, number) for number, text in enumerate(TEXTS))
    return Split(dataset="pairs", name="test", protocol="list", items=items, captions=captions)


@pytest.fixture(scope="module")
def features(split, tmp_path_factory) -> SplitFeatures:
    return extract(split, TinyEncoder(), frames=FRAMES, cache=tmp_path_factory.mktemp("cache"))


@dataclass
class Case:
    """A model, and an index of the videos of the split that was made with it."""

    scorer: Scorer
    db: Path


@pytest.fixture(scope="module", params=["tiny", "clip4clip", "duq", "uatvr"])
def plain(request, split, tmp_path_factory) -> Case:
    """A model without a bank."""
    place = tmp_path_factory.mktemp("index")
    name = "tiny"
    if request.param != "tiny":
        name = str(saved(place / "model", request.param, "linear"))
    folder = split.items[0].path.parent
    index(folder, db=place / "db", model=name, frames=FRAMES, scenes=False, workers=1)
    return Case(sureshot.load(name, "cpu"), place / "db")


@pytest.fixture(params=[0.5, 0.0], ids=["corrected", "uncorrected"])
def banked(request, plain, features, tmp_path, monkeypatch) -> Case:
    """The same model with a bank, of captions that correct scores or do not, and of videos."""
    scorer = plain.scorer
    home = Path(scorer.name)
    if scorer.model is None:  # an encoder by name has no folder of its own
        home = tmp_path
        monkeypatch.setattr("sureshot.models.hub_bank.checkpoint_folder", lambda name: home)
    reads_words = scorer.model is not None and scorer.model.system.reads_words
    kept = stored_videos(scorer, features)
    Bank(
        texts=encode_captions(scorer.require_searchable(), CAPTIONS, reads_words),
        k=2,
        weight=request.param,
        frames=kept.frames[:5].astype(np.float16).astype(np.float32),
        mask=kept.mask[:5],
        corrections=np.linspace(0, 0.1, 5, dtype=np.float32),
        model=scorer.fingerprint,
        source="a test",
    ).save(home)
    yield Case(sureshot.load(scorer.name, "cpu"), plain.db)
    (home / BANK).unlink()


def searched(case: Case, split: Split) -> Float[np.ndarray, "texts videos"]:
    """What a search scores the videos of the split, in the order of the split."""
    searcher = open_index(case.db, device="cpu")
    rows = []
    for answer in searcher.search_many(TEXTS, limit=len(CLIPS), merge_copies=False):
        scores = {hit.path: hit.score for hit in answer}
        assert [*scores.values()] == sorted(scores.values(), reverse=True)
        rows.append([scores[item.path] for item in split.items])
    return np.array(rows)


def check(evaluated: np.ndarray, found: np.ndarray) -> None:
    """Equal but for 16 bits, and the same order wherever scores are farther apart than that."""
    np.testing.assert_allclose(found, evaluated, atol=TOLERANCE)
    clear = evaluated[:, :, None] - evaluated[:, None, :] > 2 * TOLERANCE
    assert (
        clear.mean() > 0.15
    )  # of at most 0.43: a pair is clear in one order, and none with itself
    assert ((found[:, :, None] > found[:, None, :]) | ~clear).all()


def test_without_a_bank(plain, split, features):
    check(ranking(plain.scorer, features), searched(plain, split))


def test_with_a_bank(banked, split, features):
    evaluated = ranking(banked.scorer, features)
    check(evaluated, searched(banked, split))
    searcher = open_index(banked.db, device="cpu")
    found = [about.background for _, about in searcher.rivals(TEXTS)]
    np.testing.assert_allclose(
        background(banked.scorer, features), np.concatenate(found), atol=TOLERANCE
    )
    corrected = np.abs(evaluated - similarity(banked.scorer.raw, features)).max() > 1e-2
    assert corrected == bool(banked.scorer.bank.weight)


def test_a_loaded_model_scores_the_files_themselves_alike(banked, split, features):
    model = replace(banked.scorer, frames=FRAMES)
    videos = model.encode_document([item.path for item in split.items])
    check(ranking(banked.scorer, features), model.similarity(model.encode_query(TEXTS), videos))
