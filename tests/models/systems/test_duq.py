"""DUQ: the paper's equations written out in loops, and what the well-posed mode mends."""

import math
from dataclasses import replace
from statistics import mean
from typing import get_args

import pytest
import torch

from sureshot.models.layers.gaussian import Gaussian, draw_samples
from sureshot.models.losses.contrastive import mil_nce
from sureshot.models.losses.uncertainty import (
    distance_loss,
    mil_margin,
    soft_contrastive,
    uniformity,
)
from sureshot.models.scoring import (
    kl_distance,
    labelled_distance,
    rerank_as_printed,
    sample_cosines,
    sample_distance,
    wasserstein_distance,
)
from sureshot.models.systems.base import Codes, objective
from sureshot.models.systems.duq import Distance, Duq, DuqConfig
from tests.models.systems.every import FORMS, WIDTH, gaussians, shaken, system, texts, videos
from tests.models.systems.loops import (
    SAMPLES,
    cosine,
    divergence,
    picking,
    samples,
    squared_errors,
)

FEW = 4


def duq(**settings) -> Duq:
    torch.manual_seed(0)
    return Duq(replace(DuqConfig(dropout=0.0), **settings), WIDTH)


@pytest.mark.parametrize("mode", ["paper", "well_posed"])
def test_the_losses_are_the_equations(mode: str) -> None:
    printed = mode == "paper"
    rule = "boundary" if printed else "mean"
    made = shaken(f"duq {mode} distance={rule}", samples=SAMPLES, pooling="mean", scale=20.0)
    assert isinstance(made, Duq)
    words, films = made.texts(texts(FEW)), made.videos(videos(FEW))
    pairs = [(i, j) for i in range(FEW) for j in range(FEW)]
    s = [[0.0] * FEW for _ in range(FEW)]
    for i, j in pairs:
        s[i][j] = cosine(words["sentence"][i].tolist(), films["video"][j].tolist())

    draw = torch.Generator().manual_seed(5)
    of_texts, of_videos = samples(words, draw), samples(films, draw)
    d = [[0.0] * FEW for _ in range(FEW)]
    for i, j in pairs:
        every = [1 - cosine(one, two) for one in of_texts[i] for two in of_videos[j]]
        pick = (min if i == j else max) if printed else mean
        d[i][j] = pick(every)
    matched = [[float(i == j) for j in range(FEW)] for i in range(FEW)]
    if printed:
        others = [[1 - y for y in row] for row in matched]
        expected = {
            "similarity_evidence": squared_errors(s, matched),
            "distance": picking(d, 100.0),
            "distance_evidence": squared_errors(d, others),
            "divergence": divergence(words, 1.0) + divergence(films, 1.0),
        }
    else:
        start, far = made.offset.tolist()
        steep = [[20 * (x - start) for x in row] for row in s]
        near = [[20 * (1 - x - far) for x in row] for row in d]
        expected = {
            "similarity_evidence": squared_errors(steep, matched) / 2,
            "distance": -picking([[-x for x in row] for row in d], 20.0),
            "distance_evidence": squared_errors(near, matched) / 2,
            "divergence": divergence(words, 1 / WIDTH) + divergence(films, 1 / WIDTH),
        }
    expected["similarity"] = -picking(s, 20.0)

    losses = made.losses(words, films, torch.Generator().manual_seed(5))
    assert {name: loss.item() for name, loss in losses.items()} == pytest.approx(expected, rel=2e-4)
    total = expected["similarity"] + expected["similarity_evidence"]
    total += 0.1 * (expected["distance"] + expected["distance_evidence"])
    total += 1e-4 * expected["divergence"]
    assert objective(losses, made.weights).item() == pytest.approx(total, rel=2e-4)


def test_evidence_is_as_steep_as_the_softmax_is_at_first() -> None:
    assert duq().kappa == 100
    assert duq(scale=20.0).kappa == 20
    assert duq(scale=20.0, kappa=3.0).kappa == 3
    assert duq(mode="paper").kappa == 1


