"""CE: its equations as loops, what a missing expert may change, and who may not be left out."""

import math

import pytest
import torch
from torch import nn

from sureshot.errors import SureshotError
from sureshot.models.systems.base import Codes, Sizes, VideoTokens
from sureshot.models.systems.ce import Ce, CeConfig
from tests.models.layers.weights import shake
from tests.models.systems.every import CHANNELS, EXPERTS, SIZES, WIDTH, texts, videos

ALL = ("frames", "backbone", "cells", "audio", "motion")


def ce(sizes: Sizes = SIZES, **settings) -> Ce:
    torch.manual_seed(0)
    made = Ce(CeConfig(**settings), sizes).eval()
    shake(made)
    return made


def coded(made: Ce, count: int = 5) -> tuple[Codes, Codes]:
    with torch.no_grad():
        return made.texts(texts(count)), made.videos(videos(count))


# --- by hand --------------------------------------------------------------------------------------


def line(layer: nn.Linear, x: list[float]) -> list[float]:
    rows = zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    return [b + math.fsum(w * v for w, v in zip(row, x, strict=True)) for row, b in rows]


def two_lines(layers: nn.Sequential, x: list[float]) -> list[float]:
    return line(layers[2], [max(v, 0.0) for v in line(layers[0], x)])


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def even(x: list[float]) -> list[float]:
    mean = math.fsum(x) / len(x)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
    return [(v - mean) / spread for v in x]


def unit(x: list[float]) -> list[float]:
    return [v / math.hypot(*x) for v in x]


def tokens_of(films: VideoTokens, row: int, name: str) -> list[list[float]]:
    """The real tokens of an expert."""
    real = films.mask[row]
    match name:
        case "frames":
            return films.frames[row, real].tolist()
        case "backbone":
            return films.backbone[row, real].tolist()
        case "cells":
            return films.patches[row, real].flatten(0, 1).tolist()
    number = [expert for expert, _ in EXPERTS].index(name)
    own = films.which[row, :, number]
    return films.experts[row, own, : dict(EXPERTS)[name]].tolist()


def normed(norm: torch.nn.LayerNorm, x: list[float]) -> list[float]:
    found: list[float] = norm(torch.tensor(x)).tolist()
    return found


def video_by_hand(made: Ce, films: VideoTokens, row: int) -> dict[str, list[float]]:
    """The unit vector of each expert that a video has."""
    said = {}
    for place, name in enumerate(made.names):
        rows = [even(token) for token in tokens_of(films, row, name)]
        if not rows:
            continue
        if made.pools:
            every = torch.ones(1, len(rows), dtype=torch.bool)
            pooled = made.pools[place](torch.tensor([rows]), every)[0].tolist()
        else:
            pooled = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        said[name] = line(made.projections[place], even(pooled))
        if made.gate is not None and made.released:
            said[name] = unit(said[name])
    if made.gate is None:
        return {name: unit(x) for name, x in said.items()}
    found = {}
    for name, own in said.items():
        heard = [0.0] * len(own)
        for other, theirs in said.items():
            if other != name:
                pair = two_lines(made.gate.pair, own + theirs)
                heard = [a + b for a, b in zip(heard, pair, strict=True)]
        gate = gate_by_hand(made, name, own, heard, len(said) - 1)
        found[name] = unit([x * sigmoid(g) for x, g in zip(own, gate, strict=True)])
    return found


def gate_by_hand(
    made: Ce, name: str, own: list[float], heard: list[float], others: int
) -> list[float]:
    """Logits of an expert's gate, from what the other experts there say in all."""
    if not made.released:
        return two_lines(made.gate.open, heard)
    place = made.names.index(name)
    mean = two_lines(made.gate.open, [x / max(others, 1) for x in heard])
    alone = line(made.gate.projections[place], own)
    norms = made.gate.pooled_norms[place], made.gate.projection_norms[place]
    both = (normed(norm, x) for norm, x in zip(norms, (mean, alone), strict=True))
    return [a + b for a, b in zip(*both, strict=True)]


def text_by_hand(made: Ce, sentence: list[float]) -> tuple[dict[str, list[float]], list[float]]:
    """The unit vector of a text for each expert, and the logits of their weights."""
    x = [v * math.sqrt(len(sentence)) for v in unit(sentence)]
    vectors = {}
    for name, embed in zip(made.names, made.embeddings, strict=True):
        z = line(embed.map, x)
        gate = line(embed.gate, z)
        vectors[name] = unit([a * sigmoid(g) for a, g in zip(z, gate, strict=True)])
    logits = [0.0] * len(made.names) if made.worth is None else line(made.worth, x)
    return vectors, logits


