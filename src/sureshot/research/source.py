"""The split that a model is measured on, and what the model was trained on beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sureshot.datasets import Split, check_disjoint
from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.models.encoders.experts import Experts, presence, read_experts
from sureshot.models.scorer import Scorer
from sureshot.places import expand
from sureshot.research.corrected_scores import CANDIDATES
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.listener import Listener, Notes
from sureshot.research.training.recipe import Recipe, SplitRecipe

BANKED = frozenset({"qb_norm", "nnn", CANDIDATES})  # corrections that look at training captions
_THEY_LOOK = f"{', '.join(sorted(BANKED))} look at training captions"


def source_of(
    data: str,
    root: str | Path,
    split: str,
    protocol: str | None = None,
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
    experts: str | Path | None = None,
) -> SplitRecipe:
    """Where a split comes from, its paths as they were typed."""
    return SplitRecipe(
        dataset=data,
        root=Path(root),
        split=split,
        protocol=protocol,
        videos=None if videos is None else Path(videos),
        ids=None if ids is None else Path(ids),
        label=label,
        experts=None if experts is None else expand(experts),
    )


@dataclass(frozen=True, slots=True)
class ReadSplit:
    """A split that was read and not encoded yet.

    Attributes:
        split: its videos and captions.
        experts: features extracted of the videos beforehand, by the id of the video.
    """

    split: Split
    experts: Mapping[str, Experts]


def read_source(source: SplitRecipe, listener: Listener) -> ReadSplit:
    """Read a split and its experts; the listener hears what was found and what was not there.

    Raises:
        SureshotError: see `sureshot.datasets.load_split` and
            `sureshot.models.encoders.experts.read_experts`.
    """
    split = source.load()
    listener.line(split.summary())
    experts = read_experts(split.experts, [item.id for item in split.items])
    if experts:
        listener.line(f"experts: {presence(experts)}")
    return ReadSplit(split=split, experts=experts)


def encode(
    source: ReadSplit,
    scorer: Scorer,
    notes: Notes,
    *,
    frames: int | None = None,
    cache: Path | None = None,
) -> SplitFeatures:
    """The features of a split, as a model reads them.

    Args:
        source: the split and its experts.
        scorer: the model, whose encoder is used.
        notes: hears how far the work is, and which videos cannot be read.
        frames: frames sampled from each video; None is as many as the model was trained with.
        cache: folder of encoded features; None is one in the user's cache folder.

    Raises:
        SureshotError: see `sureshot.research.features.extract`.
    """
    count = frames or scorer.frames
    features = extract(
        source.split,
        scorer.encoder,
        frames=count,
        sampling=scorer.sampling,
        whole_grid=scorer.model is not None and scorer.model.system.whole_grid,
        cache=cache,
        told=notes.encoded,
    )
    for name, reason in features.unreadable:
        notes.line(f"left out: {name} {reason}")
    return replace(features, experts=source.experts)


def check_experts(scorer: Scorer, folder: Path | None) -> None:
    """Refuse experts that nothing reads, and a model that would have to do without them.

    Raises:
        ArgumentError: the folder is missing, or is one too many.
    """
    if scorer.experts and folder is None:
        raise ArgumentError(
            f"{scorer.name} was trained on the experts {', '.join(scorer.experts)}; name the "
            f"folder that has them with {option('experts')}."
        )
    if folder is not None and not scorer.experts:
        raise ArgumentError(f"{scorer.name} reads no experts; leave out {option('experts')}.")


def training_splits(scorer: Scorer) -> list[Split]:
    """The sets that a model was trained on, read again; none where they are not known.

    Raises:
        SureshotError: they are not there any more.
    """
    return Recipe.from_dict(scorer.recipe, Path.cwd()).splits()[0] if scorer.recipe else []


def training_captions(scorer: Scorer, tested: Split, count: int) -> Split:
    """Captions of the sets a model was trained on, none of them of a video that is tested.

    Args:
        scorer: the model.
        tested: the split it is tested on.
        count: captions at most; they are drawn, always the same ones.

    Raises:
        ArgumentError: the model does not know what it was trained on.
        SureshotError: that is not there any more, or all of it is tested.
    """
    splits = training_splits(scorer)
    if not splits:
        raise ArgumentError(f"{_THEY_LOOK}, and {scorer.name} does not know its own.")
    names = {item.id for item in tested.items}
    captions = [
        caption
        for split in splits
        for caption in split.captions
        if split.items[caption.video].id not in names
    ]
    if not captions:
        raise SureshotError(
            f"{_THEY_LOOK}, and all those of {scorer.name} are of videos in "
            f"{tested.title()}. Leave them out."
        )
    drawn = np.random.default_rng(0).permutation(len(captions))[:count]
    chosen = tuple(replace(captions[row], video=0) for row in sorted(drawn))
    return Split(
        dataset=splits[0].dataset,
        name="train",
        protocol=splits[0].protocol,
        items=(),
        captions=chosen,
    )


def warn_of_shared(scorer: Scorer, tested: Split, listener: Listener) -> None:
    """Say which videos are tested that were trained on, if the training data are at hand."""
    try:
        splits = training_splits(scorer)
    except SureshotError:
        return
    for split in splits:
        try:
            check_disjoint(split, tested)
        except SureshotError as error:
            listener.line(f"! {error}")
