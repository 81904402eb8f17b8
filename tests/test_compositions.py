"""Whatever a recipe may ask of a system goes the whole way, as it does for a user.

Each composition is trained, written, read, evaluated, and, where it searches, indexed with and
searched. In every run some 40 compositions go: of each system as many as the option with the most
values needs, the other options dealt out so that every value occurs and as many pairs of values as
possible. Options that are numbers count as one that has its defaults or others.

`pytest -m compositions` takes all one by one: every value of every option of every system, every
system below DVTR and the head that answers questions, and every option in every mode. A new system
or option is here by itself; only a number or a list needs a line in `OTHERS`, which says what to
try next to its default.
"""

import json
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch

import sureshot
from sureshot import research
from sureshot.datasets import load_split
from sureshot.errors import ModelError
from sureshot.library.search import open_index
from sureshot.metrics.ranks import rsum
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders.experts import read_experts
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.models.load import Scorer
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.similarity import ModelSimilarity
from sureshot.models.systems.base import known_systems, load_system, objective
from sureshot.research.answers import RETRIEVAL, AnswerCheckpoint, Answerer, logits
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.scores import ranking, recalls, similarity
from sureshot.research.training.loop import LOG, read_log
from sureshot.research.training.run import validation_score
from sureshot.store.rows import IndexSettings
from tests.asked import asked, put
from tests.models.systems.every import SIZES, texts, videos

Settings = dict[str, Any]
FRAMES = 3
WRAPPERS = ("dvtr",)  # systems that are put on others

# What keeps a system small; its other settings are its defaults.
SMALL: dict[str, dict[str, Any]] = {
    "clip2video": {"layers": 1, "heads": 2},
    "clip4clip": {"layers": 1, "heads": 2},
    "duq_released": {"layers": 1, "heads": 2, "samples": 2},
    "emcl": {"layers": 1, "heads": 2, "subspaces": 4},
    "hit": {"layers": 2, "heads": 2, "bank": 8},
    "uatvr": {"layers": 1, "heads": 2},
}
# Another value of each option that is no choice.
OTHERS: dict[str, Any] = {
    "alpha": 0.5,
    "bank": 0,
    "beta": 0.0,
    "centres": 3,
    "closeness": 0.2,
    "clusters": 3,
    "deviation": 0.003,
    "dropout": 0.0,
    "experts": ["audio"],
    "feature_share": 0.2,
    "feature_weight": 0.5,
    "floor": 0.0,
    "frames": 2,
    "gamma": 0.3,
    "heads": 4,
    "kappa": 5.0,
    "layers": 2,
    "longest": 40,
    "margin": 0.4,
    "momentum": 0.9,
    "samples": 3,
    "rounds": 2,
    "scale": 20.0,
    "semantic_weight": 0.5,
    "share": 0.2,
    "sharpness": 0.5,
    "shift": 5.0,
    "smoothing": 0.0,
    "subspaces": 6,
    "support": 0.0,
    "temperature": 0.05,
    "text_tokens": 1,
    "trials": 3,
    "uniformity": 10.0,
    "video_tokens": 2,
    "width": 8,
}


def small(name: str) -> Settings:
    return {"name": name, **SMALL.get(name, {})}


BASES = {name: small(name) for name in known_systems() if name not in WRAPPERS}


def choices(hint: Any) -> tuple[Any, ...]:
    """The values that an option may take; none where there are too many to name."""
    if hint is bool:
        return (True, False)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(value for part in get_args(hint) for value in choices(part))
    return ()


def options(name: str) -> Iterator[tuple[str, Settings]]:
    """Each value of each option other than its default, and another of all that are no choice."""
    config = known_systems()[name].Config
    hints, others = get_type_hints(config), {}
    for option in fields(config):
        # An oracle needs a synthetic dataset: tests/research/training/test_run.py.
        known = [value for value in choices(hints[option.name]) if value != "oracle"]
        for value in known:
            if value != option.default:
                yield f"{option.name}={value}", {option.name: value}
        if not known and (name, option.name) != ("dvtr", "base"):
            others[option.name] = OTHERS[option.name]
    yield "other numbers", others


