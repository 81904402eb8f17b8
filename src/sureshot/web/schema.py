"""The shapes of replies, as the OpenAPI document shows them; docs/json.md says what they mean."""

from typing import Any, Literal

from pydantic import BaseModel, Field


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
