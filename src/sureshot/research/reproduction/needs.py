"""What a table or figure needs, and where a plan has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sureshot.errors import SureshotError
from sureshot.research.reproduction.bench import HOME, QUESTIONS, Bench, World
from sureshot.research.reproduction.tables import PaperFigure, Table, Variant

# Title of each data set, its name and protocol for a plan, and the files that belong below root.
_FILES: Mapping[str, tuple[str, str, str]] = {
    "msrvtt": (
        "MSR-VTT 1k-A",
        'dataset = "msrvtt"',
        "MSRVTT_data.json, MSRVTT_train.9k.csv and MSRVTT_JSFUSION_test.csv",
    ),
    "msrvtt_full": (
        "MSR-VTT full",
        'dataset = "msrvtt", protocol = "full"',
        "MSRVTT_data.json, or train_val_videodatainfo.json and test_videodatainfo.json",
    ),
    "msvd": (
        "MSVD",
        'dataset = "msvd"',
        "raw-captions.pkl and {train,val,test}_list.txt",
    ),
    "vatex": (
        "VATEX",
        'dataset = "vatex"',
        "vatex_data.json, or ref_captions.json, and {train,val,test}_list.txt",
    ),
    "didemo": (
        "DiDeMo",
        'dataset = "didemo"',
        "{train,val,test}_data.json and {train,val,test}_list.txt",
    ),
    "lsmdc": (
        "LSMDC",
        'dataset = "lsmdc"',
        "LSMDC16_annos_training.csv, LSMDC16_annos_val.csv and "
        "LSMDC16_challenge_1000_publictect.csv",
    ),
    "charades": (
        "Charades",
        'dataset = "charades"',
        "Charades_v1_train.csv and Charades_v1_test.csv",
    ),
    "activitynet": (
        "ActivityNet",
        'dataset = "activitynet"',
        "train.json, val_1.json, train_ids.json and val_ids.json",
    ),
    "made": (
        "A made world",
        'dataset = "made"',
        "what `sureshot made --to DIR` writes",
    ),
    QUESTIONS: (
        "MSRVTT-QA",
        "",
        "{train,val,test}.jsonl, or {train,val,test}_qa.json, and train_ans2label.json",
    ),
}

_HELD_OUT = ("msrvtt", "charades", "activitynet")
_PUBLISHED: Mapping[str, tuple[str, str]] = {
    "msrvtt": ("MSRVTT", "1kA"),
    "msrvtt_full": ("MSRVTT", "full"),
    "msvd": ("MSVD", "std"),
    "vatex": ("VATEX", "std"),
    "didemo": ("DiDeMo", "std"),
    "lsmdc": ("LSMDC", "std"),
    "charades": ("Charades", "std"),
    "activitynet": ("ActivityNet", "val1"),
    "made": ("", ""),  # nobody printed anything of it
}


@dataclass(frozen=True, slots=True)
class Place:
    """A data set that a table is run on.

    Attributes:
        name: the data set, as the plan names it; ``home`` where one stands in.
        world: its three parts.
        elsewhere: names and parts of the data sets that runs are also tested on.
    """

    name: str
    world: World
    elsewhere: tuple[tuple[str, World], ...] = ()

    def rows(self, table: Table) -> list[Variant]:
        """The rows of a table that can be run here: oracles only where the truth is known."""
        knows = self.world.train.dataset == "made"
        return [row for row in table.variants if knows or not row.is_told]


def places_of(table: Table | PaperFigure, bench: Bench) -> tuple[list[Place], list[str]]:
    """Where a plan has the data of a table.

    Args:
        table: a table of recalls, or a figure that can be drawn.
        bench: the data of the plan.

    Returns:
        The data sets that it can be run on, and a sentence for each that is missing: which files,
        and where they go.
    """
    missing: list[str] = []
    worlds = [(name, getattr(bench.plan.data, name)) for name in table.data]
    there = [(name, world) for name, world in worlds if _is_there(name, world, bench, missing)]
    home = bench.plan.home
    if not there and home is not None and (isinstance(table, PaperFigure) or table.stand_in):
        # What is missing of the paper's own data does not matter then.
        missing = []
        there = [(HOME, home)] if _is_there(HOME, home, bench, missing) else []
    elif not table.data:
        missing.append("The plan has no data of yours; give them as [home.train] and so on.")
    wanted = table.elsewhere if isinstance(table, Table) else ()
    places = []
    for name, world in there:
        others = _others(name, wanted, bench, missing)
        if others or not wanted:
            places.append(Place(name, world, tuple(others)))
    return places, missing


def _others(
    name: str, wanted: Sequence[str], bench: Bench, missing: list[str]
) -> list[tuple[str, World]]:
    """Names and parts of what runs on a data set are also tested on."""
    if name != HOME:
        worlds = [(other, getattr(bench.plan.data, other)) for other in wanted]
        return [one for one in worlds if _is_there(*one, bench, missing)]
    if wanted and bench.plan.away is None:
        missing.append("This table needs a second data set; give it as [away.train] and so on.")
    if not wanted or bench.plan.away is None:
        return []
    away = "", bench.plan.away
    return [away] if _is_there(*away, bench, missing) else []


def question_gap(bench: Bench) -> list[str]:
    """A sentence if the plan has no questions, or they cannot be read; nothing else."""
    if bench.plan.questions is None:
        return [_absent(QUESTIONS)]
    try:
        for part in bench.questions():
            part.load()
    except SureshotError as error:
        return [_unread(QUESTIONS, error)]
    return []


def published_as(name: str) -> tuple[str, str]:
    """Data set and split of a plan's data set, as metrics/published.csv has them."""
    return _PUBLISHED[name]


def needed(data: Sequence[str]) -> str:
    """Data sets in words, such as ``DiDeMo and VATEX``; nothing for none."""
    titles = [_FILES[name][0] for name in data]
    return (
        " and ".join([", ".join(titles[:-1]), titles[-1]]) if len(titles) > 1 else "".join(titles)
    )


def _absent(name: str) -> str:
    title, dataset, files = _FILES[name]
    table, given = f"data.{name}", f"{dataset} and "
    if name == QUESTIONS:
        table, given = "questions", ""
    parts = f"[{table}.train], [{table}.val] and [{table}.test]"
    if name in _HELD_OUT:
        parts = (
            f"[{table}.train] and [{table}.test] (and hold_out = 500 in [{table}], as it has no "
        )
        parts += "validation set)"
    return (
        f"{title} is not in the plan. Put {files} into a folder, the videos below it, and give it "
        f"as {parts} with {given}root = the folder."
    )


def _is_there(name: str, world: World | None, bench: Bench, missing: list[str]) -> bool:
    """Whether a data set can be read; if not, what is missing gets a sentence."""
    if world is None:
        missing.append(_absent(name))
        return False
    try:
        bench.splits(world)
    except SureshotError as error:
        missing.append(_unread(name, error))
        return False
    return True


def _unread(name: str, error: SureshotError) -> str:
    if name not in _FILES:
        return str(error)
    title, _, files = _FILES[name]
    return f"{title} cannot be read: {error} It needs {files}, and the videos."
