"""A recipe: everything a training run depends on, in one TOML file such as those in ``recipes``.

Relative paths start at the file, and ``$NAME`` in one is a variable of the environment. A finished
run keeps its recipe with all defaults and paths filled in, and that file trains the same model
again.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np

from sureshot.datasets import Split, check_disjoint, load_split
from sureshot.errors import SureshotError, reason_of
from sureshot.files import write_text
from sureshot.media.sampling_rule import Sampling, SamplingKind
from sureshot.models.encoders import BUILT_IN
from sureshot.models.model import StemConfig
from sureshot.paths import is_folder_at
from sureshot.research.training.augment import Augment
from sureshot.research.training.data import Captions
from sureshot.research.training.optim import Optimizer
from sureshot.settings import Ranged, Within, build, override, read_toml_values, to_toml, to_values
from sureshot.text import plain


@dataclass(frozen=True, slots=True)
class EncoderRecipe(Ranged):
    """What encodes texts and frames.

    Attributes:
        sampling: which frames: ``uniform``, ``spread``, ``segments`` or ``head``, see
            `sureshot.media.sampling_rule.Sampling`.
        words: tokens of a text that are read, special ones included; None reads as many as the
            encoder can. Only an encoder that is trained too can be held to fewer.
        tuned: whether the encoder is trained too, end to end: CLIP, SigLIP, ``small``, or the upper
            ends of ``bundled``.
    """

    key: ClassVar[str] = "encoder"

    name: str = "bundled"  # what `sureshot.models.encoders.load_encoder` takes
    frames: Annotated[int, Within(1, 64)] = 12  # of each video
    sampling: SamplingKind = "uniform"
    fps: Annotated[float | None, Within(0.001, 1000.0)] = None  # sampled from; None is all
    words: Annotated[int | None, Within(3, 1000)] = None
    device: str | None = None  # of torch; None takes a GPU where there is one
    tuned: bool = False

    def __post_init__(self) -> None:
        Ranged.__post_init__(self)
        if self.rule.is_drawn:
            raise SureshotError(
                f'Setting encoder.sampling is "{self.sampling}", which takes other frames each '
                f'time. What is tested must not change: set it to "spread" or "segments", and '
                f'training.sampling to "{self.sampling}".'
            )
        if self.words is not None and not self.tuned:
            raise SureshotError(
                "Setting encoder.words goes with an encoder that is trained too; set encoder.tuned "
                "to true, or leave words out."
            )

    @property
    def rule(self) -> Sampling:
        """Which frames of a video are looked at."""
        return Sampling(self.sampling, self.fps)


@dataclass(frozen=True, slots=True)
class TrainingConfig(Ranged):
    """How weights are fitted.

    Attributes:
        captions: ``one`` random caption of each video an epoch, or ``all`` of them; None is all
            with an encoder that is trained too, as in the papers, and one otherwise.
        uncertainty_rate: learning rate of what DVTR learns the uncertainty of pairs with; None is
            ``rate``.
        optimizer: ``adamw``; ``bert_adam`` as in the codes of CLIP4Clip, UATVR and DUQ, or
            ``hugging_face`` as in those of X-Pool and T-MASS, each with its own schedule.
        micro_batch: pairs embedded with a graph at once, for a batch that does not fit into memory.
        precision: number format of the networks in training; weights are 32-bit. ``float16`` is
            that of a tuned encoder alone, as in the papers' codes, with gradients scaled to fit it.
        keep: the checkpoint with the ``best`` score on the validation set or the ``last`` one;
            None is the best where there is a validation set.
        sampling: which frames a tuned encoder is trained on, such as ``random`` or ``phase``; None
            is those of ``encoder.sampling``.
        augment: how frames are changed for a tuned encoder: not at all; ``crop_flip``, one random
            crop and flip a video (X-Pool, T-MASS); or ``rand_augment``, four random changes a video
            (DUQ).
        keep_frames: whether the sampled frames of a tuned encoder are kept as JPEG in the folder of
            the run, before ``augment`` changes them, so that each video is decoded once and not for
            every caption of every epoch; once per epoch where ``sampling`` draws which frames.
    """

    key: ClassVar[str] = "training"

    epochs: Annotated[int, Within(1, 100_000)] = 10
    batch: Annotated[int, Within(2, 1_000_000)] = 128  # most pairs, over all processes
    captions: Captions | None = None
    rate: Annotated[float, Within(0.0, 10.0)] = 1e-4  # of stem and system
    encoder_rate: Annotated[float, Within(0.0, 10.0)] = 1e-7  # of a tuned encoder
    uncertainty_rate: Annotated[float | None, Within(0.0, 10.0)] = None
    optimizer: Optimizer = "adamw"
    weight_decay: Annotated[float, Within(0.0, 10.0)] = 0.2  # the optimiser decides of which
    warmup: Annotated[float, Within(0.0, 1.0)] = 0.1  # share of all steps in which the rate rises
    clip: Annotated[float, Within(0.0, 1e9)] = 1.0  # longest gradient; 0 leaves all as they are
    micro_batch: Annotated[int | None, Within(1, 1_000_000)] = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    save_every: Annotated[int, Within(0, 1_000_000_000)] = 0  # steps; 0 is a whole epoch
    seed: Annotated[int, Within(0, 2**63 - 1)] = 0  # of first weights, batches and noise
    keep: Literal["best", "last"] | None = None
    metric: Literal["rsum", "r1"] = "rsum"  # sum of R@1, 5 and 10 both ways; R@1 text to video
    workers: Annotated[int, Within(1, 256)] = 4  # threads that decode videos for a tuned encoder
    sampling: SamplingKind | None = None
    augment: Augment = "none"
    keep_frames: bool = False

    def for_encoder(self, encoder: EncoderRecipe) -> "TrainingConfig":
        """These settings with what the encoder decides filled in."""
        plain = TrainingConfig()
        for name in () if encoder.tuned else ("sampling", "augment", "keep_frames"):
            if getattr(self, name) != getattr(plain, name):
                raise SureshotError(
                    f"Setting training.{name} is about pixels, and the encoder is frozen: it is "
                    "trained on features that are encoded once. Set encoder.tuned to true, or "
                    f"leave {name} out."
                )
        if self.sampling == "phase" and encoder.fps is None:
            raise SureshotError(
                'Setting training.sampling is "phase", which shifts the frames that are looked at '
                "so many times a second; give encoder.fps."
            )
        if self.precision == "float16" and not encoder.tuned:
            raise SureshotError(
                'Setting training.precision is "float16", which is for an encoder that is trained '
                'too; set it to "bfloat16" or "float32", or encoder.tuned to true.'
            )
        usual: Captions = "all" if encoder.tuned else "one"
        return replace(self, captions=self.captions or usual)

    def refuse_best(self, missing: str) -> None:
        """Refuse to keep the best of a recipe without a validation set."""
        if self.keep == "best":
            raise SureshotError(
                'training.keep is "best", and there is no validation set to tell it; give '
                f'{missing}, or set training.keep to "last".'
            )


_T = TypeVar("_T")
_R = TypeVar("_R", bound="RecipeFile")


class RecipeFile:
    """A recipe that is read from a TOML file and kept as one; its fields are its settings."""

    __slots__ = ()
    encoder: EncoderRecipe
    training: TrainingConfig

    @classmethod
    def load(cls: type[_R], path: Path, overrides: Sequence[str] = ()) -> _R:
        """A recipe from its TOML file; each override is ``name.of.setting=value``."""
        values = read_toml(path)
        for assignment in overrides:
            values = override(values, assignment)
        return cls.from_dict(values, path.absolute().parent)

    @classmethod
    def from_dict(cls: type[_R], values: Mapping[str, object], folder: Path) -> _R:
        """A recipe from values as `to_dict` gives them; relative paths start at the folder."""
        return resolve_paths(build(cls, values), folder)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return to_values(self)

    def to_toml(self) -> str:
        """The text of a file that `load` reads as this recipe, from any folder."""
        return to_toml(self.to_dict())

    def save(self, path: Path) -> None:
        """Write that file."""
        try:
            write_text(path, self.to_toml())
        except OSError as error:
            raise SureshotError(f"The recipe cannot be kept in {path}: {error}.") from None


@dataclass(frozen=True, slots=True)
class SplitRecipe:
    """Where a split comes from: arguments of `sureshot.datasets.load_split`, and experts."""

    dataset: str
    root: Path
    split: str = "train"
    protocol: str | None = None
    videos: Path | None = None
    ids: Path | None = None
    label: str | None = None
    experts: Path | None = None

    def load(self) -> Split:
        """Read it."""
        arguments = asdict(self)
        experts = arguments.pop("experts")
        return replace(load_split(**arguments), experts=experts)


@dataclass(frozen=True, slots=True)
class ValidationRecipe(SplitRecipe):
    """The split a checkpoint is chosen on."""

    split: str = "val"


@dataclass(frozen=True, slots=True)
class Recipe(RecipeFile):
    """One training run.

    ``hold_out`` is how many videos are taken out of the first training set to choose a checkpoint
    on, drawn by the seed; for data sets that have no validation set.
    """

    train: tuple[SplitRecipe, ...]  # trained on together
    system: Mapping[str, object]  # its ``name`` and its own settings
    val: ValidationRecipe | None = None
    hold_out: int = 0
    encoder: EncoderRecipe = field(default_factory=EncoderRecipe)
    stem: StemConfig = field(default_factory=StemConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        if not self.train:
            raise SureshotError("The recipe has no training set; give one as [[train]].")
        if not isinstance(self.system.get("name"), str):
            raise SureshotError('The recipe names no system; give one as name = "..." in [system].')
        named = [("val", self.val)] if self.val else []
        for at, part in [*((f"train.{n}", part) for n, part in enumerate(self.train)), *named]:
            refuse_test(at, part.split, ", or hold some videos out: hold_out = 500")
        if self.val and self.hold_out:
            raise SureshotError("The recipe has both val and hold_out; leave one of them out.")
        if self.hold_out < 0:
            raise SureshotError(f"Setting hold_out is {self.hold_out}; it counts videos.")
        self._check_experts()
        object.__setattr__(self, "training", self.training.for_encoder(self.encoder))
        if not (self.val or self.hold_out):
            self.training.refuse_best("[val] or hold_out")

    def _check_experts(self) -> None:
        if not any(part.experts for part in self.train):
            return
        if self.val and self.val.experts is None:
            raise SureshotError(
                "The training set has experts and the validation set none; give val.experts too."
            )
        if self.encoder.tuned:
            raise SureshotError(
                "Experts go with the features of a frozen encoder; set encoder.tuned to false, or "
                "leave train.experts out."
            )

    def splits(self) -> tuple[list[Split], Split | None]:
        """The training sets and the validation set, which share no video."""
        train = [part.load() for part in self.train]
        val = None if self.val is None else self.val.load()
        if self.hold_out:
            train[0], val = _held_out(train[0], self.hold_out, self.training.seed)
        if val is not None:
            for part in train:
                check_disjoint(part, val)
        return train, val


def read_toml(path: Path, what: str = "recipe") -> dict[str, Any]:
    """The values of a TOML file; errors call it by ``what``."""
    try:
        return read_toml_values(path)
    except OSError as error:
        raise SureshotError(f"Cannot read the {what} {path}: {reason_of(error)}.") from None
    except ValueError as error:
        raise SureshotError(
            f"The {what} {plain(path)} is not TOML: {plain(str(error))[:300]}."
        ) from None


def resolve_paths(settings: _T, folder: Path) -> _T:
    """Settings whose relative paths start at a folder, ``$NAME`` and ``~`` replaced."""
    changed: Any = settings
    if isinstance(settings, Path):
        # Not Path.expanduser: it fails where there is no such user.
        changed = folder / os.path.expanduser(os.path.expandvars(settings))  # noqa: PTH111
    elif isinstance(settings, tuple):
        changed = tuple(resolve_paths(part, folder) for part in settings)
    elif isinstance(settings, EncoderRecipe):
        local = resolve_paths(Path(settings.name), folder)
        if is_folder_at(local) and settings.name not in BUILT_IN:
            changed = replace(settings, name=str(local))
    elif is_dataclass(settings) and not isinstance(settings, type):
        names = [field.name for field in fields(settings)]
        parts = {name: resolve_paths(getattr(settings, name), folder) for name in names}
        changed = replace(settings, **parts)
    return changed


def refuse_test(setting: str, split: str, instead: str = "") -> None:
    """See that a setting, such as ``val``, does not name the test split."""
    if split == "test":
        raise SureshotError(
            f"Setting {setting}.split is 'test'; nothing is trained or chosen on what it is tested "
            f"on. Take train or val{instead}."
        )


def _held_out(split: Split, count: int, seed: int) -> tuple[Split, Split]:
    """What is left of a split, and the videos drawn from it."""
    ids = sorted({item.id for item in split.items})
    if count > len(ids) - 2:
        raise SureshotError(
            f"Setting hold_out is {count}; of the {len(ids)} videos of {split.title()} at least "
            "two must be left to train on."
        )
    drawn = {ids[row] for row in np.random.default_rng(seed).permutation(len(ids))[:count]}
    held = replace(split.part(drawn), name="val", expected=None)
    return split.part(set(ids) - drawn), held
