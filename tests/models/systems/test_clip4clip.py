"""CLIP4Clip: frames' mean, or a transformer before it."""

import pytest
import torch

from sureshot.models.layers.pooling import mean_of_units
from sureshot.models.systems.base import TextTokens, VideoTokens, rows
from sureshot.models.systems.clip4clip import Clip4Clip, Clip4ClipConfig
from tests.models.layers.weights import tensor
from tests.models.systems.every import WIDTH, videos


@pytest.mark.parametrize(("scale", "name"), [(100.0, "loss_square"), (5.0, "loss_square_scale5")])
def test_scores_and_losses_are_those_of_the_papers_code(golden, scale: float, name: str) -> None:
    told = golden("clip4clip_meanp")
    sentence, frames, mask = (
        tensor(told["inputs"][key]) for key in ("text", "video", "video_mask")
    )
    made = Clip4Clip(Clip4ClipConfig(scale=scale), sentence.shape[1]).double()
    words = TextTokens(sentence, sentence[:, None], torch.ones(len(sentence), 1).bool())
    none = frames.new_zeros(*frames.shape[:2], 0, sentence.shape[1])
    films = VideoTokens(frames, none, frames[..., :0], mask.bool())
    codes = made.texts(words), made.videos(films)
    logits = tensor(told["outputs"]["logits"])
    torch.testing.assert_close(100 * made.similarity(*codes), logits, rtol=1e-6, atol=1e-6)
    loss = made.losses(codes[0], rows(codes[1], slice(len(sentence))))["similarity"]
    assert loss.item() == pytest.approx(told["outputs"][name], rel=1e-5, abs=1e-8)


def test_the_transformer_comes_before_the_mean() -> None:
    torch.manual_seed(0)
    made, films = Clip4Clip(Clip4ClipConfig("transformer", layers=2), WIDTH), videos(3)
    seen = made.temporal(films.frames, films.mask)
    assert torch.equal(made.videos(films)["video"], mean_of_units(seen, films.mask))
