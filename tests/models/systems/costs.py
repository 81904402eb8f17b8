"""What a system costs on a CLIP: parameters, and multiply-adds by torch's own counter.

Neither needs data or weights: everything is on the ``meta`` device, where tensors have shapes only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from sureshot.models.systems.load import load_system
from sureshot.models.tokens import Sizes, TextTokens, VideoTokens

# Layers, width and heads of CLIP's text and vision networks, the vision network's patch, and the
# width of the space that they share.
_CLIPS: Mapping[str, tuple[tuple[int, int, int], tuple[int, int, int], int, int]] = {
    "ViT-B/32": ((12, 512, 8), (12, 768, 12), 32, 512),
    "ViT-B/16": ((12, 512, 8), (12, 768, 12), 16, 512),
    "ViT-L/14": ((12, 768, 12), (24, 1024, 16), 14, 768),
}
_SIDE = 224  # pixels

# The rows of UATVR's table 2, on CLIP ViT-B/16 with four layers: name, settings, printed millions
# of parameters.
COST_ROWS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("CLIP4Clip", {"name": "clip4clip", "temporal": "transformer"}, 162.3),
    ("TI (token-wise)", {"name": "uatvr", "adaptation": False, "matching": "none"}, 162.8),
    ("w/ DSA", {"name": "uatvr", "matching": "none"}, 162.8),
    ("w/ DUA", {"name": "uatvr"}, 164.9),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a CLIP and a system on it cost.

    Attributes:
        parameters: numbers that are trained or would be, those of CLIP included.
        text: multiply-adds of the code of a text.
        video: multiply-adds of the code of a video.
        pair: multiply-adds of the score of a text and a video whose codes are there.
    """

    parameters: int
    text: int
    video: int
    pair: int


def measure_cost(
    settings: Mapping[str, Any], clip: str = "ViT-B/16", *, words: int = 32, frames: int = 12
) -> Cost:
    """What a system costs on a CLIP, as in table 2 of UATVR.

    Args:
        settings: settings of the system, with its ``name``.
        clip: ``ViT-B/32``, ``ViT-B/16`` or ``ViT-L/14``.
        words: tokens of a text.
        frames: frames of a video.
    """
    with torch.device("meta"), torch.no_grad():
        network = _network(clip)
        channels, dim = network.config.vision_config.hidden_size, network.config.projection_dim
        system = load_system(settings, Sizes(dim=dim, channels=channels)).eval()
        ids = torch.zeros(1, words, dtype=torch.long)
        pixels = torch.zeros(frames, 3, _SIDE, _SIDE)
        texts, text = _counted(lambda: system.texts(_texts(network, ids)))
        videos, video = _counted(lambda: system.videos(_videos(network, pixels)))
        _, pair = _counted(lambda: system.similarity(texts, videos))
    own = sum(weight.numel() for weight in system.parameters() if weight.requires_grad)
    shared = 1 if system.shares_scale else 0  # one logit scale for both
    return Cost(
        parameters=sum(w.numel() for w in network.parameters()) + own - shared,
        text=text,
        video=video,
        pair=pair,
    )


def _network(clip: str) -> Any:
    """A CLIP of this size, without weights."""
    from transformers import CLIPConfig, CLIPModel

    text, vision, patch, shared = _CLIPS[clip]
    sizes = [
        {
            "num_hidden_layers": layers,
            "hidden_size": width,
            "num_attention_heads": heads,
            "intermediate_size": 4 * width,
            "projection_dim": shared,
        }
        for layers, width, heads in (text, vision)
    ]
    config = CLIPConfig(
        text_config=sizes[0],
        vision_config={**sizes[1], "patch_size": patch},
        projection_dim=shared,
    )
    return CLIPModel(config).eval()


def _texts(network: Any, ids: Tensor) -> TextTokens:
    seen = network.text_model(input_ids=ids)
    words = network.text_projection(seen.last_hidden_state)
    sentence = network.text_projection(seen.pooler_output)
    return TextTokens(sentence, words, torch.ones_like(ids, dtype=torch.bool))


def _videos(network: Any, pixels: Tensor) -> VideoTokens:
    seen = network.vision_model(pixel_values=pixels)
    frames = network.visual_projection(seen.pooler_output)[None]
    return VideoTokens(
        frames,
        frames.new_zeros(1, len(pixels), 0, frames.shape[2]),
        seen.pooler_output[None],
        torch.ones(1, len(pixels), dtype=torch.bool),
    )


def _counted(compute: Any) -> tuple[Any, int]:
    """A result, and the multiply-adds it took: half the counter's operations."""
    with FlopCounterMode(display=False) as counter:
        made = compute()
    return made, counter.get_total_flops() // 2
