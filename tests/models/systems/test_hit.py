"""HiT: its levels and losses as loops, its slow copies, and banks that hold what they should."""

import math

import pytest
import torch

from sureshot.errors import SureshotError
from sureshot.models.losses.contrastive import key_nce
from sureshot.models.systems.base import Codes, objective
from sureshot.models.systems.hit import HiT, HitConfig
from sureshot.research.training.optim import groups
from tests.models.layers.weights import shake
from tests.models.systems.every import WIDTH, system, texts, videos

LEVELS = ("feature", "semantic")


def hit(**settings) -> HiT:
    torch.manual_seed(0)
    return HiT(HitConfig(**{"layers": 3, "heads": 2, "bank": 6, **settings}), WIDTH)


def coded(made: HiT, count: int, seed: int = 0) -> tuple[Codes, Codes]:
    return made.texts(texts(count, seed)), made.videos(videos(count, seed + 1))


def one_step(made: HiT, count: int, seed: int) -> tuple[Codes, Codes]:
    codes = coded(made, count, seed)
    made.losses(*codes)
    made.after_step()
    return codes


# --- levels ---------------------------------------------------------------------------------------


def test_levels_are_the_means_of_the_first_and_the_last_block() -> None:
    made = hit().eval()
    shake(made)
    words, films = texts(5), videos(5)
    for side, codes, tokens, mask in (
        (made.text, made.texts(words), words.words, words.mask),
        (made.video, made.videos(films), films.frames, films.mask),
    ):
        assert set(codes) == set(LEVELS)
        for row in range(5):
            own = tokens[row, mask[row]]
            if side is made.text:
                own = torch.cat([words.sentence[row, None], own])
            seen = own / own.norm(dim=1, keepdim=True) * math.sqrt(WIDTH)
            seen = (seen + side.positions.weight[: len(own)])[None]
            means = []
            for block in side.blocks:
                seen = block(seen, torch.ones(1, len(own), dtype=torch.bool))
                means.append(seen[0].mean(0))
            assert len(means) == 3
            for level, mean in (("feature", means[0]), ("semantic", means[2])):
                torch.testing.assert_close(
                    codes[level][row], mean / mean.norm(), atol=1e-5, rtol=1e-4
                )


def test_tokens_for_others_are_those_of_the_feature_level() -> None:
    made, words, films = hit().eval(), texts(4), videos(4)
    for (tokens, mask), codes in (
        (made.text_tokens(words, {}), made.texts(words)),
        (made.video_tokens(films, {}), made.videos(films)),
    ):
        for row in range(4):
            mean = tokens[row, mask[row]].mean(0)
            torch.testing.assert_close(codes["feature"][row], mean / mean.norm())
    assert made.text_tokens(words, {})[1].sum().item() == words.mask.sum().item() + 4
    coded_words, coded_films = made.texts(words), made.videos(films)
    assert torch.equal(made.text_vectors(coded_words), coded_words["semantic"])
    assert torch.equal(made.video_vectors(coded_films), coded_films["semantic"])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_score_weighs_the_cosines_of_the_levels(share: float) -> None:
    made = hit(feature_share=share).eval()
    words, films = coded(made, 3)
    found = made.similarity(words, films)
    for i in range(3):
        for j in range(3):
            cosines = [(words[level][i] @ films[level][j]).item() for level in LEVELS]
            expected = share * cosines[0] + (1 - share) * cosines[1]
            assert found[i, j].item() == pytest.approx(expected, abs=1e-6)


# --- losses ---------------------------------------------------------------------------------------


def test_losses_are_the_sums_over_keys_and_banks() -> None:
    made = hit(scale=5.0, feature_weight=0.25, bank=10)
    shake(made)
    earlier = [one_step(made, 3, seed=20), one_step(made, 4, seed=30)]
    words, films = coded(made, 4)
    found = made.losses(words, films)
    scale = made.scale.item()
    for level, name in zip(LEVELS, ("feature_similarity", "similarity"), strict=True):
        total = 0.0
        for asking, answering, side in ((words, films, 1), (films, words, 0)):
            bank = torch.cat([codes[side][f"{level}_key"] for codes in earlier])
            keys = answering[f"{level}_key"]
            for i in range(4):
                marks = [scale * (asking[level][i] @ key).item() for key in [*keys, *bank]]
                assert len(marks) == 11
                total -= marks[i] - math.log(math.fsum(map(math.exp, marks)))
        assert found[name].item() == pytest.approx(total / 8, rel=1e-4)
    by_hand = 0.25 * found["feature_similarity"] + found["similarity"]
    assert objective(found, made.weights).item() == pytest.approx(by_hand.item())


