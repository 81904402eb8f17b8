"""CLIP2Video: the released numbers, its blocks as loops, and which changes are real."""

import math

import pytest
import torch

from sureshot.models.losses.contrastive import info_nce
from sureshot.models.systems.base import TextTokens, VideoTokens, rows
from sureshot.models.systems.clip2video import Clip2Video, Clip2VideoConfig, Difference
from tests.models.layers.weights import blocks, load, sample, shake, tensor
from tests.models.systems.every import WIDTH, texts, videos


def clip2video(seed: int = 0, **settings) -> Clip2Video:
    torch.manual_seed(seed)
    made = Clip2Video(Clip2VideoConfig(**{"layers": 1, "heads": 2, **settings}), WIDTH)
    shake(made, size=0.1)
    return made.eval()


def released(told: dict, heads: int = 1, **settings) -> Clip2Video:
    """The released code's weights; centres are not among those of the difference block."""
    weights, theirs = told["weights"], told["config"]
    longest, width = tensor(weights["frame_position_embeddings.weight"]).shape
    config = Clip2VideoConfig(
        layers=theirs["layers"],
        heads=heads,
        centres=theirs.get("centers", 1),
        longest=longest,
        **settings,
    )
    made = Clip2Video(config, width)
    names = {"positions.weight": "frame_position_embeddings.weight", "log_scale": "scale"}
    for i in range(config.layers):
        names |= blocks(f"transformer.blocks.{i}", f"transformerClip.resblocks.{i}")
    if config.difference:
        names |= blocks("difference.block", "frame2t_attention.resblocks.0")
        names |= {"difference.norm": "trans_layernorm"}
        names |= {"difference.types.weight": "type_position_embeddings.weight"}
    if config.alignment:
        names |= blocks("sparse.blocks.0", "actionClip.resblocks.0")
        names |= {"alignment.weights": "weight_center", "alignment.centres": "emb_center"}
    load(made, {**weights, "scale": math.log(100)}, names)
    return made


def given(told: dict) -> tuple[TextTokens, VideoTokens]:
    inputs = told["inputs"]
    sentence, frames = tensor(inputs["text"]), tensor(inputs["video"])
    words = tensor(inputs["words"]) if "words" in inputs else sentence[:, None]
    word_mask = torch.tensor(inputs.get("word_mask", [[1.0]] * len(sentence))).bool()
    none = frames.new_zeros(*frames.shape[:2], 0, frames.shape[2])
    mask = torch.tensor(inputs["video_mask"]).bool()
    return TextTokens(sentence, words, word_mask), VideoTokens(frames, none, frames[..., :0], mask)


def whole(tokens: VideoTokens) -> VideoTokens:
    return tokens._replace(mask=torch.ones_like(tokens.mask))


@pytest.mark.parametrize(("heads", "case"), [(1, "sigmoid_selfA"), (2, "heads2")])
def test_global_scores_are_those_of_the_released_code_without_padding(
    golden, heads: int, case: str
) -> None:
    told = golden("clip2video_tdb")
    made = released(told, heads, alignment=False)
    words, films = given(told)
    logits = 100 * made.similarity(made.texts(words), made.videos(whole(films)))
    expected = tensor(told["outputs"][case]["logits_all_valid"])
    torch.testing.assert_close(logits, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("difference", "case"), [(True, "TAB_TDB"), (False, "TAB")])
def test_alignment_is_that_of_the_released_code(golden, difference: bool, case: str) -> None:
    told = golden("clip2video_tab")
    made = released(told, difference=difference)
    words, films = given(told)
    found = made.texts(words)["aligned"]
    torch.testing.assert_close(found, tensor(told["outputs"]["text"]), rtol=1e-6, atol=1e-6)
    # Where not all of the frames 0, 2, … are real, their code takes padding for motion.
    chosen = films.mask[:, ::2].all(1) if difference else films.mask.any(1)
    expected = tensor(told["outputs"][case]["video"])
    found = made.videos(films)["aligned"]
    torch.testing.assert_close(found[chosen], expected[chosen], rtol=1e-6, atol=1e-6)


