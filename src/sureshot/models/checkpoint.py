"""A trained model in a folder: weights, settings and a card that says what it is.

``config.json`` holds everything needed to build the model again, ``model.safetensors`` the weights,
``README.md`` is for people; an encoder that was trained with the model is in ``encoder``. Nothing
in the folder can run.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from safetensors import SafetensorError

from sureshot.errors import ModelError, SureshotError
from sureshot.files import CARD as TRUST
from sureshot.files import replace_folder, write_json, write_text
from sureshot.media.sampling_rule import Sampling, SamplingKind
from sureshot.models import encoders
from sureshot.models.encoders.base import Encoder
from sureshot.models.huggingface import (
    BANK,
    CONFIG,
    ENCODER,
    MEASURED,
    README,
    WEIGHTS,
    is_checkpoint,
)
from sureshot.models.model import Model, Stem, StemConfig
from sureshot.models.model_card import model_card
from sureshot.models.systems.base import Sizes, load_system
from sureshot.models.weights import save_weights, with_weights
from sureshot.settings import Ranged, Within, build, read_json, to_values, within

_WIDEST = 65_536  # numbers of a vector that any encoder gives
FORMAT = 2


@dataclass(frozen=True, slots=True)
class EncoderNote(Ranged):
    """The encoder a model was trained on.

    ``name`` is what `sureshot.models.encoders.load_encoder` takes; ``encoder`` is the folder of
    that name in the folder of the checkpoint.
    """

    name: str
    fingerprint: str
    frames: Annotated[int, Within(1, 100_000)]  # most of a video
    dim: Annotated[int, Within(1, _WIDEST)]
    channels: Annotated[int, Within(0, _WIDEST)]
    experts: Mapping[str, int] = field(default_factory=dict)  # length of the rows of each
    sampling: SamplingKind = "uniform"
    fps: Annotated[float | None, Within(0, 10_000)] = None  # sampled from; None is all
    key: ClassVar[str] = "encoder"

    def __post_init__(self) -> None:
        """Refuse sizes that no encoder has."""
        Ranged.__post_init__(self)
        for name, size in self.experts.items():
            within(f"encoder.experts.{name}", size, 1, _WIDEST)

    @property
    def rule(self) -> Sampling:
        """Which frames of a whole video it was trained on."""
        return Sampling(self.sampling, self.fps)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model and what is known of it.

    ``tuned`` writes the encoder that was trained with the model into a new folder; None where the
    encoder was left as it is.
    """

    model: Model
    encoder: EncoderNote
    system: Mapping[str, Any]  # settings, with the ``name``
    recipe: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)  # never on test data while choosing
    note: str = ""  # sentences for the card: data, licences, limits
    tuned: Callable[[Path], None] | None = None

    @property
    def encoder_name(self) -> str:
        """The encoder as people know it; where it was trained too, what it began as."""
        if self.encoder.name != ENCODER:
            return self.encoder.name
        began = self.recipe.get("encoder")
        return str(began.get("name", ENCODER)) if isinstance(began, Mapping) else ENCODER

    def load_encoder(
        self, folder: str | Path, device: str | None = None, engine: str | None = None
    ) -> Encoder:
        """The encoder that the model was trained on, if it is there and has not changed."""
        named = self.encoder.name
        try:
            encoder = encoders.load_encoder(
                str(Path(folder) / ENCODER) if named == ENCODER else named, device, engine
            )
        except ModelError as error:
            raise ModelError(
                f"{folder} needs the encoder {named!r} it was trained on: {error}"
            ) from None
        if encoder.fingerprint != self.encoder.fingerprint:
            raise ModelError(
                f"{folder} was trained on another version of the encoder {named!r}, whose features "
                f"it cannot read. Train it again, or bring back the version of that encoder, or of "
                f"Sureshot, that it was trained with."
            )
        return encoder

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the folder, whole or not at all, in place of an older checkpoint."""
        folder = Path(folder)
        check_free(folder)
        try:
            with replace_folder(folder) as fresh:
                self._write(fresh)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"The checkpoint {folder} cannot be written: {error}") from None

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, device: str | torch.device = "cpu"
    ) -> "Checkpoint":
        """Read a folder that `save_pretrained` wrote; the model is in evaluation mode."""
        folder = Path(folder)
        config = read_config(
            folder / CONFIG,
            FORMAT,
            dict.fromkeys(("encoder", "stem", "system", "recipe", "scores"), dict),
            usual=("recipe", "scores"),
            missing=f"{folder} is no checkpoint: it holds no {CONFIG}.",
            named="a Sureshot checkpoint",
        )
        try:
            encoder = build(EncoderNote, config["encoder"], "encoder")
            sizes = Sizes(encoder.dim, encoder.channels, tuple(encoder.experts.items()))
            stem = build(StemConfig, config["stem"], "stem")

            def fresh() -> Model:
                made = Stem(stem, sizes)
                return Model(made, load_system(config["system"], made.sizes))

            model = with_weights(fresh, folder / WEIGHTS, CONFIG)
        except ModelError:
            raise
        except SureshotError as error:
            raise ModelError(f"{folder / CONFIG} cannot be used. {error}") from None
        is_tuned = encoder.name == ENCODER
        return cls(
            model=model.to(device).eval(),
            encoder=encoder,
            system=config["system"],
            recipe=config["recipe"],
            scores=config["scores"],
            note=config["note"],
            tuned=partial(shutil.copytree, folder / ENCODER) if is_tuned else None,
        )

    def _write(self, folder: Path) -> None:
        noted = self.encoder
        if self.tuned is not None:
            self.tuned(folder / ENCODER)
            kept = encoders.load_encoder(str(folder / ENCODER), "cpu")
            noted = replace(noted, name=ENCODER, fingerprint=kept.fingerprint)
        config = {
            "format": FORMAT,
            "encoder": to_values(noted),
            "stem": to_values(self.model.stem.config),
            "system": dict(self.system),
            "recipe": dict(self.recipe),
            "scores": dict(self.scores),
            "note": self.note,
        }
        save_weights(self.model, folder / WEIGHTS)
        write_json(folder / CONFIG, config)
        write_text(folder / README, model_card(folder))


def read_config(
    path: Path,
    newest: int,
    kinds: Mapping[str, type],
    *,
    usual: Sequence[str] = (),
    missing: str,
    named: str,
) -> dict[str, Any]:
    """The settings in the folder of a model; ``usual`` tables are empty where they are left out."""
    try:
        config = read_json(path)
    except FileNotFoundError:
        raise ModelError(missing) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}).") from None
    version = config.get("format") if isinstance(config, dict) else None
    # Before anything else is looked at: a newer format may hold other things.
    if isinstance(version, int) and version > newest:
        raise ModelError(
            f"{path.parent} has the format {version}; this Sureshot reads up to {newest}. "
            "Install the newest one."
        )
    if version == newest and type(version) is int:
        held = {**{name: {} for name in usual}, "note": "", **config}
        if all(isinstance(held.get(name), kind) for name, kind in kinds.items()):
            return held
    raise ModelError(f"{path} is not the config of {named}.")


def check_free(folder: Path) -> None:
    """Refuse to replace anything but an empty folder or a checkpoint."""
    if not folder.exists():
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    ours = {CONFIG, WEIGHTS, README, ENCODER, TRUST, BANK, MEASURED}
    if names and not (is_checkpoint(folder) and names <= ours):
        raise ModelError(f"{folder} holds something else; name a new folder.")
