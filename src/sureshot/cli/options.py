"""Options that several commands share, and the values they stand for."""

from pathlib import Path
from typing import Annotated

import typer

from sureshot.errors import ArgumentError

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PLACE",
        help="Folder or object-storage URI of the index.",
        show_default="$SURESHOT_DB, else in your data folder",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="bundled, a folder (a CLIP, or a model that sureshot train made), or a hub id such as "
        "openai/clip-vit-base-patch16.",
        show_default="that of the index, else bundled",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="NAME", help="cpu, cuda, …", show_default="a GPU if there is one"
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="torch or openvino: what computes the bundled model's frames without a GPU.",
        show_default="$SURESHOT_ENGINE, else openvino if installed",
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        readable=False,
        metavar="DIR",
        help="Where encoded features are kept.",
        show_default="your cache folder",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs (docs/json.md).")]
Limit = Annotated[
    int, typer.Option("--limit", "-k", metavar="N", min=1, max=10_000, help="Hits at most.")
]
Under = Annotated[
    Path | None,
    typer.Option("--in", readable=False, metavar="DIR", help="Only videos at or below this path."),
]

# Of a data set and of a run.
Trained = Annotated[
    str, typer.Argument(metavar="MODEL", help="Folder of a checkpoint, or an encoder's name.")
]
Data = Annotated[str, typer.Option(metavar="NAME", help="msrvtt, msvd, … or pairs.")]
SplitName = Annotated[str, typer.Option(metavar="NAME", help="test, val or train.")]
Protocol = Annotated[str | None, typer.Option(metavar="NAME", help="Reading of the data set.")]
VideoFolder = Annotated[
    Path | None, typer.Option(readable=False, metavar="DIR", help="Folder of the videos.")
]
Ids = Annotated[
    Path | None,
    typer.Option(readable=False, metavar="FILE", help="Only these videos, one id a line."),
]
Label = Annotated[str | None, typer.Option(metavar="NAME", help="Name of a protocol of your own.")]
Experts = Annotated[
    Path | None,
    typer.Option(readable=False, metavar="DIR", help="Folder of the experts, if it reads any."),
]
Frames = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=64, help="Frames a video.", show_default="as trained"),
]
Bank = Annotated[
    int, typer.Option(metavar="N", min=1, help="Training captions that qb_norm and nnn look at.")
]
Root = Annotated[
    Path, typer.Option(readable=False, metavar="PATH", help="Folder of the annotation files.")
]
RecipeFile = Annotated[Path, typer.Argument(readable=False, metavar="RECIPE", help="A TOML file.")]
RunFolder = Annotated[
    Path | None,
    typer.Option(
        "--to", readable=False, metavar="DIR", help="Folder of the run.", show_default="runs/RECIPE"
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Replace one setting of the recipe."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")]


class MistypedError(ArgumentError):
    """Options that do not go together."""


def examples(*commands: str) -> str:
    """The end of a help text: commands to copy."""
    # Paragraphs, since single line breaks are joined.
    return "\n\n".join(["Examples:", *commands])
