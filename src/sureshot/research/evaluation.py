"""How good a model is on a split: recalls of raw scores first, then what else was asked for."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sureshot.datasets import Split, check_disjoint
from sureshot.errors import ArgumentError, SureshotError, option
from sureshot.metrics.published import Setting, is_whole, published
from sureshot.metrics.report import (
    CORRECTIONS,
    RecallReport,
    hub_corrected,
    report,
    write_trec,
)
from sureshot.models.checkpoint import record_recalls
from sureshot.models.encoders.experts import presence, read_experts
from sureshot.models.huggingface import is_hub_name
from sureshot.models.load import Scorer, load
from sureshot.paths import as_list, expand
from sureshot.progress import Notes, Progress, Silent
from sureshot.research import absence
from sureshot.research.absence import Absence
from sureshot.research.canvas import new_figure
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.figures.plots import write_trust
from sureshot.research.scores import (
    CANDIDATES,
    PRINTED,
    candidate_scores,
    caption_scores,
    check_printed,
    known_of,
    printed_scores,
    ranking,
    similarity,
    text_measures,
)
from sureshot.research.training.recipe import Recipe, SplitRecipe
from sureshot.research.trust_report import TrustReport, measure
from sureshot.settings import build, to_values
from sureshot.trust.card import Calibration, load_card

BANKED = frozenset({"qb_norm", "nnn", CANDIDATES})  # corrections that look at training captions
_THEY_LOOK = f"{', '.join(sorted(BANKED))} look at training captions"


def source_of(dataset: str, **where: Any) -> SplitRecipe:
    """Where a split comes from, its paths as they were typed; but that of experts is whole."""
    if not isinstance(dataset, str):
        raise ArgumentError(f"{option('data')} is {dataset!r}; give the name of a data set.")
    source = build(SplitRecipe, {"dataset": dataset, **where})
    return replace(source, experts=source.experts and expand(source.experts))


def read_source(source: SplitRecipe, progress: Progress) -> Split:
    """Read a split; report what was found and what was not there."""
    split = source.load()
    progress.line(split.summary())
    return split


def encode(
    split: Split,
    scorer: Scorer,
    progress: Progress,
    *,
    frames: int | None = None,
    cache: str | Path | None = None,
) -> SplitFeatures:
    """The features of a split, as a model reads them; notes which videos cannot be read."""
    experts = read_experts(split.experts, [item.id for item in split.items])
    if experts:
        progress.line(f"experts: {presence(experts)}")
    features = extract(
        split,
        scorer.encoder,
        frames=scorer.frames if frames is None else frames,
        sampling=scorer.sampling,
        cells=scorer.cells,
        cache=cache,
        progress=progress,
    )
    for name, reason in features.unreadable:
        progress.line(f"left out: {name} {reason}")
    return replace(features, experts=experts)


def known_splits(scorer: Scorer) -> tuple[list[Split], Split | None]:
    """What a model was trained on, and its epoch chosen on, read again; none if not known."""
    return Recipe.from_dict(scorer.recipe, Path.cwd()).splits() if scorer.recipe else ([], None)


def training_captions(scorer: Scorer, tested: Split, count: int) -> Split:
    """At most ``count`` captions a model was trained on, none of them of a video that is tested.

    They are drawn, always the same ones.
    """
    splits, _ = known_splits(scorer)
    if not splits:
        raise ArgumentError(f"{_THEY_LOOK}, and {scorer.name} does not know its own.")
    names = {item.id for item in tested.items}
    captions = [c for s in splits for c in s.captions if s.items[c.video].id not in names]
    if not captions:
        raise SureshotError(
            f"{_THEY_LOOK}, and all those of {scorer.name} are of videos in "
            f"{tested.title()}. Leave them out."
        )
    drawn = np.random.default_rng(0).permutation(len(captions))[:count]
    chosen = tuple(replace(captions[row], video=0) for row in sorted(drawn))
    return replace(splits[0], items=(), captions=chosen)


def shared_videos(known: Sequence[Split | None], tested: Split) -> list[str]:
    """Which videos are tested that a model knows, in words."""
    found = []
    for split in filter(None, known):
        try:
            check_disjoint(split, tested)
        except SureshotError as error:
            found.append(str(error))
    return found


def warn_of_shared(
    known: Callable[[], tuple[Sequence[Split], Split | None]], tested: Split, progress: Progress
) -> None:
    """Report the tested videos that a model was trained on, and those its epoch was chosen by."""
    try:
        trained, held = known()
    except SureshotError as error:
        progress.line(f"! Whether it learned from the tested videos is not known: {error}")
        return
    for shared in shared_videos(trained, tested):
        progress.line(f"! {shared}")
    warn_of_chosen(held, tested, progress)


def warn_of_chosen(held: Split | None, tested: Split, progress: Progress) -> None:
    """Report the tested videos by which an epoch or a hub correction was chosen."""
    for shared in shared_videos([held], tested):
        progress.line(f"! By some of them its epoch or hub correction was chosen. {shared}")


POST = (*CORRECTIONS, PRINTED, CANDIDATES)  # corrections of scores
# The name that the tables of the papers give to what a reader reads.
_PUBLISHED = {
    ("msrvtt", "1k-A", "test"): "1kA",
    ("msrvtt", "full multi-caption", "test"): "full",
    ("msvd", "multi-caption", "test"): "std",
    ("vatex", "HGR multi-caption", "test"): "std",
    ("vatex", "CLIP2Video multi-caption", "test"): "CLIP2Video",
    ("didemo", "paragraph", "test"): "std",
    ("lsmdc", "all sentences", "test"): "std",
    ("lsmdc", "last sentence", "test"): "std",
    ("charades", "script", "test"): "std",
    ("activitynet", "paragraph val1", "test"): "val1",
}


def published_split(split: Split) -> str:
    """Which published test split this is, as printed rows call it; nothing if none, or a part."""
    name = _PUBLISHED.get((split.dataset, split.protocol, split.name), "")
    count = len(split.items)
    whole = count == split.expected or is_whole(split.dataset, name, count)
    return name if whole and split.label is None else ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation found.

    Attributes:
        report: recalls of the raw scores, and of corrected ones.
        trust: how far the answers can be believed; None if that was not asked for.
        absence: how well queries without an answer are recognised; None if that was not asked for,
            or cannot be calibrated.
        files: figures of ``trust``, and queries with and without an answer, that were written.
        notes: sentences about the data: missing videos, videos that the model was trained on.
    """

    report: RecallReport
    trust: TrustReport | None = None
    absence: Absence | None = None
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Tables for a terminal."""
        parts = [part for part in (self.report, self.trust, self.absence) if part is not None]
        files = "".join(f"{file}\n" for file in self.files)
        return "\n".join(part.text() for part in parts) + files

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = self.report.to_dict()
        if self.trust is not None:
            files = [str(file) for file in self.files]
            values["trust"] = {**self.trust.to_dict(), "files": files}
        if self.absence is not None:
            values["absence"] = to_values(self.absence)
        return values


def evaluate(
    model: str | Path,
    data: str,
    root: str | Path,
    *,
    split: str = "test",
    protocol: str | None = None,
    videos: str | Path | None = None,
    ids: str | Path | None = None,
    label: str | None = None,
    experts: str | Path | None = None,
    frames: int | None = None,
    post: str | Sequence[str] = (),
    gamma: float | None = None,
    bank: int | None = None,
    against: str | Sequence[str] = (),
    trec: str | Path | None = None,
    record: bool = False,
    trust: bool = False,
    card: str | Path | None = None,
    plots: str | Path | None = None,
    absent: str | Path | None = None,
    device: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a model on a split of a data set.

    Whatever can be known before videos are decoded is refused before.

    Args:
        model: folder of a checkpoint, or an encoder's name.
        data: name of the data set, see `sureshot.datasets.load_split`; so are ``root``, ``split``,
            ``protocol``, ``videos``, ``ids`` and ``label``.
        experts: folder of features extracted beforehand, for a model that was trained on some.
        frames: frames sampled from each video; None is as many as the model was trained with.
        post: corrections to show after the raw scores, of `POST`.
        gamma: weight of the uncertainty in ``duq_printed`` and ``duq_candidates``; 0.1 in print.
        bank: training captions that ``qb_norm``, ``nnn`` and ``duq_candidates`` look at, at most.
        against: methods whose printed rows are shown; ``published`` is all of them.
        trec: folder for ``run.txt`` and ``qrels.txt``.
        record: whether to keep the recalls in the folder of the model, for its card.
        trust: whether to measure too how far the answers can be believed.
        card: file of the calibration that ``trust`` measures; None fits one to parts of the split.
        plots: folder for figures of ``trust``, as PNG and SVG.
        absent: folder for the queries of ``trust`` with and without an answer in the form of
            Generalized Moment Retrieval, see `sureshot.research.absence`.
        device: torch device; None takes a GPU where there is one.
        cache: folder of encoded features; None is one in the user's cache folder.
    """
    post, against = as_list(post), as_list(against)
    _check_arguments(data, post, against, gamma, bank)
    gamma, bank = 0.1 if gamma is None else gamma, bank or 2000
    for name, given in (("card", card), ("plots", plots), ("absent", absent)):
        if given is not None and not trust:
            raise ArgumentError(
                f"{option(name)} is about {option('trust')}; add it, or leave {option(name)} out."
            )
    if plots is not None:
        new_figure(1.0)  # refused where figures cannot be drawn
    notes = Notes(progress or Silent())
    scorer = load(model, device)
    if PRINTED in post:
        check_printed(scorer)
    if record and (scorer.model is None or is_hub_name(scorer.name)):
        raise ArgumentError(
            f"{option('record')} writes into the folder of a trained model, and {scorer.name} has "
            f"none here; leave it out."
        )
    where = {"root": root, "split": split, "protocol": protocol, "videos": videos, "ids": ids}
    source = source_of(data, **where, label=label, experts=experts)
    scorer.check_experts(source.experts)
    calibration = None if card is None else read_card(Path(card), scorer)
    tested = read_source(source, notes)
    warn_of_shared(lambda: known_splits(scorer), tested, notes)
    captions = training_captions(scorer, tested, bank) if BANKED & set(post) else None
    features = encode(tested, scorer, notes, frames=frames, cache=cache)
    scores = similarity(scorer.raw, features)
    known = None if captions is None else caption_scores(scorer, captions, features, cache)
    recalls = recall_report(
        scorer, features, scores, post=post, gamma=gamma, against=against, bank=known
    )
    if record:
        record_recalls(expand(scorer.name), recalls)
    if trec is not None:
        names = [item.id for item in features.split.items]
        write_trec(expand(trec), scores, features.split.owner(), names, scorer.name)
    if not trust:
        return Evaluation(report=recalls, notes=tuple(notes.lines))
    ranked = ranking(scorer, features, raw=scores)
    trusted = measure(
        ranked,
        features.split.owner(),
        known_of(scorer, features),
        correction="" if scorer.bank is None else scorer.bank.title,
        title=features.split.title(),
        card=calibration,
        papers=text_measures(scorer, features),
        scale=scorer.scale,
    )
    files = [] if plots is None else write_trust(trusted, expand(plots).absolute())
    missed = None
    if absent is not None:
        missed, written = absence.evaluated(absent, features.split, ranked, trusted, notes)
        files += written
    return Evaluation(
        report=recalls, trust=trusted, absence=missed, files=tuple(files), notes=tuple(notes.lines)
    )


