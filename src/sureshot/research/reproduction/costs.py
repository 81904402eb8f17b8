"""What a system costs on a CLIP: parameters, and multiply-adds by torch's own counter.

Neither needs data or weights: everything is on the ``meta`` device, where tensors have shapes only.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from sureshot.files import write_json, write_text
from sureshot.models.systems.load import load_system
from sureshot.models.tokens import Sizes, TextTokens, VideoTokens
from sureshot.research.reproduction.tables import Table

# Layers, width and heads of CLIP's text and vision networks, the vision network's patch, and the
# width of the space that they share.
_CLIPS: Mapping[str, tuple[tuple[int, int, int], tuple[int, int, int], int, int]] = {
    "ViT-B/32": ((12, 512, 8), (12, 768, 12), 32, 512),
    "ViT-B/16": ((12, 512, 8), (12, 768, 12), 16, 512),
    "ViT-L/14": ((12, 768, 12), (24, 1024, 16), 14, 768),
}
_SIDE = 224  # pixels


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


def write_costs(folder: Path, table: Table) -> list[Path]:
    """Write NAME.md and NAME.json of a table of costs, on CLIP ViT-B/16.

    Returns:
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    costs = {variant.name: measure_cost(variant.system) for variant in table.variants}
    numbers, page = folder / f"{table.name}.json", folder / f"{table.name}.md"
    write_json(numbers, {name: asdict(cost) for name, cost in costs.items()})
    lines = [
        f"# {table.title}",
        "",
        f"`sureshot reproduce {table.name}`; {table.protocol}; no data, no weights. Multiply-adds "
        "(a billion is 1 G) by torch's counter: of the code of a text, of a video, and of the "
        "score of a pair whose codes are there. Hours of training are not measured here.",
        "",
        "| | parameters | paper | text | video | pair |",
        "|---|---|---|---|---|---|",
    ]
    for variant in table.variants:
        cost = costs[variant.name]
        lines.append(
            f"| {variant.name} | {cost.parameters / 1e6:.2f} M | {variant.paper} M "
            f"| {cost.text / 1e9:.2f} G | {cost.video / 1e9:.2f} G | {cost.pair / 1e3:.1f} k |"
        )
    write_text(page, "\n".join([*lines, ""]))
    return [page, numbers]


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
