"""DVTR: what eta learns, what it may touch, and that a search is the base's."""

import math

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.losses.contrastive import info_nce, weigh
from sureshot.models.losses.uncertainty import max_margin, mil_margin
from sureshot.models.systems.base import TextTokens, VideoTokens, load_system, objective
from tests.models.systems.every import CORE, FORMS, SIZES, WIDTH, shaken, system, texts, videos

TOPICS, EACH = 8, 4
BASES = ["dvtr", "dvtr on xpool", "dvtr on clip2video", "dvtr on hit", "dvtr on ce"]


def crowd(seed=0, noise=0.3):
    """Pairs of which four each are about one topic: known soft positives. And who is of which."""
    draw = torch.Generator().manual_seed(seed)
    topics = torch.randn(TOPICS, WIDTH, generator=torch.Generator().manual_seed(9))
    topic = torch.arange(TOPICS).repeat(EACH)

    def like(tokens):
        extra = noise * torch.randn(len(topic), tokens, WIDTH, generator=draw)
        return topics[topic][:, None] + extra

    words, film = texts(len(topic), seed + 1), videos(len(topic), seed + 2)
    words = TextTokens(like(1)[:, 0], like(words.words.shape[1]), words.mask)
    return words, film._replace(frames=like(film.frames.shape[1])), topic