def recall_report(
    scorer: Scorer,
    features: SplitFeatures,
    scores: Float[np.ndarray, "texts videos"],
    *,
    post: Sequence[str] = (),
    gamma: float = 0.1,
    against: Sequence[str] = (),
    bank: Float[np.ndarray, "captions videos"] | None = None,
) -> RecallReport:
    """Recalls, arguments as of `evaluate`; ``bank`` has raw scores of training captions."""
    split = features.split
    named = (name for name in post if name in CORRECTIONS)
    corrected = [one for name in named for one in hub_corrected(name, scores, bank, scorer.scale)]
    if PRINTED in post:
        corrected += printed_scores(scorer, features, gamma)
    if CANDIDATES in post and bank is not None:
        corrected += candidate_scores(scores, bank, gamma)
    if everything := "published" in against:
        against = list(dict.fromkeys(r.method for r in published(split.dataset) if not r.variant))
    return report(
        scores,
        split.owner(),
        Setting(
            dataset=split.dataset,
            split=published_split(split),
            encoder=scorer.encoder_name,
            frames=features.frames,
            trained_on=scorer.trained_on,
            frozen=scorer.model is not None and not scorer.recipe.get("encoder", {}).get("tuned"),
            part=_part(scorer.recipe),
        ),
        title=split.title(),
        system=scorer.system,
        against=against,
        comparable=everything,
        corrected=corrected,
        ks=(1, 5, 50) if split.dataset == "activitynet" else (1, 5, 10),
    )


