"""The shapes that OpenAPI shows are those of the replies."""

import pytest

from sureshot.web import schema


@pytest.mark.parametrize(
    "address, model",
    [
        ("/api/search?q=red", schema.AnswerReply),
        ("/api/videos", schema.VideosReply),
        ("/api/videos/{red}", schema.VideoReply),
        ("/api/status", schema.StatusReply),
        ("/api/calibration", schema.LearnedReply),
        ("/api/describe?video={red}&text=red", schema.DescriptionsReply),
        ("/api/nothing", schema.ErrorReply),
    ],
)
def test_each_reply_has_its_shape_and_no_other_field(visitor, red, address, model) -> None:
    values = visitor.get(address.format(red=red)).json()
    shape = type("Strict", (model,), {}, extra="forbid")
    shape.model_validate(values, strict=True)


def test_errors_are_described() -> None:
    assert set(schema.errors(404)) == {404, 422, 503}
