"""From a recipe to a trained checkpoint: read, encode, build, fit, save."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from sureshot.checkpoint import Checkpoint, EncoderNote
from sureshot.datasets import Split
from sureshot.encoders import Encoder, load
from sureshot.errors import SureshotError
from sureshot.evaluation import recalls, similarity
from sureshot.features import SplitFeatures, Told, extract
from sureshot.metrics.recall import rsum
from sureshot.settings import plain
from sureshot.systems.load import load_system
from sureshot.systems.model import Model
from sureshot.systems.stem import Stem
from sureshot.systems.tokens import Sizes
from sureshot.training.loop import Fitted, Progress, fit
from sureshot.training.pairs import FeaturePairs
from sureshot.training.recipe import Recipe

_CAPTIONS = 2000  # of the validation set that an epoch is judged by, spread evenly over its videos


def train(
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = False,
    cache: Path | None = None,
    told: Callable[[Progress], None] | None = None,
    extracting: Told | None = None,
    note: str = "",
) -> Fitted:
    """Train by a recipe.

    Args:
        recipe: what and how.
        folder: of the run; see `sureshot.training.loop.fit`.
        resume: go on with the run in the folder, if there is one.
        cache: folder of the features; None is one in the user's cache folder.
        told: called after each step.
        extracting: called while features are encoded.
        note: sentences for the card of the checkpoint.

    Raises:
        SureshotError: anything wrong with the recipe, the data, or a number that is not finite.
    """
    encoder = load(recipe.encoder.name, recipe.encoder.device)
    splits, held = recipe.splits()

    def features(split: Split) -> SplitFeatures:
        return extract(split, encoder, frames=recipe.encoder.frames, cache=cache, told=extracting)

    sets = [features(split) for split in splits]
    val = None if held is None else features(held)
    return train_on(recipe, encoder, sets, val, folder, resume=resume, told=told, note=note)


def train_on(
    recipe: Recipe,
    encoder: Encoder,
    sets: Sequence[SplitFeatures],
    val: SplitFeatures | None,
    folder: Path,
    *,
    resume: bool = False,
    told: Callable[[Progress], None] | None = None,
    note: str = "",
) -> Fitted:
    """Train by a recipe on features that are there already.

    Args:
        recipe: how; its data sets are not read.
        encoder: that gave the features.
        sets: to train on.
        val: to choose a checkpoint on, or None.
        folder: of the run.
        resume: go on with the run in the folder, if there is one.
        told: called after each step.
        note: sentences for the card of the checkpoint.
    """
    if recipe.encoder.tuned:
        raise SureshotError("encoder.tuned needs pixels, not features; see `train`.")
    device = recipe.encoder.device or ("cuda" if torch.cuda.is_available() else "cpu")
    # A linear stem reads no patches, and padding them is most of a batch's work.
    pairs = FeaturePairs(sets, device, patches=recipe.stem.kind == "none")
    model = new_model(recipe, pairs.sizes).to(device)
    noted = EncoderNote(encoder.name, encoder.fingerprint, recipe.encoder.frames, *pairs.sizes)
    names = ", ".join(part.split.title() for part in sets)

    def save(place: Path, epoch: int, score: float | None) -> None:
        scores: Mapping[str, float] = {} if score is None else {recipe.training.metric: score}
        Checkpoint(
            model,
            noted,
            recipe.system,
            recipe.to_dict(),
            {"epoch": epoch, **scores},
            f"Trained on {names}. {note}".strip(),
        ).save_pretrained(place)

    return fit(
        model,
        pairs,
        recipe.training,
        folder,
        save=save,
        validate=None if val is None else validation(model, val, recipe.training.metric, device),
        resume=resume,
        described={
            "system": dict(recipe.system),
            "stem": plain(recipe.stem),
            "encoder": encoder.fingerprint,
        },
        told=told,
    )


def new_model(recipe: Recipe, sizes: Sizes) -> Model:
    """The model of a recipe with its first weights, which the seed decides."""
    torch.manual_seed(recipe.training.seed)
    stem = Stem(recipe.stem, sizes)
    return Model(stem, load_system(recipe.system, stem.width))


def validation(
    model: Model, val: SplitFeatures, metric: str, device: str = "cpu"
) -> Callable[[], float]:
    """What gives the score of a model on a validation set, in percent, higher is better."""
    each = max(1, _CAPTIONS // len(val.videos))
    chosen = sorted(row for own in val.split.by_video() for row in own[:each])

    def score() -> float:
        scores = similarity(model, val, captions=chosen, device=device)
        texts, videos = recalls(scores, val.split.owner()[chosen])
        return texts.r1 if metric == "r1" else rsum(texts, videos)

    return score