_USUAL = (None, "1k-A", "1k-A 9k")  # training sets that need no name


def _part(recipe: Mapping[str, Any]) -> str:
    """What of its data sets a recipe trains on, where that is not the usual training set."""
    named = (one.get("label") or one.get("protocol") for one in recipe.get("train", ()))
    return ", ".join(dict.fromkeys(name for name in named if name not in _USUAL))


def read_card(path: Path, scorer: Scorer) -> Calibration:
    """A calibration card, if it is one of this model."""
    try:
        card = load_card(expand(path))
    except SureshotError as error:
        raise SureshotError(f"{path} cannot be used as a card: {error}") from None
    bank = None if scorer.bank is None else scorer.bank.digest
    if odd := card.mismatches(scorer.fingerprint, bank):
        raise SureshotError(f"{path} is not about {scorer.name}. {odd[0]}")
    return card


def _check_arguments(
    data: str, post: Sequence[str], against: Sequence[str], gamma: float | None, bank: int | None
) -> None:
    """Refuse what no report can show, and what nothing would read."""
    of_duq = "gamma", gamma, [PRINTED, CANDIDATES]
    for name, given, readers in (of_duq, ("bank", bank, sorted(BANKED))):
        if given is not None and not {*readers} & {*post}:
            raise ArgumentError(
                f"{option(name)} is about {option('post')} {' or '.join(readers)}; add one, or "
                f"leave {option(name)} out."
            )
    if gamma is not None and not 0 <= gamma < math.inf:
        raise ArgumentError(f"{option('gamma')} is {gamma:g}; it must be a number from 0 on.")
    for name in post:
        if name not in POST:
            raise ArgumentError(f"{option('post', name)} is unknown; known: {', '.join(POST)}.")
    for method in against:
        published(data, method=None if method == "published" else method)
