"""From a recipe to a trained checkpoint: read, encode, build, fit, save."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from sureshot.datasets import Split
from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.metrics.recall import rsum
from sureshot.models.checkpoint import Checkpoint, EncoderNote
from sureshot.models.comparing import Trained
from sureshot.models.encoders import Encoder, load_encoder
from sureshot.models.encoders.clip import ClipEncoder
from sureshot.models.encoders.device import device_for
from sureshot.models.encoders.experts import Experts, expert_sizes, presence, read_experts
from sureshot.models.loading import load
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.systems.load import load_system
from sureshot.models.tokens import Sizes
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.listener import Listener, Notes, Silence
from sureshot.research.scores import recalls, similarity
from sureshot.research.training import correction
from sureshot.research.training.gather import rank, world
from sureshot.research.training.launch import from_torchrun
from sureshot.research.training.loop import Fitted, check_new
from sureshot.research.training.recipe import Recipe, RecipeFile
from sureshot.research.training.task import SaveEncoder, Task, fit_features, fit_pixels
from sureshot.research.training.truth import told_truth
from sureshot.settings import override, to_values

RECIPE = "recipe.toml"  # in the folder of a run
_CAPTIONS = 2000  # of the validation set that an epoch is judged by, spread evenly over its videos
_R = TypeVar("_R", bound=RecipeFile)


def train(
    recipe: str | Path | Recipe,
    *,
    to: str | Path | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    cache: Path | None = None,
    listener: Listener | None = None,
    note: str = "",
) -> Fitted:
    """Train a system by a recipe, in one process or in each of those that torchrun started.

    Args:
        recipe: what is trained and how: a TOML file, or its value.
        to: folder of the run, see `sureshot.research.training.loop.fit`; the recipe is kept in it
            too. None is ``runs/NAME`` for a file of this name.
        settings: settings that replace those of the recipe, each as ``name.of.setting=value``.
        resume: go on with the run in the folder, if there is one.
        cache: folder of encoded features; None is one in the user's cache folder.
        listener: hears what was read and how far the run is.
        note: sentences for the card of the checkpoint.

    Raises:
        SureshotError: anything wrong with the recipe, the data, or a number that is not finite.
    """
    read, folder = opened(Recipe, recipe, to, settings)
    with from_torchrun():
        notes = first_notes(listener)
        splits, held = read.splits()
        for split in [*splits, *([] if held is None else [held])]:
            notes.line(split.summary())
        fitted = _train(read, splits, held, folder, notes, resume=resume, cache=cache, note=note)
        return replace(fitted, notes=tuple(notes.lines))


def opened(
    kind: type[_R], recipe: str | Path | _R, to: str | Path | None, settings: Sequence[str]
) -> tuple[_R, Path]:
    """A recipe with its settings replaced, and the folder of its run; arguments as of `train`.

    Raises:
        ArgumentError: the recipe is a value, and no folder is named.
        SureshotError: the recipe cannot be read, or a setting is wrong.
    """
    if isinstance(recipe, str | Path):
        path = Path(recipe)
        return kind.load(path, settings), Path("runs") / path.stem if to is None else Path(to)
    if to is None:
        raise ArgumentError(f"A recipe that is no file has no name; name a folder: {option('to')}.")
    values = recipe.to_dict()
    for assignment in settings:
        values = override(values, assignment)
    return kind.from_dict(values, Path.cwd()), Path(to)


def first_notes(listener: Listener | None) -> Notes:
    """What keeps the notes of a run; one process speaks for all, the others to nobody."""
    return Notes(listener if listener is not None and rank() == 0 else Silence())


def _train(
    recipe: Recipe,
    splits: Sequence[Split],
    held: Split | None,
    folder: Path,
    notes: Notes,
    *,
    resume: bool,
    cache: Path | None,
    note: str,
) -> Fitted:
    encoder = load_encoder(recipe.encoder.name, recipe.encoder.device)
    # What would be refused after all videos have been encoded is refused before.
    if not resume:
        check_new(folder)
    experts = [_experts(split, notes) for split in splits]
    sizes = Sizes(dim=encoder.dim, channels=encoder.channels, experts=expert_sizes(experts))
    if recipe.encoder.tuned:
        task = retrieval_task(recipe, encoder, sizes, splits, note)
        fitted = fit_pixels(task, splits, held, folder, notes, resume=resume)
        val, sets = None, []
    else:
        whole = new_model(recipe, sizes, encoder).system.whole_grid

        def features(split: Split, experts: Mapping[str, Experts]) -> SplitFeatures:
            count = recipe.encoder.frames
            seen = extract(
                split,
                encoder,
                frames=count,
                sampling=recipe.encoder.rule,
                whole_grid=whole,
                cache=cache,
                told=notes.encoded,
            )
            note_unreadable(seen, notes)
            return replace(seen, experts=experts)

        sets = [features(*part) for part in zip(splits, experts, strict=True)]
        val = None if held is None else features(held, _experts(held, notes))
        fitted = train_on(
            recipe, encoder, sets, val, folder, resume=resume, listener=notes, note=note
        )
    for line in fitted.notes:
        notes.line(line)
    if rank() == 0:
        recipe.save(folder / RECIPE)
        if held is not None:
            _equip(recipe, fitted, splits, held, val, sets, notes)
    return fitted


def _equip(
    recipe: Recipe,
    fitted: Fitted,
    splits: Sequence[Split],
    held: Split,
    val: SplitFeatures | None,
    sets: Sequence[SplitFeatures],
    notes: Notes,
) -> None:
    """Give the chosen checkpoint its bank; a tuned encoder reads the videos again."""
    seed, device = recipe.training.seed, recipe.encoder.device
    if val is None:
        scorer = load(fitted.folder, device)
        with tempfile.TemporaryDirectory(prefix="sureshot-") as cache:
            val = extract(
                held,
                scorer.encoder,
                frames=recipe.encoder.frames,
                sampling=recipe.encoder.rule,
                whole_grid=scorer.model is not None and scorer.model.system.whole_grid,
                cache=Path(cache),
            )
    found = correction.keep(fitted.folder, splits, val, sets, seed, device)
    if found:
        notes.line(found)


def train_on(
    recipe: Recipe,
    encoder: Encoder,
    sets: Sequence[SplitFeatures],
    val: SplitFeatures | None,
    folder: Path,
    *,
    resume: bool = False,
    listener: Listener | None = None,
    note: str = "",
) -> Fitted:
    """Train by a recipe on features that are there already.

    Args:
        recipe: how; its data sets are not read.
        encoder: the encoder that gave the features.
        sets: features to train on.
        val: features to choose a checkpoint on, or None.
        folder: folder of the run.
        resume: go on with the run in the folder, if there is one.
        listener: hears how many steps are done.
        note: sentences for the card of the checkpoint.

    Raises:
        SureshotError: the recipe wants the encoder trained too, a setting is wrong, or a number is
            not finite.
    """
    if recipe.encoder.tuned:
        raise SureshotError("encoder.tuned needs pixels, not features; see `train`.")
    experts = expert_sizes(part.experts for part in sets)
    sizes = Sizes(dim=encoder.dim, channels=encoder.channels, experts=experts)
    task = retrieval_task(recipe, encoder, sizes, [part.split for part in sets], note)
    return fit_features(task, sets, val, folder, listener or Silence(), resume=resume)


def retrieval_task(
    recipe: Recipe, encoder: Encoder, sizes: Sizes, splits: Sequence[Split], note: str = ""
) -> Task:
    """To find videos by their texts.

    Args:
        recipe: how; its data sets are not read.
        encoder: what texts and videos go through first.
        sizes: sizes of what the encoder gives.
        splits: the sets that are trained on, for the card.
        note: more sentences for the card.

    Raises:
        SureshotError: a setting of the system is wrong, or the stem leaves out what it reads.
    """
    device = device_for(recipe.encoder.device)
    model = new_model(recipe, sizes, encoder).to(device)
    if model.system.reads_truth and (recipe.training.micro_batch or world() > 1):
        raise SureshotError(
            "An oracle is told the truth about a whole batch; leave out training.micro_batch, and "
            "train in one process."
        )
    titles = [split.title() for split in splits]
    noted = EncoderNote(
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        frames=recipe.encoder.frames,
        dim=encoder.dim,
        channels=encoder.channels,
        experts=dict(sizes.experts),
        sampling=recipe.encoder.sampling,
        fps=recipe.encoder.fps,
    )

    def write(place: Path, scores: Mapping[str, float], tuned: SaveEncoder | None) -> None:
        Checkpoint(
            model=model,
            encoder=noted,
            system=recipe.system,
            recipe=recipe.to_dict(),
            scores=scores,
            note=f"Trained on {', '.join(titles)}. {note}".strip(),
            tuned=tuned,
        ).save_pretrained(place)

    return Task(
        model=model,
        device=device,
        encoder=encoder,
        frames=recipe.encoder.frames,
        sampling=recipe.encoder.rule,
        words=recipe.encoder.words,
        training=recipe.training,
        metric=recipe.training.metric,
        system=model.system,
        score=lambda val: validation_score(model, val, recipe.training.metric, device),
        write=write,
        labels=told_truth(splits, device) if model.system.reads_truth else None,
        fixed={
            "system": dict(recipe.system),
            "stem": to_values(recipe.stem),
            "encoder": encoder.fingerprint,
            "encoder.frames": recipe.encoder.frames,
            "encoder.sampling": recipe.encoder.sampling,
            "encoder.fps": recipe.encoder.fps,
            "encoder.words": recipe.encoder.words,
            "train": titles,
        },
    )


def _experts(split: Split, notes: Notes) -> dict[str, Experts]:
    """What was extracted of the videos of a split beforehand."""
    experts = read_experts(split.experts, [item.id for item in split.items])
    if experts:
        notes.line(f"{split.title()}; experts: {presence(experts)}")
    return experts


def note_unreadable(part: SplitFeatures, notes: Notes) -> None:
    """A line about the videos of a set that cannot be read, if there are some."""
    if part.unreadable:
        (name, reason), *others = part.unreadable
        more = f", and {len(others)} more" if others else ""
        notes.line(f"{part.split.title()}; left out: {name} {reason}{more}")


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


def validation_score(model: Model, val: SplitFeatures, metric: str, device: str = "cpu") -> float:
    """The score of a model on a validation set, in percent, higher is better."""
    each = max(1, _CAPTIONS // len(val.videos))
    chosen = sorted(row for own in val.split.by_video() for row in own[:each])
    scores = similarity(Trained(model, device), val, captions=chosen)
    texts, videos = recalls(scores, val.split.owner()[chosen])
    return texts.r1 if metric == "r1" else rsum(texts, videos)
