"""`sureshot calibrate`."""

import datetime
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sureshot.cli.options import (
    Cache,
    Db,
    Device,
    Experts,
    Ids,
    Json,
    Label,
    MistypedError,
    Protocol,
    VideoFolder,
    examples,
)

if TYPE_CHECKING:
    from rich.console import Console

    from sureshot.datasets import Split
    from sureshot.models.scorer import Scorer
    from sureshot.trust.calibrated import Calibrated, Sets

EXAMPLES = examples(
    "sureshot calibrate --labels judged.jsonl",
    "sureshot calibrate --labels judged.csv --db ~/films-index --skip-unknown",
    "sureshot calibrate runs/duq/model --data msrvtt --root ~/MSRVTT --split val",
)


def calibrate(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="With --data: folder of a checkpoint, or an encoder's name. With --labels: the "
            "model of the index, if its folder has moved.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Judged queries of an index (docs/trust.md)."),
    ] = None,
    db: Db = None,
    skip_unknown: Annotated[
        bool,
        typer.Option("--skip-unknown", help="Leave out queries about videos not in the index."),
    ] = False,
    data: Annotated[
        str | None, typer.Option(metavar="NAME", help="msrvtt, msvd, … or pairs.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Folder of the annotation files.")
    ] = None,
    split: Annotated[
        str, typer.Option(metavar="NAME", help="val, or test; never what it was trained on.")
    ] = "val",
    protocol: Protocol = None,
    videos: VideoFolder = None,
    ids: Ids = None,
    label: Label = None,
    experts: Experts = None,
    absent: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=0.99,
            help="Share of queries to reckon with that nothing answers.",
            show_default="that of the labels, else 0",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Where the card goes.",
            show_default="in the index or the checkpoint",
        ),
    ] = None,
    date: Annotated[
        str, typer.Option(metavar="DATE", help="To note on the card.", show_default="today, in UTC")
    ] = "",
    device: Device = None,
    cache: Cache = None,
    as_json: Json = False,
) -> int:
    """Learn from judged queries how sure an answer is, so that searches show percentages.

    Ends with 1 and leaves no card where the labels do not allow it.
    """
    from sureshot.cli import show
    from sureshot.errors import SureshotError
    from sureshot.library.answer import JSON_SCHEMA
    from sureshot.text import printable
    from sureshot.trust.card import save_card

    if (labels is None) == (data is None):
        raise MistypedError("Give one of: --labels FILE, or MODEL --data NAME --root PATH.")
    _check_date(date)
    noted = _Noted(absent, date, to)
    if labels is not None:
        done, target = _of_index(labels, db, model, device, skip_unknown, noted)
    elif data is None or model is None or root is None:
        raise MistypedError("--data needs the MODEL and --root as well.")
    else:
        from sureshot.datasets import load_split
        from sureshot.models.loading import load
        from sureshot.places import absolute_model
        from sureshot.research.source import check_experts

        scorer = load(absolute_model(model), device)
        check_experts(scorer, experts)
        found = load_split(
            data, split, root, protocol=protocol, videos=videos, ids=ids, label=label
        )
        done, target = _of_split(scorer, found, experts, cache, noted)
    refused = done.card.refused
    if not refused:
        save_card(done.card, target)
    if as_json:
        card = None if refused else printable(target)
        show.print_json({"schema": JSON_SCHEMA, "card": card, **done.to_dict()})
    else:
        _print(show.console(), done)
        if not refused:
            show.console().print(f"Card: {show.short(target)}", soft_wrap=True)
    if refused:
        older = f" {target} is still the one from before." if target.exists() else ""
        raise SureshotError(f"No percentages and no card: {refused}{older}")
    return 0


@dataclass(frozen=True)
class _Noted:
    """What was asked for in either way."""

    absent: float | None
    date: str
    to: Path | None


def _of_index(
    labels: Path,
    db: str | None,
    model: str | None,
    device: str | None,
    lenient: bool,
    noted: _Noted,
) -> "tuple[Calibrated, Path]":
    """The calibration of an index, and where its card goes."""
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.library.calibration import calibrate_index, card_of_index
    from sureshot.library.search import open_index
    from sureshot.places import absolute

    searcher = open_index(db, model=model, device=device)
    target = card_of_index(searcher) if noted.to is None else absolute(noted.to)
    with Bar(show.console(err=True), "scoring the index") as bar:
        done = calibrate_index(
            searcher,
            labels,
            absent=noted.absent,
            date=noted.date,
            lenient=lenient,
            told=lambda done, total: bar.update("windows scored", done, total),
        )
    return done, target


