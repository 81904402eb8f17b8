"""A table of a paper run again, from its plan to its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sureshot.errors import ArgumentError, option
from sureshot.research.listener import Listener, Notes, Silence
from sureshot.research.reproduction.bench import Features, Plan, read_plan, worlds
from sureshot.research.reproduction.page import Facts, write_page
from sureshot.research.reproduction.runs import Run, cells, perform
from sureshot.research.reproduction.tables import find_table, load_tables


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Tables that were run.

    Attributes:
        runs: the runs of each table, by its name; those of a part if only a part was asked for.
        files: pages, numbers and pictures that were written; none of a part.
    """

    runs: Mapping[str, tuple[Run, ...]]
    files: tuple[Path, ...]


def reproduce(
    table: str,
    plan: str | Path,
    *,
    to: str | Path = "results",
    seeds: int = 3,
    part: str | None = None,
    cache: Path | None = None,
    listener: Listener | None = None,
) -> Reproduction:
    """Run a table of a paper again: every row with several seeds, tested once.

    Finished runs are kept in the folder ``runs`` below ``to``, so a call that was stopped goes on.
    A run is made again when its recipe, its data, its encoder or the code that makes it has
    changed, see `sureshot.research.reproduction.code`.

    Args:
        table: name of a table, see `sureshot.research.reproduction.tables`; ``all`` is every one.
        plan: TOML file that names the data, the encoder and the training.
        to: folder of the pages and of finished runs.
        seeds: runs of each row.
        part: share of the runs to make, such as ``1/2``, the first of two; then no page is written.
        cache: folder of encoded features; None is one in the user's cache folder.
        listener: hears how far the work is.

    Raises:
        ArgumentError: the part is none.
        SureshotError: no such table, something is wrong with the plan or its data, or a number is
            not finite.
    """
    first, step = _share(part)
    tables = list(load_tables().values()) if table == "all" else [find_table(table)]
    plan, folder = Path(plan), Path(to)
    read = read_plan(plan)
    notes = Notes(listener or Silence())
    encoder, (home, *away) = worlds(
        read,
        plan.absolute().parent,
        away=any(one.elsewhere for one in tables),
        cache=cache,
        told=notes.encoded,
    )
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    runs: dict[str, tuple[Run, ...]] = {}
    files: list[Path] = []
    for one in tables:
        others = away if one.elsewhere else []
        wanted = cells(one, seeds)[first::step]
        made = []
        for number, cell in enumerate(wanted):
            more = f", {one.name}: {cell.variant.name}, seed {cell.seed}"
            notes.update("runs", number, len(wanted), more)
            made.append(perform(cell, read, encoder, home, others, folder / "runs"))
        runs[one.name] = tuple(made)
        if part is None:
            command = f"sureshot reproduce {one.name} --plan {plan} --seeds {seeds}"
            facts = _facts(command, read, encoder.name, [home, *others])
            files += write_page(folder, one, made, facts)
    return Reproduction(runs, tuple(files))


def _facts(command: str, plan: Plan, encoder: str, features: Sequence[Features]) -> Facts:
    """How a page was made."""
    home, training = features[0], plan.training
    return Facts(
        command=command,
        train=home.train.split.title(),
        val=home.val.split.title(),
        tests=[world.test.split.title() for world in features],
        encoder=encoder,
        training=f"stem width {plan.stem.width}, {training.epochs} epochs with one random caption "
        f"of each video, batch {training.batch}, rate {training.rate:g}",
    )


def _share(part: str | None) -> tuple[int, int]:
    """First run and step of a share such as 1/2, counted from 1."""
    if part is None:
        return 0, 1
    number, slash, count = part.partition("/")
    whole = bool(slash) and number.isdecimal() and count.isdecimal()
    if not whole or not 1 <= int(number) <= int(count):
        raise ArgumentError(
            f"{option('part', part)} is no part; write it as 1/2, the first of two parts."
        )
    return int(number) - 1, int(count)