@pytest.mark.parametrize("form", ["duq paper distance=boundary", "duq well_posed distance=mean"])
def test_the_reranking_is_the_printed_product_and_cannot_change_a_querys_ranking(form: str) -> None:
    made = shaken(form, gamma=3.0)
    assert isinstance(made, Duq)
    words, films = made.texts(texts(7)), made.videos(videos(5))
    s, d = made.feature(words, films), made.expected(words, films)
    of_match = s if made.printed_mode else made.kappa * (s - made.offset[0])
    of_branch = d if made.printed_mode else made.kappa * (1 - d - made.offset[1])
    found = made.printed(words, films)
    for i in range(7):
        u_s = 5 / math.fsum(max(x, 0.0) + 1 for x in of_match[i].tolist())
        u_d = 5 / math.fsum(max(x, 0.0) + 1 for x in of_branch[i].tolist())
        factor = math.exp(-3 * u_d) * math.exp(-3 * u_s)
        expected = [factor * (1 - d[i, j].item()) * s[i, j].item() for j in range(5)]
        assert found[i].tolist() == pytest.approx(expected, rel=1e-4)
    bare = (1 - d) * s
    assert torch.equal(found.argsort(1), bare.argsort(1))
    assert found.std() != bare.std()
    if made.printed_mode:
        torch.testing.assert_close(made.similarity(words, films), (1 - d / 2) * s)
    else:
        torch.testing.assert_close(made.similarity(words, films), s + 0.5 * (1 - d))


def test_without_a_branch_its_factors_are_left_out() -> None:
    made = duq(distance_loss=False, distance_evidence=False).eval()
    words, films = made.texts(texts(4)), made.videos(videos(5))
    feature = made.feature(words, films)
    assert torch.equal(made.similarity(words, films), feature)
    seen = made.measures(words, films)
    assert seen.keys() == {"text vacuity", "video vacuity"}
    none = torch.zeros(4)
    expected = rerank_as_printed(feature, torch.zeros(4, 5), seen["text vacuity"], none)
    torch.testing.assert_close(made.printed(words, films), expected)


def test_the_expected_distance_is_that_of_many_samples() -> None:
    made = duq()
    one, other = gaussians(3, seed=1), gaussians(4, seed=2)
    draw, many = torch.Generator().manual_seed(0), 20_000
    drawn = [
        codes["mean"][:, None]
        + (codes["log_var"] / 2).exp()[:, None]
        * torch.randn(len(codes["mean"]), many, WIDTH, generator=draw)
        for codes in (one, other)
    ]
    inner = torch.einsum("tkd,vkd->tv", *drawn) / many
    length = [part.square().sum(-1).mean(1).sqrt() for part in drawn]
    estimate = 1 - inner / length[0][:, None] / length[1]
    torch.testing.assert_close(made.expected(one, other), estimate, atol=0.01, rtol=0)


PRINTED = [form for form, chosen in FORMS.items() if chosen["name"] == "duq"]


def test_the_scale_of_distances_is_not_learned() -> None:
    for mode in ("well_posed", "paper"):
        made = duq(mode=mode, similarity_evidence=False)
        losses = made.losses(made.texts(texts(4)), made.videos(videos(4)))
        for name in ("distance", "distance_evidence"):
            grads = torch.autograd.grad(
                losses[name], made.log_scale, retain_graph=True, allow_unused=True
            )
            assert grads == (None,)


@pytest.mark.parametrize("form", PRINTED)
def test_noise_is_drawn_for_distances_of_samples_and_for_no_others(form: str) -> None:
    made = system(form)
    assert isinstance(made, Duq)
    draw = torch.Generator().manual_seed(0)
    before = draw.get_state()
    made.losses(made.texts(texts(3)), made.videos(videos(3)), draw)
    closed = made.distance in ("means", "kl", "wasserstein") or not made.config.branch
    assert torch.equal(draw.get_state(), before) == closed


def test_the_control_has_as_many_parameters_and_no_uncertainty() -> None:
    full, control = system("duq well_posed distance=mean"), system("duq control")
    assert isinstance(control, Duq)
    shapes = [{k: v.shape for k, v in made.state_dict().items()} for made in (full, control)]
    assert shapes[0] == shapes[1]
    trained = {name for name, weight in control.named_parameters() if weight.requires_grad}
    assert {name for name, _ in control.named_parameters()} - trained == {
        "match",
        "text_branch.head.spread.weight",
        "text_branch.head.spread.bias",
        "video_branch.head.spread.weight",
        "video_branch.head.spread.bias",
    }
    words, films = control.texts(texts(4)), control.videos(videos(4))
    losses = control.losses(words, films)
    assert losses.keys() == {"similarity", "similarity_evidence", "distance"}
    scores = control.similarity(words, films)
    wide = [{**codes, "log_var": codes["log_var"] + 3} for codes in (words, films)]
    assert torch.equal(control.similarity(*wide), scores)
    expected = 1 - torch.cosine_similarity(words["mean"][:, None], films["mean"], dim=-1)
    torch.testing.assert_close(control.expected(words, films), expected)
    assert "text spread" not in control.measures(words, films)


