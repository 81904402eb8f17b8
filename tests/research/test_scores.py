"""Scores of a split: those of one pair after the other, however they are batched."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from sureshot.datasets import load_split
from sureshot.datasets.split import Caption, Item, Split
from sureshot.errors import ArgumentError
from sureshot.models.encoders.base import FrameFeatures
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.load import Scorer, load
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.similarity import MeanFrames, ModelSimilarity
from sureshot.models.systems.base import Codes, TextTokens, VideoTokens, video_tokens
from sureshot.research import scores as evaluation
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.scores import (
    candidate_scores,
    check_printed,
    code_videos,
    printed_scores,
    similarity,
    text_measures,
)
from tests import judged
from tests.models.systems.every import EXPERTS, SIZES, WIDTH, shaken
from tests.trained import saved

FORMS = [
    "clip4clip transformer",
    "xpool",
    "duq well_posed distance=mean",
    "duq paper without text",
    "hit",
    "ce",
]
every = pytest.mark.parametrize("form", FORMS)


def features(owner: list[int], count: int, seed: int = 0) -> SplitFeatures:
    """Captions of these videos, of one to five words; videos of one to four frames."""
    draw = np.random.default_rng(seed)

    def half(*shape: int) -> np.ndarray:
        return draw.normal(size=shape).astype(np.float16)

    items = tuple(Item(f"v{i}", Path(f"v{i}.mp4")) for i in range(count))
    captions = tuple(Caption(f"caption {row}", video) for row, video in enumerate(owner))
    videos = []
    for _ in items:
        frames = int(draw.integers(1, 5))
        videos.append(FrameFeatures(half(frames, WIDTH), half(frames, 2, WIDTH), half(frames, 3)))
    texts = [(half(WIDTH), half(int(draw.integers(1, 6)), WIDTH)) for _ in captions]
    split = Split("pairs", "test", "list", items, captions)
    experts = {
        item.id: {
            name: half(int(draw.integers(1, 4)), size)
            for name, size in EXPERTS
            if draw.integers(2) and item.id != "v0"
        }
        for item in items
    }
    return SplitFeatures(split, 4, videos, texts, experts=experts)


def model(form: str) -> Model:
    torch.manual_seed(0)
    stem = Stem(StemConfig("linear", WIDTH), SIZES)
    return Model(stem, shaken(form, sizes=stem.sizes)).train()


OWNER = [0, 0, 1, 3, 3, 3, 4]


def expert_rows(own: Mapping[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of the experts of one video, and whose they are."""
    rows, which = torch.zeros(1, 0, 7), torch.zeros(1, 0, 2, dtype=torch.bool)
    for number, (name, size) in enumerate(EXPERTS):
        for row in own.get(name, ()):
            longer = torch.nn.functional.pad(torch.tensor(row).float(), (0, 7 - size))
            rows = torch.cat([rows, longer[None, None]], 1)
            mine = torch.arange(2)[None, None] == number
            which = torch.cat([which, mine], 1)
    return rows, which


def one_by_one(made: Model, texts: SplitFeatures, videos: SplitFeatures) -> np.ndarray:
    """Scores without a batch, without padding, without anything from the module under test."""
    made.eval()
    scores = np.empty((len(texts.texts), len(videos.videos)))
    with torch.no_grad():
        for i, (sentence, words) in enumerate(texts.texts):
            text = made.texts(
                TextTokens(
                    torch.tensor(sentence)[None].float(),
                    torch.tensor(words)[None].float(),
                    torch.ones(1, len(words), dtype=torch.bool),
                )
            )
            for j, video in enumerate(videos.videos):
                parts = (video.frames, video.patches, video.backbone)
                tokens = (torch.tensor(part)[None].float() for part in parts)
                real = torch.ones(1, len(video.frames), dtype=torch.bool)
                own = videos.experts[videos.split.items[j].id]
                codes = made.videos(VideoTokens(*tokens, real, *expert_rows(own)))
                scores[i, j] = made.system.similarity(text, codes).item()
    made.train()
    return scores


