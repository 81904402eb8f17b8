"""Settings of a run: what goes together, and what is refused in one clear sentence."""

import pytest

from sureshot.errors import SureshotError
from sureshot.media.sampling_rule import Sampling
from sureshot.research.training.recipe import EncoderRecipe, TrainingConfig


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: EncoderRecipe(sampling="random"),
            'encoder.sampling is "random".*training.sampling',
        ),
        (lambda: EncoderRecipe(words=32), "encoder.words goes with an encoder that is trained too"),
        (lambda: EncoderRecipe(fps=0.0), "encoder.fps"),
        (lambda: TrainingConfig(keep_frames=True, sampling="phase"), "keep_frames.*sampling"),
        (lambda: TrainingConfig(keep_frames=True, augment="crop_flip"), "keep_frames.*augment"),
        (lambda: TrainingConfig(save_every=-1), "training.save_every"),
        (
            lambda: TrainingConfig(sampling="head").for_encoder(EncoderRecipe()),
            "about pixels.*frozen",
        ),
        (
            lambda: TrainingConfig(augment="crop_flip").for_encoder(EncoderRecipe()),
            "training.augment",
        ),
        (lambda: TrainingConfig(precision="float16").for_encoder(EncoderRecipe()), "bfloat16"),
        (
            lambda: TrainingConfig(keep_frames=True).for_encoder(EncoderRecipe()),
            "training.keep_frames",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(make, words):
    with pytest.raises(SureshotError, match=words):
        make()


def test_captions_follow_the_encoder_unless_they_are_named():
    frozen, tuned = EncoderRecipe(), EncoderRecipe(name="clip", tuned=True)
    assert TrainingConfig().for_encoder(frozen).captions == "one"
    assert TrainingConfig().for_encoder(tuned).captions == "all"
    assert TrainingConfig(captions="one").for_encoder(tuned).captions == "one"
    assert EncoderRecipe(sampling="head", fps=1.0).rule == Sampling("head", 1.0)
