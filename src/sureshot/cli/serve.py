"""`sureshot serve`."""

import importlib.util
import os
import threading
from pathlib import Path
from typing import Annotated

import typer

from sureshot.cli.options import Db, Device, MistypedError, Model, examples
from sureshot.cli.threads import compute_alone
from sureshot.errors import SureshotError

EXAMPLES = examples(
    "sureshot serve --open",
    "sureshot serve --db ~/clip-index --port 9000",
    "sureshot serve --host 0.0.0.0 --password-file ~/.sureshot-password",
)
_PATIENCE = 1.0  # seconds that each thread gets to end by itself
_NEEDED = ("fastapi", "uvicorn")


def serve(
    db: Db = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            help="Port to listen at; 0 takes any that is free.",
            show_default="8460",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Where to listen; what others can reach asks for a password."
        ),
    ] = "127.0.0.1",
    password_file: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="A file whose first line is the password."
        ),
    ] = None,
    roots: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            readable=False,
            metavar="DIR",
            help="A folder below which the page may index.",
            show_default="your home folder",
        ),
    ] = None,
    model: Model = None,
    device: Device = None,
) -> int:
    """Show a page that searches your videos and plays what is found. Ctrl-C ends it."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise SureshotError(
            f"The page needs {' and '.join(missing)}; get them with: pip install 'sureshot[web]'"
        )
    compute_alone()
    from sureshot.cli import show
    from sureshot.web.desk import Served
    from sureshot.web.gate import is_loopback
    from sureshot.web.server import run_server

    if ("%" in host or "/" in host) or not host.strip():
        raise MistypedError(f"--host is {host!r}; give a name or an address, such as 127.0.0.1.")
    out = show.console(err=True)

    def ready(address: str) -> None:
        out.print(f"Sureshot is at {address} (Ctrl-C ends it)")
        if not is_loopback(host):
            out.print(
                "Anybody in your network who knows the password can watch every indexed video and "
                "change the index. Password and videos travel unencrypted: use it in a network "
                "that you trust.",
                style="bold yellow",
            )
        if open_page:
            typer.launch(address)

    place = Served(db=db, model=model, device=device)
    run_server(
        place,
        host=host,
        port=port,
        password_file=password_file,
        roots=roots or (),
        ready=ready,
    )
    _leave()
    return 0


def _leave() -> None:
    """End at once, also where a film is still being made, of which nothing is kept."""
    working = [thread for thread in threading.enumerate() if thread.name.startswith("sureshot")]
    for thread in working:
        thread.join(_PATIENCE)
    if any(thread.is_alive() for thread in working):
        os._exit(0)  # Python itself would wait for it