def forms() -> Iterator[tuple[str, Settings]]:
    """All that goes the whole way."""
    for name in known_systems():
        yield name, small(name)
        for option, values in options(name):
            yield f"{name} {option}", {**small(name), **values}
    for wrapper in WRAPPERS:
        for name, base in BASES.items():
            yield f"{wrapper} on {name}", {"name": wrapper, "base": base}


def modes() -> Iterator[tuple[str, Settings]]:
    """Each option, and each system below, in each mode that is not the default."""
    for name in known_systems():
        every = dict(options(name))
        for mode in (values for option, values in every.items() if option.startswith("mode=")):
            for option, values in every.items():
                if "mode" not in values:
                    yield f"{name} {mode['mode']} {option}", {**small(name), **mode, **values}
            for below, base in BASES.items() if name in WRAPPERS else ():
                yield f"{name} {mode['mode']} on {below}", {"name": name, **mode, "base": base}


def factors(name: str) -> list[list[Settings]]:
    """The values of each option; numbers are one option."""
    config = known_systems()[name].Config
    hints, found, others = get_type_hints(config), [], {}
    for option in fields(config):
        known = [value for value in choices(hints[option.name]) if value != "oracle"]
        if (name, option.name) == ("dvtr", "base"):
            found.append([{"base": base} for base in BASES.values()])
        elif known:
            found.append([{option.name: value} for value in known])
        else:
            others[option.name] = OTHERS[option.name]
    return sorted([*found, [{}, others]], key=len, reverse=True)


def covering() -> Iterator[tuple[str, Settings]]:
    """Few compositions with every value of every option, and many pairs of values."""
    for name in known_systems():
        every = factors(name)
        uses, pairs = Counter[tuple[int, int]](), set[tuple[tuple[int, int], ...]]()
        for number in range(len(every[0])):
            row: list[tuple[int, int]] = []
            for place, values in enumerate(every):
                made = [(place, value) for value in range(len(values))]
                news = {one: len({(other, one) for other in row} - pairs) for one in made}
                row.append(min(made, key=lambda one: (uses[one], -news[one])))
            uses.update(row)
            pairs |= set(combinations(row, 2))
            settings = small(name)
            for place, value in row:
                settings |= every[place][value]
            yield f"{name} {number}", settings


