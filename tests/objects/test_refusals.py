"""What a storage refuses is said in words, and nothing of its own text."""

import errno

import pytest

from sureshot.s3 import reason_in, refusal


class AnsweredError(Exception):
    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__("AKIDEXAMPLE wJalrXUtnFEMI https://user:word@host/?X-Amz-Signature=00")
        self.response = {
            "Error": {"Code": code, "Message": "secret"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }


@pytest.mark.parametrize(
    ("code", "number", "words"),
    [
        ("NoSuchKey", errno.ENOENT, "no such object"),
        ("NoSuchBucket", errno.ENODEV, "no such bucket"),
        ("AccessDenied", errno.EACCES, "access is denied"),
        ("SignatureDoesNotMatch", errno.EACCES, "does not fit"),
        ("ExpiredToken", errno.EACCES, "expired"),
        ("RequestTimeTooSkewed", errno.EACCES, "clock of this machine"),
        ("PreconditionFailed", errno.ESTALE, "changed while it was being read"),
        ("SlowDown", errno.EAGAIN, "slow down"),
        ("Strange9", errno.EIO, "(Strange9)"),
        ("<b>\x1b[2J", errno.EIO, "(400)"),
    ],
)
def test_a_code_becomes_a_number_and_words(code, number, words) -> None:
    if not code.isalnum():
        words = "(no code)"
    told = refusal(AnsweredError(code), "s3://films/a.mp4")
    assert told.errno == number
    assert words in str(told.strerror)
    assert "wJalr" not in str(told) + repr(told)
    assert "Signature=" not in str(told) + repr(told)


def test_a_code_that_says_nothing_leaves_the_status() -> None:
    assert isinstance(refusal(AnsweredError("", 403)), PermissionError)
    assert isinstance(refusal(AnsweredError("404")), FileNotFoundError)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Generic S3 error: <Error><Code>ExpiredToken</Code><Token-0>Fwo</Token-0>", "expired"),
        ("Generic S3 error: Error performing GET http://h/b in 1ms - 403 Forbidden", "denied"),
        ("S3 error: Server returned non-2xx status code: 503 Service", "slow down"),
        ("Error performing GET http://u:p@h - HTTP error: operation timed out", "in time"),
        ("Error performing GET http://u:p@h - HTTP error: error sending request", "reached"),
        ("Generic S3 error: HTTP error: request or response body error", "breaks connections"),
        ("Generic S3 error: something new http://u:p@h", "failed"),
    ],
)
def test_accounts_of_lance_become_words(text, words) -> None:
    told = reason_in(text)
    assert told is not None
    assert words in told
    assert "http" not in told


def test_what_is_no_account_of_a_request_is_left_alone() -> None:
    assert reason_in("Not found: /home/ann/index") is None
