"""A calibration card from captioned photographs or videos that are not the user's."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from sureshot.datasets import NAMES, Caption, Split
from sureshot.errors import ArgumentError, SureshotError, option, reason_of
from sureshot.files import CARD, write_text
from sureshot.media.discover import PHOTO_SUFFIXES
from sureshot.models.checkpoint import model_card
from sureshot.models.hub_bank import BUNDLED
from sureshot.models.huggingface import README, is_hub_name
from sureshot.models.load import Scorer, load
from sureshot.paths import absolute, exists_at, expand, reference_card
from sureshot.progress import Notes, Progress, Silent
from sureshot.research import evaluation
from sureshot.research.features import SplitFeatures, caption_features
from sureshot.research.queries import by_words, kinds
from sureshot.research.scores import known_of, ranking
from sureshot.text import plain
from sureshot.trust.fit import Calibrated, Labelled, date_or_today, fit_card, labelled


def calibrate(
    model: str | Path,
    reference: str | Path,
    root: str | Path | None = None,
    *,
    split: str = "val",
    protocol: str | None = None,
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
    experts: str | Path | None = None,
    date: str = "",
    to: str | Path | None = None,
    save: bool = True,
    device: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Calibrated:
    """Learn how sure the answers of a model are from captioned footage from elsewhere.

    Searches with the model then show percentages, which say where they are from, unless their index
    has a card of its own. Other arguments are as of `sureshot.research.evaluation.evaluate`.

    Args:
        reference: name of a data set, or the folder of photographs or videos with captions, as
            `sureshot.datasets.pairs` reads it.
        root: folder of the data set's annotation files.
        split: ``val`` or ``test``; never what the model was trained on.
        date: to note on the card, such as 2026-11-30; today if empty.
        to: file of the card; None is where searches look for it: in the folder of the checkpoint,
            or, of an encoder such as a CLIP, among the data of this user.
    """
    day = date_or_today(date)
    notes = Notes(progress or Silent())
    scorer = load(model, device)
    data, place = _place(reference, root)
    where = {"root": place, "split": split, "protocol": protocol, "videos": videos, "ids": ids}
    source = evaluation.source_of(data, **where, label=label, experts=experts)
    scorer.check_experts(source.experts)
    file = None
    if save:
        file = card_of_model(scorer) if to is None else absolute(to)
    tested = evaluation.read_source(source, notes)
    check_unseen(scorer, tested, notes)
    features = evaluation.encode(tested, scorer, notes, cache=cache)
    kinds_asked = asked(scorer, features, cache)
    card = fit_card(
        kinds_asked,
        of=[0] * len(kinds_asked),
        model=scorer.fingerprint,
        bank=None if scorer.bank is None else scorer.bank.digest,
        dataset=features.split.title(),
        date=day,
        source="reference",
        photos=all(item.path.suffix.lower() in PHOTO_SUFFIXES for item in features.split.items),
    )
    done = Calibrated(card=card, gallery=len(features.videos))
    if file is None:
        return done
    done = done.saved(file)
    if scorer.model is not None and file.parent == expand(scorer.name):
        write_text(file.parent / README, model_card(file.parent))  # which says what was measured
    return done


def asked(scorer: Scorer, features: SplitFeatures, cache: str | Path | None) -> list[Labelled]:
    """The captions of a split, and keywords, questions and halves made of them, as queries.

    A sentence is right about its own video alone, though others may fit; a keyword about all whose
    captions have it.
    """
    split, found = features.split, []
    for kind, (queries, own, _) in kinds(split, np.random.default_rng(0)).items():
        named = tuple(Caption(text, int(video)) for text, video in zip(queries, own, strict=True))
        seen = caption_features(replace(split, captions=named), scorer.encoder, cache=cache)
        relevant = own[:, None] == np.arange(len(features.videos))
        if kind == "keywords":
            relevant |= by_words(queries, split.texts(), split.owner(), relevant.shape[1])
        scores = ranking(scorer, features, seen)
        found.append(labelled(scores, relevant, own, known_of(scorer, seen)))
    return found


def _place(reference: str | Path, root: str | Path | None) -> tuple[str, str | Path]:
    """The data set that a reference names, and its place."""
    if str(reference) in NAMES:
        if root is None:
            raise ArgumentError(
                f"{reference} is a data set; name the folder that has it with {option('root')}."
            )
        return str(reference), root
    if root is not None or not exists_at(reference):
        raise ArgumentError(
            f"The reference {plain(reference)} is neither a data set ({', '.join(NAMES)}) nor a "
            "folder of photographs or videos with captions.csv."
        )
    return "pairs", reference


def card_of_model(scorer: Scorer) -> Path:
    """The file of the card of a model: of a checkpoint in its own folder, else of this user."""
    if scorer.name in BUNDLED:
        raise SureshotError(
            f"The model {scorer.name} brings percentages that were measured on several data sets. "
            "Judge searches of your own to move them, or name a file for a card with "
            f"{option('to')}."
        )
    if scorer.model is not None and not is_hub_name(scorer.name):
        return expand(scorer.name) / CARD
    file = reference_card(scorer.fingerprint)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SureshotError(
            f"{file.parent} cannot be made: {reason_of(error)}. Name a file for the card with "
            f"{option('to')}."
        ) from None
    return file


def check_unseen(scorer: Scorer, split: Split, progress: Progress) -> None:
    """Refuse videos that a model was trained on, where its training data are at hand.

    On those it is right far more often than on any others, and would promise that.
    """
    try:
        trained, held = evaluation.known_splits(scorer)
    except SureshotError:
        return
    for shared in evaluation.shared_videos(trained, split):
        raise SureshotError(
            f"{scorer.name} cannot be calibrated on what it was trained on. {shared}"
        )
    evaluation.warn_of_chosen(held, split, progress)
