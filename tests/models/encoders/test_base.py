"""Features: stacking pads and masks, and the shapes are really checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel, WordPiece

from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.base import (
    FrameFeatures,
    HasWords,
    Vocabulary,
    encode_together,
    mean_pool,
    pool_grid,
    stack,
    token_words,
)
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.toy import TinyEncoder
from tests.models.encoders.test_clip import clip, siglip


def video(frames, seed=0, patches=2):
    dice = np.random.default_rng(seed)
    return FrameFeatures(
        frames=dice.normal(size=(frames, 4)).astype(np.float32),
        patches=dice.normal(size=(frames, patches, 4)).astype(np.float32),
        backbone=dice.normal(size=(frames, 5)).astype(np.float32),
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 3))
def test_stack_keeps_every_frame_and_pads_with_zeros(counts, patches):
    videos = [video(count, seed, patches) for seed, count in enumerate(counts)]
    stacked = stack(videos)
    assert stacked.mask.sum(1).tolist() == counts
    assert stacked.frames.shape == (len(counts), max(counts), 4)
    assert stacked.patches.shape == (len(counts), max(counts), patches, 4)
    for row, one in enumerate(videos):
        real = stacked.mask[row]
        assert real[: counts[row]].all()
        for name in ("frames", "patches", "backbone"):
            padded = getattr(stacked, name)[row]
            assert np.array_equal(padded[real], getattr(one, name))
            assert (padded[~real] == 0).all()


def test_each_video_gets_its_own_features_whatever_lies_in_its_batch():
    encoder, draw = TinyEncoder(), np.random.default_rng(0)
    videos = [draw.integers(0, 256, (n, 3, 16, 16), np.uint8) for n in (3, 1, 2)]
    for video, features in zip(videos, encode_together(encoder, videos), strict=True):
        alone = encoder.encode_frames(video)
        assert np.array_equal(features.frames, alone.frames)
        assert np.array_equal(features.patches, alone.patches)
        assert np.array_equal(features.backbone, alone.backbone)


def test_shapes_do_not_mix_and_the_order_stays():
    batches = []

    class Wide(TinyEncoder):
        def encode_frames(self, prepared):
            batches.append(prepared.shape)
            return super().encode_frames(prepared[:, :, :16, :16])

    encoder = Wide()
    shades = [
        np.full((2, 3, 16, width), value, np.uint8)
        for width, value in ((16, 10), (20, 20), (16, 30), (20, 40))
    ]
    found = encode_together(encoder, shades)
    assert batches == [(4, 3, 16, 16), (4, 3, 16, 20)]
    means = [float(features.backbone.mean()) * 255 for features in found]
    assert np.allclose(means, [10, 20, 30, 40], atol=1e-3)
    assert encode_together(encoder, []) == []


TEXT = "A skateboarder's Dog, doing kickflips!"


def wordpiece():
    pieces = [
        "[CLS]",
        "[SEP]",
        "[UNK]",
        "a",
        "dog",
        "sk",
        "##ate",
        "##board",
        "##er",
        "'",
        "s",
        ",",
    ]
    made = Tokenizer(WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    return made


def test_pieces_are_joined_to_words_and_marks_have_no_name():
    found = token_words(TEXT, wordpiece().encode(TEXT))
    word = "skateboarder's"
    assert found == ("", "A", *[word] * 6, "Dog", "", "doing", "kickflips", "", "")


def test_tokens_that_begin_with_a_space_are_the_word_behind_it():
    made = Tokenizer(WordLevel({"▁red": 0, "▁wall": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    text = "red  wall"
    assert [word for word in token_words(text, made.encode(text)) if word] == ["red", "wall"]


@pytest.mark.parametrize("name", ["tiny", "bridge", "bundled"])
def test_there_is_a_name_for_every_token_of_an_encoder(name):
    encoder = load_encoder(name, "cpu")
    assert isinstance(encoder, HasWords)
    texts = [TEXT, "dogs", "two words " * 100, "half \ud800 a character"]
    counts = encoder.encode_texts(texts).mask.sum(1).tolist()
    words = encoder.words_of(texts)
    assert [len(one) for one in words] == counts
    assert "doing" in words[0] and "dogs" in words[1] and set(words[2]) <= {"two", "words", ""}


@pytest.mark.parametrize("make", [clip, siglip])
def test_there_is_a_name_for_every_token_of_a_clip(tmp_path, make):
    make(tmp_path)
    encoder = ClipEncoder.load(str(tmp_path), "cpu")
    assert isinstance(encoder, HasWords)
    texts = ["a red dog", "two cars, a blue bus and a red bus", "a", "half \ud800 a character"]
    counts = encoder.encode_texts(texts).mask.sum(1).tolist()
    words = encoder.words_of(texts)
    assert [len(one) for one in words] == counts
    assert [word for word in dict.fromkeys(words[0]) if word] == ["a", "red", "dog"]


def slow_mean_pool(frames, mask):
    pooled = []
    for video, real in zip(frames, mask, strict=True):
        total = [0.0] * video.shape[1]
        for frame, is_real in zip(video, real, strict=True):
            if is_real:
                total = [t + float(x) for t, x in zip(total, frame, strict=True)]
        length = sum(t * t for t in total) ** 0.5
        pooled.append([t / length if length else 0.0 for t in total])
    return np.array(pooled)


@st.composite
def videos(draw):
    """Frames of any scale, and a mask with at least one real frame a video."""
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, frames, dim = (draw(st.integers(1, 5)) for _ in range(3))
    scale = draw(st.sampled_from([1e-20, 1.0, 1e20]))
    mask = dice.random((count, frames)) < 0.6
    mask[:, 0] = True
    return (dice.normal(0, scale, (count, frames, dim))).astype(np.float32), mask


@given(videos())
def test_mean_pool_equals_a_slow_loop(video):
    frames, mask = video
    assert np.allclose(mean_pool(frames, mask), slow_mean_pool(frames, mask), atol=1e-5)


@given(videos(), st.sampled_from([0.0, 7.0, np.inf, np.nan]))
def test_padding_may_hold_anything(video, rubbish):
    # Padding was masked by a product, which makes NaN of what is not finite.
    frames, mask = video
    spoilt = np.where(mask[..., None], frames, np.float32(rubbish))
    more = np.full((len(frames), 3, frames.shape[2]), rubbish, np.float32)
    longer = np.concatenate([spoilt, more], axis=1)
    mask = np.pad(mask, ((0, 0), (0, 3)))
    assert np.allclose(mean_pool(longer, mask), mean_pool(frames, mask[:, :-3]), atol=1e-6)


def slow_pool_grid(patches, side):
    """Rows and columns of patches, shared out among cells, the larger shares first."""
    frames, count, dim = patches.shape
    across = round(count**0.5)
    shares = [across // side + (cell < across % side) for cell in range(side)]
    edges = [sum(shares[:cell]) for cell in range(side + 1)]
    cells = np.zeros((frames, side * side, dim))
    for frame in range(frames):
        for row in range(side):
            for column in range(side):
                inside = [
                    patches[frame, y * across + x]
                    for y in range(edges[row], edges[row + 1])
                    for x in range(edges[column], edges[column + 1])
                ]
                cells[frame, row * side + column] = np.mean(inside, axis=0)
    return cells


@pytest.mark.parametrize(("across", "side"), [(4, 2), (7, 3), (14, 3), (5, 4), (3, 1)])
def test_pool_grid_equals_a_slow_loop(across, side):
    patches = np.random.default_rng(0).normal(size=(2, across * across, 3))
    assert np.allclose(pool_grid(patches, side), slow_pool_grid(patches, side))


@pytest.mark.parametrize("count", [0, 1, 4, 9, 10, 50])
def test_patches_that_are_few_or_no_square_come_back_as_they_are(count):
    patches = np.random.default_rng(0).normal(size=(2, count, 3))
    assert pool_grid(patches, 3) is patches


def test_how_common_a_text_is_goes_by_words_as_captions_have_them():
    known = Vocabulary({"man": 30, "hat": 10, "dogs": 5})
    assert known.share("a man's hat") == known.share("man hat")
    assert known.share("2 dogs") == known.share("dogs")
    assert known.share("dogs") < known.share("man") < known.share("the")
