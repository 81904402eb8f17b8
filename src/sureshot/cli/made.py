"""`sureshot made`."""

from pathlib import Path
from typing import Annotated

import typer

from sureshot.cli.options import Json, examples

EXAMPLES = examples(
    "sureshot made --to made",
    "sureshot made --to vague --set ambiguity=0.8 --set train=500 --picture vague.png",
    "SURESHOT_MADE=made sureshot train results/made-encoder.toml",
)


def made(
    to: Annotated[
        Path, typer.Option("--to", readable=False, metavar="DIR", help="Folder of the world.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="train, val, test: videos; captions: of a video; ambiguity, whole, common, noise: "
            "0 to 1; fewest, most: scenes of a video; seed.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", readable=False, metavar="FILE", help="Page of examples, .png or .svg."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Write a made world: videos of moving shapes, captions, and what is true of them.

    It is for experiments: which videos a caption fits is known for all, and the best possible
    score too. A folder is used as dataset = "made" in recipes.
    """
    from sureshot import research
    from sureshot.cli import show
    from sureshot.cli.bar import Bar
    from sureshot.datasets.made_world import MadeDials
    from sureshot.settings import build, override

    values: dict[str, object] = {}
    for assignment in settings or ():
        values = override(values, assignment)
    dials = build(MadeDials, values, "dials")
    with Bar(show.console(err=True)) as bar:
        world = research.write_world(to, dials, listener=bar)
    if picture is not None:
        from sureshot.research.figures.made_examples import write_examples

        write_examples(world.folder, picture)
    return show.print_result(world, as_json=as_json)