@every
@pytest.mark.parametrize(("items", "pairs"), [(256, 4_000_000), (2, 9), (1, 1)])
def test_scores_are_those_of_a_plain_loop(
    form: str, items: int, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_ITEMS", items)
    monkeypatch.setattr(evaluation, "_PAIRS", pairs)
    made, some = model(form), features(OWNER, 5)
    found = similarity(ModelSimilarity(made), some)
    assert found.shape == (7, 5)
    np.testing.assert_allclose(found, one_by_one(made, some, some), atol=2e-5)


@every
def test_captions_may_be_chosen_or_taken_from_a_bank(form: str) -> None:
    made, some, bank = model(form), features(OWNER, 5), features([0, 1, 0], 2, seed=1)
    whole = similarity(ModelSimilarity(made), some)
    chosen = similarity(ModelSimilarity(made), some, captions=[5, 0, 0])
    np.testing.assert_allclose(chosen, whole[[5, 0, 0]], atol=2e-5)
    of_bank = similarity(ModelSimilarity(made), some, bank=bank)
    assert of_bank.shape == (3, 5)
    np.testing.assert_allclose(of_bank, one_by_one(made, bank, some), atol=2e-5)
    np.testing.assert_allclose(
        similarity(ModelSimilarity(made), some, bank=bank, captions=[2]), of_bank[2:], atol=2e-5
    )


def test_the_model_is_left_as_it_was_found() -> None:
    """In training mode its dropout would take part, and two calls would differ."""
    made, some = model("xpool"), features(OWNER, 5)
    state = torch.get_rng_state()
    first = similarity(ModelSimilarity(made), some)
    assert made.training and made.system.training and made.stem.training
    assert np.array_equal(similarity(ModelSimilarity(made), some), first)
    assert torch.equal(torch.get_rng_state(), state)
    made.eval()
    assert np.array_equal(similarity(ModelSimilarity(made), some), first)
    assert not made.training
    codes: Codes = code_videos(ModelSimilarity(made), some, [1, 0])
    assert not any(code.requires_grad for code in codes.values())


@pytest.mark.parametrize("items", [256, 2])
def test_the_encoder_alone_scores_by_cosines_of_means(
    items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_ITEMS", items)
    some, bank = features(OWNER, 5), features([0, 1, 0], 2, seed=1)
    for texts, found in (
        (some.texts, similarity(MeanFrames(), some)),
        (bank.texts, similarity(MeanFrames(), some, bank=bank)),
    ):
        expected = np.empty((len(texts), 5))
        for i, (sentence, _) in enumerate(texts):
            for j, video in enumerate(some.videos):
                mean = video.frames.astype(float).mean(0)
                own = sentence.astype(float)
                expected[i, j] = own @ mean / (np.linalg.norm(own) * np.linalg.norm(mean))
        np.testing.assert_allclose(found, expected, atol=1e-5)


MEASURED = {
    "duq well_posed distance=mean": {"vacuity", "distance vacuity", "spread"},
    "duq paper without text": {"vacuity", "distance vacuity", "spread"},
    "duq control": {"vacuity", "distance vacuity"},
    "uatvr": {"deviation"},
    "uatvr paper": {"deviation"},
    "dvtr on duq": {
        *("vacuity", "distance vacuity", "spread"),
        *("least eta", "eta deviation"),
    },
    "dvtr on uatvr": {"deviation", "least eta", "eta deviation"},
}
measured = pytest.mark.parametrize("form", MEASURED)


@measured
@pytest.mark.parametrize("items", [256, 2])
def test_measures_are_those_of_a_text_alone_with_all_videos(
    form: str, items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_ITEMS", items)
    made, some = model(form), features(OWNER, 5)
    found = text_measures(Scorer("made", TinyEncoder(), "tiny", model=made), some)
    assert set(found) == MEASURED[form]
    made.eval()
    experts = made.stem.sizes.experts
    with torch.no_grad():
        videos = made.videos(video_tokens(some.video_batch(range(5), experts), "cpu"))
        for row, (sentence, words) in enumerate(some.texts):
            text = made.texts(
                TextTokens(
                    torch.tensor(sentence)[None].float(),
                    torch.tensor(words)[None].float(),
                    torch.ones(1, len(words), dtype=torch.bool),
                )
            )
            alone = made.system.measures(text, videos)
            for name, values in found.items():
                assert values.shape == (7,)
                assert alone[f"text {name}"].item() == pytest.approx(values[row], abs=2e-5)


@pytest.mark.parametrize("form", ["xpool", "clip4clip transformer", "ce", "dvtr none"])
def test_a_system_whose_paper_measures_nothing_has_no_measures(form: str) -> None:
    scorer = Scorer("made", TinyEncoder(), "tiny", model=model(form))
    assert text_measures(scorer, features(OWNER, 5)) == {}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    judged.split(folder, photos=12, captions=2)
    for system in ("duq", "xpool"):
        saved(folder / system, system, "none")
    return folder


@pytest.fixture(scope="module")
def duq(place):
    """A model of DUQ and the features of a split."""
    scorer = load(str(place / "duq"), "cpu")
    split = load_split("pairs", "val", place / "pairs.csv")
    return scorer, extract(split, scorer.encoder, frames=3, cache=place / "cache")


def vacuities(scores):
    """Of each row, with ReLU evidence."""
    return np.array([len(row) / sum(max(s, 0) + 1 for s in row) for row in scores])


def test_the_printed_rule_is_one_matrix_whose_columns_are_the_other_direction(duq):
    texts, videos = printed_scores(*duq, gamma=0.7)
    assert (texts.direction, videos.direction) == ("t2v", "v2t")
    assert texts.gamma == videos.gamma == 0.7
    assert "gamma 0.7" in texts.name and "gamma 0.7" in videos.name
    assert "looks at the query alone" in texts.name and "all test queries" in videos.name
    np.testing.assert_array_equal(texts.scores, videos.scores)


def test_gamma_moves_no_rank_of_a_text_and_is_a_factor_of_its_row(duq):
    none, some = (printed_scores(*duq, gamma=gamma)[0].scores for gamma in (0.0, 3.0))
    np.testing.assert_array_equal(none.argsort(1), some.argsort(1))
    factors = some / none
    np.testing.assert_allclose(factors, np.repeat(factors[:, :1], factors.shape[1], 1), rtol=1e-4)
    assert (factors < 1).all() and np.ptp(factors[:, 0]) > 0


def test_another_system_has_nothing_to_re_rank_by_as_printed(place):
    for name in (str(place / "xpool"), "tiny"):
        with pytest.raises(ArgumentError, match=r"and .* is not DUQ\. Take --post duq_candidates"):
            check_printed(load(name, "cpu"))


@pytest.mark.parametrize("gamma", [0.0, 0.6])
def test_candidates_get_a_share_of_their_uncertainty_one_pair_at_a_time(gamma):
    draw = np.random.default_rng(0)
    scores, bank = draw.uniform(-0.3, 0.8, (5, 4)), draw.uniform(-0.3, 0.8, (7, 4))
    texts, videos = candidate_scores(scores, bank, gamma)
    assert texts.gamma == gamma and "bank: 7 training captions" in texts.name
    u = vacuities(bank.T)
    for i in range(5):
        for j in range(4):
            share = (u[j] - u.mean()) / u.std() * bank.std()
            assert texts.scores[i, j] == pytest.approx(scores[i, j] + gamma * share, abs=1e-12)
    u = vacuities(scores)
    for i in range(5):
        share = (u[i] - u.mean()) / u.std() * scores.std()
        np.testing.assert_allclose(videos.scores[i], scores[i] + gamma * share, atol=1e-12)