def estimate(made, words, films, steps, seed=3):
    """Train the Gaussians and eta alone."""
    made.train()
    made.begin_pass(0)
    draw = torch.Generator().manual_seed(seed)
    weights = [weight for weight in made.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(weights, lr=1e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        losses = made.losses(made.texts(words), made.videos(films), draw)
        objective(losses, made.weights).backward()
        optimiser.step()
    return made.eval()


def eta_of(made, words, films):
    with torch.no_grad():
        return made.matrices(made.texts(words), made.videos(films))["eta"]


def separation(eta, topic):
    """How often a true negative has a larger eta than a soft positive (the area under the ROC)."""
    soft = (topic[:, None] == topic) & ~torch.eye(len(topic), dtype=torch.bool)
    low, high = eta[soft], eta[topic[:, None] != topic]
    return (high[:, None] > low).float().mean().item()


@pytest.mark.parametrize("form", ["dvtr", "dvtr kl", "dvtr on xpool", "dvtr on hit"])
def test_eta_tells_soft_positives_from_true_negatives(form):
    made = estimate(system(form), *crowd()[:2], steps=60)
    words, films, topic = crowd(seed=50)  # other items of the same topics
    eta = eta_of(made, words, films)
    assert separation(eta, topic) > 0.95
    same, other = topic[:, None] == topic, topic[:, None] != topic
    assert eta[same].median() < 0.35 < 0.65 < eta[other].median()


def test_pcme_tells_them_too_and_the_printed_rule_does_not():
    words, films, topic = crowd(seed=50)
    learned = estimate(system("dvtr pcme"), *crowd()[:2], steps=60)
    assert separation(eta_of(learned, words, films), topic) > 0.9
    # The printed sigmoid falls with the distance: soft positives weigh the most to begin with.
    early = eta_of(estimate(system("dvtr paper"), *crowd()[:2], steps=30), words, films)
    assert separation(early, topic) < 0.05


def test_pcme_begins_unsure_in_either_mode():
    words, films, _ = crowd(seed=50)
    for mode in ("well_posed", "paper"):
        settings = {"name": "dvtr", "uncertainty": "pcme", "mode": mode}
        eta = eta_of(load_system(settings, SIZES).eval(), words, films)
        assert 0.2 < eta.diagonal().mean() < 0.99 and eta.std() > 0.01


def test_a_bank_as_large_as_the_data_set_is_told():
    for settings, said in [
        ({"name": "hit"}, "HiT's bank holds 4096 keys of 2500 training videos"),
        ({"name": "hit", "bank": 1250}, ""),
        ({"name": "dvtr", "base": {"name": "hit"}}, "HiT's bank holds 4096"),
        ({"name": "clip4clip"}, ""),
    ]:
        assert load_system(settings, SIZES).advice(2500)[: len(said) or None] == said


def test_a_question_sees_a_video_as_the_base_does():
    made = shaken("dvtr on xpool")
    asked, shown = made.texts(texts(4, 0)), made.videos(videos(4, 1))
    seen = made.seen_vectors(asked, shown)
    torch.testing.assert_close(seen, made.base.seen_vectors(asked, shown))
    assert not torch.allclose(seen, made.video_vectors(shown), atol=0.01)


def test_eta_rises_with_the_distance_and_stays_above_the_floor():
    made = shaken("dvtr")
    found = made.matrices(made.texts(texts(20)), made.videos(videos(30)))
    eta, distance = found["eta"].flatten(), found["wasserstein"].flatten()
    order = distance.argsort()
    assert (eta[order].diff() >= 0).all()
    assert eta.min() >= made.config.floor
    assert distance[order].diff().max() > 0 and eta.max() <= 1
    printed = shaken("dvtr paper")
    with torch.no_grad():
        printed.eta_slope.fill_(1.0)
    found = printed.matrices(printed.texts(texts(20)), printed.videos(videos(30)))
    order = found["wasserstein"].flatten().argsort()
    assert (found["eta"].flatten()[order].diff() <= 0).all()


@pytest.mark.parametrize("form", ["dvtr", "dvtr paper"])
def test_gaussians_do_not_depend_on_how_long_tokens_are(form):
    made, words, films = shaken(form), texts(5), videos(5)
    longer = words._replace(words=10 * words.words), films._replace(frames=10 * films.frames)
    for code, one, other in (
        (made.texts, words, longer[0]),
        (made.videos, films, longer[1]),
    ):
        for name in ("uncertain mean", "uncertain log_var"):
            torch.testing.assert_close(code(other)[name], code(one)[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", BASES)
def test_the_score_is_that_of_the_base(form):
    made = shaken(form)
    words, films = texts(5), videos(6)
    with torch.no_grad():
        codes = made.texts(words), made.videos(films)
        alone = made.base.texts(words), made.base.videos(films)
        assert torch.equal(made.similarity(*codes), made.base.similarity(*alone))
        assert torch.equal(made.video_vectors(codes[1]), made.base.video_vectors(alone[1]))


@pytest.mark.parametrize("form", BASES)
def test_in_the_first_pass_only_the_estimator_learns_in_the_second_only_the_base(form):
    made = system(form)
    assert made.passes == 2
    for number, learns in ((0, False), (1, True)):
        made.begin_pass(number)
        made.zero_grad()
        losses = made.losses(made.texts(texts(6)), made.videos(videos(6)))
        assert ("similarity" in losses) == learns and ("dvtr_matching" in losses) != learns
        objective(losses, made.weights).backward()
        for name, weight in made.named_parameters():
            touched = weight.grad is not None and bool(weight.grad.any())
            if touched:
                assert name.startswith("base.") == learns, name
        moved = [n for n, w in made.named_parameters() if w.grad is not None and w.grad.any()]
        # CLIP4Clip has nothing to learn but its scale.
        assert moved
        torch.nn.init.constant_(made.base.log_scale, 9.0)
        made.after_step()
        assert (made.scale <= 100.1) == learns  # what follows a step of the base


def test_even_at_once_neither_part_bends_the_other():
    words, films = texts(6).words.requires_grad_(), videos(6)
    tokens = texts(6)._replace(words=words)
    made = system("dvtr", alternate=False)
    assert made.passes == 1
    losses = made.losses(made.texts(tokens), made.videos(films))
    (losses["dvtr_alignment"] + losses["dvtr_matching"]).backward(retain_graph=True)
    assert words.grad is None and made.base.log_scale.grad is None
    losses["similarity"].backward()
    assert made.base.log_scale.grad is not None


def test_as_printed_the_first_pass_trains_the_base_too():
    made = system("dvtr paper", base={"name": "clip4clip", "temporal": "transformer", "layers": 1})
    made.begin_pass(0)
    losses = made.losses(made.texts(texts(6)), made.videos(videos(6)), torch.Generator())
    objective(losses, made.weights).backward()
    grads = [w.grad for name, w in made.named_parameters() if name.startswith("base.temporal")]
    assert any(grad is not None and grad.any() for grad in grads)


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        ({}, lambda score, eta, scale: info_nce(score, scale, eta=eta)),
        ({"loss": "contrastive"}, lambda score, eta, scale: info_nce(score, scale, eta=eta)),
        ({"loss": "triplet"}, lambda score, eta, scale: max_margin(score, 0.5, eta)),
        (
            {"loss": "triplet", "negatives": "hardest"},
            lambda score, eta, scale: mil_margin(-score, 0.5, "hardest", eta),
        ),
        (
            {"loss": "triplet", "mode": "paper"},
            lambda score, eta, scale: max_margin(weigh(score, eta), 0.5),
        ),
    ],
)
def test_the_loss_of_the_second_pass_is_the_debiased_one(settings, loss):
    made = load_system({"name": "dvtr", **settings}, SIZES)
    made.begin_pass(1)
    codes = made.texts(texts(7)), made.videos(videos(7))
    eta = made.matrices(*codes)["eta"].detach()
    expected = loss(made.base.similarity(*codes), eta, made.scale)
    torch.testing.assert_close(made.losses(*codes)["similarity"], expected)


# Whose losses know no pairs: uniformity of all samples, agreement of whole matrices.
WITHOUT_PAIRS = (
    "duq well_posed distance=uniformity",
    "duq paper distance=uniformity",
    "duq_released",
    "pcme apart",
)
ALONE = [form for form, chosen in FORMS.items() if chosen["name"] != "dvtr"]


@pytest.mark.parametrize("form", [form for form in ALONE if form not in WITHOUT_PAIRS])
def test_every_loss_of_every_base_leaves_soft_positives_in_peace(form):
    """With eta = 0 for all negatives, what a text learns does not depend on other videos."""
    base = {**FORMS[form]}
    if base["name"] in ("duq", "xpool", "tmass"):
        base["dropout"] = 0.0
    made = load_system({"name": "dvtr", "base": base}, SIZES).eval()
    words, films, others = texts(4), videos(4), videos(4, seed=9)
    mixed = VideoTokens(*(torch.cat([a[:1], b[1:]]) for a, b in zip(films, others, strict=True)))

    def of_first(film):
        """Gradient at the first text."""
        sentence, spoken = (part.clone().requires_grad_() for part in words[:2])
        codes = made.texts(TextTokens(sentence, spoken, words.mask)), made.videos(film)
        losses = made.base.losses(*codes, torch.Generator().manual_seed(3), torch.zeros(4, 4))
        objective(losses, made.base.weights).backward()
        grads = [part.grad[0].flatten() for part in (sentence, spoken) if part.grad is not None]
        return torch.cat(grads)

    one, other = of_first(films), of_first(mixed)
    largest = max(one.abs().max().item(), 1)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * largest)


@pytest.mark.parametrize("form", [form for form in ALONE if form in CORE])
def test_names_and_weights_of_every_base_survive(form):
    base = load_system(FORMS[form], SIZES)
    made = load_system({"name": "dvtr", "base": FORMS[form], "alternate": False}, SIZES)
    own = {"dvtr_alignment", "dvtr_matching"}
    assert made.weights.keys() == base.weights.keys() | own
    assert all(made.weights[name] == weight for name, weight in base.weights.items())
    codes = made.texts(texts(4)), made.videos(videos(4))
    alone = made.base.losses(*codes, torch.Generator().manual_seed(1))
    losses = made.losses(*codes, torch.Generator().manual_seed(1))
    assert losses.keys() == alone.keys() | own


def test_it_is_not_put_on_one_of_its_own_kind():
    with pytest.raises(SureshotError, match="both have dvtr_alignment, dvtr_matching"):
        load_system({"name": "dvtr", "base": {"name": "dvtr"}}, SIZES)


def test_without_uncertainty_it_is_the_base_alone():
    made = system("dvtr none")
    codes = made.texts(texts(6)), made.videos(videos(6))
    assert made.passes == 1 and "uncertain mean" not in codes[0]
    losses = made.losses(*codes)
    assert set(losses) == {"similarity"}
    expected = info_nce(made.base.similarity(*codes), made.scale)
    torch.testing.assert_close(losses["similarity"], expected)
    assert made.gaussian(codes[0]) is None and made.matrices(*codes) == {}


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        ({}, 100.0),
        ({"mode": "paper"}, 1 / 0.07),
        ({"temperature": 0.05}, 20.0),
        ({"base": {"name": "ce"}, "loss": "contrastive"}, 1 / 0.07),
    ],
)
def test_the_temperature_is_fixed_where_it_is_given(settings, scale):
    made = load_system({"name": "dvtr", **settings}, SIZES)
    assert made.scale.item() == pytest.approx(scale, rel=1e-5)
    given = "temperature" in settings or settings.get("mode") == "paper"
    assert made.base.log_scale.requires_grad == (not given)


def test_it_says_what_it_cannot_be_put_on():
    with pytest.raises(SureshotError, match=r"system\.base\.name is 'nothing'"):
        load_system({"name": "dvtr", "base": {"name": "nothing"}}, SIZES)
    with pytest.raises(SureshotError, match=r"system\.base\.colour"):
        load_system({"name": "dvtr", "base": {"name": "xpool", "colour": 1}}, SIZES)


def test_the_order_of_learning_is_that_of_chance_under_the_shuffled_control():
    made = system("dvtr shuffled")
    made.begin_pass(1)
    codes = made.texts(texts(6)), made.videos(videos(6))
    one = made.losses(*codes, torch.Generator().manual_seed(1))["similarity"]
    other = made.losses(*codes, torch.Generator().manual_seed(2))["similarity"]
    assert not math.isclose(one.item(), other.item(), rel_tol=1e-7)
