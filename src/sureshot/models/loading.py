"""Models by the names that people type: an encoder's name or hub id, or a folder.

Nothing here imports torch before a checkpoint is loaded.
"""

import os
from dataclasses import replace
from pathlib import Path

from sureshot.errors import ModelError, option
from sureshot.models.bank import FILE, bank_of, home_of
from sureshot.models.encoders import load_encoder
from sureshot.models.encoders.protocol import Encoder
from sureshot.models.scorer import Scorer
from sureshot.places import expand, is_folder_at

_BUILT_IN = (
    "bundled",
    "bundled-bf16",
    "bridge",
    "tiny",
)  # names that mean the same whatever folders lie around


def load(name: str | Path, device: str | None = None) -> Scorer:
    """A model that embeds texts and videos and scores them.

    Args:
        name: folder of a checkpoint, or an encoder as `sureshot.models.encoders.load_encoder` takes
            it: ``bundled``, a folder of a CLIP, or its id on the hub.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Raises:
        ModelError: there is no such model, it cannot be reached or trusted, its encoder has changed
            since it was trained, or its bank cannot be used.

    Examples:
        >>> model = load("tiny")
        >>> model.embed_texts(["a red wall"]).vectors.shape
        (1, 24)
    """
    scorer = _without_bank(str(name), device)
    if scorer.searchable is None or not (home_of(scorer.name) / FILE).is_file():
        return scorer  # no fingerprint is worked out where there is no bank
    return replace(scorer, bank=bank_of(scorer.name, scorer.fingerprint))


def load_searchable(
    name: str | Path, device: str | None = None, engine: str | None = None
) -> Encoder:
    """What an index is written and searched with: an encoder alone, or a trained model as one.

    Args:
        name: what `load` takes.
        device: torch device such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        engine: what `sureshot.models.encoders.load_encoder` takes.

    Raises:
        ModelError: as `load` raises it, and where the model's system reads what an index does not
            keep.
    """
    return _without_bank(str(name), device, engine).require_searchable()


def _without_bank(name: str, device: str | None, engine: str | None = None) -> Scorer:
    folder = expand(name)
    if name not in _BUILT_IN and is_folder_at(folder):
        from sureshot.models.checkpoint import is_checkpoint

        if is_checkpoint(folder):
            return _checkpoint(name, folder, device, engine)
    there = os.path.exists(folder)  # noqa: PTH110 - Path.exists fails at names too long
    if folder.is_absolute() and not there:
        raise ModelError(
            f"There is no model in {folder}. If it has moved, name its folder with "
            f"{option('model')}."
        )
    if name not in _BUILT_IN and not there:
        _refuse_system(name)
    encoder = load_encoder(name, device, engine)
    return Scorer(name=name, encoder=encoder, encoder_name=encoder.name, searchable=encoder)


def _checkpoint(name: str, folder: Path, device: str | None, engine: str | None) -> Scorer:
    from sureshot.models.checkpoint import Checkpoint
    from sureshot.models.encoders.device import device_for
    from sureshot.models.retriever import Retriever

    place = device_for(device)
    checkpoint = Checkpoint.from_pretrained(folder, place)
    encoder = checkpoint.load_encoder(folder, device, engine)
    searches = checkpoint.model.system.searches
    return Scorer(
        name=name,
        encoder=encoder,
        encoder_name=checkpoint.encoder_name,
        model=checkpoint.model,
        system=str(checkpoint.system["name"]),
        frames=checkpoint.encoder.frames,
        sampling=checkpoint.encoder.rule,
        recipe=checkpoint.recipe,
        device=place,
        searchable=Retriever(checkpoint, encoder, folder, place) if searches else None,
    )


def _refuse_system(name: str) -> None:
    """Say what is missing where a system is named in place of a model.

    Raises:
        ModelError: the name is that of a system.
    """
    from sureshot.models.systems.load import find_system

    if find_system(name) is not None:
        raise ModelError(
            f"{name} is a retrieval system, which has no weights before it is trained. Train it by "
            f"a recipe, such as `sureshot train recipes/{name}.toml`, or name the folder of a "
            f"checkpoint."
        )
