"""JSON replies: their shapes for the OpenAPI document, and errors with their HTTP status."""

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, create_model
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from sureshot.errors import ArgumentError, QueryError, SureshotError, VideoError
from sureshot.library import catalog, clips, results
from sureshot.library.results import JSON_SCHEMA, json_text
from sureshot.store.maintenance import Fault
from sureshot.store.rows import IndexSettings
from sureshot.text import plain

_JSON = "application/json; charset=utf-8"
_ENTRY = re.compile(r"^    (\w+(?:, \w+)*): (.+(?:\n {8,}.+)*)", re.M)


def field(description: str, **limits: Any) -> Any:
    """A field of an address, see `fastapi.Query`."""
    return Query(description=description, **limits)


class Document(BaseModel):
    """A whole reply."""

    schema_: int = Field(
        default=JSON_SCHEMA, validation_alias="schema", serialization_alias="schema"
    )


class Reason(BaseModel):
    """A path and what was wrong with it."""

    path: str
    reason: str


class ErrorValues(BaseModel):
    """What is wrong and how to fix it: `code` for programs, `message` for people."""

    code: str
    message: str


class ErrorReply(Document):
    """An error."""

    error: ErrorValues


def descriptions(source: type) -> dict[str, str]:
    """Field descriptions of a dataclass: its ``Attributes:`` and the docstrings of properties."""
    _, _, listed = inspect.cleandoc(source.__doc__ or "").partition("Attributes:")
    entries = _ENTRY.findall(listed)
    found = {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}
    for name, member in inspect.getmembers(source, lambda member: isinstance(member, property)):
        found[name] = " ".join((member.__doc__ or "").split("\n\n")[0].split())
    return found


_MODELS: dict[Any, Any] = {
    Path: str,
    tuple[Path, str]: Reason,
    IndexSettings: dict[str, Any],
    Fault: dict[str, str],
}


def model_of(
    source: type, *, base: type[BaseModel] = BaseModel, without: tuple[str, ...] = (), **more: Any
) -> type[BaseModel]:
    """The model of a library dataclass: its fields but some, and ``more`` that ``to_dict`` adds."""
    hints, known = typing.get_type_hints(source), descriptions(source)
    names = [field.name for field in dataclasses.fields(source) if field.name not in without]
    kinds = {name: _json_type(hints[name]) for name in names} | more
    fields: dict[str, Any] = {
        name: (kind, Field(description=known.get(name))) for name, kind in kinds.items()
    }
    summary = (source.__doc__ or "").partition("\n")[0]
    _MODELS[source] = create_model(source.__name__, __base__=base, __doc__=summary, **fields)
    return _MODELS[source]


def _json_type(kind: Any) -> Any:
    """How a type of the library looks in JSON: paths are strings, tuples are lists."""
    if kind in _MODELS:
        return _MODELS[kind]
    parts = typing.get_args(kind)
    if typing.get_origin(kind) in (tuple, list):
        return list[_json_type(parts[0])]  # type: ignore[misc]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return typing.Union[tuple(_json_type(part) for part in parts)]  # noqa: UP007
    return kind


class _Text(BaseModel):
    """What people read of a hit."""

    peak: str
    range: str
    probability: str
    scene: str


class _First(BaseModel):
    """The seconds of a film that are made before the rest."""

    url: str
    start: float
    end: float


class VideoValues(BaseModel):
    """What the index knows of a video."""

    id: str
    path: str
    missing: bool
    away: bool
    seconds: float
    text: str
    windows: int
    date: str
    date_from: str
    modified: str
    reason: str
    note: str


class VideoReply(Document, VideoValues):
    """One video."""


class VideosReply(Document):
    """A page of the videos."""

    total: int
    failed: int
    text: str
    videos: list[VideoValues]
    next: str | None


model_of(results.FrameScore)
model_of(results.Copy, id=str, text=str)
model_of(results.Piece, text=str)
model_of(results.LineMatch, said=str)
model_of(results.Hit, id=str, peak=float, weak=bool, text=_Text)
model_of(results.Confidence)
model_of(results.NameMatch, id=(str | None))
model_of(results.Description)
AnswerReply = model_of(
    results.Answer, base=Document, verdict=str, note=str, hint=str, next=(str | None)
)
DescriptionsReply = model_of(
    results.Descriptions,
    base=Document,
    without=("ranked",),
    texts=_json_type(tuple[results.Description, ...]),
)
FilmReply = model_of(
    clips.Film,
    base=Document,
    text=str,
    url=str,
    length=float,
    first=(_First | None),
)
StatusReply = model_of(catalog.Contents, base=Document, without=("judging",), summary=str)