FORMS, MODES, COVERING = dict(forms()), dict(modes()), dict(covering())
# Those that choose an epoch on validation videos and get a bank; the others save the time.
VALIDATED = [{"name": "dvtr", "base": base} for base in BASES.values()] + list(BASES.values())
VALIDATED += [settings for name, settings in COVERING.items() if name.endswith(" 0")]
ANSWERING = ("duq", "dvtr", "hit")  # in every run: two of a kind and one with vectors of its own
whole = pytest.mark.compositions


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Videos, captions, questions, and sounds of every other video."""
    folder = asked(tmp_path_factory.mktemp("asked"))
    for path in (folder / "qa").iterdir():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        # Of two questions about a video, one is asked about all and one about no other.
        put(
            path,
            [one | {"question": f"{one['question']} {n % 2 * n}"} for n, one in enumerate(lines)],
        )
    sounds = folder / "experts" / "audio" / "videos"
    sounds.mkdir(parents=True)
    draw = np.random.default_rng(0)
    for number in range(0, 12, 2):
        np.save(sounds / f"{number}.npy", draw.normal(size=(2, 5)).astype(np.float32))
    with pytest.MonkeyPatch.context() as patch:
        # Digests are not remembered outside of the test, and no curves drawn, which takes longest.
        patch.setattr("sureshot.files.cache_dir", lambda: folder / "digests")
        patch.setattr("sureshot.research.training.loop.draw", lambda *_, **__: None)
        yield folder


def reads_experts(settings: Settings) -> bool:
    own = settings.get("base", settings)
    return own["name"] == "ce" or "experts" in own


def common(settings: Settings) -> Settings:
    """What recipes of retrieval and of answers share."""
    return {
        "encoder": {"name": "tiny", "frames": FRAMES, "device": "cpu"},
        "stem": {"kind": "linear", "width": 16, "dropout": 0.0},
        "system": settings,
        "training": {"epochs": 1, "batch": 6, "rate": 1e-2, "warmup": 0.0},  # a step, for speed
    }


def recipe(place: Path, settings: Settings) -> research.Recipe:
    source: Settings = {"dataset": "pairs", "root": "pairs.csv"}
    if reads_experts(settings):
        source["experts"] = "experts"
    values = {"train": [source], **common(settings)}
    if settings in VALIDATED:
        values["val"] = source
    return research.Recipe.from_dict(values, place)


@cache
def features(place: Path, split: str, experts: bool = False) -> SplitFeatures:
    """What the encoder sees of a split, and the experts if they are read."""
    chosen = load_split("pairs", split, place / "pairs.csv")
    seen = extract(chosen, TinyEncoder(), frames=FRAMES, cache=place / "cache")
    ids = [item.id for item in chosen.items]
    return replace(seen, experts=read_experts(place / "experts" if experts else None, ids))


def expected_weights(settings: Settings) -> Mapping[str, float]:
    """Weights of the losses, those of a system that another is put on as it has them alone."""
    own = load_system(settings, SIZES)
    if "base" not in settings or settings.get("loss", "own") != "own":
        return own.weights
    return {**own.weights, **load_system(settings["base"], SIZES).weights}


def check_log(folder: Path, weights: Mapping[str, float]) -> set[str]:
    """The losses of a run add up as their weights have it; gives their names."""
    steps = [entry["losses"] for entry in read_log(folder / LOG) if "losses" in entry]
    for losses in steps:
        total = sum(weights[name] * loss for name, loss in losses.items() if name != "loss")
        assert losses["loss"] == pytest.approx(total, rel=1e-4, abs=1e-5)
    return {name for losses in steps for name in losses} - {"loss"}


def check_search(scorer: Scorer, tested: SplitFeatures, db: Path) -> None:
    """An index made with a model is ranked as the split is; one that cannot search says so."""
    paths, model = [item.path for item in tested.split.items[:2]], scorer.name  # two for speed
    if scorer.searchable is None:
        with pytest.raises(ModelError, match="than the frames that an index keeps"):
            sureshot.index(paths, db=db, model=model)
        return
    sureshot.index(paths, db=db, model=model, scenes=False, workers=1)
    searcher = open_index(db, device="cpu")
    is_tuned = (Path(model) / "encoder").is_dir()
    assert searcher.store.settings.still == (0.0 if is_tuned else IndexSettings().still)
    queries = [caption.text for caption in tested.split.captions]
    expected = ranking(scorer, tested)[:, :2]
    answers = searcher.search_many(queries, limit=len(paths), merge_copies=False)
    for answer, row in zip(answers, expected, strict=True):
        scores = {hit.path: hit.score for hit in answer}
        # The index holds 16-bit numbers of what the stem gives, features those of the encoder.
        found = [scores[path] for path in paths]
        np.testing.assert_allclose(found, row, atol=3e-3, rtol=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        *(pytest.param(settings, id=name) for name, settings in COVERING.items()),
        *(pytest.param(settings, id=name, marks=whole) for name, settings in FORMS.items()),
    ],
)
def test_a_system_goes_the_whole_way(place: Path, tmp_path: Path, settings: Settings) -> None:
    made = research.train(recipe(place, settings), to=tmp_path / "run", cache=place / "cache")
    names = check_log(tmp_path / "run", expected_weights(settings))
    if "base" in settings:
        base = load_system(settings["base"], SIZES)
        alone = base.losses(base.texts(texts(4)), base.videos(videos(4))).keys()
        gone = set() if settings.get("loss", "own") == "own" else base.contrasts - {"similarity"}
        assert alone >= base.contrasts and names >= alone - gone and not names & gone

    kept = Checkpoint.from_pretrained(made.folder)
    with_experts = reads_experts(settings)
    if settings in VALIDATED:  # the score was that of the model in memory
        val = features(place, "val", with_experts)
        assert validation_score(kept.model, val, "rsum") == pytest.approx(made.score)
    kept.save_pretrained(tmp_path / "again")
    tested = features(place, "test", with_experts)
    scorer = sureshot.load(tmp_path / "again", "cpu")
    scores = similarity(scorer.raw, tested)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(similarity(ModelSimilarity(kept.model, "cpu"), tested), scores)

    evaluation = research.evaluate(
        made.folder,
        "pairs",
        place / "pairs.csv",
        experts=place / "experts" if with_experts else None,
        device="cpu",
        cache=place / "cache",
    )
    expected = rsum(*recalls(scores, tested.split.owner()))
    assert evaluation.report.rsum == pytest.approx(expected)
    check_search(scorer, tested, tmp_path / "db")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ANSWERING else whole) for n in known_systems()]
)
def test_its_answers_go_the_whole_way(place: Path, tmp_path: Path, name: str) -> None:
    source = {"root": "qa", "videos": "videos"}
    values = {"train": source, "val": source, "system_weight": 0.5, **common(small(name))}
    chosen = research.AnswerRecipe.from_dict(values, place)
    made = research.train_answers(chosen, to=tmp_path / "run", cache=place / "cache")
    alone = load_system(small(name), SIZES)
    halves = {loss: 0.5 * weight for loss, weight in alone.weights.items()}
    codes = alone.texts(texts(4)), alone.videos(videos(4))
    logged = check_log(tmp_path / "run", {"answer": 1.0, **halves})
    assert logged == {"answer", *alone.losses(*codes)}

    kept = AnswerCheckpoint.load(made.folder)
    kept.save(tmp_path / "again")
    again = AnswerCheckpoint.load(tmp_path / "again")
    questions = replace(chosen.val, split="test").load()
    seen = Answerer(kept, TinyEncoder()).features(questions.split, place / "cache")
    scores = logits(kept.model(), seen, range(6))
    np.testing.assert_array_equal(logits(again.model(), seen, range(6)), scores)
    given = [kept.answers[best] for best in scores.argmax(1)]
    right = [answer == true for answer, true in zip(given, questions.answers, strict=True)]
    found = research.evaluate_answers(
        made.folder, place / "qa", videos=place / "videos", device="cpu", cache=place / "cache"
    )
    assert found.overall.value == pytest.approx(100 * sum(right) / 6)
    # What it reads is a model to search with, as any other.
    tested = features(place, "test")
    read_on = similarity(sureshot.load(made.folder / RETRIEVAL, "cpu").raw, tested)
    np.testing.assert_array_equal(
        similarity(ModelSimilarity(kept.retrieval.model, "cpu"), tested), read_on
    )


def modelled(settings: Settings, seed: int) -> Model:
    torch.manual_seed(seed)
    stem = Stem(StemConfig("linear", 16), SIZES)
    return Model(stem, load_system(settings, stem.sizes))


@whole
@pytest.mark.parametrize("settings", MODES.values(), ids=MODES)
def test_every_option_learns_in_every_mode(settings: Settings) -> None:
    made, again = (modelled(settings, seed) for seed in (0, 1))
    system = made.system
    optimiser = torch.optim.SGD([w for w in made.parameters() if w.requires_grad], lr=1e-3)
    for number in range(system.passes):
        system.begin_pass(number)
        losses = system.losses(made.texts(texts(4)), made.videos(videos(4)))
        objective(losses, system.weights).backward()
        optimiser.step()
        system.after_step()
    assert all(weight.isfinite().all() for weight in made.parameters())
    again.load_state_dict(made.state_dict())
    with torch.no_grad():
        one, other = (
            model.system.similarity(model.texts(texts(4)), model.videos(videos(5)))
            for model in (made.eval(), again.eval())
        )
    assert one.isfinite().all() and torch.equal(one, other)