FORMS = [
    {},
    {"gate": "printed"},
    {"aggregation": "netvlad", "clusters": 3, "width": 6},
    {"gating": False},
    {"weighting": False},
    {"experts": ("audio", "motion")},
    {"experts": ("motion",)},
]


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_the_score_is_the_loop_over_experts(settings: dict) -> None:
    made, words, films = ce(**settings), texts(4), videos(6)
    with torch.no_grad():
        found = made.similarity(made.texts(words), made.videos(films))
    for i in range(4):
        asked, logits = text_by_hand(made, words.sentence[i].tolist())
        marks = dict(zip(made.names, map(math.exp, logits), strict=True))
        for j in range(6):
            shown = video_by_hand(made, films, j)
            total = sum(marks[name] for name in shown)
            score = math.fsum(
                marks[name] / total * math.fsum(a * b for a, b in zip(asked[name], x, strict=True))
                for name, x in shown.items()
            )
            assert found[i, j].item() == pytest.approx(score, abs=2e-5)


def test_a_video_without_any_expert_scores_nothing_and_spoils_no_gradient() -> None:
    made = ce(experts=("audio", "motion"))
    words, films = texts(6), videos(6)
    lonely = ~films.which.any((1, 2))
    assert 0 < lonely.sum() < 6
    scores = made.similarity(made.texts(words), made.videos(films))
    assert not scores[:, lonely].any() and scores[:, ~lonely].all()
    made.losses(made.texts(words), made.videos(films))["similarity"].backward()
    assert all(w.grad.isfinite().all() for w in made.parameters() if w.requires_grad)
    assert not made.video_vectors(made.videos(films))[lonely].any()


def test_vectors_rank_as_the_score_where_every_expert_is_there() -> None:
    made = ce()
    films = videos(6)
    films = films._replace(
        which=torch.tensor([[1, 0], [1, 0], [0, 1], [0, 1]]).bool().expand(6, 4, 2)
    )
    words, shown = made.texts(texts(5)), made.videos(films)
    assert shown["present"].all()
    vectors = made.text_vectors(words), made.video_vectors(shown)
    order = (vectors[0] @ vectors[1].T).argsort(1)
    assert torch.equal(order, made.similarity(words, shown).argsort(1))
    assert made.vector_width == vectors[0].shape[1] == vectors[1].shape[1]


# --- which experts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "names"),
    [
        (SIZES, ALL),
        (Sizes(WIDTH, CHANNELS), ALL[:3]),
        (Sizes(WIDTH, 0, EXPERTS), ALL[3:]),  # an encoder that reads texts alone
        (Sizes(WIDTH, 0, EXPERTS[:1]), ALL[3:4]),
        (Sizes(WIDTH, CHANNELS, EXPERTS[1:], cells=False), ("frames", "backbone", "motion")),
    ],
)
def test_all_that_are_there_take_part(sizes: Sizes, names: tuple[str, ...]) -> None:
    made = ce(sizes)
    assert made.names == names
    assert (made.gate is None) == (made.worth is None) == (len(names) == 1)


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        (SIZES, "smell"),
        (SIZES._replace(cells=False), "cells"),
        (SIZES._replace(experts=()), "audio"),
    ],
)
def test_an_expert_that_is_not_there_cannot_be_asked_for(sizes: Sizes, name: str) -> None:
    with pytest.raises(SureshotError, match=f"names '{name}', which is not there; there are: fram"):
        ce(sizes, experts=("frames", name))


def test_names_are_unique() -> None:
    with pytest.raises(SureshotError, match="An expert is called 'frames', as a part of the enc"):
        ce(Sizes(WIDTH, CHANNELS, (("frames", 3),)))
    for wrong in ((), ("frames", "frames")):
        with pytest.raises(
            SureshotError, match=r"system\.experts is \[.*\]; name each expert once"
        ):
            CeConfig(experts=wrong)


def test_its_only_loss_is_the_margin() -> None:
    made = ce(margin=0.4)
    codes = coded(made)
    scores = made.similarity(*codes).tolist()
    hinges = [
        max(0.0, 0.4 + wrong - scores[i][i])
        for i in range(5)
        for j in range(5)
        if i != j
        for wrong in (scores[i][j], scores[j][i])
    ]
    found = made.losses(*codes)
    assert set(found) == {"similarity"}
    assert found["similarity"].item() == pytest.approx(math.fsum(hinges) / len(hinges), abs=1e-6)
    assert not made.log_scale.requires_grad
