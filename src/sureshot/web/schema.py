"""The shapes of replies, as the OpenAPI document shows them; docs/json.md says what they mean."""

from typing import Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sureshot.errors import ArgumentError, QueryError, SureshotError, VideoError
from sureshot.library.results import as_typed, json_text


class Document(BaseModel):
    """A whole reply."""

    schema_: Literal[2] = Field(alias="schema", description="See docs/json.md.")


class FrameValues(BaseModel):
    """A sampled frame."""

    time: float
    score: float


class SaidValues(BaseModel):
    """What people read of a hit."""

    peak: str
    range: str
    relevant: str


class HitValues(BaseModel):
    """A moment."""

    rank: int
    id: str
    path: str
    missing: bool
    start: float
    end: float
    peak: float
    score: float
    relevant: float | None
    plausible: bool | None
    weak: bool
    said: SaidValues
    copies: list[str]
    frames: list[FrameValues]


class ConfidenceValues(BaseModel):
    """What a calibration says of an answer."""

    right: float
    present: float
    coverage: float
    plausible: int | None
    valid_for: str
    yours: bool


class AnswerReply(Document):
    """A page of the moments of an answer."""

    query: str
    status: str
    verdict: str
    worth: str
    confidence: ConfidenceValues | None
    model: str
    searched: int
    seconds: float
    warnings: list[str]
    hits: list[HitValues]
    next: str | None


class FirstValues(BaseModel):
    """The seconds of a film that are made before the whole of it."""

    url: str
    start: float
    end: float


class FilmReply(Document):
    """What is played, and which seconds of the video it shows."""

    way: Literal["direct", "remux", "clip"]
    type: str
    start: float
    end: float
    url: str
    first: FirstValues | None


class JudgedMomentValues(BaseModel):
    """A moment that somebody judged."""

    id: str
    start: float
    end: float
    right: bool


class JudgedReply(Document):
    """What was judged."""

    judged: int
    said: str
    learning: bool
    state: str
    moments: list[JudgedMomentValues]


class FolderValues(BaseModel):
    """A folder."""

    path: str
    name: str


class FoldersReply(Document):
    """The folders in one."""

    folder: str | None
    above: str | None
    folders: list[FolderValues]


class JobValues(BaseModel):
    """How far an indexing run is."""

    state: Literal["running", "paused", "done", "cancelled", "failed"]
    folders: list[str]
    said: str
    share: float
    current: str
    failed: list["ReasonValues"]
    error: "ErrorValues | None"


class JobReply(Document):
    """The last indexing run, if there was one."""

    job: JobValues | None


class TextValues(BaseModel):
    """A sentence and how well it fits."""

    rank: int
    text: str
    score: float


class DescriptionsReply(Document):
    """Sentences, best first."""

    video: str
    at: float | None
    status: str
    model: str
    warnings: list[str]
    texts: list[TextValues]


class VideoValues(BaseModel):
    """What the index knows of a video."""

    id: str
    path: str
    missing: bool
    seconds: float
    said: str
    windows: int
    modified: str
    reason: str
    note: str


class VideoReply(Document, VideoValues):
    """One video."""


class VideosReply(Document):
    """A page of the videos."""

    total: int
    said: str
    videos: list[VideoValues]
    next: str | None


class ReasonValues(BaseModel):
    """A path and what was wrong with it."""

    path: str
    reason: str


class StatusReply(Document):
    """What the index holds."""

    index: str
    videos: int
    windows: int
    seconds: float
    bytes: int
    fingerprint: str
    settings: dict[str, Any]
    status: str
    failed: list[ReasonValues]
    notes: list[ReasonValues]
    excluded: list[str]
    judged: int
    trouble: list[str]
    faults: list[dict[str, Any]] | None
    summary: str


class LearnedReply(Document):
    """What percentages are learned from."""

    learned_from: str
    forgotten: bool | None


class RemovedReply(Document):
    """How many videos were forgotten."""

    removed: int


class ErrorValues(BaseModel):
    """The kind of an error, and a sentence that says how to mend it."""

    code: str
    message: str


class ErrorReply(Document):
    """What is wrong."""

    error: ErrorValues


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The errors that an address may answer with, beside those that every one may."""
    said: dict[int | str, str] = {
        400: "A query that cannot be searched for",
        403: "The token or the right to do this is missing",
        404: "There is no such thing in the index",
        409: "The index is missing, damaged, or of another model",
        410: "The file is gone",
        411: "The request does not say how large it is",
        413: "The request is too large",
        416: "The range lies beyond the end",
        507: "There is no room on the disk",
    }
    every = {422: "A field has no meaning, or a video cannot be read", 503: "Too busy"}
    named = {code: said[code] for code in codes} | every
    return {code: {"model": ErrorReply, "description": words} for code, words in named.items()}


_JSON = "application/json; charset=utf-8"


class NotFoundError(SureshotError):
    """Something that was named and is not here; answered with 404."""

    code = "unknown"


class FileGoneError(SureshotError):
    """A file that was here when it was indexed; answered with 410."""

    code = "gone"


class BusyError(SureshotError):
    """More is being done than this machine can take; answered with 503."""

    code = "busy"


class DiskFullError(SureshotError):
    """There is no room on the disk; answered with 507."""

    code = "full"


# The first that fits counts. What the index or its model lacks is neither the client's fault nor
# the server's: 409, a state that has to change first.
_NUMBERS: tuple[tuple[type[SureshotError], int], ...] = (
    (NotFoundError, 404),
    (FileGoneError, 410),
    (BusyError, 503),
    (DiskFullError, 507),
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
