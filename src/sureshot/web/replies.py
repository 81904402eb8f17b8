"""What the server answers: the JSON of the terminal, and errors as the same sentences."""

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sureshot.errors import ArgumentError, QueryError, SureshotError, VideoError
from sureshot.library.printed import as_typed, json_text

_JSON = "application/json; charset=utf-8"


class UnknownError(SureshotError):
    """Something that was named and is not here; answered with 404."""

    code = "unknown"


class GoneError(SureshotError):
    """A file that was here when it was indexed; answered with 410."""

    code = "gone"


class BusyError(SureshotError):
    """More is being done than this machine can take; answered with 503."""

    code = "busy"


class FullError(SureshotError):
    """There is no room on the disk; answered with 507."""

    code = "full"


# The first that fits counts. What the index or its model lacks is neither the client's fault nor
# the server's: 409, a state that has to change first.
_NUMBERS: tuple[tuple[type[SureshotError], int], ...] = (
    (UnknownError, 404),
    (GoneError, 410),
    (BusyError, 503),
    (FullError, 507),
    (QueryError, 400),
    (ArgumentError, 400),
    (VideoError, 422),
    (SureshotError, 409),
)


def json_reply(values: dict[str, Any], code: int = 200) -> Response:
    """Values as a reply of JSON."""
    return Response(json_text(values), code, media_type=_JSON)


def error_reply(
    sentence: str, number: int, code: str, headers: dict[str, str] | None = None
) -> Response:
    """An error as the terminal prints it for programs.

    Args:
        sentence: what is wrong and how to mend it.
        number: status of the reply.
        code: short name of the kind of error.
        headers: headers beside those of every reply.
    """
    values = {"error": {"code": code, "message": as_typed(sentence)}}
    return Response(json_text(values), number, headers, _JSON)


def number_of(error: SureshotError) -> int:
    """The HTTP status for an error."""
    return next(number for kind, number in _NUMBERS if isinstance(error, kind))


async def on_error(request: Request, error: Exception) -> Response:
    """The reply to an error that somebody can mend."""
    assert isinstance(error, SureshotError)
    number = number_of(error)
    wait = {"Retry-After": "1"} if number == 503 else None
    return error_reply(str(error), number, error.code, wait)


async def on_invalid(request: Request, error: Exception) -> Response:
    """The reply to a request with a field that has no meaning."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    reason = str(first["msg"])
    return error_reply(f"{name}: {reason[:1].lower()}{reason[1:]}.", 422, "arguments")


async def on_http(request: Request, error: Exception) -> Response:
    """The reply to a path or method that there is none of."""
    assert isinstance(error, HTTPException)
    said = {404: "There is nothing at this address.", 405: "This address takes other methods."}
    sentence = said.get(error.status_code, f"{error.detail}.")
    return error_reply(sentence, error.status_code, "address", dict(error.headers or {}))
