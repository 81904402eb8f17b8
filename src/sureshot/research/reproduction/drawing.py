"""A numbered figure of a paper: train what it shows, and draw it."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sureshot.errors import SureshotError
from sureshot.research.figures.plotting import plot, write_figure
from sureshot.research.listener import Notes
from sureshot.research.reproduction.bench import Bench, Case
from sureshot.research.reproduction.needs import Place, places_of
from sureshot.research.reproduction.runs import PlannedRun, train_cell
from sureshot.research.reproduction.tables import PaperFigure, Variant


def draw_figure(
    figure: PaperFigure, bench: Bench, folder: Path, *, notes: Notes, cache: Path | None = None
) -> list[Path]:
    """Train the systems of a figure and write NAME.png and NAME.svg, on the test split.

    Args:
        figure: what to draw.
        bench: the data of a plan; of several data sets the first is taken that is there.
        folder: gets the pictures, and ``models``, in which the checkpoints stay.
        notes: hears how far the work is.
        cache: folder of encoded features; None is one in the user's cache folder.

    Raises:
        SureshotError: the paper's is a drawing, its data are not there, or as for
            `sureshot.research.figures.plotting.plot`.
    """
    if not figure.figure:
        raise SureshotError(f"{figure.title} is a drawing of the paper's; there is nothing to run.")
    places, missing = places_of(figure, bench)
    if not places:
        raise SureshotError(" ".join(missing))
    place, test = places[0], bench.placed(places[0].world.test)
    models = list(_models(figure, bench, place, folder / "models", notes))
    beside = None
    if figure.beside:
        compared = Variant(name=f"{figure.name}, compared", system=figure.beside)
        beside = _trained(compared, bench, place, folder / "models", notes)
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"{figure.name}.png"
    drawn = plot(
        figure.figure,
        models,
        test.dataset,
        test.root,
        split=test.split,
        protocol=test.protocol,
        videos=test.videos,
        ids=test.ids,
        label=test.label,
        experts=test.experts,
        device=bench.plan.encoder.device,
        to=picture,
        beside=beside,
        cache=cache,
        listener=notes,
    )
    return [picture, *write_figure(figure.name, drawn.drawing, picture.with_suffix(".svg"))]


def _models(
    figure: PaperFigure, bench: Bench, place: Place, folder: Path, notes: Notes
) -> Iterator[Path]:
    """The checkpoints that are drawn: one, or one for each number of epochs."""
    variant = Variant(name=figure.name, system=figure.system)
    if not figure.epochs:
        yield _trained(variant, bench, place, folder, notes)
        return
    most = bench.plan.settings("training", variant.system, place.name).epochs
    for epochs in range(1, most + 1):
        shorter = copy.copy(bench)
        case = Case(training={"epochs": epochs, "keep": "last"})
        shorter.plan = replace(bench.plan, cases=(*bench.plan.cases, case))
        yield _trained(variant, shorter, place, folder, notes)


def _trained(variant: Variant, bench: Bench, place: Place, folder: Path, notes: Notes) -> Path:
    return train_cell(PlannedRun(variant=variant, seed=0, place=place), bench, folder, notes).folder
