"""A prompt that stays: one query after another, answered by a model and an index that are open."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from sureshot.errors import QueryError

if TYPE_CHECKING:
    from sureshot.library.search import Searcher

_PROMPT = "search> "


def converse(searcher: "Searcher", wanted: dict[str, Any], *, as_json: bool) -> None:
    """Answer what is typed, query by query, until an empty line or Ctrl-D.

    Args:
        searcher: the open index.
        wanted: what each search is asked for, as arguments of `Searcher.search`.
        as_json: whether answers are printed for programs.
    """
    from sureshot.cli import show

    out, told = show.console(), False
    for query in _typed():
        try:
            answer = searcher.search(query, **wanted)
        except QueryError as error:
            show.console(err=True).print(str(error))
            continue
        if as_json:
            show.print_json(answer.to_dict())
        elif told:
            show.print_answer(out, answer)
        else:  # what percentages or scores are worth is said once
            show.print_answers(out, [answer])
            told = bool(answer.hits)


def _typed() -> Iterator[str]:
    """The lines typed at the prompt."""
    with contextlib.suppress(ImportError):  # not on Windows, whose terminals edit lines themselves
        import readline  # noqa: F401 - gives `input` its editing and its history
    typer.echo("A query a line; an empty line or Ctrl-D ends.", err=True)
    while True:
        try:
            line = input(_PROMPT)
        except EOFError:
            typer.echo()  # whatever comes next on the terminal gets a line of its own
            return
        if not line.strip():
            return
        yield line
