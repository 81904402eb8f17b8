"""From a recipe to a trained checkpoint: read, encode, build, fit, save."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from sureshot.datasets import Item, Split
from sureshot.errors import SureshotError
from sureshot.files import write_text
from sureshot.metrics.recall import rsum
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.encoders import Encoder, load
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.device import device_for
from sureshot.models.encoders.experts import Experts, expert_sizes, presence, read_experts
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.load import load_system
from sureshot.models.tokens import Sizes
from sureshot.research.features import SplitFeatures, Told, extract, sampled_frames
from sureshot.research.scorer import Scorer
from sureshot.research.scores import recalls, similarity
from sureshot.research.training import correction
from sureshot.research.training.gather import rank
from sureshot.research.training.loop import Fitted, Progress, Save, check_new, fit
from sureshot.research.training.pairs import FeaturePairs
from sureshot.research.training.pixels import PixelPairs
from sureshot.research.training.recipe import Recipe
from sureshot.research.training.tuning import TunedClip
from sureshot.settings import to_values

RECIPE = "recipe.toml"  # in the folder of a run
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
        folder: of the run; see `sureshot.research.training.loop.fit`. The recipe is kept in it too.
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
    # What would be refused after all videos have been encoded is refused before.
    if not resume:
        check_new(folder)
    experts = [_experts(split) for split in splits]
    new_model(recipe, Sizes(encoder.dim, encoder.channels, expert_sizes(experts)), encoder)

    def features(split: Split, experts: Mapping[str, Experts]) -> SplitFeatures:
        frames = recipe.encoder.frames
        seen = extract(split, encoder, frames=frames, cache=cache, told=extracting)
        return replace(seen, experts=experts)

    val, sets = None, []
    if recipe.encoder.tuned:
        done = _tune(recipe, encoder, splits, held, folder, resume=resume, told=told, note=note)
    else:
        sets = [features(*part) for part in zip(splits, experts, strict=True)]
        val = None if held is None else features(held, _experts(held))
        done = train_on(recipe, encoder, sets, val, folder, resume=resume, told=told, note=note)
        used = [*sets, *([val] if val else [])]
        unread = [left_out(part) for part in used if part.unreadable]
        had = [_had(part) for part in used if part.experts]
        done = replace(done, notes=(*unread, *had, *done.notes))
    if rank() == 0:
        _keep(recipe, folder / RECIPE)
        if held is not None:
            found = _equipped(recipe, done, splits, held, val, sets)
            done = replace(done, notes=(*done.notes, *filter(None, [found])))
    return done


def _equipped(
    recipe: Recipe,
    done: Fitted,
    splits: Sequence[Split],
    held: Split,
    val: SplitFeatures | None,
    sets: Sequence[SplitFeatures],
) -> str:
    """Give the chosen checkpoint its bank; a tuned encoder reads the videos again."""
    seed = recipe.training.seed
    if val is not None:
        return correction.keep(done.folder, splits, val, sets, seed, recipe.encoder.device)
    scorer = Scorer.load(str(done.folder), recipe.encoder.device)
    with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
        seen = extract(held, scorer.encoder, frames=recipe.encoder.frames, cache=Path(cache))
    return correction.keep(done.folder, splits, seen, seed=seed, device=recipe.encoder.device)


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
    device = device_for(recipe.encoder.device)
    # A linear stem reads no patches, and padding them is most of a batch's work.
    pairs = FeaturePairs(sets, device, patches=recipe.stem.kind == "none")
    model = new_model(recipe, pairs.sizes, encoder).to(device)
    return fit(
        model,
        pairs,
        recipe.training,
        folder,
        save=_saving(recipe, model, encoder, [part.split for part in sets], note),
        validate=None if val is None else validation(model, val, recipe.training.metric, device),
        resume=resume,
        described=_described(recipe, encoder, [part.split for part in sets]),
        told=told,
    )


def _experts(split: Split) -> dict[str, Experts]:
    """What was extracted of the videos of a split beforehand."""
    if split.experts is None:
        return {}
    return read_experts(split.experts, [item.id for item in split.items])


def _tune(
    recipe: Recipe,
    encoder: Encoder,
    splits: Sequence[Split],
    held: Split | None,
    folder: Path,
    *,
    resume: bool,
    told: Callable[[Progress], None] | None,
    note: str,
) -> Fitted:
    """Train the encoder too, on frames that are decoded in every epoch."""
    if not isinstance(encoder, ClipEncoder):
        raise SureshotError(
            f"Setting encoder.tuned is true, and the encoder {encoder.name!r} cannot be trained; "
            "only CLIP and SigLIP can. Name one, or set it to false."
        )
    frames, training = recipe.encoder.frames, recipe.training
    model = new_model(recipe, Sizes(encoder.dim, encoder.channels), encoder).to(encoder.device)
    tuned = TunedClip(encoder, model.system)

    def read(item: Item) -> UInt8[np.ndarray, "frames height width 3"]:
        return sampled_frames(item, frames, encoder.frame_side)

    def validate(held: Split) -> float:
        # The encoder has the fingerprint of its first weights, so nothing of it may be kept.
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            val = extract(held, encoder, frames=frames, cache=Path(cache))
        return validation(model, val, training.metric, encoder.device)()

    with PixelPairs(splits, tuned, read, training.workers) as pairs:
        return fit(
            model,
            pairs,
            training,
            folder,
            save=_saving(recipe, model, encoder, splits, note, tuned.save),
            validate=None if held is None else lambda: validate(held),
            encoder=tuned,
            resume=resume,
            described=_described(recipe, encoder, splits),
            told=told,
        )


def _saving(
    recipe: Recipe,
    model: Model,
    encoder: Encoder,
    splits: Sequence[Split],
    note: str,
    tuned: Callable[[Path], None] | None = None,
) -> Save:
    """What writes a checkpoint after an epoch."""
    noted = EncoderNote(
        encoder.name,
        encoder.fingerprint,
        recipe.encoder.frames,
        encoder.dim,
        encoder.channels,
        dict(model.stem.sizes.experts),
    )
    names = ", ".join(split.title() for split in splits)

    def save(place: Path, epoch: int, score: float | None) -> None:
        scores: Mapping[str, float] = {} if score is None else {recipe.training.metric: score}
        Checkpoint(
            model,
            noted,
            recipe.system,
            recipe.to_dict(),
            {"epoch": float(epoch), **scores},
            f"Trained on {names}. {note}".strip(),
            tuned,
        ).save_pretrained(place)

    return save


def _had(part: SplitFeatures) -> str:
    """A line about the experts of a set."""
    return f"{part.split.title()}; experts: {presence(part.experts)}"


def left_out(part: SplitFeatures) -> str:
    """A line about the videos of a set that cannot be read."""
    (name, reason), *others = part.unreadable
    more = f", and {len(others)} more" if others else ""
    return f"{part.split.title()}; left out: {name} {reason}{more}"


def _keep(recipe: Recipe, path: Path) -> None:
    try:
        write_text(path, recipe.to_toml())
    except OSError as error:
        raise SureshotError(f"The recipe cannot be kept in {path}: {error}.") from None


def _described(recipe: Recipe, encoder: Encoder, splits: Sequence[Split]) -> Mapping[str, Any]:
    """What must not change within a run, besides its training settings."""
    return {
        "system": dict(recipe.system),
        "stem": to_values(recipe.stem),
        "encoder": encoder.fingerprint,
        "encoder.frames": recipe.encoder.frames,
        "train": [split.title() for split in splits],
    }


def new_model(recipe: Recipe, sizes: Sizes, encoder: Encoder) -> Model:
    """The model of a recipe with its first weights, which the seed decides, and CLIP.

    Args:
        recipe: its stem, system and seed are read.
        sizes: sizes of the features it will read.
        encoder: what gives them; of a CLIP, systems take over what their papers take from CLIP.

    Raises:
        SureshotError: a setting of the system is wrong, the stem leaves out what it reads, or CLIP
            has fewer text blocks than the system wants of it.
    """
    return fresh_model(recipe.stem, recipe.system, sizes, recipe.training.seed, encoder)


def fresh_model(
    config: StemConfig, settings: Mapping[str, object], sizes: Sizes, seed: int, encoder: Encoder
) -> Model:
    """A stem and a system with the first weights of a seed; the rest as for `new_model`."""
    torch.manual_seed(seed)
    stem = Stem(config, sizes)
    system = load_system(settings, stem.sizes)
    if config.kind == "linear" and system.reads_words and not config.words:
        raise SureshotError(
            f"stem.words is false, and {settings['name']} reads words; set it to true."
        )
    if sizes.experts and not system.reads_experts:
        names = ", ".join(name for name, _ in sizes.experts)
        raise SureshotError(
            f"{settings['name']} reads no experts such as {names}; leave train.experts out."
        )
    if config.kind == "none" and isinstance(encoder, ClipEncoder):
        text = encoder.text_weights()
        # CLIP's blocks fit where its texts are as wide as the space they share with frames.
        if text and text["final_layer_norm.weight"].shape == (stem.sizes.dim,):
            system.start_from_clip(text)
    return Model(stem, system)


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
