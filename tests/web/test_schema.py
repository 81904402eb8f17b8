"""The shapes of replies, and errors as sentences with codes."""

import json

import pytest

from sureshot.errors import ModelError, QueryError, StoreError, VideoError, option
from sureshot.web import routes, schema
from sureshot.web.schema import (
    BusyError,
    DiskFullError,
    FileGoneError,
    NotFoundError,
    error_reply,
    json_reply,
    status_of,
)


@pytest.mark.parametrize(
    "address, model",
    [
        ("/api/search?q=red", schema.AnswerReply),
        ("/api/videos", schema.VideosReply),
        ("/api/videos/{red}", schema.VideoReply),
        ("/api/status", schema.StatusReply),
        ("/api/calibration", routes.LearnedReply),
        ("/api/describe?video={red}&text=red", schema.DescriptionsReply),
        ("/api/playing/{red}", schema.FilmReply),
        ("/api/nothing", schema.ErrorReply),
    ],
)
def test_each_reply_has_its_shape_and_no_other_field(visitor, red, address, model) -> None:
    values = visitor.get(address.format(red=red)).json()
    shape = type("Strict", (model,), {}, extra="forbid")
    shape.model_validate(values, strict=True)


@pytest.mark.parametrize(
    "error, code",
    [
        *((QueryError, 400), (StoreError, 409), (ModelError, 409), (VideoError, 422)),
        *((FileGoneError, 410), (NotFoundError, 404), (BusyError, 503), (DiskFullError, 507)),
    ],
)
def test_each_kind_of_error_has_its_code(error, code) -> None:
    assert status_of(error("…")) == code


def test_errors_speak_as_the_terminal_does() -> None:
    reply = error_reply(f"Name another with {option('db')}.", 409, "index")
    assert json.loads(reply.body) == {
        "schema": 4,
        "error": {"code": "index", "message": "Name another with --db."},
    }


def test_what_steers_a_terminal_is_escaped_and_every_letter_comes_back() -> None:
    body = json_reply({"path": "ü\x1b[2J\u202e"}).body
    assert body == b'{"schema": 4, "path": "\xc3\xbc\\u001b[2J\\u202e"}'
    assert json.loads(body)["path"] == "ü\x1b[2J\u202e"