def test_measures_are_the_vacuities_of_the_evidence_that_is_trained() -> None:
    made = duq(pooling="mean", kappa=100.0)
    perfect = torch.eye(WIDTH)
    narrow = torch.full((WIDTH, WIDTH), -30.0)
    words: Codes = {"sentence": perfect, "mean": perfect, "log_var": narrow}
    films: Codes = {"video": perfect, "mean": perfect, "log_var": narrow}
    seen = made.measures(words, films)
    sure = WIDTH / (WIDTH + 100)
    for name in ("text", "video", "text distance", "video distance"):
        torch.testing.assert_close(seen[f"{name} vacuity"], torch.full((WIDTH,), sure))
    torch.testing.assert_close(seen["text spread"], torch.full((WIDTH,), math.log(WIDTH) - 30))
    # One text like no video, one video like no text.
    films["video"] = perfect.index_fill(0, torch.tensor([3]), 0.0)
    lost = made.measures(words, films)
    for side in ("text vacuity", "video vacuity"):
        assert lost[side].argmax() == 3
        assert lost[side][3].item() == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["well_posed", "paper"])
def test_matrices_are_what_the_score_and_the_vacuities_are_made_of(mode: str) -> None:
    made = shaken(f"duq {mode} distance=mean")
    assert isinstance(made, Duq)
    words, films = made.texts(texts(5)), made.videos(videos(6))
    with torch.no_grad():
        found = made.matrices(words, films)
        vacuity = made.measures(words, films)["text vacuity"]
        score, printed = made.similarity(words, films), made.printed(words, films)
    assert list(found) == ["similarity", "belief", "distance", "printed score"]
    s, d = found["similarity"], found["distance"]
    torch.testing.assert_close((1 - d / 2) * s if mode == "paper" else s + 0.5 * (1 - d), score)
    torch.testing.assert_close(found["belief"].sum(1) + vacuity, torch.ones(5))
    torch.testing.assert_close(found["printed score"], printed)


def test_no_distances_turn_a_ranking_round() -> None:
    # As printed, (1 - d) s puts the best last where a model puts all pairs further apart than 1.
    made = duq(mode="paper").eval()
    words, films = made.texts(texts(5)), made.videos(videos(6))
    films["mean"] = -words["mean"].mean(0).expand_as(films["mean"])
    assert made.expected(words, films).min() > 1
    feature = made.feature(words, films)
    assert torch.equal(made.similarity(words, films).argsort(1), feature.argsort(1))
    assert torch.equal(made.printed(words, films).argsort(1), feature.argsort(1).flip(1))


def test_what_follows_from_the_printed_mode() -> None:
    printed = duq(mode="paper")
    assert (printed.kappa, printed.distance) == (1.0, "boundary")
    assert duq(mode="paper", kappa=5.0).kappa == 5.0
    assert not printed.offset.requires_grad


@pytest.mark.parametrize("rule", get_args(Distance))
def test_each_distance_has_its_loss(rule: Distance) -> None:
    made = duq(distance=rule, pooling="mean", samples=SAMPLES, scale=20.0)
    codes = made.texts(texts(FEW)), made.videos(videos(FEW))
    one, other = (Gaussian(code["mean"], code["log_var"]) for code in codes)
    draw = torch.Generator().manual_seed(5)
    drawn = draw_samples(one, SAMPLES, draw), draw_samples(other, SAMPLES, draw)
    sides = [torch.nn.functional.normalize(side, dim=-1) for side in drawn]
    mean = sample_distance(*drawn, "mean")
    match rule:
        case "monte_carlo":
            expected = soft_contrastive(*sides, 5.0, 5.0)
        case "mil":
            expected = mil_margin(sample_distance(*drawn, "min"))
        case "uda":
            expected = mil_nce(sample_cosines(*drawn), 20.0)
        case "uniformity":
            crowded = uniformity(torch.cat([side.flatten(0, 1) for side in sides]))
            expected = distance_loss(mean, 20.0) + 10 * crowded
        case _:
            apart = {
                "boundary": labelled_distance(*drawn, torch.eye(FEW).bool()),
                "min": sample_distance(*drawn, "min"),
                "means": 1 - torch.cosine_similarity(one.mean[:, None], other.mean, dim=-1),
                "kl": kl_distance(one, other) / WIDTH,
                "wasserstein": wasserstein_distance(one, other) / 2,
            }
            expected = distance_loss(apart.get(rule, mean), 20.0)
    found = made.losses(*codes, torch.Generator().manual_seed(5))["distance"]
    torch.testing.assert_close(found, expected)