def test_without_keys_an_item_is_its_own() -> None:
    made = hit().eval()
    words, films = coded(made, 3)
    found = made.losses(words, films)["similarity"]
    none = torch.zeros(0, WIDTH)
    both = [
        key_nce(one["semantic"], other["semantic"], none, made.scale)
        for one, other in ((words, films), (films, words))
    ]
    torch.testing.assert_close(found, sum(both) / 2)
    made.after_step()
    assert made.stored.item() == 0


# --- slow copies ----------------------------------------------------------------------------------


def test_copies_start_alike_and_follow_slowly() -> None:
    made = hit(momentum=0.9)
    words, films = coded(made, 3)
    for codes in (words, films):
        for level in LEVELS:
            assert torch.equal(codes[f"{level}_key"], codes[level])
            assert not codes[f"{level}_key"].requires_grad and codes[level].requires_grad
    sides = (made.text, made.text_key), (made.video, made.video_key)
    before = [weight.clone() for _, slow in sides for weight in slow.parameters()]
    for fast, _ in sides:
        shake(fast)
    made.after_step()
    after = [weight for _, slow in sides for weight in slow.parameters()]
    now = [weight for fast, _ in sides for weight in fast.parameters()]
    for old, new, fast in zip(before, after, now, strict=True):
        torch.testing.assert_close(new, 0.9 * old + 0.1 * fast)
        assert not new.requires_grad and fast.requires_grad
    # Now that they differ, a key is what the copy makes of the tokens.
    films = videos(3)
    keys = made.videos(films)["semantic_key"]
    assert torch.equal(keys, made.video_key(films.frames, films.mask)["semantic"])
    assert not torch.allclose(keys, made.video(films.frames, films.mask)["semantic"], atol=1e-3)


def test_the_optimiser_does_not_know_the_copies() -> None:
    made = hit()
    known = {id(w) for group in groups([(made, 0.1)], 0.1) for w in group["params"]}
    copies = [*made.text_key.parameters(), *made.video_key.parameters()]
    assert not known & {id(weight) for weight in copies}
    assert {"banks", "stored", "text_key.positions.weight"} <= set(made.state_dict())


# --- banks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(2, 3), (4, 4, 4), (6,), (5, 9), (1,) * 8])
def test_a_bank_holds_the_last_keys_in_a_ring(sizes: tuple[int, ...]) -> None:
    made = hit()
    stored: list[tuple[Codes, Codes]] = [
        one_step(made, count, seed=10 * number) for number, count in enumerate(sizes)
    ]
    total = sum(sizes)
    assert made.stored.item() == total
    for number, level in enumerate(LEVELS):
        for side in (0, 1):
            keys = torch.cat([codes[side][f"{level}_key"] for codes in stored])
            for place in range(max(0, total - 6), total):
                assert torch.equal(made.banks[number, side, place % 6], keys[place])


def test_nothing_is_stored_but_by_a_step_in_training() -> None:
    made = hit()
    codes = coded(made, 3)
    first = made.losses(*codes)
    again = made.losses(*codes)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert made.stored.item() == 0 and not made.banks.any()
    made.after_step()
    made.after_step()
    assert made.stored.item() == 3
    made.eval()
    made.losses(*codes)
    made.after_step()
    assert made.stored.item() == 3


def test_no_bank_is_no_bank() -> None:
    made = hit(bank=0)
    alone = made.losses(*coded(made, 3))
    one_step(made, 4, seed=3)
    assert made.banks.numel() == 0
    again = made.losses(*coded(made, 3))
    torch.testing.assert_close(alone["similarity"], again["similarity"])


# --- what does not fit ----------------------------------------------------------------------------


def test_a_text_may_be_as_long_as_it_says() -> None:
    made = hit(longest=5).eval()
    assert made.texts(texts(3))["semantic"].shape == (3, WIDTH)
    with pytest.raises(SureshotError, match="A sequence of 6 tokens is longer than the 5"):
        hit(longest=4).texts(texts(3))
    with pytest.raises(SureshotError, match="A sequence of 4 tokens is longer than the 3"):
        hit(longest=3).videos(videos(3))


def test_an_expert_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(SureshotError, match=r"names 'faces', .* there are: audio, motion"):
        system("hit on experts", experts=["motion", "faces"])


def test_a_video_is_the_rows_of_its_experts_and_nothing_else() -> None:
    made, films = system("hit on experts").eval(), videos(6)
    assert made.reads_experts and not made.searches
    other = films._replace(frames=torch.randn_like(films.frames))
    codes, same = made.videos(films), made.videos(other)
    assert all(torch.equal(codes[name], same[name]) for name in codes)
    found = films.which.any(-1)
    moved = films._replace(experts=films.experts + found[..., None])
    changed = (made.videos(moved)["semantic"] - codes["semantic"]).abs().sum(1) > 1e-4
    assert torch.equal(changed, found.any(1))  # those without any expert are all alike