def test_score_and_loss_are_those_of_the_released_code(golden) -> None:
    """Its numbers are of a video with differences, aligned without them."""
    told = golden("clip2video_tab")
    made, plain = released(told), released(told, difference=False)
    words, films = given(told)
    codes = made.texts(words), {**made.videos(films), "aligned": plain.videos(films)["aligned"]}
    full = films.mask.all(1)
    logits = 100 * made.similarity(*codes)
    expected = tensor(told["outputs"]["inference_logits"])
    torch.testing.assert_close(logits[:, full], expected[:, full], rtol=1e-6, atol=1e-5)
    loss = made.losses(codes[0], rows(codes[1], slice(len(words.sentence))))["alignment"]
    assert loss.item() == pytest.approx(told["outputs"]["tab_loss_square"], rel=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_losses_are_contrastive_and_weighted_as_the_score(share: float) -> None:
    made = clip2video(share=share, scale=10.0)
    codes = made.texts(texts(4)), made.videos(videos(4))
    losses = made.losses(*codes)
    cosines = {
        "similarity": codes[0]["sentence"] @ codes[1]["video"].T,
        "alignment": codes[0]["aligned"] @ codes[1]["aligned"].T,
    }
    assert losses.keys() == made.weights.keys() == cosines.keys()
    for name, matrix in cosines.items():
        torch.testing.assert_close(losses[name], info_nce(matrix, made.scale))
    score = sum(made.weights[name] * matrix for name, matrix in cosines.items())
    torch.testing.assert_close(made.similarity(*codes), score)
    assert made.weights["alignment"] == share and made.weights["similarity"] == 1 - share


def test_a_change_is_between_two_real_neighbours() -> None:
    torch.manual_seed(0)
    made = Difference(WIDTH, 2)
    shake(made, size=0.1)
    frames, places = sample(4, 5, WIDTH), sample(5, WIDTH, seed=1)
    lengths = torch.tensor([5, 3, 2, 1])
    mask = torch.arange(5) < lengths[:, None]
    tokens, real = made(frames, mask, places)
    assert real[:, ::2].equal(mask)
    assert real[:, 1::2].sum(1).tolist() == [4, 2, 1, 0]
    of_change, of_frame = made.types.weight
    torch.testing.assert_close(tokens[:, ::2], frames + places + of_frame)
    for item, length in enumerate(lengths.tolist()):
        if length == 1:
            continue
        steps = torch.stack([frames[item, n + 1] - frames[item, n] for n in range(length - 1)])
        seen = made.block((steps + places[1:length])[None], torch.ones(1, length - 1).bool())[0]
        for n in range(length - 1):
            centred = seen[n] - seen[n].mean()
            normed = centred / (centred.square().mean() + 1e-5).sqrt()
            bent = torch.tanh((normed * made.norm.weight + made.norm.bias) / 2)
            torch.testing.assert_close(tokens[item, 2 * n + 1], bent + places[n] + of_change)


@pytest.mark.parametrize("difference", [True, False])
def test_a_photo_is_a_video_of_one_frame_however_it_is_padded(difference: bool) -> None:
    made = clip2video(difference=difference)
    photo = videos(3)
    photo = photo._replace(mask=torch.arange(4).expand(3, 4) < 1)
    short = VideoTokens(*(part[:, :1] for part in photo))
    seen: list[torch.Tensor] = []
    if made.difference is not None:
        made.difference.block.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    padded, alone = made.videos(photo), made.videos(short)
    # Attention to nothing is NaN on some devices.
    assert all(mask.any(1).all() for mask in seen) and len(seen) == 4 * difference
    for name in ("video", "aligned"):
        assert padded[name].isfinite().all()
        torch.testing.assert_close(padded[name], alone[name], atol=1e-6, rtol=1e-5)
    losses = made.losses(made.texts(texts(3)), padded)
    sum(losses.values()).backward()
    for name, weight in made.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), name


def test_the_first_word_is_not_aligned_unless_it_is_the_only_one() -> None:
    made, words = clip2video(), texts(6)
    one_word = words.mask.sum(1) == 1
    assert one_word.any() and not one_word.all()
    changed = words.words.clone()
    changed[:, 0] += 1
    found, other = (made.texts(words._replace(words=w))["aligned"] for w in (words.words, changed))
    moved = (found - other).abs().amax(1) > 1e-4
    assert moved.equal(one_word)


def test_local_tokens_are_the_frames_after_the_differences() -> None:
    made, film, words = clip2video(), videos(4), texts(4)
    codes = made.videos(film)
    frames, mask = made.video_tokens(film, codes)
    assert frames.shape == film.frames.shape and torch.equal(mask, film.mask)
    assert not torch.allclose(frames[mask], film.frames[mask], atol=1e-2)
    assert not frames[~mask].any()
    for item in range(4):
        units = torch.nn.functional.normalize(frames[item][mask[item]], dim=-1)
        mean = torch.nn.functional.normalize(units.mean(0), dim=0)
        torch.testing.assert_close(codes["video"][item], mean)
    own, real = made.text_tokens(words, made.texts(words))
    assert torch.equal(own, words.words) and torch.equal(real, words.mask)


def test_blocks_that_are_left_out_have_no_weights() -> None:
    plain = clip2video(difference=False, alignment=False)
    assert {name.split(".")[0] for name, _ in plain.named_parameters()} == {
        "log_scale",
        "positions",
        "transformer",
    }
    assert plain.weights["similarity"] == 1.0 and not plain.reads_words
    words = texts(2)._replace(words=torch.zeros(2, 5, 0))
    assert plain.texts(words).keys() == {"sentence"}
    assert clip2video().reads_words