_ERRORS = {
    400: "A query that cannot be searched for",
    401: "Neither token nor password, or a wrong one",
    403: "The header that changes need is missing",
    404: "There is no such thing in the index",
    409: "The index is missing, damaged, or of another model",
    410: "The file is gone",
    411: "The request does not state its size",
    413: "The request is too large",
    421: "A host name that is not this server's",
    422: "A field has no meaning, or a video cannot be read",
    429: "Too many wrong passwords",
    503: "Too busy",
    507: "There is no room on the disk",
}


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The errors that an address may reply with, besides 422 and 503, with which any may."""
    return {c: {"model": ErrorReply, "description": _ERRORS[c]} for c in (*codes, 422, 503)}


def replies(model: Any, *codes: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of an address: its reply, and its errors."""
    return {200: {"model": model}, **errors(*codes)}


class NotFoundError(SureshotError):
    """Something that was named and is not here."""

    code = "unknown"


class FileGoneError(SureshotError):
    """A file that was here when it was indexed."""

    code = "gone"


class BusyError(SureshotError):
    """More is being done than this machine can take."""

    code = "busy"


class DiskFullError(SureshotError):
    """There is no room on the disk."""

    code = "full"


# What the index or its model lacks is neither the client's fault nor the server's: any error that
# is not here is 409, a state that has to change first.
_STATUS: dict[type[SureshotError], int] = {
    NotFoundError: 404,
    FileGoneError: 410,
    BusyError: 503,
    DiskFullError: 507,
    QueryError: 400,
    ArgumentError: 400,
    VideoError: 422,
}


def json_reply(values: dict[str, Any] | BaseModel) -> Response:
    """A JSON reply."""
    if isinstance(values, BaseModel):
        values = values.model_dump(by_alias=True)
    return Response(json_text(values), media_type=_JSON)


def error_reply(
    message: str, status: int, code: str, headers: dict[str, str] | None = None
) -> Response:
    """An error as ``--json`` prints it in the terminal."""
    values = {"error": {"code": code, "message": message}}
    return Response(json_text(values), status, headers, _JSON)


def status_of(error: Exception) -> int:
    """The HTTP status of an error that the user can fix."""
    return next((_STATUS[kind] for kind in type(error).mro() if kind in _STATUS), 409)


def _fields(request: Request) -> list[str]:
    """The fields that the address of a request has."""
    path = getattr(request.scope.get("route"), "path", "")
    known = request.app.openapi()["paths"].get(path, {})
    method = "get" if request.method == "HEAD" else request.method.lower()
    fields = known.get(method, {}).get("parameters", [])
    return [one["name"] for one in fields if one["in"] == "query"]


def named_as(fields: Collection[str], message: str) -> str:
    """A message that calls options by the names of fields, where they are some.

    Examples:
        >>> named_as(["since"], "--since is wrong; `sureshot serve --root DIR` says more.")
        '`since` is wrong; `sureshot serve --root DIR` says more.'
    """

    def named(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return f"`{name}`" if name in fields else found[0]

    return re.sub(r"--([a-z-]+)", named, message)


async def check_fields(request: Request) -> None:
    """Refuse a field that the address does not have: a misspelt filter would filter nothing."""
    names = _fields(request)
    for name in request.query_params:
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "there is none"
            raise RequestValidationError(
                [{"loc": ("query", plain(name)), "msg": f"no such field; {there}"}]
            )


async def _on_error(request: Request, error: Any) -> Response:
    status = status_of(error)
    wait = {"Retry-After": "1"} if status == 503 else None
    return error_reply(named_as(_fields(request), str(error)), status, error.code, wait)


def what_is_invalid(faults: Sequence[Mapping[str, Any]], skipped: int = 0) -> str:
    """What pydantic found, in one sentence, without so many first parts of each place."""
    said = []
    for one in faults:
        name = ".".join(map(str, one["loc"][skipped:])) or "the request"
        reason = str(one["msg"])
        said.append(f"{name}: {reason[:1].lower()}{reason[1:]}")
    return "; ".join(said) + "."


async def _on_invalid(request: Request, error: Any) -> Response:
    return error_reply(what_is_invalid(error.errors(), 1), 422, "arguments")


async def _on_http(request: Request, error: Any) -> Response:
    known = {404: "There is nothing at this address.", 405: "This address takes other methods."}
    message = known.get(error.status_code, f"{error.detail}.")
    return error_reply(message, error.status_code, "address", dict(error.headers or {}))


async def _on_crash(request: Request, error: Exception) -> Response:
    """A fault of ours: uvicorn prints its traceback."""
    message = "This failed inside Sureshot; the terminal of `sureshot serve` shows where."
    return error_reply(message, 500, "fault")


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # which is not sent


HANDLERS: dict[Any, Any] = {
    SureshotError: _on_error,
    RequestValidationError: _on_invalid,
    HTTPException: _on_http,
    ClientDisconnect: _on_disconnect,
    Exception: _on_crash,
}
