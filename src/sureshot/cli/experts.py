"""`sureshot experts`."""

from pathlib import Path
from typing import Annotated

import typer

from sureshot.cli.options import Json, examples

EXAMPLES = examples(
    "sureshot experts audio=Audio_MSRVTT_new.pickle scene=densenet161-avg.pickle "
    "--to ~/MSRVTT/experts",
)


def experts(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE...",
            help="Pickles; without NAME an expert is called like its file.",
        ),
    ],
    to: Annotated[
        Path, typer.Option("--to", readable=False, metavar="DIR", help="Folder of experts.")
    ],
    as_json: Json = False,
) -> int:
    """Convert published features of videos (pickles of Collaborative Experts). Nothing is run."""
    from dataclasses import asdict

    from sureshot.cli import show
    from sureshot.models.encoders.expert_pickles import convert_pickle
    from sureshot.places import expand
    from sureshot.text import counted, plain

    converted = []
    for file in files:
        name, _, path = ("", "", file) if Path(file).is_file() else file.partition("=")
        converted.append(convert_pickle(expand(path), expand(to), name or None))
        if not as_json:
            last = converted[-1]
            lacking = f", {last.lacking:,} without it" if last.lacking else ""
            counts = f"{counted(last.videos, 'video')}{lacking}"
            line = f"{plain(last.name)}: {counts}; {plain(str(last.folder))}"
            show.console().print(line, soft_wrap=True)
    if as_json:
        made = [asdict(one) | {"folder": str(one.folder.absolute())} for one in converted]
        show.print_json({"experts": made})
    return 0
