"""The transformer: against one written with loops, and against CLIP4Clip's and UATVR's numbers."""

import pytest
import torch
from transformers import CLIPTextConfig
from transformers.models.clip.modeling_clip import CLIPTextModel

from sureshot.errors import SureshotError
from sureshot.models.layers.gaussian import LocalAggregation
from sureshot.models.layers.pooling import mean_of_units
from sureshot.models.layers.transformer import (
    SequentialTransformer,
    Transformer,
    draw_as_torch,
    start_from_clip,
)
from tests.models.layers.weights import blocks, load, sample, shake, tensor

MASK = torch.tensor(
    [[True] * 5, [True, True, False, False, True], [False, False, True] + [False] * 2]
)


def sequential(extra=0, positions=9, seed=0):
    module = SequentialTransformer(Transformer(6, 2, 2), 6, positions, extra=extra)
    shake(module, seed)
    return module.eval()


@pytest.mark.parametrize("extra", [0, 2])
def test_padding_has_no_influence_and_comes_back_as_zero(extra):
    module = sequential(extra)
    tokens = sample(3, 5, 6)
    spoilt = tokens.masked_fill(~MASK[..., None], torch.nan)
    seen = module(spoilt, MASK)
    assert torch.equal(seen, module(tokens, MASK))
    assert seen[:, :5][~MASK].count_nonzero() == 0
    assert not seen[:, :5][MASK].eq(0).any()


def test_extra_tokens_are_looked_at_and_covered_by_the_mask():
    module = sequential(2)
    tokens = sample(3, 5, 6)
    assert module.cover(MASK).tolist() == [[*row, True, True] for row in MASK.tolist()]
    assert sequential().cover(MASK).tolist() == MASK.tolist()
    before = module(tokens, MASK)
    with torch.no_grad():
        module.extra.weight *= -1
    assert not torch.isclose(module(tokens, MASK)[:, :5][MASK], before[:, :5][MASK]).all(1).any()


def test_a_sequence_longer_than_the_positions_is_refused():
    module = sequential(positions=4)
    assert module(sample(1, 4, 6), torch.ones(1, 4, dtype=torch.bool)).shape == (1, 4, 6)
    with pytest.raises(SureshotError, match="5 tokens is longer than the 4 positions"):
        module(sample(3, 5, 6), MASK)


def released(theirs, width):
    """The released transformer's shape, and the names of its weights."""
    names = {}
    for i in range(theirs["layers"]):
        names |= blocks(f"transformer.blocks.{i}", f"transformerClip.resblocks.{i}")
    return Transformer(width, theirs["layers"], theirs["heads"], eps=1e-12), names


def test_clip4clip(golden):
    told = golden("clip4clip_seqtransf")
    longest, width = tensor(told["weights"]["frame_position_embeddings.weight"]).shape
    transformer, names = released(told["config"], width)
    module = SequentialTransformer(transformer, width, longest)
    load(module, told["weights"], names | {"positions": "frame_position_embeddings"})
    frames, mask = tensor(told["inputs"]["video"]), tensor(told["inputs"]["video_mask"]).bool()
    text = torch.nn.functional.normalize(tensor(told["inputs"]["text"]), dim=-1)
    seen = module(frames, mask)
    expected = tensor(told["outputs"]["encoder_output"]) + frames
    torch.testing.assert_close(seen[mask], expected[mask], rtol=1e-6, atol=1e-8)
    logits = 100 * text @ mean_of_units(seen, mask).T
    torch.testing.assert_close(logits, tensor(told["outputs"]["logits"]), rtol=1e-6, atol=1e-7)
    full = torch.ones_like(mask)
    logits = 100 * text @ mean_of_units(module(frames, full), full).T
    torch.testing.assert_close(
        logits, tensor(told["outputs"]["logits_all_valid"]), rtol=1e-6, atol=1e-7
    )


def test_torchs_own_draw_is_wide_in_an_attention_and_has_biases_elsewhere() -> None:
    torch.manual_seed(0)
    made = LocalAggregation(64)
    draw_as_torch(made)
    attention = made.block.queries_keys_values
    assert attention.weight.std().item() == pytest.approx((2 / (64 + 192)) ** 0.5, rel=0.05)
    assert not attention.bias.any() and not made.block.out.bias.any()
    assert made.mlp[0].bias.std() > 0.05


@pytest.fixture(scope="module")
def clip():
    """CLIP's text model with three small blocks of random weights."""
    settings = CLIPTextConfig(
        vocab_size=10,
        hidden_size=12,
        intermediate_size=48,
        projection_dim=12,
        num_hidden_layers=3,
        num_attention_heads=2,
        max_position_embeddings=9,
        hidden_act="quick_gelu",
    )
    model = CLIPTextModel(settings).eval().requires_grad_(False)
    shake(model)
    return getattr(model, "text_model", model)


def sequential_from_clip(dim=12, layers=2, positions=7, extra=0):
    return SequentialTransformer(Transformer(dim, layers, 2), dim, positions, extra=extra).eval()


def test_the_blocks_compute_what_clips_compute(clip):
    module = sequential_from_clip()
    start_from_clip(module, clip.state_dict())
    frames = sample(2, 5, 12)
    expected = frames + clip.embeddings.position_embedding.weight[:5]
    for layer in clip.encoder.layers[:2]:
        out = layer(expected, attention_mask=None)
        expected = out[0] if isinstance(out, tuple) else out
    found = module(frames, torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(found, frames + expected, rtol=1e-4, atol=1e-5)


def test_positions_beyond_clips_last_stay_as_they_are(clip):
    module = sequential_from_clip(positions=11)
    before = module.positions.weight.clone()
    start_from_clip(module, clip.state_dict())
    assert torch.equal(module.positions.weight[9:], before[9:])
    assert torch.equal(module.positions.weight[:9], clip.embeddings.position_embedding.weight)


def test_a_clip_that_does_not_fit_is_refused(clip):
    weights = clip.state_dict()
    with pytest.raises(SureshotError, match=r"no encoder\.layers\.3\.layer_norm1"):
        start_from_clip(sequential_from_clip(layers=4), weights)
    with pytest.raises(SureshotError, match="CLIP's text width"):
        start_from_clip(sequential_from_clip(dim=6), weights)
    del weights["embeddings.position_embedding.weight"]
    with pytest.raises(SureshotError, match=r"no embeddings\.position.*; choose another CLIP\."):
        start_from_clip(sequential_from_clip(), weights)
