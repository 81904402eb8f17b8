"""Starting from CLIP's text side: the blocks then compute what CLIP's own compute."""

import pytest
import torch
from transformers import CLIPTextConfig
from transformers.models.clip.modeling_clip import CLIPTextModel

from sureshot.errors import SureshotError
from sureshot.models.layers.transformer import SequentialTransformer, Transformer, start_from_clip
from tests.models.layers.weights import sample, shake


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


def sequential(dim=12, layers=2, positions=7, extra=0):
    return SequentialTransformer(Transformer(dim, layers, 2), dim, positions, extra=extra).eval()


def test_the_blocks_compute_what_clips_compute(clip):
    module = sequential()
    start_from_clip(module, clip.state_dict())
    frames = sample(2, 5, 12)
    expected = frames + clip.embeddings.position_embedding.weight[:5]
    for layer in clip.encoder.layers[:2]:
        out = layer(expected, attention_mask=None)
        expected = out[0] if isinstance(out, tuple) else out
    found = module(frames, torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(found, frames + expected, rtol=1e-4, atol=1e-5)


def test_every_weight_but_the_extra_tokens_is_clips(clip):
    module = sequential(extra=2)
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    start_from_clip(module, clip.state_dict())
    same = [
        name for name, weight in module.state_dict().items() if torch.equal(weight, before[name])
    ]
    assert same == ["extra.weight"]


def test_what_is_trained_afterwards_is_not_clips_own(clip):
    module = sequential()
    weights = clip.state_dict()
    start_from_clip(module, weights)
    untouched = weights["encoder.layers.0.mlp.fc1.weight"].clone()
    shake(module)
    assert torch.equal(weights["encoder.layers.0.mlp.fc1.weight"], untouched)
    assert all(weight.requires_grad for weight in module.parameters())


def test_positions_beyond_clips_last_stay_as_they_are(clip):
    module = sequential(positions=11)
    before = module.positions.weight.clone()
    start_from_clip(module, clip.state_dict())
    assert torch.equal(module.positions.weight[9:], before[9:])
    assert torch.equal(module.positions.weight[:9], clip.embeddings.position_embedding.weight)


def test_a_clip_that_does_not_fit_is_refused(clip):
    weights = clip.state_dict()
    with pytest.raises(SureshotError, match=r"no encoder\.layers\.3\.layer_norm1"):
        start_from_clip(sequential(layers=4), weights)
    with pytest.raises(SureshotError, match="CLIP's text width"):
        start_from_clip(sequential(dim=6), weights)
