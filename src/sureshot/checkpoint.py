"""A trained model in a folder: weights, settings and a card that says what it is.

``config.json`` holds everything needed to build the model again, ``model.safetensors`` the weights,
``README.md`` is for people. Nothing in the folder can run.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from sureshot.errors import ModelError
from sureshot.settings import build, plain
from sureshot.systems.load import load_system
from sureshot.systems.model import Model
from sureshot.systems.stem import Stem, StemConfig
from sureshot.systems.tokens import Sizes

FORMAT = 1
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


@dataclass(frozen=True, slots=True)
class EncoderNote:
    """The encoder a model was trained on.

    Attributes:
        name: what `sureshot.encoders.load` takes.
        fingerprint: of its weights and settings.
        frames: most frames a video was sampled at.
        dim: size of its shared space.
        channels: size of its backbone features.
    """

    name: str
    fingerprint: str
    frames: int
    dim: int
    channels: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model and what is known of it.

    Attributes:
        model: stem and system.
        encoder: what it was trained on.
        system: settings of the system, with its ``name``.
        recipe: the whole recipe it was trained by; empty if it was not trained by one.
        scores: what was measured, by name; never on test data while choosing.
        note: sentences for the card: data, licences, limits.
    """

    model: Model
    encoder: EncoderNote
    system: Mapping[str, Any]
    recipe: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the folder, whole or not at all; what lay there before is replaced.

        Raises:
            ModelError: it cannot be written, or something lies there that is not of a checkpoint.
        """
        folder = Path(folder)
        _check_free(folder)
        partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
        retired = folder.with_name(f".{folder.name}.{os.getpid()}.old")
        try:
            partial.mkdir(parents=True, exist_ok=True)
            weights = {k: v.detach().cpu().contiguous() for k, v in self.model.state_dict().items()}
            save_file(weights, partial / WEIGHTS)
            (partial / CONFIG).write_text(json.dumps(self._config(), indent=2) + "\n", "utf-8")
            (partial / CARD).write_text(self._card(), "utf-8")
            if folder.exists():
                folder.replace(retired)
            partial.replace(folder)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"The checkpoint {folder} cannot be written: {error}") from None
        finally:
            if retired.exists() and not folder.exists():
                retired.rename(folder)  # stopped between the two: the old one goes back
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(retired, ignore_errors=True)

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, device: str | torch.device = "cpu"
    ) -> "Checkpoint":
        """Read a folder that `save_pretrained` wrote; the model is in evaluation mode.

        Raises:
            ModelError: it is no checkpoint, was written by a newer Sureshot, or is damaged.
        """
        folder = Path(folder)
        config = _read(folder)
        encoder = build(EncoderNote, config["encoder"], "encoder")
        sizes = Sizes(encoder.dim, encoder.channels)
        stem = Stem(build(StemConfig, config["stem"], "stem"), sizes)
        model = Model(stem, load_system(config["system"], stem.width))
        try:
            model.load_state_dict(load_file(folder / WEIGHTS))
        except (OSError, SafetensorError) as error:
            raise ModelError(
                f"The weights of {folder} cannot be read ({error}); copy or train it again."
            ) from None
        except RuntimeError:
            raise ModelError(
                f"The weights of {folder} are not those of its {CONFIG}; copy or train it again."
            ) from None
        return cls(
            model.to(device).eval(),
            encoder,
            config["system"],
            config.get("recipe", {}),
            config.get("scores", {}),
            config.get("note", ""),
        )

    def _config(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "encoder": plain(self.encoder),
            "stem": plain(self.model.stem.config),
            "system": dict(self.system),
            "recipe": dict(self.recipe),
            "scores": dict(self.scores),
            "note": self.note,
        }

    def _card(self) -> str:
        """The card, with the metadata the Hugging Face hub reads at its top."""
        count = sum(p.numel() for p in self.model.parameters())
        measured = "\n".join(f"| {name} | {value:.4g} |" for name, value in self.scores.items())
        return f"""---
library_name: sureshot
pipeline_tag: text-to-video
tags: [video-text-retrieval, {self.system["name"]}]
---

# {self.system["name"]} on {self.encoder.name}

A text-to-video retrieval model of {count:,} parameters on the encoder `{self.encoder.name}`
(fingerprint {self.encoder.fingerprint[:16]}), trained with at most {self.encoder.frames} frames a
video. Use it with `sureshot index --model FOLDER` and `sureshot evaluate FOLDER`.

{self.note}

| measured | |
|---|---|
{measured}

The recipe it was trained by stands in `{CONFIG}`.
"""


def is_checkpoint(folder: str | Path) -> bool:
    """Whether a folder looks like one of ours: a config that names a system."""
    try:
        config = json.loads((Path(folder) / CONFIG).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "system" in config and "stem" in config


def _read(folder: Path) -> dict[str, Any]:
    """The config of a checkpoint.

    Raises:
        ModelError: there is none, or this version cannot read it.
    """
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{folder} is no checkpoint: it holds no {CONFIG}.") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG} cannot be read ({error}).") from None
    if not isinstance(config, dict):
        raise _foreign(folder)
    version = config.get("format")
    # Before anything else is looked at: a newer format may hold other things.
    if isinstance(version, int) and version > FORMAT:
        raise ModelError(
            f"{folder} has the checkpoint format {version}; this Sureshot reads up to {FORMAT}. "
            f"Update it: pip install -U sureshot"
        )
    parts = [config.get(name) for name in ("encoder", "stem", "system")]
    if not isinstance(version, int) or not all(isinstance(part, dict) for part in parts):
        raise _foreign(folder)
    return config


def _foreign(folder: Path) -> ModelError:
    return ModelError(f"{folder / CONFIG} is not the config of a Sureshot checkpoint.")


def _check_free(folder: Path) -> None:
    """Refuse to replace anything but an empty folder or a checkpoint.

    Raises:
        ModelError: something else lies there.
    """
    if not folder.exists():
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    if names and not (is_checkpoint(folder) and names <= {CONFIG, WEIGHTS, CARD}):
        raise ModelError(f"{folder} holds something else; name a new folder.")
