"""A recipe: everything a training run depends on, in one TOML file.

.. code-block:: toml

    [[train]]
    dataset = "msrvtt"
    root = "data/MSRVTT"

    [stem]
    kind = "linear"

    [system]
    name = "clip4clip"

    [training]
    epochs = 10

Relative paths start at the file, and ``$NAME`` in one is a variable of the environment. A finished
run keeps its recipe with all defaults and paths filled in, and that file trains the same model
again.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sureshot.datasets import Split, check_disjoint, load_split
from sureshot.errors import SureshotError, reason_of
from sureshot.files import write_text
from sureshot.formats import read_toml_values
from sureshot.models.model import StemConfig
from sureshot.places import is_folder_at
from sureshot.research.training.config import EncoderRecipe, TrainingConfig
from sureshot.settings import build, override, to_toml, to_values
from sureshot.text import plain

_T = TypeVar("_T")
_R = TypeVar("_R", bound="RecipeFile")


class RecipeFile:
    """A recipe that is read from a TOML file and kept as one; its fields are its settings."""

    __slots__ = ()

    @classmethod
    def load(cls: type[_R], path: Path, overrides: Sequence[str] = ()) -> _R:
        """A recipe from its file.

        Args:
            path: a TOML file.
            overrides: settings that replace those of the file, each as ``name.of.setting=value``;
                their relative paths start at the file too.

        Raises:
            SureshotError: the file cannot be read or is no TOML, or a setting is wrong; the message
                names it.
        """
        values = read_toml(path)
        for assignment in overrides:
            values = override(values, assignment)
        return cls.from_dict(values, path.absolute().parent)

    @classmethod
    def from_dict(cls: type[_R], values: Mapping[str, object], folder: Path) -> _R:
        """A recipe from plain values.

        Args:
            values: settings by name, as `to_dict` gives them.
            folder: where relative paths start.

        Raises:
            SureshotError: an unknown or missing name, or a wrong value.
        """
        return placed(build(cls, values), folder)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values: dict[str, Any] = to_values(self)
        return values

    def to_toml(self) -> str:
        """The text of a file that `load` reads as this recipe, wherever it lies."""
        return to_toml(self.to_dict())

    def save(self, path: Path) -> None:
        """Write that file.

        Raises:
            SureshotError: it cannot be written.
        """
        try:
            write_text(path, self.to_toml())
        except OSError as error:
            raise SureshotError(f"The recipe cannot be kept in {path}: {error}.") from None


@dataclass(frozen=True, slots=True)
class SplitRecipe:
    """Where a split comes from; the fields are the arguments of `sureshot.datasets.load_split`.

    Attributes:
        experts: folder of features that were extracted beforehand, see
            `sureshot.models.encoders.experts`.
    """

    dataset: str
    root: Path
    split: str = "train"
    protocol: str | None = None
    videos: Path | None = None
    ids: Path | None = None
    label: str | None = None
    experts: Path | None = None

    def load(self) -> Split:
        """Read it.

        Raises:
            SureshotError: see `sureshot.datasets.load_split`.
        """
        split = load_split(
            self.dataset,
            self.split,
            self.root,
            protocol=self.protocol,
            videos=self.videos,
            ids=self.ids,
            label=self.label,
        )
        return replace(split, experts=self.experts)


@dataclass(frozen=True, slots=True)
class ValidationRecipe(SplitRecipe):
    """The split a checkpoint is chosen on."""

    split: str = "val"


@dataclass(frozen=True, slots=True)
class Recipe(RecipeFile):
    """One training run.

    Attributes:
        train: sets that are trained on together.
        system: ``name`` of the system and its own settings.
        val: the set a checkpoint is chosen on.
        hold_out: videos taken out of the first training set to choose a checkpoint on, drawn by
            the seed; for data sets that have no validation set.
        encoder: what sees texts and frames.
        stem: map from the encoder's space to the system's.
        training: how weights are fitted.
    """

    train: tuple[SplitRecipe, ...]
    system: Mapping[str, object]
    val: ValidationRecipe | None = None
    hold_out: int = 0
    encoder: EncoderRecipe = field(default_factory=EncoderRecipe)
    stem: StemConfig = field(default_factory=StemConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
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
        object.__setattr__(self, "training", self.training.beside(self.encoder))
        if self.training.keep == "best" and not (self.val or self.hold_out):
            raise SureshotError(
                'training.keep is "best", and there is no validation set to tell it; give [val] '
                'or hold_out, or set training.keep to "last".'
            )

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
        """The training sets and the validation set.

        Raises:
            SureshotError: one cannot be read, or they share videos.
        """
        train = [part.load() for part in self.train]
        val = None if self.val is None else self.val.load()
        if self.hold_out:
            train[0], val = _held_out(train[0], self.hold_out, self.training.seed)
        if val is not None:
            for part in train:
                check_disjoint(part, val)
        return train, val


def read_toml(path: Path, what: str = "recipe") -> dict[str, Any]:
    """The values of a TOML file.

    Args:
        path: the file.
        what: what an error calls it.

    Raises:
        SureshotError: it cannot be read or is no TOML.
    """
    try:
        return read_toml_values(path)
    except OSError as error:
        raise SureshotError(f"Cannot read the {what} {path}: {reason_of(error)}.") from None
    except ValueError as error:
        raise SureshotError(
            f"The {what} {plain(path)} is not TOML: {plain(str(error))[:300]}."
        ) from None


def placed(settings: _T, folder: Path) -> _T:
    """Settings whose relative paths start at a folder, ``$NAME`` and ``~`` replaced."""
    changed: Any = settings
    if isinstance(settings, Path):
        # Not Path.expanduser: it fails where there is no such user.
        changed = folder / os.path.expanduser(os.path.expandvars(settings))  # noqa: PTH111
    elif isinstance(settings, tuple):
        changed = tuple(placed(part, folder) for part in settings)
    elif isinstance(settings, EncoderRecipe):
        local = placed(Path(settings.name), folder)
        if is_folder_at(local) and settings.name != EncoderRecipe().name:
            changed = replace(settings, name=str(local))
    elif is_dataclass(settings) and not isinstance(settings, type):
        parts = {f.name: getattr(settings, f.name) for f in fields(settings)}
        changed = replace(settings, **{name: placed(part, folder) for name, part in parts.items()})
    return changed


def refuse_test(at: str, split: str, instead: str = "") -> None:
    """See that a setting does not name the test split.

    Args:
        at: dotted path of the setting.
        split: name of the split that it names.
        instead: what else to do, in the words of a sentence.

    Raises:
        SureshotError: it names the test split.
    """
    if split == "test":
        raise SureshotError(
            f"Setting {at}.split is 'test'; nothing is trained or chosen on what it is tested on. "
            f"Take train or val{instead}."
        )


def _held_out(split: Split, count: int, seed: int) -> tuple[Split, Split]:
    """What is left of a split, and the videos drawn from it."""
    ids = sorted({item.id for item in split.items})
    if not count <= len(ids) - 2:
        raise SureshotError(
            f"Setting hold_out is {count}; of the {len(ids)} videos of {split.title()} at least "
            "two must be left to train on."
        )
    drawn = {ids[row] for row in np.random.default_rng(seed).permutation(len(ids))[:count]}
    held = replace(split.part(drawn), name="val", expected=None)
    return split.part(set(ids) - drawn), held