def _of_split(
    scorer: "Scorer",
    split: "Split",
    experts: Path | None,
    cache: Path | None,
    noted: _Noted,
) -> "tuple[Calibrated, Path]":
    """The calibration of a model on a split, and where its card goes."""
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.models.encoders.experts import read_experts
    from sureshot.places import absolute
    from sureshot.research.calibration import calibrate_scores, card_of_model, check_unseen
    from sureshot.research.features import extract
    from sureshot.research.scores import elsewhere, ranking

    target = card_of_model(scorer) if noted.to is None else absolute(noted.to)
    err = show.console(err=True)
    err.print(split.summary())
    check_unseen(scorer, split)
    given = {} if experts is None else read_experts(experts, [item.id for item in split.items])
    with Bar(err) as bar:
        features = extract(
            split,
            scorer.encoder,
            frames=scorer.frames,
            cache=cache,
            told=lambda what, done, total: bar.update(f"{what} encoded", done, total),
        )
        features = replace(features, experts=given)
        for name, reason in features.unreadable:
            err.print(f"left out: {name} {reason}")
        bar.show("calibrating", 0, 0)
        done = calibrate_scores(
            ranking(scorer, features),
            features.split.owner(),
            elsewhere(scorer, features),
            model=scorer.fingerprint,
            bank=None if scorer.bank is None else scorer.bank.digest,
            dataset=features.split.title(),
            absent=noted.absent or 0.0,
            date=noted.date,
        )
    return done, target


def _check_date(text: str) -> None:
    try:
        datetime.date.fromisoformat(text or "2000-01-01")
    except ValueError:
        raise MistypedError(f"--date is {text!r}; write it as 2026-11-30.") from None


def _print(out: "Console", done: "Calibrated") -> None:
    """What the labels gave, in a few lines."""
    from rich.text import Text

    from sureshot.text import counted, plain

    valid, quality = done.card.valid_for, done.card.quality
    queries = counted(valid.queries, "query", "queries")
    lines = [
        f"{queries} about {counted(valid.videos, 'video')} of {valid.dataset}; "
        f"{counted(done.gallery, 'video')} searched{_beside(done)}."
    ]
    if quality is not None:
        first, hits = quality.top1, quality.result
        lines += [
            f"measured on {first.cases} queries that nothing was fitted to:",
            f"  right first hits    {100 * first.share:.0f} %",
            f"  telling them apart  AUROC {first.auroc:.2f} ({first.auroc_low:.2f} to "
            f"{first.auroc_high:.2f}); 0.5 is chance, 1 perfect",
            f"  error of P(first)   Brier {first.brier:.3f}; always saying "
            f"{100 * first.share:.0f} % has {first.brier_base:.3f}",
            f"  said and true       {100 * first.ece:.0f} points apart; "
            f"{100 * first.ece_floor:.0f} with so few queries even if perfect",
            f"  error of P(hit)     Brier {hits.brier:.3f}; always the same has "
            f"{hits.brier_base:.3f}",
        ]
        if quality.absent_auroc is not None:
            lines += [f"  telling absent ones AUROC {quality.absent_auroc:.2f}"]
    if not done.card.refused:
        lines += ["plausible videos, the right one among them:", *map(_set, done.sets)]
        lines += ["certified, with 95 % confidence:", *_certified(done)]
        lines += [
            f"Valid for this model, libraries of {valid.smallest} to {valid.largest} videos and "
            f"queries like these; noted as of {valid.date}."
        ]
    for line in lines:
        out.print(Text(plain(line)), soft_wrap=True)


def _beside(done: "Calibrated") -> str:
    parts = [
        (done.absent, "with nothing right here"),
        (done.not_found, "of which nothing right was found"),
        (done.left_out, "left out, their videos are not in the index"),
    ]
    return "".join(f"; {count} more {what}" for count, what in parts if count)


def _set(row: "Sets") -> str:
    head = f"  for {100 * row.coverage:.0f} % of queries  "
    if row.videos is None:
        return f"{head}too few labels to promise that"
    return f"{head}{row.videos:.1f} videos on average"


def _certified(done: "Calibrated") -> list[str]:
    from sureshot.trust.risk import SHOWN_RISKS

    rows = [row for row in done.card.certificates if row.risk in SHOWN_RISKS]
    return [
        f"  at most {100 * row.risk:.0f} % wrong    answers from {100 * row.threshold:.0f} % up, "
        f"{100 * row.coverage:.0f} % of the queries"
        for row in rows
    ] or ["  nothing: too few labels, or too many wrong answers among the surest"]
